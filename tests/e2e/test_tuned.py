"""Programs of experts: same results, and what they do beside the copies does not stop the engine."""

import pathlib

import pytest

from on_gpusim import WORKLOADS, run

PROGRAMS = pathlib.Path(__file__).parent / "programs"
STEPS = 60


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_events_record_stream_and_pinned_frees_lose_no_elision(tmp_path, seed):
    plain, elided = (run(tmp_path / str(policy), policy, PROGRAMS / "tuned_steps.py", GPUSIM_CLOCK="virtual",
                         GPUSIM_SEED=seed, GPUBOOST_ELIDE="on") for policy in (None, "safe"))
    assert elided.stdout == plain.stdout and len(plain.stdout.splitlines()) == STEPS
    counts = elided.snapshot["counts"]
    assert counts["elide.waits"] >= STEPS * 3 // 4, counts


def test_the_tuned_script_is_left_alone(tmp_path):
    """Every copy of its batches comes from pinned memory."""
    files = {}
    for policy in (None, "safe"):
        files[policy] = tmp_path / f"losses-{policy}"
        result = run(tmp_path / str(policy), policy, WORKLOADS / "train_tuned.py", "--steps", "20", "--batch", "256",
                     "--losses", files[policy], GPUSIM_CLOCK="virtual", GPUBOOST_ELIDE="on")
    assert files["safe"].read_text() == files[None].read_text() != ""
    assert result.totals["staged_copies"] <= 8, result.snapshot["counts"]
