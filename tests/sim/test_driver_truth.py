"""What the stand-in driver tells about a run: the truth (busy and idle time, calls) and the call
log.
"""

import json

import pytest

PROGRAM = """
    start()
    s, t, n = stream(), stream(), 3_000_000
    d, e, h = alloc(n), alloc(n), pinned(n, 1)
    lib.gpusim_mark(b"program")
    spin(1_000_000, s)
    cu.MemcpyHtoDAsync_v2(d, h.address, n, s)   # 1 ms at 3 GB/s, after the kernel
    spin(500_000, s)
    cu.StreamSynchronize(s)
    cu.MemcpyDtoHAsync_v2(h.address, e, n, t)   # 1 ms, beside 3 ms of compute
    spin(3_000_000, s)
    cu.CtxSynchronize()
"""


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_truth(drive, tmp_path, clock):
    path = tmp_path / "truth.json"
    drive(PROGRAM, GPUSIM_TRUTH=path, GPUSIM_PINNED_GBPS=3, GPUSIM_CLOCK=clock)
    truth = json.loads(path.read_text())
    device = truth["devices"][0]
    assert truth["simulated"] is True and truth["clock"] == clock
    assert device["name"].startswith("SIMULATED") and truth["calls"]["cuMemAlloc_v2"] == 2
    assert truth["unknown_kernels"] == {}
    assert device["compute_busy_ns"] == 4_500_000
    assert device["h2d_busy_ns"] == device["d2h_busy_ns"] == 1_000_000
    span = device["last_ns"] - device["first_ns"]
    assert device["compute_idle_ns"] == span - 4_500_000 >= 1_000_000
    kernel, copy = device["intervals"]["compute"][0], device["intervals"]["h2d"][0]
    assert kernel[1] - kernel[0] == 1_000_000 and copy[0] >= kernel[1]
    assert clock == "real" or copy[0] == kernel[1]
    assert 5_500_000 <= device["any_busy_ns"] <= 6_500_000
    assert truth["devices"][1]["compute_busy_ns"] == 0


def test_log_is_the_same_in_every_run(drive, tmp_path):
    logs = []
    for run in ("one", "two"):
        path = tmp_path / run
        drive(PROGRAM, GPUSIM_LOG=path, MALLOC_PERTURB_=len(logs) + 1)
        logs.append(path.read_text())
    assert logs[0] == logs[1] and "0x" not in logs[0]
    assert "drv cuMemcpyHtoDAsync_v2(d" in logs[0] and "mark program() = 0" in logs[0]


def test_reseeding_within_a_process(drive):
    out = drive("""
        start()
        a, b, n = stream(), stream(), 4096
        d, h, out = alloc(n), pinned(n, 1), pinned(n)
        for seed in range(20):
            lib.gpusim_reseed(ctypes.c_uint64(seed))
            cu.MemsetD8_v2(d, 9, n); cu.CtxSynchronize()
            cu.MemcpyHtoDAsync_v2(d, h.address, n, a)
            cu.MemcpyDtoHAsync_v2(out.address, d, n, b)
            cu.CtxSynchronize()
            print(*out.values(), end=" ")
    """)
    assert {"1", "9"} == set(out.split())


def test_bad_settings_are_said(drive):
    done = drive("start()", ok=False, GPUSIM_MEMORY="much", GPUSIM_FAULT="cuNothing:1:2")
    assert done.returncode == 0 and "GPUSIM_MEMORY" in done.stderr and "cuNothing" in done.stderr


def test_kernels_take_the_time_they_are_given(drive):
    out = drive("""
        start()
        s = stream()
        for name in (b"_Z5firstPf", b"_Z6secondPf", b"_Z5thirdPf"):
            assert launch(name, [ctypes.c_uint64(0)], s) == 0
        cu.CtxSynchronize()
        print(usage().compute_ns)
    """, GPUSIM_KERNEL_TIMES="first:1e6,sec:20000", GPUSIM_KERNEL_NS=3000)
    assert int(out) == 1_000_000 + 20_000 + 3_000
