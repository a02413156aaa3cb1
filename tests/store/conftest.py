"""A store on each database."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "evals.db")
    url: str = request.getfixturevalue("postgresql").database(f"store{next(_numbers)}")
    return url
