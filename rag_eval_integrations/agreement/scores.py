"""Agreement score by score: the comparable rows, the check of their provenance, the statistics."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Statistic
from rag_eval_integrations.agreement._resampled import Block, Blocks, Path
from rag_eval_integrations.agreement._side import UNIT, Maker, Numbers, Rows, Side
from rag_eval_integrations.agreement._summing import numpy_for
from rag_eval_integrations.agreement._table import Part
from rag_eval_integrations.agreement.figures import Figures, figures_of
from rag_eval_integrations.errors import ConfigurationError

ADHERENCE = "adherence"
Provenance = Mapping[str, str | int | None]
"""Provenance of a score: `formulas`, `relevance_baseline`, `method` and others, by name."""
_PREDICTED_FIELDS = (
    "judge", "model", "judge_version", "prompt_version", "formulas", "relevance_baseline",
    "calibration",
)  # fmt: skip
# Gold is often annotated by several people or models (RAGBench: gpt-4o for some data sets,
# gpt-4-turbo for others), so they are reported and not refused.
_GOLD_FIELDS = ("judge", "prompt_version", "formulas", "relevance_baseline")
_FORMULAS = ("formulas", "relevance_baseline")


class Compared(NamedTuple):
    """The rows in which one score has a value on both sides."""

    name: str
    at: Rows
    """Places of the rows in their part."""
    rows: Rows
    """Rows of the table."""
    predicted: Numbers
    gold: Numbers


def names_on_both_sides(part: Part) -> list[str]:
    """List the names of scores that both sides have, in the order of the predicted rows."""
    gold = set(part.table.gold.names(part.rows))
    return [name for name in part.table.predicted.names(part.rows) if name in gold]


def compared(part: Part, name: str) -> Compared:
    """List the rows in which the score `name` has a value on both sides."""
    predicted = part.table.predicted.numbers(name, "value", part.rows)
    gold = part.table.gold.numbers(name, "value", part.rows)
    # Only NaN, which stands for no value, differs from itself.
    numpy = numpy_for(len(part.rows))
    if numpy is not None:
        x, y = (numpy.frombuffer(one, "f8") for one in (predicted, gold))
        at = array("q", numpy.flatnonzero((x == x) & (y == y)).astype("i8").tobytes())
    else:
        pairs = enumerate(zip(predicted, gold, strict=True))
        at = array("q", [place for place, (x, y) in pairs if x == x and y == y])
    if len(at) == len(part.rows):
        return Compared(name, at, part.rows, predicted, gold)
    return Compared(
        name, at, array("q", [part.rows[place] for place in at]),
        array("d", [predicted[place] for place in at]), array("d", [gold[place] for place in at]),
    )  # fmt: skip


def check_one_provenance(part: Part) -> dict[str, Provenance]:
    """Check that each score was made in one way on each side, with the same formulas.

    Returns:
        By score name: `formulas`, `relevance_baseline`, and the predicted side's `method`.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score, the side and the
            field.
    """
    made: dict[str, Provenance] = {}
    for name in names_on_both_sides(part):
        rows = compared(part, name).rows
        if not rows:
            continue
        predicted = _predictor(part.table.predicted, rows, name)
        gold_makers = _makers(part.table.gold, rows, name)
        gold = _single_provenance(gold_makers, name, "gold", _GOLD_FIELDS)
        for field in _FORMULAS:
            if predicted[field] != gold[field]:
                raise ConfigurationError(
                    field,
                    predicted[field],
                    f"was used for `{name}` of the predicted rows, and {gold[field]!r} for that of"
                    " the gold rows; score both sides with the same formulas",
                )
        made[name] = {field: predicted[field] for field in (*_FORMULAS, "method")}
    return made


def _makers(side: Side, rows: Rows, name: str) -> list[Maker]:
    """List the different makers of a score, in order of appearance."""
    return [side.makers.values[code] for code in dict.fromkeys(side.make_up(name, rows))]


def _predictor(side: Side, rows: Rows, name: str) -> Provenance:
    """Return the provenance of a predicted score, with that of all judges for a cascade."""
    by_part: dict[str | None, list[Maker]] = {}
    origins = map(side.origin.__getitem__, rows)
    for origin, maker in dict.fromkeys(zip(origins, side.make_up(name, rows), strict=True)):
        part = side.origins.values[origin].part
        by_part.setdefault(part, []).append(side.makers.values[maker])
    makers = [
        _single_provenance(of_part, name, "predicted", _PREDICTED_FIELDS)
        for of_part in by_part.values()
    ]
    if len(makers) == 1:
        return makers[0]
    if None in by_part:
        raise ConfigurationError(
            "judge", name, "comes from a cascade in some predicted rows and not in others"
        )
    for field, other in ((field, maker[field]) for maker in makers for field in _FORMULAS):
        if makers[0][field] != other:
            raise ConfigurationError(
                field, other, f"was used for `{name}` of some predicted rows only"
            )
    said = {field: list(dict.fromkeys(maker[field] for maker in makers)) for field in makers[0]}
    return {
        field: values[0] if len(values) == 1 else " or ".join(map(str, values))
        for field, values in said.items()
    }


def _single_provenance(
    of: Iterable[Maker], name: str, side: str, fields: Sequence[str]
) -> Provenance:
    makers = [
        {"method": maker.method, **{field: maker.of(field) for field in fields}} for maker in of
    ]
    for field in ("method", *fields):
        distinct = list(dict.fromkeys(maker[field] for maker in makers))
        if len(distinct) > 1:
            raise ConfigurationError(
                field,
                distinct,
                f"differ within `{name}` of the {side} rows; compare rows of one kind at a time",
            )
    return makers[0]


def gold_models(part: Part) -> tuple[str, ...]:
    """List the models that annotated the gold rows, in alphabetical order."""
    gold = part.table.gold
    codes = {gold.origin[row] for row in part.rows}
    return tuple(
        sorted({model for code in codes if (model := gold.origins.values[code].judge.model)})
    )


def check_one_predictor(side: Side, rows: Rows) -> None:
    """Check that each predicted score was made in one way, for comparisons without gold scores.

    The rows of a cascade may come from any of its judges.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score and the field.
    """
    for name in side.names(rows):
        values = side.numbers(name, "value", rows)
        scored = [row for row, value in zip(rows, values, strict=True) if value == value]
        if scored:
            _predictor(side, scored, name)


def score_blocks(part: Part) -> Iterator[tuple[Path, Block]]:
    """Compute the statistics of every score that both sides have, one by one."""
    for name in names_on_both_sides(part):
        rows = compared(part, name)
        yield (
            ("scores", name),
            _adherence(part, rows)
            if name == ADHERENCE
            else _continuous(rows.at, rows.predicted, rows.gold, len(part.rows)),
        )


def estimate_blocks(part: Part) -> Iterator[tuple[Path, Block]]:
    """Compute the same statistics of the estimates that stand beside the predicted values.

    An estimate is compared with gold's estimate, which another run has, or with its value. Where
    one row of a score has estimates, the value stands for those that are missing: it has none in
    the empty cases of the formulas. Adherence is left out: its AUROC is of its estimate already.
    """
    for name in names_on_both_sides(part):
        rows = compared(part, name)
        if name == ADHERENCE:
            continue
        predicted, gold = (
            side.numbers(name, "estimate", rows.rows)
            for side in (part.table.predicted, part.table.gold)
        )
        if any(estimate == estimate for estimate in predicted):
            xs, ys = _else(predicted, rows.predicted), _else(gold, rows.gold)
            yield ("estimates", name), _continuous(rows.at, xs, ys, len(part.rows))


def _else(numbers: Numbers, others: Numbers) -> Numbers:
    """Take the others where a number is missing."""
    numpy = numpy_for(len(numbers))
    if numpy is not None:
        own, other = (numpy.frombuffer(one, "f8") for one in (numbers, others))
        return array("d", numpy.where(own == own, own, other).tobytes())
    pairs = zip(numbers, others, strict=True)
    return array("d", [one if one == one else other for one, other in pairs])


def _continuous(at: Rows, xs: Numbers, ys: Numbers, size: int) -> Block:
    ones = resampled.present(at, size)
    statistics = {
        "rmse": resampled.rmse(xs, ys, at, size, ones),
        **resampled.correlations(xs, ys, at, size, ones),
    }
    return Block({"n": len(at)}, statistics)


def _adherence(part: Part, rows: Compared) -> Block:
    positive = not_adherent(rows)
    size = len(part.rows)
    statistics: dict[str, Statistic] = {
        "rmse": resampled.rmse(rows.predicted, rows.gold, rows.at, size),
        "auroc": resampled.auroc(hallucination_scores(part, rows), positive, rows.at),
        **resampled.kappa([value == 0 for value in rows.predicted], positive, rows.at, size),
    }
    return Block({"n": len(rows.at), "positives": sum(positive)}, statistics)


def not_adherent(rows: Compared) -> list[bool]:
    """Tell for each row whether it is of the class to be found: gold adherence 0."""
    return [value == 0 for value in rows.gold]


def hallucination_scores(part: Part, rows: Compared) -> Numbers:
    """Return the judge's confidence in "not adherent": 1 - `probability`, else 1 - `value`."""
    probabilities = part.table.predicted.numbers(rows.name, "probability", rows.rows)
    return array("d", [1 - one for one in _else(probabilities, rows.predicted)])


# --- Scores against a human's ratings, on any scale


def agree_with_numbers(
    scores: Mapping[str, Sequence[float | None]],
    numbers: Sequence[float | None],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Figures]:
    """Compare scores with numbers on any scale, such as a human's ratings, row by row.

    Args:
        scores: by score name, one value per row; None for an unscored row.
        numbers: one number per row; None for a missing one.
        resamples: number of bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.

    Returns:
        By score name: `n`, Pearson's, Spearman's and Kendall's correlation, and the RMSE if all
        numbers lie in [0, 1].

    Raises:
        ConfigurationError: a number is not finite, or the columns differ in length.
    """
    for name, column in {**scores, "numbers": numbers}.items():
        if len(column) != len(numbers):
            raise ConfigurationError(
                name, len(column), f"is its number of rows, but there are {len(numbers)} numbers"
            )
        bad = [value for value in column if value is not None and not math.isfinite(value)]
        if bad:
            raise ConfigurationError(name, bad[0], "is not finite; use None for a missing number")
    known = [number for number in numbers if number is not None]
    blocks: Blocks = {
        ("human", name): _numbers_block(column, numbers, within_unit=in_unit(known))
        for name, column in scores.items()
    }
    figures = figures_of(blocks, len(numbers), resamples, f"{seed} ")
    return {path[-1]: block for path, block in figures.items()}


def in_unit(numbers: Sequence[float]) -> bool:
    """Tell whether numbers are on the scale of scores, [0, 1], so that an RMSE has a meaning."""
    return all(0 <= number <= 1 for number in numbers)


def human_blocks(part: Part, *, within_unit: bool) -> Iterator[tuple[Path, Block]]:
    """Compare every predicted score with the rows' human ratings.

    `within_unit` is decided on all rows of a run: a data set that holds only ones may use a scale
    of 1 to 5.
    """
    numbers = ratings(part)
    for name, column in predicted_columns(part).items():
        values = part.table.predicted.numbers(name, "value", part.rows)
        yield (
            ("human", name),
            _numbers_block(column, numbers, within_unit=within_unit, values=values),
        )


def ratings(part: Part) -> list[float | None]:
    """Return the rows' human ratings."""
    return [part.table.human(row) for row in part.rows]


def predicted_columns(part: Part) -> dict[str, list[float | None]]:
    """Return every predicted score as one column for correlations, with one number per row.

    These are raw scores if every row's value derives from a raw score on the same scale.
    Correlations do not depend on the scale, but values are rounded, and clipping to [0, 1] ties
    them.
    """
    side = part.table.predicted
    columns = {}
    for name in side.names(part.rows):
        values, raws = (side.numbers(name, one, part.rows) for one in ("value", "raw"))
        codes = side.make_up(name, part.rows)
        for row, code in enumerate(codes):
            if raws[row] != raws[row] and code >= 0 and side.makers.values[code].scale == UNIT:
                raws[row] = values[row]
        scales = {
            side.makers.values[code].scale
            if _is_of_raw(value, raw, side.makers.values[code].scale)
            else None
            for value, raw, code in zip(values, raws, codes, strict=True)
            if value == value
        }
        chosen = raws if len(scales) == 1 and None not in scales else values
        columns[name] = [
            number if value == value else None for number, value in zip(chosen, values, strict=True)
        ]
    return columns


def _is_of_raw(value: float, raw: float, scale: tuple[float, float] | None) -> bool:
    """Tell whether the value is the raw score scaled to [0, 1]; a strict metric's value is not."""
    if scale is None or raw != raw:
        return False
    low, high = scale
    held = min(1.0, max(0.0, (raw - low) / (high - low)))
    return math.isclose(value, held, abs_tol=1e-9)


def _numbers_block(
    scores: Sequence[float | None],
    numbers: Sequence[float | None],
    *,
    within_unit: bool,
    values: Sequence[float | None] | None = None,
) -> Block:
    rows = [
        (row, score, number)
        for row, (score, number) in enumerate(zip(scores, numbers, strict=True))
        if score is not None and number is not None
    ]
    at = [row for row, _, _ in rows]
    xs, ys = [score for _, score, _ in rows], [number for _, _, number in rows]
    statistics = resampled.correlations(xs, ys, at, len(numbers))
    if within_unit:
        on_unit = (
            xs if values is None else [value for row in at if (value := values[row]) is not None]
        )
        statistics["rmse"] = resampled.rmse(on_unit, ys, at, len(numbers))
    return Block({"n": len(rows)}, statistics)
