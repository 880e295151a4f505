"""Bugs that other preloaded libraries had with the process around them: fork, threads, the GIL, other
preloaded libraries, the programs that are started. One test each.
"""

import pathlib
import subprocess
import sys
import textwrap

import pytest

import harness
from harness import LIBRARY, run


# ---- fork ----

def test_fork_while_other_threads_are_inside(built, fake, out):
    """HAMi-core PR 199, pytorch 184643: the child kept locks, once-flags and memory of the parent."""
    program = built("fork", str(fake / "libcuda.so.1"))
    done = run([program, "in_flight"], out, driver=fake, timeout=120)
    assert done.stdout == "done\n"
    assert done.stderr.count("gpuboost: verdict") == 1, done.stderr
    assert not list(out.parent.glob("run.*")), "a child left a record"
    assert done.lines[-1]["type"] == "end"
    assert done.totals["staged_copies"] > 0


def test_fork_before_cuda(built, fake, out):
    """A child of a process that has not begun with CUDA is a process like any other."""
    program = built("fork", str(fake / "libcuda.so.1"))
    done = run([program, "before_cuda"], out, driver=fake)
    assert [line["type"] for line in done.lines].count("run") == 1
    assert done.lines[-1]["type"] == "end"


# ---- Python ----

def test_another_thread_holds_the_gil_for_ever(built, fake, out):
    """pytorch 97833, 186295: the GIL was taken with another lock held. A stack needs no GIL."""
    library = built("libgil.so", str(fake / "libcuda.so.1"), library=True, source="gil.c")
    done = run([sys.executable, "-c", textwrap.dedent(f"""
        import ctypes, threading
        def work():
            ctypes.CDLL({str(library)!r}).copies(100)
        thread = threading.Thread(target=work)
        thread.start()
        ctypes.PyDLL({str(library)!r}).hold()
        thread.join()
    """)], out, driver=fake)
    stacks = [site["frames"] for site in done.sites() if site["call"] == "cuMemcpyHtoD_v2"]
    assert [frames[0]["func"] for frames in stacks] == ["work"], stacks


# ---- other libraries ----

def other_allocators():
    """Where Debian has them, when they are installed."""
    names = "libjemalloc.so.2", "libtcmalloc_minimal.so.4"
    found = [p for n in names for p in sorted(pathlib.Path("/usr/lib").glob(f"*-linux-gnu/{n}"))]
    return ["allocator.c", *map(str, found)]


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("allocator", other_allocators())
def test_preloaded_allocator(allocator, order, built, fake, out):
    """jemalloc 329, tebako 527: allocator and look-up called each other before anything was set up."""
    if allocator == "allocator.c":
        allocator = built("liballocator.so", "-fno-builtin", library=True, source="allocator.c")
    lookup = built("lookup", str(fake / "libcuda.so.1"))
    beside = {order: [allocator]}
    for case in ("itself", "twice", "threads"):
        done = run([lookup, case], out, driver=fake, **beside)
        assert done.stdout == "done\n"
    assert run(["/bin/sh", "-c", "echo shell"], out, **beside).stdout == "shell\n"


def test_library_that_only_the_callers_path_leads_to(built, out, tmp_path):
    """memray 212, heaptrack PR 48: with dlopen overridden, the caller's DT_RPATH was lost."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    harness.compile_c(folder / "libonly_there.so", "programs/self_lookup.c", library=True)
    opener = built("libopener.so", f"-Wl,--disable-new-dtags,-rpath,{folder}", library=True,
                   source="rpath.c")
    done = run([sys.executable, "-c", f"""
import ctypes
try:
    ctypes.CDLL("libonly_there.so")
    print("found without the path")
except OSError:
    print(ctypes.CDLL({str(opener)!r}).opens(b"libonly_there.so"))
"""], out)
    assert done.stdout == "1\n"


# ---- programs that are started ----

STARTS = """
import subprocess, sys
import torch
x = torch.ones(1000, device="cuda")
torch.cuda.synchronize()
import triton, pathlib
ptxas = next(pathlib.Path(triton.__file__).parent.rglob("bin/ptxas"))
source = ".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry f() { ret; }\\n"
for command in (["/bin/true"], ["bash", "-c", "echo out; echo err >&2; exit 3"], [str(ptxas), "--version"],
                [str(ptxas), "--gpu-name=sm_80", "-o", "/dev/null", "/dev/stdin"],
                [sys.executable, "-c", "import torch; print(torch.ones(3).sum())"]):
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    print(command[0], done.returncode, done.stdout, done.stderr)
"""


def test_programs_that_an_armed_one_starts(out):
    """triton 2845, torch_memory_saver 50: the variable reached ptxas, which ended with 127."""
    outputs = [run([sys.executable, "-c", STARTS], out, driver="sim", boost=boost).stdout
               for boost in (False, True)]
    assert outputs[0] == outputs[1]
    assert "ptxas 0 " in outputs[0] and "out\n" in outputs[0], outputs[0]
    assert not list(out.parent.glob("run.*")), "a child left a record"


def test_nothing_but_libc_is_needed():
    """torch_memory_saver 108, sglang 36533: a library that the loader did not find in a child's
    environment. Here the environment is empty but for ours."""
    done = subprocess.run(["/bin/true"], env={"LD_PRELOAD": str(LIBRARY)}, capture_output=True,
                          timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
