"""One timed run of a training script for the demo: where it runs, its progress, its speed, how busy the GPU was."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from gpuboost import CommandError, library

TIME_LIMIT_S = 300
PROGRESS_S = 0.2
LOOK = """
import torch
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(0))
    print(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
"""


class Gpu(NamedTuple):
    name: str
    uuid: str


def interpreter(named):
    """The interpreter that has torch."""
    variable = os.environ.get("GPUBOOST_PYTHON")
    python = named or variable or os.path.join(library.ROOT, ".venv", "bin", "python")
    if not shutil.which(python):
        origin = "--python" if named else "GPUBOOST_PYTHON" if variable else "make deps makes it"
        raise CommandError(f"demo: {python} is not there or no program ({origin}); an interpreter with torch is needed")
    return python


def gpu_of(python, env):
    """The real GPU that the interpreter's torch sees, or None."""
    done = subprocess.run([python, "-c", LOOK], env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise CommandError(f"demo: {python} cannot import torch: {reason}")
    lines = done.stdout.splitlines()
    return Gpu(lines[0], lines[1]) if lines else None


class Sampler:
    """Utilisation by nvidia-smi while a run lasts: coarse, but the only figure without a profiler."""

    def __init__(self, gpu):
        self.samples, self.stop = [], threading.Event()
        self.query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits",
                      "-i", f"GPU-{gpu.uuid}" if gpu and gpu.uuid else "0"]
        self.thread = threading.Thread(target=self.loop, daemon=True) if gpu and shutil.which("nvidia-smi") else None

    def loop(self):
        while not self.stop.wait(PROGRESS_S):
            try:
                done = subprocess.run(self.query, capture_output=True, text=True, timeout=10)
            except (OSError, subprocess.SubprocessError):
                return
            if done.returncode == 0 and done.stdout.strip().isdigit():
                self.samples.append((time.monotonic_ns(), int(done.stdout)))

    def __enter__(self):
        if self.thread:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()

    def busy_pct(self, start_ns, end_ns):
        inside = [percent for when, percent in self.samples if start_ns <= when <= end_ns]
        return sum(inside) / len(inside) if inside else None


def busy_in_window(truth, start_ns, end_ns):
    """Share of the window in which the simulated compute engine worked."""
    busy = sum(max(0, min(end, end_ns) - max(begin, start_ns))
               for begin, end in truth["devices"][0]["intervals"]["compute"])
    return 100 * busy / (end_ns - start_ns)


class Progress:
    """One line per run; on a terminal it shows the last step and the time while the run lasts."""

    def __init__(self, label):
        self.label, self.tty, self.began, self.width = label, sys.stdout.isatty(), time.monotonic(), 0
        print(f"{label} ... ", end="", flush=True)

    def show(self, output):
        if not self.tty:
            return
        with open(output, "rb") as file:
            file.seek(max(0, os.path.getsize(output) - 4096))
            steps = re.findall(rb"step (\d+):", file.read())
        step = f"step {steps[-1].decode()}, " if steps else ""
        self.write(f"{self.label} ... {step}{time.monotonic() - self.began:.0f} s")

    def write(self, line):
        print(f"\r{line:{self.width}}", end="", flush=True)
        self.width = len(line)

    def done(self, result):
        if self.tty:
            self.write(f"{self.label} ... {result}")
        else:
            print(result, end="")
        print(flush=True)


class Trial:
    """A training script, how it is started, and what comes out."""

    def __init__(self, label, python, script, arguments, env, gpu):
        self.label, self.script, self.gpu, self.env = label, script, gpu, env
        prefix = [] if gpu else [os.path.join(library.ROOT, "scripts", "gpusim")]
        self.command = prefix + [python, script, *arguments]

    def run(self):
        """(steps/s, GPU busy % in the timed steps or None)"""
        progress = Progress(self.label)
        with tempfile.TemporaryDirectory() as folder:
            result = self.measure(folder, progress)
        progress.done(f"{result[0]:.2f} steps/s")
        return result

    def measure(self, folder, progress):
        speed, truth = os.path.join(folder, "speed.json"), os.path.join(folder, "truth.json")
        with Sampler(self.gpu) as sampler:
            self.train([*self.command, "--json", speed], {**self.env, "GPUSIM_TRUTH": truth, "PYTHONUNBUFFERED": "1"},
                       os.path.join(folder, "output"), progress)
        with open(speed) as file:
            measured = json.load(file)
        window = measured["start_monotonic_ns"], measured["end_monotonic_ns"]
        if self.gpu:
            return measured["steps_per_s"], sampler.busy_pct(*window)
        with open(truth) as file:
            return measured["steps_per_s"], busy_in_window(json.load(file), *window)

    def train(self, command, env, output, progress):
        """The script to its end; what it printed only when it failed."""
        with open(output, "wb") as file:
            child = subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT)
        try:
            while True:
                try:
                    status = child.wait(PROGRESS_S)
                    break
                except subprocess.TimeoutExpired:
                    progress.show(output)
                if time.monotonic() - progress.began > TIME_LIMIT_S:
                    raise CommandError(f"demo: {self.script} did not end within {TIME_LIMIT_S} s")
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if status:
            print()
            with open(output, errors="replace") as file:
                said = "".join(file.readlines()[-20:]).strip()
            raise CommandError(f"demo: {self.script} failed (status {status}):\n{said}")
