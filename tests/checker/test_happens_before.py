"""The checker on logs where exactly one order is there or missing, on logs of the simulated GPU, and on torch.

In the written logs {} is what makes the order: with the first text in its place nothing is reported, with the
second the pair is. The order of things is that of NVIDIA's text; see rules.py and ordering.py.
"""

import json
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sim"), str(HERE.parent / "e2e")]

import on_gpusim  # noqa: E402
from ordering import Unknown  # noqa: E402
from rules import Checker  # noqa: E402
from sim_environment import clean_environment  # noqa: E402

BEGIN = """
1 drv cuCtxSetCurrent(c1) = 0
1 drv cuStreamCreate(*, 1) = 0 s1
1 drv cuStreamCreate(*, 1) = 0 s2
1 drv cuStreamCreate(*, 0) = 0 s3
1 drv cuStreamCreate(*, 0) = 0 s4
2 drv cuCtxSetCurrent(c1) = 0
"""
FILL = "1 drv cuMemsetD8Async(d1+0, 1, 64, {}) = 0"
READ = "1 drv cuMemcpyDtoDAsync_v2(d2+0, d1+32, 64, {}) = 0"
UPLOAD = "1 drv cuMemcpyHtoDAsync_v2(d1+0, p1+0, 64, {}) = 0"
DOWNLOAD = "1 drv cuMemcpyDtoHAsync_v2(p1+0, d1+0, 64, {}) = 0"
HOST_WRITES, HOST_READS = "1 note writes(p1+0, 64) = 0", "1 note reads(p1+8, 8) = 0"
PAGEABLE = "1 drv cuMemcpyHtoDAsync_v2(d1+0, host+4096, 64, s1) = 0"
OVERWRITE = "1 note writes(host+4096, 8) = 0"


def wait(event, recorder, waiter):
    return f"1 drv cuEventRecord({event}, {recorder}) = 0\n1 drv cuStreamWaitEvent({waiter}, {event}, 0) = 0"


def log(*lines):
    return "\n".join(lines)


def check(text, **options):
    """The pairs found in a log, as "conflict" words, and the checker."""
    checker = Checker(**options)
    checker.run((BEGIN.strip() + "\n" + textwrap.dedent(text).strip()).splitlines())
    return [pair["conflict"] for pair in checker.found()]


CASES = {
    # streams and events
    "one stream": (log(FILL.format("s1"), READ), "s1", "s2"),
    "event": (log(FILL.format("s1"), "{}", READ.format("s2")), wait("e1", "s1", "s2"), ""),
    "event without the wait": (log(FILL.format("s1"), "1 drv cuEventRecord(e1, s1) = 0", "{}", READ.format("s2")),
                               "1 drv cuStreamWaitEvent(s2, e1, 0) = 0", "1 drv cuStreamWaitEvent(s4, e1, 0) = 0"),
    "event recorded too early": (log("{}", READ.format("s2")), log(FILL.format("s1"), wait("e1", "s1", "s2")),
                                 log(wait("e1", "s1", "s2"), FILL.format("s1"))),
    "event recorded again after the wait": (
        log(FILL.format("s1"), "{}", READ.format("s2")),
        log(wait("e1", "s1", "s2"), "1 drv cuEventRecord(e1, s3) = 0"),
        log("1 drv cuEventRecord(e1, s1) = 0", "1 drv cuEventRecord(e1, s3) = 0", "1 drv cuStreamWaitEvent(s2, e1, 0) = 0")),
    "event through a third stream": (log(FILL.format("s1"), wait("e1", "s1", "s4"), "{}", READ.format("s2")),
                                     wait("e2", "s4", "s2"), ""),
    "event of another context": (log("1 drv cuCtxPushCurrent_v2(c2) = 0", "1 drv cuStreamCreate(*, 0) = 0 s9",
                                     FILL.format("s9"), "1 drv cuCtxPopCurrent_v2(*) = 0 c2", "{}", READ.format("s2")),
                                 wait("e1", "s9", "s2"), ""),
    "a failed wait": (log(FILL.format("s1"), "1 drv cuEventRecord(e1, s1) = 0", "{}", READ.format("s2")),
                      "1 drv cuStreamWaitEvent(s2, e1, 0) = 0", "1 drv cuStreamWaitEvent(s2, e1, 0) = 400"),
    # default streams
    "legacy after blocking": (log(FILL, READ.format("0")), "s3", "s1"),
    "blocking after legacy": (log(FILL.format("0"), READ), "s4", "s2"),
    "legacy between two blocking": (log(FILL.format("s3"), "{}", READ.format("s4")),
                                    "1 drv cuLaunchKernel(\"k\", 1, 1, 1, 1, 1, 1, 0, legacy, *, *) = 0", ""),
    "event of the legacy stream": (log(FILL, wait("e1", "0", "s2"), READ.format("s2")), "s3", "s1"),
    "per-thread joins legacy": (log(FILL, "2 drv cuMemcpyDtoDAsync_v2(d2+0, d1+0, 64, per-thread) = 0"),
                                "legacy", "s3"),
    "per-thread of two threads": (log(FILL.format("per-thread"), "{} drv cuMemcpyDtoDAsync_v2(d2+0, d1+0, 64, per-thread) = 0"),
                                  "1", "2"),
    "per-thread variants of calls": (log("1 drv cuMemsetD8_v2{}(d1+0, 1, 64) = 0", READ.format("s3")), "", "_per_thread"),
    "legacy streams of two contexts": (log(FILL.format("0"), "{}", READ.format("0")),
                                       "1 drv cuCtxSetCurrent(c1) = 0", "1 drv cuCtxSetCurrent(c2) = 0"),
    "legacy stream of another context": (log(FILL.format("s3"), "1 drv cuCtxSetCurrent({}) = 0", READ.format("legacy")), "c1", "c2"),
    # host waits
    "stream synchronize": (log(DOWNLOAD.format("s1"), "1 drv cuStreamSynchronize({}) = 0", HOST_READS), "s1", "s2"),
    "legacy synchronize": (log(DOWNLOAD, "1 drv cuStreamSynchronize(0) = 0", HOST_READS), "s3", "s1"),
    "event synchronize": (log(DOWNLOAD.format("s1"), "1 drv cuEventRecord(e1, s1) = 0", "{}", HOST_READS),
                          "1 drv cuEventSynchronize(e1) = 0", ""),
    "context synchronize": (log(DOWNLOAD.format("s1"), "{}", HOST_READS), "1 drv cuCtxSynchronize() = 0", ""),
    "synchronize of another context": (log(DOWNLOAD.format("s1"), "1 drv cuCtxSetCurrent({}) = 0", "1 drv cuCtxSynchronize() = 0",
                                           HOST_READS), "c1", "c2"),
    "stream query": (log(DOWNLOAD.format("s1"), "1 drv cuStreamQuery(s1) = {}", HOST_READS), "0", "600"),
    "event query": (log(DOWNLOAD.format("s1"), "1 drv cuEventRecord(e1, s1) = 0", "1 drv cuEventQuery(e1) = {}", HOST_READS),
                    "0", "600"),
    "elapsed time": (log(DOWNLOAD.format("s1"), "1 drv cuEventRecord(e1, s1) = 0", "1 drv cuEventElapsedTime(*, e2, e1) = {}",
                         HOST_READS), "0", "600"),
    "work enqueued after a host wait": (log(FILL.format("s1"), "{}", READ.format("s2")), "1 drv cuStreamSynchronize(s1) = 0", ""),
    # copies
    "pinned source reused": (log(UPLOAD.format("s1"), "{}", HOST_WRITES), "1 drv cuStreamSynchronize(s1) = 0", ""),
    "pinned source, synchronous": (log("{}", HOST_WRITES), "1 drv cuMemcpyHtoD_v2(d1+0, p1+0, 64) = 0", UPLOAD.format("0")),
    "pinned target, synchronous": (log("{}", HOST_READS), "1 drv cuMemcpyDtoH_v2(p1+0, d1+0, 64) = 0", DOWNLOAD.format("0")),
    "pageable source overwritten": (log("{}", OVERWRITE), PAGEABLE, PAGEABLE.replace("host", "r")),
    "pageable copy of earlier download": (
        log("1 drv cuMemcpyDtoHAsync_v2(host+4096, d1+0, 64, s1) = 0", "{}", "1 drv cuMemcpyHtoDAsync_v2(d2+0, host+4096, 64, s1) = 0"),
        "1 drv cuStreamSynchronize(s1) = 0", ""),
    "synchronous pageable copy waits before": (log(DOWNLOAD.format("0"), "1 drv cuMemcpyHtoD{}", HOST_READS),
                                               "_v2(d2+0, host+4096, 64) = 0", "Async_v2(d2+0, host+4096, 64, 0) = 0"),
    "synchronous pageable copy may be on its way": (
        log("1 drv cuMemcpyHtoD_v2(d1+0, host+4096, 64) = 0", "{}", READ.format("s1")), "1 drv cuStreamSynchronize(0) = 0", ""),
    "device copies do not wait": (log("1 drv cuMemcpyDtoD_v2(d1+0, d3+0, 64) = 0", "{}", READ.format("s1")),
                                  wait("e1", "0", "s1"), ""),
    "to pageable memory": (log("1 drv cuMemcpyDtoH{}", "1 note reads(host+4096, 8) = 0"),
                           "_v2(host+4096, d1+0, 64) = 0", "Async_v2(host+4096, d1+0, 64, s1) = 0"),
    "within the host": (log("1 drv cuMemcpyAsync({}, p2+0, 64, s1) = 0", "1 note writes(p2+0, 64) = 0"), "p1+0", "d1+0"),
    "memset of page-locked memory": (log("1 drv cuMemsetD8{}", HOST_READS), "_v2(p1+0, 1, 64) = 0", "Async(p1+0, 1, 64, 0) = 0"),
    "rows side by side": (log("1 drv cuMemsetD2D32Async(d1+0, 64, 0, 8, 4, s1) = 0",
                              "1 drv cuMemcpy2DAsync_v2(*, s2) = 0 reads d1+{}:32*4/64 writes d2+0:32*4/32"), "32", "28"),
    "registered memory is host memory": (log("1 drv cuMemcpyDtoHAsync_v2(r+4096, d1+0, 64, s1) = 0", "{}",
                                             "1 note reads(host+4100, 4) = 0"), "1 drv cuStreamSynchronize(s1) = 0", ""),
    "batch": (log("1 drv cuMemcpyBatchAsync(*, *, *, 1, *, *, 1, *, s1) = 0 {} host+4096:64 writes d1+0:64", OVERWRITE),
              "takes", "reads"),
    # kernels, host functions, values
    "kernel operands": (log("1 drv cuLaunchKernel(\"gpusim::op\", 1, 1, 1, 1, 1, 1, 0, s1, *, *) = 0 reads d3+0:64 writes d1+0:64",
                            "{}", READ.format("s2")), wait("e1", "s1", "s2"), ""),
    "kernel by its configuration": (log("1 drv cuLaunchKernelEx({}, \"k\", *, *) = 0 writes d1+0:64", READ.format("s2")), "s2", "s1"),
    "host function after a copy": (log(DOWNLOAD.format("s1"), "1 drv cuLaunchHostFunc({}, *, 7) = 0", "3 note starts(7) = 0",
                                       "3 note reads(p1+0, 64) = 0"), "s1", "s2"),
    "copy after a host function": (log("1 drv cuStreamAddCallback(s1, *, 7, 0) = 0", UPLOAD, "3 note starts(7) = 0",
                                       "3 note writes(p1+0, 64) = 0"), "s1", "s2"),
    "host function before a later write": (
        log("1 drv cuLaunchHostFunc(s1, *, 7) = 0", "3 note starts(7) = 0", "3 note reads(p1+0, 64) = 0", "{}", HOST_WRITES),
        "1 drv cuStreamSynchronize(s1) = 0", ""),
    "value of another stream": (log(FILL.format("s1"), "1 drv cuStreamWriteValue32_v2(s1, p9+0, 1, 0) = 0", "{}", READ.format("s2")),
                                "1 drv cuStreamWaitValue32_v2(s2, p9+0, 1, 0) = 0", ""),
    # memory comes and goes
    "free": (log(FILL.format("s1"), "{}", "1 drv cuMemFree_v2(d1+0) = 0"), "1 drv cuStreamSynchronize(s1) = 0", ""),
    "free in stream order": (log("1 drv cuMemAllocAsync(*, 64, s1) = 0 q1+0", "1 drv cuMemsetD8Async(q1+0, 1, 64, s1) = 0",
                                 "1 drv cuMemFreeAsync(q1+0, {}) = 0"), "s1", "s2"),
    "use before the allocation": (log("1 drv cuMemAllocAsync(*, 64, s1) = 0 q1+0", "{}", "1 drv cuMemsetD8Async(q1+0, 1, 64, s2) = 0"),
                                  wait("e1", "s1", "s2"), ""),
    "free of a pool's memory": (log("1 drv cuMemsetD8Async(q1+0, 1, 64, s1) = 0", "{}", "1 drv cuMemFree_v2(q1+0) = 0"),
                                "1 drv cuCtxSynchronize() = 0", ""),
    "use after free": (log("{}", "1 drv cuLaunchKernel(\"k\", 1, 1, 1, 1, 1, 1, 0, s1, *, *) = 0 reads d1+640:4"), "",
                       "1 drv cuMemFree_v2(d1+0) = 0"),
    "free of page-locked memory": (log(UPLOAD.format("s1"), "{}", "1 drv cuMemFreeHost(p1+0) = 0"), "1 drv cuStreamSynchronize(s1) = 0", ""),
    "unregister": (log("1 drv cuMemHostRegister_v2(host+4096, 64, 0) = 0", "1 drv cuMemcpyDtoHAsync_v2(r+4100, d1+0, 8, s1) = 0", "{}",
                       "1 drv cuMemHostUnregister(r+4096) = 0"), "1 drv cuStreamSynchronize(s1) = 0", ""),
    "unmap": (log("1 drv cuMemsetD8Async(v+4096, 1, 64, s1) = 0", "{}", "1 drv cuMemUnmap(v+4096, 64) = 0"),
              "1 drv cuStreamSynchronize(s1) = 0", ""),
    "map again": (log("1 drv cuMemUnmap(v+4096, 64) = 0", "{}", "1 drv cuMemsetD8Async(v+4096, 1, 64, s1) = 0"),
                  "1 drv cuMemMap(gone+4096, 64, 0, *, 0) = 0", ""),
    # captures and graphs
    "captured work is not done": (log(FILL.format("s2"), "1 drv cuStreamBeginCapture_v2(s1, 0) = 0", FILL.format("s1"),
                                      "1 drv cuStreamEndCapture(s1, *) = 0 g5", "1 drv cuGraphInstantiateWithFlags(*, g5, 0) = 0 g6",
                                      "{}"), "", "1 drv cuGraphLaunch(g6, s1) = 0"),
    "a stream joins the capture": (log("1 drv cuStreamBeginCapture_v2(s1, 0) = 0", "{}", FILL.format("s2"), wait("e2", "s2", "s1"),
                                       "1 drv cuStreamEndCapture(s1, *) = 0 g5", READ.format("s4")), wait("e1", "s1", "s2"), ""),
    "launches of one graph": (log("1 drv cuGraphCreate(*, 0) = 0 g5", "1 drv cuGraphAddMemsetNode(*, g5, *, 0, *, c1) = 0 writes d1+0:64",
                                  "1 drv cuGraphInstantiateWithFlags(*, g5, 0) = 0 g6", "1 drv cuGraphInstantiateWithFlags(*, g5, 0) = 0 g7",
                                  "1 drv cuGraphLaunch(g6, s1) = 0", "1 drv cuGraphLaunch({}, s2) = 0"), "g6", "g7"),
    "a failed capture ends": (log("1 drv cuStreamBeginCapture_v2(s1, 0) = 0", "1 drv cuStreamEndCapture(s1, *) = {}",
                                  FILL.format("s1"), READ.format("s2")), "908", "901"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_order(name):
    template, there, missing = CASES[name]
    assert check(template.replace("{}", there)) == []
    assert len(check(template.replace("{}", missing))) == 1


@pytest.mark.parametrize("name, conflict", [
    ("event", "read of what is written"), ("pinned source reused", "write of what is read"), ("launches of one graph", "both write"),
    ("free", "freed while in use"), ("use after free", "use after free"),
])
def test_the_conflict_is_named(name, conflict):
    template, _, missing = CASES[name]
    assert check(template.replace("{}", missing)) == [conflict]
