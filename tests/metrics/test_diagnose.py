"""Patterns of a call's scores: each at its cut-offs, the gravest first."""

from __future__ import annotations

import pytest
from runs import call

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, diagnose
from rag_eval_integrations.records import By, Score

OURS = By()
GOOD = dict(zip(TRACE_SCORES, (0.75, 0.80, 0.85, 1.0), strict=False))


def scores(by: By = OURS, /, **values: float | None) -> dict[str, Score]:
    return {
        name: Score(name=name, status="scored", value=value, by=by)
        if value is not None
        else Score(name=name, status="unscored", unscored="no_context")
        for name, value in values.items()
    }


def patterns(given: dict[str, Score], **cuts: float) -> list[str]:
    return [diagnosis.pattern for diagnosis in diagnose(given, **cuts)]


def test_patterns() -> None:
    """Each row of scores gives its pattern, and only that."""
    rows: list[tuple[dict[str, float], list[str]]] = [
        ({"context_relevance": 0.85, "context_utilization": 0.40}, ["context_ignored"]),
        ({"context_relevance": 0.85, "context_utilization": 0.41}, []),
        ({"completeness": 0.50, "adherence": 1.0}, ["incomplete"]),
        ({"completeness": 0.51, "adherence": 1.0}, []),
        ({"completeness": 0.50, "adherence": 0.0}, ["hallucination"]),
        (GOOD, ["healthy"]),
        ({**GOOD, "context_relevance": 0.02}, ["healthy"]),
        ({"adherence": 0.0}, ["hallucination"]),
        ({"context_relevance": 0.0}, ["nothing_relevant_retrieved"]),
        ({"context_relevance": 0.01}, []),
        # the gravest comes first; of nothing relevant nothing is left out or ignored
        (dict.fromkeys(GOOD, 0.0), ["hallucination", "nothing_relevant_retrieved"]),
        ({**dict.fromkeys(GOOD, 0.0), "adherence": 1.0}, ["nothing_relevant_retrieved"]),
        # one finding, one fix: what is ignored is not called incomplete as well
        ({**GOOD, "context_utilization": 0.2, "completeness": 0.2}, ["context_ignored"]),
    ]

    assert [(values, patterns(scores(**values))) for values, _ in rows] == rows


def test_under_ragbench_use_is_divided_by_relevance() -> None:
    """A fifth of all sentences is most of the quarter that is relevant, and little of a half."""
    by = By(formulas="ragbench")
    good = {"context_utilization": 0.2, "completeness": 0.8, "adherence": 1.0}

    assert patterns(scores(by, **good, context_relevance=0.25)) == ["healthy"]
    assert patterns(scores(by, **good, context_relevance=0.5)) == ["context_ignored"]
    assert patterns(scores(by, **good)) == []


def test_nothing_is_diagnosed_from_an_unscored_score() -> None:
    """A pattern that needs an unscored score is left out, not guessed; so is health."""
    assert diagnose(scores(context_relevance=0.9, context_utilization=None)) == []
    assert diagnose({}) == []
    for name in GOOD:
        assert patterns(scores(**{**GOOD, name: None})) == []


def test_cut_offs_can_be_set() -> None:
    """Each moves the line of its pattern; one that is not a share is refused."""
    assert patterns(scores(**{**GOOD, "adherence": 0.5}), adherent=0.5) == ["healthy"]
    assert patterns(scores(**GOOD), irrelevant=0.75) == ["nothing_relevant_retrieved"]
    assert patterns(scores(**GOOD), ignored=0.8) == ["context_ignored"]
    assert patterns(scores(**GOOD), incomplete=0.85) == ["incomplete"]
    with pytest.raises(ConfigurationError, match=r"`ignored` = 1\.5: use a number from 0 to 1"):
        diagnose({}, ignored=1.5)


def test_an_evaluation_is_diagnosed_as_its_scores_are() -> None:
    """Whichever of them is passed, with the same cut-offs."""
    given = scores(**{**GOOD, "context_utilization": 0.3})
    evaluation = call("1", given)

    (diagnosis,) = diagnose(evaluation)
    assert diagnosis.pattern == "context_ignored"
    assert "unused" in diagnosis.problem
    assert "in the prompt" in diagnosis.fix
    assert diagnose(evaluation) == diagnose(evaluation.scores)
    assert diagnose(evaluation, ignored=0.2) == diagnose(given, ignored=0.2)


def test_anything_else_is_refused_with_what_to_pass() -> None:
    """As a wrong argument, not deep inside."""
    with pytest.raises(ConfigurationError, match=r"evaluation\.scores"):
        diagnose(["adherence"])  # type: ignore[arg-type]
