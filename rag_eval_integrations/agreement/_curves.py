"""Curves of a judge against gold: ROC, reliability, and the cost and worth of a cascade."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from rag_eval_integrations.agreement._keys import LabelledPair, on_same_sentences
from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import (
    ADHERENCE,
    check_one_predictor,
    compared,
    not_adherent,
    score_blocks,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, Usage

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
        return math.fsum(one.n * abs(one.mean - one.share) for one in self.bins) / self.n


def curves(pairs: Sequence[Pair]) -> Mapping[str, Curves]:
    """Compute the curves of every kind of verdict for which the judge gives probabilities.

    Returns:
        Curves by title: `not adherent` (responses), `relevant` and `utilized` (document sentences),
        `unsupported` (response sentences). A kind without probabilities is left out.
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


def _sentences(one: LabelledPair) -> Iterator[tuple[str, float, bool]]:
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


# --- Cost and worth of a cascade of two judges, by the share of calls that the second one labels


STEPS = 10


@dataclass(frozen=True)
class CascadePoint:
    """The agreement of a cascade that asks its second judge about some share of the calls."""

    share: float
    """Share of the calls that the second judge is asked about, in [0, 1]."""
    band: float | None
    """Half-width of the band around 0.5 of P(adherent) in which the second judge is asked:
    `ask_when=(0.5 - band, 0.5 + band)`. None when it is asked about no call, or only about calls
    for which the first judge gives no probability."""
    usage: Usage
    """Usage of the second judge on these calls."""
    pooled: Group
    mean_over_datasets: Group


def cascade_curve(
    pairs: Sequence[Pair], second: Sequence[Evaluation], *, steps: int = STEPS
) -> tuple[CascadePoint, ...]:
    """Compare cascades of two judges with gold, for shares of the second judge from 0 to 1.

    Args:
        pairs: the first judge's rows with their gold rows.
        second: the second judge's evaluations of the same calls, joined by `row_key`.
        steps: number of steps; the curve has one point more.

    Raises:
        ConfigurationError: the second judge's evaluation of a call is missing, either judge's rows
            were made in several ways, or `steps` is below 1.
    """
    if steps < 1:
        raise ConfigurationError("steps", steps, "use 1 or more")
    by_key = {evaluation.row_key: evaluation for evaluation in second}
    missing = sum(pair.predicted.row_key not in by_key for pair in pairs)
    if missing or not pairs:
        raise ConfigurationError(
            "second", f"{missing} of {len(pairs)} rows", "are not among the second judge's"
        )
    asked = [replace(pair, predicted=by_key[pair.predicted.row_key]) for pair in pairs]
    check_one_predictor(pairs)
    check_one_predictor(asked)
    order = sorted(range(len(pairs)), key=lambda row: _sureness(pairs[row].predicted))
    points = []
    for step in range(steps + 1):
        chosen = set(order[: round(len(pairs) * step / steps)])
        rows = [asked[row] if row in chosen else pair for row, pair in enumerate(pairs)]
        points.append(_point(rows, chosen, pairs, order))
    return tuple(points)


def _point(
    rows: Sequence[Pair], chosen: set[int], pairs: Sequence[Pair], order: Sequence[int]
) -> CascadePoint:
    usage = Usage()
    for row in sorted(chosen):
        usage += rows[row].predicted.usage
    last = _sureness(pairs[order[len(chosen) - 1]].predicted) if chosen else None
    datasets = sorted({row.dataset for row in rows if row.dataset is not None})
    return CascadePoint(
        share=len(chosen) / len(rows),
        band=None if last is None or last < 0 else last,
        usage=usage,
        pooled=_group(rows),
        mean_over_datasets=mean_over(
            [_group([row for row in rows if row.dataset == name]) for name in datasets]
        ),
    )


def _group(rows: Sequence[Pair]) -> Group:
    return Group({"n": len(rows)}, figures_of(score_blocks(rows), len(rows), 0, ""))


def _sureness(first: Evaluation) -> float:
    """Return the distance of the first judge's probability from 0.5; -1 when it gives none."""
    score = first.scores.get(ADHERENCE)
    return -1.0 if score is None or score.probability is None else abs(score.probability - 0.5)


def curve_json(points: Sequence[CascadePoint]) -> list[JsonValue]:
    """Return the curve as JSON values."""
    return [
        {
            "share": point.share,
            "band": point.band,
            "usage": point.usage.model_dump(),
            "pooled": point.pooled.to_json()["scores"],
            "mean_over_datasets": point.mean_over_datasets.to_json()["scores"],
        }
        for point in points
    ]
