"""Every fault of mutants.py can still be put into the library."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from mutants import MUTANTS  # noqa: E402
from run import text_with  # noqa: E402


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_old_text_stands_in_its_file(mutant):
    assert text_with(mutant)


def test_names_differ():
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
