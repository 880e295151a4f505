"""The environment of a script on the stand-in driver."""

import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("GPUSIM_BUILD", HERE.parents[1] / "build" / "sim"))


def clean_environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUSIM_", "GPUBOOST"))}
    env.pop("LD_PRELOAD", None)
    env.update(GPUSIM_TEST_LIBRARY=str(BUILD / "libcuda.so.1"), PYTHONPATH=str(HERE),
               GPUSIM_CLOCK="virtual", GPUSIM_MEMORY="64M")
    env.update({k: str(v) for k, v in settings.items()})
    return env
