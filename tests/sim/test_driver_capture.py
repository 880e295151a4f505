"""Stream capture on the stand-in driver: what it records and what it forbids.

The codes are those of the CUDA Driver API and of the CUDA Programming Guide, "Prohibited and
unhandled operations"; what no text promises is in tests/sim/assumptions.
"""

import pytest

BEGIN = """
    import threading
    start()
    a, b, n = stream(), stream(), 4096
    d, e, h, host = alloc(n), event(), pinned(n, 1), Host(n, 1)
    cu.EventRecord(e, b)
    cu.MemsetD8_v2(d, 9, n); cu.CtxSynchronize()
    context = get("CtxGetCurrent")

    def elsewhere(call, *args, mode=None):
        codes = []
        def work():
            cu.CtxSetCurrent(context)
            if mode is not None:
                cu.ThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(mode)))
            codes.append(code(call, *args))
        thread = threading.Thread(target=work); thread.start(); thread.join()
        return codes[0]
"""


def test_a_graph_reads_its_sources_at_every_launch(every_schedule):
    outs = every_schedule(BEGIN + """
    assert begin(a) == 0 and status(a) == 1 and status(b) == 0
    cu.MemcpyHtoDAsync_v2(d, h.address, n, a)
    cu.MemcpyHtoDAsync_v2(d + 2048, host.address, 2048, a)   # pageable: allowed, a node
    result, graph = end(a)
    assert result == 0 and status(a) == 0
    assert set(read(d, n)) == {9}, "capturing does nothing"
    executable = get("GraphInstantiateWithFlags", graph, 0)
    cu.GraphDestroy(graph)
    for value in (3, 4):
        h.fill(value); host.fill(value + 10)
        cu.GraphLaunch(executable, a)
        cu.StreamSynchronize(a)
        got = read(d, n)
        print(set(got[:2048]), set(got[2048:]))
    """)
    assert set(outs) == {"{3} {13}\n{4} {14}"}


def test_fork_and_join(every_schedule):
    outs = every_schedule(BEGIN + """
    f, out = event(), pinned(n)
    begin(a)
    cu.MemcpyHtoDAsync_v2(d, h.address, n, a)
    cu.EventRecord(e, a)
    cu.StreamWaitEvent(b, e, 0)
    assert status(b) == 1
    cu.MemcpyDtoHAsync_v2(out.address, d, n, b)
    cu.EventRecord(f, b)
    cu.StreamWaitEvent(a, f, 0)
    result, graph = end(a)
    assert result == 0 and status(b) == 0
    count = ctypes.c_size_t()
    cu.GraphGetNodes(graph, None, ctypes.byref(count))
    assert count.value == 2
    assert code("EventQuery", e) == CAPTURED_EVENT
    cu.GraphLaunch(get("GraphInstantiateWithFlags", graph, 0), a)
    cu.StreamSynchronize(a)
    print(out.values())
    """)
    assert set(outs) == {"{1}"}


@pytest.mark.parametrize("call, expected", [
    ('code("StreamSynchronize", a)', "CAPTURE_UNSUPPORTED"),
    ('code("StreamQuery", a)', "CAPTURE_UNSUPPORTED"),
    ('code("CtxSynchronize")', "CAPTURE_UNSUPPORTED"),
    ('code("MemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64)', "CAPTURE_UNSUPPORTED"),
    ('code("MemFree_v2", d)', "CAPTURE_UNSUPPORTED"),
    ('code("MemHostAlloc", ctypes.byref(ctypes.c_uint64()), 64, 0)', "CAPTURE_UNSUPPORTED"),
    ('code("EventQuery", e)', "CAPTURE_UNSUPPORTED"),
    ('code("EventSynchronize", e)', "CAPTURE_UNSUPPORTED"),
    ('code("MemcpyHtoD_v2", d, h.address, n)', "CAPTURE_UNSUPPORTED"),
    ('code("StreamWaitEvent", a, e, 0)', "CAPTURE_ISOLATION"),
    ('elsewhere("EventQuery", e)', "CAPTURE_UNSUPPORTED"),
    ('elsewhere("MemHostAlloc", ctypes.byref(ctypes.c_uint64()), 64, 0)', "CAPTURE_UNSUPPORTED"),
    ('elsewhere("MemcpyHtoD_v2", d, h.address, n)', "CAPTURE_UNSUPPORTED"),
])
def test_what_breaks_a_capture(drive, call, expected):
    drive(BEGIN + f"""
    begin(a)
    assert {call} == {expected}
    assert status(a) == 2
    assert code("MemcpyHtoDAsync_v2", d, h.address, n, a) == CAPTURE_INVALIDATED
    assert end(a) == (CAPTURE_INVALIDATED, 0)
    assert status(a) == 0 and code("StreamSynchronize", a) == 0
    """)


@pytest.mark.parametrize("mode, call", [
    ("GLOBAL", 'elsewhere("EventQuery", e, mode=RELAXED)'),
    ("GLOBAL", 'elsewhere("EventQuery", e, mode=THREAD_LOCAL)'),
    ("THREAD_LOCAL", 'elsewhere("EventQuery", e)'),
    ("RELAXED", 'code("EventQuery", e)'),
    ("RELAXED", 'code("MemFree_v2", alloc(64))'),
    ("GLOBAL", 'code("StreamSynchronize", b)'),
    ("GLOBAL", 'elsewhere("MemcpyHtoDAsync_v2", d, h.address, n, b)'),
    ("GLOBAL", 'code("EventRecord", e, b)'),
    ("GLOBAL", 'code("MemcpyHtoDAsync_v2", d, h.address, n, 0)'),
])
def test_what_a_capture_leaves_alone(drive, mode, call):
    drive(BEGIN + f"""
    begin(a, {mode})
    assert {call} == 0
    assert status(a) == 1 and end(a)[0] == 0
    """)


def test_relaxed_mode_of_the_capturing_thread(drive):
    drive(BEGIN + """
    begin(a)
    mode = ctypes.c_int(RELAXED)
    cu.ThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == GLOBAL
    assert code("EventQuery", e) == 0 and alloc(64)
    cu.ThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == RELAXED and code("EventQuery", e) == CAPTURE_UNSUPPORTED
    """)


def test_the_legacy_stream_while_a_blocking_stream_captures(drive):
    drive(BEGIN + """
    c = stream(0)
    begin(c)
    assert status(LEGACY) == CAPTURE_IMPLICIT and status(c) == 1, "asking breaks nothing"
    assert code("MemsetD8Async", d, 0, n, 0) == CAPTURE_IMPLICIT and status(c) == 2
    assert end(c)[0] == CAPTURE_INVALIDATED
    """)


def test_wrong_ends(drive):
    drive(BEGIN + """
    assert begin(LEGACY) == CAPTURE_UNSUPPORTED
    assert end(a)[0] == 401
    begin(a)
    assert begin(a) == 401
    cu.EventRecord(e, a); cu.StreamWaitEvent(b, e, 0)
    cu.MemcpyHtoDAsync_v2(d, h.address, n, b)
    assert end(b)[0] == CAPTURE_UNMATCHED
    assert end(a)[0] == CAPTURE_INVALIDATED
    begin(a)
    cu.EventRecord(e, a); cu.StreamWaitEvent(b, e, 0)
    cu.MemcpyHtoDAsync_v2(d, h.address, n, b)
    assert end(a)[0] == CAPTURE_UNJOINED
    begin(a)
    assert elsewhere("StreamEndCapture", a, ctypes.byref(ctypes.c_uint64())) == WRONG_THREAD
    assert status(a) == 1 and end(a)[0] == 0
    begin(a, RELAXED)
    assert elsewhere("StreamEndCapture", a, ctypes.byref(ctypes.c_uint64())) == 0
    begin(a); begin(b)
    f = event(); cu.EventRecord(e, a); cu.EventRecord(f, b)
    assert code("StreamWaitEvent", b, e, 0) == CAPTURE_MERGE
    assert status(a) == status(b) == 2
    """)
