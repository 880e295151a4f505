"""gpuboost run: what goes through it unchanged, what it says, and when it says that nothing was recorded."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time

import pytest

from command_line import COMMAND, ROOT, environment, gpuboost, training

sys.path.insert(0, str(ROOT / "scripts"))

from gpuboost import library  # noqa: E402

TRAIN = training("train_naive", "--steps", 3, "--warmup", 1, "--batch", 64, "--features", 64, "--hidden", 64)
SAYS_READY = "echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path)}


@pytest.fixture
def started(home):
    """Starts a shell script under the command, waits until it says ready; whatever is left is killed."""
    children = []

    def start(script, *before):
        child = subprocess.Popen([*before, COMMAND, "run", "--", "sh", "-c", script], env=environment(**home),
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        children.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.communicate()


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status_goes_through(home, status):
    assert gpuboost("run", "--", "sh", "-c", f"exit {status}", **home).returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE])
def test_a_killed_command_is_seen_as_killed(home, number):
    done = gpuboost("run", "--", "sh", "-c", f"kill -{number.value} $$", **home)
    assert done.returncode == -number


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_are_passed_on(started, name):
    child = started(f"trap 'echo got it; exit 5' {name}; {SAYS_READY}")
    os.kill(child.pid, getattr(signal, f"SIG{name}"))
    assert child.communicate(timeout=60)[0] == "got it\n"
    assert child.returncode == 5


def test_a_signal_from_the_terminal_arrives_once(home):
    """^C goes to the whole foreground group, so that to pass it on would be to send it twice."""
    program = ("import signal, sys, time\n"
               "got = []\n"
               "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
               "print('ready', flush=True)\n"
               "while not got: time.sleep(0.01)\n"
               "time.sleep(0.3)\n"
               "sys.exit(40 + len(got))\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, ["gpuboost", "run", "--", sys.executable, "-c", program], environment(**home))
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 41


def test_what_nohup_ignores_stays_ignored(started):
    child = started(f"kill -HUP $$; echo ready; trap 'echo got it; exit 5' TERM; {SAYS_READY}", "nohup")
    os.kill(child.pid, signal.SIGHUP)
    assert child.stdout.readline() == "ready\n"
    child.terminate()
    assert child.communicate(timeout=60)[0] == "got it\n"


def test_no_signal_stays_blocked(home):
    shown = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    assert gpuboost("run", "--", sys.executable, "-c", shown, **home).stdout == "[]\n"


def test_stdout_and_stdin_are_the_commands(home):
    done = subprocess.run([COMMAND, "run", "--", "cat"], input=b"\x00\xff bytes", env=environment(**home),
                          capture_output=True, timeout=60)
    assert done.stdout == b"\x00\xff bytes"


@pytest.mark.parametrize("before", ["/nonexistent/first.so", "/nonexistent/first.so:/nonexistent/second.so"])
def test_ld_preload_is_kept_behind_ours(home, before):
    done = gpuboost("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=before, **home)
    assert done.stdout.split(":", 1)[0].endswith("libgpuboost.so")
    assert done.stdout.strip().split(":", 1)[1] == before


def test_policy_and_out_reach_the_program(home):
    done = gpuboost("run", "--policy", "observe", "--out", "/some/where", "--", "sh", "-c",
                    "echo $GPUBOOST_POLICY $GPUBOOST_OUT", **home)
    assert done.stdout == "observe /some/where\n"


def test_arguments_of_the_command_are_its_own(home):
    done = gpuboost("run", "printf", "%s\n", "--out", "--", "--help", "a b", **home)
    assert done.stdout == "--out\n--\n--help\na b\n"


@pytest.mark.parametrize("command, status, said", [
    ([], 2, "no command"),
    (["--", "no-such-command-here"], 127, "no-such-command-here: command not found"),
    (["--", "/"], 126, "/: "),
    (["--policy", "fast", "--", "true"], 2, "invalid choice: 'fast' (choose from"),
])
def test_errors(home, command, status, said):
    done = gpuboost("run", *command, **home)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr


def test_missing_library(home, tmp_path):
    done = gpuboost("run", "--", "true", GPUBOOST_LIBRARY=str(tmp_path / "none.so"), **home)
    assert done.returncode == 2 and "none.so is not there; GPUBOOST_LIBRARY names it" in done.stderr


def test_library_that_is_not_built(tmp_path):
    shutil.copytree(ROOT / "scripts/gpuboost", tmp_path / "scripts/gpuboost")
    env = {name: value for name, value in environment().items() if name != "GPUBOOST_LIBRARY"}
    done = subprocess.run([sys.executable, tmp_path / "scripts/gpuboost", "run", "--", "true"], env=env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"gpuboost: {tmp_path}/build/libgpuboost.so is not there; build it with: make -C {tmp_path}\n"


def test_library_that_cannot_be_preloaded(home, tmp_path):
    library = tmp_path / "a b.so"
    library.write_bytes(b"")
    done = gpuboost("run", "--", "true", GPUBOOST_LIBRARY=str(library), **home)
    assert done.returncode == 2 and "blank or a colon" in done.stderr


def test_a_command_without_cuda_is_said_once(home):
    done = gpuboost("run", "--", "true", **home)
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr.startswith("gpuboost: true left no record: no process of it made a CUDA call that needs a GPU")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("settings, said", [
    ({"GPUBOOST_DISABLE": "yes"}, "GPUBOOST_DISABLE=yes switches the library off"),
    ({"GPUBOOST_DISABLE": "0", "GPUBOOST_NOT": "true"}, "GPUBOOST_NOT=true may keep the library out"),
    ({"GPUBOOST_OUT": "/dev/null/run"}, "/dev/null is not a directory"),
    ({"GPUBOOST_OUT": "/proc/%p/run"}, " /proc"),  # root may write there, but there is no space
])
def test_the_likely_reason_is_named(home, settings, said):
    stderr = gpuboost("run", "--", "true", **home, **settings).stderr
    assert stderr.startswith("gpuboost: true left no record: ") and said in stderr and stderr.count("\n") == 1


@pytest.mark.parametrize("flags, mode, said", [
    (["-static"], 0o755, "{0} is statically linked: nothing can be preloaded"),
    (["-static-pie"], 0o755, "{0} is statically linked: nothing can be preloaded"),
    ([], 0o4755, "{0} is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD"),
    ([], 0o755, "{0} left no record: no process of it made a CUDA call"),
])
def test_programs_that_nothing_is_preloaded_into(home, tmp_path, flags, mode, said):
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["gcc", *flags, tmp_path / "program.c", "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    program.chmod(mode)
    assert said.format(program) in gpuboost("run", "--", program, **home).stderr


def test_no_record_wanted_is_no_news(home):
    assert gpuboost("run", "--", "true", GPUBOOST_OUT="none", **home).stderr == ""


def verdict_of(text):
    """Of the report or of the library's summary: they must agree."""
    return [line for line in text.splitlines() if line.startswith("verdict  ")][0]


@pytest.mark.parametrize("how", ["default", "pattern", "taken"])
def test_a_training_run_is_recorded_and_reported(tmp_path, home, how):
    settings = dict(home)
    if how == "pattern":
        settings["GPUBOOST_OUT"] = str(tmp_path / "100%%[1]" / "%h" / "run-%p")
    if how == "taken":
        settings["GPUBOOST_OUT"] = str(tmp_path / "here")
        (tmp_path / "here").mkdir()
        (tmp_path / "here/record.jsonl").write_text('{"type":"run","format":1,"start_unix_ns":1}\n')
    done = gpuboost("run", "--", *TRAIN, **settings)
    assert done.returncode == 0, done.stderr
    assert "left no record" not in done.stderr and "3 steps, " in done.stdout
    report = gpuboost("report", **settings)
    assert "SIMULATED" in report.stdout and "train_naive.py:" in report.stdout, report.stdout + report.stderr
    assert verdict_of(report.stdout) == verdict_of(done.stderr.replace("gpuboost: ", ""))
    if how == "taken":
        assert report.stdout.startswith(f"run      {tmp_path}/here.1\n")


@pytest.mark.parametrize("env, place", [
    ({"GPUBOOST_OUT": "none"}, None),
    ({"GPUBOOST_OUT": "/a[b]/%p%%x%h/c"}, "/a[[]b]/*%x*/c"),
    ({"GPUBOOST_CONFIG": "FILE"}, "/from/file"),
    ({"GPUBOOST_CONFIG": "FILE", "GPUBOOST_OUT": "/from/env"}, "/from/env"),
    ({"GPUBOOST_CONFIG": "/no/such/file", "XDG_STATE_HOME": "/state"}, "/state/gpuboost/*"),
    ({"XDG_STATE_HOME": "relative", "HOME": "/home/ann"}, "/home/ann/.local/state/gpuboost/*"),
    ({}, None),
])
def test_where_the_library_keeps_its_runs(tmp_path, env, place):
    (tmp_path / "settings").write_text("# a comment\nGPUBOOST_POLICY=safe\n GPUBOOST_OUT = /from/file \n")
    env = {name: value.replace("FILE", str(tmp_path / "settings")) for name, value in env.items()}
    assert library.place_of_runs(env) == place


def test_a_run_of_somebody_else_is_not_ours(tmp_path, home):
    """A record that another process keeps writing to says nothing about this command."""
    other = tmp_path / ".local/state/gpuboost/python-x-1"
    other.mkdir(parents=True)
    script = f"""echo '{{"type":"run","format":1,"start_unix_ns":{time.time_ns()}}}' > {other}/record.jsonl"""
    assert "left no record" in gpuboost("run", "--", "sh", "-c", script, **home).stderr
