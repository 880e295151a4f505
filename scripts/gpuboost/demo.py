"""gpuboost demo: the same training three times: as people write it, the same under gpuboost, and hand-tuned.

On a real GPU when the interpreter's torch sees one, else on the simulated one of this repository, which the
table and build/demo.json then say. build/demo.json: device, simulated, runs[] (name, steps_per_s, busy_pct),
ratio_to_naive, ratio_to_tuned, top_sites[] (file, line, idle_ms); null where something is not known.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from gpuboost import CommandError, library, record

WORKLOADS = os.path.join(library.ROOT, "tests", "workloads")
TIME_LIMIT_S = 300
RUNS = (("naive", "train_naive.py", False), ("gpuboost", "train_naive.py", True), ("tuned", "train_tuned.py", False))


def add_arguments(parser):
    parser.add_argument("--preset", default="A20", help="link rates, batch and compute of tests/workloads/presets.py")
    parser.add_argument("--steps", type=int, default=60, help="timed steps of each run")
    parser.add_argument("--log-every", type=int, default=10, help="the scripts read the loss every N steps; 0: never")
    parser.add_argument("--json", default=os.path.join(library.ROOT, "build", "demo.json"), metavar="FILE")
    parser.set_defaults(function=main)


def interpreter():
    python = os.environ.get("GPUBOOST_PYTHON") or os.path.join(library.ROOT, ".venv", "bin", "python")
    if not shutil.which(python):
        raise CommandError(f"demo: {python} is not there; make deps makes it, GPUBOOST_PYTHON names another with torch")
    return python


def real_device(python):
    """Name of the GPU that torch sees, or None."""
    code = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    return done.stdout.strip() or None


class Sampler:
    """Utilisation by nvidia-smi while a run lasts: coarse, but the only figure without a profiler."""

    def __init__(self):
        self.samples, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0"]
        while not self.stop.wait(0.2):
            done = subprocess.run(query, capture_output=True, text=True)
            if done.returncode == 0 and done.stdout.strip().isdigit():
                self.samples.append(int(done.stdout))

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()

    @property
    def busy_pct(self):
        return sum(self.samples) / len(self.samples) if self.samples else None


def busy_in_window(truth, start_ns, end_ns):
    """Share of the window in which the simulated compute engine worked."""
    busy = sum(max(0, min(end, end_ns) - max(begin, start_ns))
               for begin, end in truth["devices"][0]["intervals"]["compute"])
    return 100 * busy / (end_ns - start_ns)


def one_run(python, script, env, arguments, folder, simulated):
    """Runs a training script; its speed, the GPU's busy share in the timed steps."""
    speed, truth = os.path.join(folder, "speed.json"), os.path.join(folder, "truth.json")
    env = {**env, "GPUSIM_TRUTH": truth}
    command = ([os.path.join(library.ROOT, "scripts", "gpusim")] if simulated else []) + [
        python, os.path.join(WORKLOADS, script), *arguments, "--json", speed]
    with Sampler() as sampler:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if done.returncode:
        raise CommandError(f"demo: {script} failed (status {done.returncode}):\n{done.stderr.strip()}")
    with open(speed) as file:
        measured = json.load(file)
    if not simulated:
        return measured["steps_per_s"], sampler.busy_pct
    with open(truth) as file:
        window = measured["start_monotonic_ns"], measured["end_monotonic_ns"]
        return measured["steps_per_s"], busy_in_window(json.load(file), *window)


def top_sites(run):
    """The three lines that cost the GPU most."""
    return [{"file": place["frame"]["file"], "line": place["frame"].get("line"), "idle_ms": place["idle_ns"] / 1e6}
            for place in record.places(run) if place["frame"] and place["idle_ns"]][:3]


def measure(options, preset, python, device):
    """The three runs; (name -> (steps/s, busy %), record of the second)."""
    simulated = device is None
    arguments = preset.arguments(steps=options.steps, log_every=options.log_every)
    settings = preset.environment() if simulated else {}
    os.makedirs(os.path.join(library.ROOT, "build"), exist_ok=True)
    kept = tempfile.mkdtemp(prefix="demo-", dir=os.path.join(library.ROOT, "build"))
    results = {}
    for number, (name, script, boosted) in enumerate(RUNS, 1):
        print(f"[{number}/{len(RUNS)}] {script}{' under gpuboost' if boosted else ''} ... ", end="", flush=True)
        env = library.environment("safe", os.path.join(kept, "record")) if boosted else dict(os.environ)
        with tempfile.TemporaryDirectory() as folder:
            results[name] = one_run(python, script, {**env, **settings}, arguments, folder, simulated)
        print(f"{results[name][0]:.2f} steps/s")
    return results, record.read(os.path.join(kept, "record"))


def table(result, run):
    speeds = {entry["name"]: entry["steps_per_s"] for entry in result["runs"]}
    labels = dict(naive="naive", gpuboost="naive under gpuboost", tuned="hand-tuned")
    yield ""
    yield f"{'':22} {'steps/s':>9} {'GPU busy':>9} {'to naive':>9} {'to tuned':>9}"
    for entry in result["runs"]:
        busy = "n/a" if entry["busy_pct"] is None else f"{entry['busy_pct']:.1f} %"
        speed = entry["steps_per_s"]
        yield (f"{labels[entry['name']]:22} {speed:9.2f} {busy:>9} {speed / speeds['naive']:9.2f} "
               f"{speed / speeds['tuned']:9.2f}")
    yield ""
    yield "what still stalls the GPU under gpuboost"
    for site in result["top_sites"]:
        yield f"  {site['idle_ms']:9.1f} ms  {os.path.relpath(site['file'])}:{site['line']}"
    yield ""
    yield f"record  {run.path}"
    yield f"device  {result['device']}" + ("   SIMULATED: no figure is that of a real GPU" if result["simulated"] else "")


def main(options):
    sys.path.append(WORKLOADS)
    import presets

    if options.preset not in presets.PRESETS:
        raise CommandError(f"demo: --preset {options.preset}: one of {', '.join(presets.PRESETS)}")
    if options.steps < 1 or options.log_every < 0:
        raise CommandError("demo: --steps is at least 1, --log-every at least 0")
    python = interpreter()
    library.path()
    device = real_device(python)
    results, run = measure(options, presets.PRESETS[options.preset], python, device)
    result = {
        "device": device or run.device,
        "simulated": device is None,
        "runs": [{"name": name, "steps_per_s": speed, "busy_pct": busy} for name, (speed, busy) in results.items()],
        "ratio_to_naive": results["gpuboost"][0] / results["naive"][0],
        "ratio_to_tuned": results["gpuboost"][0] / results["tuned"][0],
        "top_sites": top_sites(run),
    }
    os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    with open(options.json, "w") as file:
        json.dump(result, file, indent=1)
    for line in table(result, run):
        print(line)
    return 0
