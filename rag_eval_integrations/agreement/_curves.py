"""A judge's probabilities against gold, point by point: ROC curves and reliability diagrams."""

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


# --- What a cascade of two judges costs and is worth, by the share of calls asked of the second


STEPS = 10


@dataclass(frozen=True)
class CascadePoint:
    """One point of the curve."""

    share: float
    """Share of the calls that the second judge is asked about."""
    band: float | None
    """They are those with |P(adherent) - 0.5| of the first judge up to this: `ask_when=(0.5 - band,
    0.5 + band)`; None where nobody is asked, or one without a probability is."""
    usage: Usage
    """What asking about them cost."""
    pooled: Group
    mean_over_datasets: Group


def cascade_curve(
    pairs: Sequence[Pair], second: Sequence[Evaluation], *, steps: int = STEPS
) -> tuple[CascadePoint, ...]:
    """Compare cascades of two judges with gold, from none of the calls asked to all.

    Args:
        pairs: the first judge's rows with their gold.
        second: the second judge's evaluations of the same calls, joined by `row_key`.
        steps: the curve has this many points and one more.

    Raises:
        ConfigurationError: the second judge misses a row, either judge's rows were made in several
            ways, or `steps` is below 1.
    """
    if steps < 1:
        raise ConfigurationError("steps", steps, "should be 1 or more")
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
    """How far the first judge's probability is from undecided; below 0 where it gives none."""
    score = first.scores.get(ADHERENCE)
    return -1.0 if score is None or score.probability is None else abs(score.probability - 0.5)


def curve_json(points: Sequence[CascadePoint]) -> list[JsonValue]:
    """Write the curve as JSON values."""
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
