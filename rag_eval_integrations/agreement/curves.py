"""A judge's probabilities against gold, point by point: ROC curves and reliability diagrams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_eval_integrations.agreement.keys import Labelled, on_same_sentences
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import ADHERENCE, compared, not_adherent

BINS = 10


class Bin(NamedTuple):
    """Items whose probability lies in one tenth of [0, 1]."""

    n: int
    mean: float
    """Mean of their probabilities."""
    share: float
    """Share of them that is positive in gold."""


@dataclass(frozen=True)
class Curves:
    """One kind of verdict: how it ranks, and what its probabilities are worth."""

    n: int
    positives: int
    roc: tuple[tuple[float, float], ...]
    """(false positive rate, true positive rate) from (0, 0) to (1, 1); empty when gold has only
    one class."""
    bins: tuple[Bin, ...]
    """Of equal width, empty ones left out."""

    @property
    def auroc(self) -> float | None:
        """Area under the ROC curve; None when gold has only one class."""
        if not self.roc:
            return None
        steps = zip(self.roc, self.roc[1:], strict=False)
        return math.fsum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in steps)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error over ten bins: Σ n/N · |mean probability - share|."""
        return math.fsum(one.n * abs(one.mean - one.share) for one in self.bins) / self.n


def curves(pairs: Sequence[Pair]) -> Mapping[str, Curves]:
    """Draw every verdict for which the judge gives probabilities.

    Returns:
        By title: `not adherent` (a response), `relevant`, `utilized` (a document sentence),
        `unsupported` (a response sentence); those without a probability are left out.
    """
    items: dict[str, list[tuple[float, bool]]] = {"not adherent": list(_adherence(pairs))}
    for row, pair in enumerate(pairs):
        labelled = on_same_sentences(row, pair)
        if labelled is not None:
            for title, probability, positive in _sentences(labelled):
                items.setdefault(title, []).append((probability, positive))
    return {title: curve_of(found) for title, found in items.items() if found}


def _adherence(pairs: Sequence[Pair]) -> Iterator[tuple[float, bool]]:
    rows = compared(pairs, ADHERENCE)
    for row, positive in zip(rows, not_adherent(rows), strict=True):
        if row.predicted.probability is not None:
            yield 1 - row.predicted.probability, positive


def _sentences(one: Labelled) -> Iterator[tuple[str, float, bool]]:
    relevant, utilized = one.predicted.relevant_probabilities, one.predicted.utilized_probabilities
    gold_relevant = frozenset(one.gold.all_relevant_sentence_keys)
    gold_utilized = frozenset(one.gold.all_utilized_sentence_keys)
    for key in one.documents:
        if relevant is not None and key in relevant:
            yield "relevant", relevant[key], key in gold_relevant
        if utilized is not None and key in utilized:
            yield "utilized", utilized[key], key in gold_utilized
    supported = one.predicted.supported_probabilities
    for key in one.response or ():
        support = one.gold.support(key)
        if supported is not None and key in supported and support != "unlabelled":
            yield "unsupported", 1 - supported[key], support != "full"


def curve_of(items: Sequence[tuple[float, bool]]) -> Curves:
    """Make the curves of (probability, positive in gold) pairs; at least one."""
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
        # Equal probabilities are one point: the order among them means nothing.
        if at + 1 == len(ordered) or ordered[at + 1][0] != probability:
            points.append((false / negatives, true / positives))
    return tuple(points)


def _bins(items: Sequence[tuple[float, bool]]) -> tuple[Bin, ...]:
    found: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for probability, positive in items:
        found[min(BINS - 1, int(probability * BINS))].append((probability, positive))
    return tuple(
        Bin(
            len(group),
            math.fsum(probability for probability, _ in group) / len(group),
            sum(positive for _, positive in group) / len(group),
        )
        for group in found
        if group
    )
