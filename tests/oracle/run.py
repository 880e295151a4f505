#!/usr/bin/env python3
"""A longer run of the oracle: random CUDA programs, plain and under libgpuboost.so.

    tests/oracle/run.py --programs 20000 --ops 500 --seed 1

Every program whose plain runs agree must see the same under the library. A program that does not is
made small and printed with the command that runs it again. Exit status 1 when there was one.
"""

import argparse
import sys
import tempfile

import oracle

CHUNK = 200  # programs of one process


def check(args, out):
    programs, racy, staged, changed = 0, 0, 0, {}
    settings = {a: oracle.boost(f"{out}/{a}-%p", GPUBOOST_ELIDE="wide") for a in args.adversaries}
    for first in range(args.seed, args.seed + args.programs, CHUNK):
        seeds = range(first, min(first + CHUNK, args.seed + args.programs))
        verdict = oracle.compare(settings, seeds, args.ops, range(args.plain), args.without)
        programs, racy = programs + verdict.programs, racy + len(verdict.racy)
        changed.update(verdict.changed)
        print(f"{programs} programs of {args.ops} operations, {racy} racy, {len(changed)} changed", flush=True)
    for record in oracle.pathlib.Path(out).glob("*"):
        staged += oracle.totals(record)["staged_copies"]
    print(f"{staged} copies were staged")
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--ops", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--plain", type=int, default=5, help="adversaries of the plain runs")
    parser.add_argument("--adversaries", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of the runs under it")
    parser.add_argument("--shrink", type=int, default=3, help="how many failures are made small")
    parser.add_argument("--without", help="calls that must fail, to be left out: too-long,bad-kind,...")
    args = parser.parse_args()
    oracle.build()
    with tempfile.TemporaryDirectory(prefix="oracle-") as out:
        changed = check(args, out)
        for seed, adversary in list(changed.items())[:args.shrink]:
            setting = oracle.boost("none", GPUBOOST_ELIDE="wide")
            keep = oracle.shrink(setting, seed, args.ops, adversary, args.without)
            print(oracle.explain(setting, seed, args.ops, adversary, keep, args.without))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
