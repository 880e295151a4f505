"""gpuboost demo: the same training three times: as people write it, the same under gpuboost, and hand-tuned.

On a real GPU when the interpreter's torch sees one, else on the simulated one of this repository, which the
table and build/demo.json then say. `gpuboost prove` comes first, so that waits are left out where they may be.
build/demo.json: device, simulated, runs[] (name, steps_per_s, busy_pct), ratio_to_naive, ratio_to_tuned,
top_sites[] (file, line, idle_ms); null where something is not known.
"""

import json
import os
import subprocess
import sys
import tempfile

from gpuboost import CommandError, library, record
from gpuboost.report import clean
from gpuboost.trial import Trial, gpu_of, interpreter

WORKLOADS = os.path.join(library.ROOT, "tests", "workloads")
RUNS = (("naive", "train_naive.py", False), ("gpuboost", "train_naive.py", True), ("tuned", "train_tuned.py", False))
LABELS = {"naive": "naive", "gpuboost": "naive under gpuboost", "tuned": "hand-tuned"}
STEPS_SIMULATED, STEPS_REAL = 60, 1000  # a real link moves a batch in a few milliseconds
KEPT = ("GPUBOOST_PYTHON", "GPUBOOST_LIBRARY", "GPUSIM_BUILD")


def add_arguments(parser):
    parser.description = "Train naively, naively under gpuboost, and hand-tuned; print one table of the three."
    parser.add_argument("--steps", type=int, metavar="N",
                        help=f"timed steps of each run (default: {STEPS_SIMULATED} simulated, {STEPS_REAL} on a GPU)")
    parser.add_argument("--model", choices=("mlp", "resnet18", "resnet50"), default="mlp", help="default: %(default)s")
    parser.add_argument("--preset", default="A20", metavar="NAME",
                        help="size of a batch, and link and compute rates of the simulated GPU, by their name in "
                             "tests/workloads/presets.py (default: %(default)s)")
    parser.add_argument("--log-every", type=int, default=10, metavar="N",
                        help="the scripts read the loss every N steps; 0: never (default: %(default)s)")
    parser.add_argument("--python", metavar="FILE", help="interpreter with torch (default: GPUBOOST_PYTHON or .venv)")
    parser.add_argument("--json", default=os.path.join(library.ROOT, "build", "demo.json"), metavar="FILE",
                        help="default: build/demo.json; the record of the second run lies beside it")
    parser.set_defaults(function=main)


def plain_environment():
    """Ours without gpuboost and without settings that would make the runs differ from what the table says."""
    env = {name: value for name, value in os.environ.items()
           if name in KEPT or not name.startswith(("GPUBOOST_", "GPUSIM_"))}
    rest = [entry for entry in library.preloads(env) if os.path.basename(entry) != "libgpuboost.so"]
    env.pop("LD_PRELOAD", None)
    return {**env, "LD_PRELOAD": ":".join(rest)} if rest else env


def chosen_preset(name):
    sys.path.append(WORKLOADS)
    import presets

    if name not in presets.PRESETS:
        raise CommandError(f"demo: --preset {name}: one of {', '.join(presets.PRESETS)}")
    return presets.PRESETS[name]


def prove(plain, gpu):
    """Tries what elision stands on, so that it is on in the run under gpuboost; what failed is shown."""
    prefix = [] if gpu else [os.path.join(library.ROOT, "scripts", "gpusim")]
    command = [*prefix, sys.executable, os.path.join(library.ROOT, "scripts", "gpuboost"), "prove"]
    print("gpuboost prove ... ", end="", flush=True)
    done = subprocess.run(command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print("waits may be left out" if done.returncode == 0 else "no wait may be left out:")
    for line in done.stdout.splitlines() if done.returncode else []:
        if not line.startswith(("  ok ", "  n.a. ")):
            print(f"  {clean(line)}")


def measure(options, python, gpu, kept):
    """The three runs: name -> (steps/s, busy %)."""
    preset = chosen_preset(options.preset)
    plain = {**plain_environment(), "XDG_STATE_HOME": os.path.abspath(kept)}  # nothing of the user's is touched
    prove(plain, gpu)
    settings = {} if gpu else preset.environment(options.model)
    steps = options.steps or (STEPS_REAL if gpu else STEPS_SIMULATED)
    arguments = preset.arguments(steps=steps, log_every=options.log_every, model=options.model)
    results = {}
    for number, (name, script, boosted) in enumerate(RUNS, 1):
        env = library.environment(plain, "safe", os.path.join(kept, "record")) if boosted else plain
        label = f"[{number}/{len(RUNS)}] {script}{' under gpuboost' if boosted else ''}"
        trial = Trial(label, python, os.path.join(WORKLOADS, script), arguments, {**env, **settings}, gpu)
        results[name] = trial.run()
    return results


def recorded(kept):
    path = os.path.join(kept, "record")
    try:
        run = record.read(path)
    except OSError as error:
        raise CommandError(f"demo: the run under gpuboost left no record in {path}: {error.strerror}") from None
    return run


def top_sites(run):
    """The three lines that cost the GPU most."""
    return [{"file": place["frame"]["file"], "line": place["frame"].get("line"), "idle_ms": place["idle_ns"] / 1e6}
            for place in record.places(run) if (place["frame"] or {}).get("file") and place["idle_ns"]][:3]


def summary(results, run, gpu):
    """What build/demo.json holds."""
    speeds = {name: speed for name, (speed, _) in results.items()}
    return {
        "device": gpu.name if gpu else run.device,
        "simulated": gpu is None,
        "runs": [{"name": name, "steps_per_s": speed, "busy_pct": busy} for name, (speed, busy) in results.items()],
        "ratio_to_naive": speeds["gpuboost"] / speeds["naive"],
        "ratio_to_tuned": speeds["gpuboost"] / speeds["tuned"],
        "top_sites": top_sites(run),
    }


def table(result, run):
    speeds = {entry["name"]: entry["steps_per_s"] for entry in result["runs"]}
    yield ""
    yield f"{'':22} {'steps/s':>9} {'GPU busy':>9} {'to naive':>9} {'to tuned':>9}"
    for entry in result["runs"]:
        busy = "n/a" if entry["busy_pct"] is None else f"{entry['busy_pct']:.1f} %"
        speed = entry["steps_per_s"]
        yield (f"{LABELS[entry['name']]:22} {speed:9.2f} {busy:>9} {speed / speeds['naive']:9.2f} "
               f"{speed / speeds['tuned']:9.2f}")
    yield ""
    yield "what still stalls the GPU under gpuboost" + ("" if result["top_sites"] else ": nothing that has a place")
    for site in result["top_sites"]:
        line = "" if site["line"] is None else f":{site['line']}"
        yield f"  {site['idle_ms']:9.1f} ms  {clean(os.path.relpath(site['file']))}{line}"
    yield ""
    yield "busy    " + ("of the simulated compute engine, during the timed steps" if result["simulated"]
                        else "sampled by nvidia-smi during the timed steps; n/a where it gave no figure")
    yield f"record  {clean(run.path)}"
    yield (f"device  {clean(result['device'] or 'n/a')}"
           + ("   SIMULATED: no figure is that of a real GPU" if result["simulated"] else ""))


def make_folder(json_file):
    """A new folder beside the JSON for the record."""
    folder = os.path.dirname(os.path.abspath(json_file))
    try:
        os.makedirs(folder, exist_ok=True)
        return tempfile.mkdtemp(prefix="demo-", dir=folder)
    except OSError as error:
        raise CommandError(f"demo: --json {json_file}: {error.filename}: {error.strerror}") from None


def main(options):
    if options.steps is not None and options.steps < 1:
        raise CommandError(f"demo: --steps {options.steps}: at least 1")
    if options.log_every < 0:
        raise CommandError(f"demo: --log-every {options.log_every}: at least 1, or 0 for never")
    chosen_preset(options.preset)
    library.path()
    python = interpreter(options.python)
    gpu = gpu_of(python, plain_environment())
    kept = make_folder(options.json)
    results = measure(options, python, gpu, kept)
    run = recorded(kept)
    result = summary(results, run, gpu)
    try:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise CommandError(f"demo: --json {options.json}: {error.strerror}") from None
    for line in table(result, run):
        print(line)
    return 0
