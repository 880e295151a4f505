"""One test for each bug that other CUDA interposers had, named after it. No GPU is needed.

Where only the calls matter the fake driver of fake/ is enough (which function was entered, with
what answer); where bytes and streams matter the simulated GPU is used.
"""

import pytest

from harness import run


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
    from conftest import build_fake
    run([lookup, "no_v2"], out, driver=build_fake(tmp_path, "-DFAKE_NO_V2"))


def test_switched_off_gives_the_real_functions(lookup, fake, out):
    """HAMi 2641: the kill switch must leave nothing of us in the way."""
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_DISABLE="1")
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_NOT="lookup")
    run([lookup, "switched_off"], out, driver=fake, GPUBOOST_ONLY="python3")
    assert not out.exists()
