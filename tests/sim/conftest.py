"""Runs scripts on the stand-in driver, each in a process of its own."""

import subprocess
import sys
import textwrap

import pytest

from sim_environment import clean_environment

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
