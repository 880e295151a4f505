"""gpuboost demo: the arithmetic of its table by hand, its errors, and one short run on the simulated GPU."""

import json
import os
import pathlib
import pty
import subprocess
import sys
import time
import types

import pytest

from command_line import COMMAND, ROOT, WORKLOADS, environment, gpuboost

sys.path[:0] = [str(ROOT / "scripts"), str(WORKLOADS)]

import presets  # noqa: E402
from gpuboost import CommandError, demo, trial  # noqa: E402


def test_busy_share_counts_what_lies_in_the_window():
    truth = {"devices": [{"intervals": {"compute": [[0, 10], [20, 40], [90, 200]]}}]}
    assert trial.busy_in_window(truth, 5, 105) == 5 + 20 + 15
    assert trial.busy_in_window(truth, 41, 89) == 0


def test_samples_outside_the_window_do_not_count():
    sampler = trial.Sampler(None)
    sampler.samples = [(1, 0), (10, 40), (20, 60), (30, 100)]
    assert sampler.busy_pct(10, 20) == 50
    assert sampler.busy_pct(11, 19) is None


@pytest.mark.parametrize("model, bytes_per_sample", [("mlp", 4096), ("resnet18", 49152), ("resnet50", 49152)])
def test_a_preset_moves_the_same_bytes_in_the_same_time_for_every_model(model, bytes_per_sample):
    preset = presets.PRESETS["A20"]
    assert 0 <= 20e6 - preset.batch(model) * bytes_per_sample < bytes_per_sample
    operations = preset.batch(model) * presets.OPERATIONS_PER_SAMPLE[model]
    seconds = operations / (float(preset.environment(model)["GPUSIM_TFLOPS"]) * 1e12)
    rest_ms = presets.REST_MS + presets.REST_MS_PER_SAMPLE * preset.batch(model) if model == "mlp" else 0
    assert abs(seconds + rest_ms / 1e3 - 0.0301) < 0.0002
    assert f"--model={model}" in preset.arguments(model=model)


def test_settings_that_would_change_the_runs_are_left_out(monkeypatch):
    monkeypatch.setattr(os, "environ", {
        "PATH": "/bin", "GPUBOOST_DISABLE": "1", "GPUSIM_CLOCK": "virtual", "GPUSIM_BUILD": "b", "GPUBOOST_PYTHON": "p",
        "LD_PRELOAD": "/x/libgpuboost.so:/lib/other.so"})
    assert demo.plain_environment() == {"PATH": "/bin", "GPUSIM_BUILD": "b", "GPUBOOST_PYTHON": "p",
                                        "LD_PRELOAD": "/lib/other.so"}
    monkeypatch.setattr(os, "environ", {"LD_PRELOAD": "/x/libgpuboost.so"})
    assert demo.plain_environment() == {}


def test_what_is_not_known_is_null_and_not_available():
    gpu = trial.Gpu("NVIDIA H100", "1234")
    run = types.SimpleNamespace(path="/r", device=None, snapshot={}, sites={})
    results = {"naive": (10.0, None), "gpuboost": (15.0, 50.0), "tuned": (20.0, None)}
    result = demo.summary(results, run, gpu)
    assert result == {
        "device": "NVIDIA H100", "simulated": False, "ratio_to_naive": 1.5, "ratio_to_tuned": 0.75, "top_sites": [],
        "runs": [{"name": "naive", "steps_per_s": 10.0, "busy_pct": None},
                 {"name": "gpuboost", "steps_per_s": 15.0, "busy_pct": 50.0},
                 {"name": "tuned", "steps_per_s": 20.0, "busy_pct": None}]}
    said = "\n".join(demo.table(result, run))
    assert "naive                      10.00       n/a      1.00      0.50\n" in said
    assert "naive under gpuboost       15.00    50.0 %      1.50      0.75\n" in said
    assert "SIMULATED" not in said and "sampled by nvidia-smi" in said


@pytest.mark.parametrize("arguments, settings, said", [
    (["--preset", "Z9"], {}, "--preset Z9: one of A20, A80, B64"),
    (["--steps", "0"], {}, "--steps 0: at least 1"),
    (["--log-every", "-1"], {}, "--log-every -1: at least 1, or 0 for never"),
    (["--model", "vgg"], {}, "invalid choice: 'vgg'"),
    (["--python", "/no/such/python"], {}, "/no/such/python is not there or no program (--python)"),
    ([], {"GPUBOOST_PYTHON": "/no/such/python"}, "/no/such/python is not there or no program (GPUBOOST_PYTHON)"),
    (["--python", "/bin/false"], {}, "/bin/false cannot import torch: status 1"),
    (["--json", "/dev/null/demo.json"], {}, "--json /dev/null/demo.json: "),
    ([], {"GPUBOOST_LIBRARY": "/no/such/lib.so"}, "/no/such/lib.so is not there"),
])
def test_errors_name_the_value(arguments, settings, said):
    done = gpuboost("demo", *arguments, **settings)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def stand_in_for_python(folder, body):
    """An "interpreter" that sees no GPU and runs a shell script instead of a training."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n[ \"$1\" = -c ] && exit 0\n{body}\n")
    python.chmod(0o755)
    return python


def test_a_training_that_fails_shows_what_it_said(tmp_path):
    python = stand_in_for_python(tmp_path, "echo out of luck >&2; exit 3")
    done = gpuboost("demo", "--python", python, "--json", tmp_path / "demo.json")
    assert done.returncode == 2 and "train_naive.py failed (status 3):\nout of luck" in done.stderr
    assert not (tmp_path / "demo.json").exists()


def test_a_gpu_that_is_not_proven_is_said(capsys):
    demo.prove(environment(GPUSIM_ATTRIBUTES="100:1", GPUSIM_DEVICES="1", XDG_STATE_HOME="/dev/null"), None)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "gpuboost prove ... no wait may be left out:"
    assert "FAILED  pageable memory is not the GPU's own" in said[2] and len(said) == 4


def test_a_run_that_leaves_no_record_is_said(tmp_path):
    """A training that prints no line and opens no GPU, in the form of the real one."""
    speed = '{"steps_per_s": 2, "start_monotonic_ns": 0, "end_monotonic_ns": 100}'
    truth = '{"devices": [{"intervals": {"compute": [[0, 50]]}}]}'
    python = stand_in_for_python(tmp_path, f"for f; do :; done; echo '{speed}' > $f; echo '{truth}' > $GPUSIM_TRUTH")
    done = gpuboost("demo", "--python", python, "--json", tmp_path / "demo.json")
    assert done.returncode == 2 and "the run under gpuboost left no record in " in done.stderr
    assert "[3/3] train_tuned.py ... 2.00 steps/s\n" in done.stdout


def test_no_training_outlives_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "TIME_LIMIT_S", 0.5)
    python = stand_in_for_python(tmp_path, "exec sleep 60")
    with pytest.raises(CommandError, match="did not end within 0.5 s"):
        trial.Trial("x", str(python), "train.py", [], dict(os.environ), trial.Gpu("GPU", "")).run()


def test_progress_on_a_terminal(tmp_path, monkeypatch):
    python = stand_in_for_python(
        tmp_path, "echo 'step 40: loss 1'; sleep 1; for f; do :; done; "
                  """echo '{"steps_per_s": 2, "start_monotonic_ns": 0, "end_monotonic_ns": 1}' > $f""")
    leader, follower = pty.openpty()
    code = ("import sys; sys.path.insert(0, sys.argv[1]); from gpuboost import trial\n"
            "trial.Trial('[1/3] x', sys.argv[2], 'train.py', [], {'PATH': '/bin:/usr/bin'}, trial.Gpu('GPU', '')).run()")
    done = subprocess.run([sys.executable, "-c", code, ROOT / "scripts", python], stdout=follower, timeout=60)
    os.close(follower)
    said = os.read(leader, 10000).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "\r[1/3] x ... step 40, " in said and said.rstrip().rsplit("\r", 1)[1].rstrip() == "[1/3] x ... 2.00 steps/s"


def test_a_short_demo(tmp_path):
    out = tmp_path / "new folder" / "demo.json"
    # Settings of the caller that would make the plain runs not plain, or keep the record away.
    done = gpuboost("demo", "--steps", 4, "--json", out, timeout=300, GPUBOOST_DISABLE="1", GPUSIM_CLOCK="virtual")
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert sorted(result) == ["device", "ratio_to_naive", "ratio_to_tuned", "runs", "simulated", "top_sites"]
    assert [entry["name"] for entry in result["runs"]] == ["naive", "gpuboost", "tuned"]
    speeds = [entry["steps_per_s"] for entry in result["runs"]]
    assert result["ratio_to_naive"] == speeds[1] / speeds[0] and result["ratio_to_tuned"] == speeds[1] / speeds[2]
    assert 1 <= len(result["top_sites"]) <= 3
    assert all(set(place) == {"file", "line", "idle_ms"} for place in result["top_sites"])
    lines = (WORKLOADS / "train_naive.py").read_text().splitlines()
    top = result["top_sites"][0]
    assert top["file"] == str(WORKLOADS / "train_naive.py") and '.to("cuda")' in lines[top["line"] - 1]
    said = done.stdout.splitlines()
    assert said[0].startswith("gpuboost prove ... ") and said[1].startswith("[1/3] train_naive.py ... ")
    assert "\r" not in done.stdout
    record = pathlib.Path([line for line in said if line.startswith("record  ")][0][8:])
    assert record.parent.parent == out.parent and (record / "record.jsonl").exists()
    if result["simulated"]:
        assert said[0] == "gpuboost prove ... waits may be left out"
        assert len(list((record.parent / "gpuboost" / "proven").iterdir())) == 2
        assert '"elide.waits"' in (record / "record.jsonl").read_text()
        assert result["device"].startswith("SIMULATED") and "   SIMULATED: " in said[-1]
        assert all(0 < entry["busy_pct"] <= 100 for entry in result["runs"])


def test_an_interrupt_ends_the_demo_and_the_training(tmp_path):
    pid = tmp_path / "pid"
    python = stand_in_for_python(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60")
    child = subprocess.Popen([COMMAND, "demo", "--python", python, "--json", tmp_path / "demo.json"], env=environment(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not pid.exists():
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(2)
    assert child.communicate(timeout=60)[1] == "" and child.returncode == -2
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
