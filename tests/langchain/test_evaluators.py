"""Evaluator objects: every form of call, one judge request, and no score that was not given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from by_hand import labels_of
from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from rag_eval_integrations import Document, GEval, RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, JudgeUnavailableError
from rag_eval_integrations.langchain import GEvalEvaluator, TraceEvaluator, as_evaluators
from rag_eval_integrations.langchain.evaluators import MetricEvaluator
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.records import SentencizedCall
from rag_eval_integrations.testing import ScriptedModel

from .apps import QUESTION
from .conftest import judge

DOCUMENT = "The kettle boils in four minutes."
ANSWER = "Four minutes."
PLAIN: Any = {"question": QUESTION, "documents": [DOCUMENT], "response": ANSWER}
GIVEN = {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENT}


AI = AIMessage(ANSWER)
FOUND = ToolMessage("1 page", tool_call_id="1", artifact=[LangChainDocument(DOCUMENT)])
TOLD = {"role": "tool", "content": DOCUMENT}
REPLY = '{"reason": "middling", "score": 3}'


def geval(**options: Any) -> GEval:
    return GEval("length", steps=["Judge it."], estimator="single", **options)


class TestForms:
    """Whatever the form, the judge is shown the same call."""

    @pytest.mark.parametrize(
        "given",
        [
            PLAIN,
            GIVEN,
            {**GIVEN, "inputs": {"question": QUESTION}, "outputs": {"answer": ANSWER}},
            {"inputs": {"query": QUESTION}, "outputs": {"result": ANSWER, "documents": [DOCUMENT]}},
            {"inputs": {"input": QUESTION, "context": DOCUMENT}, "outputs": {"output": ANSWER}},
            {**GIVEN, "inputs": [HumanMessage(QUESTION)], "outputs": {"messages": [AI]}},
            {"inputs": QUESTION, "outputs": {"messages": [HumanMessage(QUESTION), FOUND, AI]}},
            {"inputs": QUESTION, "outputs": [("tool", "Old."), ("user", QUESTION), TOLD, AI]},
            {**GIVEN, "context": {"documents": [{"page_content": DOCUMENT}]}},
            {**GIVEN, "context": (LangChainDocument(DOCUMENT),)},
            {**GIVEN, "context": {"text": DOCUMENT}},
            {**GIVEN, "context": {"source_documents": DOCUMENT}},
            {"inputs": QUESTION, "outputs": {"answer": ANSWER, "docs": [DOCUMENT]}},
            {"question": QUESTION, "documents": [(Document(DOCUMENT), 1)], "response": ANSWER},
            {"run": RagCall(QUESTION, [DOCUMENT], ANSWER, id="7")},
        ],
        ids=str,
    )
    async def test_by_name(self, given: dict[str, Any]) -> None:
        """A record, strings, dicts and messages of the usual keys; documents of any make."""
        asked = judge()
        evaluator = TraceEvaluator(asked, metric="context_relevance")

        result = await evaluator.acall(**given)

        assert evaluator(**given) == result  # also inside of a running loop, as in a notebook

        (call,) = asked.asked
        assert (call.call.question, call.call.response) == (QUESTION, ANSWER)
        assert [document.text for document in call.call.documents] == [DOCUMENT]
        assert result["score"] == 1.0

    def test_documents_keep_what_is_known(self) -> None:
        """Id, metadata and the retriever's score, from each make of document."""
        asked = judge()
        documents = [
            LangChainDocument(DOCUMENT, id="a", metadata={"page": 3}),
            {"text": "Two.", "id": 7, "metadata": {"page": 4}, "score": 0.25},
            (LangChainDocument("Three."), 0.5),
            Document("Four.", id="d"),
            ["Five.", 0.75],  # a pair that was JSON
        ]

        TraceEvaluator(asked)(question=QUESTION, documents=documents, response=ANSWER)

        assert asked.asked[0].call.documents == (
            Document(DOCUMENT, "a", {"page": 3}),
            Document("Two.", "7", {"page": 4}, 0.25),
            Document("Three.", score=0.5),
            Document("Four.", "d"),
            Document("Five.", score=0.75),
        )

    def test_reference_and_history(self) -> None:
        """The expected answer and the earlier turns go along."""
        asked = judge()
        turns = [("human", "Hello?"), ("ai", "Yes?"), ("human", QUESTION)]
        given: dict[str, Any] = {**GIVEN, "inputs": {"messages": turns}}

        TraceEvaluator(asked)(**given, reference_outputs={"reference": "Quick."})
        TraceEvaluator(asked)(**PLAIN, reference="Quick.")

        first, second = (call.call for call in asked.asked)
        assert first.reference == second.reference == "Quick."
        assert [turn.content for turn in first.history] == ["Hello?", "Yes?"]

    def test_retrieval_alone(self) -> None:
        """Without outputs there is no answer to miss: the context is scored."""
        asked = judge(labels_of(["0a"], [], {}))

        result = TraceEvaluator(asked)(inputs=QUESTION, context=[DOCUMENT])["results"]

        values = {score["key"]: score["score"] for score in result}
        assert (values["context_relevance"], values["adherence"]) == (1.0, None)

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({}, "run"),
            ({"answer": ANSWER}, "answer"),
            ({"question": QUESTION, "documents": DOCUMENT}, "documents"),
            ({"question": QUESTION, "documents": [7]}, "documents"),
            ({"question": 7, "documents": [DOCUMENT]}, "question"),
            ({"question": QUESTION, "response": [ANSWER]}, "response"),
            ({"inputs": QUESTION, "context": 7}, "context"),
            ({"inputs": QUESTION, "outputs": {"documents": [7]}}, "outputs"),
            ({"run": QUESTION, "example": ANSWER}, "run"),
            ({"run": {"question": QUESTION}}, "run"),
            ({"run": RagCall(QUESTION, [DOCUMENT], ANSWER), "response": "other"}, "run"),
        ],
    )
    def test_user_mistakes_are_named(self, given: dict[str, Any], named: str) -> None:
        """Before the judge is asked."""
        asked = judge()

        with pytest.raises(ConfigurationError) as raised:
            TraceEvaluator(asked)(**given)

        assert raised.value.field.startswith(named)
        assert asked.asked == []


class TestResult:
    def test_one_score(self) -> None:
        """Key, score, comment as openevals has them, and what else is known."""
        result = TraceEvaluator(judge(), metric="adherence", threshold=0.8)(**GIVEN)

        assert result.pop("metadata") == {
            "status": "scored", "passed": True, "threshold": 0.8,
            "method": "labels", "judge": "scripted",
        }  # fmt: skip
        comment = "The one response sentence is fully supported by the documents."
        assert result == {"key": "adherence", "score": 1.0, "comment": comment}

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ({**GIVEN, "outputs": None}, "empty_response"),
            ({**GIVEN, "outputs": ""}, "empty_response"),
            ({"inputs": QUESTION, "outputs": ANSWER}, "no_context"),
            ({**GIVEN, "context": []}, "no_context"),
            ({**GIVEN, "inputs": {"k": 3}}, "no_question"),
        ],
    )
    def test_without_a_value(self, given: dict[str, Any], code: str) -> None:
        """Score None, never 0; the comment says why; no judge is asked."""
        asked = judge()

        for score in TraceEvaluator(asked)(**given)["results"]:
            assert (score["score"], score["metadata"]["unscored"]) == (None, code)
            assert score["comment"].startswith(f"unscored ({code}): the call has ")
        assert asked.asked == []

    def test_a_judge_that_fails(self) -> None:
        """Score None and the error, without an exception."""

        def fail(call: SentencizedCall) -> Any:
            raise JudgeUnavailableError("503 from the judge", status=503)

        result = TraceEvaluator(judge(fail), metric="adherence", threshold=0.5)(**GIVEN)

        comment, about = "error: JudgeUnavailableError: 503 from the judge", result["metadata"]
        assert (result["score"], result["comment"]) == (None, comment)
        assert (about["status"], "passed" in about) == ("error", False)


class TestOneRequest:
    def test_views_on_one_evaluator(self) -> None:
        """One object a score, one request a call, from any number of threads at once."""
        asked = judge()
        views = as_evaluators(RagEvaluator(asked, [Trace(), geval(judge=ScriptedModel([REPLY]))]))

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda view: view(**GIVEN), [*views.values()] * 4))
        results = dict(zip(views, found, strict=False))

        assert list(views) == [*TRACE_SCORES, "geval:length"]
        assert found == [*results.values()] * 4
        assert all(result["key"] == name for name, result in results.items())
        assert len(asked.asked) == 1


class TestVerdicts:
    def test_adherence_passes_at_1_and_others_have_no_verdict(self) -> None:
        """With every view alike, as with LlamaIndex's evaluators."""
        views = as_evaluators(RagEvaluator(judge()))

        for view in (views["adherence"], TraceEvaluator(judge(), metric="adherence")):
            about = view(**GIVEN)["metadata"]
            assert (about["threshold"], about["passed"]) == (1.0, True)
        assert "passed" not in views["completeness"](**GIVEN)["metadata"]

    def test_a_given_threshold_comes_before_the_metrics_own(self) -> None:
        """And that before the default."""
        trace = Trace(thresholds={"adherence": 0.5, "completeness": 1}, relevance_baseline=20)
        evaluator = RagEvaluator(judge(), [trace])
        views = as_evaluators(evaluator, thresholds={"completeness": 0.25})

        assert views["adherence"](**GIVEN)["metadata"]["threshold"] == 0.5
        assert views["completeness"](**GIVEN)["metadata"]["threshold"] == 0.25
        own = TraceEvaluator(evaluator, metric="context_relevance", threshold=0.5)(**GIVEN)
        assert (own["score"], own["metadata"]["passed"]) == (0.05, False)


class TestGEval:
    def test_a_metric_that_asks_a_model(self) -> None:
        """By the metric's protocol; one score, no labels."""
        evaluator = GEvalEvaluator(geval(), ScriptedModel([REPLY]), threshold=0.6)

        result = evaluator(inputs=QUESTION, outputs=ANSWER)

        assert result.pop("metadata")["passed"] is False
        assert result == {"key": "geval:length", "score": 0.5, "comment": "middling"}


class TestConstruction:
    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ((RagEvaluator(), "no such score"), "names"),
            ((RagEvaluator(), []), "names"),
            (("embedded",), "evaluator"),
        ],
    )
    def test_user_mistakes_are_named(self, given: Any, named: str) -> None:
        """With the field, when the object is made."""
        with pytest.raises(ConfigurationError) as raised:
            MetricEvaluator(*given)

        assert raised.value.field == named
