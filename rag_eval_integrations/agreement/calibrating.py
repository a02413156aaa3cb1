"""`calibrate`: fits a `Calibration` of a judge's estimates to gold rows, if held-out rows allow.

pairs ─▶ rows per judge and score ─▶ folds by question ─▶ held-out errors ─▶ the map to use
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from rag_eval_integrations.agreement._provenance import check_one_provenance
from rag_eval_integrations.agreement._statistics import Array, exact_sum
from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.figures import calibration_error
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.calibration import (
    MOST_KNOTS,
    Calibration,
    JudgeMaps,
    Method,
    ScoreMap,
    log_odds,
)
from rag_eval_integrations.records.score import without_sections

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
_JUDGE = ("judge", "model", "judge_version", "prompt_version")
_Judge = tuple[str | None, ...]


class _Sample(NamedTuple):
    """The rows that one score of one judge is fitted to."""

    scores: Array
    words: Array
    """The embedded judge's estimates beside a local model's; NaN where there is none."""
    gold: Array
    questions: Array
    """The question of each row, as numbers from 0 that do not depend on the order of rows."""
    estimator: str

    def some(self, chosen: Array) -> _Sample:
        """Return the chosen rows of the sample."""
        columns = (self.scores, self.words, self.gold, self.questions)
        scores, words, gold, questions = (column[chosen] for column in columns)
        return _Sample(scores, words, gold, questions, self.estimator)


def calibrate(
    pairs: Sequence[Pair], *, name: str, target_error: float = TARGET_ERROR
) -> Calibration:
    """Fit maps from a judge's estimates to gold, one per score, and per judge of a cascade.

    The estimate is mapped; of a judge without one the value. Folds hold out whole questions. A map
    is used only if its mean squared error on held-out rows is lower than that of the estimates as
    they are by more than one standard error of the difference. From 200 questions, a mixture of a
    local model's adherence with the embedded judge's and an isotonic map are tried, and have to
    beat the map before them as well. Otherwise the score is left as it is, which its `why` says.

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
    """Fit maps to the two sides of a table, as `calibrate` does to pairs.

    Refuses a table without TRACe scores on both sides, or with too few questions for every map.
    """
    _check_target(target_error)
    provenance = check_one_provenance(table)
    formulas = {(maker["formulas"], maker["relevance_baseline"]) for maker in provenance.values()}
    samples = _samples(table)
    if len(formulas) != 1 or not samples:
        raise ConfigurationError(
            "gold", len(table), "rows, and none has TRACe scores on both sides"
        )
    (used, baseline), *_ = formulas
    judges = tuple(_judge_maps(judge, of, target_error) for judge, of in samples.items())
    maps = [
        (score if len(judges) == 1 else f"{judge} {score}", fitted)
        for judge in judges
        for score, fitted in judge.scores.items()
    ]
    if all(fitted.questions < fitted.needed for _, fitted in maps):
        raise _refusal(len(table), {score: fitted.why for score, fitted in maps})
    return Calibration(
        name=name,
        formulas=str(used),
        n=len(table),
        relevance_baseline=None if baseline is None else int(baseline),
        questions=len({row.question for row in table.predicted}),
        target_error=target_error,
        judges=judges,
    )


def _judge_maps(judge: _Judge, samples: Mapping[str, _Sample], target_error: float) -> JudgeMaps:
    """Fit a map per score; identity where the rows are too few for a standard error so small."""
    maps = {score: _best_map(sample, target_error) for score, sample in samples.items()}
    return JudgeMaps(**dict(zip(_JUDGE, judge, strict=True)), scores=maps)


def check_enough(gold: Sequence[Row], target_error: float) -> None:
    """Refuse gold rows that are too few for every score, before a judge is asked about them.

    Raises:
        ConfigurationError: there are too few rows, or `target_error` is out of range.
    """
    _check_target(target_error)
    why = {}
    for name in CALIBRATED:
        rows = [row for row in gold if name in row.scores and row.scores[name].value is not None]
        questions = len({row.question for row in rows})
        values = np.array([row.scores[name].value for row in rows], "f8")
        needed = needed_questions(values, target_error)
        if questions >= needed:
            return
        why[name] = _too_few(questions, needed, target_error)
    raise _refusal(len(gold), why)


def _check_target(target_error: float) -> None:
    if not 0 < target_error <= 0.5:
        raise ConfigurationError("target_error", target_error, "use a number above 0, up to 0.5")


def _too_few(questions: int, needed: int, target_error: float) -> str:
    """Say how many questions a calibration lacks."""
    return f"{questions} questions, and {needed} are needed for a standard error of {target_error}"


def _refusal(rows: int, why: Mapping[str, str]) -> ConfigurationError:
    """Return the error for gold rows that are too few to calibrate any score."""
    each = "; ".join([f"{score}: {words}" for score, words in why.items()])
    return ConfigurationError("gold", f"{rows} rows", f"are too few for a calibration: {each}")


def _samples(table: Table) -> dict[_Judge, dict[str, _Sample]]:
    """Collect the rows to fit: by judge, model and versions, then by score.

    A score's estimate where it has one, else its value. Retrievals alone and empty cases of the
    formulas are left out; scores that a calibration made are refused.
    """
    digests = [
        sha256(row.question.encode("utf-8", "replace")).hexdigest() for row in table.predicted
    ]
    number = {digest: place for place, digest in enumerate(sorted(set(digests)))}
    rows: dict[_Judge, dict[str, list[tuple[Any, ...]]]] = {}
    for name in CALIBRATED:
        compared = table.compared(name)
        for place, gold in zip(compared.places.rows.tolist(), compared.gold.tolist(), strict=True):
            row = table.predicted[place]
            score = row.scores[name]
            by = score.by
            if by.calibration is not None:
                raise ConfigurationError(
                    "calibration",
                    by.calibration,
                    f"made `{name}` already; calibrate scores that were made without one",
                )
            if row.response is None:
                continue  # of a retrieval alone, judges estimate in another way
            ratios = CALIBRATED[2:3] if by.formulas == "ragbench" else CALIBRATED[1:3]
            if score.estimate is None and name in ratios and row.marks and row.marks.empty:
                continue  # an empty case of the formulas, beside which no estimate stands
            mapped = score.value if score.estimate is None else score.estimate
            version = without_sections(by.prompt_version)
            judge = (by.judge, by.model, by.judge_version, version)
            of = rows.setdefault(judge, {}).setdefault(name, [])
            words = row.words if name == "adherence" else None
            of.append((mapped, words, score.estimator or "labels", gold, number[digests[place]]))
    samples: dict[_Judge, dict[str, _Sample]] = {}
    for maker, by_name in rows.items():
        samples[maker] = {name: _sample_of(of_name) for name, of_name in by_name.items()}
    return samples


def _sample_of(rows: Sequence[tuple[Any, ...]]) -> _Sample:
    """Keep the rows of the most frequent estimator; rows without one only if no row has one.

    A row has no estimate in an empty case of the formulas. A local model's estimates of relevance
    are of two kinds, by language.
    """
    scores, words, estimators, gold, questions = zip(*rows, strict=True)
    kinds = sorted({*estimators} - {"labels"})
    estimator = max(kinds, key=estimators.count, default="labels")
    mapped, by_words, labelled = (np.array(column, "f8") for column in (scores, words, gold))
    sample = _Sample(mapped, by_words, labelled, np.array(questions), estimator)
    return sample.some(np.array(estimators) == estimator)


def needed_questions(gold: Array, target_error: float) -> int:
    """Return how many questions a calibration needs: 2 · s² / e², at least 30.

    Args:
        gold: gold values seen so far; of 0 and 1 alone, s² = p (1 - p) with p = (ones + 1) / (n +
            2), else their variance.
        target_error: e.
    """
    n = len(gold)
    if np.isin(gold, (0, 1)).all():
        share = (exact_sum(gold) + 1) / (n + 2) if n else 0.0
        variance = share * (1 - share)
    else:
        centred = gold - exact_sum(gold) / n
        variance = exact_sum(centred * centred) / max(1, n - 1)
    # A little less, so that 2 · 0.25 / 0.05² is 200 and not 201.
    return max(LEAST_QUESTIONS, math.ceil(_PARAMETERS * variance / target_error**2 - 1e-9))


def _best_map(rows: _Sample, target_error: float) -> ScoreMap:
    """Fit the map with the least cross-validated error; identity if none is better.

    Identity, too, with too few questions or a gold score that never differs; mixtures with the
    words, where every row has their estimate, and isotonic maps are tried with many questions only.
    """
    questions = len(np.unique(rows.questions))
    needed = needed_questions(rows.gold, target_error)
    facts: dict[str, Any] = {
        "estimator": rows.estimator,
        "n": len(rows.gold),
        "questions": questions,
        "needed": needed,
    }
    if questions < needed:
        why = _too_few(questions, needed, target_error)
        return ScoreMap(method="identity", why=why, **facts)
    if rows.gold.min() == rows.gold.max():
        return ScoreMap(method="identity", why=f"gold is {rows.gold[0]:g} in every row", **facts)
    tried: dict[Method, Array] = {"identity": rows.scores}
    chosen: Method = "identity"
    mixed: tuple[Method, ...] = () if np.isnan(rows.words).any() else ("mixture",)
    maps: tuple[Method, ...] = ("platt", *mixed, "isotonic")
    for method in maps if questions >= MANY_QUESTIONS else maps[:1]:
        tried[method] = _held_out(method, rows)
        if _is_better(rows, tried[method], tried[chosen]):
            chosen = method
    errors = {method: _rmse(rows, scores) for method, scores in tried.items()}
    used: tuple[Method, Method] = "identity", chosen
    facts |= {
        "rmse": tuple(errors[method] for method in used),
        "calibration_error": tuple(
            round(calibration_error(tried[method], rows.gold), 6) for method in used
        ),
        "std_error": errors[chosen],
    }
    if chosen == "identity":
        before, *others = (f"{method} {error:.4f}" for method, error in errors.items())
        before = before.replace("identity", "RMSE")
        why = f"no map is better on held-out rows: {before}, {', '.join(others)}"
        return ScoreMap(method="identity", why=why, **facts)
    return _fit(chosen, rows).model_copy(update=facts)


def _fit(method: Method, rows: _Sample) -> ScoreMap:
    """Fit a map of one method to all rows."""
    fitted: dict[str, Any]
    if method == "platt":
        slope, intercept = platt(rows.scores, rows.gold)
        fitted = {"slope": slope, "intercept": intercept}
    elif method == "mixture":
        slope, words, intercept = mixture(rows.scores, rows.words, rows.gold)
        fitted = {"slope": slope, "words": words, "intercept": intercept}
    else:
        fitted = {"knots": isotonic(rows.scores, rows.gold)}
    return ScoreMap(
        method=method, estimator=rows.estimator, n=len(rows.gold), questions=0, **fitted
    )


def _held_out(method: Method, rows: _Sample) -> Array:
    """Map each row by a fit to the other folds; a question's rows share a fold."""
    folds = np.unique(rows.questions, return_inverse=True)[1] % FOLDS
    mapped = np.empty(len(folds))
    for fold in np.unique(folds):
        fitted = _fit(method, rows.some(folds != fold))
        kept = rows.some(folds == fold)
        mapped[folds == fold] = list(map(fitted, kept.scores.tolist(), kept.words.tolist()))
    return mapped


def _rmse(rows: _Sample, scores: Array) -> float:
    """Return the root mean square error against gold."""
    losses = (scores - rows.gold) ** 2
    return round(math.sqrt(exact_sum(losses) / len(losses)), 6)


def _is_better(rows: _Sample, scores: Array, than: Array) -> bool:
    """Tell whether scores have lower losses by more than one standard error, over questions."""
    gains = (than - rows.gold) ** 2 - (scores - rows.gold) ** 2
    by_question = np.bincount(rows.questions, gains)[np.unique(rows.questions)]
    return bool(by_question.mean() > by_question.std(ddof=1) / math.sqrt(len(by_question)))


# --- Maps from scores to gold. All sums are exact or over sorted rows, whose order does not matter


RIDGE = 1.0
"""Strength with which a Platt map is held near the identity, worth about one row of doubt."""
_DIGITS = 6
_STEPS = 50
_CLOSE = 1e-10


def platt(scores: Array, gold: Array) -> tuple[float, float]:
    """Fit P(gold) = σ(intercept + slope · log-odds of the score) (J. Platt, 1999).

    Gold may be a share: the cross-entropy is minimised, plus ridge/2 · ((slope - 1)² + intercept²),
    so that no rows give the identity and separated rows a finite slope.

    Args:
        scores: scores in [0, 1].
        gold: their gold values, in [0, 1].

    Returns:
        Slope, from 0, and intercept.
    """
    intercept, slope = _weights([scores], gold)
    return slope, intercept


def mixture(scores: Array, words: Array, gold: Array) -> tuple[float, float, float]:
    """Fit P(gold) = σ(intercept + slope · log-odds of the score + weight · those of the words).

    As `platt`; no rows give the score itself, and words the weight 0.

    Args:
        scores: a local model's scores, in [0, 1].
        words: the embedded judge's, in [0, 1].
        gold: their gold values, in [0, 1].

    Returns:
        Slope and weight, both from 0, and intercept.
    """
    intercept, slope, weight = _weights([scores, words], gold)
    return slope, weight, intercept


def _weights(columns: Sequence[Array], gold: Array) -> list[float]:
    """Fit an intercept and the weight of each column's log-odds, from 0."""
    order = np.lexsort((gold, *reversed(columns)))
    odds = [list(map(log_odds, column[order].tolist())) for column in columns]
    design = np.array([[1.0] * len(order), *odds], "f8")
    # A convex function has its constrained minimum at the free one of some of its weights.
    sides = itertools.product((True, False), repeat=len(columns))
    fits = [_newton(design, gold[order], np.array([True, *side])) for side in sides]
    _, parameters = min(fit for fit in fits if min(fit[1][1:]) >= 0)
    return [round(parameter, _DIGITS) for parameter in parameters]


def _newton(design: Array, gold: Array, free: Array) -> tuple[float, list[float]]:
    """Minimise the penalised log loss over the free parameters by Newton's method, halving steps.

    The other parameters are 0. The ridge penalty draws the first weight to 1 and the others to 0.

    Args:
        design: a row of ones, and the log-odds of each column.
        gold: their gold values, in [0, 1].
        free: of intercept and weights.

    Returns:
        The least loss; intercept and weights.
    """
    prior = np.eye(len(design))[1]
    current = prior * free

    def loss(parameters: Array) -> Array:
        """Return the penalised log loss of the parameters."""
        logits = parameters @ design
        ridge = RIDGE / 2 * ((parameters - prior) ** 2).sum()
        return (np.logaddexp(0, logits) - gold * logits).sum() + ridge

    for _ in range(_STEPS):
        p = (1 + np.tanh(current @ design / 2)) / 2
        gradient = design @ (p - gold) + RIDGE * (current - prior)
        hessian = design * p * (1 - p) @ design.T + RIDGE * np.eye(len(design))
        step = np.zeros(len(design))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        while abs(step).max() > _CLOSE and loss(current - step) > loss(current):
            step /= 2
        if abs(step).max() < _CLOSE:
            break
        current = current - step
    return float(loss(current)), current.tolist()


class _Level(NamedTuple):
    """Neighbouring rows that share one level."""

    n: int
    scores: float
    """Sum of the scores."""
    gold: float
    """Sum of the gold values."""

    @property
    def mean(self) -> float:
        return self.gold / self.n

    def with_next(self, other: _Level) -> _Level:
        """Merge two levels of an isotonic fit."""
        return _Level(self.n + other.n, self.scores + other.scores, self.gold + other.gold)


def isotonic(scores: Array, gold: Array, most: int = MOST_KNOTS) -> tuple[tuple[float, float], ...]:
    """Pool adjacent violators: the ascending levels closest to gold in squares.

    Rows of one score share a level (Ayer, Brunk, Ewing, Reid and Silverman, 1955). Then the
    neighbours that differ least, weighted by their rows, are joined until `most` are left.

    Returns:
        The mean score and the mean gold of each level, both ascending: the knots of a line.
    """
    levels: list[_Level] = []
    rows = sorted(zip(scores.tolist(), gold.tolist(), strict=True))
    for score, group in itertools.groupby(rows, lambda row: row[0]):
        values = [value for _, value in group]
        level = _Level(len(values), score * len(values), math.fsum(values))
        while levels and levels[-1].mean >= level.mean:
            level = levels.pop().with_next(level)
        levels.append(level)
    while len(levels) > most:
        pair = min(
            range(len(levels) - 1), key=lambda i: (_merging_cost(levels[i], levels[i + 1]), i)
        )
        levels[pair : pair + 2] = [levels[pair].with_next(levels[pair + 1])]
    knots: list[tuple[float, float]] = []
    for level in levels:
        x, y = (
            min(1.0, max(0.0, round(value, _DIGITS)))
            for value in (level.scores / level.n, level.mean)
        )
        if not knots or x > knots[-1][0]:
            knots.append((x, y))
    return tuple(knots)


def _merging_cost(level: _Level, other: _Level) -> float:
    """Return by how much the sum of squares grows when two levels are merged."""
    return level.n * other.n / (level.n + other.n) * (level.mean - other.mean) ** 2
