"""gpuboost report on records made by hand: golden text, cut files, unknown members, hostile names, size."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

from command_line import COMMAND, ROOT, environment, gpuboost

sys.path.insert(0, str(ROOT / "scripts"))

from gpuboost import record, report  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
SECOND = 10**9

CONFIG = {"GPUBOOST_H2D": {"value": "auto", "source": "default"}}
RUN = {"type": "run", "format": 1, "version": "0.1.0", "pid": 4242, "host": "node7", "rank": None, "job": None,
       "program": "python3", "start_unix_ns": 1, "start_monotonic_ns": SECOND, "policy": "safe", "config": CONFIG}
STACKS = {"type": "stacks", "python": "on: CPython 3.11.7, fixed table", "native": "not used yet"}
DEVICE = {"type": "device", "ordinal": 0, "name": "NVIDIA H100"}
TOTALS = {"first_enqueue_ns": SECOND, "last_drain_ns": 61 * SECOND, "idle_ns": 20 * SECOND, "hook_ns": 30 * 10**6,
          "launches": 10**6, "staged_copies": 5000, "staged_bytes": 5 << 30, "forwarded_copies": 12,
          "forwarded_bytes": 1 << 20, "ring_bytes": 16 << 20, "ring_limit_bytes": 16 << 20, "early_copies": 4990,
          "staging_bytes": 80 << 20}


def site(number, call, family, frames, native=()):
    return {"type": "site", "id": number, "call": call, "family": family, "module": "libtorch_cuda.so",
            "frames": frames, "native": list(native)}


def counts(number, **figures):
    return {"id": number, "calls": 0, "bytes": 0, "blocked_ns": 0, "max_blocked_ns": 0, "queued_ns": 0,
            "transfer_ns": 0, "unsplit_ns": 0, "idle_ns": 0, "bubbles": 0, "staged": 0, "elided": 0, **figures}


def frame(file, line, func):
    return {"file": file, "line": line, "func": func}


TORCH = frame("/usr/lib/python3.11/site-packages/torch/tensor.py", 7, "item")
SITES = [
    site(1, "cudaMemcpyAsync", "copy", [TORCH, frame("/home/ann/train.py", 41, "train")]),
    site(2, "cudaStreamSynchronize", "sync", [frame("/home/ann/train.py", 41, "train")]),
    site(3, "cudaFree", "free", [], ["libtorch_cuda.so+0x1234"]),
    {**site(0, None, None, []), "module": None},
]
FIGURES = [
    counts(1, calls=5000, bytes=5 << 30, idle_ns=15 * SECOND, blocked_ns=30 * SECOND, queued_ns=20 * SECOND,
           transfer_ns=10 * SECOND, staged=5000),
    counts(2, calls=5000, elided=4500, idle_ns=SECOND, blocked_ns=SECOND, queued_ns=SECOND),
    counts(3, calls=3, idle_ns=3 * SECOND, blocked_ns=4 * SECOND, queued_ns=None, transfer_ns=None,
           unsplit_ns=4 * SECOND),
    counts(0, calls=9, idle_ns=SECOND, blocked_ns=SECOND, queued_ns=None, transfer_ns=None, unsplit_ns=SECOND),
]
SNAPSHOT = {"type": "snapshot", "t_ns": 62 * SECOND, "totals": TOTALS, "dropped_events": 17,
            "counts": {"h2d.declined.warming_up": 8, "h2d.declined.capture": 4, "h2d.declined.context": 0,
                       "early.declined.host_may_notice": 6, "elide.declined.place": 5, "elide.declined.not_proven": 0,
                       "elide.waits": 4500, "staging.copies": 4000, "debts.opened": 9000},
            "sites": FIGURES}
END = {"type": "end", "t_ns": 62 * SECOND, "reason": "exit"}
WHOLE = [RUN, STACKS, DEVICE, *SITES, SNAPSHOT, END]


def totals(**other):
    return [RUN, STACKS, DEVICE, *SITES, {**SNAPSHOT, "totals": {**TOTALS, **other}}, END]


# Members and lines of a later version, a rank, no device name, nothing measured, stacks off, staging off.
UNKNOWN = [{**RUN, "new": 1, "rank": 3, "policy": "observe"}, {"type": "later"}, [1], 7,
           {**STACKS, "python": "off: this CPython is not known"}, {**DEVICE, "name": None}, SITES[2],
           {**SNAPSHOT, "counts": {"h2d.declined.later": 2, "elide.declined.not_proven": 321}, "dropped_events": 0, "sites": FIGURES[2:3],
            "totals": {**TOTALS, "idle_ns": None, "hook_ns": 0, "staged_copies": 0, "staged_bytes": None}}, END]
# More places than are listed; a healthy run of the simulated GPU.
MANY = [RUN, STACKS, {**DEVICE, "name": "SIMULATED GPU 0"},
        *[site(i, "cudaMemcpy", "copy", [frame("/home/ann/train.py", i, "train")]) for i in range(1, 14)],
        {**SNAPSHOT, "dropped_events": 0, "counts": {}, "totals": {**TOTALS, "idle_ns": 13 * 14 // 2 * 10**6},
         "sites": [counts(i, calls=i, idle_ns=i * 10**6, blocked_ns=i * 10**6, transfer_ns=i * 10**6, staged=i)
                   for i in range(1, 14)]}]


def write(folder, lines, tail=""):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + tail
    (folder / "record.jsonl").write_text(text)
    return folder


def text_of(folder):
    return "\n".join(report.text(record.read(str(folder)))) + "\n"


@pytest.mark.parametrize("name, lines, tail", [
    ("whole", WHOLE, ""),
    ("killed", WHOLE[:-1], '{"type":"snapshot","t_ns":99'),
    ("empty", [RUN], ""),
    ("unknown", UNKNOWN, ""),
    ("many", MANY, ""),
])
def test_golden(tmp_path, name, lines, tail):
    write(tmp_path / "run", lines, tail)
    done = subprocess.run([COMMAND, "report", "run"], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    golden = GOLDEN / f"report_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(done.stdout)
    assert done.stdout == golden.read_text()


@pytest.mark.parametrize("other, said", [
    ({"idle_ns": 0}, "HEALTHY: the GPU was idle 0.0 % of 60.0 s (0 ns)"),
    ({"idle_ns": 0, "unseen_copies": 1}, "HEALTHY: the GPU was idle at least 0.0 % of 60.0 s (0 ns)"),
    ({"idle_ns": 0, "unseen_copies": 4000}, "GPU WAITS: the GPU was idle at least 0.0 % of 60.0 s (0 ns)"),
    ({"idle_ns": 40 * SECOND}, "INCOMPLETE: the GPU was idle 66.6 % of 60.0 s (40.0 s), of which 47.5 % has a place"),
    ({"idle_ns": 61 * SECOND}, "n/a: the GPU's idle time could not be measured"),
    ({"idle_ns": None}, "n/a: the GPU's idle time could not be measured"),
    ({"first_enqueue_ns": None}, "n/a: nothing was given to the GPU"),
    ({"last_drain_ns": None}, "GPU WAITS: the GPU was idle 32.2 % of 62.0 s (20.0 s), of which 95.0 % has a place"),
])
def test_verdict(tmp_path, other, said):
    assert f"\nverdict  {said}\n" in text_of(write(tmp_path, totals(**other)))


def test_what_was_switched_off_is_said(tmp_path):
    config = {**CONFIG, "GPUBOOST_EARLY": {"value": "on"}, "GPUBOOST_ELIDE": {"value": "off"}}
    said = text_of(write(tmp_path, [{**RUN, "config": config}, *WHOLE[1:]]))
    assert "\n         GPUBOOST_ELIDE was off\n" in said and "GPUBOOST_EARLY" not in said


def test_every_cut_is_read(tmp_path):
    text = (write(tmp_path / "whole", WHOLE) / "record.jsonl").read_bytes()
    first, last = text.index(b"\n") + 1, len(text) - 1
    whole = text_of(tmp_path / "whole").replace(str(tmp_path / "whole"), str(tmp_path))
    for length in range(first, last, 7):
        (tmp_path / "record.jsonl").write_bytes(text[:length])
        cut = text_of(tmp_path)
        assert "\nstate    killed" in cut
        assert cut.splitlines()[3:] == whole.splitlines()[3:] or "\nverdict  n/a" in cut


def test_damage_is_one_line_or_a_report(tmp_path):
    """Members of the wrong type and flipped bytes: never a traceback."""
    text = (write(tmp_path, WHOLE) / "record.jsonl").read_bytes()
    chance = random.Random(1)
    for _ in range(400):
        damaged = bytearray(text)
        for _ in range(chance.choice((1, 3))):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'0n-"[]{}:, \n\x00\xff')
        (tmp_path / "record.jsonl").write_bytes(damaged)
        try:
            report.lines_of(str(tmp_path))
        except report.CommandError as error:
            assert str(tmp_path) in str(error)


def test_hostile_names_do_nothing_to_a_terminal(tmp_path):
    name = "/tmp/\x1b[31m\u202e\n<script>\udc80é.py"
    hostile = {**SITES[1], "frames": [frame(name, 1, "f\r")]}
    device = {**DEVICE, "name": "GPU\x1b]0;x\x07"}
    write(tmp_path, [{**RUN, "program": "py\x07"}, STACKS, device, hostile, SNAPSHOT, END])
    said = text_of(tmp_path)
    assert "/tmp/\\x1b[31m\\xe2\\x80\\xae\\x0a<script>\\xed\\xb2\\x80é.py:1 (f\\x0d)" in said
    assert all(c.isprintable() for line in said.split("\n") for c in line)


def test_a_terminal_without_these_letters(tmp_path):
    write(tmp_path, [RUN, {**SITES[1], "frames": [frame("/home/zoë/train.py", 1, "main")]}, SNAPSHOT])
    done = gpuboost("report", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "/home/zo\\xeb/train.py:1" in done.stdout, done.stderr


@pytest.mark.parametrize("content, said", [
    (None, "No such file or directory; RUN is a directory with a record.jsonl"),
    ("", "is empty or no record of gpuboost"),
    ("not json\n", "is empty or no record of gpuboost"),
    (json.dumps({**RUN, "format": 9}) + "\n", "has format 9, this command reads 1"),
    (json.dumps(RUN) + '\n{"type":"snapshot","sites":3}\n', "is damaged: "),
])
def test_errors_name_the_file(tmp_path, content, said):
    if content is not None:
        (tmp_path / "record.jsonl").write_text(content)
    done = gpuboost("report", tmp_path)
    assert done.returncode == 2 and said in done.stderr and f"{tmp_path}/record.jsonl" in done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_newest_run_is_the_default(tmp_path):
    runs = tmp_path / "gpuboost"
    write(runs / "b-new", WHOLE)
    write(runs / "a-old", WHOLE)
    (runs / "c-empty").mkdir()
    os.utime(runs / "a-old" / "record.jsonl", (1, 1))
    assert gpuboost("report", XDG_STATE_HOME=str(tmp_path)).stdout.startswith(f"run      {runs}/b-new\n")


@pytest.mark.parametrize("settings, said", [
    ({"XDG_STATE_HOME": "/no/such/home"}, "no run matches /no/such/home/gpuboost/*"),
    ({"GPUBOOST_OUT": "none"}, "GPUBOOST_OUT=none, or no HOME: no record is kept"),
])
def test_no_run_at_all(settings, said):
    done = gpuboost("report", **settings)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_reader_that_leaves_is_no_error(tmp_path):
    write(tmp_path, WHOLE)
    done = subprocess.run(f"{COMMAND} report {tmp_path} | true", shell=True, capture_output=True, text=True, timeout=60,
                          env=environment())
    assert done.stderr == ""


def test_no_colour_in_a_pipe(tmp_path):
    assert "\x1b" not in gpuboost("report", write(tmp_path, WHOLE)).stdout


def test_a_long_record_is_read_without_parsing_every_snapshot(tmp_path, monkeypatch):
    short, long = write(tmp_path / "short", WHOLE), tmp_path / "long"
    line = json.dumps({**SNAPSHOT, "sites": [counts(1, calls=1)] * 3000}, separators=(",", ":")) + "\n"
    write(long, [RUN, STACKS, DEVICE, *SITES])
    with open(long / "record.jsonl", "a") as file:
        for _ in range(64 * 2**20 // len(line)):
            file.write(line)
        file.writelines(json.dumps(last, separators=(",", ":")) + "\n" for last in (SNAPSHOT, END))
    parsed = []
    parse = record._parse
    monkeypatch.setattr(record, "_parse", lambda line: parsed.append(len(line)) or parse(line))
    began = time.perf_counter()
    said = text_of(long)
    print(f"64 MiB read in {time.perf_counter() - began:.2f} s")
    assert len(parsed) == len(WHOLE) and sum(parsed) < 10**4
    assert said.splitlines()[1:] == text_of(short).splitlines()[1:]
