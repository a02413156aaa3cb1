"""The fitted coefficients (`model.json`, written by `training/embedded_judge.py`) and their use.

All models are linear: boosted trees gained nothing on domains unseen in fitting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, fsum, log, sqrt
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations.judges.embedded._features import SENTENCE_FEATURES, DocumentRows
from rag_eval_integrations.judges.embedded._response_features import ResponseRow

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
        """Compute the log-odds of one row of features in the order of `names`."""
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
    """Everything that was fitted."""

    version: str
    relevant: Logistic
    """P(document sentence helps to answer the question)."""
    utilized: Logistic
    """P(document sentence was used by the response); same features and bounds as `relevant`."""
    relevant_alone: Logistic
    """P(document sentence helps to answer the question), from the question alone; for calls without
    a response, or with one that is unrelated to the documents."""
    topic: Logistic
    """P(the documents are about the question); see `_gates.py`."""
    supported: Logistic
    """P(response sentence is fully supported), from features; `said` and `new` add to its
    log-odds."""
    said: Mapping[str, float]
    """Log-odds that a stem adds when the sentence holds it."""
    new: Mapping[str, float]
    """Log-odds that a stem adds when it is in neither documents nor question."""
    adherent: Logistic
    """P(every response sentence is supported), from the sentences' probabilities."""
    levels: Mapping[str, Logistic]
    """Linear regressions of scores on features of the call; see `_levels.py`."""
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
    weights = [model.said[word] for word in model.said.keys() & stems]
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
        names, weights, bounds = (tuple(part[name]) for name in ("names", "weights", "bounds"))
        return Logistic(names, part["intercept"], weights, tuple(map(tuple, bounds)))

    for name in ("relevant", "utilized", "relevant_alone", "topic", "supported", "adherent"):
        content[name] = logistic(content[name])
    content["levels"] = {name: logistic(part) for name, part in content["levels"].items()}
    content["scores"] = {name: ScoreErrors(**part) for name, part in content["scores"].items()}
    return Coefficients(**{name: content[name] for name in Coefficients._fields})
