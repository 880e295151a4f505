"""gpuboost report on records made by hand: golden text, cut files, unknown members, size."""

import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "bin" / "gpuboost"
GOLDEN = ROOT / "tests" / "golden"

RUN = {"type": "run", "format": 1, "version": "0.1.0", "pid": 4242, "host": "node7", "rank": None, "job": None,
       "program": "python3", "start_unix_ns": 1, "start_monotonic_ns": 1, "policy": "safe", "config": {}}
STACKS = {"type": "stacks", "python": "on: CPython 3.11.7, fixed table", "native": "not used yet"}
DEVICE = {"type": "device", "ordinal": 0, "name": "NVIDIA H100"}
TOTALS = {"first_enqueue_ns": 10**9, "last_drain_ns": 61 * 10**9, "idle_ns": 20 * 10**9, "hook_ns": 30 * 10**6,
          "launches": 10**6, "staged_copies": 5000, "staged_bytes": 5 << 30, "forwarded_copies": 12,
          "forwarded_bytes": 1 << 20, "ring_bytes": 16 << 20, "ring_limit_bytes": 16 << 20}


def site(number, call, frames, native=()):
    return {"type": "site", "id": number, "call": call, "family": "copy", "module": "libtorch_cuda.so",
            "frames": frames, "native": list(native)}


def counts(number, **figures):
    return {"id": number, "calls": 0, "bytes": 0, "blocked_ns": 0, "max_blocked_ns": 0, "queued_ns": 0,
            "transfer_ns": 0, "unsplit_ns": 0, "idle_ns": 0, "bubbles": 0, "staged": 0, **figures}


def frame(file, line, func):
    return {"file": file, "line": line, "func": func}


TORCH = frame("/usr/lib/python3.11/site-packages/torch/tensor.py", 7, "item")
SITES = [
    site(1, "cudaMemcpyAsync", [TORCH, frame("/home/ann/train.py", 41, "train")]),
    site(2, "cudaStreamSynchronize", [frame("/home/ann/train.py", 41, "train")]),
    site(3, "cudaFree", [], ["libtorch_cuda.so+0x1234"]),
]
SNAPSHOT = {"type": "snapshot", "t_ns": 62 * 10**9, "totals": TOTALS, "dropped_events": 17,
            "counts": {"h2d.declined.warming_up": 8, "h2d.declined.capture": 4},
            "sites": [counts(1, calls=5000, idle_ns=15 * 10**9, blocked_ns=30 * 10**9, queued_ns=20 * 10**9, transfer_ns=10**10),
                      counts(2, calls=5000, idle_ns=10**9, blocked_ns=10**9, queued_ns=10**9),
                      counts(3, calls=3, idle_ns=4 * 10**9, blocked_ns=4 * 10**9, queued_ns=None, transfer_ns=None, unsplit_ns=4 * 10**9)]}
END = {"type": "end", "t_ns": 62 * 10**9, "reason": "exit"}
WHOLE = [RUN, STACKS, DEVICE, *SITES, SNAPSHOT, END]


def write(folder, lines, tail=""):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + tail
    (folder / "record.jsonl").write_text(text)
    return folder


def report(*arguments, cwd=None, **env):
    base = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBOOST", "XDG_"))}
    return subprocess.run([COMMAND, "report", *arguments], cwd=cwd, env={**base, **env}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name, lines, tail", [
    ("whole", WHOLE, ""),
    ("killed", WHOLE[:-1], '{"type":"snapshot","t_ns":99'),
    ("empty", [RUN], ""),
    ("unknown", [{**RUN, "new": 1, "rank": 3}, {"type": "later"}, {**STACKS, "python": "off: this CPython is not known"},
                 {**DEVICE, "name": "SIMULATED GPU 0"}, SITES[2],
                 {**SNAPSHOT, "counts": {}, "dropped_events": 0, "totals": {**TOTALS, "last_drain_ns": None, "hook_ns": 0}}, END], ""),
])
def test_golden(tmp_path, name, lines, tail):
    write(tmp_path / "run", lines, tail)
    done = report("run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    golden = GOLDEN / f"report_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(done.stdout)
    assert done.stdout == golden.read_text()


def test_any_cut_is_read(tmp_path):
    text = (write(tmp_path / "whole", WHOLE) / "record.jsonl").read_bytes()
    first = text.index(b"\n") + 1
    for length in range(first, len(text), 97):
        (tmp_path / "record.jsonl").write_bytes(text[:length])
        done = report(str(tmp_path))
        assert done.returncode == 0 and done.stdout.startswith("run "), done.stderr


@pytest.mark.parametrize("content, said", [
    (None, "No such file or directory; RUN is a directory with a record.jsonl"),
    ("", "is empty or no record of gpuboost"),
    ("not json\n", "is empty or no record of gpuboost"),
    (json.dumps({**RUN, "format": 9}) + "\n", "has format 9, this command reads 1"),
])
def test_errors_name_the_file(tmp_path, content, said):
    if content is not None:
        (tmp_path / "record.jsonl").write_text(content)
    done = report(str(tmp_path))
    assert done.returncode == 2 and said in done.stderr and str(tmp_path) in done.stderr


def test_newest_run_is_the_default(tmp_path):
    runs = tmp_path / "gpuboost"
    write(runs / "b-new", WHOLE)
    write(runs / "a-old", WHOLE)
    os.utime(runs / "a-old" / "record.jsonl", (1, 1))
    assert "b-new" in report(XDG_STATE_HOME=str(tmp_path)).stdout.splitlines()[0]


def test_no_run_at_all(tmp_path):
    done = report(XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == 2 and "no run in" in done.stderr


def test_reader_that_leaves_is_no_error(tmp_path):
    write(tmp_path, WHOLE)
    done = subprocess.run(f"{COMMAND} report {tmp_path} | head -n 1", shell=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == "" and done.stdout.startswith("run ")


def test_a_long_record_is_read_without_parsing_every_snapshot(tmp_path):
    short, long = write(tmp_path / "short", WHOLE), tmp_path / "long"
    line = json.dumps({**SNAPSHOT, "sites": [counts(1, calls=1)] * 3000}, separators=(",", ":")) + "\n"
    write(long, [RUN, STACKS, DEVICE, *SITES])
    with open(long / "record.jsonl", "a") as file:
        for _ in range(64 * 2**20 // len(line)):
            file.write(line)
        file.write(json.dumps(SNAPSHOT, separators=(",", ":")) + "\n")
    began = time.perf_counter()
    text = report(str(long)).stdout
    took = time.perf_counter() - began
    print(f"64 MiB read in {took:.2f} s")
    assert text.splitlines()[3:] == report(str(short)).stdout.splitlines()[3:]
