"""Every byte arrives: sources overwritten right after the return, under the adversarial clock."""

import pathlib

import pytest

import harness
from on_gpusim import run

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.mark.parametrize("seed", [1, 2])
def test_two_thousand_tensors(tmp_path, seed):
    result = run(tmp_path, "safe", PROGRAMS / "bytes.py", 1000, 64 << 20, seed, GPUSIM_CLOCK="virtual", GPUSIM_SEED=seed)
    count, total, different = map(int, result.stdout.split())
    assert (count, different) == (1000, 0)
    assert result.totals["staged_copies"] > 200, result.snapshot["counts"]
    assert total > 1 << 30


def test_sizes_around_the_limits(tmp_path):
    """Small chunks and a small ring: many pieces, each chunk used again and again."""
    result = run(tmp_path, "safe", PROGRAMS / "bytes.py", 300, 24 << 20, 3, GPUSIM_CLOCK="virtual", GPUBOOST_CHUNK="256K",
                 GPUBOOST_RING="8M")
    assert result.stdout.split()[2] == "0"
    assert result.totals["staged_copies"] > 50


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
