"""Memory on the stand-in driver: limits, poison, what a pointer is, virtual memory; and that who
breaks the rules is caught.
"""

import pytest


def test_limit_and_out_of_memory(drive):
    drive("""
        start()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        cu.MemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        assert free.value == total.value == 64 << 20
        blocks = [alloc(16 << 20) for _ in range(4)]
        assert code("MemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 1) == OUT_OF_MEMORY
        cu.MemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        assert free.value == 0
        cu.MemFree_v2(blocks[0]); cu.MemFree_v2(blocks[2])
        assert alloc(32 << 20), "fragments do not count"
        s = stream()
        spin(1000, s)
        cu.MemFreeAsync(blocks[1], s)
        assert code("MemFreeAsync", blocks[1], s) == INVALID_VALUE
        assert alloc(16 << 20), "what is freed in stream order is waited for"
    """, GPUSIM_SEED=1)


def test_new_and_freed_memory_is_poison(drive):
    drive("""
        import struct
        start()
        d = alloc(4)
        assert struct.unpack("f", read(d, 4))[0] != struct.unpack("f", read(d, 4))[0], "NaN"
        cu.MemsetD8_v2(d, 0, 4); cu.CtxSynchronize(); cu.MemFree_v2(d)
        assert alloc(4) == d and read(d, 4) == b"\\xff" * 4
    """)


def test_the_host_cannot_touch_device_memory(drive):
    done = drive("start(); d = alloc(64); cu.MemsetD8_v2(d, 0, 64); ctypes.string_at(d, 1)",
                 ok=False)
    assert done.returncode == -11


def test_use_after_free_is_refused(drive):
    drive("""
        start()
        s, d, h = stream(), alloc(64), pinned(64)
        cu.MemFreeAsync(d, s)
        for call in (("MemsetD8Async", d, 0, 64, s), ("MemcpyHtoDAsync_v2", d, h.address, 64, s),
                     ("MemcpyDtoH_v2", h.address, d, 64), ("MemFree_v2", d)):
            assert code(*call) == INVALID_VALUE, call
    """)


def test_freeing_under_running_work_shows(every_schedule):
    """Without a wait between the streams a free may come first: the context is lost."""
    outs = set(every_schedule("""
        start()
        a, b, d, h = stream(), stream(), alloc(4096), pinned(4096, 1)
        cu.MemcpyHtoDAsync_v2(d, h.address, 4096, a)
        cu.MemFreeAsync(d, b)
        print(code("CtxSynchronize"), code("StreamQuery", a))
    """))
    assert outs == {"0 0", "700 700"}


@pytest.mark.parametrize("drains", [0, 1])
def test_free_waits_or_defers(every_schedule, drains):
    outs = every_schedule("""
        start()
        s, d, h = stream(), alloc(4096), pinned(4096, 1)
        spin(1000, s)
        cu.MemcpyHtoDAsync_v2(d, h.address, 4096, s)
        cu.MemFree_v2(d)
        print(code("StreamQuery", s))
        cu.CtxSynchronize()
    """, GPUSIM_FREE_DRAINS=drains)
    assert (set(outs) == {"0"}) == bool(drains), outs


def test_addresses_change_what_they_are(drive):
    """Freed page-locked addresses go to pageable memory and back: a remembered answer is wrong."""
    drive("""
        start()
        n, places = 8 << 20, set()
        kind = lambda at: code("PointerGetAttribute", ctypes.byref(ctypes.c_uint()), 2, at)
        for _ in range(4):
            locked = pinned(n)
            assert kind(locked.address) == 0
            places.add(locked.address)
            cu.MemFreeHost(locked.address)
            plain = Host(n)
            assert kind(plain.address) == INVALID_VALUE
            places.add(plain.address)
            del plain
        assert len(places) == 1
    """)


def test_pointer_attributes(drive):
    drive("""
        start()
        s = stream()
        kinds = dict(device=alloc(100), pool=get("MemAllocAsync", 100, s),
                     managed=get("MemAllocManaged", 100, 1), pinned=pinned(100).address)
        host = Host(4096)
        cu.MemHostRegister_v2(host.address, 4096, 0)
        kinds["registered"] = host.address
        expected = dict(device=(2, 0), pool=(2, 0), managed=(2, 1), pinned=(1, 0),
                        registered=(1, 0))
        for name, at in kinds.items():
            found = tuple(get("PointerGetAttribute", k, at + 3, kind=ctypes.c_uint) for k in (2, 8))
            assert found == expected[name], (name, found)
            assert get("PointerGetAttribute", 3, at + 3) == at + 3
            on_host = code("PointerGetAttribute", ctypes.byref(ctypes.c_uint64()), 4, at)
            assert on_host == (INVALID_VALUE if name in ("device", "pool") else 0)
        plain = Host(4096).address
        assert code("PointerGetAttribute", ctypes.byref(ctypes.c_uint()), 2, plain) == INVALID_VALUE
        values = (ctypes.c_uint * 2)(7, 7)
        places = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 4)
        cu.PointerGetAttributes(2, (ctypes.c_uint * 2)(2, 9), places, plain)
        assert (values[0], ctypes.c_int(values[1]).value) == (0, -2)
        assert code("MemHostRegister_v2", host.address, 64, 0) == ALREADY_REGISTERED
        cu.MemHostUnregister(host.address)
        assert code("MemHostUnregister", host.address) == NOT_REGISTERED
        assert code("MemHostGetDevicePointer_v2", ctypes.byref(ctypes.c_uint64()), plain, 0) == 1
    """)


VIRTUAL = """
    start()
    chunk = 2 << 20
    prop = (ctypes.c_uint32 * 8)(1, 0, 1, 0)
    assert get("MemGetAllocationGranularity", prop, 0) == chunk
    base = get("MemAddressReserve", 4 * chunk, 0, 0, 0)
    handles = [get("MemCreate", chunk, prop, 0) for _ in range(2)]
    access = (ctypes.c_uint32 * 3)(1, 0, 3)
"""


def test_virtual_memory(drive):
    drive(VIRTUAL + """
    for i, handle in enumerate(handles):
        cu.MemMap(base + i * chunk, chunk, 0, handle, 0)
        cu.MemRelease(handle)
    assert code("MemsetD8_v2", base, 1, 8) == INVALID_VALUE, "no access yet"
    cu.MemSetAccess(base, 2 * chunk, access, 1)
    cu.MemsetD8_v2(base, 1, 2 * chunk)
    assert set(read(base + chunk - 4, 8)) == {1}, "across two mappings"
    assert code("MemsetD8_v2", base + 2 * chunk - 4, 1, 8) == INVALID_VALUE
    assert code("MemMap", base, chunk, 0, handles[0], 0) == INVALID_VALUE
    assert code("MemAddressFree", base, 4 * chunk) == INVALID_VALUE, "still mapped"
    cu.MemUnmap(base, 2 * chunk)
    cu.MemAddressFree(base, 4 * chunk)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cu.MemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value
    """)


def test_unmapping_under_running_work_shows(every_schedule):
    outs = set(every_schedule(VIRTUAL + """
    cu.MemMap(base, chunk, 0, handles[0], 0)
    cu.MemSetAccess(base, chunk, access, 1)
    s = stream()
    cu.MemsetD8Async(base, 1, chunk, s)
    cu.MemUnmap(base, chunk)
    print(code("StreamSynchronize", s))
    """))
    assert outs == {"0", "700"}
