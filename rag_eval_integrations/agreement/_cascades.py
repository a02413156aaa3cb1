"""Cost and worth of a cascade, by the share of calls that its second and third judge label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.compare import ADHERENCE, check_one_predictor, score_blocks
from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
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
    later = [
        [Row.of(evaluation) for evaluation in judged]
        for judged in (second, third)
        if judged is not None
    ]
    return cascade_of(Table.of(pairs), *later, steps=steps)


def cascade_of(
    table: Table, second: Iterable[Row], third: Iterable[Row] | None = None, *, steps: int = STEPS
) -> tuple[CascadePoint, ...]:
    """Compute the curve of a table, as `cascade_curve` does of pairs.

    There is a point per share of rows that are asked again, the least sure ones first; with a third
    judge, also per share of these.
    """
    if steps < 1:
        raise ConfigurationError("steps", steps, "use 1 or more")
    check_one_predictor(table.predicted)
    asked = _rows_for(table, second, "second")
    last = None if third is None else _rows_for(table, third, "third")
    rows = table.predicted
    shares = [step / steps for step in range(steps + 1)] if last is None else OF_THREE[0]
    points = []
    order = sorted(range(len(rows)), key=lambda place: _sureness(rows[place]))
    for share in shares:
        chosen = order[: round(len(rows) * share)]
        if last is None:
            points.append(_point(table, (asked, chosen)))
            continue
        # Ties stay in the order of the first judge's.
        again = sorted(chosen, key=lambda place: _sureness(asked[place]))
        counts = dict.fromkeys(round(len(chosen) * further) for further in OF_THREE[1])
        points += [_point(table, (asked, chosen), (last, again[:count])) for count in counts]
    return tuple(points)


def _rows_for(table: Table, judged: Iterable[Row], which: str) -> list[Row]:
    """Put a later judge's rows in the order of the table's; the last one of a `row_key` counts."""
    by_key = {row.row_key: row for row in judged}
    keys = [row.row_key for row in table.predicted]
    missing = sum(key not in by_key for key in keys)
    if missing or not keys:
        raise ConfigurationError(
            which,
            None,
            f"lacks {missing} of the {len(keys)} rows compared; have it judge the same calls",
            missing=True,
        )
    rows = [by_key[key] for key in keys]
    check_one_predictor(rows)
    return rows


def _point(table: Table, *passed: tuple[Sequence[Row], Sequence[int]]) -> CascadePoint:
    """Compute the point at which some rows are passed on to each later judge."""
    rows, before, usage = list(table.predicted), table.predicted, Usage()
    shares: list[float] = []
    bands: list[float | None] = []
    for asked, chosen in passed:
        shares.append(len(chosen) / len(table))
        bands.append(_band(before, chosen))
        before = asked
        for place in sorted(chosen):
            rows[place] = asked[place]
            usage += asked[place].usage
    everything = replace(table, predicted=rows)
    parts = [_group(part) for part in everything.by_dataset().values()]
    later = dict(zip(("third", "third_band"), (*shares[1:], *bands[1:]), strict=False))
    return CascadePoint(shares[0], bands[0], usage, _group(everything), mean_over(parts), **later)


def _group(table: Table) -> Group:
    """Return the figures of a table's scores, without intervals."""
    return Group({"n": len(table)}, figures_of(score_blocks(table), len(table), 0, ""))


def _band(rows: Sequence[Row], chosen: Sequence[int]) -> float | None:
    """Return the half-width of the band of the last row that is passed on."""
    if not chosen:
        return None
    group, distance = _sureness(rows[chosen[-1]])
    return distance if group == _BY_PROBABILITY else None


_BY_PROBABILITY = 2


def _sureness(row: Row) -> tuple[int, float]:
    """Rank how sure a judge is: no probability, a doubt, then the distance from 0.5."""
    score = row.scores.get(ADHERENCE)
    if score is None or score.probability is None:
        return 0, 0.0
    doubted = any(flag.startswith(DOUBT) for flag in row.flags)
    return 1 if doubted else _BY_PROBABILITY, abs(score.probability - 0.5)


def curve_json(points: Sequence[CascadePoint]) -> list[JsonValue]:
    """Return the curve as JSON values."""
    return [
        {
            "share": point.share,
            "band": point.band,
            **({} if point.third is None else _third_json(point)),
            "usage": point.usage.model_dump(),
            "pooled": point.pooled.to_json()["scores"],
            "mean_over_datasets": point.mean_over_datasets.to_json()["scores"],
        }
        for point in points
    ]


def _third_json(point: CascadePoint) -> dict[str, JsonValue]:
    """Return the fields of a point that a third judge adds.

    Both are always there; the band may be None.
    """
    return {"third_share": point.third, "third_band": point.third_band}
