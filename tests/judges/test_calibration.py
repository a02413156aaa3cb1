"""Calibration: the file, the maps, and who may be calibrated by it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import CascadeJudge, EmbeddedJudge, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.judges import Calibration
from rag_eval_integrations.judges._prompt import HEADERS_PART, HISTORY_PART, PROMPT_VERSION
from rag_eval_integrations.judges.calibration import JudgeMaps, ScoreMap
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import By, Capture, Document, Evaluation, RagCall
from rag_eval_integrations.records.mean import Means
from rag_eval_integrations.testing import ScriptedModel, labels_reply, small_call

PLATT = ScoreMap(
    method="platt", estimator="calibrated", slope=0.5, intercept=-1.0, n=200, questions=150,
    std_error=0.2, rmse=(0.3, 0.2), calibration_error=(0.1, 0.02),
)  # fmt: skip
STEPS = ScoreMap(
    method="isotonic", estimator="calibrated", knots=((0.2, 0.1), (0.4, 0.5)), n=300, questions=300,
    std_error=0.1,
)  # fmt: skip
MIXED = ScoreMap(
    method="mixture", estimator="calibrated", slope=0.5, words=2.0, intercept=-1.0, n=200,
    questions=200, std_error=0.2,
)  # fmt: skip
OF_VALUES = PLATT.model_copy(update={"estimator": "labels"})
SAME = ScoreMap(method="identity", estimator="calibrated", n=30, questions=30, why="no map")
EMBEDDED = EmbeddedJudge()


def maps_of(
    judge: str = "embedded", version: str | None = EMBEDDED.version, **scores: ScoreMap
) -> JudgeMaps:
    return JudgeMaps(judge=judge, judge_version=version, scores=scores)


def calibration(*judges: JudgeMaps, **fields: Any) -> Calibration:
    given = {"name": "mine", "formulas": "gpt-labeling", "n": 200, "questions": 150,
             "target_error": 0.05, **fields}  # fmt: skip
    return Calibration(judges=judges or (maps_of(adherence=PLATT, completeness=STEPS),), **given)


def evaluated(judge: Any, found: Calibration) -> Evaluation:
    return RagEvaluator(judge, [Trace(calibration=found)]).evaluate_sync(small_call().call)


def test_it_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """To the last bit, with the same hash and stamp."""
    made = calibration()
    path = tmp_path / "c.json"
    path.write_text(made.to_json())

    assert Calibration.read(path) == made
    assert made.stamp == f"mine {made.hash} (n=200)"
    assert len(made.hash) == 12


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content, scores: scores["adherence"].update(slope=2.0), "changed"),
        (lambda content, scores: content.pop("hash"), "changed"),
        (lambda content, scores: content.update(format="calibration 2"), "not a calibration file"),
        (lambda content, scores: content.update(more=1), "more"),
        (lambda content, scores: scores["completeness"].update(knots=[[1, 1], [0, 1]]), "ascend"),
        (lambda content, scores: scores["completeness"].update(knots=[]), "0 knots"),
        (lambda content, scores: scores["adherence"].update(slope=-1), "slope"),
        (lambda content, scores: scores["adherence"].update(words=-1), "words"),
        (lambda content, scores: scores["adherence"].update(words=2.0), "changed"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path: Path, change: Any, why: str) -> None:
    """Scores would say that they were calibrated by something else."""
    content = json.loads(calibration().to_json())
    change(content, content["judges"][0]["scores"])
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content))

    with pytest.raises(InputError, match=why):
        Calibration.read(path)


def test_a_file_without_a_mixture_is_what_it_was(tmp_path: Path) -> None:
    """The weight of the words stands in files of mixtures alone: others keep their bytes and hash."""
    alone, mixed = (calibration(maps_of("j", "1", adherence=fit)) for fit in (PLATT, MIXED))
    path = tmp_path / "c.json"
    path.write_text(mixed.to_json())

    assert alone.hash == "23f2c571af89"
    assert '"words"' not in alone.to_json()
    assert Calibration.read(path) == mixed


def test_maps_are_what_they_say() -> None:
    """By hand: σ(-1) in the middle for Platt; lines between knots, constant beyond."""
    # Even odds of the model, and of the words 4 : 1, which count twice.
    assert MIXED(0.5, 0.8) == pytest.approx(1 / (1 + math.exp(1) / 16), abs=1e-6)
    assert PLATT(0.5) == pytest.approx(0.268941, abs=1e-6)
    assert [STEPS(x) for x in (0.0, 0.2, 0.3, 0.4, 1.0)] == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5])
    assert SAME(0.123456789) == 0.123456789
    assert 0 < PLATT(0.0) < PLATT(1.0) < 1


def test_estimates_are_calibrated_and_values_stay() -> None:
    """The reason has the calibrated number; every score is stamped, and the fingerprint differs."""
    found = calibration()
    before = RagEvaluator(EMBEDDED).evaluate_sync(small_call().call)
    after = evaluated(EMBEDDED, found)

    values = [[(score.name, score.value) for score in of.scores.values()] for of in (before, after)]
    assert values[0] == values[1]
    assert {score.by.calibration for score in after.scores.values()} == {found.stamp}
    assert {score.by.calibration for score in before.scores.values()} == {None}
    raw: dict[str, Any] = dict(before.scores)
    made: dict[str, Any] = dict(after.scores)
    score = made["adherence"]
    assert score.probability == score.estimate.value == PLATT(raw["adherence"].probability)
    assert score.estimate.method == "calibration"
    estimate = made["completeness"].estimate
    expected = (STEPS(raw["completeness"].estimate.value), 0.1)
    assert (estimate.value, estimate.std_error) == expected
    assert made["context_relevance"].estimate == raw["context_relevance"].estimate
    assert before.fingerprint != after.fingerprint
    assert Evaluation.model_validate_json(after.model_dump_json()) == after
    means = Means()
    for evaluation in (before, after):
        means.add(evaluation)
    with pytest.raises(ValueError, match="made by 2 different"):
        means.mean("adherence")


def test_a_judge_of_verdicts_alone_gets_estimates() -> None:
    """Of the value, where the map was fitted on values."""
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True), "b": ([], True)}))
    found = calibration(maps_of("scripted", "1", adherence=OF_VALUES))
    score: Any = evaluated(judge, found).scores["adherence"]

    assert (score.value, score.probability) == (1.0, OF_VALUES(1.0))
    assert score.estimate.value == score.probability


def test_a_mixture_needs_the_words() -> None:
    """Of a call that they cannot be read in, the model's own estimate stays, and says so."""
    estimates: dict[str, Any] = {"adherence": (0.3, 0.1), "adherence@words": (0.9, 0.1)}
    found = calibration(maps_of("scripted", "1", adherence=MIXED))
    scores: list[Any] = []
    for kept in (estimates, {"adherence": (0.3, 0.1)}):
        support: Any = {"a": (["0a"], True), "b": ([], True)}
        judge = ScriptedJudge(labels_of(["0a"], ["0a"], support, estimates=kept))
        scores.append(evaluated(judge, found).scores["adherence"])

    mixed, alone = scores
    assert mixed.probability == mixed.estimate.value == MIXED(0.3, 0.9)
    assert mixed.estimate.method == "calibration"
    assert (alone.probability, alone.estimate.method) == (0.3, "calibrated")
    assert "not measured" not in str(mixed.warnings + alone.warnings)


def test_an_estimate_of_another_kind_is_not_mapped() -> None:
    """An encoder's cosines are not what a map of the words was fitted to."""
    chances = {"relevant_probabilities": {"0a": 0.9, "0b": 0.2, "1a": 0.2}, "estimates": {}}
    chances["utilized_probabilities"] = chances["relevant_probabilities"]
    support: Any = {"a": (["0a"], True), "b": ([], True)}
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], support, **chances))
    by_cosines = PLATT.model_copy(update={"estimator": "expected"})

    methods: list[Any] = [
        evaluated(judge, calibration(maps_of("scripted", "1", context_relevance=fit)))
        .scores["context_relevance"].estimate
        for fit in (PLATT, by_cosines)
    ]  # fmt: skip

    assert [estimate.method for estimate in methods] == ["expected", "calibration"]


def test_an_empty_case_of_the_formulas_gets_no_estimate() -> None:
    """Where nothing is relevant the formulas decide, not a fit."""
    judge = ScriptedJudge(labels_of([], [], {"a": ([], True), "b": ([], True)}))
    maps = maps_of("scripted", "1", completeness=OF_VALUES, context_relevance=OF_VALUES)

    scores = evaluated(judge, calibration(maps)).scores

    assert scores["completeness"].estimate is None
    assert scores["completeness"].value == 1.0
    assert scores["context_relevance"].estimate is not None


def test_an_estimator_that_changed_is_an_error_of_the_scores() -> None:
    """A map of probabilities does not fit verdicts."""
    evaluation = evaluated(EMBEDDED, calibration(maps_of(adherence=OF_VALUES)))

    assert "was fitted on the estimator 'labels'" in str(evaluation.error)


def test_another_judge_is_refused_at_construction() -> None:
    """By name, version, and as part of a cascade; the message names both sides."""
    second = ScriptedJudge(labels_of([], [], {}))
    metrics = [Trace(calibration=calibration())]
    with pytest.raises(ConfigurationError, match=r"fitted on the judge embedded .*scripted 1; run"):
        RagEvaluator(second, metrics)
    old = calibration(maps_of(version="0", adherence=PLATT))
    with pytest.raises(ConfigurationError, match="embedded 0"):
        RagEvaluator(EMBEDDED, [Trace(calibration=old)])
    cascade = CascadeJudge(EMBEDDED, second)
    with pytest.raises(ConfigurationError, match="scripted 1"):
        RagEvaluator(cascade, metrics)
    both = calibration(maps_of(adherence=PLATT), maps_of("scripted", "1", adherence=SAME))
    evaluation = evaluated(cascade, both)
    assert evaluation.error is None
    assert {score.by.calibration for score in evaluation.scores.values()} == {both.stamp}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"formulas": "ragbench"}, "fitted with formulas"),
        ({"relevance_baseline": 20}, "fitted with relevance_baseline"),
        ({"hard": True}, "hard"),
    ],
)
def test_scores_made_otherwise_are_refused(fields: dict[str, Any], why: str) -> None:
    """When the metric is made."""
    with pytest.raises(ConfigurationError, match=why):
        Trace(calibration=calibration(), **fields)


def test_a_retrieval_alone_keeps_the_judges_estimate() -> None:
    """The judge makes it from the question alone, which is not what the map was fitted on."""
    capture = Capture(framework="plain", documents_from="retriever")
    call = small_call().call
    alone = RagCall(call.question, call.documents, None, capture=capture)
    found = Trace(calibration=calibration(maps_of(context_relevance=PLATT)))

    plain = RagEvaluator(EMBEDDED).evaluate_sync(alone).scores["context_relevance"]
    fitted = RagEvaluator(EMBEDDED, [found]).evaluate_sync(alone).scores["context_relevance"]

    assert plain.estimate is not None
    assert fitted.estimate == plain.estimate


def test_a_labelling_by_another_model_is_an_error() -> None:
    """What only the labelling tells, such as the model's full name, is checked then."""
    maps = maps_of(adherence=PLATT).model_copy(update={"model": "another"})

    evaluation = evaluated(EMBEDDED, calibration(maps))

    assert "this call was labelled by embedded" in str(evaluation.error)
    with pytest.raises(ConfigurationError, match="another"):
        calibration(maps).maps_for(By(judge="embedded"))


@pytest.mark.parametrize("header", [None, "ferry.md"])
@pytest.mark.parametrize("part", ["", HEADERS_PART, f"{HISTORY_PART}{HEADERS_PART}"])
def test_calls_with_headers_are_of_the_same_judge(part: str, header: str | None) -> None:
    """The part of the prompt's version that a call's sections add tells no two judges apart."""
    fitted = maps_of("scripted", "1", adherence=OF_VALUES)
    version = f"{PROMPT_VERSION}{part}"
    found = calibration(fitted.model_copy(update={"prompt_version": version}))
    judge = ScriptedModel([labels_reply(["0a"], ["a"])])
    call = RagCall("When?", [Document("The ferry leaves at nine.", header=header)], "At nine.")

    evaluation = RagEvaluator(judge, [Trace(calibration=found)]).evaluate_sync(call)

    assert evaluation.scores["adherence"].probability == OF_VALUES(1.0)
