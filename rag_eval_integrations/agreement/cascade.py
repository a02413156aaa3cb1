"""What a cascade of two judges costs and is worth, by the share of calls asked of the second.

Both judges' evaluations of the same rows are there already; the second's take the place of the
first's where the first is least sure. No judge is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import ADHERENCE, check_one_predictor, score_blocks
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, Usage

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
