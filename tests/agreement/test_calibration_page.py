"""docs/calibration.md: its example runs, and its commands and numbers are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations.agreement.calibrating import (
    CALIBRATED,
    FOLDS,
    LEAST_QUESTIONS,
    MANY_QUESTIONS,
    TARGET_ERROR,
)
from rag_eval_integrations.judges.calibration import EDGE, MOST_KNOTS


def test_the_example_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints is what its comment says."""
    page = (root / "docs" / "calibration.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(code, "docs/calibration.md", "exec"), {"__name__": "docs"})

    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", code, re.M)


def test_its_numbers_are_the_codes(root: Path) -> None:
    """Limits that a reader plans with."""
    page = (root / "docs" / "calibration.md").read_text(encoding="utf-8")

    assert (FOLDS, LEAST_QUESTIONS, MANY_QUESTIONS, TARGET_ERROR) == (5, 30, 200, 0.05)
    assert (MOST_KNOTS, EDGE) == (6, 0.005)
    for words in (
        "five folds",
        "at least 30",
        "from 200 questions",
        "e = .05",
        "at most 6",
        ".005",
    ):
        assert words in page
    assert all(f"`{name}`" in page for name in CALIBRATED)
