"""The probes of `gpuboost prove`, in a process of their own: each tries one assumption that early return and
elision (policies/README.md) stand on, on the GPU that is there.

Prints one JSON object a line: {"device", "ordinals", "driver"} before the first probe of each kind of GPU, then
{"what", "status", "answer", "how"} for each probe, {"end"} behind the last; {"error"} when there is nothing to probe.
Needs only libcuda.so.1.
"""

import ctypes
import itertools
import json
import os
import sys
import threading
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from gpuboost.cuda import (CAPTURE_GLOBAL, CAPTURE_RELAXED, FUSE_S, HOST_PAGE_TABLES,  # noqa: E402
                           UNIFIED_ADDRESSING, VIRTUAL_MEMORY, CudaError, Device, Driver, Hold)
from gpuboost.virtual_memory import Mapping  # noqa: E402

SMALL = 65536  # most bytes of a pageable copy that the driver takes at the call (CUDA C++ Programming Guide)
BIG = 8 << 20
EXPECTED_FUSE_S = 0.05  # of calls that are expected to wait for their stream
PROBES = []
seeds = itertools.count()


class Failed(Exception):
    """The assumption does not hold here."""


class NotAvailable(Exception):
    """There is nothing here to try it on."""


def probe(what, how):
    """Registers a function of a device and another one (or None); it returns the answer in words. In `how`, {held}
    stands for what holds a stream."""
    def register(function):
        PROBES.append((what, how, function))
        return function
    return register


def require(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def still(hold):
    """The stream is held, and has been for a moment in which what must not happen could have happened."""
    time.sleep(0.005)
    require(not hold.blown, f"no answer: something waited {FUSE_S:.0f} s for the held stream")


def fresh(size):
    """Bytes each of which differs from those that the calls before this one gave for its place."""
    seed = next(seeds) * 37
    unit = bytes((seed + i * 7 + i // 251) & 255 for i in range(4093))
    return (unit * (size // len(unit) + 1))[:size]


def overwrite(address, size):
    ctypes.memset(address, 0xEE, size)


class Pageable:
    """Memory that CUDA knows nothing of, at an odd address."""

    def __init__(self, data):
        self.buffer = ctypes.create_string_buffer(len(data) + 4097)
        self.address = (ctypes.addressof(self.buffer) | 1) + 2
        self.size = len(data)
        ctypes.memmove(self.address, data, len(data))


def copy_pageable(device, number, target, source, stream):
    """The two ways in which a runtime may ask for it, in turn."""
    names = ("cuMemcpyHtoDAsync_v2", "cuMemcpyAsync")
    getattr(device.cu, names[number % 2])(target, source.address, source.size, stream)


def send(device, target, data, stream):
    """A copy from page-locked memory; gives the event behind it."""
    source, event = device.pinned(len(data), data), device.event()

    def enqueue():
        device.cu.cuMemcpyHtoDAsync_v2(target, source, len(data), stream)
        device.cu.cuEventRecord(event, stream)
        return event
    return enqueue


# --- what a copy does to its source ---

@probe("a pageable copy of more than 64 KiB has read its source when it returns",
       "64 KiB + 1, 1 MiB and 8 MiB on a stream {held}, source overwritten at once, read back")
def large_copy(device, _):
    waited, drained = 0, 0
    streams = (0, device.stream())
    sizes = (SMALL + 1, 1 << 20, BIG)
    target = device.memory(BIG)
    for number, (stream, size) in enumerate((stream, size) for stream in streams for size in sizes):
        data = fresh(size)
        source = Pageable(data)
        with Hold(device, stream, EXPECTED_FUSE_S) as hold:
            copy_pageable(device, number, target, source, stream)
            waited += hold.blown
            drained += device.is_idle(stream)
            overwrite(source.address, size)
        require(device.read(target, size) == data, f"no: a copy of {size} bytes read its source later")
    if waited == drained == len(streams) * len(sizes):
        return "yes, and its stream has drained"
    return "yes; it does not always wait for its stream here, which nothing relies on"


@probe("one of up to 64 KiB has taken its source when it returns, and waits for nothing",
       "1 byte to 64 KiB on a stream {held}, source overwritten at once, read back")
def small_copy(device, _):
    streams, target = (0, device.stream()), device.memory(SMALL)
    for number, (stream, size) in enumerate((s, n) for s in streams for n in (1, 4, 4096, SMALL - 1, SMALL)):
        data = fresh(size)
        source = Pageable(data)
        with Hold(device, stream) as hold:
            copy_pageable(device, number, target, source, stream)
            overwrite(source.address, size)
            require(not hold.blown, f"no: a copy of {size} bytes waited for its stream")
        require(device.read(target, size) == data, f"no: a copy of {size} bytes read its source later")
    return "yes"


# --- events and the order of streams ---

@probe("an event of work that is not done answers NOT_READY", "event and stream asked while it was {held}")
def unfinished(device, _):
    stream, event = device.stream(), device.event()
    for stream in (0, stream):
        with Hold(device, stream) as hold:
            device.cu.cuEventRecord(event, stream)
            still(hold)
            require(not device.is_done(event) and not device.is_idle(stream), "no: SUCCESS")
        require(device.is_done(event), "no: NOT_READY when all is done")
    return "yes"


@probe("an event behind a copy completes only when the bytes are there",
       "8 MiB of page-locked memory on a stream {held}; read by another stream once the event is complete")
def event_behind_copy(device, _):
    target, stream, data = device.memory(BIG), device.stream(), fresh(BIG)
    enqueue = send(device, target, data, stream)
    device.cu.cuMemsetD8Async(target, 0, BIG, stream)
    with Hold(device, stream) as hold:
        event = enqueue()
        still(hold)
        require(not device.is_done(event), "no: complete while its stream was held")
        hold.let()
        while not device.is_done(event):
            pass
        require(device.read(target, BIG) == data, "no: complete before the bytes were there")
    return "yes"


def check_order(device, first, second, other=None):
    """Does a copy of the second stream, behind a wait for an event of the first, see what the first wrote?"""
    reader, data = other or device, fresh(BIG)
    device.use()
    middle, shared, arrived = device.memory(BIG), device.pinned(BIG), device.event()
    enqueue = send(device, middle, data, first)
    reader.use()
    target, done = reader.memory(BIG), reader.event()
    device.use()
    with Hold(device, first) as hold:
        enqueue()
        if other:
            device.cu.cuMemcpyDtoHAsync_v2(shared, middle, BIG, first)
        device.cu.cuEventRecord(arrived, first)
        reader.use()
        device.cu.cuStreamWaitEvent(second, arrived, 0)
        if other:
            device.cu.cuMemcpyHtoDAsync_v2(target, shared, BIG, second)
        else:
            device.cu.cuMemcpyDtoDAsync_v2(target, middle, BIG, second)
        device.cu.cuEventRecord(done, second)
        still(hold)
        require(not reader.is_done(done), "no: it did not wait")
        device.use()
        hold.let()
        reader.use()
        device.cu.cuEventSynchronize(done)
        require(reader.read(target, BIG) == data, "no: it went on before the bytes were there")
        device.use()


@probe("cuStreamWaitEvent orders another stream of the device behind an event, a non-blocking one too",
       "from and to the legacy, a blocking and a non-blocking stream; the first one {held}")
def wait_orders(device, _):
    blocking, one, two = device.stream(0), device.stream(), device.stream()
    for first, second in ((0, one), (one, 0), (blocking, one), (one, blocking), (one, two)):
        check_order(device, first, second)
    return "yes"


@probe("and a stream of another device", "two devices, bytes handed over in page-locked memory; the first stream {held}")
def wait_orders_devices(device, other):
    if other is None:
        raise NotAvailable("there is no other device, or it cannot be used")
    first = device.stream()
    other.use()
    second = other.stream()
    check_order(device, first, second, other)
    return "yes"


@probe("to record an event again takes nothing away from a wait enqueued before",
       "recorded on a stream {held}, waited for, then recorded on an idle stream")
def recorded_again(device, _):
    first, second, idle = device.stream(), device.stream(), device.stream()
    middle, target, done, data = device.memory(BIG), device.memory(BIG), device.event(), fresh(BIG)
    enqueue = send(device, middle, data, first)
    with Hold(device, first) as hold:
        event = enqueue()
        device.cu.cuStreamWaitEvent(second, event, 0)
        device.cu.cuEventRecord(event, idle)
        device.cu.cuStreamSynchronize(idle)
        device.cu.cuMemcpyDtoDAsync_v2(target, middle, BIG, second)
        device.cu.cuEventRecord(done, second)
        still(hold)
        require(not device.is_done(done), "no: the wait was gone")
        hold.let()
        device.cu.cuEventSynchronize(done)
        require(device.read(target, BIG) == data, "no: the wait ended before the bytes were there")
    return "yes"


# --- device memory of our own ---

@probe("memory of cuMemCreate is source and target of copies, and is free again after cuMemUnmap and cuMemRelease",
       "32 MiB; cuMemGetInfo before and after")
def mapped_memory(device, _):
    if not device.cu.attribute(VIRTUAL_MEMORY, device.ordinal):
        raise NotAvailable("the device has no virtual memory management; copies are not staged in its memory")
    stream, target, data = device.stream(), device.memory(BIG), fresh(BIG)
    source = device.pinned(BIG, data)
    for attempt in range(5):  # other processes may take and give memory meanwhile
        with Mapping(device, 32 << 20) as mapping:
            device.cu.cuMemcpyHtoDAsync_v2(mapping.address + 1, source, BIG, stream)
            device.cu.cuMemcpyDtoDAsync_v2(target, mapping.address + 1, BIG, stream)
            device.cu.cuMemcpyDtoDAsync_v2(mapping.address, target, BIG, stream)
            device.cu.cuStreamSynchronize(stream)
            require(device.read(target, BIG) == data == device.read(mapping.address, BIG), "no: other bytes")
            used = mapping.free_bytes()
        given_back = mapping.free_bytes() - used
        if given_back >= mapping.size:
            return "yes"
    raise Failed(f"no: of {mapping.size} bytes {given_back} came back")


@probe("a copy through device memory overlaps with its stream and lands in the stream's order",
       "8 MiB by a non-blocking stream, event, wait, copy within the device; the program's stream {held} meanwhile")
def through_device_memory(device, _):
    caller, ours, left = device.stream(), device.stream(), device.event()
    staging, target, saved = device.memory(BIG), device.memory(BIG), device.memory(BIG)
    before, data = fresh(BIG), fresh(BIG)
    send(device, target, before, caller)()
    device.cu.cuStreamSynchronize(caller)
    enqueue = send(device, staging, data, ours)
    with Hold(device, caller) as hold:
        device.cu.cuMemcpyDtoDAsync_v2(saved, target, BIG, caller)  # work of the program that reads the target
        arrived = enqueue()
        device.cu.cuStreamWaitEvent(caller, arrived, 0)
        device.cu.cuMemcpyDtoDAsync_v2(target, staging, BIG, caller)
        device.cu.cuEventRecord(left, caller)
        device.cu.cuEventSynchronize(arrived)
        overlaps = not hold.blown
        time.sleep(0.005)
        early = device.read(target, BIG) != before or device.is_done(left)
        require(not early or hold.blown, "no: the target was written before its turn")
        hold.let()
        device.cu.cuEventSynchronize(left)
    require(device.read(target, BIG) == data, "no: other bytes")
    require(device.read(saved, BIG) == before, "no: earlier work of the stream saw the new bytes")
    return "yes" if overlaps else "right bytes, but no overlap: nothing is gained by it here"


# --- the rest ---

@probe("events can be recorded, asked and waited for in relaxed mode while another thread captures globally",
       "a capture of another thread and stream, ended and looked at afterwards")
def beside_a_capture(device, _):
    captured, stream, event = device.stream(), device.stream(), device.event()
    target = device.memory(4096)
    begun, asked, said = threading.Event(), threading.Event(), []

    def capture():
        try:
            device.use()
            device.cu.cuStreamBeginCapture_v2(captured, CAPTURE_GLOBAL)
            begun.set()
            asked.wait()
            device.cu.result("cuMemsetD8Async", target, 1, 4096, captured)
            graph = ctypes.c_uint64(0)
            device.cu.cuStreamEndCapture(captured, ctypes.byref(graph))  # says whether all went well
            device.cu.cuGraphDestroy(graph)
        except CudaError as error:
            said.append(error)
        begun.set()

    other = threading.Thread(target=capture, daemon=True)
    other.start()
    begun.wait()
    mode = ctypes.c_int(CAPTURE_RELAXED)
    device.cu.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        device.cu.cuEventRecord(event, stream)
        device.cu.cuStreamWaitEvent(stream, event, 0)
        device.is_done(event)
        device.cu.cuEventSynchronize(event)
    finally:
        device.cu.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        asked.set()
        other.join()
    require(not said, f"no: the capture broke: {said and said[0]}")
    return "yes"


@probe("pageable memory is not the GPU's own: it is no coherent system", "attributes of the device")
def not_coherent(device, _):
    require(device.cu.attribute(UNIFIED_ADDRESSING, device.ordinal), "no: it has no unified addresses")
    require(not device.cu.attribute(HOST_PAGE_TABLES, device.ordinal),
            "no: the GPU reads pageable memory by the host's page tables")
    return "yes"


def run(device, other, what, how, function):
    """One probe: what is printed of it."""
    try:
        device.use()
        try:
            status, answer = "ok", function(device, other)
        finally:
            for used in filter(None, (other, device)):
                used.clean()
    except NotAvailable as reason:
        status, answer = "n.a.", str(reason)
    except (Failed, CudaError) as reason:
        status, answer = "FAILED", str(reason)
    return {"what": what, "status": status, "answer": answer, "how": how}


def other_device(device, count):
    """The next device, or None."""
    try:
        return Device(device.cu, (device.ordinal + 1) % count) if count > 1 else None
    except CudaError:  # another process may have it for itself
        return None


def run_all(cu, say):
    """Every kind of GPU that is there, each on the first of its name."""
    cu.cuInit(0)
    count = cu.get("cuDeviceGetCount", kind=ctypes.c_int)
    if not count:
        raise CudaError("the driver shows no device")
    kinds = {}
    for ordinal in range(count):
        kinds.setdefault(cu.name_of(ordinal), []).append(ordinal)
    version = cu.get("cuDriverGetVersion", kind=ctypes.c_int)
    for name, ordinals in kinds.items():
        say({"device": name.decode("latin-1"), "ordinals": ordinals, "driver": version})
        device = Device(cu, ordinals[0])
        other = other_device(device, count)
        for entry in PROBES:
            result = run(device, other, *entry)
            result["how"] = result["how"].format(held=f"held by {Hold.means(device)}")
            say(result)
        say({"end": True})
        for used in filter(None, (other, device)):
            try:
                used.clean(everything=True)
                cu.cuDevicePrimaryCtxRelease_v2(used.ordinal)
            except CudaError:
                pass  # it goes with the process


def main():
    def say(line):
        print(json.dumps(line), flush=True)
    try:
        run_all(Driver(), say)
    except (OSError, CudaError) as error:
        say({"error": str(error)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
