"""Nothing changes: losses under 20 seeds of the adversarial scheduler, and under observe every call."""

import pathlib

import pytest

from on_gpusim import WORKLOADS, run

SEEDS = 20
PROGRAM = pathlib.Path(__file__).parent / "programs" / "seeds.py"


# name -> (policy, further environment)
ENVIRONMENTS = {
    "plain": (None, {}),
    "observe": ("observe", {}),
    "safe": ("safe", {"GPUBOOST_ELIDE": "off"}),
    "elided": ("safe", {"GPUBOOST_ELIDE": "on"}),
    "single_hop": ("safe", {"GPUBOOST_ELIDE": "on", "GPUBOOST_STAGING": "0"}),
}


@pytest.mark.parametrize("model, workers", [("mlp", 2), ("resnet18", 0), ("graph", 0)])
def test_losses_are_identical(tmp_path, model, workers):
    results = {name: run(tmp_path / name, policy, PROGRAM, model, SEEDS, workers, GPUSIM_CLOCK="virtual", **more)
               for name, (policy, more) in ENVIRONMENTS.items()}
    plain = results["plain"].stdout
    lines = [line.split() for line in plain.splitlines()]
    assert len(lines) == SEEDS * 4
    by_seed = {seed: [loss for s, _, loss in lines if s == seed] for seed, _, _ in lines}
    assert len(set(map(tuple, by_seed.values()))) == 1, "the program itself depends on the schedule"
    assert len(set(by_seed["1"])) == 4, "the losses do not depend on the data"
    for name, result in results.items():
        assert result.stdout == plain, name
    assert results["observe"].totals["staged_copies"] == 0
    for name in ("safe", "elided", "single_hop"):
        counts = results[name].snapshot["counts"]
        assert results[name].totals["staged_copies"] >= SEEDS * 4 - 8, counts
        assert counts["debts.opened"] > SEEDS, counts
        assert ("elide.waits" in counts) == (name != "safe"), counts


def by_thread(log):
    threads = {}
    for line in log.read_text().splitlines():
        thread, call = line.split(" ", 1)
        threads.setdefault(thread, []).append(call)
    return threads


@pytest.mark.parametrize("how", [
    ["--workers", "2", "--log-every", "1"],
    ["--model", "resnet18", "--batch", "4", "--image-size", "32", "--log-every", "2"],
])
def test_observe_adds_no_call(tmp_path, how):
    """The simulator logs every call with its arguments, by thread: backward runs on threads of autograd."""
    logs = {}
    for policy in (None, "observe"):
        log = tmp_path / f"log-{policy}"
        run(tmp_path / str(policy), policy, WORKLOADS / "train_naive.py", "--batch", "256", "--steps", "6", "--warmup", "1",
            *how, GPUSIM_CLOCK="virtual", GPUSIM_LOG=log)
        logs[policy] = by_thread(log)
    assert len(logs[None]) >= 2, "no thread of autograd made a call"
    assert sum(map(len, logs[None].values())) > 1000
    assert logs["observe"] == logs[None]


def test_safe_changes_the_calls(tmp_path):
    """The log of the test above would show a staged copy."""
    logs = {}
    for policy in (None, "safe"):
        log = tmp_path / f"log-{policy}"
        run(tmp_path / str(policy), policy, WORKLOADS / "train_naive.py", "--batch", "256", "--steps", "20",
            GPUSIM_CLOCK="virtual", GPUSIM_LOG=log)
        logs[policy] = by_thread(log)
    assert logs["safe"] != logs[None]
