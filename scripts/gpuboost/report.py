"""gpuboost report: what a run recorded, as text. Figures are rounded down, as in the library's own summary.

n/a stands for what is not known; 0 is a measured zero.
"""

import os

from gpuboost import CommandError, library, record

PLACES = 10
DECLINED = (("h2d.declined.", "not staged"), ("early.declined.", "not returned early"),
            ("elide.declined.", "waits not left out"))
NOT_PROVEN = "elide.declined.not_proven"
SIMULATED = "SIMULATED"
HEALTHY_PERCENT, EXPLAINED_PERCENT = 5, 70  # as in preload/stall/summary.c
UNSEEN_PERCENT = 5  # of the staged copies


def add_arguments(parser):
    parser.description = "Print what a run recorded: the verdict, the places that keep the GPU idle, the copies, the cost."
    parser.add_argument("run", nargs="?", metavar="RUN", help="run directory (default: the newest run)")
    parser.set_defaults(function=main)


def clean(text):
    """Names are other people's words: what a terminal would act on is shown as bytes."""
    return "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogatepass"))
                   for c in str(text))


def scaled(value, unit, name):
    return f"{value // unit}.{value % unit * 10 // unit} {name}"


def duration(ns):
    if ns is None:
        return "n/a"
    if ns < 1000:
        return f"{ns} ns"
    unit, name = (1000, "us") if ns < 10**6 else (10**6, "ms") if ns < 10**10 else (10**9, "s")
    return scaled(ns, unit, name)


def size(count):
    if count is None:
        return "n/a"
    for name, unit in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= unit:
            return scaled(count, unit, name)
    return f"{count} B"


def percent(part, whole):
    if part is None or not whole:
        return "n/a"
    tenths = part * 1000 // whole if whole < 10**6 else part // (whole // 1000)  # as gb_text_add_percent
    return scaled(tenths, 10, "%")


def known(value):
    return "n/a" if value is None else clean(value)


def where(place):
    frame, site = place["frame"], place["site"]
    if frame:
        line = f":{frame['line']}" if frame.get("line") is not None else ""
        return clean(f"{frame.get('file') or '?'}{line} ({frame.get('func') or '?'})")
    if site.get("native"):
        return clean(site["native"][0])
    return clean(site.get("module") or ("(unknown place)" if site.get("call") else "(places beyond the table)"))


def head(run):
    info, device = run.run, run.device
    state = "ended by itself" if run.end else "killed, or still running: figures up to the last snapshot"
    rank = f", rank {known(info['rank'])}" if info.get("rank") is not None else ""
    simulated = f"   {SIMULATED}: no figure is that of a real GPU" if (device or "").startswith(SIMULATED) else ""
    yield f"run      {clean(run.path)}"
    yield (f"program  {known(info.get('program'))} (pid {known(info.get('pid'))}{rank}), "
           f"policy {known(info.get('policy'))}")
    yield f"state    {state}"
    yield f"device   {known(device)}{simulated}"
    yield (f"length   {duration(run.snapshot.get('t_ns'))} since the first CUDA call, "
           f"{duration(run.span_ns)} with work for the GPU")


def verdict(run, places):
    total, span = run.totals.get("idle_ns"), run.span_ns
    if run.snapshot and not run.totals.get("first_enqueue_ns"):
        return "n/a: nothing was given to the GPU"
    if not span or total is None or total > span:
        return "n/a: the GPU's idle time could not be measured"
    explained = sum(place["idle_ns"] for place in places if place["site"].get("call"))
    unseen = run.totals.get("unseen_copies") or 0
    seen = unseen <= (run.totals.get("staged_copies") or 0) // 100 * UNSEEN_PERCENT
    word = ("HEALTHY" if total < span // 100 * HEALTHY_PERCENT and seen
            else "GPU WAITS" if explained >= total // 100 * EXPLAINED_PERCENT else "INCOMPLETE")
    has_place = f", of which {percent(explained, total)} has a place" if total else ""
    bound = "at least " if unseen else ""
    return f"{word}: the GPU was idle {bound}{percent(total, span)} of {duration(span)} ({duration(total)}){has_place}"


def blocked(place):
    split = f"queued {duration(place['queued_ns'])}, transfer {duration(place['transfer_ns'])}"
    if place["unsplit_ns"]:
        split += f", not split {duration(place['unsplit_ns'])}"
    return f"blocked {duration(place['blocked_ns'])} ({split})"


def calls(place):
    by_count = sorted(place["names"].items(), key=lambda item: (-item[1], item[0]))
    moved = [size(place["bytes"])] if place["bytes"] else []
    return ", ".join([f"{clean(name)} x{count}" for name, count in by_count if count] + moved)


def idle(run, places):
    places = [place for place in places if place["idle_ns"]]
    if not places:
        return
    yield ""
    yield "where the GPU's idle time went: idle, share, line; below: calls there, how long they blocked the program"
    for place in places[:PLACES]:
        share = percent(place["idle_ns"], run.span_ns)
        yield f"  {scaled(place['idle_ns'], 10**6, 'ms'):>13} {share:>7}  {where(place)}"
        yield f"  {'':21}  {calls(place)}; {blocked(place)}"
    rest = places[PLACES:]
    if rest:
        yield (f"  {scaled(sum(place['idle_ns'] for place in rest), 10**6, 'ms'):>13} {'':>7}  "
               f"at {len(rest)} other place{'s' if len(rest) > 1 else ''}")


def done(places):
    """Where the policies did something, those that did most first."""
    places = sorted((place for place in places if place["staged"] or place["elided"]),
                    key=lambda place: -place["staged"] - place["elided"])
    if not places:
        return
    yield ""
    yield "what was done: copies staged, waits left out, line"
    for place in places[:PLACES]:
        yield f"  {place['staged']:>13} {place['elided']:>7}  {where(place)}"
    rest = places[PLACES:]
    if rest:
        yield (f"  {sum(place['staged'] for place in rest):>13} {sum(place['elided'] for place in rest):>7}  "
               f"at {len(rest)} other place{'s' if len(rest) > 1 else ''}")


def declined(run):
    """Each guard by how often it said no."""
    for prefix, what in DECLINED:
        reasons = {name[len(prefix):]: count for name, count in run.counts.items()
                   if name.startswith(prefix) and name != NOT_PROVEN and count}
        if reasons:
            yield f"         {what}: " + ", ".join(f"{clean(name).replace('_', ' ')} {count}"
                                                   for name, count in sorted(reasons.items()))
    if run.counts.get(NOT_PROVEN):
        yield (f"         {run.counts[NOT_PROVEN]} waits could be left out: nobody has proven this GPU and driver; "
               "run gpuboost prove once")


def copies(run):
    totals = run.totals
    if totals.get("staged_copies") is None:
        yield "copies   n/a"
        return
    device = f" and {size(totals['staging_bytes'])} of device" if totals.get("staging_bytes") else ""
    yield (f"copies   {totals['staged_copies']} pageable copies staged ({size(totals.get('staged_bytes'))}) through "
           f"{size(totals.get('ring_bytes'))} of pinned{device} memory; {known(totals.get('forwarded_copies'))} "
           f"({size(totals.get('forwarded_bytes'))}) left to the driver")
    early, through = totals.get("early_copies"), run.counts.get("staging.copies")
    elided = run.counts.get("elide.waits")
    parts = [f"{count} {what}" for count, what in ((early, "returned early"), (through, "went by way of device memory"),
                                                   (elided, "waits left out")) if count]
    if parts:
        yield "         " + ", ".join(parts)
    yield from declined(run)
    h2d, policy = run.option("GPUBOOST_H2D"), run.run.get("policy")
    if h2d == "off" or (h2d == "auto" and policy == "observe"):
        yield f"         staging was off: GPUBOOST_H2D={h2d}, GPUBOOST_POLICY={known(policy)}"
    for name in ("GPUBOOST_EARLY", "GPUBOOST_ELIDE"):
        if run.option(name) == "off":
            yield f"         {name} was off"


def cost(run):
    ours = run.totals.get("hook_ns") or None  # 0: no call was sampled
    yield (f"cost     {duration(ours)} in our own code ({percent(ours, run.snapshot.get('t_ns'))}), "
           "estimated from sampled calls")
    dropped = run.snapshot.get("dropped_events")
    if dropped:
        yield f"         {dropped} stalls are missing in stalls.log; all are in the figures above"
    if not str(run.stacks.get("python", "")).startswith("on"):
        yield f"stacks   {known(run.stacks.get('python'))}"


def text(run):
    """The lines of the report."""
    places = record.places(run)
    yield from head(run)
    yield f"verdict  {verdict(run, places)}"
    yield from idle(run, places)
    yield from done(places)
    yield ""
    yield from copies(run)
    yield from cost(run)


def newest():
    pattern = library.place_of_runs(os.environ)
    runs = record.find(pattern) if pattern else []
    if not runs:
        place = f"no run matches {pattern}" if pattern else "GPUBOOST_OUT=none, or no HOME: no record is kept"
        raise CommandError(f"report: {place}; name a run directory, or make one: gpuboost run -- python train.py")
    return runs[0]


def lines_of(folder):
    """The report on a run directory; CommandError when that is none."""
    file = os.path.join(folder, "record.jsonl")
    try:
        run = record.read(folder)
        if not run.run:
            raise CommandError(f"report: {file} is empty or no record of gpuboost")
        if run.run.get("format") != record.FORMAT:
            raise CommandError(f"report: {file} has format {run.run.get('format')}, this command reads {record.FORMAT}")
        return list(text(run))
    except OSError as error:
        raise CommandError(f"report: {file}: {error.strerror}; RUN is a directory with a record.jsonl") from None
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise CommandError(f"report: {file} is damaged: {error}") from None


def main(options):
    for line in lines_of(options.run or newest()):
        print(line)
    return 0
