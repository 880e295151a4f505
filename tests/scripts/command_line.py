"""How the tests of the command start it, and things on the simulated GPU: the product's settings of the caller do
not reach them, but for which build is tested (make test O=directory)."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "bin" / "gpuboost"
GPUSIM = ROOT / "scripts" / "gpusim"
WORKLOADS = ROOT / "tests" / "workloads"
BUILDS = ("GPUBOOST_LIBRARY", "GPUSIM_BUILD")


def environment(**more):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("GPUBOOST_", "GPUSIM_", "LD_", "XDG_"))}
    env.update({name: str(ROOT / os.environ[name]) for name in BUILDS if os.environ.get(name)})
    return {**env, "GPUBOOST_PYTHON": sys.executable, **more}


def gpuboost(*arguments, timeout=120, **more):
    """The command to its end, with these variables on top of the environment."""
    return subprocess.run([COMMAND, *map(str, arguments)], env=environment(**more), capture_output=True, text=True,
                          errors="surrogateescape", timeout=timeout)


def training(script, *arguments):
    """A training script on the simulated GPU, as a command line."""
    return [str(word) for word in (GPUSIM, sys.executable, WORKLOADS / f"{script}.py", *arguments)]
