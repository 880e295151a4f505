#!/usr/bin/env python3
"""Instructions that gpuboost adds to one training step, counted by Callgrind in real PyTorch on the simulated GPU.

train_naive.py with a small MLP and loss.item() every step, 5 steps counted. The library's instructions are
those of libgpuboost.so on all threads and of what it calls in libc and Python; they are divided by the program's,
which are all others but for the simulated GPU's: a real driver's would come on top, and make the share smaller. The
snapshot of the record is taken once a second whatever a step takes; its share is that of a step at the script's speed
outside Callgrind. Under Callgrind everything takes about DILATION times as long: the GPU's work and GPUBOOST_STALL
are made longer alike, so that the waits that are stalls outside are those within. The library still takes every
call for a late one and looks at it closely, so the figures are bounds from above. Under `safe` the copying into
pinned memory is in them, which the driver would else have done.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import callgrind
import figures

HERE = os.path.dirname(os.path.abspath(__file__))
SIM = os.path.realpath(os.environ.get("GPUSIM_BUILD") or os.path.join(figures.ROOT, "build", "sim"))
BUDGET_PERCENT = {"observe": 0.5, "safe": None}
DILATION = 50
STEP_COMPUTE_S = 0.01
BATCH, WIDTH = 64, 1024  # 256 KiB of inputs: large enough to be staged
STEPS = 5
WORKLOADS = {"batches from a DataLoader": [], "whole batches in memory": ["--prebatched"]}
TIME_LIMIT_S = 400


def arguments(workload, steps):
    return [f"--batch={BATCH}", f"--features={WIDTH}", f"--hidden={WIDTH}", f"--steps={steps}", "--warmup=3",
            "--log-every=1", *WORKLOADS[workload]]


def simulated_gpu(dilation):
    """Rate at which the two large products of a step (presets.py) take STEP_COMPUTE_S, or dilation times that."""
    operations = 4 * BATCH * WIDTH * WIDTH
    return {"GPUSIM_TFLOPS": f"{operations / (STEP_COMPUTE_S * dilation) / 1e12:.6f}"}


def run(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if done.returncode:
        raise SystemExit(f"instructions: {' '.join(command)} ended with status {done.returncode}\n{done.stderr}")
    return done.stderr


def steps_per_s(workload):
    """Speed of the plain script outside Callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "speed.json")
        run([figures.GPUSIM, sys.executable, os.path.join(figures.WORKLOADS, "train_naive.py"),
             *arguments(workload, 100), "--json", out], figures.environment(**simulated_gpu(1)))
        with open(out, encoding="utf-8") as file:
            return json.load(file)["steps_per_s"]


def count(counting, workload, policy):
    """Callgrind's profile of the counted steps."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        settings = {**simulated_gpu(DILATION), "GPUBOOST_STALL": f"{DILATION}ms"}
        said = run([figures.GPUSIM, "valgrind", "--tool=callgrind", "--instr-atstart=no",
                    f"--callgrind-out-file={out}", sys.executable, os.path.join(HERE, "counted_step.py"), counting,
                    *arguments(workload, STEPS)],
                   figures.with_library(folder, policy, **settings))
        if "gpuboost: verdict" not in said:
            raise SystemExit(f"instructions: the library did not arm\n{said}")
        with open(out, encoding="utf-8") as file:
            return callgrind.Profile(file)


def is_library(path):
    return os.path.realpath(path) == os.path.realpath(figures.library())


def is_simulated(path):
    return os.path.dirname(os.path.realpath(path)) == SIM


def row_of(profile, workload, policy, speed):
    library = profile.part(is_library, is_simulated)
    simulated = profile.part(is_simulated, is_library)
    snapshots, in_snapshots = profile.calls_of(is_library, "put_snapshot")
    if not library or not simulated or not snapshots:
        raise SystemExit("instructions: the library, the simulated GPU or a snapshot of the record was not seen")
    program = (profile.total - library - simulated) / STEPS
    added = (library - in_snapshots) / STEPS
    snapshot = in_snapshots / snapshots
    percent = 100 * (added + snapshot / speed) / program
    return {"workload": workload, "policy": policy, "program_per_step": round(program), "added_per_step": round(added),
            "stall_lines_per_step": profile.calls_of(is_library, "gb_line_stall")[0] / STEPS,
            "per_snapshot": round(snapshot), "steps_per_s": speed, "percent": percent,
            "budget_percent": BUDGET_PERCENT[policy], "verdict": figures.at_most(percent, BUDGET_PERCENT[policy])}


def build_counting(folder):
    path = os.path.join(folder, "counting.so")
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", path,
                    os.path.join(HERE, "counting.c")], check=True, timeout=60)
    return path


def measure(workloads, policies):
    speeds = {workload: steps_per_s(workload) for workload in workloads}
    kinds = [(workload, policy) for workload in workloads for policy in policies]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        counting = build_counting(folder)
        profiles = list(pool.map(lambda kind: count(counting, *kind), kinds))
    rows = [row_of(profile, *kind, speeds[kind[0]]) for profile, kind in zip(profiles, kinds)]
    return {"simulated": True, "steps": STEPS, "rows": rows}


def lines(result):
    yield f"instructions of a training step (SIMULATED GPU, counted over {result['steps']} steps; bounds from above)"
    yield f"  {'':34} {'program':>12} {'added':>9}  {'+ once a second':>15}  {'share':>7}  budget"
    for row in result["rows"]:
        budget = "-" if row["budget_percent"] is None else f"{row['budget_percent']} % {row['verdict']}"
        yield (f"  {row['workload']:26}{row['policy']:8} {row['program_per_step']:12,} {row['added_per_step']:9,}  "
               f"{row['per_snapshot']:15,}  {row['percent']:5.2f} %  {budget}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="the first workload under observe only")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("instructions: valgrind is not there; as root: apt-get install valgrind")
    workloads, policies = list(WORKLOADS), list(BUDGET_PERCENT)
    result = measure(workloads[:1], policies[:1]) if args.quick else measure(workloads, policies)
    print("\n".join(lines(result)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
