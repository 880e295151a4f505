"""Things that go wrong around the library: the program's output and exit status stay as they are
without it, with one clear line on stderr where it is ours to say, and silence where it is not.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

import harness
from harness import run

PROGRAM = [sys.executable, harness.HERE / "programs" / "small_copies.py"]
ROUNDS = "40"


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """The small program without the library."""
    return run([*PROGRAM, ROUNDS, "exit:0"], tmp_path_factory.mktemp("plain") / "run", boost=False, driver="sim")


def ours(result):
    """What we said on stderr, but for the summary and where the record is."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("gpuboost:")]
    head = next((i for i, line in enumerate(lines) if "since the first CUDA call" in line), len(lines))
    return lines[:head]


def check_unharmed(result, plain):
    assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout)
    others = [line for line in result.stderr.splitlines() if not line.startswith("gpuboost:")]
    assert others == plain.stderr.splitlines()


# ---- options ----

@pytest.mark.parametrize("name, value, accepted", [
    ("RING", "banana", "a size from 8M to 1G"),
    ("CHUNK", "1", "a size from 256K to 64M"),
    ("STALL", "5 parsecs", "a time from"),
    ("POLICY", "fast", "one of observe,safe,max"),
    ("H2D", "maybe", "one of auto,off,on"),
    ("LOG", "loud", "one of quiet,warn,info,debug"),
    ("SUMMARY", "perhaps", "on or off"),
    ("DISABLE", "sometimes", "on or off"),
])
def test_bad_value(name, value, accepted, plain, out):
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim", **{f"GPUBOOST_{name}": value})
    check_unharmed(result, plain)
    said, = ours(result)
    assert f"GPUBOOST_{name}={value} is not {accepted}" in said and "stays in force" in said
    assert result.lines[0]["config"][f"GPUBOOST_{name}"]["source"] == "default"
    assert result.totals["staged_copies"] > 0


def test_unknown_option_and_the_nearest(plain, out):
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim", GPUBOOST_POLCY="observe")
    check_unharmed(result, plain)
    said, = ours(result)
    assert "GPUBOOST_POLCY is not an option" in said and "GPUBOOST_POLICY?" in said


def test_hostile_value_does_not_reach_the_terminal(plain, out):
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim", GPUBOOST_RING="\x1b[2J\r\nroot# ")
    check_unharmed(result, plain)
    assert len(ours(result)) == 1 and "\x1b" not in result.stderr and "\r" not in result.stderr


def test_config_file_that_is_not_there(plain, out, tmp_path):
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim", GPUBOOST_CONFIG=tmp_path / "none.conf")
    check_unharmed(result, plain)
    said, = ours(result)
    assert "none.conf" in said and "No such file" in said


# ---- the run directory ----

def in_shell(script, *command):
    return ["sh", "-c", script + '; exec "$@"', "sh", *command]


def check_record_off(result, plain, why):
    check_unharmed(result, plain)
    said, = ours(result)
    assert "the record is off" in said and why in said, said
    assert "verdict" in result.stderr, "the summary goes on"


def test_full_disk(plain, tmp_path):
    """A file system without room, in a mount name space of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    private = ["unshare", "--mount", "--"]
    if os.geteuid() != 0 or subprocess.run([*private, "mount", "-t", "tmpfs", "none", disk],
                                           timeout=60, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system; test_file_size_limit does without")
    fill = f"mount -t tmpfs -o size=64k none {disk} && cat /dev/zero >{disk}/fill 2>/dev/null"
    result = run([*private, *in_shell(fill, *PROGRAM, ROUNDS, "exit:0")], disk / "run", driver="sim")
    check_record_off(result, plain, "No space left on device")


@pytest.mark.parametrize("room", [0, 100])
def test_file_size_limit(room, built, fake, out):
    """Writing beyond it sends SIGXFSZ, which ends a process that does not expect it. On the fake driver,
    since the simulated GPU's memory is a file."""
    program = built("forward", fake / "libcudart.so.12", fake / "libcuda.so.1")
    whole = run([program, "nothing"], out, driver=fake)
    first_line = len((whole.out / "record.jsonl").read_text().splitlines()[0])
    limit = first_line + room if room else 0
    result = run(["prlimit", f"--fsize={limit}", "--", program, "nothing"], out.with_name("limited"), driver=fake)
    assert result.stdout == whole.stdout == "done\n"
    said, = ours(result)
    assert "the record is off" in said and "File too large" in said
    kinds = [line["type"] for line in result.lines or []]
    assert ("run" in kinds) == bool(room) and "end" not in kinds


def make_file(path):
    path.write_text("mine\n")
    return path / "run"


def make_symlink(path):
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")
    return path


def make_open_to_all(path):
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.mark.parametrize("make, why", [
    (make_file, "Not a directory"),
    (make_symlink, "symbolic link"),
    (make_open_to_all, "everybody may write"),
    (lambda path: "/proc/gpuboost/run", "No such file"),
    (lambda path: path / ("long" * 100), "name too long"),
])
def test_run_directory_that_cannot_be(make, why, plain, tmp_path):
    out = make(tmp_path / "place")
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim")
    check_record_off(result, plain, why)
    assert not list(tmp_path.rglob("record.jsonl"))


def test_read_only_directory(plain, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o555)
    # root without the privilege to write everywhere
    as_others = ["setpriv", "--bounding-set=-dac_override", "--"] if os.geteuid() == 0 else []
    result = run([*as_others, *PROGRAM, ROUNDS, "exit:0"], folder / "run", driver="sim")
    check_record_off(result, plain, "Permission denied")


def test_killed_run_leaves_a_readable_record(out):
    result = run([*PROGRAM, "25", "signal:9"], out, driver="sim", check=False)
    assert result.returncode == -9 and result.stdout == "copied 25\n"
    kinds = [line["type"] for line in result.lines]
    assert kinds[0] == "run" and "end" not in kinds
    assert result.totals["forwarded_copies"] > 0 and result.sites()


# ---- where the library has nothing to do ----

NO_CUDA = {
    "true": ["/bin/true"],
    "false": ["/bin/false"],
    "missing file": ["ls", "/no/such/file"],
    "bash": ["bash", "-c", "echo out; echo err >&2; (exit 7) | cat; exit 3"],
    "pipes": ["bash", "-c", "seq 1000 | sort -rn | head -3; echo ${PIPESTATUS[@]}"],
    "gcc": ["bash", "-c", "echo 'int main(void){return 5;}' >$0/a.c && gcc -o $0/a $0/a.c && $0/a"],
    "compile error": ["bash", "-c", "echo 'int main(' | gcc -x c -"],
    "python": [sys.executable, "-c", "import subprocess; print(subprocess.run(['/bin/echo', 'hi']).returncode)"],
    "killed": ["bash", "-c", "kill -TERM $$"],
}


@pytest.mark.parametrize("name", NO_CUDA)
def test_program_without_cuda(name, out, tmp_path):
    """Not a word, not a file, also where an option is wrong."""
    command = [str(c).replace("$0", str(tmp_path)) for c in NO_CUDA[name]]
    without = run(command, out, boost=False, check=False)
    with_it = run(command, out, check=False, GPUBOOST_RING="banana", GPUBOOST_NONSENSE="1", GPUBOOST_SHOW_CONFIG="1")
    assert (with_it.returncode, with_it.stdout, with_it.stderr) == (without.returncode, without.stdout, without.stderr)
    assert not out.exists()


TORCH = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count(), torch.ones(3).sum().item())"


def test_torch_without_a_driver(out):
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    without = run([sys.executable, "-c", TORCH], out, boost=False)
    with_it = run([sys.executable, "-c", TORCH], out)
    assert with_it.stdout == without.stdout == "False 0 3.0\n"
    assert with_it.stderr == without.stderr
    assert not out.exists()


def test_torch_with_a_driver_and_no_gpu(out):
    without = run([sys.executable, "-c", TORCH], out, boost=False, driver="sim", GPUSIM_DEVICES="0")
    with_it = run([sys.executable, "-c", TORCH], out, driver="sim", GPUSIM_DEVICES="0")
    assert with_it.stdout == without.stdout == "False 0 3.0\n"
    assert with_it.stderr == without.stderr
    assert not out.exists()


# ---- stacks ----

RUNTIME = ["-rdynamic", str(harness.SIM / "libcudart.so.12"), "-Wl,--allow-shlib-undefined"]


def stacks(result):
    return [line for line in result.lines if line["type"] == "stacks"][-1]


@pytest.mark.parametrize("there", [True, False])
def test_libunwind(there, tmp_path, out):
    """Only what the native frames would have said is missing without it."""
    program = harness.compile_c(tmp_path / "program", "programs/copies.c", flags=RUNTIME)
    if not there:
        (tmp_path / "libunwind.so.8").write_text("not a library")
    result = run([program], out, driver="sim", GPUBOOST_STALL="1us", LD_LIBRARY_PATH=tmp_path)
    assert result.stdout == "copied 40\n" and not ours(result)
    assert stacks(result)["native"].startswith("on: libunwind" if there else "off: no libunwind.so.8")
    copies = [site for site in result.sites() if site["call"] == "cudaMemcpy"]
    assert {site["module"] for site in copies} == {"program"}
    assert all(bool(site["native"]) == there for site in copies)


def test_python_stacks_are_on(plain, out):
    """What the next test would show if it proved nothing."""
    result = run([*PROGRAM, ROUNDS, "exit:0"], out, driver="sim")
    check_unharmed(result, plain)
    assert stacks(result)["python"].startswith("on: CPython")
    assert {site["frames"][0]["file"] for site in result.sites()} == {str(PROGRAM[1])}


RUNTIME_STATE = "char _PyRuntime[1 << 20]; "
SYMBOLS = RUNTIME_STATE + """
static long state[1 << 12];
void *PyGILState_GetThisThreadState(void) { return state; }
char PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512];
"""
CLAIMS = {
    "no Python": ("", "no Python in this process"),
    "of the next decade": (SYMBOLS + "const unsigned long Py_Version = 0x036300f0;", "off: CPython 3.99.0: "),
    "without its symbols": (RUNTIME_STATE + "const unsigned long Py_Version = 0x030c01f0;", "off: CPython 3.12.1: its symbols are hidden"),
    "of another layout": (SYMBOLS + "const unsigned long Py_Version = 0x030c01f0;", "off: CPython 3.12.1: failed the start-up proof"),
    "too old": ('const char *Py_GetVersion(void) { return "2.7.18 (default)"; }', "off: this Python has no _PyRuntime"),
    "nonsense": (SYMBOLS + 'const char *Py_GetVersion(void) { return "gpuboost"; }', "off: "),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_python_that_is_not_known(claim, out, tmp_path):
    """A C program that says it is some Python: no frames, a reason, and no crash."""
    text, status = CLAIMS[claim]
    source = tmp_path / "claim.c"
    source.write_text(text + "\nint not_empty;\n")
    program = harness.compile_c(tmp_path / "program", "programs/copies.c", source, flags=RUNTIME)
    result = run([program], out, driver="sim")
    assert result.stdout == "copied 40\n" and not ours(result)
    assert stacks(result)["python"].startswith(status), stacks(result)
    assert result.sites() and not any(site["frames"] for site in result.sites())


# ---- stderr ----

def test_closed_stderr(plain, out, tmp_path):
    """The program's file gets descriptor 2: nothing of ours may land in it."""
    logs = []
    for boost in (False, True):
        log = tmp_path / f"log-{boost}"
        result = run(in_shell("exec 2>&-", *PROGRAM, ROUNDS, "exit:0", log), out, boost=boost, driver="sim",
                     GPUBOOST_SHOW_CONFIG="1")
        assert result.stdout == plain.stdout
        logs.append(log.read_text())
    assert logs[0].startswith("2: 0\n"), "the file did not get descriptor 2: this shows nothing"
    assert logs[1] == logs[0]
    assert result.totals["staged_copies"] > 0


def test_stderr_that_nobody_reads(plain, out):
    result = run(["bash", "-c", '"$@" 2> >(exec 0<&-; sleep 0.1)', "bash", *PROGRAM, ROUNDS, "exit:0"], out,
                 driver="sim", GPUBOOST_SHOW_CONFIG="1")
    assert result.stdout == plain.stdout
    assert result.totals["staged_copies"] > 0


# ---- the program's own end ----

@pytest.mark.parametrize("policy", ["observe", "safe"])
@pytest.mark.parametrize("end", ["exit:0", "exit:3", "_exit:5", "raise", "signal:6", "signal:11", "signal:15"])
def test_exit_status_and_output(end, policy, out):
    without = run([*PROGRAM, ROUNDS, end], out, boost=False, driver="sim", check=False)
    result = run([*PROGRAM, ROUNDS, end], out, driver="sim", check=False, GPUBOOST_POLICY=policy)
    check_unharmed(result, without)
    assert (end == "raise") == ("ValueError" in result.stderr)
    assert re.search("since the first CUDA call", result.stderr) or not end.startswith(("exit", "raise"))
    assert result.lines[0]["type"] == "run"
