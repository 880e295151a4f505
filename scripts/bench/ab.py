#!/usr/bin/env python3
"""What gpuboost gains on the SIMULATED GPU: a training script plain and under the library, in turn.

tests/workloads/train_naive.py and train_tuned.py with the copy-heavy settings of tests/workloads/presets.py, in real
time, default policy, on a GPU that `gpuboost prove` has tried; naive with .item() at every 50th step and at every one.
Each repetition runs all six; every second one runs them in the opposite order. Link rates and compute are a model, so
the figures say what the library's way of copying is worth at those rates, not what a real GPU would show. The host's
copying is real: where the link is faster than that, and when other load disturbs it, the gain is smaller; its rate is
measured before each repetition and printed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import figures

sys.path.append(figures.WORKLOADS)
from presets import PRESETS  # noqa: E402

# Name: (script, steps between two .item(), lowest ratio of the script under gpuboost to itself plain).
KINDS = {"naive": ("naive", 50, 1.6), "naive, .item()": ("naive", 1, 1.25), "tuned": ("tuned", 50, 0.99)}
TO_TUNED = 0.97  # lowest ratio of naive under gpuboost to tuned plain
TIME_LIMIT_S = 300


def prove(state):
    """Tries what elision stands on, so that GPUBOOST_ELIDE=auto is on in the runs."""
    command = [figures.GPUSIM, sys.executable, os.path.join(figures.ROOT, "scripts", "gpuboost"), "prove"]
    done = subprocess.run(command, env=figures.environment(XDG_STATE_HOME=state), capture_output=True, text=True,
                          timeout=TIME_LIMIT_S)
    if done.returncode:
        raise SystemExit(f"ab: {' '.join(command)} ended with status {done.returncode}\n{done.stdout}{done.stderr}")


def steps_per_s(kind, preset, steps, boosted, state):
    """Speed of one run; `state` is where the answer of gpuboost prove lies."""
    script, log_every, _ = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        settings = {**preset.environment(), "XDG_STATE_HOME": state}
        env = figures.with_library(folder, **settings) if boosted else figures.environment(**settings)
        out = os.path.join(folder, "speed.json")
        command = [figures.GPUSIM, sys.executable, os.path.join(figures.WORKLOADS, f"train_{script}.py"),
                   *preset.arguments(steps=steps, log_every=log_every), "--json", out]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        if done.returncode or ("gpuboost: verdict" in done.stderr) != boosted:
            raise SystemExit(f"ab: {' '.join(command)} ended with status {done.returncode}\n{done.stderr}")
        with open(out, encoding="utf-8") as file:
            return json.load(file)["steps_per_s"]


def measure(names, repeat, steps, state):
    """All runs of all presets, a repetition at a time."""
    runs = [(name, kind, boosted) for name in names for kind in KINDS for boosted in (False, True)]
    speeds = {run: [] for run in runs}
    host, host_gb_per_s = figures.HostCopy(), []
    for number in range(repeat):
        host_gb_per_s.append(max(host.gb_per_s() for _ in range(3)))
        for run in runs if number % 2 == 0 else reversed(runs):
            name, kind, boosted = run
            print(f"  repetition {number + 1}/{repeat}: {name} {kind}{' under gpuboost' if boosted else ''} ... ",
                  end="", file=sys.stderr, flush=True)
            speeds[run].append(steps_per_s(kind, PRESETS[name], steps, boosted, state))
            print(f"{speeds[run][-1]:.2f} steps/s", file=sys.stderr)
    rows = []
    for name in names:
        for kind, (_, _, target) in KINDS.items():
            plain, boosted = speeds[name, kind, False], speeds[name, kind, True]
            ratio = figures.ratio(boosted, plain)
            rows.append({"preset": name, "script": kind, "plain_steps_per_s": figures.spread(plain),
                         "gpuboost_steps_per_s": figures.spread(boosted), "ratio": ratio, "target": target,
                         "verdict": figures.at_least(ratio["of_medians"], target)})
        to_tuned = figures.ratio(speeds[name, "naive", True], speeds[name, "tuned", False])
        rows[-1].update(naive_to_tuned=to_tuned, naive_to_tuned_target=TO_TUNED,
                        naive_to_tuned_verdict=figures.at_least(to_tuned["of_medians"], TO_TUNED))
    return {"simulated": True, "repeat": repeat, "steps": steps, "policy": "safe",
            "host_copy_gb_per_s": figures.spread(host_gb_per_s), "rows": rows}


def lines(result):
    def three(values):
        return "/".join(f"{value:.2f}" for value in values.values())
    yield (f"training steps per second on a SIMULATED GPU, plain and under gpuboost ({result['repeat']} repetitions of "
           f"{result['steps']} steps; min/median/max)")
    yield f"  {'':18} {'plain':>20} {'under gpuboost':>20}  ratio of medians   of pairs         target"
    for row in result["rows"]:
        yield (f"  {row['preset']} {row['script']:14} {three(row['plain_steps_per_s']):>20} "
               f"{three(row['gpuboost_steps_per_s']):>20} {row['ratio']['of_medians']:17.3f}   "
               f"{three(row['ratio']['pairs']):15}  {row['target']:.2f} {row['verdict']}")
        if "naive_to_tuned" in row:
            ratio = row["naive_to_tuned"]
            yield (f"  {row['preset']} naive under gpuboost to tuned plain {'':22} {ratio['of_medians']:17.3f}   "
                   f"{three(ratio['pairs']):15}  {TO_TUNED:.2f} {row['naive_to_tuned_verdict']}")
    yield f"  one processor copies {three(result['host_copy_gb_per_s'])} GB/s here; staging can be no faster"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.add_argument("--presets", default=",".join(PRESETS), help="comma-separated (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kind (default %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="timed steps of a run (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="the first preset only, 2 repetitions of 10 steps")
    args = parser.parse_args()
    names = args.presets.split(",")
    if unknown := [name for name in names if name not in PRESETS]:
        parser.error(f"--presets {unknown[0]}: one of {', '.join(PRESETS)}")
    if args.quick:
        names, args.repeat, args.steps = names[:1], 2, 10
    if args.repeat < 1 or args.steps < 1:
        parser.error("--repeat and --steps are at least 1")
    with tempfile.TemporaryDirectory() as state:
        prove(state)
        result = measure(names, args.repeat, args.steps, state)
    print("\n".join(lines(result)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
