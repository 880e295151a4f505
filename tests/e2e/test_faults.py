"""Each driver call of the engine fails once, always, and on the nth time: the program's results and return codes stay
as they are without the library.
"""

import functools
import sys
import tempfile

import pytest

import harness
import on_gpusim

PROGRAM = [sys.executable, harness.HERE / "programs" / "faults.py"]
ENVIRONMENTS = {"elided": {"GPUBOOST_ELIDE": "wide"}, "single_hop": {"GPUBOOST_ELIDE": "wide", "GPUBOOST_STAGING": "0"}}
ERRORS = ["CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_UNKNOWN"]
NTHS = ["*", "1", "2", "3", "9", "20"]

# What the engine calls -> a counter that says so when it always fails (None: it takes another way, which is no refusal).
CALLS = {
    "cuCtxGetCurrent": "h2d.declined.context",
    "cuPointerGetAttributes": "h2d.declined.",
    "cuStreamIsCapturing": "h2d.declined.capture",
    "cuThreadExchangeStreamCaptureMode": "h2d.declined.cuda_error",
    "cuEventCreate": "h2d.declined.no_ring",
    "cuMemHostRegister_v2": "h2d.declined.no_ring",
    "cuEventRecord": "h2d.declined.cuda_error",
    "cuEventSynchronize": "h2d.declined.cuda_error",
    "cuEventQuery": None,
    "cuEventDestroy_v2": None,
    "cuStreamCreate": "staging.refused",
    "cuStreamWaitEvent": None,
    "cuMemcpyDtoDAsync_v2": None,
    "cuMemcpyHtoDAsync_v2": None,
    "cuStreamSynchronize": None,
    "cuCtxGetDevice": None,
    "cuMemGetInfo_v2": None,
    "cuMemGetAllocationGranularity": "staging.refused",
    "cuMemCreate": "staging.refused",
    "cuMemAddressReserve": "staging.refused",
    "cuMemMap": "staging.refused",
    "cuMemSetAccess": "staging.refused",
    "cuMemUnmap": None,
    "cuMemAddressFree": None,
    "cuMemRelease": None,
    "cuMemHostUnregister": None,
    "cuDeviceGetAttribute": None,
    "cuStreamGetCtx": None,
    "cuDevicePrimaryCtxGetState": None,
    "cuMemGetAddressRange_v2": None,
}


@functools.lru_cache
def plain(fault):
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(PROGRAM, f"{folder}/run", boost=False, driver="sim", check=False, GPUSIM_FAULT=fault)


def boosted(out, fault, **settings):
    return harness.run(PROGRAM, out, driver="sim", check=False, GPUSIM_FAULT=fault, **settings)


def told(result):
    return result.returncode, result.stdout


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_program_meets_the_engine(out, environment):
    result = boosted(out, "", **ENVIRONMENTS[environment])
    assert told(result) == told(plain("")) and "wrong 0" in result.stdout
    assert result.totals["staged_copies"] > 20 and result.counts["debts.opened"] > 10, result.counts
    assert ("staging.copies" in result.counts) == (environment == "elided"), result.counts


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_fails(tmp_path, call, environment):
    is_ours_alone = told(plain(f"{call}:*:CUDA_ERROR_UNKNOWN")) == told(plain(""))
    for i, nth in enumerate(NTHS):
        fault = f"{call}:{nth}:{ERRORS[(i + len(call)) % len(ERRORS)]}"
        result = boosted(tmp_path / f"run{i}", fault, **ENVIRONMENTS[environment])
        if call == "cuStreamSynchronize" and nth == "*":  # a wait that is left out cannot fail
            assert set(result.stdout.splitlines()) <= set(plain(fault).stdout.splitlines()), fault
            assert result.returncode == 0 and "wrong 0" in result.stdout, fault
        elif is_ours_alone or nth == "*":
            assert told(result) == told(plain(fault if nth == "*" else "")), fault
        else:  # the nth of plain is another one: one call of the program may fail and says so, and the use of its handle
            assert result.returncode == 0 and "wrong 0" in result.stdout, (fault, result.stdout, result.stderr[-500:])
            assert len(result.stdout.splitlines()) <= 3, (fault, result.stdout)
        counter = CALLS[call]
        if nth == "*" and counter and not (counter == "staging.refused" and environment == "single_hop"):
            assert any(name.startswith(counter) for name in result.counts), (fault, result.counts)


@pytest.mark.parametrize("kind", ["torch", "cudaMalloc", "cudaMallocAsync", "cuMemAlloc_v2", "cuMemCreate"])
def test_the_device_is_full_when_it_is_without_us(tmp_path, kind):
    """To the byte, and to the allocation: what we hold counts as free, and is given back."""
    program = harness.HERE / "programs" / "fill_device.py"
    plain, elided = (on_gpusim.run(tmp_path / str(policy), policy, program, kind, GPUSIM_CLOCK="virtual",
                                   GPUSIM_MEMORY="1G", GPUBOOST_ELIDE="on") for policy in (None, "safe"))
    assert elided.stdout == plain.stdout and plain.stdout.endswith("wrong 0\n")
    counts = elided.snapshot["counts"]
    assert counts["staging.copies"] > 10 and counts["staging.given_back"] == 1, counts
    assert elided.totals["staging_bytes"] == 0
