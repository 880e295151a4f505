"""Stream memory operations on the stand-in driver: a stream waits until somebody writes a value."""

import pytest

CLOCKS = ["virtual", "real"]

HELD = """
    import time, threading
    start()
    s, other, flag, d = stream(), stream(), pinned(64), alloc(4096)
    here = ctypes.c_uint64.from_address(flag.address)
    def held():
        return {code("StreamQuery", s) for _ in range(40)} == {NOT_READY}
"""


@pytest.mark.parametrize("clock", CLOCKS)
def test_waits_for_the_host(drive, clock):
    drive(HELD + """
    for value in (7, 9):
        cu.StreamWaitValue32_v2(s, flag.address, value, 1)
        cu.MemsetD8Async(d, value, 4096, s)
        assert held()
        cu.StreamSynchronize(other)
        here.value = value
        cu.StreamSynchronize(s)
        assert set(read(d, 4096)) == {value}
    """, GPUSIM_CLOCK=clock)


@pytest.mark.parametrize("clock", CLOCKS)
def test_waits_for_another_thread_of_the_host(drive, clock):
    """A waiting caller sleeps: the value comes later, and no call of the driver tells of it."""
    drive(HELD + """
    cu.StreamWaitValue64_v2(s, flag.address, 1 << 40, 0)
    cpu = time.process_time()
    threading.Timer(0.5, lambda: setattr(here, "value", 1 << 40)).start()
    cu.StreamSynchronize(s)
    assert here.value == 1 << 40
    assert time.process_time() - cpu < 0.25, "it does not spin"
    """, GPUSIM_CLOCK=clock)


@pytest.mark.parametrize("clock", CLOCKS)
def test_waits_for_another_stream(every_schedule, drive, clock):
    script = HELD + """
    cu.MemsetD8_v2(d, 0, 4096); cu.CtxSynchronize()
    cu.StreamWaitValue32_v2(s, d, 5, 1)
    cu.MemcpyDtoHAsync_v2(flag.address, d, 8, s)
    assert held()
    spin(100_000, other)
    cu.StreamWriteValue32_v2(other, d, 5, 0)
    cu.StreamSynchronize(s)  # nobody waits for the other stream
    print(here.value)
    """
    outs = every_schedule(script) if clock == "virtual" else [drive(script, GPUSIM_CLOCK=clock)]
    assert set(outs) == {"5"}


def test_a_query_alone_gets_there(every_schedule):
    assert set(every_schedule(HELD + """
    cu.StreamWaitValue32_v2(s, flag.address, 1, 0)
    cu.StreamWriteValue32_v2(other, flag.address, 1, 0)
    while code("StreamQuery", s) == NOT_READY:
        pass
    """)) == {""}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_host_function_writes_it(drive, clock):
    drive(HELD + """
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: setattr(here, "value", 3))
    cu.StreamWaitValue32_v2(s, flag.address, 3, 1)
    cu.LaunchHostFunc(other, write, None)
    cu.StreamSynchronize(s)
    """, GPUSIM_CLOCK=clock)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_value_that_nobody_writes_is_a_deadlock(drive, clock):
    """Of the one stream; the others go on, also while a thread waits."""
    drive(HELD + """
    import os
    cu.StreamWaitValue32_v2(s, flag.address, 1, 0)
    context = get("CtxGetCurrent")
    def wait():
        cu.CtxSetCurrent(context)
        code("StreamSynchronize", s)
        os._exit(7)
    threading.Thread(target=wait, daemon=True).start()
    cpu = time.process_time()
    for _ in range(50):
        spin(1000, other)
        cu.StreamSynchronize(other)
        time.sleep(0.01)
    assert held()
    assert time.process_time() - cpu < 0.4, "nobody spins"
    os._exit(0)
    """, GPUSIM_CLOCK=clock)


@pytest.mark.parametrize("bits", [32, 64])
def test_conditions(drive, bits):
    drive(HELD + f"""
    bits, top = {bits}, 1 << {bits - 1}
    """ + """
    wait = f"StreamWaitValue{bits}_v2"
    place = (ctypes.c_uint32 if bits == 32 else ctypes.c_uint64).from_address(flag.address)
    every = 2 * top - 1
    cases = [(0, 5, 5, True), (0, 6, 5, True), (0, 4, 5, False), (0, 3, every, True),  # cyclic
             (0, every, 3, False), (1, 5, 5, True), (1, 6, 5, False), (2, 6, 2, True), (2, 5, 2, False),
             (3, every, 0, False), (3, every - 1, 1, False), (3, every - 1, 0, True), (3, 0, 0, True)]
    for condition, found, value, met in cases:
        place.value = found
        cu.__getattr__(wait)(s, flag.address, value, condition)
        assert held() != met, (condition, found, value)
        place.value = {0: value, 1: value, 2: value, 3: 0}[condition]
        cu.StreamSynchronize(s)
    """)


def test_what_may_be_waited_for(drive):
    drive(HELD + """
    managed, plain, gone = get("MemAllocManaged", 64, 1), Host(64), alloc(64)
    cu.MemFree_v2(gone)
    for width in (32, 64):
        for call in (f"StreamWaitValue{width}_v2", f"StreamWriteValue{width}_v2"):
            for address in (managed, plain.address, gone, 0, flag.address + 2, d + width // 8 - 1):
                assert code(call, s, address, 0, 0) == INVALID_VALUE, (call, address)
            assert code(call, 0x1234, d, 0, 0) == INVALID_HANDLE
            assert code(call, s, d, 0, 1 << 20) == INVALID_VALUE
        assert code(f"StreamWaitValue{width}_v2", s, d, 0, 1 << 30) == NOT_SUPPORTED, "flush"
    attribute = lambda n: get("DeviceGetAttribute", n, 0, kind=ctypes.c_int)
    assert [attribute(n) for n in (92, 93, 94, 98, 122, 123)] == [1, 1, 1, 0, 1, 1]
    """)


BATCH = HELD + """
    WAIT32, WRITE32, FLUSH_WRITES, WAIT64, WRITE64, BARRIER = 1, 2, 3, 4, 5, 6
    def batch(*operations):
        words = [x for kind, at, value, flags in operations for x in (kind, at, value, flags, 0, 0)]
        return (ctypes.c_uint64 * len(words))(*words)
    def enqueue(*operations, on=None, flags=0):
        return code("StreamBatchMemOp_v2", on or s, len(operations), batch(*operations), flags)
"""


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_batch_is_in_order(drive, clock):
    drive(BATCH + """
    later = ctypes.c_uint64.from_address(flag.address + 8)
    barrier = (BARRIER, 0, 0, 0)
    assert enqueue((WAIT64, flag.address, 1 << 40, 1), barrier, (WRITE64, flag.address + 8, 1 << 41, 0)) == 0
    assert held() and later.value == 0
    here.value = 1 << 40
    cu.StreamSynchronize(s)
    assert later.value == 1 << 41
    """, GPUSIM_CLOCK=clock)


def test_a_bad_batch_does_nothing(drive):
    drive(BATCH + """
    good, wait = (WRITE32, flag.address, 1, 0), (WAIT32, flag.address, 9, 1)
    assert enqueue(good, (WRITE32, 8, 1, 0)) == INVALID_VALUE
    assert enqueue(wait, (FLUSH_WRITES, 0, 0, 0)) == NOT_SUPPORTED
    assert enqueue(wait, (77, flag.address, 0, 0)) == INVALID_VALUE
    assert enqueue(wait, flags=1) == enqueue() == enqueue(*[wait] * 256) == INVALID_VALUE
    cu.StreamSynchronize(s)
    assert here.value == 0
    assert enqueue(*[good] * 255) == 0
    """)


def test_in_a_capture(every_schedule):
    """Nodes that wait anew at each launch."""
    every_schedule(BATCH + """
    assert begin(s) == 0
    cu.StreamWaitValue32_v2(s, flag.address, 1, 1)
    assert enqueue((WRITE32, flag.address + 8, 5, 0)) == 0
    result, graph = end(s)
    assert result == 0
    nodes, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(4)
    cu.GraphGetNodes(graph, nodes, ctypes.byref(count))
    for node in nodes[:count.value]:
        kind = ctypes.c_int()
        cu.GraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        assert kind.value == 12, kind  # CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
    assert count.value == 2
    run, later = get("GraphInstantiateWithFlags", graph, 0), ctypes.c_uint32.from_address(flag.address + 8)
    for _ in range(2):
        here.value, later.value = 0, 0
        cu.GraphLaunch(run, s)
        assert held() and later.value == 0
        here.value = 1
        cu.StreamSynchronize(s)
        assert later.value == 5
    assert begin(s) == 0
    assert code("MemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64) == CAPTURE_UNSUPPORTED
    assert code("StreamWaitValue32_v2", s, flag.address, 1, 1) == CAPTURE_INVALIDATED
    assert end(s)[0] == CAPTURE_INVALIDATED
    """)


def test_memory_that_goes_away_is_a_fault(drive):
    drive(HELD + """
    cu.MemsetD8_v2(d, 0, 64); cu.CtxSynchronize()
    cu.StreamWaitValue32_v2(s, d, 1, 0)
    cu.MemFreeAsync(d, other)
    cu.StreamSynchronize(other)
    assert code("StreamSynchronize", s) == ILLEGAL_ADDRESS
    """)


def test_by_name(drive):
    """As a library finds them: since 11.7, each with a twin for the per-thread stream."""
    drive("""
        start()
        def find(name, version, flags=0):
            at = ctypes.c_void_p()
            cu.GetProcAddress_v2(name, ctypes.byref(at), version, ctypes.c_uint64(flags), None)
            return at.value
        address = lambda name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value
        for name in ("cuStreamWaitValue32", "cuStreamWaitValue64", "cuStreamWriteValue32",
                     "cuStreamWriteValue64", "cuStreamBatchMemOp"):
            assert find(name.encode(), 12080) == address(name + "_v2")
            assert find(name.encode(), 12080, 2) == address(name + "_v2_ptsz")
            assert find(name.encode(), 11060) is None
    """)
