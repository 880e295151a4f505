"""The benchmarks: their statistics and their reader of Callgrind's files on hand-made numbers, and the quick runs."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "scripts" / "bench"
sys.path.insert(0, str(BENCH))

import callgrind  # noqa: E402
import figures  # noqa: E402
import instructions  # noqa: E402


def test_spread():
    assert figures.spread([4.0, 1.0, 2.0, 9.0]) == {"min": 1.0, "median": 3.0, "max": 9.0}


def test_added_compares_the_minima_not_the_luckiest_pair():
    # The second plain run was disturbed: its pair says -5.
    assert figures.added([12.0, 15.0, 13.0], [10.0, 20.0, 10.0]) == {"of_minima": 2.0, "median": 2.0, "max": 3.0}


def test_ratio():
    ratio = figures.ratio([30.0, 20.0, 40.0], [20.0, 20.0, 16.0])
    assert ratio == {"of_medians": 1.5, "pairs": {"min": 1.0, "median": 1.5, "max": 2.5}}


@pytest.mark.parametrize("put_together", [figures.added, figures.ratio])
def test_unequal_lists_are_refused(put_together):
    with pytest.raises(ValueError, match="2 and 1"):
        put_together([1.0, 2.0], [1.0])


def test_verdicts():
    assert [figures.at_most(3.0, 3), figures.at_most(3.1, 3), figures.at_most(9.0, None)] == ["ok", "OVER", "-"]
    assert [figures.at_least(1.25, 1.25), figures.at_least(1.24, 1.25), figures.at_least(1.0, None)] == [
        "ok", "BELOW", "-"]


def test_the_environment_is_clean(monkeypatch):
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GPUBOOST_POLICY", "GPUSIM_TFLOPS"):
        monkeypatch.setenv(name, "x")
    env = figures.environment(GPUSIM_TFLOPS="3")
    assert env["PATH"] == os.environ["PATH"] and env["GPUSIM_TFLOPS"] == "3"
    assert not {"LD_PRELOAD", "LD_LIBRARY_PATH", "GPUBOOST_POLICY"} & set(env)


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setenv("GPUBOOST_LIBRARY", "/no/such/lib.so")
    with pytest.raises(SystemExit, match="/no/such/lib.so is not there"):
        figures.library()


# main calls hook 3 times; hook calls memcpy and the driver; the driver calls memcpy too.
PROFILE = """\
version: 1
positions: line
events: Ir
ob=(1) /bin/main
fl=(1) main.c
fn=(1) main
10 1000
cob=(2) /x/libgpuboost.so
cfi=(2) hook.c
cfn=(2) hook
calls=3 7
+1 890
* 50

ob=(2)
fl=(2)
fn=(2)
7 30
cob=(3) /lib/libc.so.6
cfi=(3)
cfn=(3) memcpy
calls=3 1
+1 60
cob=(4) /x/sim/libcuda.so.1
cfn=(4) cuLaunchKernel
calls=3 1
+1 800
cfn=(5) helper
calls=2 1
9 5

fn=(5)
9 5

ob=(3)
fn=(3)
1 160

ob=(4)
fn=(4)
1 700
cob=(3)
cfn=(3)
calls=1 1
-1 100
totals: 1945
"""


def test_callgrind_profile():
    profile = callgrind.Profile(PROFILE.splitlines(keepends=True))
    assert profile.own == {"/bin/main": 1050, "/x/libgpuboost.so": 35, "/lib/libc.so.6": 160,
                           "/x/sim/libcuda.so.1": 700}
    assert profile.under(lambda a, f, b, g: f == "hook" and g == "memcpy") == 60
    assert profile.calls_of("hook") == (3, 890)
    assert profile.calls_of("helper") == (2, 5)  # called within its object: no cob= line
    assert profile.calls_of("memcpy") == (4, 160)
    assert profile.calls_of("nothing") == (0, 0)


@pytest.fixture
def a_library(monkeypatch, tmp_path):
    (tmp_path / "libgpuboost.so").touch()
    monkeypatch.setenv("GPUBOOST_LIBRARY", str(tmp_path / "libgpuboost.so"))
    monkeypatch.setattr(instructions, "SIM", "/x/sim")


def test_whose_instructions_they_are(a_library):
    profile = callgrind.Profile(PROFILE.splitlines(keepends=True))
    assert profile.total == 1945
    assert instructions.divide(profile) == (35 + 60, 700 + 100, 1050)
    profile.edges["/lib/libc.so.6", "dl_iterate_phdr", "/x/libgpuboost.so", "found"] = [1, 30]
    assert instructions.divide(profile) == (35 + 60 - 30, 700 + 100, 1050 + 30)


def profile_of(own, edges):
    profile = callgrind.Profile([])
    profile.own.update(own)
    profile.edges.update({edge: list(counts) for edge, counts in edges.items()})
    return profile


def test_parts_of_a_step(a_library):
    """10 steps; 2 snapshots of 400 and 300 of other work are the helper's; one large memcpy; 4 steps a second."""
    ours, libc = "/x/libgpuboost.so", "/lib/libc.so.6"
    profile = profile_of(
        {"/bin/main": 30000, ours: 1200, libc: 9100, "/x/sim/libcuda.so.1": 5000},
        {("/bin/main", "main", ours, "cudaMemcpyAsync"): (10, 14200), (ours, "copy", libc, "memcpy"): (1, 9000),
         (ours, "put_string", libc, "memcpy"): (50, 100), (ours, "helper", ours, "gb_files_tick"): (4, 1100),
         (ours, "gb_files_tick", ours, "put_snapshot"): (2, 800), (ours, "drain", ours, "gb_line_stall"): (15, 250),
         (ours, "cudaMemcpyAsync", "/x/sim/libcuda.so.1", "cuMemcpyHtoDAsync_v2"): (10, 5000)})
    row = instructions.row_of(("text", "observe", [], 1), profile, 4.0)
    assert row["program_per_step"] == 3000
    assert row["copying_per_step"] == 900
    assert row["calls_per_step"] == (1200 + 9100 - 9000 - 1100) / 10
    assert row["stalls_per_step"] == 30 and row["stall_lines_per_step"] == 1.5
    assert row["per_snapshot"] == 400
    assert row["percent"] == pytest.approx(100 * (20 + 30 + 400 / 4) / 3000) and row["verdict"] == "OVER"
    assert instructions.row_of(("text", "safe", [], 1), profile, 4.0)["verdict"] == "-"


def test_instructions_without_valgrind(tmp_path):
    out = tmp_path / "out.json"
    done = subprocess.run([sys.executable, BENCH / "instructions.py", "--json", out], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0 and "not measured: valgrind is not there" in done.stdout
    assert "apt-get install valgrind" in json.loads(out.read_text())["not_measured"]


def bench(name, out, *more):
    done = subprocess.run([sys.executable, BENCH / f"{name}.py", *more, "--json", out], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), done.stdout


def test_overhead(tmp_path):
    result, said = bench("overhead", tmp_path / "out.json", "--quick")
    assert [row["call"] for row in result["rows"]] == ["launch", "launch_alternating", "event_record", "copy_4k",
                                                       "sync_idle"]
    for row in result["rows"]:
        assert row["text"] in said
        assert 0 < row["without_ns"]["min"] <= row["without_ns"]["median"] <= row["without_ns"]["max"]
        added = row["with_ns"]["min"] - row["without_ns"]["min"]
        assert row["added_ns"]["of_minima"] == pytest.approx(added)
        assert row["verdict"] == figures.at_most(added, row["budget_ns"])


def test_ab(tmp_path):
    result, said = bench("ab", tmp_path / "out.json", "--presets", "A20", "--repeat", "1", "--steps", "4")
    assert result["simulated"] and "SIMULATED" in said
    assert [(row["preset"], row["script"]) for row in result["rows"]] == [
        ("A20", "naive"), ("A20", "naive, .item()"), ("A20", "tuned")]
    for row in result["rows"]:
        speed, plain = row["gpuboost_steps_per_s"]["median"], row["plain_steps_per_s"]["median"]
        assert row["ratio"]["of_medians"] == pytest.approx(speed / plain)


def test_ab_unknown_preset(tmp_path):
    done = subprocess.run([sys.executable, BENCH / "ab.py", "--presets", "Z9"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2 and "--presets Z9: one of A20, A80, B64" in done.stderr
