"""Python stacks read without the GIL, on every CPython found, against the interpreter's own answer.

Interpreters: GPUBOOST_TEST_PYTHONS (separated by ':'), else pyenv's 3.9-3.13 and /usr/bin/python3.
"""
import glob
import os
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PRELOAD = os.path.join(HERE, "..", "..", "preload")
CASES = os.path.join(HERE, "pystack_cases.py")
NAMES = ["nested", "extract_stack", "closures", "generators", "throw_close", "async",
         "comprehensions", "decorators", "callbacks", "metaclass", "weakref_and_del",
         "exec_and_lines", "unicode", "short_file_names", "recursion", "threads", "other_thread_runs",
         "foreign_threads", "fork", "deadlock", "daemon_threads_at_exit", "trace_and_profile",
         "address_reuse", "ids_are_canonical", "frames_limit", "proof_refuses", "lines", "native",
         "elf_old_hash"]
WANTED = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


def pyenv(version):
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python3"))
    return found[-1] if found else None


def interpreters():
    """(name, path or None) of every interpreter that is wanted."""
    named = os.environ.get("GPUBOOST_TEST_PYTHONS")
    if named:
        return [(path, path) for path in named.split(":") if path]
    found = [(v, pyenv(v) or shutil.which("python" + v)) for v in WANTED]
    system = "/usr/bin/python3"
    return found + [("system", system if os.path.exists(system) else None)]


FOUND = [pytest.param(path, id=name) for name, path in interpreters() if path]


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    path = tmp_path_factory.mktemp("pystack") / "pystack_probe.so"
    sources = sorted(glob.glob(os.path.join(PRELOAD, "stack", "pystack*.c")))
    sources += [os.path.join(PRELOAD, n) for n in ("base/elf.c", "base/lock.c", "stack/native_stack.c")]
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra",
                    "-Werror", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-shared",
                    "-iquote", PRELOAD, "-Wl,--hash-style=sysv", "-o", str(path),
                    os.path.join(HERE, "pystack_probe.c"), *sources, "-lpthread"],
                   check=True, timeout=120)
    return str(path)


def run(python, probe, case, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
    env.update(more, PYTHONIOENCODING="utf-8:backslashreplace")
    return subprocess.run([python, "-X", "faulthandler", CASES, probe, case], text=True, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)


def test_every_case_is_listed(probe):
    listed = run(sys.executable, probe, "list").stdout.split()
    assert sorted(NAMES) == sorted(listed)


@pytest.mark.parametrize("name,path", interpreters())
def test_interpreter_is_there(name, path):
    if not path:
        pytest.skip(f"no CPython {name} under pyenv or in PATH: its layout is not tested here")
    assert subprocess.run([path, "-c", "import ctypes"], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("python", FOUND)
def test_stack(python, probe, case):
    result = run(python, probe, case)
    print(result.stdout)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8"])
def test_unknown_version_is_off_with_a_reason(probe, version, tmp_path):
    python = pyenv(version) or shutil.which("python" + version)
    if version == "2.7":
        found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/2.7.*/bin/python2.7")))
        python = found[-1] if found else None
    if not python:
        pytest.skip(f"no CPython {version}")
    script = tmp_path / "old.py"
    script.write_text("import ctypes, sys\n"
                      "lib = ctypes.CDLL(sys.argv[1])\n"
                      "lib.probe_status.restype = ctypes.c_char_p\n"
                      "seen = lib.probe_capture(), lib.probe_status().decode()\n"
                      "sys.stdout.write('%d %s' % seen)\n")
    result = subprocess.run([python, str(script), probe], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=60)
    print(result.stdout)
    assert result.returncode == 0
    text = result.stdout
    assert " off: " in text and ("not known" in text or "no _PyRuntime" in text), text


@pytest.mark.parametrize("python", FOUND)
def test_wrong_table_is_off_with_a_reason(python, tmp_path):
    """The library itself, with every row of the fixed table moved: refused, and nothing crashes."""
    copy = tmp_path / "preload"
    shutil.copytree(PRELOAD, copy)
    table = copy / "stack" / "pystack_offsets.def"
    text = table.read_text()
    moved = text.replace(".frame_code = ", ".frame_code = 8 + ")
    assert moved != text
    table.write_text(moved)
    path = tmp_path / "wrong.so"
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-fPIC",
                    "-fvisibility=hidden", "-shared", "-iquote", str(copy), "-o",
                    str(path), "-x", "c", "-", *sorted(map(str, copy.glob("stack/pystack*.c"))), str(copy / "base/elf.c"),
                    str(copy / "base/lock.c"), str(copy / "stack/native_stack.c"), "-lpthread"],
                   input=open(os.path.join(HERE, "pystack_probe.c")).read(), text=True, check=True, timeout=120)
    result = run(python, str(path), "status")
    print(result.stdout)
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("0 off: CPython 3.") and "proof" in result.stdout


def test_seccomp_style_refusal_of_process_vm_readv(probe):
    """Where process_vm_readv is refused the proof reads through a pipe: seen with strace's
    fault injection; skipped, with the reason, where strace may not trace."""
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("no strace here")
    python = FOUND[0].values[0] if FOUND else sys.executable
    result = subprocess.run([strace, "-f", "-qq", "-o", "/dev/null", "-e",
                             "inject=process_vm_readv:error=EPERM", python, CASES, probe, "nested"],
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=120)
    if "ptrace" in result.stdout.lower():
        pytest.skip("strace may not trace here")
    assert result.returncode == 0 and "on: CPython" in result.stdout, result.stdout


def test_native_frames_without_and_with_libunwind_beside_the_library(probe, tmp_path):
    """One that cannot be loaded: 0 frames and a status; a good one beside us is preferred."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "libunwind.so.8").write_bytes(b"not a library")
    result = run(sys.executable, probe, "native", LD_LIBRARY_PATH=str(broken))
    assert result.returncode == 0, result.stdout
    assert "native: off: no libunwind.so.8" in result.stdout
    good = next(iter(glob.glob("/usr/lib*/libunwind.so.8") +
                     glob.glob("/usr/lib/*-linux-gnu/libunwind.so.8")), None)
    if not good:
        pytest.skip("no libunwind.so.8 on this machine")
    beside = tmp_path / "beside"
    beside.mkdir()
    shutil.copy(probe, beside / "pystack_probe.so")
    shutil.copy(good, beside / "libunwind.so.8")
    result = run(sys.executable, str(beside / "pystack_probe.so"), "native",
                 LD_LIBRARY_PATH=str(broken))
    assert result.returncode == 0 and "native: on: libunwind.so.8" in result.stdout, result.stdout
