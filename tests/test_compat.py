"""The version matrix loses no test file when one is moved or renamed."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest
from compat import COMPAT, FLOOR, markers_of

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize("pattern", [*COMPAT, *FLOOR])
def test_every_pattern_names_a_file(pattern: str) -> None:
    """One that names none would take its dependency out of the matrix without a word."""
    files = (path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))

    assert any(fnmatch(file, pattern) for file in files)


def test_what_a_commit_runs_on_the_lowest_releases_is_part_of_the_matrix() -> None:
    """So that the other rows run it, too."""
    files = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    markers = [markers_of(file) for file in files]

    assert ["floor"] not in markers
    assert ["compat", "floor"] in markers
