"""gpuboost report: what a run recorded, as text."""

import os

from gpuboost import CommandError, library, record

PLACES = 10
DECLINED = "h2d.declined."


def add_arguments(parser):
    parser.add_argument("run", nargs="?", metavar="RUN", help="run directory (default: the newest run)")
    parser.set_defaults(function=main)


def duration(ns):
    """In the unit that leaves at most four digits before the point; n/a for None."""
    if ns is None:
        return "n/a"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= 10 * size or (unit == "us" and ns >= size):
            return f"{ns / size:.1f} {unit}"
    return f"{ns} ns"


def size(count):
    if count is None:
        return "n/a"
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if part is not None and whole else "n/a"


def where(place):
    frame = place["frame"]
    if frame:
        line = f":{frame['line']}" if frame.get("line") else ""
        return f"{frame['file']}{line} ({frame.get('func') or '?'})"
    site = place["site"]
    if site.get("native"):
        return site["native"][0]
    return site.get("module") or "(places beyond the table)"


def head(run):
    info = run.run
    state = "ended by itself" if run.end else "killed, or still running: figures up to the last snapshot"
    rank = f", rank {info['rank']}" if info.get("rank") is not None else ""
    yield f"run      {run.path}"
    yield f"program  {info.get('program', 'n/a')} (pid {info.get('pid', 'n/a')}{rank}), policy {info.get('policy', 'n/a')}, {state}"
    yield f"device   {run.device or 'n/a'}{'   SIMULATED: no figure is that of a real GPU' if run.device.startswith('SIMULATED') else ''}"
    yield f"length   {duration(run.snapshot.get('t_ns'))} since the first CUDA call, {duration(run.span_ns)} with work for the GPU"


def idle(run, places):
    total, span = run.totals.get("idle_ns"), run.span_ns
    if not span or total is None or total > span:
        yield "idle     n/a: the GPU's idle time could not be measured"
        return
    known = sum(place["idle_ns"] for place in places if place["site"].get("call"))
    yield f"idle     {percent(total, span)} of that ({duration(total)}); a place is known for {percent(known, total) if total else 'all'}"
    yield ""
    yield "GPU idle by place"
    for place in [place for place in places if place["idle_ns"]][:PLACES]:
        calls = ", ".join(f"{name} x{count}" for name, count in sorted(place["names"].items(), key=lambda n: -n[1]) if count)
        yield f"  {place['idle_ns'] / 1e6:10.1f} ms {percent(place['idle_ns'], span):>7}  {where(place)}"
        yield f"  {'':13} {'':>7}  {blocked(place)}; {calls}"


def blocked(place):
    split = f"queued {duration(place['queued_ns'])}, transfer {duration(place['transfer_ns'])}"
    if place["unsplit_ns"]:
        split += f", not split {duration(place['unsplit_ns'])}"
    return f"host blocked {duration(place['blocked_ns'])} ({split})"


def copies(run):
    totals, counts = run.totals, run.snapshot.get("counts", {})
    if "staged_copies" not in totals:
        yield "copies   n/a"
        return
    yield (f"copies   {totals['staged_copies']} staged ({size(totals.get('staged_bytes'))}) through "
           f"{size(totals.get('ring_bytes'))} of pinned memory; {totals.get('forwarded_copies', 'n/a')} "
           f"({size(totals.get('forwarded_bytes'))}) left to the driver")
    reasons = {name[len(DECLINED):]: count for name, count in counts.items() if name.startswith(DECLINED)}
    if reasons:
        yield "         not staged: " + ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(reasons.items()))


def cost(run):
    ours = run.totals.get("hook_ns")
    yield f"cost     {duration(ours or None)} in our own code ({percent(ours or None, run.snapshot.get('t_ns'))}), estimated from sampled calls"
    if run.snapshot.get("dropped_events"):
        yield f"         {run.snapshot['dropped_events']} stalls are missing in stalls.log; all are in the figures above"
    if not str(run.stacks.get("python", "")).startswith("on"):
        yield f"stacks   {run.stacks.get('python', 'n/a')}"


def text(run):
    """The lines of the report."""
    places = record.places(run)
    yield from head(run)
    yield from idle(run, places)
    yield ""
    yield from copies(run)
    yield from cost(run)


def main(options):
    folder = options.run
    if not folder:
        runs = record.runs_in(library.runs_folder(os.environ) or "")
        if not runs:
            raise CommandError(f"report: no run in {library.runs_folder(os.environ)}; name a run directory")
        folder = runs[0]
    try:
        run = record.read(folder)
    except OSError as error:
        raise CommandError(f"report: {error.filename}: {error.strerror}; RUN is a directory with a record.jsonl") from None
    if not run.run:
        raise CommandError(f"report: {folder}/record.jsonl is empty or no record of gpuboost")
    if run.run.get("format") != record.FORMAT:
        raise CommandError(f"report: {folder}/record.jsonl has format {run.run.get('format')}, this command reads {record.FORMAT}")
    for line in text(run):
        print(line)
    return 0
