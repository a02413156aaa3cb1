"""cascade_curve and cascaded rows: composites of two judges' rows, held against gold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_eval_integrations.agreement import CascadePoint, Pair, agree, cascade_curve
from rag_eval_integrations.agreement._cascades import curve_json
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By, Evaluation, Usage

from .conftest import make_evaluation

FIRST = By(judge="embedded", formulas="gpt-labeling")
SECOND = By(judge="model", formulas="gpt-labeling")
# P(adherent) of the first; it is wrong on the two rows it is least sure of. The second is right.
PROBABILITIES = [0.95, 0.9, 0.6, 0.45, 0.1, 0.05]
GOLD = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]


def first(row: int, **fields: object) -> Evaluation:
    p = PROBABILITIES[row]
    made = make_evaluation(str(row), {"adherence": float(p >= 0.5)}, probability=p, by=FIRST)
    return made.model_copy(update=fields)


def second(row: int, **fields: object) -> Evaluation:
    made = make_evaluation(str(row), {"adherence": GOLD[row]}, by=SECOND)
    return made.model_copy(update={"usage": Usage(requests=1, prompt_tokens=100), **fields})


FIRSTS, SECONDS = [first(row) for row in range(6)], [second(row) for row in range(6)]


def pairs(rows: list[Evaluation]) -> list[Pair]:
    gold = By(judge="gold", formulas="gpt-labeling")
    return [
        Pair(row, make_evaluation(row.id, {"adherence": GOLD[int(row.id)]}, by=gold), "set")
        for row in rows
    ]


def auroc(point: CascadePoint) -> float | None:
    return point.pooled.blocks["scores", "adherence"].figures["auroc"].value


def test_the_least_sure_rows_are_asked_first() -> None:
    """Every point asks a larger share; agreement and cost rise together until all is asked."""
    points = cascade_curve(pairs(FIRSTS), SECONDS, steps=3)

    assert [point.share for point in points] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert [point.usage.requests for point in points] == [0, 2, 4, 6]
    assert points[0].band is None
    assert [point.band for point in points[1:]] == pytest.approx([0.1, 0.4, 0.45])
    # One of nine (positive, negative) pairs is in the wrong order until the two rows are asked.
    assert auroc(points[0]) == pytest.approx(8 / 9)
    assert [auroc(point) for point in points[1:]] == [1.0, 1.0, 1.0]
    content: Any = curve_json(points)
    assert content[1]["share"] == pytest.approx(1 / 3)


def test_a_row_without_a_probability_is_asked_first_of_all() -> None:
    """What the first judge could not label is what the second is for."""
    rows = [first(0), first(1), make_evaluation("2", {"adherence": None}, by=FIRST)]

    points = cascade_curve(pairs(rows), SECONDS[:3], steps=3)

    assert points[1].pooled.blocks["scores", "adherence"].counts["n"] == 3
    assert points[1].band is None


def test_a_row_that_the_second_misses_is_refused() -> None:
    """A curve over some of the rows would be of something else."""
    rows = pairs(FIRSTS)
    with pytest.raises(ConfigurationError, match="`second`: lacks 1 of the 6 rows"):
        cascade_curve(rows, SECONDS[:5])
    with pytest.raises(ConfigurationError, match="steps"):
        cascade_curve(rows, SECONDS, steps=0)


def test_two_judges_without_a_cascade_are_refused() -> None:
    """Rows of two files thrown together are still an error, also beside cascaded ones."""
    with pytest.raises(ConfigurationError, match="judge"):
        agree(pairs([FIRSTS[0], SECONDS[1], *FIRSTS[2:]]), resamples=0)
    beside = [first(row, flags=("cascade_first",)) for row in range(5)] + [second(5)]
    with pytest.raises(ConfigurationError, match="cascade"):
        agree(pairs(beside), resamples=0)


def test_the_mean_over_datasets_is_of_each_by_itself() -> None:
    """As the figures of each data set's own rows, averaged; not of all others' rows."""
    rows = [replace(pair, dataset=f"set {n // 2}") for n, pair in enumerate(pairs(FIRSTS))]

    def rmse(some: list[Pair], group: str = "pooled") -> Any:
        point = cascade_curve(some, SECONDS, steps=1)[0]
        blocks: Any = getattr(point, group).blocks
        return blocks["scores", "adherence"].figures["rmse"].value

    each = [rmse(rows[place : place + 2]) for place in (0, 2, 4)]

    assert len({round(value, 6) for value in each}) > 1
    assert rmse(rows, "mean_over_datasets") == pytest.approx(sum(each) / 3)
    assert rmse(rows) != pytest.approx(sum(each) / 3)


def test_rows_of_a_cascade_are_one_judge_to_agreement() -> None:
    """Flags say that judges took turns on purpose: two methods are both said, formulas are one."""

    def passed(row: int, by: By, method: str) -> Evaluation:
        made = make_evaluation(str(row), {"adherence": 0.0}, by=by, method=method)
        return made.model_copy(update={"flags": ("cascade_second", "first_unsure")})

    rows = [first(row, flags=("cascade_first",)) for row in range(4)]
    rows.append(passed(4, SECOND, "calibrated"))

    made = agree(pairs([*rows, passed(5, SECOND, "calibrated")]), resamples=0)

    assert made.pooled.blocks["scores", "adherence"].counts["n"] == 6
    assert made.formulas["adherence"]["method"] == "labels or calibrated"
    assert made.formulas["adherence"]["formulas"] == "gpt-labeling"
    ragbench = By(judge="model", formulas="ragbench")
    others = [passed(row, ragbench, "labels") for row in (4, 5)]
    with pytest.raises(ConfigurationError, match=r"'ragbench'.*some predicted rows only"):
        agree(pairs([*rows[:4], *others]), resamples=0)


def test_rows_that_the_first_doubts_are_asked_before_those_in_the_band() -> None:
    """A doubt counts more than a probability far from one half."""
    rows = [first(0, flags=("doubt_spread",)), *FIRSTS[1:]]

    points = cascade_curve(pairs(rows), SECONDS, steps=6)

    assert points[1].band is None
    assert points[1].usage.requests == 1
    assert points[2].band == pytest.approx(0.05)
