"""Score by score: which rows can be compared, whether they may be, and how well they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_eval_integrations.agreement import resampled
from rag_eval_integrations.agreement.bootstrap import Statistic
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.resampled import Block, Blocks
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.labels.cascade import CASCADE_FLAGS
from rag_eval_integrations.records import Evaluation, Score

ADHERENCE = "adherence"
Maker = Mapping[str, str | int | None]
"""How a score was made: `formulas`, `relevance_baseline`, `method` …"""
_MAKER = ("judge", "model", "judge_version", "prompt_version", "formulas", "relevance_baseline")
# Gold is often annotated by several people or models (RAGBench: gpt-4o for some data sets,
# gpt-4-turbo for others); who they are is reported, not refused.
_GOLD_MAKER = ("judge", "prompt_version", "formulas", "relevance_baseline")
_FORMULAS = ("formulas", "relevance_baseline")


class Compared(NamedTuple):
    """One score of one call on both sides, both scored."""

    row: int
    """Position of the pair in its group."""
    pair: Pair
    predicted: Score
    predicted_value: float
    gold: Score
    gold_value: float


def names_on_both_sides(pairs: Iterable[Pair]) -> list[str]:
    """Score names that occur among the predicted and among the gold rows, in predicted order."""
    predicted: dict[str, None] = {}
    gold: set[str] = set()
    for pair in pairs:
        predicted |= dict.fromkeys(pair.predicted.scores)
        gold |= pair.gold.scores.keys()
    return [name for name in predicted if name in gold]


def compared(pairs: Sequence[Pair], name: str) -> list[Compared]:
    """Rows where both sides scored `name`."""
    found = []
    for row, pair in enumerate(pairs):
        predicted, gold = pair.predicted.scores.get(name), pair.gold.scores.get(name)
        if predicted is None or gold is None or predicted.value is None or gold.value is None:
            continue
        found.append(Compared(row, pair, predicted, predicted.value, gold, gold.value))
    return found


def check_one_maker(pairs: Sequence[Pair]) -> dict[str, Maker]:
    """Make sure that each score was made in one way on each side, by the same formulas.

    Returns:
        By score name: `formulas`, `relevance_baseline`, and the predicted side's `method`.

    Raises:
        ConfigurationError: names the score, the side and the field that differs.
    """
    made: dict[str, Maker] = {}
    for name in names_on_both_sides(pairs):
        rows = compared(pairs, name)
        if not rows:
            continue
        predicted = _predictor(((item.pair, item.predicted) for item in rows), name)
        gold = _single_maker((item.gold for item in rows), name, "gold", _GOLD_MAKER)
        for field in _FORMULAS:
            if predicted[field] != gold[field]:
                raise ConfigurationError(
                    field,
                    predicted[field],
                    f"made `{name}` of the predicted rows, but {gold[field]!r} that of the gold"
                    " rows; score both sides by the same formulas",
                )
        made[name] = {field: predicted[field] for field in (*_FORMULAS, "method")}
    return made


def _predictor(rows: Iterable[tuple[Pair, Score]], name: str) -> Maker:
    """How the judge made a score: in one way, or in one way for each judge of a cascade."""
    by_part: dict[str | None, list[Score]] = {}
    for pair, score in rows:
        by_part.setdefault(cascade_part(pair.predicted), []).append(score)
    makers = [_single_maker(scores, name, "predicted", _MAKER) for scores in by_part.values()]
    if len(makers) == 1:
        return makers[0]
    if None in by_part:
        raise ConfigurationError(
            "judge", name, "was made by a cascade in some predicted rows and not in others"
        )
    for field in _FORMULAS:
        if makers[0][field] != makers[1][field]:
            raise ConfigurationError(
                field, makers[1][field], f"made `{name}` of some predicted rows only"
            )
    return {
        field: value if value == makers[1][field] else f"{value} or {makers[1][field]}"
        for field, value in makers[0].items()
    }


def cascade_part(evaluation: Evaluation) -> str | None:
    """Which judge of a `CascadeJudge` labelled: the flag that says so; None without a cascade."""
    return next((flag for flag in CASCADE_FLAGS if flag in evaluation.flags), None)


def _single_maker(scores: Iterable[Score], name: str, side: str, fields: Sequence[str]) -> Maker:
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
                f"several in `{name}` of the {side} rows; compare rows made in one way at a time",
            )
    return makers[0]


def gold_models(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Name the models that annotated the gold rows, in alphabetical order."""
    return tuple(sorted({pair.gold.judge.model for pair in pairs if pair.gold.judge.model}))


def check_one_predictor(pairs: Sequence[Pair]) -> None:
    """Make sure that each predicted score was made in one way, whatever it is compared with.

    Rows of a cascade may be made in two: by its first judge and by its second.

    Raises:
        ConfigurationError: names the score and the field that differs.
    """
    by_name: dict[str, list[tuple[Pair, Score]]] = {}
    for pair in pairs:
        for name, score in pair.predicted.scores.items():
            if score.value is not None:
                by_name.setdefault(name, []).append((pair, score))
    for name, rows in by_name.items():
        _predictor(rows, name)


def score_blocks(pairs: Sequence[Pair]) -> Blocks:
    """Compare every score that both sides have."""
    size = len(pairs)
    return {
        ("scores", name): (_adherence if name == ADHERENCE else _continuous)(
            compared(pairs, name), size
        )
        for name in names_on_both_sides(pairs)
    }


def _continuous(rows: Sequence[Compared], size: int) -> Block:
    xs = [item.predicted_value for item in rows]
    ys = [item.gold_value for item in rows]
    at = [item.row for item in rows]
    statistics = {
        "rmse": resampled.rmse(xs, ys, at, size),
        **resampled.correlations(xs, ys, at, size),
    }
    return Block({"n": len(rows)}, statistics)


def _adherence(rows: Sequence[Compared], size: int) -> Block:
    at = [item.row for item in rows]
    positive = not_adherent(rows)
    predicted = [item.predicted_value for item in rows]
    statistics: dict[str, Statistic] = {
        "rmse": resampled.rmse(predicted, [item.gold_value for item in rows], at, size),
        "auroc": resampled.auroc(hallucination_scores(rows), positive, at),
        **resampled.kappa([value == 0 for value in predicted], positive, at, size),
    }
    return Block({"n": len(rows), "positives": sum(positive)}, statistics)


def not_adherent(rows: Sequence[Compared]) -> list[bool]:
    """The class to be found: gold adherence 0."""
    return [item.gold_value == 0 for item in rows]


def hallucination_scores(rows: Sequence[Compared]) -> list[float]:
    """How sure the judge is of "not adherent": 1 - `probability`, else 1 - `value`."""
    return [
        1
        - (
            item.predicted_value
            if item.predicted.probability is None
            else item.predicted.probability
        )
        for item in rows
    ]
