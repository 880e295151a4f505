"""What comes after what in a CUDA program, by NVIDIA's text alone: contexts, streams, events, waits, captures.

The texts: [stream] "Stream synchronization behavior", [event] cuEventRecord, cuStreamWaitEvent, cuEventQuery,
[func] cuLaunchHostFunc, [graph] cuGraphLaunch, all of the CUDA Driver API; [guide] CUDA C++ Programming Guide.
"""

import collections

from accesses import Op, join


class Stream:
    """One stream: its clock is what its next operation comes after."""

    def __init__(self, actor, name, context, kind):
        self.actor, self.name, self.context, self.kind = actor, name, context, kind
        self.clock, self.count, self.capture = {}, 0, None


class Capture:
    """What a capture has collected: ("reads" or "writes", ranges) and ("host function", argument)."""

    def __init__(self, nodes=None):
        self.nodes = [] if nodes is None else nodes


class Graph:
    """An executable graph: its nodes, and the clock of its last launch ([graph]: launches follow each other)."""

    def __init__(self, nodes):
        self.nodes, self.clock = list(nodes), {}


class Unknown(Exception):
    """The log lacks something that this needs."""


class Ordering:
    """`one_host`: the program's threads hand over to each other between any two calls. The log does not show
    what they tell each other, so that is the benefit of the doubt."""

    def __init__(self, one_host=True):
        self.one_host = one_host
        self.actors = []            # actor -> its name
        self.kinds = {}             # actor of a stream -> blocking, non-blocking, legacy, per-thread
        self.hosts = {}             # thread -> [actor, clock, count]
        self.current = collections.defaultdict(list)  # thread -> stack of contexts
        self.streams = {}           # handle, or (kind, context, thread) -> Stream
        self.of_context = collections.defaultdict(list)  # context -> its streams
        self.joining = collections.defaultdict(list)     # of these, the legacy one and the blocking ones
        self.events = {}            # handle -> clock or Capture
        self.graphs, self.executables = {}, {}

    # --- the host ---

    def actor(self, name):
        self.actors.append(name)
        return len(self.actors) - 1

    def host(self, thread):
        key = 0 if self.one_host else thread
        if key not in self.hosts:
            self.hosts[key] = [self.actor("the host" if self.one_host else f"host thread {thread}"), {}, 0]
        return self.hosts[key]

    def host_op(self, call):
        """Something that the calling thread does itself, now."""
        host = self.host(call.thread)
        host[2] += 1
        op = Op(host[0], host[2], host[1], call.line, call.name)
        host[1] = op.clock
        return op

    def host_knows(self, call, clock):
        host = self.host(call.thread)
        host[1] = join(host[1], clock)

    # --- contexts ---

    def context(self, thread):
        stack = self.current[thread]
        return stack[-1] if stack else None

    def set_context(self, thread, context):
        stack = self.current[thread]
        del stack[-1:]
        if context != "0":
            stack.append(context)

    # --- streams ---

    def add_stream(self, handle, name, context, kind):
        stream = Stream(self.actor(name), name, context, kind)
        self.kinds[stream.actor] = kind
        self.streams[handle] = stream
        self.of_context[context].append(stream)
        if kind != "non-blocking":
            self.joining[context].append(stream)
        return stream

    def stream(self, call, handle):
        """Stream 0 is the legacy one, or in the per-thread variant of a call the thread's own."""
        if handle == "0":
            handle = "per-thread" if call.per_thread else "legacy"
        if handle not in ("legacy", "per-thread"):
            if handle not in self.streams:
                raise Unknown(f"line {call.line}: stream {handle} was never made; was GPUSIM_LOG_ADDRESSES=1 set?")
            return self.streams[handle]
        context = self.context(call.thread)
        thread = call.thread if handle == "per-thread" else None
        key = handle, context, thread
        if key in self.streams:
            return self.streams[key]
        name = f"the legacy stream of {context}" if thread is None else f"the stream of thread {thread} in {context}"
        return self.add_stream(key, name, context, handle)

    def contents(self, stream):
        """[stream]: an action in the legacy stream first waits on all blocking streams of its context, then they
        all wait on it. Per-thread streams are blocking ones."""
        clock = stream.clock
        if stream.kind != "non-blocking":
            for other in self.joining[stream.context]:
                if "legacy" in (stream.kind, other.kind):
                    clock = join(clock, other.clock)
        return clock

    def enqueue(self, call, stream, *after):
        """An operation comes after the call that enqueues it and the stream's earlier work."""
        clock = join(self.contents(stream), self.host(call.thread)[1])
        for other in after:
            clock = join(clock, other)
        stream.count += 1
        op = Op(stream.actor, stream.count, clock, call.line, call.name)
        stream.clock = op.clock
        return op

    def wait_stream(self, call, stream):
        self.host_knows(call, self.contents(stream))

    def wait_context(self, call, context):
        for stream in list(self.of_context[context]):
            self.host_knows(call, stream.clock)

    def wait_everything(self, call):
        for context in list(self.of_context):
            self.wait_context(call, context)

    # --- events: they stand for what the stream held when they were last recorded ---

    def record(self, call, event, stream):
        self.events[event] = stream.capture or self.enqueue(call, stream).clock

    def wait_event(self, call, stream, event):
        """[guide]: a stream that waits for an event of a capture joins that capture."""
        state = self.events.get(event)
        if isinstance(state, Capture):
            stream.capture = state
        elif stream.capture is None:
            self.enqueue(call, stream, state or {})

    def host_waits_event(self, call, event):
        state = self.events.get(event)
        if state and not isinstance(state, Capture):
            self.host_knows(call, state)

    # --- captures and graphs ---

    def begin_capture(self, stream, graph=None):
        stream.capture = Capture(self.graphs.setdefault(graph, []) if graph else None)

    def end_capture(self, stream, graph):
        capture = stream.capture
        for other in self.streams.values():
            if other.capture is capture:
                other.capture = None
        if capture and graph:
            self.graphs[graph] = capture.nodes

    def launch(self, call, executable, stream):
        """(operation, nodes): all nodes are one operation."""
        graph = self.executables.setdefault(executable, Graph([]))
        op = self.enqueue(call, stream, graph.clock)
        graph.clock = op.clock
        return op, graph.nodes
