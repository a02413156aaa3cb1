"""Scores in the rows of a store, by the makers that may not be mixed; their means, made in SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rag_eval_integrations.records import By, Evaluation
from rag_eval_integrations.records.mean import Made, RunningMean, makers_of


class MeanOfPeriod(NamedTuple):
    """The mean of a score over the calls of a period."""

    start: float
    """Begin of the period, in seconds since 1970."""
    made: Made
    mean: RunningMean
    total: int
    """Calls with the score, with or without a value."""


def record_scores(
    run: Callable[..., Any],
    evaluation_id: int,
    at: float,
    evaluation: Evaluation,
    makers: dict[str, int],
) -> None:
    """Insert a row per score.

    Args:
        run: runs a statement.
        evaluation_id: of the evaluation's row.
        at: when the call was submitted, in seconds since 1970.
        evaluation: the evaluation.
        makers: row ids of known makers; new ones are added.
    """
    scores = [
        {
            "evaluation": evaluation_id,
            "at": at,
            "value": score.value,
            "maker": _maker_id(run, _maker_text(maker), makers),
            "why": None if score.value is not None else score.unscored or score.status,
        }
        for maker, score in makers_of(evaluation)
    ]
    if scores:
        run(
            "INSERT INTO rag_score (evaluation_id, maker_id, at, value, why) "
            "VALUES (:evaluation, :maker, :at, :value, :why)",
            scores,
        )


MEANS = (
    "SELECT period, made, n, scored, total, squares, least, most, extremes FROM (SELECT "
    "{period} AS period, maker_id, count(*) AS n, count(value) AS scored, "
    "sum(value) AS total, sum(value * value) AS squares, min(value) AS least, "
    "max(value) AS most, count(CASE WHEN value IN (0.0, 1.0) THEN 1 END) AS extremes "
    "FROM rag_score WHERE at >= :since AND at < :until GROUP BY 1, 2) AS sums "
    "JOIN rag_maker ON rag_maker.id = maker_id ORDER BY 1, maker_id"
)
"""The sums of each period and maker."""


def means_of(rows: Sequence[Any], since: float, step: float) -> list[MeanOfPeriod]:
    """Make means of the rows of `MEANS`, ordered by period.

    Args:
        rows: the rows.
        since: begin of the first period, in seconds since 1970.
        step: seconds of a period; 0 for one period.
    """
    periods: dict[tuple[int, str], list[MeanOfPeriod]] = {}
    for period, text, n, scored, total, squares, least, most, extremes in rows:
        maker = _read_maker(text)
        mean = RunningMean.of_sums(scored, total, squares, least, most, extremes)
        of_period = MeanOfPeriod(since + int(period) * step, maker, mean, n)
        periods.setdefault((int(period), maker.name), []).append(of_period)
    return [mean for means in periods.values() for mean in _with_unscored(means)]


def _with_unscored(means: list[MeanOfPeriod]) -> list[MeanOfPeriod]:
    """Count calls without a value under the only maker with values, if there is one.

    Else, they are returned unchanged.
    """
    scored = [mean for mean in means if mean.mean.n]
    if len(scored) != 1:
        return means
    return [scored[0]._replace(total=sum(mean.total for mean in means))]


def _maker_text(maker: Made) -> str:
    """Write a maker as JSON, the text of its row."""
    by = maker.by.model_dump(exclude_none=True)
    return json.dumps([maker.name, maker.method, by], sort_keys=True)


def _read_maker(text: str) -> Made:
    """Read a maker back from its row."""
    name, method, by = json.loads(text)
    return Made(name, By.model_validate(by), method)


def _maker_id(run: Callable[..., Any], text: str, makers: dict[str, int]) -> int:
    """Return the row id of a maker, inserted at first use and remembered in `makers`."""
    if text not in makers:
        run("INSERT INTO rag_maker (made) VALUES (:made) ON CONFLICT DO NOTHING", made=text)
        makers[text] = run("SELECT id FROM rag_maker WHERE made = :made", made=text).scalar_one()
    return makers[text]
