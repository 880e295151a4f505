"""scripts/bench as a whole: what it writes, and what a benchmark that fails does to it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {"overhead", "stack", "gain", "instructions"}


def bench(folder, *arguments, **environment):
    return subprocess.run([sys.executable, folder, *arguments], env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=120)


def test_the_cheap_parts(tmp_path):
    out = tmp_path / "deep" / "bench.json"
    done = bench(ROOT / "scripts/bench", "--quick", "--only", "stack", "overhead", "--out", out)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert set(result) == PARTS | {"machine"}
    assert result["gain"] is None and result["instructions"] is None
    assert result["machine"]["quick"] and result["machine"]["processors"] == os.cpu_count()
    assert [row["frames"] for row in result["stack"]["rows"]] == [5, 20, 100]
    assert {row["call"] for row in result["overhead"]["rows"]} >= {"launch", "event_record", "copy_4k"}
    assert done.stdout.index("hooked calls") < done.stdout.index("stack capture") < done.stdout.index(str(out))


def test_a_part_that_fails_is_said_and_leaves_the_others(tmp_path):
    shutil.copytree(ROOT / "scripts/bench", tmp_path / "scripts/bench")
    (tmp_path / "scripts/bench/overhead.py").write_text("import sys\nsys.exit('no compiler')\n")
    (tmp_path / "scripts/bench/ab.py").write_text(
        "import json, sys\njson.dump({'not_measured': 'why'}, open(sys.argv[1].split('=')[1], 'w'))\n")
    out, library = tmp_path / "bench.json", tmp_path / "lib.so"
    library.touch()
    done = bench(tmp_path / "scripts/bench", "--only", "overhead", "gain", "--out", out, GPUBOOST_LIBRARY=str(library))
    assert done.returncode == 1
    assert "no compiler" in done.stderr and "FAILED: overhead\n" in done.stdout
    result = json.loads(out.read_text())
    assert result["overhead"] is None and result["gain"] == {"not_measured": "why"}


def test_an_unknown_part_and_a_missing_library_are_said(tmp_path):
    done = bench(ROOT / "scripts/bench", "--only", "speed")
    assert done.returncode == 2 and "invalid choice: 'speed'" in done.stderr
    done = bench(ROOT / "scripts/bench", "--out", tmp_path / "out", GPUBOOST_LIBRARY="/no/such/lib.so")
    assert done.returncode == 1 and "/no/such/lib.so is not there" in done.stderr and not (tmp_path / "out").exists()
