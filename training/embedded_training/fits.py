"""Logistic regressions and calibrations whose coefficients are exported as plain numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression

PLACES = 5


class Words:
    """A fixed list of stems, and sentences as sparse 0/1 rows over it."""

    def __init__(self, stems: Sequence[str]) -> None:
        self.stems = list(stems)
        self._column = {stem: place for place, stem in enumerate(self.stems)}

    @classmethod
    def common(
        cls, texts: Sequence[Sequence[str]], of_set: np.ndarray, least: int, sets: int
    ) -> Words:
        """Select stems in at least `least` sentences and five times each in `sets` data sets."""
        count: dict[str, Counter[str]] = defaultdict(Counter)
        for stems, name in zip(texts, of_set, strict=True):
            for stem in stems:
                count[stem][name] += 1
        return cls(
            sorted(
                stem
                for stem, by_set in count.items()
                if by_set.total() >= least and sum(n >= 5 for n in by_set.values()) >= sets
            )
        )

    def matrix(self, texts: Sequence[Sequence[str]]) -> sparse.csr_matrix:
        """Build the matrix with one row per sentence and one column per stem."""
        places = [
            (place, self._column[stem])
            for place, stems in enumerate(texts)
            for stem in stems
            if stem in self._column
        ]
        rows, columns = zip(*places, strict=True) if places else ((), ())
        return sparse.csr_matrix(
            (np.ones(len(rows)), (rows, columns)), (len(texts), len(self.stems))
        )


class Fit:
    """A logistic regression on clipped, standardised features and on optional 0/1 columns."""

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        c: float,
        words: sparse.csr_matrix | None = None,
    ) -> None:
        self.low, self.high = np.quantile(x, [0.01, 0.99], axis=0)
        # A rare 0/1 feature has both quantiles at 0: keep its whole range.
        flat = self.low == self.high
        self.low[flat], self.high[flat] = x.min(0)[flat], x.max(0)[flat]
        # Where a hundredth of the rows lies on a limit and none beyond, it is the feature's own.
        self.bound = (x.min(0) < self.low) | (x.max(0) > self.high) | flat
        clipped = np.clip(x, self.low, self.high)
        mean, deviation = clipped.mean(0), clipped.std(0) + 1e-9
        scaled: Any = (clipped - mean) / deviation
        if words is not None:
            scaled = sparse.hstack([sparse.csr_matrix(scaled), words]).tocsr()
        fitted = LogisticRegression(C=c, max_iter=500).fit(
            scaled, y, sample_weight=weight * len(y) / weight.sum()
        )
        self.weights = fitted.coef_[0][: x.shape[1]] / deviation
        self.of_words = fitted.coef_[0][x.shape[1] :]
        self.intercept = float(fitted.intercept_[0] - (self.weights * mean).sum())

    def score(self, x: np.ndarray, words: sparse.csr_matrix | None = None) -> np.ndarray:
        """Compute the log-odds of rows."""
        score = np.clip(x, self.low, self.high) @ self.weights + self.intercept
        return score if words is None else score + words @ self.of_words

    def __call__(self, x: np.ndarray, words: sparse.csr_matrix | None = None) -> np.ndarray:
        """Compute the probabilities of rows."""
        return sigmoid(self.score(x, words))

    def rescale(self, slope: float, intercept: float) -> None:
        """Calibrate the fit: log-odds become intercept + slope · log-odds."""
        self.weights = slope * self.weights
        self.of_words = slope * self.of_words
        self.intercept = slope * self.intercept + intercept

    def plain(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the JSON for the model file."""
        return {
            "names": list(names),
            "intercept": round(self.intercept, PLACES),
            "weights": rounded(self.weights),
            "bounds": [
                [place, *rounded(limits)]
                for place, limits in enumerate(np.c_[self.low, self.high])
                if self.bound[place]
            ],
        }


def rounded(values: np.ndarray) -> list[float]:
    """Round numbers for the model file."""
    return [round(float(value), PLACES) for value in values]


def sigmoid(score: np.ndarray) -> np.ndarray:
    """Compute the logistic function."""
    return 1 / (1 + np.exp(-np.clip(score, -13, 13)))


def platt(score: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Fit the slope and the intercept that calibrate log-odds."""
    fitted = LogisticRegression(C=1e6).fit(score[:, None], y, sample_weight=weight)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


class Level:
    """A ridge regression of a score on features of the call, with the weights of within data sets.

    Scores and features are taken from the means of their data set, so that weights do not encode
    the set; the intercept is for the mean of the sets.
    """

    def __init__(self, x: np.ndarray, gold: np.ndarray, of_set: np.ndarray, ridge: float) -> None:
        self.low, self.high = np.quantile(x, [0.01, 0.99], axis=0)
        held = np.clip(x, self.low, self.high)
        of = [of_set == name for name in np.unique(of_set)]
        weight = sum(own / own.sum() for own in of) / len(of)
        middle = np.mean([held[own].mean(0) for own in of], axis=0)
        within = sum(own[:, None] * (held - held[own].mean(0)) for own in of)
        deviation = np.sqrt(weight @ within**2) + 1e-6
        rows = within / deviation
        rest = sum(own * (gold - gold[own].mean()) for own in of)
        start = np.mean([gold[own].mean() for own in of])
        squares = (rows * weight[:, None]).T @ rows
        ridge *= np.diag(squares).mean()
        solved = np.linalg.solve(
            squares + ridge * np.eye(len(squares)), (rows * weight[:, None]).T @ rest
        )
        self.weights = solved / deviation
        self.intercept = float(start - self.weights @ middle)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Compute the scores of rows."""
        return np.clip(x, self.low, self.high) @ self.weights + self.intercept

    def plain(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the JSON for the model file."""
        return {
            "names": list(names),
            "intercept": round(self.intercept, PLACES),
            "weights": rounded(self.weights),
            "bounds": [
                [place, *rounded(both)] for place, both in enumerate(np.c_[self.low, self.high])
            ],
        }


LEAST_ERROR = 0.02
"""Lower limit of the constant part, without which a score of 0 claimed to be certain."""


def errors(
    mean: np.ndarray, gold: np.ndarray, independent: np.ndarray, weight: np.ndarray
) -> dict[str, float]:
    """Fit the non-negative variances of `ScoreErrors`, which add up: gold's distance from a score.

    Plain least squares of the squared distances. Weighted by their own variance instead, only 92 %
    of unseen gold lay within 1.96 errors of utilization, against 94 %.
    """
    parts = variances(mean, independent)
    used, share = parts.any(axis=0), np.sqrt(weight)
    solved = np.zeros(parts.shape[1])
    solved[used], _ = nnls(parts[:, used] * share[:, None], (gold - mean) ** 2 * share)
    error, spread, effect = solved
    return {
        "error": max(LEAST_ERROR, round(float(error) ** 0.5, PLACES)),
        "spread": round(float(spread), PLACES),
        "design_effect": round(float(effect), PLACES),
    }


def error_of(of: dict[str, float], mean: np.ndarray, independent: np.ndarray) -> np.ndarray:
    """Compute the standard errors from the variances of `errors`."""
    shares = np.array([of["error"] ** 2, of["spread"], of["design_effect"]])
    return np.sqrt(variances(mean, independent) @ shares)


def variances(mean: np.ndarray, independent: np.ndarray) -> np.ndarray:
    """Build the columns of variances: constant, largest in the middle, of sentences."""
    return np.c_[np.ones(len(mean)), 4 * mean * (1 - mean), independent]
