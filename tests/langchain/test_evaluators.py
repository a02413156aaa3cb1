"""Evaluator objects: every form of call, one judge request, and no score that was not given."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from rag_eval_integrations import Document, RagCall, RagEvaluator, Score
from rag_eval_integrations.errors import ConfigurationError, JudgeUnavailableError, ReentryError
from rag_eval_integrations.langchain import (
    GEvalEvaluator,
    MetricEvaluator,
    TraceEvaluator,
    as_evaluators,
)
from rag_eval_integrations.langchain.evaluators._given import Values, call_from
from rag_eval_integrations.metrics import TRACE_SCORES, Measured, ModelMetric, Trace
from rag_eval_integrations.models import Model
from rag_eval_integrations.records import By, SentencizedCall, from_line, to_line
from rag_eval_integrations.testing import ScriptedModel

QUESTION = "How fast is the kettle?"
DOCUMENT = "The kettle boils in four minutes."
ANSWER = "Four minutes."

# One document sentence, relevant and used; one response sentence, supported.
LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})
EMPTY = labels_of([], [], {"a": ([], False)})


def judge() -> ScriptedJudge:
    return ScriptedJudge(LABELS)


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["question", "answer", "context", "documents", "text", "content", "role"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


class Length(ModelMetric):
    """A metric that asks a model: as simple as the contract allows."""

    names = ("geval:length",)

    def __init__(self, own: Model | None = None) -> None:
        self.judge = own

    def __repr__(self) -> str:
        return "Length()"

    async def measure(self, call: RagCall, judge: Model) -> Measured:
        if call.response is None:
            return Measured(self.unscored("empty_response", "the call has no response", By()))
        score = Score(name=self.names[0], status="scored", value=0.5, reason="middling")
        return Measured((score,))


class TestForms:
    """Whatever the form, the judge is shown the same call."""

    @pytest.mark.parametrize(
        "given",
        [
            {"question": QUESTION, "documents": [DOCUMENT], "response": ANSWER},
            {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENT},
            {
                "inputs": {"question": QUESTION},
                "outputs": {"answer": ANSWER},
                "context": [DOCUMENT],
            },
            {"inputs": {"query": QUESTION}, "outputs": {"result": ANSWER, "documents": [DOCUMENT]}},
            {"inputs": {"input": QUESTION, "context": DOCUMENT}, "outputs": {"output": ANSWER}},
            {
                "inputs": {"messages": [HumanMessage(QUESTION)]},
                "outputs": {"messages": [HumanMessage(QUESTION), AIMessage(ANSWER)]},
                "context": {"documents": [{"page_content": DOCUMENT}]},
            },
            {
                "inputs": [{"role": "user", "content": QUESTION}],
                "outputs": {"role": "assistant", "content": ANSWER},
                "context": (LangChainDocument(DOCUMENT),),
            },
            {"inputs": QUESTION, "outputs": ANSWER, "context": {"text": DOCUMENT}},
            {"inputs": QUESTION, "outputs": ANSWER, "context": {"source_documents": DOCUMENT}},
            {"question": QUESTION, "documents": [(Document(DOCUMENT), 1)], "response": ANSWER},
        ],
        ids=str,
    )
    async def test_by_name(self, given: dict[str, Any]) -> None:
        """Strings, dicts and messages of the usual keys; documents of any make."""
        asked = judge()

        result = await TraceEvaluator(asked, metric="context_relevance").acall(**given)

        (call,) = asked.asked
        assert (call.call.question, call.call.response) == (QUESTION, ANSWER)
        assert [document.text for document in call.call.documents] == [DOCUMENT]
        assert result["score"] == 1.0

    def test_a_call(self) -> None:
        """A record is taken as it is."""
        asked = judge()
        call = RagCall(QUESTION, [DOCUMENT], ANSWER, id="7")

        result = TraceEvaluator(asked, metric="adherence")(call)

        assert asked.asked[0].call is call
        assert result["score"] == 1.0

    def test_documents_keep_what_is_known(self) -> None:
        """Id, metadata and the retriever's score, from each make of document."""
        asked = judge()
        documents = [
            LangChainDocument(DOCUMENT, id="a", metadata={"page": 3}),
            {"text": "Two.", "id": 7, "metadata": {"page": 4}, "score": 0.25},
            (LangChainDocument("Three."), 0.5),
            Document("Four.", id="d"),
        ]

        TraceEvaluator(asked)(question=QUESTION, documents=documents, response=ANSWER)

        assert asked.asked[0].call.documents == (
            Document(DOCUMENT, "a", {"page": 3}),
            Document("Two.", "7", {"page": 4}, 0.25),
            Document("Three.", score=0.5),
            Document("Four.", "d"),
        )

    def test_reference_and_history(self) -> None:
        """The expected answer and the earlier turns go along."""
        asked = judge()
        turns = [("human", "Hello?"), ("ai", "Yes?"), ("human", QUESTION)]

        TraceEvaluator(asked)(
            inputs={"messages": turns},
            outputs=ANSWER,
            context=DOCUMENT,
            reference_outputs={"reference": "Quick."},
        )
        TraceEvaluator(asked)(
            question=QUESTION, response=ANSWER, documents=[DOCUMENT], reference="Quick."
        )

        first, second = (call.call for call in asked.asked)
        assert first.reference == second.reference == "Quick."
        assert [turn.content for turn in first.history] == ["Hello?", "Yes?"]

    def test_retrieval_alone(self) -> None:
        """Without outputs there is no answer to miss: the context is scored."""
        asked = ScriptedJudge(labels_of(["0a"], [], {}))

        result = TraceEvaluator(asked)(inputs=QUESTION, context=[DOCUMENT])["results"]

        by_key = {one["key"]: one for one in result}
        assert by_key["context_relevance"]["score"] == 1.0
        assert by_key["adherence"]["score"] is None

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
        ],
    )
    def test_user_mistakes_are_named(self, given: dict[str, Any], named: str) -> None:
        """Before the judge is asked."""
        asked = judge()

        with pytest.raises(ConfigurationError) as raised:
            TraceEvaluator(asked)(**given)

        assert raised.value.field.startswith(named)
        assert asked.asked == []

    @given(values=st.dictionaries(st.sampled_from(sorted(Values.__annotations__)), JSON))
    def test_whatever_is_given(self, values: Any) -> None:
        """Is a call that can be written down, or a mistake that is named."""
        named = "run"
        try:
            call = call_from(None, None, values)
        except ConfigurationError as error:
            named = error.field.partition("[")[0]
        else:
            assert from_line(RagCall, to_line(call)) == call

        assert named in {*values, "run"}

    def test_a_call_and_values_beside_it(self) -> None:
        """Which of them is meant cannot be told."""
        with pytest.raises(ConfigurationError, match="RagCall"):
            TraceEvaluator(judge())(RagCall(QUESTION, [DOCUMENT], ANSWER), response="other")


class TestResult:
    def test_one_score(self) -> None:
        """Key, score, comment as openevals has them, and what else is known."""
        result = TraceEvaluator(judge(), metric="adherence", threshold=0.8)(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert result == {
            "key": "adherence",
            "score": 1.0,
            "comment": "The one response sentence is fully supported by the documents.",
            "metadata": {
                "status": "scored",
                "passed": True,
                "threshold": 0.8,
                "method": "labels",
                "judge": "scripted",
            },
        }

    def test_all_scores(self) -> None:
        """LangSmith's `EvaluationResults`, in the order of the metrics, from one request."""
        asked = judge()

        result = TraceEvaluator(asked)(inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)

        assert list(result) == ["results"]
        assert [one["key"] for one in result["results"]] == list(TRACE_SCORES)
        assert len(asked.asked) == 1

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ({"inputs": QUESTION, "outputs": None, "context": DOCUMENT}, "empty_response"),
            ({"inputs": QUESTION, "outputs": "", "context": DOCUMENT}, "empty_response"),
            ({"inputs": QUESTION, "outputs": ANSWER}, "no_context"),
            ({"inputs": QUESTION, "outputs": ANSWER, "context": []}, "no_context"),
            ({"inputs": {"k": 3}, "outputs": ANSWER, "context": DOCUMENT}, "no_question"),
        ],
    )
    def test_without_a_value(self, given: dict[str, Any], code: str) -> None:
        """Score None, never 0; the comment says why; no judge is asked."""
        asked = judge()

        for one in TraceEvaluator(asked)(**given)["results"]:
            assert one["score"] is None
            assert one["comment"].startswith(f"unscored ({code}): the call has ")
            assert one["metadata"]["unscored"] == code
        assert asked.asked == []

    def test_a_judge_that_fails(self) -> None:
        """Score None and the error, without an exception."""

        def fail(call: SentencizedCall) -> Any:
            raise JudgeUnavailableError("503 from the judge", status=503)

        result = TraceEvaluator(ScriptedJudge(fail), metric="adherence", threshold=0.5)(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert result["score"] is None
        assert result["comment"] == "error: JudgeUnavailableError: 503 from the judge"
        assert result["metadata"]["status"] == "error"
        assert "passed" not in result["metadata"]

    def test_a_threshold_is_the_views_own(self) -> None:
        """Two views on one evaluator have a verdict each."""
        evaluator = RagEvaluator(ScriptedJudge(EMPTY))
        given = {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENT}

        strict = MetricEvaluator(evaluator, "adherence", threshold=0.5)(**given)
        mild = MetricEvaluator(evaluator, "adherence", threshold=0.0)(**given)

        assert (strict["score"], mild["score"]) == (0.0, 0.0)
        assert (strict["metadata"]["passed"], mild["metadata"]["passed"]) == (False, True)


class TestOneRequest:
    def test_views_on_one_evaluator(self) -> None:
        """One object a score, one request a call."""
        asked = judge()
        views = as_evaluators(RagEvaluator(asked, [Trace(), Length(ScriptedModel([]))]))
        given = {"inputs": QUESTION, "outputs": ANSWER, "context": DOCUMENT}

        results = {name: view(**given) for name, view in views.items()}

        assert list(views) == [*TRACE_SCORES, "geval:length"]
        assert all(result["key"] == name for name, result in results.items())
        assert len(asked.asked) == 1

    async def test_views_at_once(self) -> None:
        """Also when they are called at the same time."""
        asked = judge()
        views = as_evaluators(RagEvaluator(asked)).values()

        await asyncio.gather(
            *(view.acall(inputs=QUESTION, outputs=ANSWER, context=DOCUMENT) for view in views)
        )

        assert len(asked.asked) == 1

    def test_evaluators_of_one_judge(self) -> None:
        """Made one by one, they still share: nobody need know of `RagEvaluator`."""
        asked = judge()
        views = [TraceEvaluator(asked, metric=name) for name in TRACE_SCORES]

        for view in views:
            view(inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)

        assert len(asked.asked) == 1
        assert len({id(view.rag_evaluator) for view in views}) == 1
        assert TraceEvaluator("embedded").rag_evaluator is not views[0].rag_evaluator

    def test_nothing_is_kept_for_a_judge_that_is_gone(self) -> None:
        """The sharing holds no evaluator that nobody uses."""
        asked = judge()
        evaluator = TraceEvaluator(asked)
        shared = weakref.ref(evaluator.rag_evaluator)
        assert TraceEvaluator(asked).rag_evaluator is shared()

        del evaluator
        gc.collect()

        assert shared() is None

    def test_a_given_evaluator(self) -> None:
        """`TraceEvaluator` is a view on one that exists, with formulas of its own."""
        asked = judge()
        evaluator = RagEvaluator(asked, [Trace(relevance_baseline=20)])

        result = TraceEvaluator(evaluator, metric="context_relevance")(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert result["score"] == 0.05


class TestVerdicts:
    def test_adherence_passes_at_1_and_others_have_no_verdict(self) -> None:
        """With every view alike, as with LlamaIndex's evaluators."""
        views = as_evaluators(RagEvaluator(judge()))

        for view in (views["adherence"], TraceEvaluator(judge(), metric="adherence")):
            about = view(inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)["metadata"]
            assert (about["threshold"], about["passed"]) == (1.0, True)
        about = views["completeness"](inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)["metadata"]
        assert "passed" not in about

    def test_a_given_threshold_comes_before_the_metrics_own(self) -> None:
        """And that before the default."""
        evaluator = RagEvaluator(judge(), [Trace(thresholds={"adherence": 0.5, "completeness": 1})])
        views = as_evaluators(evaluator, thresholds={"completeness": 0.25})

        found = {
            name: views[name](inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)["metadata"]
            for name in ("adherence", "completeness")
        }

        assert found["adherence"]["threshold"] == 0.5
        assert found["completeness"]["threshold"] == 0.25

    def test_a_chat_model_is_a_judge(self) -> None:
        """It is asked with the labelling prompt, and here answers with something else."""
        chat = GenericFakeChatModel(messages=iter([AIMessage("No labels.")] * 3))

        result = TraceEvaluator(chat, metric="adherence")(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert result["metadata"]["unscored"] == "judge_output_invalid"


class TestGEval:
    def test_a_metric_that_asks_a_model(self) -> None:
        """By the metric's protocol; one score, no labels."""
        evaluator = GEvalEvaluator(Length(), ScriptedModel([]), threshold=0.6)

        result = evaluator(inputs=QUESTION, outputs=ANSWER)

        assert (result["key"], result["score"], result["comment"]) == (
            "geval:length",
            0.5,
            "middling",
        )
        assert result["metadata"]["passed"] is False

    def test_the_metric_s_own_model(self) -> None:
        """No judge is needed then."""
        assert GEvalEvaluator(Length(ScriptedModel([]))).names == ("geval:length",)

    def test_mismatches_are_named(self) -> None:
        """A judge that is no model, a metric that asks none."""
        with pytest.raises(ConfigurationError, match="asks a model"):
            GEvalEvaluator(Length())
        with pytest.raises(ConfigurationError, match="metric"):
            GEvalEvaluator(Trace())  # type: ignore[arg-type]


class TestConstruction:
    @pytest.mark.parametrize(
        ("make", "named"),
        [
            (lambda: TraceEvaluator("no such judge"), "judge"),
            (lambda: TraceEvaluator(judge(), metric="adherance"), "metric"),
            (lambda: TraceEvaluator(judge(), threshold=70), "threshold"),
            (lambda: TraceEvaluator(judge(), threshold=True), "threshold"),
            (lambda: TraceEvaluator(judge(), threshold="high"), "threshold"),  # type: ignore[arg-type]
            (lambda: MetricEvaluator(RagEvaluator(), "no such score"), "names"),
            (lambda: MetricEvaluator(RagEvaluator(), []), "names"),
            (lambda: MetricEvaluator("embedded"), "evaluator"),  # type: ignore[arg-type]
            (lambda: as_evaluators("embedded"), "rag_evaluator"),  # type: ignore[arg-type]
            (lambda: as_evaluators(RagEvaluator(), thresholds={"accuracy": 1}), "thresholds"),
        ],
    )
    def test_user_mistakes_are_named(self, make: Any, named: str) -> None:
        """With the field, when the object is made."""
        with pytest.raises(ConfigurationError) as raised:
            make()

        assert raised.value.field == named


class TestLoops:
    async def test_sync_inside_of_a_running_loop(self) -> None:
        """Works, as in a notebook."""
        result = TraceEvaluator(judge(), metric="adherence")(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert result["score"] == 1.0

    def test_from_many_threads(self) -> None:
        """One object, called from thirty threads at once."""
        evaluator = TraceEvaluator(judge(), metric="adherence")
        results = []

        def one(number: int) -> None:
            results.append(evaluator(inputs=f"q{number}", outputs=ANSWER, context=DOCUMENT))

        threads = [threading.Thread(target=one, args=(n,)) for n in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [result["score"] for result in results] == [1.0] * 30

    def test_sync_inside_of_an_evaluation(self) -> None:
        """It would wait for itself: a clear error, which is the score's."""
        inner = TraceEvaluator(judge(), metric="adherence")

        def ask(call: SentencizedCall) -> Any:
            inner(inputs=QUESTION, outputs=ANSWER, context=DOCUMENT)

        result = TraceEvaluator(ScriptedJudge(ask), metric="adherence")(
            inputs=QUESTION, outputs=ANSWER, context=DOCUMENT
        )

        assert ReentryError.__name__ in result["comment"]
