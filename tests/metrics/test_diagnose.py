"""Patterns of a call's scores: each at its cut-offs, the gravest first."""

from __future__ import annotations

import pytest

from rag_eval_integrations.metrics import diagnose
from rag_eval_integrations.records import Score


def scores(**values: float | None) -> dict[str, Score]:
    return {
        name: Score(name=name, status="scored", value=value)
        if value is not None
        else Score(name=name, status="unscored", unscored="no_context")
        for name, value in values.items()
    }


@pytest.mark.parametrize(
    ("values", "patterns"),
    [
        (
            {"context_relevance": 0.85, "context_utilization": 0.40},
            ["retrieval_good_generation_ignores"],
        ),
        (
            {"context_relevance": 0.9, "context_utilization": 0.3},
            ["retrieval_good_generation_ignores"],
        ),
        ({"completeness": 0.50, "adherence": 1.0}, ["grounded_but_incomplete"]),
        ({"completeness": 0.4, "adherence": 1.0}, ["grounded_but_incomplete"]),
        (
            {
                "context_relevance": 0.75,
                "context_utilization": 0.80,
                "completeness": 0.85,
                "adherence": 1.0,
            },
            ["excellent"],
        ),
        ({"adherence": 0.0}, ["hallucination"]),
        ({"context_relevance": 0.69}, ["poor_retrieval"]),
        ({"context_relevance": 0.7, "context_utilization": 0.7, "adherence": 1.0}, []),
    ],
)
def test_patterns(values: dict[str, float], patterns: list[str]) -> None:
    """Each row of scores gives its pattern, and only that."""
    assert [diagnosis.pattern for diagnosis in diagnose(scores(**values))] == patterns


def test_the_gravest_comes_first() -> None:
    """Several patterns may hold; hallucination is named before poor retrieval."""
    found = diagnose(scores(context_relevance=0.1, adherence=0.0, completeness=0.2))

    assert [diagnosis.pattern for diagnosis in found] == ["hallucination", "poor_retrieval"]


def test_nothing_is_diagnosed_from_an_unscored_score() -> None:
    """A pattern that needs an unscored score is left out, not guessed."""
    assert diagnose(scores(context_relevance=0.9, context_utilization=None)) == []
    assert diagnose({}) == []


def test_cut_offs_can_be_set() -> None:
    """`high` moves the line between high and low."""
    values = scores(context_relevance=0.5, context_utilization=0.45)

    assert [d.pattern for d in diagnose(values, high=0.5)] == ["retrieval_good_generation_ignores"]


def test_each_diagnosis_says_problem_and_fix() -> None:
    """A diagnosis is a problem and what to change first."""
    (diagnosis,) = diagnose(scores(context_relevance=0.85, context_utilization=0.40))

    assert "context" in diagnosis.problem
    assert "in the prompt" in diagnosis.fix


def test_what_is_not_grounded_is_not_excellent() -> None:
    """However relevant, used and complete; and each of the three may spoil it as well."""
    high = {"context_relevance": 0.7, "context_utilization": 0.7, "completeness": 0.7}

    def found(**values: float) -> list[str]:
        given = {**high, "adherence": 1.0, **values}
        return [diagnosis.pattern for diagnosis in diagnose(scores(**given))]

    assert found() == ["excellent"]
    assert found(adherence=0.0) == ["hallucination"]
    assert found(context_relevance=0.69) == ["poor_retrieval"]
    assert found(context_utilization=0.69) == ["retrieval_good_generation_ignores"]
    assert found(completeness=0.69) == ["grounded_but_incomplete"]
    assert found(completeness=0.69, adherence=0.0) == ["hallucination"]
    assert diagnose(scores(adherence=0.5, completeness=0.6), adherent=0.5, high=0.6) == []
