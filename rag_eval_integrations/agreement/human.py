"""Scores against a human's numbers, on whatever scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rag_eval_integrations.agreement import resampled
from rag_eval_integrations.agreement.bootstrap import RESAMPLES, SEED
from rag_eval_integrations.agreement.figures import Figures, figures_of
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.resampled import Block, Blocks
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Score


def agree_with_numbers(
    scores: Mapping[str, Sequence[float | None]],
    numbers: Sequence[float | None],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Figures]:
    """Compare scores with numbers on any scale, such as a human's, row by row.

    Args:
        scores: by score name, one value a row; None where it is unscored.
        numbers: one a row; None where there is none.
        resamples: draws of the bootstrap; 0 for no intervals.
        seed: of the draws.

    Returns:
        By score name: `n`, Pearson's, Spearman's and Kendall's correlation, and the RMSE where
        all numbers lie in [0, 1].

    Raises:
        ConfigurationError: a number is not finite, or the columns differ in length.
    """
    for name, column in {**scores, "numbers": numbers}.items():
        if len(column) != len(numbers):
            raise ConfigurationError(name, len(column), f"rows, but {len(numbers)} numbers")
        bad = [value for value in column if value is not None and not math.isfinite(value)]
        if bad:
            raise ConfigurationError(name, bad[0], "is not finite; give None for a missing number")
    known = [number for number in numbers if number is not None]
    blocks: Blocks = {
        ("human", name): _numbers_block(column, numbers, within_unit=in_unit(known))
        for name, column in scores.items()
    }
    figures = figures_of(blocks, len(numbers), resamples, f"{seed} ")
    return {path[-1]: block for path, block in figures.items()}


def in_unit(numbers: Sequence[float]) -> bool:
    """Say whether numbers are on the scale of scores, so that an RMSE means something."""
    return all(0 <= number <= 1 for number in numbers)


def human_blocks(pairs: Sequence[Pair], *, within_unit: bool) -> Blocks:
    """Compare every predicted score with the pairs' human numbers.

    `within_unit` is asked of all rows of a run: in one data set, ones alone may stand for 1 of 5.
    """
    numbers = [pair.human for pair in pairs]
    blocks: Blocks = {}
    for name, column in predicted_columns(pairs).items():
        scores = [pair.predicted.scores.get(name) for pair in pairs]
        values = [None if score is None else score.value for score in scores]
        blocks["human", name] = _numbers_block(
            column, numbers, within_unit=within_unit, values=values
        )
    return blocks


def predicted_columns(pairs: Sequence[Pair]) -> dict[str, list[float | None]]:
    """Every predicted score as one column, a value a row, as correlations take it.

    That is the raw score where every row's value is made of one on the same scale: correlations do
    not change with the scale, but values are rounded, and those held to [0, 1] are tied.
    """
    names = dict.fromkeys(name for pair in pairs for name in pair.predicted.scores)
    columns = {}
    for name in names:
        scores = [pair.predicted.scores.get(name) for pair in pairs]
        scored = [score for score in scores if score is not None and score.value is not None]
        scales = {score.scale if _is_of_raw(score) else None for score in scored}
        raw = len(scales) == 1 and None not in scales
        columns[name] = [
            None if score is None or score.value is None else score.raw if raw else score.value
            for score in scores
        ]
    return columns


def _is_of_raw(score: Score) -> bool:
    """Whether the value is the raw score on [0, 1]; that of a strict metric says less."""
    if score.value is None or score.raw is None or score.scale is None:
        return False
    low, high = score.scale
    held = min(1.0, max(0.0, (score.raw - low) / (high - low)))
    return math.isclose(score.value, held, abs_tol=1e-9)


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
