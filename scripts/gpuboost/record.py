"""Reads a run directory (docs/record.md). A line that was cut, or is of an unknown kind, is passed over."""

import json
import os

FORMAT = 1
LIBRARY_CODE = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3")


class Run:
    """One run: its first line, devices, sites by id, the last snapshot and how it ended."""

    def __init__(self, path):
        self.path = path
        self.run, self.stacks, self.snapshot, self.end = {}, {}, {}, None
        self.devices, self.sites = {}, {}

    @property
    def totals(self):
        return self.snapshot.get("totals", {})

    @property
    def device(self):
        return self.devices.get(min(self.devices), "") if self.devices else ""

    @property
    def span_ns(self):
        """From the first kernel to the last time the GPU was seen dry; None when not known."""
        first, last = self.totals.get("first_enqueue_ns"), self.totals.get("last_drain_ns")
        return last - first if first and last and last > first else None


def read(path):
    """The run in a directory; OSError when there is none. Only the last snapshot is parsed."""
    run, snapshot = Run(path), b""
    with open(os.path.join(path, "record.jsonl"), "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            if line.startswith(b'{"type":"snapshot"'):
                snapshot = line
            else:
                _take(run, _parse(line))
    run.snapshot = _parse(snapshot)
    return run


def _parse(line):
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _take(run, line):
    kind = line.get("type")
    if kind == "run":
        run.run = line
    elif kind == "stacks":
        run.stacks = line
    elif kind == "device":
        run.devices[line.get("ordinal", 0)] = line.get("name", "")
    elif kind == "site" and "id" in line:
        run.sites[line["id"]] = line
    elif kind == "end":
        run.end = line


def runs_in(folder):
    """Run directories in a folder, newest first."""
    found = []
    for entry in _entries(folder):
        try:
            found.append((os.stat(os.path.join(entry.path, "record.jsonl")).st_mtime, entry.path))
        except OSError:
            continue
    return [path for _, path in sorted(found, reverse=True)]


def runs_since(folder, seconds):
    """Run directories with a record written since then (one second of grace for coarse clocks)."""
    return [path for path in runs_in(folder)
            if os.stat(os.path.join(path, "record.jsonl")).st_mtime >= seconds - 1]


def _entries(folder):
    try:
        return [entry for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []


def user_frame(site):
    """The innermost frame outside installed packages and the standard library, else the innermost."""
    frames = site.get("frames") or []
    for frame in frames:
        name = frame.get("file", "")
        if not any(mark in name for mark in LIBRARY_CODE) and not name.startswith("<frozen "):
            return frame
    return frames[0] if frames else None


def places(run):
    """Sites of the last snapshot, those of one line together, most GPU idle time first."""
    merged = {}
    for counts in run.snapshot.get("sites", []):
        site = run.sites.get(counts.get("id"), {})
        frame = user_frame(site)
        key = (frame["file"], frame.get("line"), frame.get("func")) if frame else (counts.get("id"),)
        place = merged.setdefault(key, {"frame": frame, "site": site, "idle_ns": 0, "blocked_ns": 0,
                                        "queued_ns": None, "transfer_ns": None, "unsplit_ns": 0, "names": {}})
        for name in ("idle_ns", "blocked_ns", "unsplit_ns"):
            place[name] += counts.get(name) or 0
        for name in ("queued_ns", "transfer_ns"):
            if counts.get(name) is not None:
                place[name] = (place[name] or 0) + counts[name]
        call = site.get("call") or "various"
        place["names"][call] = place["names"].get(call, 0) + (counts.get("calls") or 0)
    return sorted(merged.values(), key=lambda place: (-place["idle_ns"], -place["blocked_ns"]))
