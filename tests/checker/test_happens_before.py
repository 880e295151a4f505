"""The checker on written logs in which exactly one order is there or missing.

{} is what makes the order: with the first text in its place nothing is reported, with the second the pair is.
In these logs "1 drv", "1 note" and "= 0" are left out.
"""

import json
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from ordering import Unknown  # noqa: E402
from rules import Checker  # noqa: E402

BEGIN = """
cuCtxSetCurrent(c1)
cuStreamCreate(*, 1) = 0 s1
cuStreamCreate(*, 1) = 0 s2
cuStreamCreate(*, 0) = 0 s3
cuStreamCreate(*, 0) = 0 s4
2 drv cuCtxSetCurrent(c1)
"""
FILL = "cuMemsetD8Async(d1+0, 1, 64, {})"
READ = "cuMemcpyDtoDAsync_v2(d2+0, d1+32, 64, {})"
UPLOAD = "cuMemcpyHtoDAsync_v2(d1+0, p1+0, 64, {})"
DOWNLOAD = "cuMemcpyDtoHAsync_v2(p1+0, d1+0, 64, {})"
HOST_WRITES, HOST_READS = "writes(p1+0, 64)", "reads(p1+8, 8)"
PAGEABLE = "cuMemcpyHtoDAsync_v2(d1+0, host+4096, 64, s1)"
OVERWRITE = "writes(host+4096, 8)"
SYNC = "cuStreamSynchronize(s1)"
KERNEL = "cuLaunchKernel(*, *, *, *, *, *, *, *, {}, *, *) = 0"
GRAPH = "cuGraphInstantiateWithFlags(*, g5, 0) = 0 "


def wait(event, recorder, waiter):
    return f"cuEventRecord({event}, {recorder})\ncuStreamWaitEvent({waiter}, {event}, 0)"


def log(*lines):
    return "\n".join(lines)


def whole(text):
    """A log as the simulator writes it."""
    for line in (BEGIN + text).split("\n"):
        layer = "1 drv " if line.startswith("cu") else "" if line[:1].isdigit() else "1 note "
        if line:
            yield layer + line + ("" if re.search(r"\) = \d", line) else " = 0")


def check(text, **options):
    """The conflicts found in a log."""
    checker = Checker(**options)
    checker.run(whole(text))
    return [pair["conflict"] for pair in checker.found()]


CASES = {
    # streams and events
    "one stream": (log(FILL.format("s1"), READ), "s1", "s2"),
    "event": (log(FILL.format("s1"), "{}", READ.format("s2")), wait("e1", "s1", "s2"), ""),
    "event without the wait": (log(FILL.format("s1"), "cuEventRecord(e1, s1)", "{}", READ.format("s2")),
                               "cuStreamWaitEvent(s2, e1, 0)", "cuStreamWaitEvent(s4, e1, 0)"),
    "event recorded too early": (log("{}", READ.format("s2")), log(FILL.format("s1"), wait("e1", "s1", "s2")),
                                 log(wait("e1", "s1", "s2"), FILL.format("s1"))),
    "event recorded again after the wait": (
        log(FILL.format("s1"), "{}", READ.format("s2")),
        log(wait("e1", "s1", "s2"), "cuEventRecord(e1, s3)"),
        log("cuEventRecord(e1, s1)", "cuEventRecord(e1, s3)", "cuStreamWaitEvent(s2, e1, 0)")),
    "event through a third stream": (log(FILL.format("s1"), wait("e1", "s1", "s4"), "{}", READ.format("s2")),
                                     wait("e2", "s4", "s2"), ""),
    "event of another context": (log("cuCtxPushCurrent_v2(c2)", "cuStreamCreate(*, 0) = 0 s9",
                                     FILL.format("s9"), "cuCtxPopCurrent_v2(*) = 0 c2", "{}", READ.format("s2")),
                                 wait("e1", "s9", "s2"), ""),
    "a failed wait": (log(FILL.format("s1"), "cuEventRecord(e1, s1)", "{}", READ.format("s2")),
                      "cuStreamWaitEvent(s2, e1, 0)", "cuStreamWaitEvent(s2, e1, 0) = 400"),
    # default streams
    "legacy after blocking": (log(FILL, READ.format("0")), "s3", "s1"),
    "blocking after legacy": (log(FILL.format("0"), READ), "s4", "s2"),
    "legacy between two blocking": (log(FILL.format("s3"), "{}", READ.format("s4")),
                                    KERNEL.format("legacy"), ""),
    "event of the legacy stream": (log(FILL, wait("e1", "0", "s2"), READ.format("s2")), "s3", "s1"),
    "per-thread joins legacy": (log(FILL, "2 drv cuMemcpyDtoDAsync_v2(d2+0, d1+0, 64, per-thread)"),
                                "legacy", "s3"),
    "per-thread of two threads": (log(FILL.format("per-thread"), "{} drv " + READ.format("per-thread")), "1", "2"),
    "per-thread variants of calls": (log("cuMemsetD8_v2{}(d1+0, 1, 64)", READ.format("s3")), "", "_per_thread"),
    "legacy streams of two contexts": (log(FILL.format("0"), "{}", READ.format("0")),
                                       "cuCtxSetCurrent(c1)", "cuCtxSetCurrent(c2)"),
    "legacy stream of another context": (
        log(FILL.format("s3"), "cuCtxSetCurrent({})", READ.format("legacy")), "c1", "c2"),
    # host waits
    "stream synchronize": (log(DOWNLOAD.format("s1"), "cuStreamSynchronize({})", HOST_READS), "s1", "s2"),
    "legacy synchronize": (log(DOWNLOAD, "cuStreamSynchronize(0)", HOST_READS), "s3", "s1"),
    "event synchronize": (log(DOWNLOAD.format("s1"), "cuEventRecord(e1, s1)", "{}", HOST_READS),
                          "cuEventSynchronize(e1)", ""),
    "context synchronize": (log(DOWNLOAD.format("s1"), "{}", HOST_READS), "cuCtxSynchronize()", ""),
    "synchronize of another context": (log(DOWNLOAD.format("s1"), "cuCtxSetCurrent({})", "cuCtxSynchronize()",
                                           HOST_READS), "c1", "c2"),
    "stream query": (log(DOWNLOAD.format("s1"), "cuStreamQuery(s1) = {}", HOST_READS), "0", "600"),
    "event query": (log(DOWNLOAD.format("s1"), "cuEventRecord(e1, s1)", "cuEventQuery(e1) = {}", HOST_READS),
                    "0", "600"),
    "elapsed time": (log(DOWNLOAD.format("s1"), "cuEventRecord(e1, s1)", "cuEventElapsedTime(*, e2, e1) = {}",
                         HOST_READS), "0", "600"),
    "work enqueued after a host wait": (log(FILL.format("s1"), "{}", READ.format("s2")), SYNC, ""),
    # copies
    "pinned source reused": (log(UPLOAD.format("s1"), "{}", HOST_WRITES), SYNC, ""),
    "pinned source, synchronous": (log("{}", HOST_WRITES), "cuMemcpyHtoD_v2(d1+0, p1+0, 64)", UPLOAD.format("0")),
    "pinned target, synchronous": (log("{}", HOST_READS), "cuMemcpyDtoH_v2(p1+0, d1+0, 64)", DOWNLOAD.format("0")),
    "pageable source overwritten": (log("{}", OVERWRITE), PAGEABLE, PAGEABLE.replace("host", "r")),
    "pageable copy of earlier download": (
        log("cuMemcpyDtoHAsync_v2(host+4096, d1+0, 64, s1)", "{}", "cuMemcpyHtoDAsync_v2(d2+0, host+4096, 64, s1)"),
        SYNC, ""),
    "synchronous pageable copy waits before": (log(DOWNLOAD.format("0"), "cuMemcpyHtoD{}", HOST_READS),
                                               "_v2(d2+0, host+4096, 64)", "Async_v2(d2+0, host+4096, 64, 0)"),
    "synchronous pageable copy may be on its way": (
        log("cuMemcpyHtoD_v2(d1+0, host+4096, 64)", "{}", READ.format("s1")), "cuStreamSynchronize(0)", ""),
    "device copies do not wait": (log("cuMemcpyDtoD_v2(d1+0, d3+0, 64)", "{}", READ.format("s1")),
                                  wait("e1", "0", "s1"), ""),
    "to pageable memory": (log("cuMemcpyDtoH{}", "reads(host+4096, 8)"),
                           "_v2(host+4096, d1+0, 64)", "Async_v2(host+4096, d1+0, 64, s1)"),
    "within the host": (log("cuMemcpyAsync({}, p2+0, 64, s1)", "writes(p2+0, 64)"), "p1+0", "d1+0"),
    "memset of page-locked memory": (log("cuMemsetD8{}", HOST_READS), "_v2(p1+0, 1, 64)", "Async(p1+0, 1, 64, 0)"),
    "rows side by side": (log("cuMemsetD2D32Async(d1+0, 64, 0, 8, 4, s1)",
                              "cuMemcpy2DAsync_v2(*, s2) = 0 reads d1+{}:32*4/64 writes d2+0:32*4/32"), "32", "28"),
    "registered memory is host memory": (log("cuMemcpyDtoHAsync_v2(r+4096, d1+0, 64, s1)", "{}",
                                             "reads(host+4100, 4)"), SYNC, ""),
    "batch": (log("cuMemcpyBatchAsync(*, *, *, 1, *, *, 1, *, s1) = 0 {} host+4096:64 writes d1+0:64", OVERWRITE),
              "takes", "reads"),
    # kernels, host functions, values
    "kernel operands": (log(KERNEL.format("s1") + " reads d3+0:64 writes d1+0:64",
                            "{}", READ.format("s2")), wait("e1", "s1", "s2"), ""),
    "kernel by its configuration": (
        log("cuLaunchKernelEx({}, \"k\", *, *) = 0 writes d1+0:64", READ.format("s2")), "s2", "s1"),
    "host function after a copy": (log(DOWNLOAD.format("s1"), "cuLaunchHostFunc({}, *, 7)", "3 note starts(7)",
                                       "3 note reads(p1+0, 64)"), "s1", "s2"),
    "copy after a host function": (log("cuStreamAddCallback(s1, *, 7, 0)", UPLOAD, "3 note starts(7)",
                                       "3 note writes(p1+0, 64)"), "s1", "s2"),
    "host function before a later write": (
        log("cuLaunchHostFunc(s1, *, 7)", "3 note starts(7)", "3 note reads(p1+0, 64)", "{}", HOST_WRITES),
        SYNC, ""),
    "value of another stream": (
        log(FILL.format("s1"), "cuStreamWriteValue32_v2(s1, p9+0, 1, 0)", "{}", READ.format("s2")),
        "cuStreamWaitValue32_v2(s2, p9+0, 1, 0)", ""),
    # memory comes and goes
    "free": (log(FILL.format("s1"), "{}", "cuMemFree_v2(d1+0)"), SYNC, ""),
    "free in stream order": (log("cuMemAllocAsync(*, 64, s1) = 0 q1+0", "cuMemsetD8Async(q1+0, 1, 64, s1)",
                                 "cuMemFreeAsync(q1+0, {})"), "s1", "s2"),
    "use before the allocation": (log("cuMemAllocAsync(*, 64, s1) = 0 q1+0", "{}", "cuMemsetD8Async(q1+0, 1, 64, s2)"),
                                  wait("e1", "s1", "s2"), ""),
    "free of a pool's memory": (log("cuMemsetD8Async(q1+0, 1, 64, s1)", "{}", "cuMemFree_v2(q1+0)"),
                                "cuCtxSynchronize()", ""),
    "use after free": (log("{}", KERNEL.format("s1") + " reads d1+640:4"), "",
                       "cuMemFree_v2(d1+0)"),
    "free of page-locked memory": (log(UPLOAD.format("s1"), "{}", "cuMemFreeHost(p1+0)"), SYNC, ""),
    "unregister": (log("cuMemHostRegister_v2(host+4096, 64, 0)", "cuMemcpyDtoHAsync_v2(r+4100, d1+0, 8, s1)", "{}",
                       "cuMemHostUnregister(r+4096)"), SYNC, ""),
    "unmap": (log("cuMemsetD8Async(v+4096, 1, 64, s1)", "{}", "cuMemUnmap(v+4096, 64)"),
              SYNC, ""),
    "map again": (log("cuMemUnmap(v+4096, 64)", "{}", "cuMemsetD8Async(v+4096, 1, 64, s1)"),
                  "cuMemMap(gone+4096, 64, 0, *, 0)", ""),
    # captures and graphs
    "captured work is not done": (
        log(FILL.format("s2"), "cuStreamBeginCapture_v2(s1, 0)", FILL.format("s1"), "cuStreamEndCapture(s1, *) = 0 g5",
            GRAPH + "g6", "{}"), "", "cuGraphLaunch(g6, s1)"),
    "a stream joins the capture": (
        log("cuStreamBeginCapture_v2(s1, 0)", "{}", FILL.format("s2"), wait("e2", "s2", "s1"),
            "cuStreamEndCapture(s1, *) = 0 g5", READ.format("s4")), wait("e1", "s1", "s2"), ""),
    "launches of one graph": (
        log("cuGraphCreate(*, 0) = 0 g5", "cuGraphAddMemsetNode(*, g5, *, 0, *, c1) = 0 writes d1+0:64",
            GRAPH + "g6", GRAPH + "g7", "cuGraphLaunch(g6, s1)", "cuGraphLaunch({}, s2)"), "g6", "g7"),
    "a failed capture ends": (log("cuStreamBeginCapture_v2(s1, 0)", "cuStreamEndCapture(s1, *) = {}",
                                  FILL.format("s1"), READ.format("s2")), "908", "901"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_order(name):
    template, there, missing = CASES[name]
    assert check(template.replace("{}", there)) == []
    assert len(check(template.replace("{}", missing))) == 1


@pytest.mark.parametrize("name, conflict", [
    ("event", "read of what is written"), ("pinned source reused", "write of what is read"),
    ("launches of one graph", "both write"), ("free", "freed while in use"), ("use after free", "use after free"),
])
def test_the_conflict_is_named(name, conflict):
    template, _, missing = CASES[name]
    assert check(template.replace("{}", missing)) == [conflict]


# --- the options ---

@pytest.mark.parametrize("size, text, seen", [
    (65537, "cuMemcpyHtoDAsync_v2(d1+0, host+4096, {}, s1)\n" + READ.format("s2"), True),
    (65536, "cuMemcpyHtoDAsync_v2(d1+0, host+4096, {}, s1)\n" + READ.format("s2"), False),
    (64, "cuMemcpyDtoHAsync_v2(host+4096, d1+0, {}, s1)\nreads(host+4096, 8)", True),
    (64, "cuMemsetD8Async(d1+0, 1, {}, s1)\ncuMemFree_v2(d1+0)", True),
    (64, "cuMemsetD8Async(q1+0, 1, {}, s1)\ncuMemFree_v2(q1+0)", False),
    (64, "cuMemcpyDtoHAsync_v2(p1+0, d1+0, {}, s1)\ncuMemFreeHost(p1+0)", True),
])
def test_what_drivers_are_seen_to_do(size, text, seen):
    assert len(check(text.format(size))) == 1
    assert len(check(text.format(size), as_seen=True)) == (0 if seen else 1)


def test_threads_that_tell_each_other_nothing():
    text = log(UPLOAD.format("s1"), SYNC, "2 note " + HOST_WRITES)
    assert check(text) == []
    assert len(check(text, threads=True)) == 1
    assert check(text.replace("2 note ", ""), threads=True) == []


def test_page_locked_sources_that_are_filled_again_and_again():
    text = log(UPLOAD.format("s1"), "{}", UPLOAD.format("s1"))
    assert check(text.replace("{}", ""), refilled=False) == []
    assert check(text.replace("{}", ""), refilled=True) == ["write of what is read"]
    assert check(text.replace("{}", SYNC), refilled=True) == []


def test_a_stream_of_unknown_kind_is_not_guessed():
    with pytest.raises(Unknown, match="line 7"):
        check(FILL.format("s8"))


# --- the command ---

def command(tmp_path, text, *options):
    path = tmp_path / "log"
    path.write_text("\n".join(whole(text)) + "\n")
    return subprocess.run([sys.executable, HERE / "happens_before.py", path, *options], capture_output=True, text=True,
                          timeout=60)


def test_one_line_for_each_pair(tmp_path):
    done = command(tmp_path, log(FILL.format("s1"), READ.format("0"), READ.format("s2")))
    assert done.returncode == 1 and done.stderr == ""
    late = "no event and no host wait between them"
    never = ", a non-blocking stream does not join the legacy one"
    fill, legacy, s2 = ("cuMemsetD8Async (stream s1)", "cuMemcpyDtoDAsync_v2 (the legacy stream of c1)",
                        "cuMemcpyDtoDAsync_v2 (stream s2)")
    assert done.stdout.splitlines() == [
        f"line 7 {fill} and line 8 {legacy}: d1+32, 32 bytes: read of what is written; "
        f"the legacy stream of c1 does not wait for stream s1: {late}{never}",
        f"line 7 {fill} and line 9 {s2}: d1+32, 32 bytes: read of what is written; "
        f"stream s2 does not wait for stream s1: {late}",
        f"line 8 {legacy} and line 9 {s2}: d2+0, 64 bytes: both write; "
        f"stream s2 does not wait for the legacy stream of c1: {late}{never}",
    ]


def test_json(tmp_path):
    done = command(tmp_path, log(DOWNLOAD.format("s1"), HOST_READS), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == [{
        "line_a": 7, "call_a": "cuMemcpyDtoHAsync_v2", "by_a": "stream s1", "line_b": 8, "call_b": "reads",
        "by_b": "the host", "space": "p1", "start": 8, "end": 16, "conflict": "read of what is written",
        "missing": "the host has not waited for stream s1"}]


def test_exit_status(tmp_path):
    assert (command(tmp_path, FILL.format("s1")).returncode, command(tmp_path, FILL.format("s8")).returncode) == (0, 2)
    assert command(tmp_path, FILL.format("s1"), "--json").stdout == "[]\n"
