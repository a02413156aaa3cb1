"""From the sentences' probabilities to estimates of scores, each with an honest standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.model import Line
from rag_eval_integrations.records import Estimate


class Expected(NamedTuple):
    """An expected score."""

    value: float
    independent: float = 0.0
    """Its variance if sentences were independent of each other; 0 where it is a ratio."""


def expected_scores(relevant: Sequence[float], utilized: Sequence[float]) -> dict[str, Expected]:
    """Expectations of the scores over the probabilities of document sentences, of which there are.

    By name in `Labels.estimates`: utilization under each of the two sets of formulas. Completeness
    is Σ min(p(R), p(U)) / Σ p(R): utilized sentences are nearly all relevant ones.
    """
    size, every, used = len(relevant), fsum(relevant), fsum(utilized)
    return (
        {
            "context_relevance": _share(relevant),
            "context_utilization@ragbench": _share(utilized),
            "context_utilization@seed": Expected(min(1.0, used / every)),
            "completeness": Expected(fsum(map(min, relevant, utilized)) / every),
        }
        if size
        else {}
    )


def score_estimates(
    scores: Mapping[str, Line], relevant: Sequence[float], utilized: Sequence[float]
) -> dict[str, Estimate]:
    """Estimates with standard errors of a call with a response; none without documents."""
    return {
        name: scores[name].estimate(*expected)
        for name, expected in expected_scores(relevant, utilized).items()
    }


def estimates_alone(scores: Mapping[str, Line], relevant: Sequence[float]) -> dict[str, Estimate]:
    """The estimate of a retrieval for which there is no response; none without documents."""
    if not relevant:
        return {}
    return {"context_relevance": scores["context_relevance_alone"].estimate(*_share(relevant))}


def _share(probabilities: Sequence[float]) -> Expected:
    size = len(probabilities)
    return Expected(
        fsum(probabilities) / size, fsum([p * (1 - p) for p in probabilities]) / size**2
    )
