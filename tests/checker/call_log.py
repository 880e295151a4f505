"""Reads the simulated GPU's call log (GPUSIM_LOG with GPUSIM_LOG_ADDRESSES=1): one Call per line.

A line is `thread layer name(argument, ...) = result extras`. Only driver calls and notes
count here; the runtime stand-in's own lines (rt) say nothing that its driver calls do not say. With
GPUSIM_LOG_ADDRESSES=1 a line also has

- addresses that the default log leaves out: host+1402 pageable, r+1402 registered, v+1402 mapped by
  cuMemMap; d5+64 device, q5+64 from a pool, m5+64 managed, i5+64 another process's and
  p5+64 page-locked memory are ordinals,
- `_per_thread` behind the name of a call whose stream 0 is the thread's own,
- as extras the handle or memory that the call made (s3, e1, c1, d5+0, g1402), and what its work accesses
  where the arguments do not show it: `reads d5+0:40`, `writes d5+0:4*3/16` (3 rows of 4 bytes, 16 apart),
  `takes host+1402:8` (read before the call returns),
- notes: `reads(p2+0, 16)` and `writes(...)` of the program's own accesses (gpusim_note_access) and
  `starts(argument)` on the thread of host functions.
"""

import re
import typing

LINE = re.compile(r"(\d+) (drv|note) (\w+)\((.*)\) = (\d+)(?: (.*))?$")
PLACE = re.compile(r"([a-z]+)(\d*)\+(\d+)$")
ROWS = re.compile(r"(.*):(\d+)(?:\*(\d+)/(\d+))?$")
HOST, PINNED, DEVICE, GONE = "pageable", "page-locked", "device", "freed"
KINDS = {"host": HOST, "r": PINNED, "p": PINNED, "gone": GONE}
PER_THREAD = "_per_thread"


class Call(typing.NamedTuple):
    line: int
    thread: int
    layer: str
    name: str
    per_thread: bool
    args: list
    result: int
    extras: list

    @property
    def made(self):
        """What the call made: the first extra."""
        return self.extras[0] if self.extras and self.extras[0] not in ("reads", "writes", "takes") else None


class Range(typing.NamedTuple):
    """Bytes of one space: an allocation (d5), host memory by address, or mapped memory by address."""
    space: str
    start: int
    end: int
    kind: str


def place(text):
    """(space, offset, kind) of d5+64, or None for what is no memory."""
    match = PLACE.match(text)
    if not match:
        return None
    letters, ordinal, offset = match.groups()
    space = "host" if letters == "r" else letters + ordinal
    return space, int(offset), KINDS.get(letters, DEVICE)


def ranges(text, size, rows=1, pitch=0):
    """The bytes of `rows` rows of `size` bytes from text on; nothing where text is no memory."""
    where = place(text)
    if not where or not size or not rows:
        return []
    space, start, kind = where
    if rows > 1 and pitch == size:
        size, rows = size * rows, 1
    return [Range(space, start + row * pitch, start + row * pitch + size, kind) for row in range(rows)]


def noted(call, *words):
    """The ranges that stand as extras behind one of these words. A size of 0 is not known: one byte counts."""
    found = []
    for word, text in zip(call.extras, call.extras[1:]):
        match = word in words and ROWS.match(text)
        if match:
            where, size, rows, pitch = match.groups()
            found += ranges(where, max(int(size), 1), int(rows or 1), int(pitch or 0))
    return found


def read(lines):
    """The calls of a log that may matter, in its order: each line stands where its call returned."""
    for number, text in enumerate(lines, 1):
        if " rt " in text[:12]:
            continue
        match = LINE.match(text)
        if not match:
            continue
        thread, layer, name, args, result, extras = match.groups()
        per_thread = name.endswith(PER_THREAD)
        if per_thread:
            name = name[:-len(PER_THREAD)]
        yield Call(number, int(thread), layer, name, per_thread, args.split(", "), int(result),
                   extras.split() if extras else [])
