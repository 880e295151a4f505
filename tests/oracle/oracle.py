"""Runs the oracle's programs plain and under a preloaded library, compares them, makes failures small.

A program is a seed and a number of operations. "Plain" is the simulated GPU alone. Both run under an
adversary: a schedule of the simulator, each as legal as the others (GPUSIM_CLOCK=virtual). What a
program saw is one hash, so that two runs are equal or not.
"""

import dataclasses
import fcntl
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import LIBRARY, ROOT, SIM, clean_environment, read_lines  # noqa: E402

ORACLE = SIM.parent / "oracle" / "oracle"
ADVERSARIES = range(16)
LIMIT_S = 60  # of one program; a whole one takes 20 ms


def build():
    """Builds build/oracle/oracle; tests of several processes take turns."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env["GPUBOOST_PYTHON"] = sys.executable
    SIM.parent.mkdir(parents=True, exist_ok=True)
    with open(SIM.parent / "oracle.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = os.path.relpath(ORACLE, ROOT)
        done = subprocess.run(["make", "-s", "-C", str(ROOT), f"O={os.path.relpath(SIM.parent, ROOT)}", target],
                              env=env, timeout=600, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ORACLE


@dataclasses.dataclass
class Setting:
    """What a program runs under: nothing, or a library with its environment."""
    library: pathlib.Path = None
    environment: dict = dataclasses.field(default_factory=dict)
    limit_s: int = LIMIT_S

    def variables(self):
        settings = {"LD_LIBRARY_PATH": SIM, "GPUSIM_CLOCK": "virtual", **self.environment}
        if self.library:
            settings["LD_PRELOAD"] = self.library
        return settings

    def call(self, *words, timeout):
        return subprocess.run([str(ORACLE), *map(str, words), "--limit", str(self.limit_s)],
                              env=clean_environment(**self.variables()), timeout=timeout, capture_output=True,
                              text=True, errors="backslashreplace")

    def replay(self, words):
        """The same as a line for a shell."""
        variables = [f"{name}={value}" for name, value in self.variables().items()]
        return " ".join(["env", *variables, os.path.relpath(ORACLE, ROOT), *map(str, words)])


def boost(out, **more):
    """Our library; the record goes to `out`."""
    return Setting(LIBRARY, {"GPUBOOST_POLICY": "safe", "GPUBOOST_CHUNK": "256K", "GPUBOOST_RING": "8M",
                             "GPUBOOST_OUT": out, "GPUBOOST_SUMMARY": "off", **more})


def snapshot(out):
    """What the library counted: its last snapshot."""
    return [line for line in read_lines(pathlib.Path(out) / "record.jsonl") if line["type"] == "snapshot"][-1]


def totals(out):
    return snapshot(out)["totals"]


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3,7"."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in parts)


def choice(adversary, keep=None, without=None):
    """The options that say which schedule and which operations."""
    words = ["--adversary", adversary] + ([] if keep is None else ["--keep", ranges(keep)])
    return words + (["--without", without] if without else [])


def run(setting, seeds, ops, adversary=0, keep=None, without=None):
    """Seed -> hash, "race", "hang" or "crash ...": of a program that ends its process the others go on."""
    found, left, words = {}, list(seeds), choice(adversary, keep, without)
    while left:
        done = setting.call("run", left[0], len(left), ops, *words, timeout=setting.limit_s + 20 * len(left))
        before = len(left)
        for line in done.stdout.splitlines():
            word, seed, result = line.split()
            found[int(seed)] = result
        left = [seed for seed in left if seed not in found]
        stopped = done.returncode == 3 or (done.returncode == 2 and len(left) < before)
        if left and not stopped:  # 2: the one before may have left a context with an error
            found[left.pop(0)] = f"crash {done.returncode} {done.stderr[-200:]}".strip()
    return found


def ran(result):
    return result.split()[0] not in ("hang", "crash")


@dataclasses.dataclass
class Verdict:
    """What a comparison found: seeds whose plain runs differ, and those that another setting changed."""
    programs: int
    racy: list
    changed: dict  # seed -> adversary


def compare(settings, seeds, ops, plain=(0, 1, 2), without=None):
    """Plain runs under each adversary of `plain`; each setting (adversary -> Setting) against them."""
    runs = [run(Setting(), seeds, ops, adversary, without=without) for adversary in plain]
    lost = {seed: found[seed] for found in runs for seed in seeds if not ran(found[seed])}
    assert not lost, f"without the library: {lost}"
    racy = [seed for seed in seeds if len({found[seed] for found in runs}) > 1 or runs[0][seed] == "race"]
    changed = {}
    for adversary, setting in settings.items():
        found = run(setting, seeds, ops, adversary, without=without)
        for seed in seeds:
            if seed not in racy and found[seed] != runs[0][seed]:
                changed.setdefault(seed, adversary)
    return Verdict(len(seeds), racy, changed)


# --- making a failure small ---


def fails(setting, seed, ops, adversary, keep, without=None):
    """Does the library change what is left of the program? Not where that has a race."""
    plain = run(Setting(limit_s=setting.limit_s), [seed], ops, adversary, keep, without)[seed]
    if plain == "race" or not ran(plain):
        return False
    return run(setting, [seed], ops, adversary, keep, without)[seed] != plain


def shrink(setting, seed, ops, adversary, without=None):
    """The smallest set of operations that still fails, as far as taking parts out leads to it."""
    setting = dataclasses.replace(setting, limit_s=min(setting.limit_s, 10))

    def still(keep):
        return fails(setting, seed, ops, adversary, keep, without)

    low, high = 0, ops
    while high - low > 1:  # the shortest beginning that fails
        middle = (low + high) // 2
        low, high = (low, middle) if still(range(middle)) else (middle, high)
    keep, part = list(range(high)), max(high // 2, 1)
    if not still(keep):
        keep, part = list(range(ops)), max(ops // 2, 1)
    while True:
        smaller, at = False, len(keep)
        while at > 0:  # from the end: what comes later needs what comes before
            left = keep[:max(at - part, 0)] + keep[at:]
            if still(left):
                keep, smaller = left, True
            at -= part
        if part == 1 and not smaller:
            return keep
        part = max(part // 2, 1)


def explain(setting, seed, ops, adversary, keep, without=None):
    """The program as text with what was seen, plain and under the library, and the commands to see it again."""
    words = ["trace", seed, ops, *choice(adversary, keep, without)]
    plain = Setting(limit_s=setting.limit_s).call(*words, timeout=300)
    other = setting.call(*words, timeout=300)
    text = [f"program {seed}, {len(keep)} of {ops} operations, adversary {adversary}; plain:", plain.stdout,
            f"under {setting.library.name} (status {other.returncode}), where it differs:"]
    before = set(plain.stdout.splitlines())
    text += [line for line in other.stdout.splitlines() if line not in before]
    text += ["replay:", "  " + Setting().replay(words), "  " + setting.replay(words)]
    return "\n".join(text)
