#!/usr/bin/env python3
"""Puts each fault of mutants.py into a copy of the library and runs tests until one notices.

First the oracle's programs, then unit tests, then pytest tests. Exit status 1 when one survives.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import oracle  # noqa: E402

TREE = ROOT / "build" / "mutants"
BLOCK, LIMIT_S = 25, 5


def text_with(mutant):
    text = (ROOT / mutant.file).read_text()
    found = text.count(mutant.old)
    if found != mutant.times:
        raise ValueError(f"{mutant.name}: the old text stands {found} times in {mutant.file}, not {mutant.times}")
    return text.replace(mutant.old, mutant.new)


def make(*targets):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-s", "-C", str(TREE), "O=build", "WARN=-w", *targets], capture_output=True,
                          env={**env, "GPUBOOST_PYTHON": sys.executable}, text=True, timeout=600)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def prepare():
    shutil.rmtree(TREE, ignore_errors=True)
    for folder in ("preload", "policies", "scripts", "tests/unit"):
        shutil.copytree(ROOT / folder, TREE / folder)
    shutil.copy(ROOT / "Makefile", TREE)
    make("all")


def plain(args):
    """Seed -> hash, of the programs without a race."""
    seeds = range(1, args.programs + 1)
    runs = [oracle.run(oracle.Setting(), seeds, args.ops, a) for a in range(3)]
    return {s: runs[0][s] for s in seeds if runs[0][s] != "race" and len({r[s] for r in runs}) == 1}


def oracle_notices(library, hashes, args):
    setting = oracle.boost("none", GPUBOOST_ELIDE="wide")
    setting = dataclasses.replace(setting, library=library, limit_s=LIMIT_S)
    for first in range(1, args.programs + 1, BLOCK):
        seeds = [s for s in range(first, first + BLOCK) if s in hashes]
        for adversary in (0, 1):
            found = oracle.run(setting, seeds, args.ops, adversary) if seeds else {}
            for seed in seeds:
                if found[seed] != hashes[seed]:
                    return f"oracle, program {seed}, adversary {adversary}"
    return None


def fails(words, **env):
    try:
        return subprocess.run(words, cwd=ROOT, env={**os.environ, **env}, capture_output=True, timeout=300).returncode
    except subprocess.TimeoutExpired:
        return 1


def killer(mutant, hashes, args):
    library = TREE / "build" / "libgpuboost.so"
    make("all")
    noticed = oracle_notices(library, hashes, args)
    if noticed:
        return noticed
    for unit in mutant.units:
        make(f"build/unit/{unit}")
        if fails([str(TREE / "build" / "unit" / unit)]):
            return unit
    for words in mutant.pytest:
        if fails([sys.executable, "-m", "pytest", "-q", *words.split()], GPUBOOST_LIBRARY=str(library)):
            return words
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a mutant's name")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--ops", type=int, default=500)
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if not args.only or m.name in args.only]
    if args.list:
        print("\n".join(f"{m.name:18} {m.file}" for m in chosen))
        return 0
    if not chosen:
        sys.exit("no such mutant")
    texts = [text_with(m) for m in chosen]
    oracle.build()
    prepare()
    hashes, survived = plain(args), 0
    noticed = oracle_notices(TREE / "build" / "libgpuboost.so", hashes, args)
    if noticed:
        sys.exit(f"the library without a fault fails: {noticed}")
    for mutant, text in zip(chosen, texts):
        start = time.monotonic()
        (TREE / mutant.file).write_text(text)
        by = killer(mutant, hashes, args)
        shutil.copyfile(ROOT / mutant.file, TREE / mutant.file)
        survived += by is None
        print(f"{mutant.name:18} {'killed by ' + by if by else 'SURVIVED'} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - survived} killed, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
