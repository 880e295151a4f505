"""What each call of the log accesses, and which order it makes: the copies, memsets and frees are here.

The texts: [sync] CUDA Driver API, "API synchronization behavior"; [guide] CUDA C++ Programming Guide; else the
call's own page. Streams, events and captures are in ordering.py.
"""

import collections

import call_log
from accesses import EVERYTHING, Accesses
from call_log import DEVICE, GONE, HOST, PINNED
from ordering import Graph, Ordering

SMALL_BYTES = 65536  # [guide]: copies of 64 KB or less from host to device do not wait
WRONG_THREAD = 908   # the one answer of cuStreamEndCapture that leaves the capture open
ELEMENT_BYTES = {"D8": 1, "D16": 2, "D32": 4}


class Checker:
    def __init__(self, as_seen=False, threads=False, refilled=False):
        self.order = Ordering(one_host=not threads)
        self.accesses = Accesses(self.report)
        self.as_seen, self.refilled = as_seen, refilled
        self.pairs = {}
        self.host_functions = collections.defaultdict(collections.deque)  # argument -> operations to come
        self.running = {}  # thread of host functions -> its operation, None when it is not known
        self.registered = {}  # where -> bytes
        self.released = {}  # address -> clock of the last cuStreamWriteValue
        self.handlers = {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("do_")}
        self.handlers.update(self.families())

    def run(self, lines):
        for call in call_log.read(lines):
            handler = self.handlers.get(call.name)
            if handler and (call.result == 0 or call.name == "cuStreamEndCapture"):
                handler(call)

    # --- what is found ---

    def report(self, old, op, space, segment, what):
        key = old.line, op.line, old.actor, op.actor, space
        pair = self.pairs.get(key)
        if pair:
            pair["start"], pair["end"] = min(pair["start"], segment.start), max(pair["end"], segment.end)
            return
        names = self.order.actors
        self.pairs[key] = {
            "line_a": old.line, "call_a": old.call, "by_a": names[old.actor],
            "line_b": op.line, "call_b": op.call, "by_b": names[op.actor],
            "space": space, "start": segment.start, "end": segment.end, "conflict": what,
            "missing": self.missing(old, op, what),
        }

    def missing(self, old, op, what):
        a, b = self.order.actors[old.actor], self.order.actors[op.actor]
        if what == "use after free":
            return f"the memory was gone in line {old.line}"
        if op.actor not in self.order.kinds:
            return f"{b} has not waited for {a}"
        kinds = {self.order.kinds.get(old.actor), self.order.kinds[op.actor]}
        why = ", a non-blocking stream does not join the legacy one" if kinds == {"legacy", "non-blocking"} else ""
        return f"{b} does not wait for {a}: no event and no host wait between them{why}"

    def found(self):
        return sorted(self.pairs.values(), key=lambda pair: (pair["line_b"], pair["line_a"]))

    # --- accesses ---

    def access(self, op, how, ranges):
        touch = self.accesses.read if how == "reads" else self.accesses.write
        for space, start, end, kind in ranges:
            if kind != GONE:
                touch(space, start, end, op)
                continue
            freed = self.accesses.space("gone")
            self.report(op, op, "gone", freed.take(start, end)[1][0], "use after free")

    def work(self, call, stream, reads=(), writes=()):
        """Enqueues an operation with these accesses, or adds it to the stream's capture."""
        if stream.capture:
            stream.capture.nodes += [("reads", reads), ("writes", writes)]
            return None
        op = self.order.enqueue(call, stream)
        self.access(op, "reads", reads)
        self.access(op, "writes", writes)
        return op

    # --- [sync] copies ---

    def copy(self, call, stream, source, target, sync):
        if not source or not target:
            return
        kinds = source[0].kind, target[0].kind
        if stream.capture:
            self.work(call, stream, source, target)
        elif kinds == (HOST, DEVICE):
            self.copy_pageable(call, stream, source, target, sync)
        else:
            if self.refilled and kinds == (PINNED, DEVICE):
                self.access(self.order.host_op(call), "writes", source)
            op = self.work(call, stream, source, target)
            within_host = DEVICE not in kinds
            pageable = HOST in kinds and self.as_seen
            if within_host or pageable or sync and kinds != (DEVICE, DEVICE):
                self.order.host_knows(call, op.clock)

    def copy_pageable(self, call, stream, source, target, sync):
        """From pageable memory: the source has been read when the call returns, the target may be written later.
        The synchronous form waits for the stream before; the other "may". As seen: it does above 64 KB."""
        if self.as_seen and sum(r.end - r.start for r in source) > SMALL_BYTES:
            self.order.host_knows(call, self.work(call, stream, source, target).clock)
            return
        if sync:
            self.order.wait_stream(call, stream)
        self.access(self.order.host_op(call), "reads", source)
        self.work(call, stream, (), target)

    def linear(self, target, source, size, stream=None):
        """A handler of copies; the arguments are the places of the call's."""
        def handle(call):
            size_bytes = int(call.args[size])
            on = self.order.stream(call, "0" if stream is None else call.args[stream])
            self.copy(call, on, call_log.ranges(call.args[source], size_bytes),
                      call_log.ranges(call.args[target], size_bytes), stream is None)
        return handle

    def boxes(self, stream=None):
        def handle(call):
            on = self.order.stream(call, "0" if stream is None else call.args[stream])
            self.copy(call, on, call_log.noted(call, "reads"), call_log.noted(call, "writes"), stream is None)
        return handle

    def fills(self, element_bytes, rows, asynchronous):
        """Memsets wait for nothing, but for page-locked targets of the form without Async."""
        def handle(call):
            args = list(call.args)
            on = self.order.stream(call, args.pop() if asynchronous else "0")
            pitch, width, height = (int(args[1]), args[3], int(args[4])) if rows else (0, args[2], 1)
            writes = call_log.ranges(args[0], int(width) * element_bytes, height, pitch)
            op = self.work(call, on, (), writes)
            if op and not asynchronous and writes and writes[0].kind == PINNED:
                self.order.host_knows(call, op.clock)
        return handle

    def families(self):
        handlers = {
            "cuMemcpy": self.linear(0, 1, 2), "cuMemcpyAsync": self.linear(0, 1, 2, 3),
            "cuMemcpyPeer": self.linear(0, 2, 4), "cuMemcpyPeerAsync": self.linear(0, 2, 4, 5),
            "cuMemcpy2D_v2": self.boxes(), "cuMemcpy2DUnaligned_v2": self.boxes(), "cuMemcpy3D_v2": self.boxes(),
            "cuMemcpy2DAsync_v2": self.boxes(1), "cuMemcpy3DAsync_v2": self.boxes(1),
            "cuLaunchKernel": self.kernel(8), "cuLaunchCooperativeKernel": self.kernel(8),
            "cuLaunchKernelEx": self.kernel(0),
        }
        for way in ("HtoD", "DtoH", "DtoD"):
            handlers[f"cuMemcpy{way}_v2"] = self.linear(0, 1, 2)
            handlers[f"cuMemcpy{way}Async_v2"] = self.linear(0, 1, 2, 3)
        for element, size in ELEMENT_BYTES.items():
            handlers[f"cuMemset{element}_v2"] = self.fills(size, False, False)
            handlers[f"cuMemset{element}Async"] = self.fills(size, False, True)
            handlers[f"cuMemsetD2{element}_v2"] = self.fills(size, True, False)
            handlers[f"cuMemsetD2{element}Async"] = self.fills(size, True, True)
        return handlers

    def do_cuMemcpyBatchAsync(self, call):
        taken = call_log.noted(call, "takes")
        if taken:
            self.access(self.order.host_op(call), "reads", taken)
        self.work(call, self.order.stream(call, call.args[-1]), call_log.noted(call, "reads"),
                  call_log.noted(call, "writes"))

    # --- kernels, host functions, notes ---

    def kernel(self, stream):
        def handle(call):
            self.work(call, self.order.stream(call, call.args[stream]), call_log.noted(call, "reads"),
                      call_log.noted(call, "writes"))
        return handle

    def do_cuLaunchHostFunc(self, call):
        stream, argument = self.order.stream(call, call.args[0]), call.args[2]
        if stream.capture:
            stream.capture.nodes.append(("host function", argument))
        else:
            self.expect_host_function(self.order.enqueue(call, stream), argument)

    do_cuStreamAddCallback = do_cuLaunchHostFunc

    def expect_host_function(self, op, argument):
        op.late = True
        self.host_functions[argument].append(op)

    def do_starts(self, call):
        waiting = self.host_functions[call.args[0]]
        self.running[call.thread] = waiting.popleft() if waiting else None

    def do_reads(self, call):
        op = self.running[call.thread] if call.thread in self.running else self.order.host_op(call)
        if op:
            self.access(op, call.name, call_log.ranges(call.args[0], int(call.args[1])))

    do_writes = do_reads

    def do_cuStreamWriteValue32_v2(self, call, size=4):
        op = self.work(call, self.order.stream(call, call.args[0]), (), call_log.ranges(call.args[1], size))
        if op:
            self.released[call.args[1]] = op.clock

    def do_cuStreamWriteValue64_v2(self, call):
        self.do_cuStreamWriteValue32_v2(call, 8)

    def do_cuStreamWaitValue32_v2(self, call):
        """Who waits for a value comes after the last one who wrote it: the benefit of the doubt."""
        stream = self.order.stream(call, call.args[0])
        if not stream.capture:
            self.order.enqueue(call, stream, self.released.get(call.args[1], {}))

    do_cuStreamWaitValue64_v2 = do_cuStreamWaitValue32_v2

    # --- memory comes and goes ---

    def free(self, text, op):
        where = call_log.place(text)
        if where and where[2] != GONE:
            op.frees = True
            self.accesses.write(where[0], 0, EVERYTHING, op)

    def do_cuMemAllocAsync(self, call):
        """The memory may be accessed after the allocation only, in stream order."""
        stream = self.order.stream(call, call.args[-1])
        self.work(call, stream, (), call_log.ranges(call.made or "0", int(call.args[1])))

    do_cuMemAllocFromPoolAsync = do_cuMemAllocAsync

    def do_cuMemFreeAsync(self, call):
        stream = self.order.stream(call, call.args[1])
        if not stream.capture:
            self.free(call.args[0], self.order.enqueue(call, stream))

    def do_cuMemFree_v2(self, call):
        """It "may perform implicit synchronization", and does none for memory of a pool."""
        if self.as_seen and not call.args[0].startswith("q"):
            self.order.wait_everything(call)
        self.free(call.args[0], self.order.host_op(call))

    def do_cuMemFreeHost(self, call):
        if self.as_seen:
            self.order.wait_everything(call)
        self.free(call.args[0], self.order.host_op(call))

    def do_cuMemHostRegister_v2(self, call):
        self.registered[call.args[0].replace("host", "r")] = int(call.args[1])

    def do_cuMemHostUnregister(self, call):
        """The memory stays, but nothing may still be on its way to it."""
        if self.as_seen:
            self.order.wait_everything(call)
        op = self.order.host_op(call)
        op.frees = True
        for space, start, end, _ in call_log.ranges(call.args[0], self.registered.pop(call.args[0], 0)):
            self.accesses.write(space, start, end, op, keep=True)

    def do_cuMemUnmap(self, call):
        op = self.order.host_op(call)
        op.frees = True
        for space, start, end, _ in call_log.ranges(call.args[0], int(call.args[1])):
            self.accesses.write(space, start, end, op)

    def do_cuMemMap(self, call):
        for _, start, end, _ in call_log.ranges(call.args[0], int(call.args[1])):
            self.accesses.forget("v", start, end)

    # --- contexts, streams, events, host waits ---

    def do_cuCtxSetCurrent(self, call):
        self.order.set_context(call.thread, call.args[0])

    def do_cuCtxPushCurrent_v2(self, call):
        self.order.current[call.thread].append(call.args[0])

    def do_cuCtxPopCurrent_v2(self, call):
        del self.order.current[call.thread][-1:]

    def do_cuCtxCreate_v2(self, call):
        self.order.current[call.thread].append(call.made)

    do_cuCtxCreate_v3 = do_cuCtxCreate_v2

    def do_cuCtxDestroy_v2(self, call):
        if self.order.context(call.thread) == call.args[0]:
            del self.order.current[call.thread][-1:]

    def do_cuStreamCreate(self, call):
        if call.made:
            kind = "non-blocking" if int(call.args[1]) & 1 else "blocking"
            self.order.add_stream(call.made, f"stream {call.made}", self.order.context(call.thread), kind)

    do_cuStreamCreateWithPriority = do_cuStreamCreate

    def do_cuEventRecord(self, call):
        self.order.record(call, call.args[0], self.order.stream(call, call.args[1]))

    do_cuEventRecordWithFlags = do_cuEventRecord

    def do_cuStreamWaitEvent(self, call):
        self.order.wait_event(call, self.order.stream(call, call.args[0]), call.args[1])

    def do_cuEventDestroy_v2(self, call):
        self.order.events.pop(call.args[0], None)

    def do_cuEventSynchronize(self, call):
        self.order.host_waits_event(call, call.args[0])

    do_cuEventQuery = do_cuEventSynchronize

    def do_cuEventElapsedTime(self, call):
        for event in call.args[1:3]:
            self.order.host_waits_event(call, event)

    do_cuEventElapsedTime_v2 = do_cuEventElapsedTime

    def do_cuStreamSynchronize(self, call):
        self.order.wait_stream(call, self.order.stream(call, call.args[0]))

    do_cuStreamQuery = do_cuStreamSynchronize

    def do_cuCtxSynchronize(self, call):
        self.order.wait_context(call, self.order.context(call.thread))

    # --- captures and graphs ---

    def do_cuStreamBeginCapture_v2(self, call):
        self.order.begin_capture(self.order.stream(call, call.args[0]))

    def do_cuStreamBeginCaptureToGraph(self, call):
        self.order.begin_capture(self.order.stream(call, call.args[0]), call.args[1])

    def do_cuStreamEndCapture(self, call):
        if call.result != WRONG_THREAD:
            self.order.end_capture(self.order.stream(call, call.args[0]), call.made)

    def do_cuGraphCreate(self, call):
        self.order.graphs[call.made] = []

    def do_cuGraphClone(self, call):
        self.order.graphs[call.made] = list(self.order.graphs.get(call.args[1], []))

    def do_cuGraphAddMemcpyNode(self, call):
        self.order.graphs.setdefault(call.args[1], []).extend(
            (how, call_log.noted(call, how)) for how in ("reads", "writes"))

    do_cuGraphAddMemsetNode = do_cuGraphAddKernelNode_v2 = do_cuGraphAddMemcpyNode

    def do_cuGraphAddChildGraphNode(self, call):
        self.order.graphs.setdefault(call.args[1], []).extend(self.order.graphs.get(call.args[4], []))

    def do_cuGraphInstantiateWithFlags(self, call):
        self.order.executables[call.made] = Graph(self.order.graphs.get(call.args[1], []))

    do_cuGraphInstantiateWithParams = do_cuGraphInstantiateWithFlags

    def do_cuGraphExecUpdate_v2(self, call):
        graph = self.order.executables.setdefault(call.args[0], Graph([]))
        graph.nodes = list(self.order.graphs.get(call.args[1], []))

    def do_cuGraphLaunch(self, call):
        op, nodes = self.order.launch(call, call.args[0], self.order.stream(call, call.args[1]))
        for how, what in nodes:
            if how == "host function":
                self.expect_host_function(op, what)
            else:
                self.access(op, how, what)
