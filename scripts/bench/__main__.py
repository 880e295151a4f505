"""All benchmarks, one after the other: python scripts/bench. Their figures come together in build/bench.json.

    {"machine":      {...}    where and when, with the load average before and behind
     "overhead":     {...}    overhead.py: added ns per hooked call
     "stack":        {...}    stack_cost.py: ns per capture of a Python stack
     "gain":         {...}    ab.py: steps per second plain and under gpuboost, on the SIMULATED GPU
     "instructions": {...}}   instructions.py: added instructions per training step

A part that was not asked for is null; one that could not be measured here is {"not_measured": why}. Budgets are
printed and recorded beside the figures and never change the exit status: it is 1 when a benchmark itself failed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import figures

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = {  # key: script, its arguments under --quick
    "overhead": ("overhead.py", ["--quick"]),
    "stack": ("stack_cost.py", ["--repeats", "5", "--calls", "2000"]),
    "gain": ("ab.py", ["--quick"]),
    "instructions": ("instructions.py", ["--quick"]),
}


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return models[0] if models else platform.machine()


def commit():
    """Of the measured clone; "+" when files were changed since. None outside git."""
    done = subprocess.run(["git", "-C", figures.ROOT, "describe", "--always", "--dirty=+", "--abbrev=12"],
                          capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def machine():
    return {"time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": commit(),
            "processor": processor(), "processors": os.cpu_count(), "kernel": platform.release(),
            "python": platform.python_version(), "load_before": os.getloadavg()[0]}


def run(script, arguments):
    """What a benchmark wrote, or None when it failed; its table goes to our stdout as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        done = subprocess.run([sys.executable, os.path.join(HERE, script), f"--json={out}", *arguments])
        if done.returncode:
            print(f"bench: {script} ended with status {done.returncode}", file=sys.stderr)
            return None
        with open(out, encoding="utf-8") as file:
            return json.load(file)


def write(path, result):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions: shows that it works, not how fast")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", default=os.path.join(figures.ROOT, "build", "bench.json"), metavar="FILE")
    args = parser.parse_args()
    figures.library()
    result = {"machine": {**machine(), "quick": args.quick}, **dict.fromkeys(PARTS)}
    failed = []
    for part in [part for part in PARTS if part in args.only]:
        script, quick = PARTS[part]
        print(f"\n{part}", flush=True)
        result[part] = run(script, quick if args.quick else [])
        if result[part] is None:
            failed.append(part)
    result["machine"]["load_behind"] = os.getloadavg()[0]
    write(args.out, result)
    print(f"\nfigures in {args.out}" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
