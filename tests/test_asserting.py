"""`assert_scores`: what passes, what fails, and that the message says why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hostile import HOSTILE, acting
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, Score
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import JudgeInfo, Sentences
from rag_eval_integrations.testing import ScriptedModel, assert_scores, labels_reply, small_call


def made(
    scores: Mapping[str, float | None], *, question: str = "When?", threshold: float | None = None
) -> Evaluation:
    """An evaluation with these values; None for a score that is unscored."""
    return Evaluation(
        id="row-1",
        row_key="0" * 64,
        question=question,
        response="At nine.",
        scores={
            name: Score(name=name, status="scored", value=value, threshold=threshold)
            if value is not None
            else Score(
                name=name, status="unscored", unscored="no_context", reason="there is no document"
            )
            for name, value in scores.items()
        },
        labels=None,
        sentences=Sentences(),
        judge=JudgeInfo(name="by hand"),
    )


def judged(response: str = "The ferry leaves at nine. It is painted green.") -> Evaluation:
    """A small call, of which the judge finds both response sentences unsupported."""
    model = ScriptedModel([labels_reply(["0a", "0b"], ["a", "b"], supported=False)])
    call = RagCall(
        question="When does the ferry leave?",
        documents=small_call().call.documents,
        response=response,
        id="q-1",
    )
    return RagEvaluator(model).evaluate_sync(call)


def message(
    evaluation: Evaluation | Iterable[Evaluation], *args: Any, **minimums: Any
) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as failed:
        assert_scores(evaluation, *args, **minimums)
    return str(failed.value).splitlines()


# --- What passes


def test_a_score_at_its_minimum_passes() -> None:
    """And one above it."""
    assert_scores(made({"adherence": 1.0, "completeness": 0.7}), adherence=1.0, completeness=0.6)


@pytest.mark.parametrize("value", [0.1 + 0.2 + 0.3 - 1e-12, 0.6 - 5e-10, 1 - 0.4])
def test_the_last_bits_of_a_float_fail_nothing(value: float) -> None:
    """0.5999999999 of a sum that should be 0.6 is not below 0.6."""
    assert_scores(made({"coherence": value}), coherence=0.6)


def test_a_value_that_would_be_printed_as_its_minimum_has_more_digits() -> None:
    """Never "0.60 < 0.6"."""
    assert message(made({"coherence": 0.5999}), coherence=0.6)[0] == "coherence 0.5999 < 0.6"


@given(st.floats(0, 1), st.floats(0, 1))
def test_it_fails_exactly_below_the_minimum(value: float, minimum: float) -> None:
    """By more than a billionth; and the message shows a smaller number than the minimum."""
    if value >= minimum - 1e-9:
        assert_scores(made({"coherence": value}), coherence=minimum)
        return
    shown = message(made({"coherence": value}), coherence=minimum)[0].split()
    assert float(shown[1]) < minimum


def test_thresholds_are_taken_without_minimums() -> None:
    """Those of the scores themselves; without any there is nothing to assert."""
    assert_scores(made({"adherence": 0.8}, threshold=0.8))
    assert message(made({"adherence": 0.7}, threshold=0.8))[0] == "adherence 0.70 < 0.8"
    with pytest.raises(ConfigurationError, match="none has a threshold"):
        assert_scores(made({"adherence": 1.0}))


# --- Names


def test_a_prefix_may_be_left_out() -> None:
    """The score of `GEval("coherence")` is called `geval:coherence`."""
    evaluation = made({"geval:coherence": 0.5, "adherence": 1.0})

    assert_scores(evaluation, coherence=0.5)
    assert message(evaluation, coherence=0.6)[0] == "geval:coherence 0.50 < 0.6"
    assert message(evaluation, {"geval:coherence": 0.6})[0] == "geval:coherence 0.50 < 0.6"


def test_a_whole_name_is_preferred() -> None:
    """And a short one that means two scores is refused with both."""
    assert_scores(made({"coherence": 1.0, "geval:coherence": 0.0}), coherence=1.0)
    with pytest.raises(ConfigurationError, match=r"may be geval:fit or own:fit"):
        assert_scores(made({"geval:fit": 1.0, "own:fit": 1.0}), fit=1.0)


def test_an_unknown_name_is_a_mistake_with_the_names_there_are() -> None:
    """Not an AssertionError: it says nothing of the app."""
    with pytest.raises(ConfigurationError, match=r"'adherance'.*did you mean 'adherence'"):
        assert_scores(made({"adherence": 1.0, "completeness": None}), adherance=1.0)


@pytest.mark.parametrize("minimum", [1.1, -0.1, float("nan"), True, "0.8", None])
def test_a_minimum_is_a_number_from_0_to_1(minimum: Any) -> None:
    """Anything else is refused by name and value, whatever the score."""
    with pytest.raises(ConfigurationError, match=r"`adherence` = .*from 0 to 1"):
        assert_scores(made({"adherence": 1.0}), adherence=minimum)


def test_arguments_that_cannot_be_meant_are_refused() -> None:
    """Two minimums of one score, no mapping, something that is not an evaluation."""
    evaluation = made({"adherence": 1.0})
    with pytest.raises(ConfigurationError, match="given twice"):
        assert_scores(evaluation, {"adherence": 1.0}, adherence=0.5)
    with pytest.raises(ConfigurationError, match="use a mapping"):
        assert_scores(evaluation, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="should be an Evaluation, not float"):
        assert_scores(0.7, adherence=1.0)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="should be an Evaluation, not str"):
        assert_scores([evaluation, "x"], adherence=1.0)  # type: ignore[list-item]


# --- Scores without a value


def test_a_score_without_a_value_fails_with_its_reason() -> None:
    """It is not 0 and not passed."""
    lines = message(made({"adherence": None}), adherence=0.0)

    assert lines[0] == "adherence is unscored (no_context)"
    assert lines[2] == "  adherence is unscored (no_context): there is no document"


def test_a_failed_call_fails_with_the_failure() -> None:
    """Of every score that was asked for."""
    failed = RagEvaluator(ScriptedModel([])).evaluate_sync(small_call().call)
    lines = message(failed, adherence=0.5)

    assert lines[0] == "adherence ended in an error"
    assert "failed (judge): JudgeRejectedError: the script has ended" in lines[1]


@pytest.mark.parametrize("allowed", [True, "completeness", ["completeness"], {"completeness"}])
def test_it_passes_where_it_is_allowed(allowed: Any) -> None:
    """For all scores, or by name."""
    evaluation = made({"adherence": 1.0, "completeness": None})

    assert_scores(evaluation, adherence=1.0, completeness=0.5, allow_unscored=allowed)


def test_only_what_is_allowed_passes() -> None:
    """A name among them that has no minimum is a mistake."""
    evaluation = made({"adherence": None, "completeness": None})

    assert message(evaluation, adherence=1.0, completeness=0.5, allow_unscored="completeness") == [
        "adherence is unscored (no_context)",
        "“When?” (id row-1, judge by hand)",
        "  adherence is unscored (no_context): there is no document",
    ]
    assert_scores(made({"a": 0.0, "b": None}), a=0.0, allow_unscored=False)
    with pytest.raises(ConfigurationError, match=r"`allow_unscored` = \['completeness'\]"):
        assert_scores(evaluation, adherence=1.0, allow_unscored="completeness")
    with pytest.raises(ConfigurationError, match="is not a score"):
        assert_scores(evaluation, adherence=1.0, allow_unscored=["adherance"])


# --- The message


def test_the_message_has_value_reason_and_sentences() -> None:
    """The unsupported ones with the judge's words, the missing ones, and what a key is."""
    lines = message(judged(), adherence=1.0, context_relevance=0.9, trace_average=0.1)

    assert lines[0] == "adherence 0.00 < 1, context_relevance 0.67 < 0.9"
    assert lines[1] == "“When does the ferry leave?” (id q-1, judge scripted)"
    assert lines[2].startswith("  adherence 0.00 < 1: 2 of 2 response sentences are not fully")
    assert lines[3:5] == [
        "    not supported: a “The ferry leaves at nine.”: Said nowhere.",
        "    not supported: b “It is painted green.”: Said nowhere.",
    ]
    assert lines[5].startswith("  context_relevance 0.67 < 0.9: 2 of 3 document sentences")
    assert lines[6] == "    nothing relevant in document 1"
    assert lines[7].startswith("Each sentence has a key: 0a is")
    assert len(lines) == 8


def test_a_low_completeness_names_the_unused_sentences() -> None:
    """With their text."""
    reply = labels_reply(["0a", "0b"], ["a", "b"])
    reply = reply.replace(
        '"all_utilized_sentence_keys": ["0a", "0b"]', '"all_utilized_sentence_keys": ["0a"]'
    )
    evaluation = RagEvaluator(ScriptedModel([reply])).evaluate_sync(small_call().call)

    lines = message(evaluation, completeness=0.8)
    assert lines[0] == "completeness 0.50 < 0.8"
    assert "    relevant but unused: 0b “It carries forty passengers.”" in lines


def test_of_several_every_one_has_to_pass() -> None:
    """The failing ones are listed, and the list is bounded."""
    good, bad = made({"adherence": 1.0}), made({"adherence": 0.0})

    assert_scores((evaluation for evaluation in [good, good]), adherence=1.0)
    lines = message([good, *[bad] * 8], adherence=1.0)
    assert lines[0] == "8 of 9 evaluations fail: adherence in 8"
    assert sum(line.startswith("“When?”") for line in lines) == 5
    assert lines[-1] == "and 3 more evaluations"


def test_without_any_evaluation_it_fails() -> None:
    """An app that retrieved or answered nothing has passed nothing."""
    assert message([], adherence=0.0) == [
        "there is no evaluation, so no score can reach its minimum"
    ]


def test_long_answers_make_no_long_messages() -> None:
    """A thousand unsupported sentences are five, and a number."""
    response = " ".join(f"Boat {n} is painted green all over its hull." for n in range(300))
    model = ScriptedModel(
        lambda _: labels_reply(["0a"], [s.key for s in split.sentences.response], supported=False)
    )
    split = RagEvaluator().evaluate_sync(
        RagCall(question="When?", documents=["The ferry leaves at nine."], response=response)
    )
    evaluation = RagEvaluator(model).evaluate_sync(
        RagCall(
            question="When?" * 5_000, documents=["The ferry leaves at nine."], response=response
        )
    )

    text = "\n".join(message(evaluation, adherence=1.0))
    assert "    and 295 more sentences" in text
    assert len(text) < 3_000


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_others_neither_act_nor_hide(text: str) -> None:
    """In the question, the id, the names and the sentences."""
    score = Score(
        name=text,
        status="scored",
        value=0.1,
        reason=text,
        evidence={
            "unsupported": [{"key": text, "text": text, "support": text, "explanation": text}],
            "relevant_unused_keys": [text, 3],
        },
    )
    evaluation = made({"adherence": 1.0}, question=text)
    evaluation = evaluation.model_copy(
        update={"id": text, "scores": {text: score}, "judge": JudgeInfo(name=text)}
    )

    lines = message(evaluation, {text: 1.0})
    assert acting("\n".join(lines)) == []
    assert len(lines) == 6  # none was forged


def test_evidence_of_any_shape_breaks_nothing() -> None:
    """Metrics of users put what they like there."""
    shapes: list[dict[str, Any]] = [
        {"unsupported": 3},
        {"unsupported": [3, {"key": None, "support": []}]},
        {"relevant_unused_keys": {}},
    ]
    for evidence in shapes:
        score = Score(name="own", status="scored", value=0.0, evidence=evidence)
        evaluation = made({}).model_copy(update={"scores": {"own": score}})
        assert message(evaluation, own=1.0)[0] == "own 0.00 < 1"


# --- Where it runs


def test_it_needs_no_test_runner() -> None:
    """A runner is not imported, and the public name is shown."""
    code = (
        "import sys; from rag_eval_integrations.testing import assert_scores\n"
        "assert 'pytest' not in sys.modules and '_pytest' not in sys.modules\n"
        "print(assert_scores.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rag_eval_integrations.testing"


def test_a_detail_is_told_once() -> None:
    """The embedded judge's reason names it already."""
    call = RagCall("When does it open?", ["It opens at nine."], "It opens at ten.")
    with pytest.raises(AssertionError) as raised:
        assert_scores(RagEvaluator().evaluate_sync(call), adherence=1.0)

    (line,) = (line for line in str(raised.value).splitlines() if "Lexical estimate" in line)
    assert line.count("ten, where the document says nine") == 1
    assert ".;" not in line
