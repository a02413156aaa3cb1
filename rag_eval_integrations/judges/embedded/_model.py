"""The fitted coefficients (`model.json`, written by `training/embedded_judge.py`) and their use.

All models are linear: boosted trees gained nothing on domains unseen in fitting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, fsum, log, log1p, sqrt
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations.judges.embedded._features import (
    RESPONSE_FEATURES,
    SENTENCE_FEATURES,
    SHARED_FEATURES,
    CallFeatures,
    DocumentRows,
    ResponseRow,
)
from rag_eval_integrations.records.labels import Estimate

MODEL_FILE = Path(__file__).with_name("model.json")

DIGITS = 6
"""Decimals of every probability and estimate. The last bit of `log`, `exp` and `log1p` depends on
the platform; rounding makes the results equal everywhere."""

Bounds = tuple[tuple[int, float, float], ...]
"""Index of a feature, and the lowest and highest value to which it is clipped."""


# --- Logistic models and calibrations


class Logistic(NamedTuple):
    """p = 1 / (1 + exp(-(intercept + Σ weight · clip(feature, low, high))))."""

    names: tuple[str, ...]
    intercept: float
    weights: tuple[float, ...]
    bounds: Bounds
    """Clipping keeps features in the range of the training rows; without it, extrapolation gave one
    data set a relevance RMSE of .31 instead of .21. Features that cannot leave that range are not
    listed."""

    def score(self, row: Sequence[float]) -> float:
        """Compute the log-odds of one row of features in the order of `names`.

        Features are clipped to `bounds` first.
        """
        # fsum gives the same last bit on every Python version.
        return fsum((self.intercept, *map(mul, self.weights, clipped(row, self.bounds))))

    def probability(self, row: Sequence[float]) -> float:
        """Compute the probability of one row; in (0, 1)."""
        return probability_of(self.score(row))


class ScoreErrors(NamedTuple):
    """The standard error of an estimated score.

    Its square is the sum of three parts, which were fitted on domains unseen by the coefficients.
    """

    error: float
    """Square root of the constant part."""
    spread: float
    """Factor of 4 · mean · (1 - mean), the part that is largest for scores around 0.5."""
    design_effect: float
    """Factor of the variance that the score would have if its sentences were independent. They are
    not: that variance alone gave errors that were 1.0 to 2.5 times too small."""

    def estimate(self, expectation: float, independent: float) -> tuple[float, float]:
        """Return mean, in [0, 1], and standard error for an expectation and its variance."""
        mean = min(1.0, max(0.0, expectation))
        variance = (
            self.error**2 + self.spread * 4 * mean * (1 - mean) + self.design_effect * independent
        )
        return round(mean, DIGITS), round(sqrt(variance), DIGITS)


class Coefficients(NamedTuple):
    """All fitted coefficients of the judge."""

    version: str
    relevant: Logistic
    """P(document sentence helps to answer the question)."""
    utilized: Logistic
    """P(document sentence was used by the response); same features and bounds as `relevant`."""
    relevant_alone: Logistic
    """P(document sentence helps to answer the question), from the question alone; for calls without
    a response, or with one that is unrelated to the documents."""
    topic: Logistic
    """P(the documents are about the question); see `relevance`."""
    supported: Logistic
    """P(response sentence is fully supported), from features; `present` and `new` add to its
    log-odds."""
    present: Mapping[str, float]
    """Log-odds that a stem adds when the sentence holds it."""
    new: Mapping[str, float]
    """Log-odds that a stem adds when it is in neither documents nor question."""
    adherent: Logistic
    """P(every response sentence is supported), from the sentences' probabilities."""
    levels: Mapping[str, Logistic]
    """Linear regressions of scores on features of the call: `LEVEL_FEATURES`."""
    scores: Mapping[str, ScoreErrors]
    """Errors of the scores by their names in `Labels.estimates`."""
    thresholds: Mapping[str, float]
    """Lowest probabilities with which sentences are labelled, by the name of the model."""


def probability_of(score: float) -> float:
    """Convert log-odds to a rounded probability; constant beyond ±13, so that it is in (0, 1)."""
    return round(1 / (1 + exp(-min(13.0, max(-13.0, score)))), DIGITS)


def logit(probability: float) -> float:
    """Compute the inverse of the logistic function, for a probability in [1e-6, 1 - 1e-6]."""
    p = max(1e-6, min(1 - 1e-6, probability))
    return log(p / (1 - p))


def clipped(row: Sequence[float], bounds: Bounds) -> Sequence[float]:
    """Clip a row of features to the ranges of the training rows."""
    inside = list(row)
    for number, low, high in bounds:
        value = inside[number]
        inside[number] = high if value > high else low if value < low else value
    return inside


def document_probabilities(
    documents: Sequence[DocumentRows], *models: Logistic
) -> list[list[float]]:
    """Compute each model's probabilities of all document sentences, in order.

    All models must have the same bounds. For speed, since document sentences are most of the work,
    the features that a document's sentences share are weighted once per document, and the other
    features are clipped once for all models.
    """
    cut = len(SENTENCE_FEATURES)
    bounds = models[0].bounds
    own = tuple([bound for bound in bounds if bound[0] < cut])
    rest = tuple([(n - cut, low, high) for n, low, high in bounds if n >= cut])
    weights = [model.weights[:cut] for model in models]
    scores: list[list[float]] = [[] for _ in models]
    for every, of_sentences in documents:
        shared, columns = clipped(every, rest), list(of_sentences)
        starts = [fsum((m.intercept, *map(mul, m.weights[cut:], shared))) for m in models]
        for number, low, high in own:
            column = columns[number]
            if max(column) > high or min(column) < low:  # most columns are within their range
                columns[number] = [min(high, max(low, value)) for value in column]
        rows = list(zip(*columns, strict=True))
        for of_model, start, weight in zip(scores, starts, weights, strict=True):
            of_model += [start + fsum(map(mul, weight, row)) for row in rows]
    return [list(map(probability_of, of_model)) for of_model in scores]


def support_probability(model: Coefficients, row: ResponseRow, stems: Sequence[str]) -> float:
    """Compute P(response sentence is fully supported) from its features and its words."""
    # fsum is exact, so that the order of a set does not matter.
    weights = [model.present[word] for word in model.present.keys() & stems]
    weights += [model.new[word] for word in row.new if word in model.new]
    return probability_of(fsum([model.supported.score(row.features), *weights]))


ADHERENCE_FEATURES = ("least", "mean", "joint")


def adherence_features(supported: Sequence[float]) -> tuple[float, ...]:
    """Compute the row of the response-level model: least, mean and joint support of the sentences.

    These are the logits of the least and the mean probability, and the sum of log-probabilities
    divided by the square root of their number. Without the division, long responses would be less
    likely adherent, but the length of a response mostly tells its data set (AUROC .69 over all sets
    pooled, .57 within them).
    """
    supported = supported or (1.0,)
    size = len(supported)
    return (
        logit(min(supported)),
        logit(fsum(supported) / size),
        fsum([log(max(1e-6, p)) for p in supported]) / sqrt(size),
    )


@cache
def load_model() -> Coefficients:
    """Read `model.json`; the file is read once per process, on first use."""
    content: dict[str, Any] = json.loads(MODEL_FILE.read_text(encoding="utf-8"))

    def logistic(part: Mapping[str, Any]) -> Logistic:
        """Read a logistic regression."""
        names, weights, bounds = (tuple(part[name]) for name in ("names", "weights", "bounds"))
        return Logistic(names, part["intercept"], weights, tuple(map(tuple, bounds)))

    for name in ("relevant", "utilized", "relevant_alone", "topic", "supported", "adherent"):
        content[name] = logistic(content[name])
    content["levels"] = {name: logistic(part) for name, part in content["levels"].items()}
    content["scores"] = {name: ScoreErrors(**part) for name, part in content["scores"].items()}
    return Coefficients(**{name: content[name] for name in Coefficients._fields})


# --- Two gates of relevance: do the documents fit the question, and does the response fit them?
#
# A regression on question, response and documents cannot tell by itself that a question is
# foreign to its documents, because in the training rows none is. The first gate was fitted on
# such calls, which were made by exchanging the parts of rows. The second opens by the best match
# alone.

TOPIC_FEATURES = (
    "words_found",  # log of the number of the question's words that are in the documents
    "words_missing",  # log of those that are not
    "words_common",  # how many document sentences hold a found word, on average, from 0 to 1
    "document_response_max",  # cosine of the closest document to the response; 0 without one
    "best_sentence",  # log of the most of the question's words in one document sentence
    "document_sentences",  # log of their number: long documents hold some word of any question
)
TOPIC_OPENS, ANSWERED_OPENS = (0.05, 0.5), (0.1, 0.22)
"""P(topic) and the call's greatest Dice coefficient up to which a gate is closed, and from which it
is open: 99 % of real rows have a coefficient of .22 and more. Between them it is partly open,
because a question may name its topic in other words than the documents do. An abrupt first gate
(closed to .45, open from .52) cost .005 of relevance's RMSE on domains unseen in fitting."""

_RESPONSE = SHARED_FEATURES.index("document_response")


def topic_row(features: CallFeatures) -> tuple[float, ...]:
    """Compute `TOPIC_FEATURES` of a call with document sentences."""
    o = features.overlap
    closest = max([document.shared[_RESPONSE] for document in features.documents])
    holders = [o.holders[word] for word in o.question.content if word in o.idf]
    counts = [log1p(len(numbers)) for numbers in holders]
    size = len(o.documents)
    # Of two at least: that the only sentence holds a word does not make the word common.
    common = fsum(counts) / len(counts) / log1p(max(2, size)) if counts else 0.0
    words_in = [0] * size
    for numbers in holders:
        for number in numbers:
            words_in[number] += 1
    return (
        log1p(len(counts)),
        log1p(len(o.question.content) - len(counts)),
        common,
        closest,
        log1p(max(words_in)),
        log1p(size),
    )


def opening(probability: float, opens: tuple[float, float]) -> float:
    """Compute how far a gate of relevance is open, in [0, 1]."""
    closed, opened = opens
    return min(1.0, max(0.0, (probability - closed) / (opened - closed)))


def relevance(
    model: Coefficients, features: CallFeatures, beside_response: Sequence[float] | None
) -> list[float]:
    """Compute P(relevant) of each document sentence, in order.

    The less the documents are about the question's topic, the lower, unless the question consists
    of function words alone. Without a response, or beside one that shares no words with them, by
    the documents and the question alone; beside one that shares few, by a mixture of both.

    Args:
        model: the coefficients.
        features: the features of the call.
        beside_response: probabilities by `model.relevant`; None without a response.
    """
    documents = features.documents
    if not documents:
        return []
    # A question of function words alone ("What is it?") names no topic to miss.
    asks = features.overlap.question.content
    topic = opening(model.topic.probability(topic_row(features)), TOPIC_OPENS) if asks else 1.0
    by_response = opening(max(features.overlap.best_dice), ANSWERED_OPENS)
    if beside_response is not None and by_response == 1.0:
        return [round(topic * p, DIGITS) for p in beside_response]
    [alone] = document_probabilities(documents, model.relevant_alone)
    return [
        round(topic * (by_response * p + (1 - by_response) * q), DIGITS)
        for p, q in zip(beside_response or alone, alone, strict=True)
    ]


# --- Estimates of scores, with standard errors, from the probabilities of the sentences
#
# Relevance and utilization are the mean probabilities of the document sentences. The shares of
# what is relevant are regressions on a few features of the whole call, because the errors of its
# sentences are not independent: a ratio of two sums alone was worse than a constant on unseen
# domains.

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
    """Return mean and variance of a share of labels from their probabilities."""
    size = len(probabilities)
    return fsum(probabilities) / size, fsum([p * (1 - p) for p in probabilities]) / size**2


def _used_of_relevant(relevant: Sequence[float], utilized: Sequence[float]) -> float:
    """Return the expected share of the relevant sentences that are used; 1 without any."""
    every = fsum(relevant)
    return fsum(map(min, relevant, utilized)) / every if every else 1.0
