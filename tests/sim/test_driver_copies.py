"""Copies on the stand-in driver: what a source and a destination may be used for, and when
(CUDA Runtime API, "API synchronization behavior").
"""

import pytest

COPY = """
    start()
    n, s = {size}, stream()
    d, h, back = alloc(n), {host}(n, 1), pinned(n)
    spin(1000, s)
    {copy}
    h.fill(2)
    print(set(read(d, n)))
"""
SYNC, ASYNC = "cu.MemcpyHtoD_v2(d, h.address, n)", "cu.MemcpyHtoDAsync_v2(d, h.address, n, s)"


@pytest.mark.parametrize("blocks", [0, 1])
@pytest.mark.parametrize("host, size, copy, safe", [
    ("Host", 65536, ASYNC, True),
    ("Host", 65537, ASYNC, True),
    ("Host", 65537, SYNC, True),
    ("pinned", 4096, ASYNC, False),
    ("pinned", 100_000, ASYNC, False),
    ("pinned", 4096, SYNC, True),
])
def test_when_a_source_may_be_overwritten(every_schedule, host, size, copy, safe, blocks):
    outs = set(every_schedule(COPY.format(host=host, size=size, copy=copy),
                              GPUSIM_PAGEABLE_BLOCKS=blocks))
    assert ("{1}" in outs) and (len(outs) == 1) == safe, outs


@pytest.mark.parametrize("host, call, safe", [
    ("Host", "cu.MemcpyDtoHAsync_v2(h.address, d, n, s)", True),
    ("pinned", "cu.MemcpyDtoHAsync_v2(h.address, d, n, s)", False),
    ("pinned", "cu.MemcpyDtoHAsync_v2(h.address, d, n, s); cu.StreamSynchronize(s)", True),
    ("pinned", "cu.MemcpyDtoH_v2(h.address, d, n)", True),
])
def test_when_a_destination_may_be_read(every_schedule, host, call, safe):
    outs = set(every_schedule(f"""
        start()
        n, s = 100_000, stream()
        d, h = alloc(n), {host}(n, 2)
        cu.MemsetD8Async(d, 1, n, s); cu.StreamSynchronize(s)
        spin(1000, s)
        {call}
        print(h.values())
    """))
    assert (outs == {"{1}"}) == safe, outs


def test_early_writes_show(every_schedule):
    """A page-locked destination may change long before its copy is done."""
    outs = set(every_schedule("""
        start()
        s, d, h = stream(), alloc(64), pinned(64, 2)
        cu.MemcpyDtoHAsync_v2(h.address, d, 64, s)
        print(h.values() == {2})
    """))
    assert outs == {"True", "False"}


def test_pageable_copies_wait_for_the_stream_on_the_real_clock(drive):
    drive("""
        start()
        n, s, done = 2_000_000, stream(), event()
        d, h, p = alloc(n), Host(n, 1), pinned(n, 1)
        lib.gpusim_mark(b"pageable")
        spin(20_000_000, s)
        cu.MemcpyHtoDAsync_v2(d, h.address, n, s)
        assert code("StreamQuery", s) == 0
        assert usage().h2d_ns == 2_000_000 and usage().any_ns == 22_000_000, "one after the other"
        lib.gpusim_mark(b"pinned")
        spin(500_000_000, s)
        cu.MemcpyHtoDAsync_v2(d, p.address, n, s)
        cu.EventRecord(done, s)
        cu.MemcpyHtoDAsync_v2(d, h.address, 65536, s)
        assert code("EventQuery", done) == NOT_READY, "neither waits"
        cu.StreamSynchronize(s)
        assert usage().h2d_ns == 500_000 + 65_536
    """, GPUSIM_CLOCK="real", GPUSIM_PAGEABLE_GBPS=1, GPUSIM_PINNED_GBPS=4)


def test_waiting_threads_sleep(drive):
    drive("""
        import time
        start()
        s = stream()
        spin(300_000_000, s)
        real, own = time.monotonic_ns(), time.process_time_ns()
        cu.StreamSynchronize(s)
        assert 5 * (time.process_time_ns() - own) < time.monotonic_ns() - real
    """, GPUSIM_CLOCK="real")


def test_boxes_and_batches(drive):
    drive("""
        start()
        s = stream()
        d, h, out = alloc(64), pinned(64), pinned(64)
        ctypes.memmove(h.address, bytes(range(64)), 64)
        cu.MemsetD8_v2(d, 0, 64)
        box = lambda *words: (ctypes.c_uint64 * 16)(*words)
        # srcX, srcY, type, host, device, array, pitch; the same of dst; width, height
        cu.Memcpy2D_v2(box(2, 1, 1, h.address, 0, 0, 8, 0, 0, 2, 0, d, 0, 16, 4, 3))
        got = read(d, 64)
        assert [list(got[i * 16:i * 16 + 4]) for i in range(3)] == [
            [10, 11, 12, 13], [18, 19, 20, 21], [26, 27, 28, 29]] and got[4:16] == bytes(12)
        cu.MemsetD32_v2(d, 0x01020304, 16)
        assert read(d, 8) == bytes([4, 3, 2, 1] * 2)
        assert code("MemcpyHtoD_v2", d + 60, h.address, 8) == INVALID_VALUE
        assert code("MemcpyHtoD_v2", 0, h.address, 8) == INVALID_VALUE
        words = lambda *w: (ctypes.c_uint64 * len(w))(*w)
        attributes, failed = (ctypes.c_uint32 * 6)(1), ctypes.c_size_t()
        to, what = words(d, d + 8), words(h.address, h.address + 1)
        batch = lambda on: code("MemcpyBatchAsync", to, what, words(8, 8), 2, attributes, words(0),
                                1, ctypes.byref(failed), on)
        assert batch(0) == INVALID_VALUE and batch(s) == 0
        assert read(d, 16) == bytes(range(8)) + bytes(range(1, 9))
    """)


@pytest.mark.parametrize("locks", [0, 1])
def test_a_pageable_copy_may_keep_other_threads_out(drive, locks):
    out = drive("""
        import threading, time
        context = start()
        s, t, d, h = stream(), stream(), alloc(100_000), Host(100_000)
        took = []

        def other():
            cu.CtxSetCurrent(context)
            time.sleep(0.02)
            since = time.monotonic_ns()
            cu.StreamQuery(t)
            took.append(time.monotonic_ns() - since)

        thread = threading.Thread(target=other)
        thread.start()
        spin(500_000_000, s)
        cu.MemcpyHtoDAsync_v2(d, h.address, 100_000, s)
        thread.join()
        print(took[0] > 250_000_000)
    """, GPUSIM_CLOCK="real", GPUSIM_COPY_LOCKS=locks)
    assert out == str(bool(locks))


def test_number_of_copy_engines(drive):
    script = """
        start()
        a, b, n = stream(), stream(), 1_000_000
        d, e, h, i = alloc(n), alloc(n), pinned(n), pinned(n)
        lib.gpusim_mark(b"copies")
        cu.MemcpyHtoDAsync_v2(d, h.address, n, a)
        cu.MemcpyDtoHAsync_v2(i.address, e, n, b)
        cu.CtxSynchronize()
        print(usage().any_ns)
    """
    one, two = (int(drive(script, GPUSIM_COPY_ENGINES=count, GPUSIM_PINNED_GBPS=1))
                for count in (1, 2))
    assert one == 2_000_000 and two < 1_100_000
