"""Cost and worth of a cascade, by the share of calls that its second and third judge label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import ADHERENCE, check_one_predictor, score_blocks
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.cascade import DOUBT
from rag_eval_integrations.records import Evaluation, Usage

STEPS = 10
OF_THREE = ((0.0, 0.1, 0.25, 0.5, 1.0), (0.0, 0.25, 0.5, 1.0))
"""Shares of a cascade of three: of all calls to the second judge, and of these to the third."""


@dataclass(frozen=True)
class CascadePoint:
    """The agreement of a cascade that asks its later judges about some share of the calls."""

    share: float
    """Share of the calls that the second judge is asked about, in [0, 1]."""
    band: float | None
    """Half-width of the band around 0.5 of P(adherent) in which the second judge is asked:
    `ask_when=(0.5 - band, 0.5 + band)`. None when it is asked about no call, or only about calls
    for which the first judge gives no probability or says that it doubts its labels."""
    usage: Usage
    """Usage of the later judges on these calls, summed."""
    pooled: Group
    mean_over_datasets: Group
    third: float | None = None
    """Share of all calls that the third judge is asked about; None in a cascade of two."""
    third_band: float | None = None
    """The band of the second judge in which the third is asked, as in `band`."""


def cascade_curve(
    pairs: Sequence[Pair],
    second: Sequence[Evaluation],
    third: Sequence[Evaluation] | None = None,
    *,
    steps: int = STEPS,
) -> tuple[CascadePoint, ...]:
    """Compare cascades of two or three judges with gold, by the shares of the later judges.

    The calls that a judge passes on are those without a probability, then those of which it doubts
    the labels (a flag `doubt_…`), then those with P(adherent) closest to 0.5.

    Args:
        pairs: the first judge's rows with their gold rows.
        second: the second judge's evaluations of the same calls, joined by `row_key`.
        third: the third judge's; None for a cascade of two.
        steps: number of steps of a cascade of two; the curve has one point more. A cascade of
            three has a point per pair of shares in `OF_THREE`.

    Raises:
        ConfigurationError: a later judge's evaluation of a call is missing, a judge's rows were
            made in several ways, or `steps` is below 1.
    """
    if steps < 1:
        raise ConfigurationError("steps", steps, "use 1 or more")
    check_one_predictor(pairs)
    asked = _asked(pairs, second, "second")
    last = None if third is None else _asked(pairs, third, "third")
    shares = [step / steps for step in range(steps + 1)] if last is None else OF_THREE[0]
    points = []
    order = sorted(range(len(pairs)), key=lambda row: _sureness(pairs[row].predicted))
    for share in shares:
        chosen = order[: round(len(pairs) * share)]
        if last is None:
            points.append(_point(pairs, asked, chosen))
            continue
        again = sorted(chosen, key=lambda row: _sureness(asked[row].predicted))
        counts = [round(len(chosen) * further) for further in OF_THREE[1]]
        points += [
            _point(pairs, asked, chosen, last, again[:count]) for count in dict.fromkeys(counts)
        ]
    return tuple(points)


def _asked(pairs: Sequence[Pair], judged: Sequence[Evaluation], which: str) -> list[Pair]:
    """Put a later judge's evaluations in place of the first judge's."""
    by_key = {evaluation.row_key: evaluation for evaluation in judged}
    missing = sum(pair.predicted.row_key not in by_key for pair in pairs)
    if missing or not pairs:
        raise ConfigurationError(
            which, f"{missing} of {len(pairs)} rows", f"are not among the {which} judge's"
        )
    asked = [replace(pair, predicted=by_key[pair.predicted.row_key]) for pair in pairs]
    check_one_predictor(asked)
    return asked


def _point(
    pairs: Sequence[Pair],
    asked: Sequence[Pair],
    chosen: Sequence[int],
    last: Sequence[Pair] | None = None,
    further: Sequence[int] = (),
) -> CascadePoint:
    """Compute the point at which some rows are passed on, and `further` of them once more."""
    passed, twice = set(chosen), set(further)
    rows = [
        (last[row] if last is not None and row in twice else asked[row]) if row in passed else pair
        for row, pair in enumerate(pairs)
    ]
    usage = Usage()
    for row in sorted(passed):
        usage += asked[row].predicted.usage
    if last is not None:
        usage = sum([last[row].predicted.usage for row in sorted(twice)], usage)
    datasets = sorted({row.dataset for row in rows if row.dataset is not None})
    return CascadePoint(
        share=len(passed) / len(rows),
        band=_band(pairs, chosen),
        usage=usage,
        pooled=_group(rows),
        mean_over_datasets=mean_over(
            [_group([row for row in rows if row.dataset == name]) for name in datasets]
        ),
        third=None if last is None else len(twice) / len(rows),
        third_band=None if last is None else _band(asked, further),
    )


def _group(rows: Sequence[Pair]) -> Group:
    return Group({"n": len(rows)}, figures_of(score_blocks(rows), len(rows), 0, ""))


def _band(pairs: Sequence[Pair], chosen: Sequence[int]) -> float | None:
    """Return the half-width of the band of the last row that is passed on."""
    if not chosen:
        return None
    group, distance = _sureness(pairs[chosen[-1]].predicted)
    return distance if group == _BY_PROBABILITY else None


_BY_PROBABILITY = 2


def _sureness(judged: Evaluation) -> tuple[int, float]:
    """Rank how sure a judge is: no probability, a doubt, then the distance from 0.5."""
    score = judged.scores.get(ADHERENCE)
    if score is None or score.probability is None:
        return 0, 0.0
    distance = abs(score.probability - 0.5)
    doubted = any(flag.startswith(DOUBT) for flag in judged.flags)
    return 1 if doubted else _BY_PROBABILITY, distance


def curve_json(points: Sequence[CascadePoint]) -> list[JsonValue]:
    """Return the curve as JSON values."""
    return [
        {
            "share": point.share,
            "band": point.band,
            **_third_json(point),
            "usage": point.usage.model_dump(),
            "pooled": point.pooled.to_json()["scores"],
            "mean_over_datasets": point.mean_over_datasets.to_json()["scores"],
        }
        for point in points
    ]


def _third_json(point: CascadePoint) -> dict[str, JsonValue]:
    if point.third is None:
        return {}
    return {"third_share": point.third, "third_band": point.third_band}
