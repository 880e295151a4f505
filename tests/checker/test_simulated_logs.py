"""The checker on logs that the simulated GPU wrote: small and random programs on its driver, torch with the library.

As in test_happens_before.py, {} is what makes the order, there or missing.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / folder) for folder in ("sim", "e2e", "oracle"))]

import harness  # noqa: E402
import on_gpusim  # noqa: E402
import oracle  # noqa: E402
import sim_environment  # noqa: E402
from rules import Checker  # noqa: E402

HAZARD = HERE.parent / "e2e/programs/hazard_side_stream.py"
BEGIN = """
    from driver_api import *
    start()
    s, t, e, n = stream(), stream(), event(), 4096
    d, other, p, host = alloc(n), alloc(n), pinned(n), Host(n)
    lib.gpusim_note_access.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    note = lib.gpusim_note_access
    FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    words = lambda *w: (ctypes.c_uint64 * len(w))(*w)

    class Op(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char * 48), ("flops", ctypes.c_uint64), ("inputs", ctypes.c_uint32),
                    ("outputs", ctypes.c_uint32), ("ranges", ctypes.c_uint64 * 64)]
"""
WAIT = "cu.EventRecord(e, s); cu.StreamWaitEvent(t, e, 0)"
CASES = {
    "event": ("""
        cu.MemsetD8Async(d, 1, n, s)
        {}
        cu.MemcpyDtoHAsync_v2(p.address, d, n, t)""", WAIT, ""),
    "kind of stream": ("""
        u = stream({})
        cu.MemsetD8Async(d, 1, n, u)
        cu.MemcpyDtoHAsync_v2(p.address, d, n, 0)""", "0", "NON_BLOCKING"),
    "per-thread variant": ("""
        cu.MemsetD8Async(d, 1, n, stream(0))
        {}(pack(d), 2, pack(n))""", "lib.cuMemsetD8_v2", "lib.cuMemsetD8_v2_ptds"),
    "the program's own access": ("""
        cu.MemcpyHtoDAsync_v2(d, p.address, n, s)
        {}
        note(p.address + 64, 4, 1)""", "cu.StreamSynchronize(s)", ""),
    "registered memory": ("""
        cu.MemHostRegister_v2(host.address, n, 0)
        cu.MemcpyDtoHAsync_v2(host.address + 16, d, 64, s)
        {}
        note(host.address + 64, 4, 0)""", "cu.StreamSynchronize(s)", ""),
    "pageable source": ("""
        {}
        cu.MemcpyHtoDAsync_v2(d, host.address, n, s)
        note(host.address, n, 1)""", "", "cu.MemHostRegister_v2(host.address, n, 0)"),
    "host function": ("""
        function = FUNCTION(lambda _: note(p.address, 4, 1))
        cu.LaunchHostFunc({}, function, p.address)
        cu.MemcpyHtoDAsync_v2(d, p.address, n, s)
        cu.StreamSynchronize(t)""", "s", "t"),
    "rows": ("""
        box = (ctypes.c_uint64 * 16)(0, 0, 1, p.address, 0, 0, 64, 32, 0, 2, 0, d, 0, 64, 32, 4)
        cu.MemsetD2D8Async(d, 64, 1, {}, 4, t)
        cu.Memcpy2DAsync_v2(box, s)""", "32", "33"),
    "batch": ("""
        attributes, failed = (ctypes.c_uint32 * 6)({}), ctypes.c_size_t()
        cu.MemcpyBatchAsync(words(d), words(p.address), words(64), 1, attributes, words(0), 1, ctypes.byref(failed), s)
        note(p.address, 4, 1)""", "2", "1"),
    "operands of a kernel": ("""
        op = Op(b"gemm", 1, 1, 1)
        op.ranges[0:2], op.ranges[32:34] = (d, 64), (other, 64)
        launch(b"gpusim::op", [op], s)
        {}
        cu.MemsetD8Async(other + 32, 1, 4, t)""", WAIT, ""),
    "memory of a pool": ("""
        q = get("MemAllocAsync", n, s)
        {}
        cu.MemsetD8Async(q, 1, n, t)""", WAIT, ""),
    "free in stream order": ("""
        q = get("MemAllocAsync", n, s)
        cu.MemsetD8Async(q, 1, n, s)
        cu.MemFreeAsync(q, {})""", "s", "t"),
    "capture": ("""
        cu.MemsetD8Async(d, 1, n, t)
        cu.StreamBeginCapture_v2(s, GLOBAL); cu.MemcpyHtoDAsync_v2(d, p.address, n, s)
        graph = get("GraphInstantiateWithFlags", end(s)[1], 0)
        {}
        cu.GraphLaunch(graph, s)""", "cu.StreamSynchronize(t)", ""),
    "two contexts": ("""
        cu.MemsetD8Async(d, 1, n, 0)
        {}
        cu.MemcpyHtoDAsync_v2(d, p.address, n, 0)""", "", 'get("CtxCreate_v2", 0, 0)'),
    "free": ("""
        cu.MemsetD8Async(d, 1, n, s)
        {}
        cu.MemFree_v2(d)""", "cu.CtxSynchronize()", ""),
}


def drive(tmp_path, script, **settings):
    """The log of a script on the stand-in driver."""
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    env = sim_environment.clean_environment(GPUSIM_LOG=log, **settings)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(BEGIN) + textwrap.dedent(script)], env=env,
                          timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return log


def check(log, **options):
    checker = Checker(**options)
    with open(log) as lines:
        checker.run(lines)
    return checker.found()


@pytest.mark.parametrize("name", CASES)
def test_one_order(tmp_path, name):
    script, there, missing = CASES[name]
    assert check(drive(tmp_path, script.replace("{}", there), GPUSIM_LOG_ADDRESSES=1)) == []
    assert len(check(drive(tmp_path, script.replace("{}", missing), GPUSIM_LOG_ADDRESSES=1))) == 1


def test_the_log_holds_no_address_unless_asked(tmp_path):
    script = CASES["pageable source"][0].replace("{}", "cu.MemsetD8Async(get('MemAllocAsync', n, s), 1, n, s)")
    plain = drive(tmp_path, script).read_text().splitlines()
    full = drive(tmp_path, script, GPUSIM_LOG_ADDRESSES=1).read_text().splitlines()
    assert all(re.fullmatch(r"\d+ drv \w+\(.*\) = \d+", line) for line in plain)
    assert any(", host, " in line for line in plain) and not any("host+" in line for line in plain)
    shortened = [re.sub(r"host\+\d+", "host", re.sub(r"(= \d+) .*", r"\1", line)) for line in full]
    assert [line for line in shortened if " note " not in line] == plain


# --- torch ---

def run_torch(folder, policy, *command, **settings):
    """The log of a program under a policy, None: without the library."""
    log = folder / "log"
    folder.mkdir()
    result = on_gpusim.run(folder, policy, *command, GPUSIM_CLOCK="virtual", GPUSIM_LOG=log,
                           GPUSIM_LOG_ADDRESSES=1, **settings)
    return log, result


def test_the_library_adds_no_pair_to_a_training_run(tmp_path):
    """Its staging memory is filled before each copy; without its waits for that memory there would be pairs."""
    command = [on_gpusim.WORKLOADS / "train_naive.py", "--batch", "512", "--steps", "16", "--warmup", "2",
               "--log-every", "4"]
    logs = {policy: run_torch(tmp_path / str(policy), policy, *command) for policy in (None, "observe", "safe")}
    for options in ({}, {"refilled": True}, {"as_seen": True}):
        found = {policy: check(log, **options) for policy, (log, _) in logs.items()}
        assert found == {None: [], "observe": [], "safe": []}
    log, result = logs["safe"]
    assert result.totals["staged_copies"] >= 8, result.snapshot["counts"]
    lines = log.read_text().splitlines()
    assert sum("reads d" in line and "writes d" in line for line in lines) >= 16 * 4, "kernels say nothing"
    log.write_text("\n".join(line for line in lines if "cuEventSynchronize" not in line))
    assert check(log, refilled=True)


def test_a_careless_library_is_found(tmp_path):
    """By NVIDIA's text the program itself has a race, which a driver's wait hides: as seen, it has none."""
    careless = harness.compile_c(tmp_path / "careless.so", "programs/careless.c", library=True)
    plain, _ = run_torch(tmp_path / "plain", None, HAZARD, 1, 2)
    safe, result = run_torch(tmp_path / "safe", "safe", HAZARD, 1, 2)
    bad, _ = run_torch(tmp_path / "bad", None, HAZARD, 1, 2, LD_PRELOAD=careless)
    assert result.totals["staged_copies"] > 0
    assert check(plain) and not check(plain, as_seen=True)
    assert not check(safe, as_seen=True)
    assert check(bad, as_seen=True)


# --- the oracle's random programs, which are without a race by its own idea of what is ordered ---

def run_random(folder, setting, seed):
    log = folder / f"log-{seed}"
    environment = {**setting.environment, "GPUSIM_LOG": log, "GPUSIM_LOG_ADDRESSES": 1}
    oracle.Setting(setting.library, environment).call("run", seed, 1, 300, timeout=100)
    return log


def test_random_programs(tmp_path):
    oracle.build()
    for seed in range(1, 9):
        for setting in (oracle.Setting(), oracle.boost(tmp_path / f"record-{seed}")):
            log = run_random(tmp_path, setting, seed)
            assert log.stat().st_size > 10_000
            assert check(log, as_seen=True) == []
            log.unlink()


def test_random_programs_under_a_library_that_returns_early(tmp_path):
    oracle.build()
    broken = harness.compile_c(tmp_path / "broken.so", oracle.HERE / "broken/broken.c", library=True)
    logs = [run_random(tmp_path, oracle.Setting(broken, {"BROKEN": "early"}), seed) for seed in range(1, 4)]
    assert all(check(log, as_seen=True) for log in logs)
