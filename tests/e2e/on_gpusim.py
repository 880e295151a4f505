"""Runs a Python program on the simulated GPU: plain, or under the library with a policy; on top of harness.py.

The run directory is the test's own, every run has a time limit.
"""

import json
import pathlib
import subprocess
import sys

from harness import GPUSIM, LIBRARY, ROOT, clean_environment, read_lines

WORKLOADS = ROOT / "tests" / "workloads"


class Result:
    """What a run left: stdout, and where it was recorded the last snapshot and the sites."""

    def __init__(self, done, folder):
        self.stdout, self.folder = done.stdout, folder
        self.sites, self.snapshot = {}, {}
        if (folder / "record" / "record.jsonl").exists():
            for entry in read_lines(folder / "record" / "record.jsonl"):
                if entry["type"] == "site":
                    self.sites[entry["id"]] = entry
                elif entry["type"] == "snapshot":
                    self.snapshot = entry

    @property
    def totals(self):
        return self.snapshot["totals"]

    @property
    def truth(self):
        return json.loads((self.folder / "truth.json").read_text())

    def idle_by_line(self):
        """(file name, line) -> idle ns, by the innermost frame of a file of this repository."""
        lines = {}
        for counts in self.snapshot["sites"]:
            frames = self.sites[counts["id"]]["frames"]
            place = next(((pathlib.Path(f["file"]).name, f["line"]) for f in frames
                          if f["file"].startswith(str(ROOT / "tests"))), None)
            lines[place] = lines.get(place, 0) + counts["idle_ns"]
        return lines


def run(folder, policy, *command, timeout=300, **settings):
    """policy: None for plain, else observe or safe. settings: environment variables."""
    folder.mkdir(parents=True, exist_ok=True)
    if policy:
        settings = {"LD_PRELOAD": LIBRARY, "GPUBOOST_POLICY": policy, "GPUBOOST_OUT": folder / "record", **settings}
    env = clean_environment(GPUSIM_TRUTH=folder / "truth.json", **settings)
    done = subprocess.run([GPUSIM, sys.executable, *map(str, command)], env=env, timeout=timeout, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return Result(done, folder)
