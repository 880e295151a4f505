"""How the end-to-end tests run a program: on which driver, under the library, with which record.

Every run gets a clean environment (nothing of LD_PRELOAD, GPUBOOST_*, GPUSIM_* of the caller), its
own run directory and a time limit. GPUBOOST_LIBRARY names another build to test.
"""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = pathlib.Path(os.environ.get("GPUBOOST_LIBRARY", ROOT / "build/libgpuboost.so")).resolve()
GPUSIM = ROOT / "scripts" / "gpusim"
SIM = pathlib.Path(os.environ.get("GPUSIM_BUILD", ROOT / "build/sim"))
CC = os.environ.get("CC", "gcc")


@functools.lru_cache
def cuda_flags():
    """Where the Makefile finds CUDA's headers."""
    env = {**os.environ, "GPUBOOST_PYTHON": sys.executable}
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "flags"], env=env, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def compile_c(output, *sources, flags=(), library=False):
    """Compiles C files of this folder; `library` makes a shared object."""
    command = [CC, "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
               "-Wno-unused-parameter", "-Wno-cast-function-type", *cuda_flags(),
               "-iquote", str(ROOT / "preload"), "-iquote", str(HERE)]
    command += ["-shared", "-fPIC"] if library else []
    command += [str(HERE / s) for s in sources] + ["-o", str(output), "-lpthread", "-ldl"]
    done = subprocess.run(command + list(flags), timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(output)


def build_fake(folder, *flags):
    """Puts the fake libcuda.so.1 and libcudart.so.12 into a folder."""
    compile_c(folder / "libcuda.so.1", "fake/driver.c", "fake/driver_generic.c",
                      "fake/lookup.c", library=True,
                      flags=["-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", *flags])
    compile_c(folder / "libcudart.so.12", "fake/runtime.c", library=True,
                      flags=["-Wl,-soname,libcudart.so.12", "-Wl,-Bsymbolic",
                             str(folder / "libcuda.so.1")])
    return folder


def clean_environment(**more):
    """The caller's without its settings, nor what was proven for its GPU; GPUSIM_BUILD says which build is tested, and
    stays."""
    env = {k: v for k, v in os.environ.items()
           if k == "GPUSIM_BUILD" or not k.startswith(("GPUSIM_", "GPUBOOST", "LD_"))}
    env["XDG_STATE_HOME"] = str(SIM.parent / "no-state")
    env.update({k: str(v) for k, v in more.items()})
    return env


@dataclasses.dataclass
class Run:
    """What a program did: exit status, output, and the record it left (None without one)."""
    returncode: int
    stdout: str
    stderr: str
    out: pathlib.Path

    @property
    def lines(self):
        path = self.out / "record.jsonl"
        return read_lines(path) if path.exists() else None

    @property
    def snapshot(self):
        return [line for line in self.lines if line["type"] == "snapshot"][-1]

    @property
    def totals(self):
        return self.snapshot["totals"]

    @property
    def counts(self):
        return self.snapshot["counts"]

    def sites(self):
        """Sites of the last snapshot with their names, most idle GPU time first."""
        named = {line["id"]: line for line in self.lines if line["type"] == "site"}
        sites = [{**named[s["id"]], **s} for s in self.snapshot["sites"]]
        return sorted(sites, key=lambda s: -s["idle_ns"])


def read_lines(path):
    """The objects of a record.jsonl; what follows the last newline is not a line."""
    text = pathlib.Path(path).read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def run(command, out, *, boost=True, driver=None, timeout=60, check=True, before=(), after=(),
        **environment):
    """Runs a command. `driver`: folder of a fake libcuda.so.1, or "sim" for the simulated GPU.
    `before` and `after` are further libraries to preload around ours."""
    preload = [str(p) for p in before] + ([str(LIBRARY)] if boost else []) + list(map(str, after))
    settings = {"GPUBOOST_OUT": out}
    if driver == "sim":
        command = [GPUSIM, *command]
        settings["GPUSIM_CLOCK"] = "virtual"
    elif driver:
        settings["LD_LIBRARY_PATH"] = driver
    if preload:
        settings["LD_PRELOAD"] = ":".join(preload)
    env = clean_environment(**{**settings, **environment})
    done = subprocess.run([str(c) for c in command], env=env, timeout=timeout, capture_output=True,
                          text=True, errors="backslashreplace")
    if check:
        assert done.returncode == 0, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return Run(done.returncode, done.stdout, done.stderr, pathlib.Path(out))
