"""Evaluator objects with LangSmith: its runs read as captured, its runners, its feedback."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from by_hand import labels_of
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langsmith import Client, aevaluate, evaluate
from langsmith.evaluation import EvaluationResult
from langsmith.schemas import Example
from trace_tools import LangSmithService, running

from rag_eval_integrations import BackgroundEvaluator, Evaluation, RagEvaluator
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import LangSmithFeedback, TraceEvaluator, as_evaluators
from rag_eval_integrations.langchain._given import captured_in
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.sinks import LangSmithSink, PartlyWrittenError

from .apps import QUESTION, agent, asked, graph, retriever_tool, scripted
from .conftest import ANSWER, Captured, Sections, capture_of, judge, rag_chain, sections, substance


class Refusing(LangSmithService):
    """Takes everything but feedback of the key `adherence`."""

    def answer(self, method: str, path: str, body: Any) -> Any:
        if path == "/feedback" and body["key"] == "adherence":
            return 422, {"detail": "no such key"}
        return super().answer(method, path, body)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[LangSmithService]:
    service: LangSmithService = getattr(request, "param", LangSmithService)()
    with running(service):
        yield service


@pytest.fixture
def client(server: LangSmithService) -> Iterator[Client]:
    with warnings.catch_warnings():
        client = Client(api_url=server.url, api_key="none")
    yield client
    client.flush()


# --- runs, read back ---------------------------------------------------------------------------


class Runs(BaseTracer):
    """Keeps LangSmith's trees of runs. LangChain's own collector copies them, with a warning."""

    def __init__(self) -> None:
        super().__init__()
        self.traced_runs: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.traced_runs.append(run)


def fails_once() -> Runnable[Any, Any]:
    failed: list[bool] = []

    def check(documents: list[Document]) -> list[Document]:
        if not failed:
            failed.append(True)
            raise RuntimeError("first")
        return documents

    return (Sections() | RunnableLambda(check)).with_retry(wait_exponential_jitter=False)


TOOL = retriever_tool(response_format="content_and_artifact")
SHAPES: dict[str, tuple[Any, Any]] = {
    "chain": (rag_chain, QUESTION),
    "completion model": (lambda: rag_chain(llm=FakeListLLM(responses=[ANSWER])), QUESTION),
    "reranker": (lambda: rag_chain(Sections() | RunnableLambda(lambda d: d[1:])), QUESTION),
    "nothing found": (lambda: rag_chain(Sections(found=[])), QUESTION),
    "retry": (lambda: rag_chain(fails_once()), QUESTION),
    "agent with a tool": (lambda: agent(tools=[TOOL]) | RunnableLambda(dict), asked()),
    "graph that searches": (
        lambda: graph(
            dict,
            find=lambda state: {**state, "context": sections()[:1]},
            answer=lambda state: {"answer": scripted(ANSWER).invoke(str(state)).text},
        ),
        {"question": QUESTION},
    ),
}


def traced(chain: Runnable[Any, Any], given: Any, **config: Any) -> Any:
    """Run a chain and give LangSmith's tree of its runs."""
    collector = Runs()
    config["callbacks"] = [collector, *config.get("callbacks", [])]
    chain.invoke(given, config)  # type: ignore[arg-type]
    return collector.traced_runs[0]


def as_read_from_the_server(run: Any) -> Any:
    """The same tree with everything as JSON."""
    from langsmith._internal._serde import dumps_json

    names = ("id", "name", "run_type", "error", "tags", "start_time", "end_time", "dotted_order")
    plain = {name: getattr(run, name, None) for name in names}
    for name in ("inputs", "outputs", "extra"):
        plain[name] = json.loads(dumps_json(getattr(run, name)))
    children = [as_read_from_the_server(child) for child in run.child_runs]
    return SimpleNamespace(**plain, child_runs=children)


class TestRuns:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_gives_what_capture_gives(self, shape: str, captured: Captured) -> None:
        """The record of the run afterwards is the record of the call as it went on.

        So it is where the run was read back from LangSmith, where all is JSON. Run id, start and
        latency are those of the run; what is read is no call of a judge's own.
        """
        make, given = SHAPES[shape]

        run = traced(make(), given, callbacks=[captured.handler], tags=["t"], metadata={"user": 7})
        with suppress_capture():
            here, there = captured_in(run), captured_in(as_read_from_the_server(run))

        assert here is not None
        assert there is not None
        read, (seen,) = [substance(here), substance(there)], captured.substances
        for call in (*read, seen):
            del call["id"], call["capture"]["traces"]
        assert read == [seen, seen]
        how, taken = capture_of(here), (run.end_time - run.start_time).total_seconds()
        assert (how.run_id, how.latency_s, here.started_at) == (str(run.id), taken, run.start_time)

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            ("GraphInterrupt((Interrupt(value='ok?'),))\n\nTraceback", "interrupted"),
            ("CancelledError()", "aborted"),
            ("RuntimeError('closed')", "error"),
        ],
    )
    def test_what_became_of_it(self, error: str, status: str) -> None:
        """LangSmith keeps errors as text; a failed run is a failed call, and is not judged."""
        run, labeller = traced(rag_chain(), QUESTION), judge()
        run.error, run.outputs = error, None

        result = TraceEvaluator(labeller, metric="adherence")(run)

        assert capture_of(captured_in(run)).status == status
        if status != "aborted":  # of which there is what the app was given
            assert result["score"] is None
            assert labeller.asked == []

    def test_a_retriever_s_run(self) -> None:
        """Is a retrieval alone: its context is scored."""
        run = traced(Sections(), QUESTION)

        call = captured_in(run)

        assert call is not None
        assert (call.question, call.response, len(call.documents)) == (QUESTION, None, 3)
        scores = TraceEvaluator(judge(labels_of(["0a"], [], {})))(run)["results"]
        assert scores[0]["score"] == pytest.approx(1 / 3)

    def test_without_documents(self) -> None:
        """No context is said, none is invented; outputs may hold texts as documents."""
        labeller, bare = judge(), {"answer": ANSWER}
        evaluator = TraceEvaluator(labeller, metric="adherence")

        run = traced(RunnableLambda(lambda _: bare), {"question": QUESTION})
        assert "no_context" in evaluator(run)["comment"]
        texts: Any = RunnableLambda(lambda _: {**bare, "context": ["One.", "Two."]})
        assert evaluator(traced(texts, {"question": QUESTION}))["score"] == 1.0
        assert [document.text for document in labeller.asked[0].call.documents] == ["One.", "Two."]

    @pytest.mark.parametrize("artifact", [True, False])
    @pytest.mark.parametrize("as_json", [True, False])
    @pytest.mark.parametrize("children", [None, []])
    def test_without_child_runs(self, artifact: bool, as_json: bool, children: Any) -> None:
        """LangSmith hands such runs to evaluators: the messages hold what the tools returned."""
        found = sections()
        text = "\n\n".join(document.page_content for document in found)
        messages = [
            HumanMessage(QUESTION),
            AIMessage("", tool_calls=[{"name": "kb", "args": {}, "id": "c"}]),
            ToolMessage(text, tool_call_id="c", artifact=found if artifact else None),
            AIMessage(ANSWER),
        ]
        run = SimpleNamespace(
            id=uuid4(), name="agent", run_type="chain", inputs={"messages": messages[:1]},
            outputs={"messages": messages}, child_runs=children, error=None, extra={}, tags=[],
            start_time=None, end_time=None, dotted_order=None,
        )  # fmt: skip
        if as_json:
            run.child_runs = []
            run = as_read_from_the_server(run)
            run.child_runs = children
        labeller = judge()
        TraceEvaluator(labeller)(run)
        call = labeller.asked[0].call
        expected = [document.page_content for document in found] if artifact else [text]
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert [document.text for document in call.documents] == expected

    def test_odd_values_are_left_out(self) -> None:
        """A run of other makers, with messages and values of other shapes, is still read."""

        def run(run_type: str, inputs: Any, outputs: Any, child_runs: Any = ()) -> Any:
            fields: Any = {"inputs": inputs, "outputs": outputs, "child_runs": child_runs}
            return SimpleNamespace(id=uuid4(), name="r", run_type=run_type, error=None, **fields)

        messages = {"messages": [{"role": "user", "content": "Use One."}]}
        llm = run("llm", messages, {"generations": [[{"text": ANSWER}, None]]}, None)
        odd = run("llm", {"messages": "?"}, None)
        nested: Any = {"page_content": "deep"}
        for _ in range(40):
            nested = {"x": [nested]}
        document = {"type": "constructor", "kwargs": {"page_content": "One."}}
        retriever = run("retriever", {"query": QUESTION}, {"documents": [document]})
        inputs = {"question": QUESTION, "nested": nested, "odd": {"type": "constructor"}}
        root = run("chain", inputs, None, [retriever, odd, llm])

        call = captured_in(root)

        assert call is not None
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert [document.text for document in call.documents] == ["One."]
        assert capture_of(call).latency_s is None

    def test_values_go_before_the_run(self) -> None:
        """An evaluator of the user's own may pass the run on with what he knows better."""
        labeller, run = judge(), traced(rag_chain(), QUESTION)
        example = SimpleNamespace(id=uuid4(), inputs={}, outputs={"answer": "Quick."})

        TraceEvaluator(labeller)(run, example, context=["Mine."], question="Mine?")

        call = labeller.asked[0].call
        assert (call.question, call.response, call.reference) == ("Mine?", ANSWER, "Quick.")
        assert [document.text for document in call.documents] == ["Mine."]
        assert call.id == str(example.id)


# --- LangSmith's runners -----------------------------------------------------------------------


def example() -> Example:
    known: Any = {"id": uuid4(), "dataset_id": uuid4(), "created_at": datetime.now(UTC)}
    return Example(inputs={"question": QUESTION}, outputs={"answer": "Quick."}, **known)


def scores_of(row: Any) -> dict[str, Any]:
    return {result.key: result.score for result in row["evaluation_results"]["results"]}


@pytest.mark.filterwarnings("ignore:'upload_(results|runs)' parameter is in beta")
class TestRunners:
    def test_one_evaluator_gives_all_scores(self, client: Client, server: LangSmithService) -> None:
        """`langsmith.evaluate` over a LangChain target: the tree has the documents.

        Six objects, which LangSmith calls from threads, ask once a run; a user's own function can
        pass LangSmith's named arguments on.
        """
        chain, labeller = rag_chain(), judge()
        trace = TraceEvaluator(labeller, metric="adherence")

        def mine(inputs: Any, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
            given = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
            return {**trace(context=["Mine."], **given), "key": "mine"}

        evaluators: Any = [*as_evaluators(RagEvaluator(labeller)).values(), mine]
        (row,) = evaluate(
            lambda inputs: {"answer": chain.invoke(inputs["question"])},
            data=[example()], evaluators=evaluators, upload_results=False, client=client,
        )  # fmt: skip

        found = scores_of(row)
        assert found.keys() == {*TRACE_SCORES, "mine"}
        assert (found["adherence"], found["mine"]) == (1.0, 1.0)
        judged = [asking.call for asking in labeller.asked]
        assert sorted(len(call.documents) for call in judged) == [1, 3]
        assert {call.reference for call in judged} == {"Quick."}
        assert server.scores == []

    async def test_async(self, client: Client) -> None:
        """`langsmith.aevaluate` takes the object, and its async form."""
        chain, evaluator = rag_chain(), TraceEvaluator(judge(), metric="completeness")

        async def answer(inputs: dict[str, Any]) -> dict[str, Any]:
            return {"answer": await chain.ainvoke(inputs["question"])}

        for form in (evaluator, evaluator.acall):
            rows = await aevaluate(
                answer, data=[example()], evaluators=[form],  # type: ignore[list-item]
                upload_results=False, client=client,
            )  # fmt: skip
            assert [scores_of(row)["completeness"] async for row in rows] == [1.0]

    async def test_as_a_run_evaluator(self) -> None:
        """`evaluate_run` gives LangSmith's own result objects."""
        run, labeller, maker = traced(rag_chain(), QUESTION), judge(), uuid4()

        single: Any = TraceEvaluator(labeller, metric="adherence").evaluate_run(run, None, maker)
        several: Any = await TraceEvaluator(labeller).aevaluate_run(run)

        assert isinstance(single, EvaluationResult)
        assert (single.key, single.score, single.source_run_id) == ("adherence", 1.0, maker)
        keys = [result.key for result in several["results"]]
        assert keys == TraceEvaluator(labeller).feedback_keys


# --- feedback ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
class TestFeedback:
    def test_scores_land_on_the_run(
        self, client: Client, server: LangSmithService, captured: Captured
    ) -> None:
        """By the id of the run that was captured, and of the project, which is looked up once."""
        collector = Runs()
        sink = LangSmithFeedback(client, project="kettles")
        with BackgroundEvaluator(RagEvaluator(judge()), [sink]) as background:
            rag_chain().invoke(QUESTION, {"callbacks": [collector, captured.handler]})
            background(captured.only)
            assert background.flush()

        adherence = server.of("adherence")
        assert (adherence["run_id"], adherence["score"]) == (str(collector.traced_runs[0].id), 1.0)
        assert adherence["feedback_source"]["type"] == "model"
        if "session_id" in inspect.signature(client.create_feedback).parameters:  # not in 0.3.45
            assert adherence["session_id"] == str(server.project)
            assert sum("sessions" in path for _, path in server.requests) == 1

    @pytest.mark.parametrize("server", [Refusing], indirect=True)
    def test_a_refusal_costs_no_other(self, client: Client, server: LangSmithService) -> None:
        """All is tried, then what was refused is raised: the background evaluator counts it."""
        sink = LangSmithFeedback(client, session_id=server.project)

        with pytest.raises(PartlyWrittenError, match="1 not written") as raised:
            sink.write([_evaluated()])

        assert len(raised.value.left) == 1
        assert {score["key"] for score in server.scores} == {*TRACE_SCORES} - {"adherence"}

    def test_a_project_that_is_not_there(self) -> None:
        """Is one failure of the whole batch, not one for each score."""
        asked: list[str] = []

        class Lost:
            def create_feedback(self, run_id: str, key: str, session_id: object = None) -> None:
                raise NotImplementedError("without a project nothing may be posted")

            def read_project(self, project_name: str) -> None:
                asked.append(project_name)
                raise LookupError(project_name)

        client: Any = Lost()
        with pytest.raises(LookupError, match="default"):
            LangSmithFeedback(client).write([_evaluated()] * 2)

        assert asked == ["default"]

    def test_an_older_client(self) -> None:
        """Is not told what it does not know: it would warn of it."""
        told: list[dict[str, Any]] = []

        class Older:
            def create_feedback(self, run_id: str, key: str, **fields: Any) -> None:
                told.append(fields)

        client: Any = Older()
        LangSmithFeedback(client).write([_evaluated()])

        assert len(told) == len(TRACE_SCORES)
        assert "session_id" not in told[0]

    def test_a_client_is_needed(self) -> None:
        """Named at construction; the name of this package is that of the sink."""
        assert LangSmithFeedback is LangSmithSink
        with pytest.raises(ConfigurationError, match="client"):
            LangSmithFeedback("https://example.org")  # type: ignore[arg-type]


def _evaluated() -> Evaluation:
    captured = Captured()
    rag_chain().invoke(QUESTION, captured.config)
    return RagEvaluator().evaluate_sync(captured.only)
