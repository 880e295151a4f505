"""The stand-in driver: life, order, devices and faults. Copies, memory, captures and the truth have
files of their own, test_driver_*.py.

What the documents promise must hold under every schedule; what they do not promise must fail under
some.
"""

import subprocess

import pytest

from sim_environment import BUILD, clean_environment


# --- life ---

def test_calls_before_init_and_without_context(drive):
    drive("""
        assert code("DeviceGetCount", ctypes.byref(ctypes.c_int())) == NOT_INITIALIZED
        cu.Init(0)
        assert get("DeviceGetCount", kind=ctypes.c_int) == 2
        assert code("MemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 4) == INVALID_CONTEXT
        start()
        assert alloc(4)
    """)


def test_calls_after_the_end(tmp_path):
    source, program = tmp_path / "late.c", tmp_path / "late"
    source.write_text("""
        #include <stdio.h>
        #include <stdlib.h>
        int cuInit(unsigned), cuDeviceGetCount(int *);
        static void late(void) { int n; printf("%d", cuDeviceGetCount(&n)); }
        int main(void) { int n; atexit(late); return cuInit(0) || cuDeviceGetCount(&n); }
    """)
    library = BUILD / "libcuda.so.1"
    subprocess.run(["cc", "-o", program, source, library, f"-Wl,-rpath,{BUILD}"], check=True,
                   timeout=60)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60,
                          env=clean_environment())
    assert (done.returncode, done.stdout) == (0, "4")


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_forked_children_are_not_initialized(drive, clock):
    drive("""
        start()
        s, d, h = stream(), alloc(4), pinned(4, 7)
        spin(1000, s)
        child = os.fork()
        if child == 0:
            n = ctypes.byref(ctypes.c_int())
            codes = {code("DeviceGetCount", n), code("StreamSynchronize", s), code("Init", 0),
                     code("MemcpyHtoD_v2", d, h.address, 4)}
            os._exit(0 if codes == {NOT_INITIALIZED} else 1)
        assert os.waitpid(child, 0)[1] == 0
        cu.MemcpyHtoDAsync_v2(d, h.address, 4, s)
        assert read(d, 4) == b"\\7" * 4
    """, GPUSIM_CLOCK=clock)


def test_contexts(drive):
    drive("""
        start()
        d, s, e = alloc(4), stream(), event()
        made = get("CtxCreate_v2", 0, 1)
        assert get("CtxGetCurrent") == made and get("CtxGetDevice", kind=ctypes.c_int) == 1
        assert code("EventRecord", e, 0) == INVALID_HANDLE  # of another context
        mine = alloc(4)
        cu.CtxDestroy_v2(made)
        assert get("CtxGetDevice", kind=ctypes.c_int) == 0
        assert code("MemsetD8Async", mine, 0, 4, s) == INVALID_VALUE
        cu.CtxSetCurrent(0)
        assert code("CtxSynchronize") == INVALID_CONTEXT
        assert code("CtxSetCurrent", made) == INVALID_CONTEXT
    """)


def test_handles_end_and_are_used_again(drive):
    drive("""
        start()
        s, e = stream(), event()
        cu.StreamDestroy_v2(s); cu.EventDestroy_v2(e)
        assert code("StreamSynchronize", s) == code("EventQuery", e) == INVALID_HANDLE
        assert code("StreamDestroy_v2", LEGACY) == INVALID_HANDLE
        assert stream() == s and event() == e, "a stranger has the number at once"
        d = alloc(512)
        cu.MemFree_v2(d)
        assert code("MemFree_v2", d) == INVALID_VALUE
        assert code("MemcpyDtoH_v2", Host(4).address, d, 4) == INVALID_VALUE
        assert alloc(512) == d
    """)


# --- order ---

ORDER = """
    start()
    a, b, n = stream({flags}), stream({flags}), 4096
    d, h, out = alloc(n), pinned(n, 1), pinned(n)
    cu.MemsetD8Async(d, 9, n, {clear})
    cu.StreamSynchronize({clear})
    spin(1000, {first})
    cu.MemcpyHtoDAsync_v2(d, h.address, n, {first})
    {order}
    cu.MemcpyDtoHAsync_v2(out.address, d, n, {then})
    cu.CtxSynchronize()
    print(sorted(out.values()))
"""
EVENT = "e = event(); cu.EventRecord(e, {first}); cu.StreamWaitEvent({then}, e, 0)"


@pytest.mark.parametrize("flags, first, then, order, ordered", [
    (1, "a", "a", "", True),
    (1, "a", "b", "", False),
    (1, "a", "b", EVENT, True),
    (1, "b", "a", "cu.StreamSynchronize(b)", True),
    (0, "a", "b", "", False),
    (0, "a", 0, "", True),
    (0, 0, "a", "", True),
    (1, "a", 0, "", False),
    (1, 0, "a", "", False),
    (1, "a", 0, EVENT, True),
    (1, "PER_THREAD", 0, "", True),
], ids=str)
def test_what_orders_two_operations(every_schedule, flags, first, then, order, ordered):
    script = ORDER.format(flags=flags, first=first, then=then, clear="a",
                          order=order.format(first=first, then=then))
    outs = set(every_schedule(script))
    assert "[1]" in outs and (len(outs) == 1) == ordered, outs


def test_an_event_is_the_place_of_its_last_record(every_schedule):
    outs = every_schedule("""
        start()
        a, b, e = stream(), stream(), event()
        n = 4096; d, h, out = alloc(n), pinned(n, 1), pinned(n)
        cu.EventRecord(e, a)
        cu.StreamWaitEvent(b, e, 0)  # the record before the copy: orders nothing below
        cu.MemcpyHtoDAsync_v2(d, h.address, n, a)
        cu.EventRecord(e, a)
        cu.StreamWaitEvent(b, e, 0)
        cu.MemcpyDtoHAsync_v2(out.address, d, n, b)
        cu.CtxSynchronize()
        print(out.values())
    """)
    assert set(outs) == {"{1}"}


def test_queries_and_event_times(drive):
    drive("""
        start()
        s, a, b, untimed = stream(), event(), event(), event(2)
        ms = ctypes.c_float()
        times = lambda x, y: code("EventElapsedTime_v2", ctypes.byref(ms), x, y)
        assert code("StreamQuery", s) == code("EventQuery", a) == 0
        assert times(a, b) == INVALID_HANDLE
        cu.EventRecord(untimed, s); cu.EventRecord(a, s)
        spin(2_000_000, s); cu.EventRecord(b, s)
        assert code("StreamQuery", s) == code("EventQuery", b) == NOT_READY
        assert times(a, b) == NOT_READY
        cu.EventSynchronize(b)
        assert code("StreamQuery", s) == 0 and times(a, b) == 0 and 2 <= ms.value < 2.1
        assert times(a, untimed) == INVALID_HANDLE
        spin(1000, s)
        for _ in range(1000):
            if code("StreamQuery", s) == 0:
                break
        else:
            raise SystemExit("a stream that is asked for ever must become ready")
    """, GPUSIM_SEED=1)


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_host_functions(drive, clock):
    drive("""
        start()
        s, n = stream(), 4096
        d, h, out, seen = alloc(n), pinned(n, 1), pinned(n), []
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: seen.extend(
            (out.values(), code("CtxSynchronize"))))
        cu.MemcpyHtoDAsync_v2(d, h.address, n, s)
        cu.MemcpyDtoHAsync_v2(out.address, d, n, s)
        cu.LaunchHostFunc(s, function, None)
        cu.StreamSynchronize(s)
        assert seen == [{1}, NOT_PERMITTED], seen
    """, GPUSIM_CLOCK=clock)


def test_a_full_queue_makes_the_caller_wait(drive):
    script = """
        start()
        s, e = stream(), event()
        spin(1000, s); cu.EventRecord(e, s)
        for _ in range(9):
            spin(1000, s)
        print(code("EventQuery", e))
    """
    assert drive(script, GPUSIM_SEED=1, GPUSIM_QUEUE=4) == "0"
    assert drive(script, GPUSIM_SEED=1) == "600"


# --- several devices, faults ---

def test_two_devices(every_schedule):
    outs = every_schedule("""
        first = start(0)
        a, n = stream(), 4096
        e, d0, h = event(), alloc(n), pinned(n, 1)
        second = start(1)
        b, d1, out = stream(), alloc(n), pinned(n)
        assert get("PointerGetAttribute", 9, d1, kind=ctypes.c_int) == 1
        cu.CtxSetCurrent(first)
        cu.MemcpyHtoDAsync_v2(d0, h.address, n, a)
        cu.EventRecord(e, a)
        cu.CtxSetCurrent(second)
        cu.StreamWaitEvent(b, e, 0)
        cu.MemcpyPeerAsync(d1, second, d0, first, n, b)
        cu.MemcpyDtoHAsync_v2(out.address, d1, n, b)
        cu.CtxSynchronize()
        print(out.values(), code("StreamQuery", a))
    """)
    assert set(outs) == {"{1} 0"}


def test_scripted_faults(drive):
    out = drive("""
        start()
        out = ctypes.byref(ctypes.c_uint64())
        print([code("MemAlloc_v2", out, 4) for _ in range(3)], end=" ")
        s = stream()
        print(code("StreamSynchronize", s), code("StreamSynchronize", s), end=" ")
        print(code("EventCreate", out, 0))
    """, GPUSIM_FAULT="cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY,cuStreamSynchronize:1:700")
    assert out == "[0, 2, 0] 700 700 700", "an illegal address stays"


@pytest.mark.parametrize("clock, seed", [("real", 1), ("virtual", 1), ("virtual", 3),
                                         ("virtual", 4)])
def test_threads_do_not_disturb_each_other(drive, clock, seed):
    drive("""
        import random, threading
        context = start()
        bad = []

        def work(number):
            cu.CtxSetCurrent(context)
            draw, most = random.Random(number), 300_000
            s, t, e = stream(draw.randint(0, 1)), stream(), event()
            d, f = alloc(most), alloc(most)
            for step in range(40):
                n, value = draw.randint(1, most), draw.randint(0, 255)
                source = Host(n, value, pinned=draw.random() < 0.5)
                target = Host(n, 0, pinned=draw.random() < 0.5)
                cu.MemcpyHtoDAsync_v2(d, source.address, n, s)
                spin(draw.randint(0, 50_000), s)
                cu.MemcpyDtoDAsync_v2(f, d, n, s)
                cu.EventRecord(e, s)
                cu.StreamWaitEvent(t, e, 0)
                cu.MemcpyDtoHAsync_v2(target.address, f, n, t)
                cu.StreamSynchronize(t)
                if target.values() != {value}:
                    bad.append((number, step))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not bad, bad
    """, GPUSIM_CLOCK=clock, GPUSIM_SEED=seed)


def test_attributes_of_another_kind_of_machine(drive):
    script = """
        start()
        ask = lambda number: get("DeviceGetAttribute", number, 0, kind=ctypes.c_int)
        print(ask(88), ask(100), ask(75))  # pageable access, by the host's page tables; major
    """
    assert drive(script) == "0 0 8"
    assert drive(script, GPUSIM_ATTRIBUTES="88:1,100:1,75:9") == "1 1 9"
