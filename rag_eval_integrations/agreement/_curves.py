"""Curves of a judge against gold: ROC and reliability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_eval_integrations.agreement._table import Part, ordered
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import (
    ADHERENCE,
    compared,
    not_adherent,
)

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
    return curves_of(ordered(pairs))


def curves_of(part: Part) -> Mapping[str, Curves]:
    """Compute the curves of some rows of a table, as `curves` does of pairs."""
    found = {"not adherent": curve_of(items)} if (items := list(_adherence(part))) else {}
    for title in ("relevant", "utilized"):
        scores, positive, _ = part.table.keys.items[title].columns(part.rows)
        if scores:
            found[title] = curve_of(list(zip(scores, positive, strict=True)))
    keys = part.table.keys
    doubts = [
        (1 - score, not supported)
        for items in (keys.items["supported"], keys.without_verdict)
        for score, supported, _ in zip(*items.columns(part.rows), strict=True)
    ]
    if doubts:
        found["unsupported"] = curve_of(doubts)
    return found


def _adherence(part: Part) -> Iterator[tuple[float, bool]]:
    rows = compared(part, ADHERENCE)
    probabilities = part.table.predicted.numbers(ADHERENCE, "probability", rows.rows)
    for probability, positive in zip(probabilities, not_adherent(rows), strict=True):
        if probability == probability:  # only NaN, which stands for none, differs from itself
            yield 1 - probability, positive


def curve_of(items: Sequence[tuple[float, bool]]) -> Curves:
    """Compute the curves of at least one (probability, positive in gold) pair."""
    positives = sum(positive for _, positive in items)
    return Curves(len(items), positives, _roc(items, positives), _bins(items))


def _roc(items: Sequence[tuple[float, bool]], positives: int) -> tuple[tuple[float, float], ...]:
    negatives = len(items) - positives
    if not positives or not negatives:
        return ()
    points = [(0.0, 0.0)]
    true = false = 0
    ordered = sorted(items, key=lambda item: -item[0])
    for at, (probability, positive) in enumerate(ordered):
        true, false = true + positive, false + (not positive)
        # Equal probabilities share one point, because their order has no meaning.
        if at + 1 == len(ordered) or ordered[at + 1][0] != probability:
            points.append((false / negatives, true / positives))
    return tuple(points)


def calibration_error(items: Sequence[tuple[float, float]]) -> float:
    """Compute the expected calibration error of at least one score in [0, 1] with its gold value.

    As `Curves.calibration_error`, with the mean of gold values in place of a share.
    """
    return _error_of(_bins(items))


def _error_of(bins: Sequence[Bin]) -> float:
    return math.fsum(one.n * abs(one.mean - one.share) for one in bins) / sum(one.n for one in bins)


def _bins(items: Sequence[tuple[float, float]]) -> tuple[Bin, ...]:
    found: list[list[tuple[float, float]]] = [[] for _ in range(BINS)]
    for probability, positive in items:
        found[min(BINS - 1, int(probability * BINS))].append((probability, positive))
    return tuple(
        Bin(
            len(group),
            math.fsum(probability for probability, _ in group) / len(group),
            math.fsum(positive for _, positive in group) / len(group),
        )
        for group in found
        if group
    )
