#!/usr/bin/env python3
"""What a hooked call costs more than the plain one, in ns, against CUDA libraries that do nothing.

Builds hook_cost.c with a null libcuda.so.1 and libcudart.so.12, and runs it in turn plain, under the library
(default policy), and under the library with GPUBOOST_DISABLE=1. Needs a C compiler and nothing else. The 4 KiB copy
and the wait go through the runtime's and the driver's hook, as a program's do. Each round's figure is its fastest
burst; a budget is held against the difference of the minima, which other load on the machine disturbs least.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import figures

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = {  # name in hook_cost.c: (what it is, budget of the added ns)
    "launch": ("kernel launch", 3),
    "launch_alternating": ("kernel launch, two streams in turn", 6),
    "event_record": ("event record", 3),
    "copy_4k": ("cudaMemcpyAsync, 4 KiB, pageable", 60),
    "sync_idle": ("cudaStreamSynchronize, idle stream", 60),
}


def build(folder):
    """Compiles the null libraries and the program that is timed; returns the latter's path."""
    compiler = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    libraries = []
    for source, name in (("null_driver.c", "libcuda.so.1"), ("null_runtime.c", "libcudart.so.12")):
        path = os.path.join(folder, name)
        subprocess.run([*compiler, "-fPIC", "-shared", f"-Wl,-soname,{name}", "-o", path, os.path.join(HERE, source),
                        *libraries], check=True, timeout=120)
        libraries.append(path)
    program = os.path.join(folder, "hook_cost")
    subprocess.run([*compiler, "-o", program, os.path.join(HERE, "hook_cost.c"), *reversed(libraries),
                    f"-Wl,-rpath,{folder}"], check=True, timeout=120)
    return program


def run(program, calls, bursts, env):
    done = subprocess.run([program, str(calls), str(bursts)], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"overhead: hook_cost ended with status {done.returncode}\n{done.stderr}")
    if ("gpuboost:" in done.stderr) != ("LD_PRELOAD" in env and "GPUBOOST_DISABLE" not in env):
        raise SystemExit(f"overhead: the library armed where it should not, or did not where it should\n{done.stderr}")
    return {name: float(ns) for name, ns in map(str.split, done.stdout.splitlines())}


def measure(rounds, calls, bursts):
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        environments = {
            "without": figures.environment(),
            "with": figures.with_library(folder),
            "disabled": figures.with_library(folder, GPUBOOST_DISABLE="1"),
        }
        taken = {kind: [] for kind in environments}
        for _ in range(rounds):
            for kind, env in environments.items():
                taken[kind].append(run(program, calls, bursts, env))
    rows = []
    for name, (text, budget) in CALLS.items():
        ns = {kind: [figures_of_round[name] for figures_of_round in of_kind] for kind, of_kind in taken.items()}
        added = figures.added(ns["with"], ns["without"])
        rows.append({
            "call": name, "text": text,
            **{f"{kind}_ns": figures.spread(values) for kind, values in ns.items()},
            "added_ns": added, "added_disabled_ns": figures.added(ns["disabled"], ns["without"]),
            "budget_ns": budget, "verdict": figures.at_most(added["of_minima"], budget),
        })
    return {"rounds": rounds, "calls": calls, "bursts": bursts, "rows": rows}


def lines(result):
    yield f"hooked calls, ns per call against null CUDA libraries ({result['rounds']} rounds in turn; min/median/max)"
    yield f"  {'':36} {'without':>18} {'with':>18} {'added: of minima, median, max':>30}  budget       disabled: added"
    for row in result["rows"]:
        def three(key, row=row):
            return "/".join(f"{value:.1f}" for value in row[key].values())
        yield (f"  {row['text']:36} {three('without_ns'):>18} {three('with_ns'):>18} {three('added_ns'):>30}"
               f"  {row['budget_ns']:6} {row['verdict']:5} {row['added_disabled_ns']['of_minima']:15.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each kind, at least 5")
    parser.add_argument("--calls", type=int, default=50000, help="calls in one burst")
    parser.add_argument("--bursts", type=int, default=20, help="bursts in one run, of which the fastest counts")
    parser.add_argument("--quick", action="store_true", help="5 rounds of few calls")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.calls, args.bursts = 5, 10000, 10
    result = measure(max(5, args.rounds), args.calls, args.bursts)
    print("\n".join(lines(result)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
