"""gpuboost prove: does what early return and elision stand on hold for this GPU and this driver?

The probes (probes.py) run in a process of their own, without gpuboost and with a time limit: a driver may crash or
never return. The answer is left where the library looks for it (preload/gpu/proven.h): with it GPUBOOST_ELIDE=auto is on.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading

from gpuboost import CommandError, library
from gpuboost.report import clean

TIME_LIMIT_S = 60
FIRST_LINE = "proven 1"  # preload/gpu/proven.c
PROBES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probes.py")


def add_arguments(parser):
    parser.description = ("Try on the GPUs of this machine, in less than a minute, what early return and elision stand "
                          "on, and note for GPUBOOST_ELIDE=auto whether it holds. Exit status 1: something does not.")
    parser.set_defaults(function=main)


def environment():
    """Ours without the library, and without what makes every call wait."""
    env = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "CUDA_LAUNCH_BLOCKING")}
    rest = [entry for entry in library.preloads(os.environ) if os.path.basename(entry) != "libgpuboost.so"]
    return {**env, "GPUBOOST_DISABLE": "1", **({"LD_PRELOAD": ":".join(rest)} if rest else {})}


class Kind:
    """One kind of GPU and what its probes said."""

    def __init__(self, line):
        self.name, self.driver, self.lines, self.failed, self.ended = line["device"], line["driver"], [], 0, False
        ordinals = ", ".join(map(str, line["ordinals"]))
        self.text = f"{clean(self.name)} (device{'s' if len(line['ordinals']) > 1 else ''} {ordinals}), " \
                    f"driver {self.driver // 1000}.{self.driver % 1000 // 10}"

    def add(self, line):
        self.failed += line["status"] == "FAILED"
        self.lines.append(f"{line['status']:6}  {line['what']}: {clean(line['answer'])} ({line['how']})")
        return self.lines[-1]

    def file(self, state):
        name = re.sub("[^0-9A-Za-z]", "_", self.name)
        return os.path.join(state, "proven", f"{self.driver}-{name}")


def probe(show):
    """Runs the probes; gives the kinds of GPU and, in words, why they ended early."""
    kinds, why = [], None
    child = subprocess.Popen([sys.executable, PROBES], env=environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
    late = threading.Event()
    watch = threading.Timer(TIME_LIMIT_S, lambda: (late.set(), child.kill()))
    watch.start()
    try:
        for line in map(json.loads, child.stdout):
            if "error" in line:
                why = line["error"]
            elif "device" in line:
                kinds.append(Kind(line))
                show(f"gpuboost prove: {kinds[-1].text}")
            elif "end" in line:
                kinds[-1].ended = True
            else:
                show("  " + kinds[-1].add(line))
    finally:
        watch.cancel()
        child.kill()
        status = child.wait()
    if late.is_set():
        why = f"the probes did not end within {TIME_LIMIT_S} s"
    elif status and not why:
        why = f"the probes ended with status {status}"
    return kinds, why


def write(path, kind):
    """Leaves the answer, whole or not at all."""
    folder = os.path.dirname(path)
    for made in (os.path.dirname(folder), folder):
        os.makedirs(os.path.dirname(made), exist_ok=True)
        if not os.path.isdir(made):
            os.mkdir(made, 0o700)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")  # 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join([FIRST_LINE, kind.text, *kind.lines]) + "\n")
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def conclude(kind, state):
    """Keeps or takes away the answer for this kind; says so; is it proven?"""
    path = kind.file(state)
    if kind.ended and not kind.failed:
        write(path, kind)
        print(f"proven: GPUBOOST_ELIDE=auto is on for {kind.text}: {clean(path)}")
        return True
    if os.path.lexists(path):
        os.unlink(path)
    what = f"{kind.failed} of {len(kind.lines)} probes FAILED" if kind.failed else "the probes did not come to an end"
    print(f"NOT PROVEN: {what}: GPUBOOST_ELIDE=auto is off for {kind.text}")
    return False


def main(_):
    state = library.state_folder(os.environ)
    if not state:
        raise CommandError("prove: no HOME and no XDG_STATE_HOME: there is no place for the answer")
    kinds, why = probe(lambda line: print(line, flush=True))
    if not kinds:
        raise CommandError(f"prove: {why}")
    if why:
        print(f"gpuboost: prove: {clean(why)}", file=sys.stderr)
    try:
        return 0 if all([conclude(kind, state) for kind in kinds]) and not why else 1
    except OSError as error:
        raise CommandError(f"prove: {error.filename or state}: {error.strerror}") from None
