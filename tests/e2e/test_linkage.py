"""What libgpuboost.so needs and offers, read with readelf.

The library is preloaded into every process of a session, on systems as old as glibc 2.17: one
symbol that libc.so.6 does not have there, and with -z now no program starts any more.
GPUBOOST_LIBRARY names another build to look at.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("GPUBOOST_LIBRARY", ROOT / "build/libgpuboost.so"))
NEWEST_GLIBC = (2, 17)
TLS_LIMIT_BYTES = 1024
# What gcc's crtbeginS.o refers to weakly; a process without them loads all the same.
WEAK = {"__cxa_finalize", "__gmon_start__",
        "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}


def readelf(*arguments):
    assert LIBRARY.is_file(), f"{LIBRARY} is missing: run make first"
    command = ["readelf", "-W", *arguments, str(LIBRARY)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def parse_symbol(line):
    """(name, version or None, binding, is undefined) of a line of readelf --dyn-syms."""
    fields = line.split()
    if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
        return None
    name, _, version = fields[7].partition("@")
    return name, version.lstrip("@") or None, fields[4], fields[6] == "UND"


@pytest.fixture(scope="module")
def symbols():
    parsed = [parse_symbol(line) for line in readelf("--dyn-syms").splitlines()]
    found = [s for s in parsed if s]
    assert len(found) > 20
    return found


@pytest.fixture(scope="module")
def undefined(symbols):
    return [s for s in symbols if s[3]]


@pytest.fixture(scope="module")
def exported(symbols):
    return [s for s in symbols if not s[3]]


def allowed():
    lines = (ROOT / "preload/base/allowed_symbols").read_text().split("\n")
    return [line for line in lines if line and not line.startswith("#")]


def test_list_is_sorted_and_holds_nothing_that_moved():
    names = allowed()
    assert names == sorted(set(names), key=lambda n: (n.lower(), n))
    # Outside libc.so.6, or not there at all, in 2.17.
    moved = {"pthread_create", "pthread_sigmask", "pthread_key_create", "pthread_once", "sem_post",
             "dlsym", "dlopen", "dlvsym", "stat", "fstat", "lstat", "fstatat", "fcntl64", "gettid",
             "memfd_create", "getrandom", "reallocarray"}
    # Not for us: they allocate, register or end the program.
    moved |= {"atexit", "__cxa_atexit", "malloc", "free", "exit", "abort", "getenv"}
    assert not moved & set(names)


def test_needs_libc_alone():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d"))
    assert needed == ["libc.so.6"]


def test_every_import_is_on_the_list(undefined):
    imported = {name for name, _, _, _ in undefined if name}
    assert imported - set(allowed()) == set()
    assert {"mmap", "write", "syscall"} <= imported  # readelf was understood


def test_no_import_is_newer_than_the_oldest_glibc(undefined):
    for name, version, binding, _ in undefined:
        if not name or (version is None and name in WEAK and binding == "WEAK"):
            continue
        # "GLIBC_2.2.5 (3)": readelf appends the index of the version.
        match = re.match(r"GLIBC_(\d+)\.(\d+)", version or "")
        assert match, f"{name} has no glibc version: {version}"
        assert (int(match[1]), int(match[2])) <= NEWEST_GLIBC, f"{name} needs {version}"


def test_exports_have_no_version(exported):
    # A version node silently stops interposition: callers ask for the unversioned name.
    for name, version, _, _ in exported:
        assert version is None, f"{name}@{version}"
    assert "Version definition" not in readelf("--version-info")


def test_exports_are_those_of_the_hook_list(exported):
    script = ["sh", str(ROOT / "scripts/gen_exports.sh"), str(ROOT / "preload/cuda/hooks.def")]
    text = subprocess.run(script, capture_output=True, text=True, check=True, timeout=60).stdout
    wanted = set(re.findall(r"^\s*(\w+);$", text.split("local:")[0], re.MULTILINE))
    names = {name for name, _, _, _ in exported}
    assert names == wanted
    assert not names & {"dlopen", "atexit", "malloc", "pthread_create"}
    assert not any(name.startswith("gb_") for name in names)


def test_hardening():
    dynamic, segments = readelf("-d"), readelf("-l")
    assert re.search(r"FLAGS.*\bNOW\b", dynamic)
    assert "GNU_RELRO" in segments
    stack = re.search(r"GNU_STACK.*", segments)
    assert stack and "E" not in stack[0].split()[-2]
    assert "TEXTREL" not in dynamic
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic)
    for flags in re.findall(r"^\s+LOAD\s.*?\s((?:R| )(?:W| )(?:E| ))\s+0x", segments, re.MULTILINE):
        assert "W" not in flags or "E" not in flags


def test_thread_local_storage_is_small_and_static():
    # Static TLS of a preloaded library comes out of a small surplus that big programs need.
    segment = r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)"
    match = re.search(segment, readelf("-l"), re.MULTILINE)
    if match:
        assert int(match[1], 16) <= TLS_LIMIT_BYTES
    relocations = readelf("-r")
    assert "DTPMOD" not in relocations and "TLSDESC" not in relocations
