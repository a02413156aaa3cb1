"""`testing.assert_no_regression`: fails beyond doubt, names the calls, and refuses mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from runs import call, run, write

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import compare
from rag_eval_integrations.testing import assert_no_regression

INVENTED = "A famous admiral painted it green."


def worse(fallen: int, n: int = 100) -> list[Evaluation]:
    """A run in which some calls fell from 1 to 0, because of an invented sentence."""
    return [
        call(
            f"q{place}",
            {"adherence": float(place >= fallen), "completeness": 1.0},
            response=["It leaves at nine.", INVENTED] if place < fallen else ["It leaves at nine."],
            supported=place >= fallen,
        )
        for place in range(n)
    ]


BEFORE = [call(f"q{n}", {"adherence": 1.0, "completeness": 1.0}) for n in range(100)]


def test_a_run_that_is_worse_fails_with_its_worst_calls(tmp_path: Path) -> None:
    """Value, interval, verdict, and the sentences that no document supports; from files too."""
    after = write(tmp_path / "after.jsonl", worse(30))

    with pytest.raises(AssertionError) as error:
        assert_no_regression(BEFORE, after, adherence=0.05, completeness=0.1)

    first, *rest = str(error.value).split("\n")
    assert first.startswith("adherence: worse: -0.300 [-0.")
    assert first.endswith("(bootstrap) is wholly below -0.05")
    assert len(rest) == 5
    assert rest[0] == (
        f"  -1.00 q0 “When does q0 leave?”: not supported: a “It leaves at nine.”; b “{INVENTED}”"
    )


def test_a_fall_within_delta_passes_and_returns_the_comparison() -> None:
    """So that a test can go on with it."""
    found = assert_no_regression(BEFORE, worse(30), adherence=0.5)

    assert found.scores["adherence"].losses == 30


def test_what_cannot_be_told_passes_unless_it_may_not() -> None:
    """Three of 100 calls fell: chance, or one call in thirty."""
    after = worse(3)

    assert_no_regression(BEFORE, after, adherence=0.02)
    with pytest.raises(AssertionError, match=r"adherence: cannot tell: -0\.030"):
        assert_no_regression(BEFORE, after, unclear="fail", adherence=0.02)


def test_a_comparison_is_checked_with_all_its_runs() -> None:
    """A third run that is worse fails, and is named."""
    found = compare(BEFORE, BEFORE, worse(30), names=["old", "same", "new"])

    with pytest.raises(AssertionError, match=r"adherence \(new\): worse"):
        assert_no_regression(found, adherence=0.02)


def test_mistakes_are_told_before_anything_passes() -> None:
    """A gate that checks nothing must not be green."""
    mistakes: tuple[Callable[[], object], ...] = (
        lambda: assert_no_regression(BEFORE, BEFORE),
        lambda: assert_no_regression(BEFORE, adherence=0.1),
        lambda: assert_no_regression(BEFORE, BEFORE, adherence=-0.1),
        lambda: assert_no_regression(BEFORE, BEFORE, adherence="much"),  # type: ignore[arg-type]
        lambda: assert_no_regression(BEFORE, BEFORE, unclear="maybe", adherence=0.1),  # type: ignore[arg-type]
        lambda: assert_no_regression(compare(BEFORE, BEFORE), BEFORE, adherence=0.1),
        lambda: assert_no_regression(BEFORE, BEFORE, adherance=0.1),
    )
    for wrong in mistakes:
        with pytest.raises(ConfigurationError):
            wrong()


def test_a_score_that_no_call_has_in_both_runs_is_an_error() -> None:
    """A judge that failed throughout is no run without regressions."""
    with pytest.raises(ConfigurationError, match="has a value in both"):
        assert_no_regression(run([1.0] * 20), run([None] * 20), adherence=0.1)
