"""`assert_scores`: what passes, what fails, and that the message says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hostile import HOSTILE, acting
from hypothesis import example, given
from hypothesis import strategies as st
from runs import call

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, Score
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.sentences._sentencize import letters
from rag_eval_integrations.testing import ScriptedModel, assert_scores, labels_reply, small_call


def made(
    scores: Mapping[str, float | None], *, question: str = "When?", threshold: float | None = None
) -> Evaluation:
    """An evaluation with these values; None for a score that is unscored."""
    made: dict[str, Score | str] = {
        name: Score(name=name, status="scored", value=value, threshold=threshold)
        for name, value in scores.items()
        if value is not None
    }
    made |= {name: "no_context" for name in scores if name not in made}
    return call("row-1", made, question=question, labels=None)


def message(
    evaluation: Evaluation | Iterable[Evaluation], *args: Any, **minimums: Any
) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as failed:
        assert_scores(evaluation, *args, **minimums)
    return str(failed.value).splitlines()


# --- What passes


def test_a_value_that_would_be_printed_as_its_minimum_has_more_digits() -> None:
    """Never "0.60 < 0.6"."""
    assert message(made({"coherence": 0.5999}), coherence=0.6)[0] == "coherence 0.5999 < 0.6"


@given(st.floats(0, 1), st.floats(0, 1))
@example(1.0, 1.0)
@example(0.1 + 0.2 + 0.3 - 1e-12, 0.6)
@example(0.6 - 5e-10, 0.6)
@example(1 - 0.4, 0.6)
def test_it_fails_exactly_below_the_minimum(value: float, minimum: float) -> None:
    """By more than a billionth, so not by the last bits of a float.

    The message shows a smaller number than the minimum.
    """
    if value >= minimum - 1e-9:
        assert_scores(made({"coherence": value}), coherence=minimum)
        return
    shown = message(made({"coherence": value}), coherence=minimum)[0].split()
    assert float(shown[1]) < minimum


def test_thresholds_are_taken_without_minimums() -> None:
    """Those of the scores themselves."""
    assert_scores(made({"adherence": 0.8}, threshold=0.8))
    assert message(made({"adherence": 0.7}, threshold=0.8))[0] == "adherence 0.70 < 0.8"


# --- Names


def test_a_prefix_may_be_left_out() -> None:
    """The score of `GEval("coherence")` is `geval:coherence`; a whole name is preferred."""
    evaluation = made({"geval:coherence": 0.5, "adherence": 1.0})

    assert_scores(evaluation, coherence=0.5)
    assert message(evaluation, coherence=0.6)[0] == "geval:coherence 0.50 < 0.6"
    assert message(evaluation, {"geval:coherence": 0.6})[0] == "geval:coherence 0.50 < 0.6"
    assert_scores(made({"coherence": 1.0, "geval:coherence": 0.0}), coherence=1.0)


GOOD, BOTH = made({"adherence": 1.0}), made({"adherence": 1.0, "completeness": None})


@pytest.mark.parametrize(
    ("arguments", "minimums", "words"),
    [
        ((BOTH,), {"adherance": 1.0}, "'adherance'.*did you mean 'adherence'"),
        ((made({"geval:fit": 1.0, "own:fit": 1.0}),), {"fit": 1.0}, "may be geval:fit or own:fit"),
        ((GOOD,), {}, "none has a threshold"),
        ((GOOD, {"adherence": 1.0}), {"adherence": 0.5}, "given twice"),
        ((GOOD, 0.5), {}, "use a mapping"),
        ((0.7,), {"adherence": 1.0}, "should be an Evaluation, not float"),
        (([GOOD, "x"],), {"adherence": 1.0}, "should be an Evaluation, not str"),
        ((BOTH, {"adherence": 1.0}), {"allow_unscored": "completeness"}, r"` = \['completeness'\]"),
        ((BOTH, {"adherence": 1.0}), {"allow_unscored": ["adherance"]}, "is not a score"),
        *(
            ((GOOD,), {"adherence": minimum}, "`adherence` = .*from 0 to 1")
            for minimum in (1.1, -0.1, float("nan"), True, "0.8", None)
        ),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(
    arguments: Any, minimums: dict[str, Any], words: str
) -> None:
    """By name and value; not as an AssertionError, since they say nothing of the app."""
    with pytest.raises(ConfigurationError, match=words):
        assert_scores(*arguments, **minimums)


# --- Scores without a value


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
    """The others fail with their reasons: a score without a value is not 0 and not passed."""
    evaluation = made({"adherence": None, "completeness": None})

    assert message(evaluation, adherence=0.0, completeness=0.5, allow_unscored="completeness") == [
        "adherence is unscored (no_context)",
        "“When?” (id row-1, judge by hand)",
        "  adherence is unscored (no_context): why",
    ]
    assert_scores(made({"a": 0.0, "b": None}), a=0.0, allow_unscored=False)


# --- The message


def test_the_message_has_value_reason_and_sentences() -> None:
    """The unsupported ones with the judge's words, the missing ones, and what a key is."""
    model = ScriptedModel([labels_reply(["0a", "0b"], ["a", "b"], supported=False)])
    asked = small_call().call.model_copy(update={"id": "q-1"})
    evaluation = RagEvaluator(model).evaluate_sync(asked)
    lines = message(evaluation, adherence=1.0, context_relevance=0.9, trace_average=0.1)

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
    used = '"all_utilized_sentence_keys": ["0a"'
    reply = labels_reply(["0a", "0b"], ["a", "b"]).replace(f'{used}, "0b"', used)
    evaluation = RagEvaluator(ScriptedModel([reply])).evaluate_sync(small_call().call)

    lines = message(evaluation, completeness=0.8)
    assert lines[0] == "completeness 0.50 < 0.8"
    assert "    relevant but unused: 0b “It carries forty passengers.”" in lines


def test_of_several_every_one_has_to_pass() -> None:
    """The failing ones are listed, and the list is bounded; an app without any has passed nothing."""
    bad = made({"adherence": 0.0})

    assert_scores((evaluation for evaluation in [GOOD, GOOD]), adherence=1.0)
    lines = message([GOOD, *[bad] * 8], adherence=1.0)
    assert lines[0] == "8 of 9 evaluations fail: adherence in 8"
    assert sum(line.startswith("“When?”") for line in lines) == 5
    assert lines[-1] == "and 3 more evaluations"
    nothing = "there is no evaluation, so no score can reach its minimum"
    assert message([], adherence=0.0) == [nothing]


def test_long_answers_make_no_long_messages() -> None:
    """Three hundred unsupported sentences are five, and a number."""
    keys = [letters(number) for number in range(300)]
    model = ScriptedModel([labels_reply(["0a"], keys, supported=False)])
    evaluation = RagEvaluator(model).evaluate_sync(
        question="When?" * 5_000,
        documents=["The ferry leaves at nine."],
        response=" ".join(f"Boat {key} is painted green all over its hull." for key in keys),
    )

    text = "\n".join(message(evaluation, adherence=1.0))
    assert "    and 295 more sentences" in text
    assert len(text) < 3_000


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_others_neither_act_nor_hide(text: str) -> None:
    """In the question, the id, the names and the sentences."""
    names = ("key", "text", "support", "explanation")
    unsupported = [dict.fromkeys(names, text)]
    evidence: Any = {"unsupported": unsupported, "relevant_unused_keys": [text, 3]}
    score = Score(name=text, status="scored", value=0.1, reason=text, evidence=evidence)
    evaluation = call(text, {text: score}, question=text, judge=JudgeInfo(name=text), labels=None)

    lines = message(evaluation, {text: 1.0})
    assert acting("\n".join(lines)) == []
    assert len(lines) == 6  # none was forged


@pytest.mark.parametrize(
    "evidence",
    [
        {"unsupported": 3}, {"unsupported": [3, {"key": None, "support": []}]},
        {"relevant_unused_keys": {}},
    ],
)  # fmt: skip
def test_evidence_of_any_shape_breaks_nothing(evidence: dict[str, Any]) -> None:
    """Metrics of users put what they like there."""
    score = Score(name="own", status="scored", value=0.0, evidence=evidence)
    evaluation = GOOD.model_copy(update={"scores": {"own": score}})

    assert message(evaluation, own=1.0)[0] == "own 0.00 < 1"


def test_a_detail_is_told_once() -> None:
    """The embedded judge's reason names it already."""
    call = RagCall("When does it open?", ["It opens at nine."], "It opens at ten.")
    lines = message(RagEvaluator().evaluate_sync(call), adherence=1.0)

    (line,) = (line for line in lines if "Lexical estimate" in line)
    assert line.count("ten, where the document says nine") == 1
    assert ".;" not in line
