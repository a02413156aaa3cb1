"""Estimates of a call's scores, with standard errors, from the probabilities of its sentences.

Relevance and utilization are the mean probabilities of the document sentences. The shares of what
is relevant are regressions on a few features of the whole call, because the errors of its sentences
are not independent: a ratio of two sums alone was worse than a constant on unseen domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log1p

from rag_eval_integrations.judges.embedded._features import SHARED_FEATURES, CallFeatures
from rag_eval_integrations.judges.embedded._model import Coefficients
from rag_eval_integrations.judges.embedded._response_features import RESPONSE_FEATURES
from rag_eval_integrations.records import Estimate

LEVEL_FEATURES = (
    "used_of_relevant",  # Σ min(p(R), p(U)) / Σ p(R); 1 when nothing is relevant
    "used_of_likeliest",  # mean p(U) of the three sentences with the highest p(R)
    "documents",  # log of their number: of many, the response leaves more out
    "response_sentences",  # log of their number
    "question_said",  # most of the question's words in one response sentence
)
SHARES = ("context_utilization@gpt-labeling", "completeness")
"""Scores that are shares of the relevant sentences: estimated by a linear regression on all
features."""

_LIKELIEST = 3
_DOCUMENTS = SHARED_FEATURES.index("documents")
_QUESTION_SAID = RESPONSE_FEATURES.index("question_said")


def expected_scores(
    relevant: Sequence[float], utilized: Sequence[float]
) -> dict[str, tuple[float, float]]:
    """Compute the expected scores from the probabilities of the document sentences alone.

    Completeness is Σ min(p(R), p(U)) / Σ p(R), because utilized sentences are nearly all relevant,
    and 1 when nothing is relevant, as in the formula.

    Returns:
        Expected scores, in [0, 1], by their names in `Labels.estimates`, with utilization under
        both sets of formulas, each with the variance that it would have if its sentences were
        independent, 0 for a ratio of two sums; empty when there are no document sentences.
    """
    if not relevant:
        return {}
    every, used = fsum(relevant), fsum(utilized)
    return {
        "context_relevance": _share(relevant),
        "context_utilization@ragbench": _share(utilized),
        "context_utilization@gpt-labeling": (min(1.0, used / every) if every else 0.0, 0.0),
        "completeness": (_used_of_relevant(relevant, utilized), 0.0),
    }


def level_row(
    relevant: Sequence[float], utilized: Sequence[float], documents: float, shares: Sequence[float]
) -> tuple[float, ...]:
    """Compute `LEVEL_FEATURES` of a call with document sentences and a response; all are finite.

    Args:
        relevant: probabilities of the document sentences, at least one.
        utilized: likewise.
        documents: the feature `documents`.
        shares: the feature `question_said` of the response sentences, at least one.
    """
    likeliest = sorted(range(len(relevant)), key=relevant.__getitem__, reverse=True)[:_LIKELIEST]
    return (
        _used_of_relevant(relevant, utilized),
        fsum([utilized[number] for number in likeliest]) / len(likeliest),
        documents,
        log1p(len(shares)),
        max(shares),
    )


def score_estimates(
    model: Coefficients,
    features: CallFeatures,
    relevant: Sequence[float],
    utilized: Sequence[float],
) -> dict[str, Estimate]:
    """Estimate the scores of a call, with errors: none without documents, one without a response.

    The expected shares give way to those that a regression on the whole call makes of them.
    """
    expected = expected_scores(relevant, utilized)
    if not expected:
        return {}
    if not features.response:
        alone = expected["context_relevance"]
        return {"context_relevance": model.scores["context_relevance_alone"].estimate(*alone)}
    shares = [row.features[_QUESTION_SAID] for row in features.response]
    row = level_row(relevant, utilized, features.documents[0].shared[_DOCUMENTS], shares)
    expected |= {name: (model.levels[name].score(row), 0.0) for name in SHARES}
    return {name: model.scores[name].estimate(*score) for name, score in expected.items()}


def _share(probabilities: Sequence[float]) -> tuple[float, float]:
    size = len(probabilities)
    return fsum(probabilities) / size, fsum([p * (1 - p) for p in probabilities]) / size**2


def _used_of_relevant(relevant: Sequence[float], utilized: Sequence[float]) -> float:
    every = fsum(relevant)
    return fsum(map(min, relevant, utilized)) / every if every else 1.0
