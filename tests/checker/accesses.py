"""Which accesses of memory nothing orders: vector clocks, and the last accesses of every byte.

An Op is one operation of an actor (a stream or the host). Its clock says how many operations of each actor
are known to be complete when it starts; so a is before b when b's clock counts a.
"""

import bisect


class Op:
    """One operation: the count-th of its actor. `frees`: the memory it writes is gone afterwards; `late`: its
    accesses are noted when later operations are in the log already (a host function)."""
    __slots__ = ("actor", "count", "clock", "line", "call", "frees", "late")

    def __init__(self, actor, count, clock, line, call):
        self.actor, self.count, self.clock = actor, count, {**clock, actor: count}
        self.line, self.call, self.frees, self.late = line, call, False, False

    def before(self, other):
        return other.clock.get(self.actor, 0) >= self.count


def join(clock, other):
    """What is known by both together. Clocks are never changed, so they can be shared."""
    if clock is other:
        return clock
    later = {actor: count for actor, count in other.items() if clock.get(actor, 0) < count}
    return {**clock, **later} if later else clock


class Segment:
    """Bytes start to end, all accessed alike: the last write, and each actor's last read since."""
    __slots__ = ("start", "end", "writer", "readers")

    def __init__(self, start, end, writer=None, readers=()):
        self.start, self.end, self.writer, self.readers = start, end, writer, dict(readers)

    def cut(self, at):
        """Keeps what is before `at`, gives the rest."""
        rest = Segment(at, self.end, self.writer, self.readers)
        self.end = at
        return rest


class Space:
    """The segments of one allocation, sorted, without overlap; bytes that nothing accessed are in none."""

    def __init__(self):
        self.starts, self.segments = [], []

    def take(self, start, end):
        """The segments that make up start to end, gaps filled, as (index, list); they stay in place."""
        starts, segments = self.starts, self.segments
        first = bisect.bisect_right(starts, start) - 1
        if first < 0 or segments[first].end <= start:
            first += 1
        elif segments[first].start < start:
            self.insert(first + 1, segments[first].cut(start))
            first += 1
        index, at = first, start
        while at < end:
            if index == len(segments) or segments[index].start > at:
                stop = min(end, segments[index].start) if index < len(segments) else end
                self.insert(index, Segment(at, stop))
            elif segments[index].end > end:
                self.insert(index + 1, segments[index].cut(end))
            at = segments[index].end
            index += 1
        return first, segments[first:index]

    def insert(self, index, segment):
        self.starts.insert(index, segment.start)
        self.segments.insert(index, segment)

    def merge(self, first, count, writer):
        """Makes one segment, just written, of some that follow each other."""
        end = self.segments[first + count - 1].end
        self.segments[first:first + count] = [Segment(self.segments[first].start, end, writer)]
        self.starts[first + 1:first + count] = []


EVERYTHING = 1 << 63


class Accesses:
    """Takes every access in the order of the log; `report(earlier op, later op, space, start, end, what)`."""

    def __init__(self, report):
        self.report = report
        self.spaces = {}

    def space(self, name):
        if name not in self.spaces:
            self.spaces[name] = Space()
        return self.spaces[name]

    def check(self, old, op, name, segment, what):
        if old is None or old is op:
            return
        if old.frees and not op.before(old):
            self.report(old, op, name, segment, "use after free")
        elif not old.before(op) and not op.before(old):
            self.report(old, op, name, segment, what)

    def read(self, name, start, end, op):
        for segment in self.space(name).take(start, end)[1]:
            self.check(segment.writer, op, name, segment, "read of what is written")
            last = segment.readers.get(op.actor)
            if last is None or last.count < op.count:
                segment.readers[op.actor] = op

    def write(self, name, start, end, op, keep=False):
        """`keep`: only looks for conflicts, the bytes stay as they were."""
        space = self.space(name)
        first, segments = space.take(start, end)
        overtaken = False
        for segment in segments:
            self.check(segment.writer, op, name, segment, "freed while in use" if op.frees else "both write")
            for reader in segment.readers.values():
                self.check(reader, op, name, segment, "freed while in use" if op.frees else "write of what is read")
                overtaken = overtaken or op.late and op is not reader and op.before(reader)
            overtaken = overtaken or op.late and segment.writer not in (None, op) and op.before(segment.writer)
        if not keep and not overtaken:
            space.merge(first, len(segments), op)

    def forget(self, name, start, end):
        """New memory at an old address."""
        if name in self.spaces:
            space = self.spaces[name]
            first, segments = space.take(start, end)
            del space.segments[first:first + len(segments)], space.starts[first:first + len(segments)]
