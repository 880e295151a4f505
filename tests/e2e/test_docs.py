"""The options table of README.md is written from options.def, completely and repeatably."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAME = "# Title\n<!-- options:begin -->\nold\n<!-- options:end -->\ntext | stays\n"


def gen_docs(readme, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/gen_docs.py", "--readme", readme, *arguments],
        capture_output=True, text=True, timeout=60)


def test_every_option_has_one_row(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(FRAME)
    assert gen_docs(readme).returncode == 0
    rows = re.findall(r"^\| `(GPUBOOST_\w+)` \|(.*)\|$", readme.read_text(), re.MULTILINE)
    source = (ROOT / "preload/options/options.def").read_text()
    names = re.findall(r'^GB_OPTION_\w+\(\w+, "(GPUBOOST_\w+)"', source, re.MULTILINE)
    assert [name for name, _ in rows] == names
    assert len(names) > 10
    by_name = dict(rows)
    assert "| `64M` |" in by_name["GPUBOOST_RING"] and "8M … 1G" in by_name["GPUBOOST_RING"]
    assert "| `safe` |" in by_name["GPUBOOST_POLICY"]
    assert "| `warn` |" in by_name["GPUBOOST_LOG"]
    assert "| `1ms` |" in by_name["GPUBOOST_STALL"]


def test_the_rest_of_the_file_stays(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(FRAME)
    gen_docs(readme)
    text = readme.read_text()
    assert text.startswith("# Title\n<!-- options:begin -->\n| variable |")
    assert text.endswith("|\n<!-- options:end -->\ntext | stays\n")
    assert gen_docs(readme, "--check").returncode == 0


def test_check_fails_without_writing(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(FRAME)
    result = gen_docs(readme, "--check")
    assert result.returncode == 1 and "out of date" in result.stderr
    assert readme.read_text() == FRAME


def test_missing_markers_are_said(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("nothing here\n")
    result = gen_docs(readme)
    assert result.returncode != 0 and "options:begin" in result.stderr
