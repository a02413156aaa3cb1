"""Cost and worth of a cascade, by the share of calls that its second and third judge label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from rag_eval_integrations.agreement._side import Rows, Side
from rag_eval_integrations.agreement._table import Part, Row, Table, row_of
from rag_eval_integrations.agreement.figures import Group, figures_of, mean_over
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import ADHERENCE, check_one_predictor, score_blocks
from rag_eval_integrations.errors import ConfigurationError
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
    table = Table.of(pairs)
    later = [_side_of(judged) for judged in (second, third) if judged is not None]
    return cascade_of(table, [pair.predicted.row_key for pair in pairs], *later, steps=steps)


class Later(NamedTuple):
    """The evaluations of a later judge, as numbers."""

    side: Side
    by_key: dict[str, int]

    def add(self, evaluation: Evaluation) -> None:
        """Take up an evaluation; the last one of a `row_key` counts."""
        self.put(row_of(evaluation))

    def put(self, row: Row) -> None:
        """Take up what is kept of an evaluation."""
        self.by_key[row.row_key] = self.side.put(row.kept)


def _side_of(judged: Iterable[Evaluation]) -> Later:
    later = Later(Side(), {})
    for evaluation in judged:
        later.add(evaluation)
    return later


def cascade_of(
    table: Table,
    keys: Sequence[str],
    second: Later,
    third: Later | None = None,
    *,
    steps: int = STEPS,
) -> tuple[CascadePoint, ...]:
    """Compute the curve of rows that were read as numbers; `keys` holds the rows' `row_key`."""
    if steps < 1:
        raise ConfigurationError("steps", steps, "use 1 or more")
    rows = table.appearance
    check_one_predictor(table.predicted, rows)
    asked = _asked(keys, rows, second, "second")
    last = None if third is None else _asked(keys, rows, third, "third")
    shares = [step / steps for step in range(steps + 1)] if last is None else OF_THREE[0]
    points = []
    order = sorted(rows, key=lambda row: _sureness(table.predicted, row))
    for share in shares:
        chosen = order[: round(len(rows) * share)]
        if last is None:
            points.append(_point(table, asked, chosen))
            continue
        # Ties stay in the order of the first judge's.
        again = sorted(chosen, key=lambda row: _sureness(asked, row))
        counts = [round(len(chosen) * further) for further in OF_THREE[1]]
        points += [
            _point(table, asked, chosen, last, again[:count]) for count in dict.fromkeys(counts)
        ]
    return tuple(points)


def _asked(keys: Sequence[str], rows: Rows, judged: Later, which: str) -> Side:
    """Put a later judge's evaluations in the order of the table's rows."""
    missing = sum(key not in judged.by_key for key in keys)
    if missing or not keys:
        raise ConfigurationError(
            which, f"{missing} of {len(keys)} rows", f"are not among the {which} judge's"
        )
    asked = judged.side.take([judged.by_key[key] for key in keys])
    check_one_predictor(asked, rows)
    return asked


def _point(
    table: Table,
    asked: Side,
    chosen: Sequence[int],
    last: Side | None = None,
    further: Sequence[int] = (),
) -> CascadePoint:
    """Compute the point at which some rows are passed on, and `further` of them once more."""
    places = {row: place for place, row in enumerate(table.appearance)}
    passed, twice = (sorted(rows, key=places.__getitem__) for rows in (chosen, further))
    usage = sum([asked.usage(row) for row in passed], Usage())
    mixed = table.predicted.mixed(asked, passed)
    if last is not None:
        usage = sum([last.usage(row) for row in twice], usage)
        mixed = mixed.mixed(last, twice)
    everything = Part(replace(table, predicted=mixed), table.appearance)
    return CascadePoint(
        share=len(passed) / table.size,
        band=_band(table.predicted, chosen),
        usage=usage,
        pooled=_group(everything),
        mean_over_datasets=mean_over([_group(part) for part in everything.by_dataset().values()]),
        third=None if last is None else len(twice) / table.size,
        third_band=None if last is None else _band(asked, further),
    )


def _group(part: Part) -> Group:
    return Group({"n": len(part.rows)}, figures_of(score_blocks(part), len(part.rows), 0, ""))


def _band(side: Side, chosen: Sequence[int]) -> float | None:
    """Return the half-width of the band of the last row that is passed on."""
    if not chosen:
        return None
    group, distance = _sureness(side, chosen[-1])
    return distance if group == _BY_PROBABILITY else None


_BY_PROBABILITY = 2


def _sureness(side: Side, row: int) -> tuple[int, float]:
    """Rank how sure a judge is: no probability, a doubt, then the distance from 0.5."""
    probability = side.number(ADHERENCE, "probability", row)
    if probability is None:
        return 0, 0.0
    return 1 if side.origins.values[side.origin[row]].doubted else _BY_PROBABILITY, abs(
        probability - 0.5
    )


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
