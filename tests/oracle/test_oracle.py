"""Random CUDA programs see the same with and without the library (oracle.py, run.py for longer runs)."""

import subprocess

import pytest

import oracle
from harness import CC, cuda_flags

OPS = 500
GROUPS, PROGRAMS = 5, 400
EARLY, ELIDED = 1800, 550  # of a group: about half of what there is
BROKEN_OPS = 200


@pytest.fixture(scope="session", autouse=True)
def built():
    return oracle.build()


def describe(verdict, setting, ops, without=None):
    """The first changed program, made small."""
    seed, adversary = next(iter(verdict.changed.items()))
    keep = oracle.shrink(setting, seed, ops, adversary, without)
    return keep, oracle.explain(setting, seed, ops, adversary, keep, without)


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_library_changes_nothing(group, tmp_path):
    seeds = range(1 + group * PROGRAMS, 1 + (group + 1) * PROGRAMS)
    settings = {1: oracle.boost(tmp_path / "small-%p", GPUBOOST_ELIDE="wide"),
                3: oracle.boost(tmp_path / "large-%p", GPUBOOST_CHUNK="4M", GPUBOOST_RING="64M", GPUBOOST_ELIDE="wide")}
    verdict = oracle.compare(settings, seeds, OPS)
    snapshots = [oracle.snapshot(record) for record in tmp_path.iterdir()]
    records = [snapshot["totals"] for snapshot in snapshots]
    staged = sum(record["staged_copies"] for record in records)
    early, elided = (sum(s["counts"].get(name, 0) for s in snapshots) for name in ("debts.opened", "elide.waits"))
    print(f"{verdict.programs} programs of {OPS} operations, {len(verdict.racy)} racy, {staged} copies staged, "
          f"{early} early returns, {elided} waits left out")
    assert not verdict.changed, describe(verdict, settings[next(iter(verdict.changed.values()))], OPS)[1]
    assert len(verdict.racy) <= PROGRAMS // 50, verdict.racy
    assert staged > 10 * len(settings) * PROGRAMS, "the library hardly acted: this shows nothing"
    assert early > EARLY and elided > ELIDED, "hardly anything was owed: this shows nothing"
    assert all(record["ring_bytes"] <= record["ring_limit_bytes"] for record in records)


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    library = tmp_path_factory.mktemp("broken") / "libbroken.so"
    done = subprocess.run([CC, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", *cuda_flags(), "-shared",
                           "-fPIC", str(oracle.HERE / "broken/broken.c"), "-o", str(library)],
                          timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


@pytest.mark.parametrize("how", ["early", "late"])
def test_a_broken_library_is_caught(how, broken):
    setting = oracle.Setting(broken, {"BROKEN": how}, limit_s=10)
    verdict = oracle.compare({0: setting}, range(1, 21), BROKEN_OPS, plain=(0, 1))
    assert len(verdict.changed) > 10, verdict
    keep, text = describe(verdict, setting, BROKEN_OPS)
    print(text)
    assert len(keep) <= 12, text
    assert "copy from" in text and "replay:" in text


def test_the_same_program_and_schedule_give_the_same(built):
    twice = [oracle.run(oracle.Setting(), range(1, 6), OPS, 4) for _ in range(2)]
    assert twice[0] == twice[1]
    other = oracle.run(oracle.Setting(), range(1, 6), OPS - 1, 4)
    assert all(other[seed] != twice[0][seed] for seed in other)


def test_what_is_left_out_leaves_no_race():
    """The order is looked at anew: a program without its waits is known to have a race."""
    text = oracle.Setting().call("show", 1, OPS, timeout=60).stdout
    waits = ("synchronize", "waits for event", "fresh pageable")
    keep = [int(line[:4]) for line in text.splitlines() if not any(word in line for word in waits)]
    assert oracle.run(oracle.Setting(), [1], OPS, 0, keep)[1] == "race"
