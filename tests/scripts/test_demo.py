"""gpuboost demo: the arithmetic of its table by hand, its errors, and one short run on the simulated GPU."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "bin" / "gpuboost"
sys.path.insert(0, str(ROOT / "scripts"))

from gpuboost import demo  # noqa: E402


def run(*arguments, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBOOST", "GPUSIM_", "LD_"))}
    return subprocess.run([COMMAND, "demo", *arguments], env={**env, "GPUBOOST_PYTHON": sys.executable, **more},
                          capture_output=True, text=True, timeout=300)


def test_busy_share_counts_what_lies_in_the_window():
    truth = {"devices": [{"intervals": {"compute": [[0, 10], [20, 40], [90, 200]]}}]}
    assert demo.busy_in_window(truth, 5, 105) == 5 + 20 + 15
    assert demo.busy_in_window(truth, 41, 89) == 0


def test_unknown_preset_names_the_known():
    done = run("--preset", "Z9")
    assert done.returncode == 2 and "--preset Z9: one of A20, A80, B64" in done.stderr


def test_missing_interpreter():
    done = run(GPUBOOST_PYTHON="/no/such/python")
    assert done.returncode == 2 and "/no/such/python is not there" in done.stderr


def test_a_short_demo(tmp_path):
    out = tmp_path / "demo.json"
    done = run("--steps", "4", "--json", str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert sorted(result) == ["device", "ratio_to_naive", "ratio_to_tuned", "runs", "simulated", "top_sites"]
    assert [entry["name"] for entry in result["runs"]] == ["naive", "gpuboost", "tuned"]
    speeds = [entry["steps_per_s"] for entry in result["runs"]]
    assert result["ratio_to_naive"] == speeds[1] / speeds[0] and result["ratio_to_tuned"] == speeds[1] / speeds[2]
    assert 1 <= len(result["top_sites"]) <= 3
    assert all(set(place) == {"file", "line", "idle_ms"} for place in result["top_sites"])
    if result["simulated"]:
        assert result["device"].startswith("SIMULATED") and "SIMULATED" in done.stdout
        assert all(0 < entry["busy_pct"] <= 100 for entry in result["runs"])
