"""Bugs that other interposers had with bytes, pinned memory, contexts and captures, one test each.

The programs speak to the simulated driver through tests/sim/driver_api.py. Those of which results are
compared run with several tempers of its adversary, each of them as legal as the others.
"""

import re
import subprocess
import sys
import textwrap

import pytest

import harness
from harness import ROOT, run

SEEDS = [1, 2, 3]
SIZE = 100_000  # staged: above 64 KiB
PRELUDE = f"""
from driver_api import *
N = {SIZE}

def h2d(d, h, s, size=None):
    cu.MemcpyHtoDAsync_v2(d, h.address, size or h.size, s)

def warm_up(d, s):
    '''The first few copies are left to the driver.'''
    h = Host(N)
    for _ in range(10):
        h2d(d, h, s)
"""


@pytest.fixture
def drive(out):
    """drive(script, **settings): a script that has all of driver_api at hand, under the library."""
    runs = []

    def start(script, policy="safe", **settings):
        runs.append(script)
        env = {"PYTHONPATH": ROOT / "tests/sim", "GPUSIM_TEST_LIBRARY": harness.SIM / "libcuda.so.1",
               "GPUSIM_MEMORY": "1G", "GPUBOOST_POLICY": policy, **settings}
        script = PRELUDE + textwrap.dedent(script)
        return run([sys.executable, "-c", script], out.with_name(f"run{len(runs)}"), driver="sim", **env)

    return start


@pytest.mark.parametrize("seed", SEEDS)
def test_pageable_download_is_there_at_return(drive, seed):
    """lupine PR 631: a download into pageable memory was deferred; the program read garbage."""
    drive("""
        start()
        s = stream()
        d = alloc(64 << 20)
        warm_up(d, s)
        for i, size in enumerate([4, 5, 4096, 65536, 65537, N, 1 << 20, (4 << 20) + 3, 64 << 20]):
            h = Host(size, 0xee)
            cu.MemsetD8Async(d, i + 1, size, s)
            spin(50_000_000, s)
            cu.MemcpyDtoHAsync_v2(h.address, d, size, s)
            assert h.values() == {i + 1}, (size, h.values())
    """, GPUSIM_SEED=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_captured_upload_reads_its_source_at_each_replay(drive, seed):
    """lupine PR 658: a graph must not keep what the source held while it was captured."""
    done = drive("""
        start()
        s = stream()
        d, h = alloc(N), Host(N, 1)
        warm_up(d, s)
        assert begin(s) == 0
        h2d(d, h, s)
        result, graph = end(s)
        assert result == 0
        executable = get("GraphInstantiateWithFlags", graph, 0)
        for value in (3, 4):
            h.fill(value)
            cu.GraphLaunch(executable, s)
            assert set(read(d, N)) == {value}
        h2d(d, h, s)   # and staged again after it
    """, GPUSIM_SEED=seed)
    assert done.counts["h2d.declined.capture"] == 1
    assert done.totals["staged_copies"] > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_capture_while_other_threads_copy(drive, seed):
    """pytorch 104487, 148594: what another thread asked of an event broke a global capture."""
    done = drive("""
        import threading, time
        context = start()
        s, d, e = stream(), alloc(N), pinned(N, 1)
        over = []

        def copy_on():
            cu.CtxSetCurrent(context)
            mine, to, h = stream(), alloc(N), Host(N, 1)
            ready.wait()
            while not over:
                h2d(to, h, mine)

        ready = threading.Barrier(4)
        threads = [threading.Thread(target=copy_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        ready.wait()
        for _ in range(300):
            assert begin(s, GLOBAL) == 0
            cu.MemcpyHtoDAsync_v2(d, e.address, N, s)
            time.sleep(0.0005)   # for the others
            result, graph = end(s)
            assert result == 0
            cu.GraphDestroy(graph)
        over.append(1)
        for thread in threads:
            thread.join()
    """, GPUSIM_SEED=seed)
    assert done.totals["staged_copies"] > 10 and done.counts["h2d.declined.capture"] > 0, done.counts


PINNED = """
    start()
    a, b = stream(), stream()
    d, e, first = alloc(N), alloc(N), event()
    warm_up(d, a)
    def register_unseen(address, size):
        '''By an address that no look-up of ours gave, as a static runtime has it.'''
        start_of = ctypes.cast(lib.cuInit, ctypes.c_void_p).value - int(os.environ["INIT"])
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
        assert kind(start_of + int(os.environ["REGISTER"]))(address, size, 0) == 0
    def source(kind):
        if kind == "allocated":
            return pinned(N, 1).address
        if kind == "interior":
            return pinned(N + 8192, 1).address + 4096 + 17
        h = Host(N + 8192, 1)
        kept.append(h)
        if kind == "registered":
            cu.MemHostRegister_v2(h.address, h.size, 0)
        elif kind == "inner_part":
            cu.MemHostRegister_v2(h.address, h.size, 0)
            return h.address + 5000
        elif kind == "unseen":
            register_unseen(h.address, h.size)
        return h.address
    kept = []
    for kind in ("allocated", "interior", "registered", "inner_part", "unseen"):
        address = source(kind)
        cu.MemsetD8Async(d, 7, N, a)
        spin(1_000_000, a)
        cu.MemcpyDtoHAsync_v2(address, d, N, a)       # still to come when ...
        cu.EventRecord(first, a)
        cu.StreamWaitEvent(b, first, 0)
        cu.MemcpyHtoDAsync_v2(e, address, N, b)       # ... this is called
        assert set(read(e, N)) == {7}, kind
"""


def symbols_of_the_driver():
    text = subprocess.run(["nm", "-D", str(harness.SIM / "libcuda.so.1")], capture_output=True,
                          text=True, check=True).stdout
    return {name: int(value, 16) for value, name in re.findall(r"^(\w+) T (\w+)$", text, re.M)}


@pytest.fixture
def drive_pinned(drive):
    at = symbols_of_the_driver()
    where = {"INIT": at["cuInit"], "REGISTER": at["cuMemHostRegister_v2"]}
    return lambda script, *policy, **settings: drive(script, *policy, **where, **settings)


@pytest.mark.parametrize("seed", SEEDS)
def test_pinned_source_that_a_queued_copy_still_writes(drive_pinned, seed):
    """lupine 768: page-locked sources were read at the call. UCX 3210, PR 7865: what came from
    functions that the hooks did not see was taken for something else. The driver is asked."""
    done = drive_pinned(PINNED, GPUSIM_SEED=seed)
    # Of those that the hooks saw no question is asked.
    assert done.counts["h2d.declined.source_not_pageable"] == 1
    assert done.totals["staged_copies"] > 0


def test_copies_of_pinned_memory_are_the_programs_own(drive_pinned, tmp_path):
    """lupine 768: untouched means that the driver sees the very same calls."""
    script = PINNED.replace("warm_up(d, a)", "")
    logs = []
    for policy in ("observe", "safe"):
        drive_pinned(script, policy, GPUSIM_LOG=tmp_path / policy)
        logs.append([line for line in (tmp_path / policy).read_text().splitlines()
                     if re.search("Memcpy|Synchronize|Host|Record|Wait", line)])
    assert logs[0] == logs[1]
    assert sum("Memcpy" in line for line in logs[0]) == 15, logs[0]


def test_staging_memory_is_bounded(drive):
    """lupine PR 320: the staging buffers of asynchronous copies leaked, above all with streams that
    were destroyed early."""
    done = drive("""
        start()
        d, h = alloc(N), Host(N)
        for i in range(500):
            s = stream()
            for _ in range(20):
                h2d(d, h, s)
            assert code("StreamDestroy_v2", s) == 0
    """, GPUSIM_BYTES="sampled", GPUBOOST_RING="8M")
    assert done.totals["staged_copies"] > 9_900, done.counts
    assert done.totals["ring_bytes"] <= done.totals["ring_limit_bytes"] <= 8 << 20
    assert "h2d.declined.ring_busy" not in done.counts, "a ring did not come back"


def test_no_context_that_the_program_did_not_make(drive, tmp_path):
    """mscclpp 757, torchcomms 777: a helper made a context of 500 MB on GPU 0."""
    drive("""
        def active(device):
            flags, is_active = ctypes.c_uint(), ctypes.c_int()
            cu.DevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(is_active))
            return is_active.value
        cu.Init(0)
        count = ctypes.c_int()
        cu.DeviceGetCount(ctypes.byref(count))
        assert count.value == 2 and not active(0) and not active(1)
        assert code("MemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64) == INVALID_CONTEXT
        assert code("StreamSynchronize", 0) and code("CtxSynchronize")
        assert not active(0) and not active(1)
        start(1)
        s = stream()
        warm_up(alloc(N), s)
        assert active(1) and not active(0)
    """)


@pytest.mark.parametrize("policy", ["observe", "safe"])
def test_no_primary_context_beside_one_of_the_programs(drive, policy, tmp_path):
    """The same where the program makes its context itself: the primary one stays unborn."""
    drive("""
        cu.Init(0)
        get("CtxCreate_v2", 0, 1)
        s = stream()
        warm_up(alloc(N), s)
    """, policy, GPUSIM_LOG=tmp_path / "log")
    assert "cuDevicePrimaryCtxRetain" not in (tmp_path / "log").read_text()


def test_memory_of_the_program_is_not_kept_registered(drive):
    """quda PR 1639: a cached registration outlived free(); the next one at that address failed."""
    drive("""
        start()
        s, d = stream(), alloc(N)
        warm_up(d, s)
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype = ctypes.c_void_p
        free, same = libc.free, {}
        free.argtypes = [ctypes.c_void_p]
        for i in range(50):
            address = libc.aligned_alloc(4096, 102_400)
            same[address] = same.get(address, 0) + 1
            ctypes.memset(address, i, N)
            cu.MemcpyHtoDAsync_v2(d, address, N, s)
            cu.StreamSynchronize(s)
            assert code("MemHostRegister_v2", address, 102_400, 0) == 0
            cu.MemcpyHtoDAsync_v2(d, address, N, s)
            cu.StreamSynchronize(s)
            assert code("MemHostUnregister", address) == 0
            assert set(read(d, N)) == {i}
            assert code("MemHostUnregister", address) == NOT_REGISTERED
            free(address)
        assert max(same.values()) > 10, "no address came again: this shows nothing"
    """)


@pytest.mark.parametrize("fault", ["cuMemHostRegister_v2:*:2", "cuMemHostRegister_v2:*:801",
                                   "cuEventCreate:*:999", "cuPointerGetAttributes:*:999"])
def test_our_errors_are_not_the_programs(drive, fault):
    """sglang PR 38832: a registration that failed left an error behind, which a later operation of
    the program raised. Also where the program has an error of its own pending."""
    done = drive("""
        rt = ctypes.CDLL("libcudart.so.12")
        assert rt.cudaSetDevice(0) == 0
        d = ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(d), ctypes.c_size_t(N)) == 0
        h = ctypes.create_string_buffer(N)
        def copy():
            for _ in range(20):
                assert rt.cudaMemcpy(d, h, ctypes.c_size_t(N), 1) == 0
        copy()
        assert rt.cudaPeekAtLastError() == 0 and rt.cudaGetLastError() == 0
        assert rt.cudaSetDevice(99) == 101
        copy()
        assert rt.cudaPeekAtLastError() == 101 and rt.cudaGetLastError() == 101
        assert rt.cudaPeekAtLastError() == 0
    """, GPUSIM_FAULT=fault)
    assert done.totals["staged_copies"] == 0 and done.totals["forwarded_copies"] == 40
