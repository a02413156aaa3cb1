"""`calibrate`: fits a `Calibration` of a judge's estimates to gold rows, if held-out rows allow.

pairs ─▶ rows per judge and score ─▶ folds by question ─▶ held-out errors ─▶ the map to use
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval_integrations.agreement._curves import calibration_error
from rag_eval_integrations.agreement._fits import coarsened, isotonic, knots_of, platt
from rag_eval_integrations.agreement._side import Maker
from rag_eval_integrations.agreement._table import Part, Table, digest_of
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import check_one_provenance, compared
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.calibration import Calibration, JudgeMaps, Method, ScoreMap
from rag_eval_integrations.records import Evaluation

CALIBRATED = ("context_relevance", "context_utilization", "completeness", "adherence")
"""Names of the scores that are calibrated."""
TARGET_ERROR = 0.05
"""Default of the standard error that the number of rows is held against."""
LEAST_QUESTIONS = 30
"""Least number of questions, whatever the error."""
MANY_QUESTIONS = 200
"""Number of questions from which an isotonic map is tried."""
FOLDS = 5
_PARAMETERS = 2


class _Row(NamedTuple):
    score: float
    gold: float
    question: bytes
    """What stands for the question."""
    estimator: str


class _HeldOut(NamedTuple):
    """What one method gives for rows that it was not fitted to."""

    method: Method
    scores: list[float]
    losses: list[float]
    """Squared errors, in the order of the rows."""


def calibrate(
    pairs: Sequence[Pair], *, name: str, target_error: float = TARGET_ERROR
) -> Calibration:
    """Fit maps from a judge's estimates to gold, one per score, and per judge of a cascade.

    The estimate is mapped; of a judge without one the value. Folds hold out whole questions. A map
    is used only if its mean squared error on held-out rows is lower than that of the estimates as
    they are by more than one standard error of the difference; an isotonic one, which is tried from
    200 questions, also has to beat Platt's. Otherwise the score is left as it is, which its `why`
    says.

    A score needs 2 · s² / e² questions, with s² the variance of its gold and e the target error: a
    fit of two parameters to n rows has levels with a mean variance of 2 · s² / n.

    Args:
        pairs: a judge's evaluations with their gold rows, as from `match`.
        name: a name for the calibration, which stands on every score.
        target_error: the standard error that a calibrated score may have because there are few
            rows, above 0 and at most 0.5.

    Raises:
        ConfigurationError: there are too few rows for every score; the scores were made in several
            ways, with other formulas than gold's, or calibrated already; `target_error` is out of
            range.
    """
    return calibration_of(Table.of(pairs), name=name, target_error=target_error)


def calibration_of(table: Table, *, name: str, target_error: float = TARGET_ERROR) -> Calibration:
    """Fit maps as `calibrate` does, to rows that were read as numbers, with their questions."""
    _check_target(target_error)
    part = Part(table, table.appearance)
    made = check_one_provenance(part)
    formulas = {(one["formulas"], one["relevance_baseline"]) for one in made.values()}
    makers = _rows_by_maker(part)
    if len(formulas) != 1 or not makers:
        raise ConfigurationError(
            "gold", table.size, "rows, and none has TRACe scores on both sides"
        )
    (found, baseline), *_ = formulas
    judges = tuple(
        JudgeMaps(
            judge=maker[0], model=maker[1], judge_version=maker[2], prompt_version=maker[3],
            scores={score: _fitted(score, rows, target_error) for score, rows in of.items()},
        )
        for maker, of in makers.items()
    )  # fmt: skip
    maps = [
        (score if len(judges) == 1 else f"{judge} {score}", one)
        for judge in judges
        for score, one in judge.scores.items()
    ]
    if all(one.questions < one.needed for _, one in maps):
        raise _refusal(table.size, {score: one.why for score, one in maps})
    return Calibration(
        name=name, formulas=str(found), n=table.size,
        relevance_baseline=None if baseline is None else int(baseline),
        questions=len(set(table.questions)),
        target_error=target_error, judges=judges,
    )  # fmt: skip


def check_enough(gold: Iterable[Evaluation], target_error: float) -> None:
    """Refuse gold rows that are too few for every score, before a judge is asked about them.

    Raises:
        ConfigurationError: there are too few rows, or `target_error` is out of range.
    """
    counted = GoldCount()
    for row in gold:
        counted.add(row)
    counted.check_enough(target_error)


class GoldCount:
    """What the number of gold rows is judged by: values and questions of each score."""

    def __init__(self) -> None:
        self.rows = 0
        self._values = {name: array("d") for name in CALIBRATED}
        self._questions: dict[str, set[bytes]] = {name: set() for name in CALIBRATED}

    def add(self, row: Evaluation) -> None:
        """Take up a gold row."""
        self.rows += 1
        for name in CALIBRATED:
            score = row.scores.get(name)
            if score is not None and score.value is not None:
                self._values[name].append(score.value)
                self._questions[name].add(digest_of(row.question))

    def check_enough(self, target_error: float) -> None:
        """Refuse rows that are too few for every score; see `check_enough`."""
        _check_target(target_error)
        why = {}
        for name, values in self._values.items():
            questions = len(self._questions[name])
            needed = needed_questions(values, target_error) if values else LEAST_QUESTIONS
            if questions >= needed:
                return
            why[name] = _too_few(questions, needed, target_error)
        raise _refusal(self.rows, why)


def _check_target(target_error: float) -> None:
    if not 0 < target_error <= 0.5:
        raise ConfigurationError("target_error", target_error, "use a number above 0, up to 0.5")


def _too_few(questions: int, needed: int, target_error: float) -> str:
    return f"{questions} questions, and {needed} are needed for a standard error of {target_error}"


def _refusal(rows: int, why: Mapping[str, str]) -> ConfigurationError:
    each = "; ".join([f"{score}: {words}" for score, words in why.items()])
    return ConfigurationError("gold", f"{rows} rows", f"are too few for a calibration: {each}")


_Maker = tuple[str | None, str | None, str | None, str | None]


def _maker(by: Maker) -> _Maker:
    judge, model, judge_version, prompt_version = (
        None if value is None else str(value)
        for value in map(by.of, ("judge", "model", "judge_version", "prompt_version"))
    )
    return judge, model, judge_version, prompt_version


def _rows_by_maker(part: Part) -> dict[_Maker, dict[str, list[_Row]]]:
    """Collect what is fitted: by maker, then by score."""
    side = part.table.predicted
    makers: dict[_Maker, dict[str, list[_Row]]] = {}
    for name in CALIBRATED:
        found = compared(part, name)
        estimates = side.numbers(name, "estimate", found.rows)
        columns = zip(found.rows, found.predicted, found.gold, estimates, strict=True)
        for row, value, gold, estimate in columns:
            by = side.maker(name, row)
            if by is None:
                continue
            if by.of("calibration") is not None:
                raise ConfigurationError(
                    "calibration", by.of("calibration"), f"made `{name}` already; calibrate scores "
                    "that were made without one",
                )  # fmt: skip
            if side.lengths[row] < 0:
                continue  # of a retrieval alone, judges estimate in another way
            if by.estimator is None and _formulas_decide(side.listed[row], name, by):
                continue
            one = _Row(
                value if by.estimator is None else estimate,
                gold,
                part.table.questions[row],
                "labels" if by.estimator is None else by.estimator,
            )
            makers.setdefault(_maker(by), {}).setdefault(name, []).append(one)
    return {
        maker: {name: _of_one_estimator(name, rows) for name, rows in of.items()}
        for maker, of in makers.items()
    }


def _formulas_decide(listed: int, name: str, by: Maker) -> bool:
    """Tell whether a score is an empty case of the formulas, beside which no estimate stands."""
    ratios = ("completeness",) if by.of("formulas") == "ragbench" else _SHARES_OF_RELEVANT
    return name in ratios and listed > 1  # labels, but nothing relevant or nothing utilized


_SHARES_OF_RELEVANT = ("context_utilization", "completeness")


def _of_one_estimator(name: str, rows: list[_Row]) -> list[_Row]:
    """Leave out rows without an estimate, if others have one: there, an empty case decides."""
    kinds = sorted({row.estimator for row in rows} - {"labels"})
    if len(kinds) > 1:
        raise ConfigurationError("estimator", kinds, f"differ within `{name}`")
    return [row for row in rows if row.estimator == kinds[0]] if kinds else rows


def needed_questions(gold: Sequence[float], target_error: float) -> int:
    """Return how many questions a calibration needs: 2 · s² / e², at least 30.

    Args:
        gold: gold values seen so far; of 0 and 1 alone, s² = p (1 - p) with p = (ones + 1) / (n +
            2), else their variance.
        target_error: e.
    """
    n = len(gold)
    if set(gold) <= {0.0, 1.0}:
        share = (math.fsum(gold) + 1) / (n + 2)
        variance = share * (1 - share)
    else:
        mean = math.fsum(gold) / n
        variance = math.fsum([(value - mean) ** 2 for value in gold]) / max(1, n - 1)
    # A little less, so that 2 · 0.25 / 0.05² is 200 and not 201.
    return max(LEAST_QUESTIONS, math.ceil(_PARAMETERS * variance / target_error**2 - 1e-9))


def _fitted(name: str, rows: Sequence[_Row], target_error: float) -> ScoreMap:
    gold = [row.gold for row in rows]
    questions = len({row.question for row in rows})
    needed = needed_questions(gold, target_error)
    facts: dict[str, Any] = {"estimator": rows[0].estimator, "n": len(rows), "questions": questions,
             "needed": needed}  # fmt: skip
    if questions < needed:
        why = _too_few(questions, needed, target_error)
        return ScoreMap(method="identity", why=why, **facts)
    if len(set(gold)) == 1:
        return ScoreMap(method="identity", why=f"gold is {gold[0]:g} in every row", **facts)
    before = _HeldOut("identity", [row.score for row in rows], _losses(rows, _as_they_are(rows)))
    fold_of = _folds([row.question for row in rows])
    chosen, said = before, []
    for method in ("platt", "isotonic") if questions >= MANY_QUESTIONS else ("platt",):
        tried = _held_out(_FITS[method], rows, fold_of)
        said.append(f"{method} {_rmse(tried):.4f}")
        if _is_better(rows, tried, chosen):
            chosen = tried
    errors: dict[str, Any] = {
        "rmse": (_rmse(before), _rmse(chosen)),
        "calibration_error": (_miscalibrated(rows, before), _miscalibrated(rows, chosen)),
        "std_error": _rmse(chosen),
    }
    if chosen is before:
        why = f"no map is better on held-out rows: RMSE {_rmse(before):.4f}, {', '.join(said)}"
        return ScoreMap(method="identity", why=why, **facts, **errors)
    fitted = _FITS[chosen.method](rows)
    return fitted.model_copy(update={**facts, **errors})


def _as_they_are(rows: Sequence[_Row]) -> list[float]:
    return [row.score for row in rows]


def _platt_map(rows: Sequence[_Row]) -> ScoreMap:
    slope, intercept = platt([(row.score, row.gold) for row in rows])
    return ScoreMap(
        method="platt", estimator=rows[0].estimator, slope=slope, intercept=intercept,
        n=len(rows), questions=0,
    )  # fmt: skip


def _isotonic_map(rows: Sequence[_Row]) -> ScoreMap:
    knots = knots_of(coarsened(isotonic([(row.score, row.gold) for row in rows])))
    return ScoreMap(
        method="isotonic", estimator=rows[0].estimator, knots=knots, n=len(rows), questions=0
    )


_FITS: Mapping[str, Callable[[Sequence[_Row]], ScoreMap]] = {
    "platt": _platt_map,
    "isotonic": _isotonic_map,
}


def folds(questions: Sequence[str], count: int = FOLDS) -> list[int]:
    """Assign each row to a fold; rows of one question share theirs, whatever the order of rows."""
    return _folds([digest_of(question) for question in questions], count)


def _folds(digests: Sequence[bytes], count: int = FOLDS) -> list[int]:
    fold_of = {digest: at % count for at, digest in enumerate(sorted(set(digests)))}
    return [fold_of[digest] for digest in digests]


def _held_out(
    fit: Callable[[Sequence[_Row]], ScoreMap], rows: Sequence[_Row], fold_of: Sequence[int]
) -> _HeldOut:
    """Map every row by a fit to the rows of the other folds."""
    scores = [0.0] * len(rows)
    method: Method = "identity"
    for fold in sorted(set(fold_of)):
        found = fit([row for row, own in zip(rows, fold_of, strict=True) if own != fold])
        method = found.method
        for at, row in enumerate(rows):
            if fold_of[at] == fold:
                scores[at] = found(row.score)
    return _HeldOut(method, scores, _losses(rows, scores))


def _losses(rows: Sequence[_Row], scores: Sequence[float]) -> list[float]:
    return [(score - row.gold) ** 2 for row, score in zip(rows, scores, strict=True)]


def _rmse(tried: _HeldOut) -> float:
    return round(math.sqrt(math.fsum(tried.losses) / len(tried.losses)), 6)


def _miscalibrated(rows: Sequence[_Row], tried: _HeldOut) -> float:
    gold = [row.gold for row in rows]
    return round(calibration_error(list(zip(tried.scores, gold, strict=True))), 6)


def _is_better(rows: Sequence[_Row], tried: _HeldOut, than: _HeldOut) -> bool:
    """Tell whether the losses are lower by more than one standard error, over questions."""
    by_question: dict[bytes, list[float]] = {}
    for row, loss, other in zip(rows, tried.losses, than.losses, strict=True):
        by_question.setdefault(row.question, []).append(other - loss)
    gains = [math.fsum(gain) for gain in by_question.values()]
    mean = math.fsum(gains) / len(gains)
    squares = math.fsum([(gain - mean) ** 2 for gain in gains])
    return mean > math.sqrt(squares / (len(gains) - 1) / len(gains))
