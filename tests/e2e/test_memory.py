"""What the engine holds stays within its budgets, and does not grow with the number of copies.

GPUBOOST_TEST_COPIES: how many copies to make (50,000 unless it says otherwise; 1,000,000 for a long run).
"""

import json
import os
import sys

import pytest

import harness

COPIES = int(os.environ.get("GPUBOOST_TEST_COPIES", 50_000))
SECONDS = 60 + COPIES // 1000
GROWTH_BYTES = 4 << 20  # of the process, the simulator's own memory included
PROGRAM = [sys.executable, harness.HERE / "programs" / "many_copies.py"]


@pytest.mark.parametrize("staging", ["512M", "0"])
def test_many_copies_leave_nothing(out, staging):
    result = harness.run([*PROGRAM, COPIES], out, driver="sim", timeout=SECONDS, GPUBOOST_ELIDE="wide",
                         GPUBOOST_STAGING=staging)
    assert int(result.stdout) < GROWTH_BYTES
    assert result.totals["staged_copies"] > COPIES / 10, result.counts
    for line in result.lines:
        if line["type"] == "snapshot":
            totals = line["totals"]
            assert totals["ring_bytes"] <= totals["ring_limit_bytes"] <= 64 << 20
            assert totals["staging_bytes"] <= (512 << 20 if staging != "0" else 0)


def test_events_and_streams_do_not_grow_in_number(out, tmp_path):
    made = []
    for copies in (10_000, 40_000):
        truth = tmp_path / f"truth{copies}.json"
        harness.run([*PROGRAM, copies], out, driver="sim", GPUBOOST_ELIDE="wide", GPUSIM_TRUTH=truth)
        calls = json.loads(truth.read_text())["calls"]
        made.append({name: calls[name] for name in ("cuEventCreate", "cuStreamCreate", "cuMemCreate", "cuMemHostRegister_v2")})
    assert made[0] == made[1], made
