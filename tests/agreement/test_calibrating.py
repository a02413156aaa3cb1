"""calibrate: what is chosen on held-out rows, what is refused, and real rows calibrated by half."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_readers as tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import promised_by, run_python, text_of

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.agreement import Gold, Pair, calibrate, calibrating, match
from rag_eval_integrations.agreement.calibrating import (
    RIDGE,
    isotonic,
    mixture,
    needed_questions,
    platt,
)
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import OnnxJudge
from rag_eval_integrations.judges.calibration import EDGE, MOST_KNOTS, log_odds
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import By, Score
from rag_eval_integrations.records.score import ScoreEstimate
from rag_eval_integrations.sentences import Punkt

from .conftest import make_evaluation, make_labels

JUDGE = By(judge="j", judge_version="1", formulas="gpt-labeling")
GOLD = By(judge="gold", formulas="gpt-labeling")
Truth = Callable[[float], float]


def pair(
    number: int, estimate: float | None, gold: float, *, name: str = "adherence", by: By = JUDGE,
    value: float = 1.0, flags: tuple[str, ...] = (), words: float | None = None,
) -> Pair:  # fmt: skip
    made = None
    if estimate is not None:
        made = ScoreEstimate(value=estimate, std_error=0.1, method="calibrated")
    score = Score(name=name, status="scored", value=value, method="labels", by=by, estimate=made)
    identity, question = str(number), f"{number}?"
    kept = None if words is None else make_labels(estimates={"adherence@words": (words, 0.1)})
    predicted = make_evaluation(identity, question=question, flags=flags, labels=kept)
    labelled = make_evaluation(identity, {name: gold}, by=GOLD, question=question)
    return changed(Pair(predicted, labelled), scores={name: score})


def changed(row: Pair, **fields: object) -> Pair:
    """A row whose predicted side has other fields."""
    return Pair(row.predicted.model_copy(update=fields), row.gold)


def drawn(n: int, truth: Truth, seed: int = 1) -> list[Pair]:
    """Rows whose gold is 1 with the probability that `truth` says for an estimate."""
    chance = random.Random(seed)
    estimates = [chance.uniform(0.02, 0.98) for _ in range(n)]
    return [pair(place, p, float(chance.random() < truth(p))) for place, p in enumerate(estimates)]


def fit_of(pairs: Sequence[Pair], name: str = "adherence", **options: float) -> Any:
    """The map of a score, which has all of its optional fields where rows were held out."""
    return calibrate(pairs, name="mine", **options).judges[0].scores[name]


def test_sections_of_the_prompt_are_of_one_judge() -> None:
    """Rows with earlier turns and without are fitted together."""
    rows = drawn(120, lambda p: 0.3 + 0.4 * p)
    for place, row in enumerate(rows):
        version = "labels-1+history-1" if place % 2 else "labels-1"
        score = row.predicted.scores["adherence"]
        by = score.by.model_copy(update={"prompt_version": version})
        rows[place] = changed(row, scores={"adherence": score.model_copy(update={"by": by})})

    [maps] = calibrate(rows, name="mine", target_error=0.1).judges

    assert (maps.prompt_version, maps.scores["adherence"].n) == ("labels-1", 120)


def test_a_judge_that_is_too_sure_is_mapped_by_platt() -> None:
    """Held-out error and calibration error fall; the level at the end is near the truth."""
    fitted = fit_of(drawn(199, lambda p: 0.3 + 0.4 * p), target_error=0.1)

    assert fitted.method == "platt"
    assert fitted.rmse[1] < fitted.rmse[0]
    assert fitted.calibration_error[1] < fitted.calibration_error[0]
    assert fitted(0.95) == pytest.approx(0.68, abs=0.12)
    assert (fitted.n, fitted.questions) == (199, 199)
    assert (fitted.estimator, fitted.why) == ("calibrated", "")


def test_a_step_needs_many_rows_and_is_then_isotonic() -> None:
    """Platt's curve has no step; fewer than 200 questions are not tried."""

    def step(p: float) -> float:
        return 0.05 if p < 0.3 else 0.55 if p < 0.9 else 0.6

    many, few = fit_of(drawn(1_500, step)), fit_of(drawn(199, step), target_error=0.1)

    assert many.method == "isotonic"
    assert 2 <= len(many.knots) <= 6
    assert few.method != "isotonic"


def mixed_rows(n: int, seed: int = 5) -> list[Pair]:
    """Rows of a local model that tells half of what is wrong, and words that tell the other half."""
    chance, rows = random.Random(seed), []
    for place in range(n):
        model, words = chance.uniform(0.02, 0.98), chance.uniform(0.02, 0.98)
        truth = 1 / (1 + math.exp(-log_odds(model) / 2 - log_odds(words)))
        rows.append(pair(place, model, float(chance.random() < truth), words=words))
    return rows


def test_words_that_tell_more_join_a_local_model() -> None:
    """With the weights that gold has, from 200 questions, and better held out than either alone."""
    rows = mixed_rows(1_500)
    fitted, few = fit_of(rows), fit_of(rows[:199], target_error=0.1)
    alone = fit_of([changed(row, labels=None) for row in rows])

    assert (fitted.method, few.method) == ("mixture", "platt")
    assert (fitted.slope, fitted.words) == pytest.approx((0.5, 1.0), abs=0.15)
    assert fitted.rmse[1] < 0.9 * alone.rmse[1]
    assert fitted(0.5, 0.9) > 0.8 > 0.2 > fitted(0.5, 0.1)
    assert fit_of(rows[::-1]) == fitted


def test_a_mixture_needs_the_words_of_every_row() -> None:
    """With calls in another language among them, the model is mapped alone."""
    rows = mixed_rows(600)

    fitted = fit_of([changed(rows[0], labels=None), *rows[1:]])

    assert (fitted.method in ("platt", "isotonic"), fitted.words) == (True, 0.0)


def test_on_real_rows_the_words_join_a_model_that_knows_less(
    ragbench: list[Path], tmp_path: Path
) -> None:
    """A real ONNX model, labels by GPT-4: nearer to gold on held-out questions, and as fitted."""
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    [path] = [path for path in ragbench if path.name.startswith("covidqa_validation")]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    words = tiny.vocabulary(text for row in rows for text in row["documents"])
    short = {"max_position_embeddings": 256}
    judge = OnnxJudge(tiny.pair_model(tmp_path / "m", words, config=short), max_windows=1)
    labelled = [labelled_from(row, Punkt()) for row in rows]
    predicted = [RagEvaluator(judge).evaluate_sync(row.call.call) for row in labelled]
    gold = [Gold(score_labelled(row, [Trace()])) for row in labelled]

    calibration = calibrate(match(predicted, gold).pairs, name="mine")

    fitted: Any = calibration.judges[0].scores["adherence"]
    assert (fitted.method, fitted.words > 0.5) == ("mixture", True)
    assert fitted.rmse[1] < fitted.rmse[0] - 0.1
    evaluator = RagEvaluator(judge, [Trace(calibration=calibration)])
    applied = evaluator.evaluate_sync(labelled[0].call.call)
    labels: Any = predicted[0].labels
    mapped = fitted(labels.adherence_probability(), labels.adherence_by_words())
    assert applied.scores["adherence"].probability == mapped


def test_words_that_tell_nothing_are_left_out() -> None:
    """A model that knows all of it is not mixed for the sake of it."""
    chance = random.Random(6)
    rows = drawn(600, lambda p: p)

    fitted = fit_of([
        changed(row, labels=make_labels(estimates={"adherence@words": (chance.random(), 0.1)}))
        for row in rows
    ])  # fmt: skip

    assert (fitted.method, "mixture 0." in fitted.why) == ("identity", True)


def test_a_calibrated_judge_is_left_as_it_is() -> None:
    """No map wins on held-out rows, and the reason has the figures."""
    fitted = fit_of(drawn(600, lambda p: p))

    assert fitted.method == "identity"
    assert "no map is better on held-out rows: RMSE 0." in fitted.why
    assert fitted.rmse[0] == fitted.rmse[1]
    assert fitted(0.37) == 0.37


def test_a_judge_without_estimates_is_mapped_by_its_values() -> None:
    """Two levels, from the verdicts alone."""
    chance = random.Random(3)
    rows = []
    for place in range(400):
        value = float(chance.random() < 0.7)
        gold = float(chance.random() < (0.8 if value else 0.4))
        rows.append(pair(place, None, gold, value=value))

    fitted = fit_of(rows)

    assert (fitted.method, fitted.estimator) == ("platt", "labels")
    assert (fitted(0.0), fitted(1.0)) == pytest.approx((0.4, 0.8), abs=0.07)


def test_empty_cases_of_the_formulas_are_not_fitted() -> None:
    """Nothing used of nothing relevant is not a verdict on a share."""
    chance = random.Random(4)
    rows = []
    for place in range(300):
        gold, value = round(chance.random(), 1), chance.random()
        row = pair(place, None, gold, name="completeness", value=value)
        labels = make_labels("" if place < 100 else "0a", "" if place < 100 else "0a")
        rows.append(changed(row, labels=labels))

    fitted = fit_of(rows, "completeness")

    assert (fitted.n, fitted.estimator) == (200, "labels")


def test_of_two_kinds_of_estimates_the_commoner_is_fitted() -> None:
    """As an encoder has them, of English calls and of others; nothing is mapped by both."""
    rows = drawn(300, lambda p: 0.3 + 0.4 * p)
    for place in range(0, 300, 5):
        score = rows[place].predicted.scores["adherence"]
        assert score.estimate is not None
        other = score.estimate.model_copy(update={"method": "expected"})
        rows[place] = changed(
            rows[place], scores={"adherence": score.model_copy(update={"estimate": other})}
        )

    fitted = fit_of(rows, target_error=0.1)

    assert (fitted.estimator, fitted.n) == ("calibrated", 240)


def test_repeated_questions_count_once() -> None:
    """A hundred answers to ten questions are ten questions."""
    rows = drawn(300, lambda p: p)
    few = [changed(each, question=f"{place % 10}?") for place, each in enumerate(rows)]

    with pytest.raises(ConfigurationError, match=r"10 questions, and \d+ are needed"):
        calibrate(few, name="mine")


def test_the_order_of_rows_does_not_matter() -> None:
    """To the last bit, hash included."""
    rows = drawn(400, lambda p: p * p)

    assert calibrate(rows, name="a") == calibrate(rows[::-1], name="a")
    assert calibrate(rows, name="a").hash == calibrate(rows[::-1], name="a").hash


def test_how_many_are_needed_follows_the_formula() -> None:
    """2 s² / e²: 200 for even odds and .05, four times as many for half the error, at least 30."""
    for gold, error, needed in (
        ([0.0, 1.0] * 50, 0.05, 200),
        ([0.0, 1.0] * 50, 0.025, 800),
        ([1.0] * 98, 0.05, 30),
        ([1.0] * 8, 0.05, math.ceil(800 * 0.9 * 0.1)),  # unseen is not never
        ([0.2, 0.4, 0.6, 0.8], 0.05, math.ceil(800 * 0.2 / 3)),
    ):
        assert needed_questions(np.array(gold), error) == needed


def test_too_few_rows_are_refused_with_what_is_needed() -> None:
    """Before a judge is asked, and of rows that a judge made."""
    rows = drawn(60, lambda p: 0.5)

    why = r"60 questions, and \d+ are needed for a standard"
    with pytest.raises(ConfigurationError, match=why):
        calibrate(rows, name="mine")
    calibrate(rows, name="mine", target_error=0.1)
    for error in (0.0, 0.6, math.nan):
        with pytest.raises(ConfigurationError, match="target_error"):
            calibrate(rows, name="mine", target_error=error)


def test_gold_of_one_value_teaches_nothing() -> None:
    """Said, not fitted."""
    fitted = fit_of([pair(place, 0.5 + place / 1000, 1.0) for place in range(100)])

    assert (fitted.method, fitted.why) == ("identity", "gold is 1 in every row")


def test_judges_of_a_cascade_have_maps_of_their_own() -> None:
    """Each with its own number of rows; one with too few is left as it is."""
    other = By(judge="second", formulas="gpt-labeling")
    flags = ("cascade_second",)
    rows = [changed(row, flags=("cascade_first",)) for row in drawn(250, lambda p: 0.5 * p)]
    rows += [pair(1000 + n, 0.9, float(n % 2), by=other, flags=flags) for n in range(20)]

    calibration = calibrate(rows, name="mine")

    methods = {maps.judge: maps.scores["adherence"].method for maps in calibration.judges}
    assert methods == {"j": "platt", "second": "identity"}
    assert "20 questions, and" in calibration.judges[1].scores["adherence"].why
    with pytest.raises(ConfigurationError, match="judge"):  # not a cascade: a mixed file
        calibrate([*drawn(250, lambda p: p), pair(9_999, 0.9, 0.0, by=other)], name="mine")


def test_calibrated_rows_are_not_calibrated_again() -> None:
    """A map of a map would be applied to scores that never pass the first one."""
    by = JUDGE.model_copy(update={"calibration": "mine 0123 (n=3)"})
    rows = [pair(place, 0.5, float(place % 2), by=by) for place in range(300)]

    with pytest.raises(ConfigurationError, match="made `adherence` already"):
        calibrate(rows, name="again")


def test_other_formulas_than_golds_are_refused() -> None:
    """As by `agree`."""
    rows = drawn(300, lambda p: p)
    other = make_evaluation("0", {"adherence": 1.0}, by=By(judge="gold", formulas="ragbench"))

    with pytest.raises(ConfigurationError, match="formulas"):
        calibrate([Pair(each.predicted, other) for each in rows], name="mine")
    with pytest.raises(ConfigurationError, match="none has TRACe scores"):
        calibrate([Pair(make_evaluation("0"), make_evaluation("0"))], name="mine")


# --- Maps


COARSE = st.integers(0, 8).map(lambda number: number / 8)
SCORED = st.tuples(st.floats(0, 1) | COARSE, st.floats(0, 1) | st.sampled_from([0.0, 1.0]))
ROWS = st.lists(SCORED, min_size=1, max_size=40)
Row = tuple[float, float]


def columns(rows: list[Row]) -> tuple[Any, Any]:
    return np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def naive_levels(rows: list[Row]) -> list[float]:
    """Levels by the min-max formula: the largest, over starts, of the least mean to any end."""
    scores = sorted({score for score, _ in rows})
    gold = [[value for score, value in rows if score == each] for each in scores]

    def mean(start: int, stop: int) -> float:
        values = [value for group in gold[start : stop + 1] for value in group]
        return math.fsum(values) / len(values)

    places = range(len(scores))
    return [
        max(min(mean(start, stop) for stop in places[place:]) for start in places[: place + 1])
        for place in places
    ]


@given(ROWS)
def test_pooling_gives_the_levels_of_the_definition(rows: list[Row]) -> None:
    """The min-max formula is what isotonic regression is; knots of equal score are one."""
    levels = [round(level, 6) for level in naive_levels(rows)]

    knots = isotonic(*columns(rows), most=100)

    assert all(min(abs(y - level) for level in levels) < 2e-6 for _, y in knots)
    assert knots[0][1] == pytest.approx(levels[0], abs=2e-6)
    assert list(knots) == sorted(knots)


def naive_loss(rows: list[Row], slope: float, intercept: float) -> float:
    total = RIDGE / 2 * ((slope - 1) ** 2 + intercept**2)
    for score, gold in rows:
        p = 1 / (1 + math.exp(-(intercept + slope * log_odds(score))))
        total -= gold * math.log(p) + (1 - gold) * math.log(1 - p)
    return total


@given(ROWS)
def test_a_platt_map_is_where_no_step_lowers_the_loss(rows: list[Row]) -> None:
    """The loss is written out anew; the slope is never negative, which would turn ranks over."""
    slope, intercept = platt(*columns(rows))
    least = naive_loss(rows, slope, intercept)

    assert slope >= 0
    for step in (1e-3, 1e-2, 0.3):
        for across, up in ((step, 0), (-step, 0), (0, step), (0, -step), (step, step)):
            if slope + across >= 0:
                assert naive_loss(rows, slope + across, intercept + up) >= least - 1e-7


BOTH = st.lists(st.tuples(SCORED, st.floats(0, 1)), min_size=1, max_size=30)


@given(BOTH)
def test_a_mixture_is_where_no_step_lowers_the_loss(rows: list[tuple[Row, float]]) -> None:
    """The loss is written out anew; neither weight is negative."""
    model, gold, words = map(np.array, zip(*((*row, word) for row, word in rows), strict=True))

    def loss(slope: float, weight: float, intercept: float) -> float:
        total = RIDGE / 2 * ((slope - 1) ** 2 + weight**2 + intercept**2)
        for score, word, labelled in zip(model, words, gold, strict=True):
            odds = intercept + slope * log_odds(score) + weight * log_odds(word)
            p = 1 / (1 + math.exp(-odds))
            total -= labelled * math.log(p) + (1 - labelled) * math.log(1 - p)
        return float(total)

    fitted = mixture(model, words, gold)
    least = loss(*fitted)

    assert min(fitted[:2]) >= 0
    for step in itertools.product((-0.3, -1e-2, 0, 1e-2, 0.3), repeat=3):
        slope, weight, intercept = map(sum, zip(fitted, step, strict=True))
        if min(slope, weight) >= 0:
            assert loss(slope, weight, intercept) >= least - 1e-7


WEIGHTS = st.floats(0, 1.5)


@settings(max_examples=30)
@given(WEIGHTS, WEIGHTS, st.floats(-1, 1))
def test_weights_recover(slope: float, weight: float, intercept: float) -> None:
    """Gold that is a mixture gives back what it was mixed by, but for the ridge."""
    chance = np.random.default_rng(0)
    model, words = chance.uniform(0.05, 0.95, (2, 2_000))
    odds = [
        intercept + slope * log_odds(m) + weight * log_odds(w)
        for m, w in zip(model, words, strict=True)
    ]

    fitted = mixture(model, words, 1 / (1 + np.exp(-np.array(odds))))

    assert fitted == pytest.approx((slope, weight, intercept), abs=0.02)


def test_the_page_about_calibration_says_what_the_code_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its example prints what its comment says, and its limits are those that a reader plans with."""
    page = text_of("docs/calibration.md")
    run_python("docs/calibration.md")

    assert capsys.readouterr().out.splitlines() == promised_by("docs/calibration.md")
    assert (calibrating.FOLDS, calibrating.LEAST_QUESTIONS) == (5, 30)
    assert (calibrating.MANY_QUESTIONS, calibrating.TARGET_ERROR) == (200, 0.05)
    assert (MOST_KNOTS, EDGE) == (6, 0.005)
    for words in ("five folds", "at least 30", "from 200 questions", "e = .05", "at most 6", ".005",
                  *(f"`{name}`" for name in calibrating.CALIBRATED)):  # fmt: skip
        assert words in page
