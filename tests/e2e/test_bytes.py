"""Every byte arrives: sources overwritten right after the return, under the adversarial clock."""

import pathlib

import pytest

import harness
from on_gpusim import run

PROGRAMS = pathlib.Path(__file__).parent / "programs"


# name -> further environment, and the tensors: 10,000 in all. Few are large: the bytes of those above 1 MiB are limited.
ENVIRONMENTS = {
    "elided": ({"GPUBOOST_ELIDE": "on"}, 3000),
    "single_hop": ({"GPUBOOST_ELIDE": "on", "GPUBOOST_STAGING": "0"}, 3000),
    "not_elided": ({"GPUBOOST_ELIDE": "off"}, 2250),
    "waited": ({"GPUBOOST_ELIDE": "off", "GPUBOOST_EARLY": "off"}, 1500),
    "small_ring": ({"GPUBOOST_ELIDE": "on", "GPUBOOST_CHUNK": "256K", "GPUBOOST_RING": "8M"}, 750),
}
LARGEST = 64 << 20
LARGE_BUDGET = 1200 << 20
SEEDS = 5  # of the virtual clock; every five have each temper once


def test_ten_thousand():
    assert sum(count for _, count in ENVIRONMENTS.values()) >= 10_000


@pytest.mark.parametrize("first_seed, environment", list(enumerate(ENVIRONMENTS)))
def test_tensors_of_three_threads(tmp_path, environment, first_seed):
    settings, count = ENVIRONMENTS[environment]
    result = run(tmp_path, "safe", PROGRAMS / "bytes.py", count, LARGEST, LARGE_BUDGET, 1 + first_seed * SEEDS, SEEDS,
                 GPUSIM_CLOCK="virtual", **settings)
    copied, total, different = map(int, result.stdout.split())
    counts = result.snapshot["counts"]
    assert (copied, different) == (count, 0)
    assert total > LARGE_BUDGET / 2
    assert result.totals["staged_copies"] > count / 10, counts
    early, elided = environment != "waited", settings["GPUBOOST_ELIDE"] == "on"
    hops = early and environment != "single_hop"
    for happens, name, least in [(early, "debts.opened", 10), (elided, "elide.waits", 4), (hops, "staging.copies", 100)]:
        assert counts.get(name, 0) > count / least if happens else name not in counts, (name, counts)


def test_the_tensors_are_right_without_the_library(tmp_path):
    result = run(tmp_path, None, PROGRAMS / "bytes.py", 600, LARGEST, LARGE_BUDGET // 4, 1, SEEDS, GPUSIM_CLOCK="virtual")
    assert result.stdout.split()[2] == "0"


def test_the_tensors_catch_a_careless_library(tmp_path, built):
    result = run(tmp_path, None, PROGRAMS / "bytes.py", 300, LARGEST, LARGE_BUDGET // 8, 1, SEEDS, GPUSIM_CLOCK="virtual",
                 LD_PRELOAD=built("careless", library=True))
    assert int(result.stdout.split()[2]) > 10


@pytest.mark.parametrize("policy", [None, "safe"])
def test_a_source_that_an_earlier_copy_still_writes(tmp_path, policy):
    result = run(tmp_path, policy, PROGRAMS / "source_in_flight.py", GPUSIM_CLOCK="virtual")
    assert result.stdout.strip() == "0"
    if policy:
        assert result.totals["staged_copies"] > 20


@pytest.mark.parametrize("policy", [None, "safe"])
def test_another_stream_sees_it_at_return(tmp_path, policy):
    result = run(tmp_path, policy, PROGRAMS / "visible_at_return.py", GPUSIM_CLOCK="virtual")
    assert result.stdout.strip() == "0"
    if policy:
        assert result.totals["staged_copies"] > 20


@pytest.mark.parametrize("policy, seed", [(None, 1), ("safe", 1), ("safe", 2)])
@pytest.mark.parametrize("form", [
    "sync", "sync_default_kind", "sync_of_thread", "async_legacy", "async_stream", "async_non_blocking",
    "async_default_kind", "async_of_thread", "async_variant",
])
def test_four_threads_in_every_form(form, policy, seed, built, out):
    program = built("thread_copies", str(harness.SIM / "libcudart.so.12"), "-Wl,--allow-shlib-undefined", "-lm")
    result = harness.run([program, form, seed], out, boost=bool(policy), driver="sim", GPUSIM_SEED=seed)
    assert result.stdout == "240 copies, 0 wrong\n"
    if policy:
        assert result.totals["staged_copies"] > 10, result.counts
