#!/usr/bin/env python3
"""Runs the tests that are built and counts them all in one closing line (called by test.sh).

    run_tests.py [SELECTION...]

Unit tests are cmocka programs in build/unit (O names another build folder): each test of each program
counts. Everything else is pytest. The selection is a list of unit tests (tests/unit/record/test_ring.c, or
"unit" for all) and of pytest arguments (paths, -k ...); without it everything runs.

A program that crashes, hangs or stops half-way counts what it did not say as failed; so does a pytest
that dies. Skips are listed with their reasons. The last line is "N passed, N failed, N skipped"; the
exit status is 1 when something failed or when nothing ran.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("O") or "build")
FOLDERS = ("tests/e2e", "tests/sim", "tests/checker", "tests/oracle", "tests/mutants", "tests/scripts")
UNIT_LIMIT_S = 300
PYTEST_LIMIT_S = 60 * 60
SLOW_S, SLOW_SHOWN = 5, 10
KEPT = {"GPUBOOST_PYTHON", "GPUBOOST_LIBRARY", "GPUBOOST_TEST_PYTHONS", "GPUSIM_BUILD"}


class Results:
    """What every test did: name, outcome, reason and seconds."""

    def __init__(self):
        self.all = []

    def add(self, outcome, name, reason="", seconds=0.0):
        self.all.append((outcome, name, reason, seconds))

    def of(self, outcome):
        return [(name, reason) for o, name, reason, _ in self.all if o == outcome]

    def slow(self):
        found = [(seconds, name) for _, name, _, seconds in self.all if seconds >= SLOW_S]
        return sorted(found, reverse=True)[:SLOW_SHOWN]


def environment(kept=(), **more):
    """Nothing of the caller's own gpuboost or simulator settings may change a test."""
    settings = {k: v for k, v in os.environ.items()
                if k in kept or not k.startswith(("GPUBOOST_", "GPUSIM_", "LD_PRELOAD"))}
    return {**settings, **more}


def parse_tap(text):
    """(outcome, name, reason) of each test in cmocka's TAP output. cmocka 1.1.5 says "not ok 3 # SKIP
    name"; the reason is what the test printed last. A group's "1..N" not kept is a failure."""
    found, expected, last = [], 0, ""
    for line in text.splitlines():
        plan = re.fullmatch(r"1\.\.(\d+)", line)
        test = re.fullmatch(r"(not )?ok \d+ (?:- |(# SKIP) )?(.*)", line)
        if plan:
            expected += int(plan[1])
        elif test and (test[2] or "# SKIP" in line):
            found.append(("skipped", test[3], last or "no reason given"))
        elif test:
            found.append(("failed" if test[1] else "passed", test[3], ""))
        elif not line.startswith("#"):
            last = line.strip()
            continue
        last = ""
    return found, expected


def run_unit(program, results):
    start = time.monotonic()
    try:
        done = subprocess.run([program], env=environment(CMOCKA_MESSAGE_OUTPUT="TAP"),
                              timeout=UNIT_LIMIT_S, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, status = late.stdout or b"", f"no end after {UNIT_LIMIT_S} s"
    except OSError as error:
        output, status = b"", str(error)
    text = output.decode(errors="backslashreplace")
    found, expected = parse_tap(text)
    lost = max(expected - len(found), 0)
    if not lost and status != 0 and not any(outcome == "failed" for outcome, _, _ in found):
        lost = 1
    if not lost and not found:
        lost, status = 1, f"no test in it, status {status}"
    found += [("failed", "(not run to its end)", f"status {status}")] * lost
    for outcome, name, reason in found:
        results.add(outcome, f"{program.name}: {name}", reason)
    results.add("", program.name, "", time.monotonic() - start)
    count = {o: sum(f[0] == o for f in found) for o in ("passed", "failed", "skipped")}
    print(f"  UNIT   {program.name:24}" + ", ".join(f"{n} {o}" for o, n in count.items() if n), flush=True)
    if count["failed"]:
        print(text.rstrip(), flush=True)


def pytest_outcome(case):
    for outcome, tags in (("failed", ("failure", "error")), ("skipped", ("skipped",))):
        for tag in tags:
            if case.find(tag) is not None:
                return outcome, case.find(tag).get("message", "")
    return "passed", ""


def read_junit(path, results):
    """Adds what pytest wrote; how many of them failed, or None when it wrote nothing."""
    try:
        cases = xml.etree.ElementTree.parse(path).iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    # A test that fails and whose clean-up then fails too stands there twice.
    merged = {}
    for case in cases:
        name = f"{case.get('file') or case.get('classname')}::{case.get('name')}"
        outcome, reason = pytest_outcome(case)
        seconds = float(case.get("time") or 0)
        if name not in merged or outcome == "failed":
            merged[name] = outcome, reason, seconds
    for name, (outcome, reason, seconds) in merged.items():
        results.add(outcome, name, reason, seconds)
    return sum(outcome == "failed" for outcome, _, _ in merged.values())


def wait_for_pytest(process):
    """Its exit status; after the time limit it is asked to stop, so that it still writes its list."""
    try:
        return process.wait(PYTEST_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return f"stopped after {PYTEST_LIMIT_S} s"


def run_pytest(arguments, results):
    junit = BUILD / "test" / "pytest.xml"
    junit.parent.mkdir(parents=True, exist_ok=True)
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--junitxml", str(junit), "-o", "xfail_strict=true",
               "-o", "junit_family=xunit1", *arguments]
    status = wait_for_pytest(subprocess.Popen(command, env=environment(KEPT), stdin=subprocess.DEVNULL))
    failed = read_junit(junit, results)
    if failed is None or status not in (0, 1, 5) or status == 1 and not failed:
        results.add("failed", "pytest", f"it did not run to its end: status {status}")


def split_selection(words):
    """(unit programs, pytest arguments) of a selection; None for one that is not wanted."""
    programs = sorted(p for p in (BUILD / "unit").glob("**/test_*") if not p.suffix)
    folders = [f for f in FOLDERS if any((ROOT / f).glob("test_*.py"))]
    if not words:
        return programs, folders
    wanted = [w for w in words if w == "unit" or w.startswith("tests/unit")]
    rest = [w for w in words if w not in wanted]
    names = {pathlib.Path(w).stem for w in wanted}
    units = programs if names & {"unit"} else [p for p in programs if p.name in names]
    unknown = names - {"unit"} - {p.name for p in programs}
    if unknown:
        sys.exit(f"run_tests: no such unit test: {' '.join(sorted(unknown))}")
    if rest and not any((ROOT / w.split("::")[0]).exists() for w in rest):
        rest += folders
    return units, rest


def report(results):
    for seconds, name in results.slow():
        print(f"  SLOW   {seconds:6.1f} s  {name}")
    for name, reason in results.of("skipped"):
        print(f"  SKIP   {name}: {' '.join(reason.split())}")
    for name, reason in results.of("failed"):
        print(f"  FAIL   {name}: {' '.join(reason.split())[:200]}")
    passed, failed, skipped = (len(results.of(o)) for o in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed + skipped else 0


def main():
    os.chdir(ROOT)
    units, pytest_arguments = split_selection(sys.argv[1:])
    results = Results()
    for program in units:
        run_unit(program.resolve(), results)
    if pytest_arguments:
        run_pytest(pytest_arguments, results)
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
