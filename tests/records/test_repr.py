"""Scores, evaluations and signatures as a person sees them: short, whole where it counts, safe."""

from __future__ import annotations

import pytest
from hostile import HOSTILE
from pytest_runs import alone
from runs import call

from rag_eval_integrations import Document, Evaluation, RagCall, RagEvaluator, Score
from rag_eval_integrations.evaluations._notebook import call_html
from rag_eval_integrations.records import By, EvaluationError, JudgeInfo

pytest_plugins = "pytester"

CALL = RagCall(
    "When does the ferry leave?",
    ["The ferry leaves at nine. It carries forty passengers."],
    "The ferry leaves at nine. It was built by a famous admiral.",
)
INVENTED = "It was built by a famous admiral."


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return RagEvaluator().evaluate_sync(CALL)


def test_an_evaluation_prints_as_a_line_per_score(evaluation: Evaluation) -> None:
    """With every value and the sentence that was invented, and without records' inner fields."""
    lines = str(evaluation).splitlines()

    assert lines[0] == "Evaluation of “When does the ferry leave?”"
    assert [line.split()[0] for line in lines[1:-2]] == list(evaluation.scores)
    assert lines[-2].startswith("  diagnosis  hallucination: The response says something")
    assert INVENTED in str(evaluation)
    assert lines[-1] == "  judge embedded, which compares words: no model read this"
    assert len(lines) <= 9
    assert max(map(len, lines)) <= 240
    assert "row_key" not in str(evaluation)


def test_sentences_that_do_not_fit_are_counted(evaluation: Evaluation) -> None:
    """Two of the response and two of the document; why one is not supported is none of them."""
    assert "<p>… 4 more sentences are not shown here.</p>" in call_html(evaluation, 0)


def test_a_reason_that_all_scores_share_is_printed_once() -> None:
    """Such as that of a call that the judge cannot read."""
    lines = str(RagEvaluator().evaluate_sync(RagCall("Why?", [], "Because."))).splitlines()

    assert "no_context" in lines[1]
    assert [line.endswith(")  as above") for line in lines[1:7]] == [False, *[True] * 5]


def test_reprs_are_one_short_line(evaluation: Evaluation) -> None:
    """A list of evaluations, or of their scores, can be looked at."""
    for shown in (repr(evaluation), *map(repr, evaluation.scores.values())):
        assert len(shown) <= 320
        assert "\n" not in shown
    assert repr(evaluation.scores["adherence"]) == (
        f"<Score adherence 0.00: not supported: b “{INVENTED}”>"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("faithfulness", "`supported_fraction` is nearest to it"),
        ("FaithfulnessMetric", "`supported_fraction` is nearest to it"),
        ("Contextual Relevancy", "`context_relevance` is nearest to it"),
        ("answer_relevancy", "`geval:relevance` is nearest to it"),
        ("LLMContextRecall", "`context_recall` is nearest to it"),
        ("context_precision", "`document_precision` is nearest to it, by the metric `label_retr"),
        ("faithfullness", "`supported_fraction` is nearest to it"),
        ("adherance", "did you mean 'adherence'?"),
        ("zzz", "the scores are context_relevance, "),
    ],
)
def test_a_score_that_is_missing_is_told_with_the_nearest(
    evaluation: Evaluation, name: str, hint: str
) -> None:
    """Other tools' names by their meaning, misspelt ones by their letters, else all scores."""
    with pytest.raises(KeyError) as refused:
        evaluation.scores[name]

    assert refused.value.args[0].startswith(f"no score {name!r}: {hint}")
    assert evaluation.scores.get(name) is None
    if "supported_fraction" in hint:
        with pytest.raises(KeyError, match="by the metric `trace`"):
            evaluation.model_copy(update={"scores": type(evaluation.scores)()}).scores[name]
    assert name not in evaluation.scores


def test_an_evaluation_has_documents_and_diagnosis(evaluation: Evaluation) -> None:
    """As the call had them; a document without a sentence keeps its place, an id its document."""
    documents = [Document("", id="a"), Document("The pier is long. It is old.", id="b")]
    other = RagEvaluator().evaluate_sync(RagCall("How long is the pier?", documents, "Long."))

    assert evaluation.documents == CALL.documents
    assert other.documents == tuple(documents)
    assert other.model_copy(update={"document_ids": ()}).documents[1].text == documents[1].text
    assert [each.pattern for each in evaluation.diagnosis] == ["hallucination"]


def test_a_score_says_why_it_has_no_value() -> None:
    """Code and reason, and no number; a verdict stands beside the value."""
    state = {"status": "unscored", "unscored": "no_context", "reason": "There is nothing."}
    unscored = Score.model_validate({"name": "adherence", **state})
    passed = Score(name="tone", status="scored", value=0.5, threshold=0.4)

    assert str(unscored) == "adherence unscored (no_context): There is nothing."
    assert str(passed) == "tone 0.50 (passed, threshold 0.4)"


def test_a_failed_call_says_what_failed() -> None:
    """In print, repr and HTML."""
    error = EvaluationError(type="OSError", message="no <network>", stage="judge")
    failed = call("1", {}, response=[], documents=[], labels=None, error=error)
    failed = failed.model_copy(update={"response": None})
    message = "failed (judge): OSError: no <network>"

    assert message in str(failed)
    assert message in repr(failed)
    assert "no &lt;network&gt;" in failed._repr_html_()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_neither_acts_nor_is_markup(text: str) -> None:
    """Nothing that a terminal or a browser would interpret is left in what is shown."""
    score = Score(name="adherence", status="scored", value=0.0, reason=text, evidence={
        "unsupported": [{"key": "a", "text": text}]
    })  # fmt: skip
    shown = call(
        "1", {text: score}, question=text, response=[text], documents=[], labels=None,
        judge=JudgeInfo(name=text), flags=(text,),
    )  # fmt: skip

    for each in (str(shown), repr(shown), str(score), repr(score), shown._repr_html_()):
        assert all(character.isprintable() or character == "\n" for character in each)
    assert "<script" not in shown._repr_html_().lower()
    assert "<img" not in shown._repr_html_().lower()
    assert shown._repr_html_().count("<table>") == 1


def test_a_failing_assertion_shows_the_sentence(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation
) -> None:
    """Pytest cuts long reprs in the middle, so the sentence must be within the short one."""
    alone(monkeypatch, pytester.path)
    pytester.makepyfile(
        f"""
        from rag_eval_integrations.records import Evaluation
        made = Evaluation.model_validate_json({evaluation.model_dump_json()!r})
        score = made.scores['adherence'].model_copy(update={{'threshold': 0.9}})
        def test_value(): assert score.value >= 0.9
        def test_passed(): assert score.passed
        """
    )
    failures = pytester.runpytest_inprocess("-q").stdout.str().split("___ test_passed ___")
    assert [INVENTED in each and "adherence 0.00" in each for each in failures] == [True, True]


def test_a_repr_leaves_out_defaults() -> None:
    """A record's own words are not lost among its empty fields."""
    assert repr(By(judge="mine")) == "By(judge='mine')"
    assert repr(Document("x", id="7")) == "Document(text='x', id='7')"
