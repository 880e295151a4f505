"""Cases for test_pystack.py: each captures and compares with what Python itself says.

Run as `python pystack_cases.py PROBE.so CASE`; standard library only, CPython 3.9 and later.
Exit status 0: every comparison was equal. The plain shapes of code are in pystack_shapes.py; here
are threads, fork, tracing, address reuse, the proof, the line decoder and native frames.
"""
import ctypes
import os
import sys
import threading
import time

import pystack_shapes
from pystack_check import (OVERFLOW, cap, cap_held, check, checked, frames_of, held, here, released,
                           wrong)


# --- threads, GIL, fork -------------------------------------------------------------------------

def case_threads():
    """Four threads capture while two others do nothing but hold the GIL."""
    stop = threading.Event()
    def spin():
        n = 0
        while not stop.is_set():
            n += sum(range(200))
    def work(seed):
        def a(n):
            check(cap(), here())
            return b(n - 1) if n else None
        def b(n):
            check(cap_held(), here())
            return a(n - 1) if n else None
        for i in range(40):
            (a if (i + seed) % 2 else b)(i % 7)
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=spin, daemon=True) for _ in range(2)]
    threads += [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads[2:]:
        t.join()
    stop.set()
    for t in threads[:2]:
        t.join()
    sys.setswitchinterval(old)


def case_other_thread_runs():
    """With the GIL released another thread's state is current: ours must be the one that counts."""
    stop = threading.Event()
    def spin():
        while not stop.is_set():
            sum(range(1000))
    t = threading.Thread(target=spin)
    t.start()
    many = released.probe_capture_many
    for _ in range(20):
        check(many(20000), here())
    stop.set()
    t.join()


def case_foreign_threads():
    check(cap(), here())
    assert released.probe_foreign_thread() == 0
    seen = []
    def callback():
        check(cap(), here())
        seen.append(1)
    kind = ctypes.CFUNCTYPE(None)
    for _ in range(5):
        assert released.probe_callback_thread(kind(callback)) == 0
    assert len(seen) == 5


def case_fork():
    check(cap(), here())
    before = cap()
    for held_back in range(4):
        pid = os.fork()
        if pid == 0:
            released.probe_after_fork()
            check(cap(), here())
            old = frames_of(before)
            def new():
                check(cap(), here())
            new()
            os._exit(0 if not wrong and old and len(checked) >= 2 else 9)
        assert os.waitpid(pid, 0)[1] == 0, "the child saw something else"
        check(cap(), here())


def case_deadlock():
    """A holds a lock and captures, B holds the GIL and wants the lock: no one may wait for ever."""
    started = threading.Event()
    result = []
    def a():
        started.set()
        result.append(released.probe_capture_locked())
    check(cap(), here())
    thread = threading.Thread(target=a)
    thread.start()
    started.wait()
    time.sleep(0.1)      # a is inside, the lock is his
    held.probe_lock()    # with the GIL
    held.probe_unlock()
    thread.join()
    names = [func.split(".")[-1] for _, func, _ in frames_of(result[0])]
    assert names[:2] == ["a", "run"], names


def case_daemon_threads_at_exit():
    """Daemon threads capture while the interpreter is torn down: no crash, exit status 0."""
    import atexit
    many = released.probe_capture_many
    def hammer():
        while True:
            many(500)
            cap()
    for _ in range(4):
        threading.Thread(target=hammer, daemon=True).start()
    def last():
        check(cap(), here())
        if wrong:
            os._exit(3)
    atexit.register(last)
    time.sleep(0.05)
    check(cap(), here())


# --- tracing, reuse, proof ----------------------------------------------------------------------

def case_trace_and_profile():
    inside = []
    tracing = []
    def hook(frame, event, arg):
        # 3.9 alone: f_lineno of a traced frame at its implicit return is the line traced last,
        # not the line of the instruction (Objects/frameobject.c, PyFrame_GetLineNumber).
        if sys.version_info < (3, 10) and tracing and event == "return":
            return hook
        if not inside and frame.f_code.co_filename == __file__:
            inside.append(1)
            check(cap(), here())
            inside.pop()
        return hook
    def work(n):
        total = 0
        for i in range(n):
            total += i
        check(cap(), here())
        return total
    for install in (sys.settrace, sys.setprofile):
        tracing[:] = [1] if install is sys.settrace else []
        install(hook)
        work(3)
        sorted([2, 1], key=lambda x: work(1))
        install(None)
    if hasattr(sys, "monitoring"):
        tool = sys.monitoring.PROFILER_ID
        sys.monitoring.use_tool_id(tool, "test")
        events = sys.monitoring.events
        sys.monitoring.register_callback(tool, events.LINE, lambda code, line: None)
        sys.monitoring.set_events(tool, events.LINE | events.CALL)
        work(3)
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)
        work(3)


def case_address_reuse():
    """Code objects freed and made again land on the same addresses with other names and lines."""
    space = {"check": check, "cap": cap, "here": here}
    addresses = set()
    for i in range(800):
        kind = i % 4
        name = "f" if kind == 1 else f"f{i}"
        file = "<same>" if kind < 2 else f"<file number {i}>"
        source = "\n" * (i % 50 if kind != 3 else 0)
        source += f"def {name}(): check(cap(), here())\n{name}()"
        code = compile(source, file, "exec")
        addresses.add(id(code))
        exec(code, space)
        del code, space[name]
    assert len(addresses) < 400, "no address was used again: the case shows nothing"


def case_ids_are_canonical():
    """One chain of lines has one id, whatever code objects or instructions stood behind it."""
    ids = set()
    def twice():
        return cap(), cap()
    ids.update(twice())
    assert len(ids) == 1, ids
    made = set()
    for _ in range(50):
        space = {"cap": cap}
        exec(compile("def f(): return cap()\nx = f()", "<again>", "exec"), space)
        made.add(space["x"])
    assert len(made) == 1, made
    checked.extend([1] * 2)


def case_frames_limit():
    stack_id = cap()
    assert len(frames_of(stack_id, 2)) == 2 and frames_of(stack_id, 0) == []
    assert frames_of(stack_id, -1) == [] and frames_of(0) == [] and frames_of(999999) == []
    assert frames_of(OVERFLOW) == []
    checked.extend([1] * 5)


def case_proof_refuses():
    """Each number of the layout, moved, is refused, except where nothing on this stack tells."""
    names = ["tstate_frame", "cframe_frame", "frame_previous", "frame_code", "frame_position",
             "frame_owner", "code_firstlineno", "code_filename", "code_name", "code_qualname",
             "code_linetable", "code_bytecode", "code_firsttraceable", "code_version", "ob_type",
             "ob_size", "bytes_size", "bytes_data", "str_length", "str_state", "str_ascii",
             "str_compact"]
    # A neighbouring name, number or NULL looks as good as the right one, and no name here is
    # other than ASCII. That these numbers are right is what the other cases show.
    unseen = {"frame_previous", "frame_position", "frame_owner", "code_firstlineno",
              "code_filename", "code_name", "code_qualname", "code_bytecode",
              "code_firsttraceable", "code_version", "ob_size", "bytes_data", "str_compact"}
    assert released.probe_field_count() == len(names)
    assert released.probe_mutated_proof(0, 0) == b"proven"
    for field, name in enumerate(names):
        for delta in (-64, -16, -8, -4, -1, 1, 4, 8, 16, 64, 1000, 30000):
            answer = released.probe_mutated_proof(field, delta)
            if answer not in (b"skip", b"proven"):
                checked.append(1)
            if answer == b"proven" and abs(delta) == 8 and name not in unseen:
                wrong.append((name, delta))


def case_lines():
    """Every instruction of a sample of the standard library, against the interpreter's answer."""
    import sysconfig
    folder = sysconfig.get_paths()["stdlib"]
    sample = ["argparse", "ast", "asyncio/tasks", "bdb", "cgitb", "configparser", "dataclasses",
              "decimal", "difflib", "doctest", "email/message", "enum", "fractions", "ftplib",
              "functools", "http/client", "inspect", "json/decoder", "logging/__init__", "mailbox",
              "multiprocessing/pool", "optparse", "pathlib", "pdb", "pickle", "pickletools",
              "pydoc", "random", "shutil", "smtplib", "statistics", "subprocess", "tarfile",
              "tempfile", "threading", "tokenize", "turtle", "typing", "unittest/mock", "uuid", "zipfile"]
    step = 2
    if sys.version_info < (3, 10):
        form, table = 0, lambda c: c.co_lnotab
    elif sys.version_info < (3, 11):
        form, table = 1, lambda c: c.co_linetable
    else:
        form, table = 2, lambda c: c.co_linetable
    addr2line = ctypes.pythonapi.PyCode_Addr2Line
    addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
    released.probe_lines.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int,
                                     ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    files = 0
    def codes(code):
        yield code
        for const in code.co_consts:
            if hasattr(const, "co_code"):
                yield from codes(const)
    def expected(code, count):
        if not hasattr(code, "co_lines"):
            return [addr2line(code, i * step) for i in range(count)]
        out = [None] * count
        for start, end, line in code.co_lines():
            for i in range(start // step, min(end // step, count)):
                out[i] = -1 if line is None else line
        return out
    for name in sample:
        path = os.path.join(folder, name + ".py")
        if not os.path.exists(path):
            continue
        files += 1
        with open(path, "rb") as source:
            top = compile(source.read(), path, "exec", dont_inherit=True)
        for code in codes(top):
            count = len(code.co_code) // step
            got = (ctypes.c_int * count)()
            raw = table(code)
            released.probe_lines(form, raw, len(raw), code.co_firstlineno, step, count, got)
            checked.extend([1] * count)
            for i, (a, b) in enumerate(zip(got, expected(code, count))):
                if a != b:
                    wrong.append((path, code.co_name, i, a, b))
    assert files > 25 and len(checked) > 50000, (files, len(checked))


def case_native():
    text = ctypes.create_string_buffer(16384)
    n = released.probe_native(text, len(text))
    status = released.probe_native_status().decode()
    print("native:", status)
    checked.append(1)
    if not status.startswith("on:"):
        assert n == 0 and status.startswith("off:"), (n, status)
        return
    names = text.value.decode().splitlines()
    assert n == len(names) > 3 and all("+0x" in name for name in names), names
    assert any("_ctypes" in name for name in names), names
    assert not any("pystack_probe" in name for name in names), "our own frames belong out"


def case_elf_old_hash():
    """The probe is linked with --hash-style=sysv: its symbols are found by the old hash table."""
    checked.append(1)
    assert released.probe_symbol_module(b"probe_native").startswith(b"pystack_probe")
    assert released.probe_symbol_module(b"probe_nothing") == b""


def main():
    case = sys.argv[2]
    if case == "list":
        names = sorted({**globals(), **vars(pystack_shapes)})
        print("\n".join(n[5:] for n in names if n.startswith("case_")))
        return 0
    if case == "status":
        got = cap()
        print(got, released.probe_status().decode())
        return 0
    getattr(pystack_shapes, "case_" + case, globals().get("case_" + case))()
    print(f"{case}: {len(checked)} checked, {len(wrong)} wrong; {released.probe_status().decode()}")
    for got, expected in [w[-2:] for w in wrong[:3]]:
        print("  got     ", got, "\n  expected", expected)
    return 0 if checked and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
