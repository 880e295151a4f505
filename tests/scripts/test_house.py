"""The house-keeping: what make offers, what CI runs, how tests are counted, how dependencies arrive."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLOSING = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


def execute(command, cwd=ROOT, **environment):
    """Runs a command without the outer make's and pytest's own variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTEST_", "GPUBOOST_"))}
    env.update({k: str(v) for k, v in environment.items()})
    return subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)


def fake_command(folder, name, body):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY:(.*)$", text, re.MULTILINE)[1].split()) - {"FORCE"}
    listed = re.findall(r"^  make (\w+) +\S", execute(["make", "help"]).stdout, re.MULTILINE)
    assert set(listed) == targets and len(listed) == len(targets)


def test_options_table_of_the_readme_is_up_to_date():
    done = execute([sys.executable, "scripts/gen_docs.py", "--check"])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("status", [0, 2])
def test_ci_runs_make_test_and_ends_with_its_last_line(tmp_path, status):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    path = fake_command(tmp_path / "bin", "make", 'echo "make $*" >> calls; echo "3 passed, 1 failed, 0 skipped"\n'
                        f'[ {status} = 0 ] || echo "make: *** [Makefile:1: test] Error 1" >&2; exit {status}')
    done = execute([".ci/run"], cwd=tmp_path, PATH=path)
    assert (tmp_path / "calls").read_text() == "make --no-print-directory test\n"
    assert done.returncode == status
    assert done.stdout.splitlines()[-1] == "3 passed, 1 failed, 0 skipped"


# --- counting: what a program does is chosen by its name ---

UNIT = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
static const char *act;
static int is(const char *what) { return strstr(act, what) != NULL; }
static void first(void **state) { (void)state; }
static void second(void **state)
{
    (void)state;
    if (is("fail"))
        assert_int_equal(1, 2);
    if (is("skip")) {
        print_message("no unicorn here\n");
        skip();
    }
    if (is("segv"))
        *(volatile int *)NULL = 1;
    if (is("kill"))
        raise(SIGKILL);
    if (is("exit"))
        exit(0);
}
int main(int argc, char **argv)
{
    (void)argc;
    act = argv[0];
    const struct CMUnitTest tests[] = {cmocka_unit_test(first), cmocka_unit_test(second), cmocka_unit_test(first)};
    if (is("dead"))
        return 3;
    if (is("empty"))
        return 0;
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    return is("late") ? 1 : status;
}
"""


@pytest.fixture(scope="module")
def unit_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unit_program")
    (folder / "unit.c").write_text(UNIT)
    done = execute([os.environ.get("CC", "gcc"), "-o", folder / "program", folder / "unit.c", "-lcmocka"])
    assert done.returncode == 0, done.stderr
    return folder / "program"


def run_tests(build, *selection):
    """(passed, failed, skipped), exit status and output of the runner on another build folder."""
    done = execute([sys.executable, "scripts/run_tests.py", *selection], O=build)
    closing = CLOSING.fullmatch(done.stdout.splitlines()[-1])
    assert closing, done.stdout + done.stderr
    return tuple(map(int, closing.groups())), done.returncode, done.stdout


@pytest.mark.parametrize("name, counts", [
    ("test_good", (3, 0, 0)),
    ("test_fail", (2, 1, 0)),
    ("test_skip", (2, 0, 1)),
    ("test_segv", (2, 1, 0)),
    ("test_kill", (1, 2, 0)),
    ("test_exit", (1, 2, 0)),
    ("test_dead", (0, 1, 0)),
    ("test_empty", (0, 1, 0)),
    ("test_late", (3, 1, 0)),
])
def test_unit_programs_are_counted(tmp_path, unit_program, name, counts):
    (tmp_path / "unit").mkdir()
    shutil.copy(unit_program, tmp_path / "unit" / name)
    found, status, output = run_tests(tmp_path, "unit")
    assert found == counts, output
    assert status == (1 if counts[1] else 0)
    if counts[2]:
        assert f"{name}: second: no unicorn here" in output


def test_units_and_pytest_are_counted_together(tmp_path, unit_program):
    (tmp_path / "unit").mkdir()
    for name in ("test_good", "test_fail", "test_good.d"):
        shutil.copy(unit_program, tmp_path / "unit" / name)
    (tmp_path / "test_sample.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "def test_good(n): pass\n"
        "def test_bad(): assert 0\n"
        "def test_not_here(): pytest.skip('only on Sundays')\n"
        "@pytest.fixture\n"
        "def broken():\n    yield\n    assert 0\n"
        "def test_bad_twice(broken): assert 0\n"
        "def test_dies(): os._exit(7)\n")
    found, status, output = run_tests(tmp_path, "tests/unit/test_good.c", tmp_path / "test_sample.py")
    assert found == (3 + 3, 3, 1), output
    assert status == 1
    assert "test_not_here: " in output and "only on Sundays" in output


def test_a_pytest_that_dies_or_finds_nothing_fails(tmp_path):
    (tmp_path / "conftest.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "test_sample.py").write_text("def test_good(): pass\n")
    found, status, output = run_tests(tmp_path, tmp_path / "test_sample.py")
    assert (found, status) == ((0, 1, 0), 1), output
    (tmp_path / "conftest.py").unlink()
    found, status, output = run_tests(tmp_path, tmp_path / "test_sample.py", "-k", "nothing")
    assert (found, status) == ((0, 0, 0), 1), output


# --- dependencies: in a house of their own, with commands that only note what they were asked ---

@pytest.fixture
def house(tmp_path):
    """A folder with deps.sh, an empty list of Python packages and every Debian package installed."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/deps.sh", tmp_path / "scripts")
    (tmp_path / "scripts/requirements.txt").write_text("# none\n")
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda/cuda.h").touch()
    fake_command(tmp_path / "bin", "apt-get", 'echo "$*" >> calls')
    fake_command(tmp_path / "bin", "dpkg-query", "echo installed")
    return tmp_path


def deps(house, python=None, **environment):
    python = python or house / ".venv/bin/python"
    return execute(["scripts/deps.sh", python], cwd=house, **{
        "PATH": f"{house}/bin:{os.environ['PATH']}", "CUDA_INCLUDE": house / "cuda", "PIP_NO_INDEX": 1, **environment})


def test_a_second_run_does_nothing(house):
    first = deps(house)
    assert first.returncode == 0 and "creating .venv" in first.stdout, first.stderr
    before = sorted((p, p.lstat().st_mtime_ns) for p in (house / ".venv").rglob("*"))
    second = deps(house)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert sorted((p, p.lstat().st_mtime_ns) for p in (house / ".venv").rglob("*")) == before
    assert not (house / "calls").exists()
    assert f"DEPS_PYTHON := {house}/.venv/bin/python\n" in (house / "build/deps.mk").read_text()


def test_an_interrupted_installation_is_taken_up_again(house):
    requirements = house / "scripts/requirements.txt"
    requirements.write_text("gpuboost-is-not-on-any-index==1\n")
    failed = deps(house)
    assert failed.returncode == 1 and "run make deps again" in failed.stderr
    assert (house / ".venv/installing").exists()
    requirements.write_text("# none\n")
    again = deps(house)
    assert again.returncode == 0 and "creating .venv" in again.stdout, again.stderr
    assert not (house / ".venv/installing").exists()


@pytest.mark.parametrize("uid", [0, 1000])
def test_only_missing_packages_are_installed_and_only_by_root(house, uid):
    fake_command(house / "bin", "dpkg-query", '[ "${@: -1}" = libcmocka-dev ] || echo installed')
    fake_command(house / "bin", "id", f"echo {uid}")
    done = deps(house)
    if uid == 0:
        assert done.returncode == 0, done.stderr
        calls = (house / "calls").read_text().splitlines()
        assert [c.split("--no-install-recommends ")[1] for c in calls if " install " in c] == ["libcmocka-dev"]
    else:
        assert done.returncode == 1
        assert done.stderr == "deps: missing Debian packages; as root: apt-get install -y libcmocka-dev\n"
        assert not (house / "calls").exists()


def test_nothing_is_installed_into_an_existing_interpreter(house):
    deps(house)  # a plain interpreter, under another name
    (house / ".venv").rename(house / "other")
    (house / "scripts/requirements.txt").write_text("gpuboost-is-not-on-any-index==1\n")
    done = deps(house, house / "other/bin/python")
    assert done.returncode == 1
    assert "other/bin/python lacks gpuboost-is-not-on-any-index " in done.stderr
    assert not (house / ".venv").exists()
    without = deps(house, house / "other/bin/python", CUDA_INCLUDE=house / "nowhere")
    assert "no CUDA headers" in without.stderr and not (house / "build/deps.mk").exists()


def test_an_interpreter_that_is_not_there_is_said(house):
    done = deps(house, house / "nowhere/python", CUDA_INCLUDE=house / "nowhere")
    assert done.returncode == 1 and "nowhere/python cannot be run" in done.stderr
