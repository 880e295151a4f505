"""One test for each bug that other CUDA interposers had, named after it. No GPU is needed.

Where only the calls matter the fake driver of fake/ is enough (which function was entered, with
what answer); where bytes and streams matter the simulated GPU is used.
"""

import subprocess
import sys

import pytest

import harness
from harness import ROOT, compile_c, run


@pytest.fixture(scope="session")
def lookup(built, fake):
    return built("lookup", str(fake / "libcuda.so.1"))


# ---- look-ups ----

@pytest.mark.parametrize("case", [
    "null_status",   # nvshare PR 14: cudart 12 passes symbolStatus = NULL
    "itself",        # gpu-manager 169: cuGetProcAddress("cuGetProcAddress") looped
    "from_inside",   # HAMi-core PR 326: the driver's own look-up got the hook: recursion
    "twice",         # HAMi-core PR 279: the second identical RTLD_NEXT look-up gave NULL
    "threads",       # the same from eight threads
    "variants",      # HAMi-core 233, cuda-python PR 1972: wrong version, per-thread flag ignored
    "newer",         # HAMi-core PR 320: a signature that we do not know must not be wrapped
])
def test_lookup(case, lookup, fake, out):
    run([lookup, case], out, driver=fake)


def test_driver_without_v2_lookup(lookup, built, out, tmp_path):
    """HAMi-core 36: a driver of CUDA 11 has no cuGetProcAddress_v2; none may be invented."""
    run([lookup, "no_v2"], out, driver=harness.build_fake(tmp_path, "-DFAKE_NO_V2"))


def test_switched_off_gives_the_real_functions(lookup, fake, out):
    """HAMi 2641: the kill switch must leave nothing of us in the way."""
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_DISABLE="1")
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_NOT="lookup")
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_ONLY="python3")
    assert not out.exists()


def test_names_that_begin_like_the_drivers(built, fake, out):
    """HAMi-core PR 215: the prefix "cu" caught cudnnCreate, and cuDNN called itself for ever."""
    path = built("libself.so", library=True, source="self_lookup.c")
    run([sys.executable, "-c", f"""
import ctypes
library = ctypes.CDLL({str(path)!r}, mode=ctypes.RTLD_GLOBAL)
library.wrong_name.restype = ctypes.c_char_p
assert library.wrong_name({str(path)!r}.encode()) is None, library.wrong_name({str(path)!r}.encode())
"""], out, driver=fake)


@pytest.fixture(scope="session")
def unoptimised(tmp_path_factory):
    """The library itself without optimisation, where no call is a sibling call by luck."""
    folder = tmp_path_factory.mktemp("unoptimised")
    done = subprocess.run(["make", "-C", str(ROOT), f"O={folder}", "DEBUG=1", f"{folder}/libgpuboost.so"],
                          env=harness.clean_environment(GPUBOOST_PYTHON=sys.executable), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "libgpuboost.so"


@pytest.mark.parametrize("library", ["optimised", "unoptimised"])
def test_chain_of_next_lookups(library, out, tmp_path, request, monkeypatch):
    """HAMi 2903, HAMi-core PR 315: forwarded by a C call, RTLD_NEXT is relative to the forwarder,
    and the OpenMP runtime found itself."""
    if library == "unoptimised":
        monkeypatch.setattr(harness, "LIBRARY", request.getfixturevalue("unoptimised"))
    for level in ("-O0", "-O2"):
        folder = tmp_path / level
        folder.mkdir()
        links = [folder / f"lib{name}.so" for name in ("first", "middle", "last")]
        for path in links:
            last = ["-DLAST"] if path == links[2] else []
            compile_c(path, "programs/chain.c", library=True, flags=[level, "-DLINK", *last])
        program = compile_c(folder / "chain", "programs/chain.c",
                            flags=[level, "-Wl,--no-as-needed", *map(str, links), f"-Wl,-rpath,{folder}"])
        assert run([program], out).stdout == "done\n", level


# ---- calls ----

@pytest.fixture(scope="session")
def forward(built, fake):
    return built("forward", str(fake / "libcudart.so.12"), str(fake / "libcuda.so.1"))


@pytest.mark.parametrize("policy", ["observe", "safe"])
@pytest.mark.parametrize("case", [
    "nothing",                  # HAMi-core 333, 321: NULL out-parameters, pointers never seen
    "nothing_without_context",  # HAMi-core PR 172: a thread that has no context
    "failing",                  # HAMi-core 281, PR 313: outputs read after a failure
    "failing_without_context",
])
def test_every_hook_forwards(case, policy, forward, fake, out):
    run([forward, case], out, driver=fake, GPUBOOST_POLICY=policy)


def test_switched_off_makes_no_call_of_its_own(forward, fake, out):
    run([forward, "switched_off"], out, driver=fake, GPUBOOST_DISABLE="1")
