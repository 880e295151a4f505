"""Reads a run directory (docs/record.md). A line that was cut, or is of an unknown kind, is passed over."""

import glob
import json
import os

FORMAT = 1
LIBRARY_CODE = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3")
SNAPSHOT = b'{"type":"snapshot"'  # as the library writes it


class Run:
    """One run: its first line, devices, sites by id, the last snapshot and how it ended."""

    def __init__(self, path):
        self.path = path
        self.run, self.stacks, self.snapshot, self.end = {}, {}, {}, None
        self.devices, self.sites = {}, {}

    @property
    def totals(self):
        return self.snapshot.get("totals") or {}

    @property
    def counts(self):
        return self.snapshot.get("counts") or {}

    @property
    def device(self):
        """The name of the first device, or None."""
        return self.devices[min(self.devices)] if self.devices else None

    @property
    def span_ns(self):
        """From the first kernel to the last time the GPU was seen dry, or else to the snapshot; None: not known."""
        first, last = self.totals.get("first_enqueue_ns"), self.totals.get("last_drain_ns")
        if last is None and None not in (self.run.get("start_monotonic_ns"), self.snapshot.get("t_ns")):
            last = self.run["start_monotonic_ns"] + self.snapshot["t_ns"]
        return last - first if first and last and last > first else None

    def option(self, name):
        """The value of an option as text, "" when it is not known."""
        return str((self.run.get("config") or {}).get(name, {}).get("value", ""))


def read(path):
    """The run in a directory; OSError when there is none. Of the snapshots only the last is parsed."""
    run, snapshot = Run(path), b""
    with open(os.path.join(path, "record.jsonl"), "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            if line.startswith(SNAPSHOT):
                snapshot = line
            else:
                _take(run, _parse(line))
    run.snapshot = _parse(snapshot) or run.snapshot
    return run


def _parse(line):
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _take(run, line):
    kind = line.get("type")
    if kind in ("run", "stacks", "snapshot", "end"):
        setattr(run, kind, line)
    elif kind == "device" and line.get("name"):
        run.devices[line.get("ordinal", 0)] = line["name"]
    elif kind == "site" and "id" in line:
        run.sites[line["id"]] = line


def find(pattern):
    """Run directories that match, those the library numbered because the name was taken as well; newest first."""
    found = []
    for file in {*glob.glob(f"{pattern}/record.jsonl"), *glob.glob(f"{pattern}.[0-9]*/record.jsonl")}:
        try:
            found.append((os.stat(file).st_mtime_ns, os.path.dirname(file)))
        except OSError:
            continue
    return [path for _, path in sorted(found, reverse=True)]


def begun_since(pattern, unix_ns):
    """Is there a run that made its first CUDA call since then?"""
    return any(_begin_ns(path) >= unix_ns for path in find(pattern))


def _begin_ns(path):
    try:
        with open(os.path.join(path, "record.jsonl"), "rb") as file:
            return _parse(file.readline(1 << 20)).get("start_unix_ns") or 0
    except OSError:
        return 0


def user_frame(site):
    """The innermost frame outside installed packages and the standard library, else the innermost."""
    frames = site.get("frames") or []
    for frame in frames:
        name = frame.get("file") or ""
        if not any(mark in name for mark in LIBRARY_CODE) and not name.startswith("<frozen "):
            return frame
    return frames[0] if frames else None


def places(run):
    """Sites of the last snapshot, those of one line together, most GPU idle time first."""
    merged = {}
    for counts in run.snapshot.get("sites") or []:
        site = run.sites.get(counts.get("id"), {})
        frame = user_frame(site)
        key = (frame.get("file"), frame.get("line"), frame.get("func")) if frame else (counts.get("id"),)
        place = merged.setdefault(key, {
            "frame": frame, "site": site, "site_idle_ns": -1, "idle_ns": 0, "blocked_ns": 0, "queued_ns": None,
            "transfer_ns": None, "unsplit_ns": 0, "bytes": 0, "staged": 0, "elided": 0, "names": {}})
        for name in ("idle_ns", "blocked_ns", "unsplit_ns", "staged", "elided"):
            place[name] += counts.get(name) or 0
        if site.get("family") == "copy":
            place["bytes"] += counts.get("bytes") or 0
        for name in ("queued_ns", "transfer_ns"):
            if counts.get(name) is not None:
                place[name] = (place[name] or 0) + counts[name]
        if (counts.get("idle_ns") or 0) > place["site_idle_ns"]:
            place["site"], place["site_idle_ns"] = site, counts.get("idle_ns") or 0
        call = site.get("call") or "various"
        place["names"][call] = place["names"].get(call, 0) + (counts.get("calls") or 0)
    return sorted(merged.values(), key=lambda place: (-place["idle_ns"], -place["blocked_ns"]))
