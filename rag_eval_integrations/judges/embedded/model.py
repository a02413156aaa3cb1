"""The fitted coefficients (`model.json`, written by `training/embedded_judge.py`) and their use.

Logistic regressions, not trees: with every data set judged by a model that never saw it, 60 boosted
trees of depth 3 were no better (RMSE relevance .157 against .157, utilization .109 against .107;
AUROC of not-adherent .66 against .68), cost several times as much per sentence and cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from math import exp, fsum, log
from operator import mul
from pathlib import Path
from typing import NamedTuple

MODEL_FILE = Path(__file__).with_name("model.json")


class Logistic(NamedTuple):
    """p = 1 / (1 + exp(-(intercept + Σ weight · clip(feature, low, high))))."""

    names: tuple[str, ...]
    intercept: float
    terms: tuple[tuple[float, float, float], ...]
    """Weight, low and high of each feature. Clipping holds a feature in the range of the training
    rows: without it one data set was extrapolated to a relevance RMSE of .31 instead of .21."""

    def clipped(self, row: Sequence[float]) -> list[float]:
        """The row held in the ranges of the training rows."""
        return [
            low if value < low else high if value > high else value
            for value, (_, low, high) in zip(row, self.terms, strict=True)
        ]

    def probability(self, row: Sequence[float]) -> float:
        """Probability for one row of features in the order of `names`; inside (0, 1)."""
        return self.probability_of(self.clipped(row), [weight for weight, _, _ in self.terms])

    def probability_of(self, clipped: Sequence[float], weights: Sequence[float]) -> float:
        """The same for a row that is clipped; `weights` are those of `terms`, in order."""
        # fsum: the same to the last bit on every Python, and faster than a loop.
        return sigmoid(fsum((self.intercept, *map(mul, weights, clipped))))

    def probabilities(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Probability for each of many rows."""
        weights = [weight for weight, _, _ in self.terms]
        return [self.probability_of(self.clipped(row), weights) for row in rows]


def probabilities_of_both(
    first: Logistic, second: Logistic, rows: Sequence[Sequence[float]]
) -> tuple[list[float], list[float]]:
    """Probabilities of two models that share features and ranges: rows are clipped once.

    Clipping is half the work of a model, and document sentences are most of the rows.
    """
    if [term[1:] for term in first.terms] != [term[1:] for term in second.terms]:
        return first.probabilities(rows), second.probabilities(rows)
    weights = [weight for weight, _, _ in first.terms]
    others = [weight for weight, _, _ in second.terms]
    held = [first.clipped(row) for row in rows]
    return (
        [first.probability_of(row, weights) for row in held],
        [second.probability_of(row, others) for row in held],
    )


class Model(NamedTuple):
    """Everything that was fitted."""

    version: str
    relevant: Logistic
    """P(document sentence helps to answer the question)."""
    utilized: Logistic
    """P(document sentence was used by the response)."""
    supported: Logistic
    """P(response sentence is fully supported)."""
    adherent: Logistic
    """P(every response sentence is supported), from the sentences' probabilities."""
    completeness: tuple[float, float, float]
    """Intercept, slope and error of the line from expected to calibrated completeness."""
    relevant_threshold: float
    """From here on a document sentence is labelled relevant."""
    utilized_threshold: float
    supported_threshold: float
    adherent_threshold: float


def sigmoid(score: float) -> float:
    """The logistic function, flat beyond ±30 so that no probability is exactly 0 or 1."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def logit(probability: float) -> float:
    """The inverse of `sigmoid`, with the probability held inside [1e-6, 1 - 1e-6]."""
    p = max(1e-6, min(1 - 1e-6, probability))
    return log(p / (1 - p))


ADHERENCE_FEATURES = ("least", "mean")


def adherence_features(supported: Sequence[float]) -> tuple[float, ...]:
    """Row of the response-level model: logits of the least and the mean support probability.

    No length: it tells which data set a row is from (AUROC .69 over all sets pooled, .56 within
    them), and adding it made sets the model never saw worse.
    """
    if not supported:
        return logit(1.0), logit(1.0)
    return logit(min(supported)), logit(sum(supported) / len(supported))


def expected_completeness(relevant: Sequence[float], utilized: Sequence[float]) -> float:
    """Σ min(p(R), p(U)) / Σ p(R); 1 when there is no document sentence."""
    total = sum(relevant)
    if not total:
        return 1.0
    return sum([min(r, u) for r, u in zip(relevant, utilized, strict=True)]) / total


@cache
def load_model() -> Model:
    """Read `model.json`, once per process and on first use only."""
    content = json.loads(MODEL_FILE.read_text(encoding="utf-8"))

    def logistic(name: str) -> Logistic:
        part = content[name]
        return Logistic(
            tuple(part["names"]),
            part["intercept"],
            tuple(zip(part["weights"], part["low"], part["high"], strict=True)),
        )

    line = content["completeness"]
    thresholds = content["thresholds"]
    return Model(
        content["version"],
        logistic("relevant"),
        logistic("utilized"),
        logistic("supported"),
        logistic("adherent"),
        (line["intercept"], line["slope"], line["error"]),
        thresholds["relevant"],
        thresholds["utilized"],
        thresholds["supported"],
        thresholds["adherent"],
    )
