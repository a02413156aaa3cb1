"""docs/calibration.md: its example runs, and its commands and numbers are the code's."""

from __future__ import annotations

import pytest
from pages import promised_by, run_python, text_of

from rag_eval_integrations.agreement import calibrating
from rag_eval_integrations.judges.calibration import EDGE, MOST_KNOTS


def test_the_page_says_what_the_code_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Its example prints what its comment says, and its limits are those that a reader plans with."""
    page = text_of("docs/calibration.md")
    run_python("docs/calibration.md")

    assert capsys.readouterr().out.splitlines() == promised_by("docs/calibration.md")
    assert (calibrating.FOLDS, calibrating.LEAST_QUESTIONS) == (5, 30)
    assert (calibrating.MANY_QUESTIONS, calibrating.TARGET_ERROR) == (200, 0.05)
    assert (MOST_KNOTS, EDGE) == (6, 0.005)
    for words in ("five folds", "at least 30", "from 200 questions", "e = .05", "at most 6", ".005",
                  *(f"`{name}`" for name in calibrating.CALIBRATED)):  # fmt: skip
        assert words in page
