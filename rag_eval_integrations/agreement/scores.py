"""Agreement score by score: the comparable rows, the check of their provenance, the statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Statistic
from rag_eval_integrations.agreement._resampled import Block, Blocks
from rag_eval_integrations.agreement.figures import Figures, figures_of
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.cascade import CASCADE_FLAGS
from rag_eval_integrations.records import Evaluation, Score

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


class ScorePair(NamedTuple):
    """One score of one call that has a value on both sides."""

    row: int
    """Position of the pair in its group."""
    pair: Pair
    predicted: Score
    predicted_value: float
    gold: Score
    gold_value: float


def names_on_both_sides(pairs: Iterable[Pair]) -> list[str]:
    """List the names of scores that both sides have, in the order of the predicted rows."""
    predicted: dict[str, None] = {}
    gold: set[str] = set()
    for pair in pairs:
        predicted |= dict.fromkeys(pair.predicted.scores)
        gold |= pair.gold.scores.keys()
    return [name for name in predicted if name in gold]


def compared(pairs: Sequence[Pair], name: str) -> list[ScorePair]:
    """List the rows in which the score `name` has a value on both sides."""
    found = []
    for row, pair in enumerate(pairs):
        predicted, gold = pair.predicted.scores.get(name), pair.gold.scores.get(name)
        if predicted is None or gold is None or predicted.value is None or gold.value is None:
            continue
        found.append(ScorePair(row, pair, predicted, predicted.value, gold, gold.value))
    return found


def check_one_provenance(pairs: Sequence[Pair]) -> dict[str, Provenance]:
    """Check that each score was made in one way on each side, with the same formulas.

    Returns:
        By score name: `formulas`, `relevance_baseline`, and the predicted side's `method`.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score, the side and the
            field.
    """
    made: dict[str, Provenance] = {}
    for name in names_on_both_sides(pairs):
        rows = compared(pairs, name)
        if not rows:
            continue
        predicted = _predictor(((item.pair, item.predicted) for item in rows), name)
        gold = _single_provenance((item.gold for item in rows), name, "gold", _GOLD_FIELDS)
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


def _predictor(rows: Iterable[tuple[Pair, Score]], name: str) -> Provenance:
    """Return the provenance of a predicted score, with that of all judges for a cascade."""
    by_part: dict[str | None, list[Score]] = {}
    for pair, score in rows:
        by_part.setdefault(cascade_part(pair.predicted), []).append(score)
    makers = [
        _single_provenance(scores, name, "predicted", _PREDICTED_FIELDS)
        for scores in by_part.values()
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


def cascade_part(evaluation: Evaluation) -> str | None:
    """Return the flag that tells which judge of a `CascadeJudge` labelled; None without one."""
    return next((flag for flag in CASCADE_FLAGS if flag in evaluation.flags), None)


def _single_provenance(
    scores: Iterable[Score], name: str, side: str, fields: Sequence[str]
) -> Provenance:
    makers = [
        {"method": score.method, **{field: getattr(score.by, field) for field in fields}}
        for score in scores
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


def gold_models(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """List the models that annotated the gold rows, in alphabetical order."""
    return tuple(sorted({pair.gold.judge.model for pair in pairs if pair.gold.judge.model}))


def check_one_predictor(pairs: Sequence[Pair]) -> None:
    """Check that each predicted score was made in one way, for comparisons without gold scores.

    The rows of a cascade may come from any of its judges.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score and the field.
    """
    by_name: dict[str, list[tuple[Pair, Score]]] = {}
    for pair in pairs:
        for name, score in pair.predicted.scores.items():
            if score.value is not None:
                by_name.setdefault(name, []).append((pair, score))
    for name, rows in by_name.items():
        _predictor(rows, name)


def score_blocks(pairs: Sequence[Pair]) -> Blocks:
    """Compute the statistics of every score that both sides have."""
    size = len(pairs)
    return {
        ("scores", name): (_adherence if name == ADHERENCE else _continuous)(
            compared(pairs, name), size
        )
        for name in names_on_both_sides(pairs)
    }


def estimate_blocks(pairs: Sequence[Pair]) -> Blocks:
    """Compute the same statistics of the estimates that stand beside the predicted values.

    An estimate is compared with gold's estimate, which another run has, or with its value. Where
    one row of a score has estimates, the value stands for those that are missing: it has none in
    the empty cases of the formulas. Adherence is left out: its AUROC is of its estimate already.
    """
    blocks: Blocks = {}
    for name in names_on_both_sides(pairs):
        rows = compared(pairs, name)
        if name != ADHERENCE and any(item.predicted.estimate is not None for item in rows):
            blocks["estimates", name] = _continuous(
                [
                    item._replace(
                        predicted_value=_estimated(item.predicted, item.predicted_value),
                        gold_value=_estimated(item.gold, item.gold_value),
                    )
                    for item in rows
                ],
                len(pairs),
            )
    return blocks


def _estimated(score: Score, value: float) -> float:
    return value if score.estimate is None else score.estimate.value


def _continuous(rows: Sequence[ScorePair], size: int) -> Block:
    xs = [item.predicted_value for item in rows]
    ys = [item.gold_value for item in rows]
    at = [item.row for item in rows]
    statistics = {
        "rmse": resampled.rmse(xs, ys, at, size),
        **resampled.correlations(xs, ys, at, size),
    }
    return Block({"n": len(rows)}, statistics)


def _adherence(rows: Sequence[ScorePair], size: int) -> Block:
    at = [item.row for item in rows]
    positive = not_adherent(rows)
    predicted = [item.predicted_value for item in rows]
    statistics: dict[str, Statistic] = {
        "rmse": resampled.rmse(predicted, [item.gold_value for item in rows], at, size),
        "auroc": resampled.auroc(hallucination_scores(rows), positive, at),
        **resampled.kappa([value == 0 for value in predicted], positive, at, size),
    }
    return Block({"n": len(rows), "positives": sum(positive)}, statistics)


def not_adherent(rows: Sequence[ScorePair]) -> list[bool]:
    """Tell for each row whether it is of the class to be found: gold adherence 0."""
    return [item.gold_value == 0 for item in rows]


def hallucination_scores(rows: Sequence[ScorePair]) -> list[float]:
    """Return the judge's confidence in "not adherent": 1 - `probability`, else 1 - `value`."""
    return [
        1
        - (
            item.predicted_value
            if item.predicted.probability is None
            else item.predicted.probability
        )
        for item in rows
    ]


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


def human_blocks(pairs: Sequence[Pair], *, within_unit: bool) -> Blocks:
    """Compare every predicted score with the pairs' human ratings.

    `within_unit` is decided on all rows of a run: a data set that holds only ones may use a scale
    of 1 to 5.
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
    """Return every predicted score as one column for correlations, with one number per row.

    These are raw scores if every row's value derives from a raw score on the same scale.
    Correlations do not depend on the scale, but values are rounded, and clipping to [0, 1] ties
    them.
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
    """Tell whether the value is the raw score scaled to [0, 1]; a strict metric's value is not."""
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
