#!/usr/bin/env python3
"""What one capture of the Python stack costs, hot, at 5, 20 and 100 frames.

Needs a C compiler and nothing else; runs under any CPython 3.9 or later. The loop is timed in C
inside one foreign call; the same loop around an empty function is the baseline of the same run.
Prints min / median / max over the repeats in ns. With --check the exit status is 1 when the
minimum, which other load on the machine disturbs least, is over the budget.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile

import figures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = ["scripts/bench/stack_cost.c"] + ["preload/" + name for name in (
    "stack/pystack.c", "stack/pystack_layout.c", "stack/pystack_code.c", "stack/pystack_proof.c",
    "stack/pystack_lines.c", "stack/pystack_table.c", "base/elf.c", "base/lock.c")]
FLAGS = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-shared",
         "-ftls-model=initial-exec", "-fno-semantic-interposition"]
DEPTHS = (5, 20, 100)


def budget_ns(frames):
    """Design budget; only 20 frames have one."""
    if frames != 20:
        return None
    return 80 if sys.version_info >= (3, 12) else 170


def load(folder):
    path = os.path.join(folder, "stack_cost.so")
    command = [os.environ.get("CC", "gcc"), *FLAGS, "-iquote", os.path.join(ROOT, "preload"), "-o",
               path, *(os.path.join(ROOT, name) for name in SOURCES)]
    subprocess.run(command, check=True, timeout=120)
    library = ctypes.CDLL(path)
    library.stack_cost_capture_ns.restype = ctypes.c_double
    library.stack_cost_empty_ns.restype = ctypes.c_double
    library.stack_cost_status.restype = ctypes.c_char_p
    return library


def depth_here():
    frame, depth = sys._getframe(1), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    return depth


def at_depth(frames, call):
    """Runs call as the innermost of so many Python frames."""
    if depth_here() == frames - 1:
        return call()
    return at_depth(frames, call)


def measure(library, frames, repeats, calls):
    def run():  # map, since a comprehension is a frame of its own before 3.12
        library.stack_cost_capture_ns(1000)  # first sight, caches
        hot = list(map(library.stack_cost_capture_ns, [calls] * repeats))
        empty = list(map(library.stack_cost_empty_ns, [calls] * repeats))
        return library.stack_cost_depth(), hot, empty
    depth, hot, empty = at_depth(frames, run)
    if depth != frames or min(hot) < 0:
        sys.exit(f"stack_cost: {depth} frames seen, {frames} expected: "
                 + library.stack_cost_status().decode())
    base = statistics.median(empty)
    net = [value - base for value in hot]
    return {"frames": depth, "min_ns": min(net), "median_ns": statistics.median(net),
            "max_ns": max(net), "empty_call_ns": base, "budget_ns": budget_ns(frames),
            "verdict": figures.at_most(min(net), budget_ns(frames))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.add_argument("--repeats", type=int, default=15, help="timed repeats, at least 5")
    parser.add_argument("--calls", type=int, default=20000, help="captures in one repeat")
    parser.add_argument("--check", action="store_true", help="exit 1 when over the budget")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = load(folder)
        rows = []
        for frames in DEPTHS:
            rows.append(measure(library, frames, max(5, args.repeats), args.calls))
        status = library.stack_cost_status().decode()
    empty = rows[0]["empty_call_ns"]
    print(f"stack capture, hot, ns ({status}; empty call {empty:.1f} ns taken off)")
    print("  frames    min  median    max  budget")
    for row in rows:
        budget = row["budget_ns"] or "-"
        print(f"  {row['frames']:6} {row['min_ns']:6.1f} {row['median_ns']:7.1f} "
              f"{row['max_ns']:6.1f} {budget:>7} {row['verdict']}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"python": sys.version.split()[0], "status": status,
                       "repeats": max(5, args.repeats), "rows": rows}, out, indent=1)
            out.write("\n")
    over = [row for row in rows if row["budget_ns"] and row["min_ns"] > row["budget_ns"]]
    return 1 if args.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
