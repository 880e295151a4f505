"""Runs scripts on the stand-in driver, each in a process of its own."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("GPUSIM_BUILD", HERE.parents[1] / "build" / "sim"))


def clean_environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUSIM_", "GPUBOOST"))}
    env.pop("LD_PRELOAD", None)
    env.update(GPUSIM_TEST_LIBRARY=str(BUILD / "libcuda.so.1"), PYTHONPATH=str(HERE),
               GPUSIM_CLOCK="virtual", GPUSIM_MEMORY="64M")
    env.update({k: str(v) for k, v in settings.items()})
    return env


@pytest.fixture
def drive():
    """drive(script, ok=True, **settings): a script that has all of driver_api at hand."""

    def run(script, ok=True, **settings):
        done = subprocess.run(
            [sys.executable, "-c", "from driver_api import *\n" + textwrap.dedent(script)],
            env=clean_environment(**settings), capture_output=True, text=True, timeout=60,
        )
        assert not ok or done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip() if ok else done

    return run


@pytest.fixture
def every_schedule(drive):
    """Runs a script for each temper of the adversary; returns what it printed."""

    def run(script, **settings):
        return [drive(script, GPUSIM_SEED=seed, **settings) for seed in range(1, 11)]

    return run
