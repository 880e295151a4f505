"""Device memory and events that other processes and agents see, on the stand-in driver.

The scripts are the process that shares, ask(line) is answered by another one: see two_processes.py.
"""

import pytest

CLOCKS = ["virtual", "real"]

ALONE = """
    from two_processes import *
"""
CHILD = ALONE + """
    other = Other()
    ask = other.ask
"""


def test_peek_runs_no_work(every_schedule):
    """Lazy tempers still have the old bytes, eager ones the new ones; asking changes neither."""
    outs = set(every_schedule(ALONE + """
    s, d = stream(), alloc(N)
    cu.MemsetD8_v2(d, 3, N); cu.CtxSynchronize()
    cu.MemsetD8Async(d, 7, N, s)
    now = lib.gpusim_now_ns()
    seen = {peek(d + 5, 100)[0] for _ in range(50)}
    assert lib.gpusim_now_ns() == now and len(seen) == 1
    print(*seen)
    cu.StreamSynchronize(s)
    assert peek(d, N) == b"\\7" * N
    assert peek(d, N + 1) is None and peek(d + (1 << 30), 1) is None
    cu.MemFree_v2(d)
    assert peek(d, 1) is None
    """))
    assert outs == {"3", "7"}


@pytest.mark.parametrize("clock", CLOCKS)
def test_another_process_sees_memory(drive, clock):
    drive(CHILD + """
    before, d = alloc(512), alloc(N)  # d begins in the middle of a page
    cu.MemsetD8_v2(d, 5, N); cu.CtxSynchronize()
    handle = handle_of("IpcGetMemHandle", d)
    assert handle == handle_of("IpcGetMemHandle", d + 100), "of the allocation"
    result, there = ask(f"opened('{handle}')")
    assert result == 0
    assert ask(f"set(read({there}, {N}))") == {5}
    cu.MemsetD8_v2(d + N // 2, 6, N // 2); cu.CtxSynchronize()
    assert ask(f"set(read({there}, {N}))") == {5, 6}
    ask(f"cu.MemsetD8_v2({there}, 9, 16) or cu.CtxSynchronize()")
    assert read(d, 17) == b"\\x09" * 16 + b"\\x05"
    kinds = "tuple(get('PointerGetAttribute', k, %d, kind=ctypes.c_uint) for k in (2, 9, 10))"
    assert ask(kinds % there) == (2, 0, 0), "device memory that cannot be passed on"
    assert ask("code('MemFree_v2', %d)" % there) == INVALID_VALUE
    assert ask(f"opened('{handle}')") == (0, there), "counted"
    close = f"code('IpcCloseMemHandle', {there})"
    assert [ask(close) for _ in range(3)] == [0, 0, INVALID_VALUE]
    assert ask(f"code('MemsetD8_v2', {there}, 1, 1)") == INVALID_VALUE
    """, GPUSIM_CLOCK=clock)


def test_what_cannot_be_shared(drive):
    drive(CHILD + """
    s, out = stream(), ctypes.create_string_buffer(64)
    pool = get("MemAllocAsync", 64, s)
    for address in (pool, pinned(64).address, Host(64).address, get("MemAllocManaged", 64, 1), 0):
        assert code("IpcGetMemHandle", out, address) == INVALID_VALUE
    d = alloc(N)
    capable = lambda at: get("PointerGetAttribute", 10, at, kind=ctypes.c_bool)
    assert capable(d) and not capable(pool)
    first = handle_of("IpcGetMemHandle", d)
    cu.MemFree_v2(d)
    assert code("IpcGetMemHandle", out, d) == INVALID_VALUE
    assert alloc(N) == d and handle_of("IpcGetMemHandle", d) != first, "unique"
    assert opened(first)[0] == INVALID_CONTEXT, "not in its own process"
    assert open_with("IpcOpenMemHandle_v2", first, 0)[0] == opened("00" * 64)[0] == INVALID_VALUE
    mine = handle_of("IpcGetEventHandle", event(2 | 4))
    assert code("IpcGetEventHandle", out, event(2)) == INVALID_VALUE
    assert ask(f"opened('{mine}')")[0] == ask(f"opened_event('{first}')")[0] == INVALID_VALUE
    """)


def test_a_handle_of_a_process_that_is_gone(drive):
    drive(CHILD + """
    handle = ask("handle_of('IpcGetMemHandle', alloc(64))")
    other.end()
    assert opened(handle)[0] == MAP_FAILED
    """)


@pytest.mark.parametrize("drains", [0, 1])
def test_closing_waits_like_a_free(every_schedule, drains):
    outs = set(every_schedule(CHILD + """
    d = alloc(N)
    handle = handle_of("IpcGetMemHandle", d)
    result, there = ask(f"opened('{handle}')")
    ask("keep(stream())")
    ask(f"code('MemsetD8Async', {there}, 1, {N}, kept[0])")
    assert ask(f"code('IpcCloseMemHandle', {there})") == 0
    print(ask("code('StreamSynchronize', kept[0])"))
    """, GPUSIM_FREE_DRAINS=drains))
    assert outs == ({"0"} if drains else {"0", "700"})


EVENT = CHILD + """
    s, d, e = stream(), alloc(N), event(2 | 4)
    cu.MemsetD8_v2(d, 0, N); cu.CtxSynchronize()
    result, there = ask(f"opened('{handle_of('IpcGetMemHandle', d)}')")
    seen = f"(cu.MemcpyDtoH_v2(kept[1].address, {there}, {N}), kept[1].values())[1]"
    ask("keep(stream())"), ask(f"keep(pinned({N}))")
    def work(value):
        spin(20_000_000, s)
        cu.MemsetD8Async(d, value, N, s)
        cu.EventRecord(e, s)
"""


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("how", ["synchronize", "query", "stream"])
def test_another_process_waits_for_an_event(every_schedule, drive, how, clock):
    """The exporter sleeps meanwhile: it makes no call that would move its own work on."""
    line = {
        "synchronize": "cu.EventSynchronize(kept[2])",
        "query": "[0 for _ in iter(lambda: code('EventQuery', kept[2]), 0)] and None",
        "stream": "cu.StreamWaitEvent(kept[0], kept[2], 0) or cu.StreamSynchronize(kept[0])",
    }[how]
    script = EVENT + f"""
    work(1)  # recorded before it is shared
    result, imported = ask(f"opened_event('{{handle_of('IpcGetEventHandle', e)}}')")
    ask(f"keep({{imported}})")
    for value in range(1, 5):
        if value > 1:
            work(value)
        ask("{line}")
        assert ask(seen) == {{value}}, value
    """
    if clock == "real":
        drive(script, GPUSIM_CLOCK="real")
    else:
        every_schedule(script)


def test_an_imported_event(drive):
    drive(EVENT + """
    handle = handle_of("IpcGetEventHandle", e)
    result, imported = ask(f"opened_event('{handle}')")
    ask(f"keep({imported})")
    assert ask("code('EventQuery', kept[2])") == 0, "never recorded"
    assert ask("code('EventElapsedTime', ctypes.byref(ctypes.c_float()), kept[2], kept[2])") == INVALID_HANDLE
    assert ask("code('IpcGetEventHandle', ctypes.create_string_buffer(64), kept[2])") == INVALID_VALUE
    assert ask("code('EventRecord', kept[2], kept[0])") == 0
    assert ask("code('EventSynchronize', kept[2])") == ask("code('EventDestroy_v2', kept[2])") == 0
    work(1)
    cu.EventSynchronize(e)
    assert code("EventQuery", e) == 0
    """)


VIRTUAL = CHILD + """
    import os, socket, array
    chunk = 2 << 20
    prop = (ctypes.c_uint32 * 8)(1, 1, 1, 0)  # a device's, to be exported as a file descriptor
    access = (ctypes.c_uint32 * 3)(1, 0, 3)
    def mapped(handle):
        at = get("MemAddressReserve", chunk, 0, 0, 0)
        cu.MemMap(at, chunk, 0, handle, 0)
        cu.MemSetAccess(at, chunk, access, 1)
        return at
    handle = get("MemCreate", chunk, prop, 0)
"""


def test_physical_memory_by_descriptor(drive):
    """The descriptor is opened in the other process, as a socket would pass it on."""
    drive(VIRTUAL + """
    here = mapped(handle)
    cu.MemsetD8_v2(here, 4, chunk); cu.CtxSynchronize()
    out = ctypes.c_int(-1)
    cu.MemExportToShareableHandle(ctypes.byref(out), handle, 1, 0)
    ask("keep(os.open('/proc/%d/fd/%d', os.O_RDONLY))" % (os.getpid(), out.value))
    os.close(out.value)
    ask("keep(get('MemImportFromShareableHandle', ctypes.c_void_p(kept[0]), 1))")
    ask("os.close(kept[0])")
    ask(f"keep(get('MemAddressReserve', {chunk}, 0, 0, 0))")
    ask(f"cu.MemMap(kept[2], {chunk}, 0, kept[1], 0) or cu.MemSetAccess(kept[2], {chunk}, (ctypes.c_uint32 * 3)(1, 0, 3), 1)")
    assert ask(f"set(read(kept[2], {chunk}))") == {4}
    cu.MemsetD8_v2(here, 5, chunk); cu.CtxSynchronize()
    assert ask(f"set(read(kept[2], {chunk}))") == {5}
    assert ask(f"code('MemUnmap', kept[2], {chunk}) or code('MemRelease', kept[1])") == 0
    assert set(read(here, chunk)) == {5}
    """)


def test_physical_memory_that_cannot_be_exported(drive):
    drive(VIRTUAL + """
    out = ctypes.c_int(-1)
    private = get("MemCreate", chunk, (ctypes.c_uint32 * 8)(1, 0, 1, 0), 0)
    export = lambda of, kind=1, flags=0: code("MemExportToShareableHandle", ctypes.byref(out), of, kind, flags)
    assert export(private) == export(handle, 8) == export(handle, 1, 1) == export(0) == INVALID_VALUE
    fabric = (ctypes.c_uint32 * 8)(1, 8, 1, 0)
    assert code("MemCreate", ctypes.byref(ctypes.c_uint64()), chunk, fabric, 0) == NOT_SUPPORTED
    types = lambda of: get("PointerGetAttribute", 14, mapped(of))
    assert (types(private), types(handle)) == (0, 1)
    wrong = os.open("/dev/zero", os.O_RDONLY)
    for descriptor in (wrong, 999):
        assert code("MemImportFromShareableHandle", ctypes.byref(ctypes.c_uint64()), descriptor, 1) == INVALID_VALUE
    """)


def test_synchronous_operations_on_marked_memory_wait(every_schedule):
    outs = set(every_schedule(ALONE + """
    a, b, small = alloc(4096), alloc(4096), Host(64, 8)
    on, read_back = ctypes.c_uint(1), lambda at: get("PointerGetAttribute", 6, at, kind=ctypes.c_uint)
    def seen():
        cu.MemsetD8_v2(a, 1, 4096); cu.CtxSynchronize()
        cu.MemsetD8_v2(b, 2, 4096); cu.CtxSynchronize()
        results = []
        cu.MemcpyDtoD_v2(a, b, 4096)
        results.append(peek(a, 1)[0] == 2); cu.CtxSynchronize()
        cu.MemsetD8_v2(a, 7, 4096)
        results.append(peek(a, 1)[0] == 7); cu.CtxSynchronize()
        cu.MemcpyHtoD_v2(a, small.address, 64)
        results.append(peek(a, 1)[0] == 8); cu.CtxSynchronize()
        return results
    print(seen())
    assert read_back(a) == 0
    cu.PointerSetAttribute(ctypes.byref(on), 6, a)
    assert (read_back(a), read_back(a + 4095), read_back(b)) == (1, 1, 0)
    assert seen() == [True] * 3
    assert code("PointerSetAttribute", ctypes.byref(on), 6, Host(64).address) == INVALID_VALUE
    assert code("PointerSetAttribute", ctypes.byref(on), 2, a) == INVALID_VALUE
    """))
    assert "[False, False, False]" in outs


@pytest.mark.parametrize("name", ["cuMemPoolExportPointer", "cuMemPoolImportPointer",
                                  "cuMemPoolExportToShareableHandle", "cuMemPoolImportFromShareableHandle"])
def test_pools_are_not_shared(drive, name):
    """Those calls are absent, which a caller can tell, and no pool says that it could be exported."""
    drive(f"""
        start()
        at, status = ctypes.c_void_p(1), ctypes.c_int(-1)
        cu.GetProcAddress_v2(b"{name}", ctypes.byref(at), 12080, ctypes.c_uint64(0), ctypes.byref(status))
        assert at.value is None and status.value == 1
        assert not hasattr(lib, "{name}")
    """)
