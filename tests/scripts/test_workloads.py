"""The two training scripts train the same: equal losses however they feed the GPU."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = {"mlp": ["--batch", "64", "--features", "256", "--hidden", "32"],
         "resnet18": ["--model", "resnet18", "--batch", "4", "--image-size", "32"]}


def losses(tmp_path, script, *arguments):
    out = tmp_path / script
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBOOST", "GPUSIM_", "LD_"))}
    command = [ROOT / "scripts/gpusim", sys.executable, ROOT / "tests/workloads" / f"{script}.py",
               "--steps", "4", "--warmup", "1", "--losses", out, *arguments]
    done = subprocess.run(command, env={**env, "GPUSIM_CLOCK": "virtual"}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return out.read_text().split()


@pytest.mark.parametrize("model, how", [
    ("mlp", []), ("mlp", ["--workers", "2"]), ("mlp", ["--prebatched"]), ("mlp", ["--loader-ms", "1"]), ("resnet18", []),
])
def test_naive_and_tuned_give_equal_losses(tmp_path, model, how):
    naive = losses(tmp_path, "train_naive", *SMALL[model], *how)
    assert len(naive) == 5 and len(set(naive)) == 5
    assert naive == losses(tmp_path, "train_tuned", *SMALL[model], *how)


def test_seed_matters(tmp_path):
    assert losses(tmp_path, "train_naive", *SMALL["mlp"]) != losses(tmp_path, "train_naive", *SMALL["mlp"], "--seed", "1")
