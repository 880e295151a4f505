"""The right line, and the right amount: idle time by line and in total against the simulator's truth.

Real clock, since what is charged is time. Shares and agreement are asserted, never how long something took.
"""

import pytest

from on_gpusim import WORKLOADS, run

SOURCE = (WORKLOADS / "train_naive.py").read_text().splitlines()
AGREEMENT = 0.05


def line_of(text):
    lines = [number for number, line in enumerate(SOURCE, 1) if text in line]
    assert len(lines) == 1
    return "train_naive.py", lines[0]


def true_idle_ns(truth):
    """Time without a kernel from the first kernel to the last, on the simulator's own account."""
    intervals = sorted(truth["devices"][0]["intervals"]["compute"])
    busy = sum(end - start for start, end in intervals)
    return intervals[-1][1] - intervals[0][0] - busy


def check(result, expected):
    lines = result.idle_by_line()
    top = max(lines, key=lines.get)
    assert top == expected, lines
    charged, true = result.totals["idle_ns"], true_idle_ns(result.truth)
    assert abs(charged - true) <= AGREEMENT * true, f"{charged / 1e6:.1f} ms charged, {true / 1e6:.1f} ms true"


@pytest.mark.parametrize("policy", ["observe", "safe"])
def test_item_every_step(tmp_path, policy):
    """Small batches, kernels long enough that the GPU never waits for a launch within a step."""
    result = run(tmp_path, policy, WORKLOADS / "train_naive.py", "--batch", "32", "--features", "128", "--hidden", "64",
                 "--steps", "80", "--log-every", "1", GPUSIM_KERNEL_NS="400000")
    check(result, line_of("{loss.item()"))


@pytest.mark.parametrize("policy", ["observe", "safe"])
def test_blocking_copy(tmp_path, policy):
    result = run(tmp_path, policy, WORKLOADS / "train_naive.py", "--prebatched", "--batch", "4096", "--steps", "40",
                 "--log-every", "0", GPUSIM_KERNEL_NS="400000", GPUSIM_PAGEABLE_GBPS="1", GPUSIM_PINNED_GBPS="3",
                 GPUSIM_BYTES="sampled")
    check(result, line_of("inputs.to("))
