"""Evaluator objects with LangSmith: its runs read as captured, its runners, its feedback."""

from __future__ import annotations

import inspect
import json
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from by_hand import ScriptedJudge, labels_of
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langsmith import Client, aevaluate, evaluate
from langsmith.evaluation import EvaluationResult
from langsmith.schemas import Example

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator, capture_call
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError, JudgeUnavailableError
from rag_eval_integrations.langchain import (
    EvaluatedRetriever,
    LangSmithFeedback,
    TraceEvaluator,
    as_evaluators,
    evaluated,
)
from rag_eval_integrations.langchain.evaluators._run_tree import captured_in
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.records import SentencizedCall
from rag_eval_integrations.sinks import LangSmithSink, PartlyWrittenError

from .apps import graph
from .conftest import ANSWER, Captured, Sections, model, rag_chain, sections, substance

QUESTION = "How fast is the kettle?"
LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


class Server(ThreadingHTTPServer):
    """What LangSmith is to its client: takes everything, knows one project, has no examples."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.project = uuid4()
        self.posted: list[tuple[str, Any]] = []
        self.asked: list[str] = []
        self.refuse: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def feedback(self) -> list[dict[str, Any]]:
        return [body for path, body in self.posted if path == "/feedback"]


class _Answers(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        project = {
            "id": str(self.server.project),
            "name": "kettles",
            "start_time": "2026-01-01T00:00:00Z",
            "tenant_id": str(uuid4()),
            "reference_dataset_id": None,
        }
        self._reply([project] if self.path.startswith("/sessions") else {"version": "0.12.0"})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = "json" in self.headers.get("content-type", "")
        body = json.loads(content) if is_json and content else content
        self.server.posted.append((self.path, body))
        refused = isinstance(body, dict) and body.get("key") in self.server.refuse
        self._reply({"detail": "no such key"} if refused else {}, 422 if refused else 200)

    def _reply(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Not to stderr."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
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


class Scripted(FakeMessagesListChatModel):
    """A model that calls tools as it is told."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return self


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the manual."""
    return "\n".join(d.page_content for d in sections()), sections()


def agent() -> Runnable[Any, Any]:
    from langchain.agents import create_agent

    call = {"name": "search", "args": {"query": "kettle speed"}, "id": "1"}
    llm = Scripted(responses=[AIMessage("", tool_calls=[call]), AIMessage(ANSWER)])
    return create_agent(llm, [search]) | RunnableLambda(lambda state: state)


def fails_once(retriever: BaseRetriever) -> Runnable[Any, Any]:
    failed: list[bool] = []

    def check(documents: list[Document]) -> list[Document]:
        if not failed:
            failed.append(True)
            raise RuntimeError("first")
        return documents

    return (retriever | RunnableLambda(check)).with_retry(wait_exponential_jitter=False)


SHAPES: dict[str, tuple[Any, Any]] = {
    "chain": (rag_chain, QUESTION),
    "completion model": (lambda: rag_chain(llm=FakeListLLM(responses=[ANSWER])), QUESTION),
    "reranker": (lambda: rag_chain(Sections() | RunnableLambda(lambda d: d[1:])), QUESTION),
    "nothing found": (lambda: rag_chain(Sections(found=[])), QUESTION),
    "retry": (lambda: rag_chain(fails_once(Sections())), QUESTION),
    "agent with a tool": (agent, {"messages": [("user", QUESTION)]}),
    "graph that searches": (
        lambda: graph(
            dict,
            find=lambda state: {**state, "context": sections()[:1]},
            answer=lambda state: {"answer": model().invoke(str(state)).text},
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
        assert substance(here) == substance(there) == substance(captured.only)
        assert here.capture is not None
        assert here.capture.run_id == str(run.id)
        assert here.capture.latency_s == (run.end_time - run.start_time).total_seconds()
        assert here.started_at == run.start_time

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
        run, asked = traced(rag_chain(), QUESTION), ScriptedJudge(LABELS)
        run.error, run.outputs = error, None

        call = captured_in(run)
        result = TraceEvaluator(asked, metric="adherence")(run)

        assert call is not None
        assert call.capture is not None
        assert call.capture.status == status
        if status != "aborted":  # of which there is what the app was given
            assert result["score"] is None
            assert asked.asked == []

    def test_a_retriever_s_run(self) -> None:
        """Is a retrieval alone: its context is scored."""
        run = traced(Sections(), QUESTION)

        call = captured_in(run)

        assert call is not None
        assert (call.question, call.response, len(call.documents)) == (QUESTION, None, 3)
        assert TraceEvaluator(ScriptedJudge(labels_of(["0a"], [], {})))(run)["results"][0][
            "score"
        ] == pytest.approx(1 / 3)

    def test_without_documents(self) -> None:
        """No context is said, none is invented; outputs may hold texts as documents."""
        run = traced(RunnableLambda(lambda given: {"answer": ANSWER}), {"question": QUESTION})
        texts = traced(
            RunnableLambda(lambda given: {"answer": ANSWER, "context": ["One.", "Two."]}),
            {"question": QUESTION},
        )
        asked = ScriptedJudge(LABELS)
        evaluator = TraceEvaluator(asked, metric="adherence")

        assert "no_context" in evaluator(run)["comment"]
        assert evaluator(texts)["score"] == 1.0
        assert [document.text for document in asked.asked[0].call.documents] == ["One.", "Two."]

    def test_odd_values_are_left_out(self) -> None:
        """A run of other makers, with messages and values of other shapes, is still read."""
        llm = SimpleNamespace(
            id=uuid4(), name="m", run_type="llm", error=None, child_runs=None,
            inputs={"messages": [{"role": "user", "content": "Use One."}]},
            outputs={"generations": [[{"text": ANSWER}, None]]},
        )  # fmt: skip
        odd = SimpleNamespace(
            id=uuid4(), name="m", run_type="llm", error=None, child_runs=[],
            inputs={"messages": "?"}, outputs=None,
        )  # fmt: skip
        nested: Any = {"page_content": "deep"}
        for _ in range(40):
            nested = {"x": [nested]}
        retriever = SimpleNamespace(
            id=uuid4(), name="r", run_type="retriever", error=None, child_runs=[],
            inputs={"query": QUESTION},
            outputs={"documents": [{"type": "constructor", "kwargs": {"page_content": "One."}}]},
        )  # fmt: skip
        root = SimpleNamespace(
            id=uuid4(), name="r", run_type="chain", error=None, child_runs=[retriever, odd, llm],
            inputs={"question": QUESTION, "nested": nested, "odd": {"type": "constructor"}},
            outputs=None,
        )  # fmt: skip

        call = captured_in(root)

        assert call is not None
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert [document.text for document in call.documents] == ["One."]
        assert call.capture is not None
        assert call.capture.latency_s is None

    def test_values_go_before_the_run(self) -> None:
        """An evaluator of the user's own may pass the run on with what he knows better."""
        asked = ScriptedJudge(LABELS)
        example = SimpleNamespace(id=uuid4(), inputs={}, outputs={"answer": "Quick."})

        TraceEvaluator(asked)(
            traced(rag_chain(), QUESTION), example, context=["Mine."], question="Mine?"
        )

        call = asked.asked[0].call
        assert (call.question, call.response, call.reference) == ("Mine?", ANSWER, "Quick.")
        assert [document.text for document in call.documents] == ["Mine."]
        assert call.id == str(example.id)


# --- LangSmith's runners -----------------------------------------------------------------------


def examples(*questions: str) -> list[Example]:
    return [
        Example(
            id=uuid4(),
            inputs={"question": question},
            outputs={"answer": "Quick."},
            dataset_id=uuid4(),
            created_at=datetime.now(UTC),
        )
        for question in questions
    ]


def scores_of(row: Any) -> dict[str, tuple[Any, Any]]:
    return {
        result.key: (result.score, result.comment)
        for result in row["evaluation_results"]["results"]
    }


@pytest.mark.filterwarnings("ignore:'upload_(results|runs)' parameter is in beta")
class TestRunners:
    def test_one_evaluator_gives_all_scores(self, client: Client, server: Server) -> None:
        """`langsmith.evaluate` over a LangChain target: the tree has the documents.

        Six objects, which LangSmith calls from threads, ask once a run; a user's own function can
        pass LangSmith's named arguments on. Where the judge fails the score is None.
        """

        def answer(call: SentencizedCall) -> Any:
            if call.call.question == "And the lid?":
                raise JudgeUnavailableError("503 from the judge", status=503)
            return LABELS

        chain, asked = rag_chain(), ScriptedJudge(answer)
        trace = TraceEvaluator(asked, metric="adherence")

        def mine(inputs: Any, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
            given = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
            return {**trace(context=["Mine."], **given), "key": "mine"}

        rows = evaluate(
            lambda inputs: {"answer": chain.invoke(inputs["question"])},
            data=examples(QUESTION, "And the lid?"),
            evaluators=[*as_evaluators(RagEvaluator(asked)).values(), mine],
            upload_results=False,
            client=client,
        )

        found = {row["example"].inputs["question"]: scores_of(row) for row in rows}  # type: ignore[index]
        assert sorted(found[QUESTION]) == sorted([*TRACE_SCORES, "mine"])
        assert (found[QUESTION]["adherence"][0], found[QUESTION]["mine"][0]) == (1.0, 1.0)
        failed = (None, "error: JudgeUnavailableError: 503 from the judge")
        assert found["And the lid?"]["adherence"] == failed
        judged = [asking.call for asking in asked.asked if asking.call.question == QUESTION]
        assert sorted(len(call.documents) for call in judged) == [1, 3]
        assert {call.reference for call in judged} == {"Quick."}
        assert server.feedback == []

    async def test_async(self, client: Client) -> None:
        """`langsmith.aevaluate` takes the object, and its async form."""
        chain, asked = rag_chain(), ScriptedJudge(LABELS)
        evaluator = TraceEvaluator(asked, metric="completeness")

        async def answer(inputs: dict[str, Any]) -> dict[str, Any]:
            return {"answer": await chain.ainvoke(inputs["question"])}

        for form in (evaluator, evaluator.acall):
            rows = await aevaluate(
                answer, data=examples(QUESTION), evaluators=[form],  # type: ignore[list-item]
                upload_results=False, client=client,
            )  # fmt: skip
            assert [scores_of(row)["completeness"][0] async for row in rows] == [1.0]

    async def test_as_a_run_evaluator(self) -> None:
        """`evaluate_run` gives LangSmith's own result objects."""
        run, asked = traced(rag_chain(), QUESTION), ScriptedJudge(LABELS)
        maker = uuid4()

        single: Any = TraceEvaluator(asked, metric="adherence").evaluate_run(run, None, maker)
        several: Any = await TraceEvaluator(asked).aevaluate_run(run)

        assert isinstance(single, EvaluationResult)
        assert (single.key, single.score, single.source_run_id) == ("adherence", 1.0, maker)
        assert [result.key for result in several["results"]] == TraceEvaluator(asked).feedback_keys


# --- feedback ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
class TestFeedback:
    def test_scores_land_on_the_run(self, client: Client, server: Server) -> None:
        """By the id of the run that was captured, with key, score, comment and who made it."""
        evaluator = RagEvaluator(ScriptedJudge(LABELS))
        collector = Runs()
        with BackgroundEvaluator(
            evaluator, [LangSmithFeedback(client, project="kettles", texts=True)]
        ) as background:
            evaluated(rag_chain(), background).invoke(QUESTION, {"callbacks": [collector]})
            assert background.flush()

        assert [one["key"] for one in server.feedback] == list(TRACE_SCORES)
        by_key = {one["key"]: one for one in server.feedback}
        adherence = by_key["adherence"]
        assert adherence["run_id"] == str(collector.traced_runs[0].id)
        if "session_id" in inspect.signature(client.create_feedback).parameters:  # not in 0.3.45
            assert adherence["session_id"] == str(server.project)
            assert sum("sessions" in path for path in server.asked) == 1
        assert adherence["score"] == 1.0
        assert "fully supported" in adherence["comment"]
        source = adherence["feedback_source"]
        assert (source["type"], source["metadata"]["judge"]) == ("model", "scripted")

    def test_posted_twice_is_one_feedback(self, client: Client, server: Server) -> None:
        """The id follows from run, score and evaluator."""
        evaluation = RagEvaluator().evaluate_sync(_captured())
        sink = LangSmithFeedback(client, session_id=server.project)

        sink.write([evaluation])
        sink.write([evaluation])

        ids = [one["id"] for one in server.feedback]
        assert len(ids) == 2 * len(TRACE_SCORES)
        assert len(set(ids)) == len(TRACE_SCORES)
        assert UUID(ids[0]).version == 5

    def test_one_refusal_does_not_cost_the_others(self, client: Client, server: Server) -> None:
        """All is tried, then what was refused is raised: the background evaluator counts it."""
        server.refuse.add("adherence")
        sink = LangSmithFeedback(client, session_id=server.project)

        with pytest.raises(PartlyWrittenError, match="1 not written") as raised:
            sink.write([RagEvaluator().evaluate_sync(_captured())])

        assert len(raised.value.left) == 1
        assert {one["key"] for one in server.feedback} == set(TRACE_SCORES)

    def test_calls_that_are_no_langchain_run(self, client: Client, server: Server) -> None:
        """Are left out and counted: there is no run to post to."""
        calls: list[RagCall] = [RagCall(QUESTION, ["One."], ANSWER)]
        with capture_call(calls.append, QUESTION) as call:
            call.response = ANSWER
        sink = LangSmithFeedback(client, session_id=server.project)

        sink.write([RagEvaluator().evaluate_sync(call) for call in calls])

        assert server.feedback == []
        assert sink.left_out == 2

    def test_a_project_that_is_not_there(self, server: Server) -> None:
        """Is one failure of the whole batch, not one for each score."""

        class Lost:
            asked = 0

            def create_feedback(self, run_id: str, key: str, session_id: object = None) -> None:
                raise NotImplementedError("without a project nothing may be posted")

            def read_project(self, project_name: str) -> None:
                self.asked += 1
                raise LookupError(project_name)

        client: Any = Lost()
        evaluation = RagEvaluator().evaluate_sync(_captured())

        with pytest.raises(LookupError, match="default"):
            LangSmithFeedback(client).write([evaluation, evaluation])

        assert client.asked == 1

    def test_an_older_client(self) -> None:
        """Is not told what it does not know: it would warn of it."""
        told: list[dict[str, Any]] = []

        class Older:
            def create_feedback(self, run_id: str, key: str, **fields: Any) -> None:
                told.append(fields)

        client: Any = Older()
        LangSmithFeedback(client).write([RagEvaluator().evaluate_sync(_captured())])

        assert len(told) == len(TRACE_SCORES)
        assert "session_id" not in told[0]

    def test_a_client_is_needed(self) -> None:
        """Named at construction; the name of this package is that of the sink."""
        assert LangSmithFeedback is LangSmithSink
        with pytest.raises(ConfigurationError, match="client"):
            LangSmithFeedback("https://example.org")  # type: ignore[arg-type]


def _captured(response: str = ANSWER) -> RagCall:
    calls: list[RagCall] = []
    EvaluatedRetriever(Sections(), calls.append).invoke(QUESTION)
    return calls[0].model_copy(update={"response": response})
