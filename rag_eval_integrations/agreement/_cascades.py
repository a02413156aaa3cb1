"""Cost and worth of a cascade, by the share of calls that its second judge labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from rag_eval_integrations.agreement._provenance import check_one_predictor
from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.compare import ADHERENCE, score_blocks
from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.judges.cascade import DOUBT
from rag_eval_integrations.records import Evaluation, Usage

STEPS = 10


@dataclass(frozen=True)
class CascadePoint:
    """The agreement of a cascade that asks its second judge about some share of the calls."""

    share: float
    """Share of the calls that the second judge is asked about, in [0, 1]."""
    band: float | None
    """Half-width of the band around 0.5 of P(adherent) in which the second judge is asked:
    `ask_when=(0.5 - band, 0.5 + band)`. None when it is asked about no call, or only about calls
    for which the first judge gives no probability or says that it doubts its labels."""
    usage: Usage
    """Usage of the second judge on these calls, summed."""
    pooled: Group
    mean_over_datasets: Group


def cascade_curve(
    pairs: Sequence[Pair], second: Sequence[Evaluation], *, steps: int = STEPS
) -> tuple[CascadePoint, ...]:
    """Compare cascades of two judges with gold, by the share of the second judge.

    The calls that the first judge passes on are those without a probability, then those of which
    it doubts the labels (a flag `doubt_…`), then those with P(adherent) closest to 0.5.

    Args:
        pairs: the first judge's rows with their gold rows.
        second: the second judge's evaluations of the same calls, joined by `row_key`.
        steps: number of steps; the curve has one point more.

    Raises:
        ConfigurationError: the second judge's evaluation of a call is missing, a judge's rows were
            made in several ways, or `steps` is below 1.
    """
    return cascade_of(Table.of(pairs), map(Row.of, second), steps=steps)


def cascade_of(
    table: Table, second: Iterable[Row], *, steps: int = STEPS
) -> tuple[CascadePoint, ...]:
    """Compute the curve of a table; `cascade_curve` takes pairs."""
    whole_number("steps", steps)
    check_one_predictor(table.predicted)
    asked = _rows_for(table, second)
    rows = table.predicted
    order = sorted(range(len(rows)), key=lambda place: _sureness(rows[place]))
    counts = [round(len(rows) * (step / steps)) for step in range(steps + 1)]
    return tuple([_point(table, asked, order[:count]) for count in counts])


def _rows_for(table: Table, judged: Iterable[Row]) -> list[Row]:
    """Return the second judge's rows in the table's order; of equal keys the last counts."""
    by_key = {row.row_key: row for row in judged}
    keys = [row.row_key for row in table.predicted]
    missing = sum(key not in by_key for key in keys)
    if missing or not keys:
        why = f"lacks {missing} of the {len(keys)} rows compared; have it judge the same calls"
        raise ConfigurationError("second", None, why, missing=True)
    rows = [by_key[key] for key in keys]
    check_one_predictor(rows)
    return rows


def _point(table: Table, asked: Sequence[Row], chosen: Sequence[int]) -> CascadePoint:
    """Compute the cascade that passes the chosen rows on to the second judge."""
    rows, usage = list(table.predicted), Usage()
    for place in sorted(chosen):
        rows[place] = asked[place]
        usage += asked[place].usage
    everything = replace(table, predicted=rows)
    parts = [_group(part) for part in everything.by_dataset().values()]
    share, band = len(chosen) / len(rows), _band(table.predicted, chosen)
    return CascadePoint(share, band, usage, _group(everything), mean_over(parts))


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
            "usage": point.usage.model_dump(),
            "pooled": point.pooled.to_json()["scores"],
            "mean_over_datasets": point.mean_over_datasets.to_json()["scores"],
        }
        for point in points
    ]
