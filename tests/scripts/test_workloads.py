"""The two training scripts train the same: equal losses however they feed the GPU."""

import subprocess

import pytest

from command_line import environment, training

SMALL = {"mlp": ["--batch", 64, "--features", 256, "--hidden", 32],
         "resnet18": ["--model", "resnet18", "--batch", 4, "--image-size", 32]}


def losses(folder, *runs):
    """The losses of several runs, which go on at the same time."""
    children = []
    for number, (script, *arguments) in enumerate(runs):
        command = training(script, "--steps", 4, "--warmup", 1, "--losses", folder / str(number), *arguments)
        children.append(subprocess.Popen(command, env=environment(GPUSIM_CLOCK="virtual"), text=True,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    try:
        said = [child.communicate(timeout=240)[1] for child in children]
    finally:
        for child in children:
            child.kill()
    assert not any(child.returncode for child in children), said
    return [(folder / str(number)).read_text().split() for number in range(len(runs))]


@pytest.mark.parametrize("model, how", [
    ("mlp", []), ("mlp", ["--workers", 2]), ("mlp", ["--prebatched"]), ("mlp", ["--loader-ms", 1]),
    ("resnet18", []), ("resnet18", ["--workers", 2]),
])
def test_naive_and_tuned_give_equal_losses(tmp_path, model, how):
    naive, tuned = losses(tmp_path, ["train_naive", *SMALL[model], *how], ["train_tuned", *SMALL[model], *how])
    assert len(naive) == 5 and len(set(naive)) == 5
    assert naive == tuned


def test_seed_matters(tmp_path):
    first, other = losses(tmp_path, ["train_naive", *SMALL["mlp"]], ["train_naive", *SMALL["mlp"], "--seed", 1])
    assert first != other
