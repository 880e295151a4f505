"""gpuboost run: what goes through it unchanged, what it says, and when it says that nothing was recorded."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "bin" / "gpuboost"
TRAIN = [ROOT / "scripts/gpusim", sys.executable, ROOT / "tests/workloads/train_naive.py", "--steps", "3",
         "--warmup", "1", "--batch", "64", "--features", "64", "--hidden", "64"]


def environment(home, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBOOST", "GPUSIM_", "LD_", "XDG_"))}
    return {**env, "HOME": str(home), **more}


def gpuboost(home, *arguments, **more):
    return subprocess.run([COMMAND, *arguments], env=environment(home, **more), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status_goes_through(tmp_path, status):
    assert gpuboost(tmp_path, "run", "--", "sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_command_is_seen_as_killed(tmp_path, number):
    done = gpuboost(tmp_path, "run", "--", "sh", "-c", f"kill -{number.value} $$")
    assert done.returncode == -number


def test_signals_are_passed_on(tmp_path):
    script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([COMMAND, "run", "--", "sh", "-c", script], env=environment(tmp_path), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout.readline() == "ready\n"
        child.terminate()
        assert child.communicate(timeout=60)[0] == "got it\n"
        assert child.returncode == 5


def test_stdout_and_stdin_are_the_commands(tmp_path):
    done = subprocess.run([COMMAND, "run", "--", "cat"], input=b"\x00\xff bytes", env=environment(tmp_path),
                          capture_output=True, timeout=60)
    assert done.stdout == b"\x00\xff bytes"


@pytest.mark.parametrize("before", ["/nonexistent/first.so", "/nonexistent/first.so:/nonexistent/second.so"])
def test_ld_preload_is_kept_behind_ours(tmp_path, before):
    done = gpuboost(tmp_path, "run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=before)
    assert done.stdout.split(":", 1)[0].endswith("libgpuboost.so")
    assert done.stdout.strip().split(":", 1)[1] == before


def test_policy_and_out_reach_the_program(tmp_path):
    done = gpuboost(tmp_path, "run", "--policy", "observe", "--out", "/some/where", "--", "sh", "-c",
                    "echo $GPUBOOST_POLICY $GPUBOOST_OUT")
    assert done.stdout == "observe /some/where\n"


@pytest.mark.parametrize("command, status, said", [
    ([], 2, "no command"),
    (["--", "no-such-command-here"], 127, "no-such-command-here: command not found"),
    (["--", "/"], 126, "/: "),
    (["--policy", "fast", "--", "true"], 2, "invalid choice: 'fast'"),
])
def test_errors(tmp_path, command, status, said):
    done = gpuboost(tmp_path, "run", *command)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr


def test_missing_library(tmp_path):
    done = gpuboost(tmp_path, "run", "--", "true", GPUBOOST_LIBRARY=str(tmp_path / "none.so"))
    assert done.returncode == 2 and "none.so is not there; GPUBOOST_LIBRARY names it" in done.stderr


def test_library_that_cannot_be_preloaded(tmp_path):
    library = tmp_path / "a b.so"
    library.write_bytes(b"")
    done = gpuboost(tmp_path, "run", "--", "true", GPUBOOST_LIBRARY=str(library))
    assert done.returncode == 2 and "blank or a colon" in done.stderr


def test_a_command_without_cuda_is_said_once(tmp_path):
    done = gpuboost(tmp_path, "run", "--", "true")
    assert done.returncode == 0
    assert done.stderr == "gpuboost: true left no record: no process of it made a CUDA call that needs a GPU\n"


def test_static_program_is_named_as_such(tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["gcc", "-static", source, "-o", tmp_path / "static"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "is statically linked" in gpuboost(tmp_path, "run", "--", str(tmp_path / "static")).stderr


def test_a_training_run_is_recorded_and_reported(tmp_path):
    done = gpuboost(tmp_path, "run", "--", *map(str, TRAIN))
    assert done.returncode == 0, done.stderr
    assert "left no record" not in done.stderr and "3 steps, " in done.stdout
    report = gpuboost(tmp_path, "report")
    assert "SIMULATED" in report.stdout and "train_naive.py:" in report.stdout, report.stdout + report.stderr


def test_switched_off_is_named(tmp_path):
    done = gpuboost(tmp_path, "run", "--", *map(str, TRAIN), GPUBOOST_DISABLE="1")
    assert done.returncode == 0 and "GPUBOOST_DISABLE=1 may keep the library out" in done.stderr


def test_interrupt_ends_the_command_first(tmp_path):
    with subprocess.Popen([COMMAND, "run", "--", "sh", "-c", "trap 'echo int; exit 3' INT; echo ready; while :; do sleep 0.05; done"],
                          env=environment(tmp_path), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          start_new_session=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1)
        os.killpg(child.pid, signal.SIGINT)
        assert child.communicate(timeout=60)[0] == "int\n"
        assert child.returncode == 3
