"""Boosting of the trees that correct the regressions of document sentences.

Newton boosting of the logistic loss of both labels at once, from the regressions' log-odds on. A
tree asks the same question of all nodes of a level, so that it is a table of eight leaves. It is
held back strongly: trees that were free to fit were better on questions of known domains and worse
on unseen domains (docs/embedded-judge.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedded_training.fits import sigmoid
from rag_eval_integrations.judges.embedded._trees import QUESTIONS, SCALE

TREES = 80
RATE = 0.1
HELD_BACK = 1000.0
"""Added to the curvature of every leaf; in sentences of mean weight."""
STEPS = 24
"""Quantiles of a feature between which a question may ask."""


class Boosted:
    """Trees fitted to what two regressions miss."""

    def __init__(
        self,
        x: np.ndarray,
        labels: Sequence[np.ndarray],
        starts: Sequence[np.ndarray],
        weight: np.ndarray,
    ) -> None:
        """Fit on sentences (rows), 0/1 labels, log-odds of the regressions, and weights."""
        self._edges = [_edges(column) for column in x.T]
        codes = self._codes(x)
        weight = weight * len(weight) / weight.sum()
        scores = [start.copy() for start in starts]
        self.questions: list[list[tuple[int, int]]] = []
        self.leaves: list[np.ndarray] = []
        for _ in range(TREES):
            p = [sigmoid(score) for score in scores]
            gradient = [weight * (y - q) for y, q in zip(labels, p, strict=True)]
            curvature = [weight * q * (1 - q) for q in p]
            leaf = np.zeros(len(x), np.int64)
            asked = []
            for level in range(QUESTIONS):
                feature, step = self._best(codes, leaf, 2**level, gradient, curvature)
                leaf = 2 * leaf + (codes[feature] > step)
                asked.append((feature, step))
            size = 2**QUESTIONS
            values = np.array(
                [
                    np.rint(SCALE * RATE * np.bincount(leaf, g, size)
                            / (np.bincount(leaf, h, size) + HELD_BACK))
                    for g, h in zip(gradient, curvature, strict=True)
                ]
            )  # fmt: skip
            for score, value in zip(scores, values, strict=True):
                score += value[leaf] / SCALE
            self.questions.append(asked)
            self.leaves.append(values)

    def _codes(self, x: np.ndarray) -> list[np.ndarray]:
        return [
            np.searchsorted(edges, column, side="right")
            for edges, column in zip(self._edges, x.T, strict=True)
        ]

    def _best(
        self,
        codes: list[np.ndarray],
        leaf: np.ndarray,
        leaves: int,
        gradient: list[np.ndarray],
        curvature: list[np.ndarray],
    ) -> tuple[int, int]:
        """Find the question with the greatest gain; the first of equal ones."""
        best = (-1.0, 0, 0)
        for feature, (code, edges) in enumerate(zip(codes, self._edges, strict=True)):
            size = len(edges) + 1
            if size < 2:
                continue
            cell = leaf * size + code
            gain = np.zeros(size - 1)
            for g, h in zip(gradient, curvature, strict=True):
                up = np.bincount(cell, g, leaves * size).reshape(-1, size).cumsum(1)
                down = np.bincount(cell, h, leaves * size).reshape(-1, size).cumsum(1)
                rest_up, rest_down = up[:, -1:] - up[:, :-1], down[:, -1:] - down[:, :-1]
                gain += (
                    up[:, :-1] ** 2 / (down[:, :-1] + HELD_BACK)
                    + rest_up**2 / (rest_down + HELD_BACK)
                ).sum(0)
            step = int(gain.argmax())
            best = max(best, (round(float(gain[step]), 6), -feature, -step))
        return -best[1], -best[2]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Compute what the trees add to both log-odds (2 × rows)."""
        codes = self._codes(x)
        added = np.zeros((2, len(x)))
        for asked, values in zip(self.questions, self.leaves, strict=True):
            leaf = np.zeros(len(x), np.int64)
            for feature, step in asked:
                leaf = 2 * leaf + (codes[feature] > step)
            added += values[:, leaf]
        return added / SCALE

    def plain(self) -> dict[str, Any]:
        """Return the JSON for the model file; see `trees_of`."""
        return {
            "questions": [
                [[feature, float(self._edges[feature][step])] for feature, step in asked]
                for asked in self.questions
            ],
            "relevant": [list(map(int, values[0])) for values in self.leaves],
            "utilized": [list(map(int, values[1])) for values in self.leaves],
        }


def _edges(column: np.ndarray) -> np.ndarray:
    quantiles = np.unique(np.round(np.quantile(column, np.arange(1, STEPS) / STEPS), 3))
    return quantiles[quantiles > column.min()]
