#!/usr/bin/env python3
"""Instructions that gpuboost adds to one training step, counted by Callgrind in real PyTorch on the simulated GPU.

train_naive.py runs as it is and only its timed steps are counted (counted_step.py), of all threads. The library's
instructions are those in libgpuboost.so and in what it calls, but for the CUDA calls that it forwards; the program's
are all others but for the simulated GPU's. So the driver costs nothing here, and the share is a bound from above: a
real one takes thousands of instructions for a launch. The library's come in four parts:

  calls      what the hooked calls do on the program's threads
  stalls     the helper thread's lines of stalls.log; about one a step, since every step waits for the GPU
  snapshot   the helper thread's totals, once a second; its share is that of a step at the speed without Callgrind
  copying    bytes copied into pinned memory, where Callgrind counts every byte of a `rep movsb`; not in the share,
             since the driver would copy them itself

Under Callgrind everything takes about DILATION times as long. The GPU's work and GPUBOOST_STALL are made longer
alike, so that the waits that are stalls outside are those within; every call is late enough, though, that the library
looks at it closely. Other load on the machine does not matter, and hardware counters are not needed.
Needs valgrind, a C compiler, an interpreter with torch, and the simulated GPU (make sim).
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
BUDGET_PERCENT = 0.5  # under observe
DILATION = 50
STEP_COMPUTE_S = 0.01
WARMUP, STEPS = 12, 10  # by then everything that is done once is done
SMALL = ["--batch=64", "--prebatched", "--log-every=1"]
RESNET = ["--model=resnet18", "--batch=8", "--prebatched", "--log-every=1"]
CASES = [  # text, policy, arguments of train_naive.py, operations of a step on the GPU
    ("MLP, script's defaults", "observe", [], 4 * 256 * 1024**2),
    ("MLP, script's defaults", "safe", [], 4 * 256 * 1024**2),
    ("ResNet-18, batch 8, .item() every step", "observe", RESNET, 8e9),
    ("MLP, small whole batches, .item() every step", "observe", SMALL, 4 * 64 * 1024**2),
    ("MLP, small whole batches, .item() every step", "safe", SMALL, 4 * 64 * 1024**2),
]
LARGE = 4096  # instructions of one memcpy: those of names and numbers take far fewer
TIME_LIMIT_S = 400


def why_not():
    """Why nothing can be counted here, or None."""
    if not shutil.which("valgrind"):
        return "valgrind is not there; as root: apt-get install valgrind"
    done = subprocess.run(["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "/bin/true"],
                          capture_output=True, text=True, timeout=60)
    return "valgrind: " + done.stderr.strip().splitlines()[-1] if done.returncode else None


def build_counting(folder):
    path = os.path.join(folder, "counting.so")
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", path,
                    os.path.join(HERE, "counting.c")], check=True, timeout=60)
    return path


def simulated_gpu(operations, dilation):
    """A GPU on which so many operations take STEP_COMPUTE_S, times the dilation."""
    return {"GPUSIM_TFLOPS": f"{operations / (STEP_COMPUTE_S * dilation) / 1e12:.9f}", "OMP_NUM_THREADS": "1"}


def run(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if done.returncode or ("gpuboost: verdict" in done.stderr) != ("LD_PRELOAD" in env):
        raise SystemExit(f"instructions: {' '.join(command)} ended with status {done.returncode}\n{done.stderr}")


def steps_per_s(arguments, operations):
    """Speed of the plain script without Callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "speed.json")
        run([figures.GPUSIM, sys.executable, os.path.join(figures.WORKLOADS, "train_naive.py"), *arguments,
             "--steps=50", "--json", out], figures.environment(**simulated_gpu(operations, 1)))
        with open(out, encoding="utf-8") as file:
            return json.load(file)["steps_per_s"]


def count(counting, policy, arguments, operations):
    """Callgrind's profile of the timed steps."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        settings = {**simulated_gpu(operations, DILATION), "GPUBOOST_STALL": f"{DILATION}ms"}
        run([figures.GPUSIM, "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}",
             sys.executable, os.path.join(HERE, "counted_step.py"), counting, *arguments, f"--warmup={WARMUP}",
             f"--steps={STEPS}"], figures.with_library(folder, policy, **settings))
        with open(out, encoding="utf-8") as file:
            return callgrind.Profile(file)


def is_library(path):
    return os.path.basename(path) == os.path.basename(figures.library())


def is_simulated(path):
    return os.path.dirname(path) == SIM


def divide(profile):
    """Instructions of the library, of the simulated GPU, and of everything else."""
    library = profile.with_callees(is_library, is_simulated)
    # dl_iterate_phdr calls back: what it calls was counted in both terms.
    library -= profile.under(lambda _, f, b, __: f.startswith("dl_iterate_phdr") and is_library(b))
    simulated = profile.with_callees(is_simulated, is_library)
    return library, simulated, profile.total - library - simulated


def row_of(case, profile, speed):
    text, policy, arguments, _ = case
    library, simulated, program = divide(profile)
    copying = sum(below for (caller, _, _, name), (calls, below) in profile.edges.items()
                  if is_library(caller) and "memcpy" in name and below > LARGE * calls)
    helper = profile.calls_of("gb_files_tick")[1]
    snapshots, in_snapshots = profile.calls_of("put_snapshot")
    if not (library and simulated and helper and snapshots):
        raise SystemExit("instructions: the library, the simulated GPU or a snapshot of the record was not seen")
    calls, stalls, snapshot = library - copying - helper, helper - in_snapshots, in_snapshots / snapshots
    percent = 100 * ((calls + stalls) / STEPS + snapshot / speed) / (program / STEPS)
    budget = BUDGET_PERCENT if policy == "observe" else None
    return {"text": text, "policy": policy, "arguments": arguments, "program_per_step": round(program / STEPS),
            "calls_per_step": round(calls / STEPS), "stalls_per_step": round(stalls / STEPS),
            "stall_lines_per_step": profile.calls_of("gb_line_stall")[0] / STEPS, "per_snapshot": round(snapshot),
            "copying_per_step": round(copying / STEPS), "steps_per_s": speed,
            "calls_percent": 100 * calls / program, "percent": percent, "budget_percent": budget,
            "verdict": figures.at_most(percent, budget)}


def measure(cases):
    """Two cases at a time: counts do not depend on time."""
    if missing := why_not():
        return {"not_measured": missing}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        counting = build_counting(folder)

        def row(case):
            found = row_of(case, count(counting, *case[1:]), steps_per_s(*case[2:]))
            print(f"  counted: {case[0]}, {case[1]}", file=sys.stderr, flush=True)
            return found
        rows = list(pool.map(row, cases))
    return {"simulated": True, "steps": STEPS, "rows": rows}


def lines(result):
    if "not_measured" in result:
        yield f"instructions of a training step: not measured: {result['not_measured']}"
        return
    yield f"instructions of a training step, bounds from above (SIMULATED GPU, driver not counted, {STEPS} steps)"
    yield (f"  {'':53} {'program':>12} {'calls':>7} {'stalls':>7} {'copying':>8} {'snapshot/s':>10} {'of calls':>9} "
           f"{'share':>8}  budget")
    for row in result["rows"]:
        budget = f"{row['budget_percent']} % {row['verdict']}" if row["budget_percent"] else "-"
        yield (f"  {row['text']:45}{row['policy']:8} {row['program_per_step']:12,} {row['calls_per_step']:7,} "
               f"{row['stalls_per_step']:7,} {row['copying_per_step']:8,} {row['per_snapshot']:10,} "
               f"{row['calls_percent']:7.2f} % {row['percent']:6.2f} %  {budget}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="the first case only")
    args = parser.parse_args()
    result = measure(CASES[:1] if args.quick else CASES)
    print("\n".join(lines(result)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
