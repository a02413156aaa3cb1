"""Curves of a judge against gold: ROC and reliability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rag_eval_integrations.agreement._statistics import Array, exact_sum
from rag_eval_integrations.agreement._table import Table, column
from rag_eval_integrations.agreement.compare import ADHERENCE, not_adherent
from rag_eval_integrations.agreement.matching import Pair

BINS = 10


class Bin(NamedTuple):
    """The items whose probability lies in one tenth of [0, 1]."""

    n: int
    mean: float
    """Mean of the items' probabilities."""
    share: float
    """Share of the items that are positive in gold."""


@dataclass(frozen=True)
class Curves:
    """ROC curve and reliability of the probabilities of one kind of verdict."""

    n: int
    """Number of items."""
    positives: int
    """Number of items that are positive in gold."""
    roc: tuple[tuple[float, float], ...]
    """(false positive rate, true positive rate) from (0, 0) to (1, 1); empty when gold has only
    one class."""
    bins: tuple[Bin, ...]
    """Bins of equal width, without the empty ones."""

    @property
    def auroc(self) -> float | None:
        """Area under the ROC curve; None when gold has only one class."""
        if not self.roc:
            return None
        steps = zip(self.roc, self.roc[1:], strict=False)
        return math.fsum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in steps)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error in ten bins: Σ n/N · |mean probability - share|; 0 is best."""
        return _error_of(self.bins)


def curves(pairs: Sequence[Pair]) -> Mapping[str, Curves]:
    """Compute the curves of every kind of verdict for which the judge gives probabilities.

    Returns:
        Curves by title: `not adherent` (responses), `relevant` and `utilized` (document sentences),
        `unsupported` (response sentences). A kind without probabilities is left out.
    """
    return curves_of(Table.of(pairs))


def curves_of(table: Table) -> Mapping[str, Curves]:
    """Compute the curves of a table, as `curves` does of pairs."""
    rows = table.compared(ADHERENCE)
    chances = column(table.predicted, ADHERENCE, "probability")[rows.places]
    known = ~np.isnan(chances)
    verdicts = {"not adherent": (1 - chances[known], not_adherent(rows)[known])}
    for kind in ("relevant", "utilized"):
        scores, positive, _ = table.items(kind)
        verdicts[kind] = scores, positive
    doubts = [table.items(kind) for kind in ("supported", "no_verdict")]
    scores, supported = (np.concatenate([items[part] for items in doubts]) for part in (0, 1))
    verdicts["unsupported"] = 1 - scores, ~supported
    return {name: _curves_of(*of) for name, of in verdicts.items() if len(of[0])}


def _curves_of(scores: Array, positive: Array) -> Curves:
    """Compute the curves of at least one probability, and whether it is positive in gold."""
    return Curves(len(scores), int(positive.sum()), _roc(scores, positive), _bins(scores, positive))


def _roc(scores: Array, positive: Array) -> tuple[tuple[float, float], ...]:
    if positive.all() or not positive.any():
        return ()
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    # Equal probabilities share one point, because their order has no meaning.
    last = np.append(falling[1:] != falling[:-1], True)
    axes = (np.cumsum(chosen[order])[last] / chosen.sum() for chosen in (~positive, positive))
    return ((0.0, 0.0), *zip(*(axis.tolist() for axis in axes), strict=True))


def calibration_error(scores: Array, gold: Array) -> float:
    """Compute the expected calibration error of at least one score in [0, 1] with its gold value.

    As `Curves.calibration_error`, with the mean of gold values in place of a share.
    """
    return _error_of(_bins(scores, gold))


def _error_of(bins: Sequence[Bin]) -> float:
    return math.fsum(group.n * abs(group.mean - group.share) for group in bins) / sum(
        group.n for group in bins
    )


def _bins(scores: Array, gold: Array) -> tuple[Bin, ...]:
    bins = np.minimum(BINS - 1, (scores * BINS).astype("i8"))
    groups = [
        (scores[bins == number], gold[bins == number])
        for number in range(BINS)
        if (bins == number).any()
    ]
    return tuple(
        Bin(len(ours), exact_sum(ours) / len(ours), exact_sum(theirs) / len(ours))
        for ours, theirs in groups
    )
