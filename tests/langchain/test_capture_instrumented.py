"""Capture beside another instrumentor's tracer, attached before or after the handler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client

from rag_eval_integrations.langchain import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, agent, asked
from .conftest import ANSWER, Captured, Sections, capture_of, rag_chain, run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    instrumentors = pytest.importorskip("openinference.instrumentation.langchain")
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider


SILENT = Client(api_url="http://127.0.0.1:9", api_key="key", auto_batch_tracing=False)


class Roots(SpanProcessor):
    """Keeps the ids of the other instrumentor's root spans."""

    def __init__(self) -> None:
        self.ids: list[tuple[str, str]] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if span.parent is None:
            context = span.context
            self.ids.append((f"{context.trace_id:032x}", f"{context.span_id:016x}"))


@pytest.fixture
def roots() -> Roots:
    return Roots()


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request: pytest.FixtureRequest, captured: Captured, roots: Roots) -> Iterator[Captured]:
    """What a handler captures, attached to the whole process beside the other instrumentor."""
    other = instrumentors.LangChainInstrumentor()
    provider = TracerProvider()
    provider.add_span_processor(roots)

    attaching: list[Callable[[], object]] = [
        captured.handler.attach_globally, lambda: other.instrument(tracer_provider=provider),
    ]  # fmt: skip
    for attach in attaching if request.param == "ours first" else attaching[::-1]:
        attach()
    yield captured
    captured.handler.detach()
    other.uninstrument()


def assert_whole(captured: Captured) -> None:
    assert (captured.only.question, captured.only.response) == (QUESTION, ANSWER)
    assert captured.found == (["a", "b", "c"], "prompt", [])
    assert captured.how.status == "ok"


class TestChains:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
    async def test_are_whole(self, beside: Captured, roots: Roots, way: str) -> None:
        """The app gets its answer; the call keeps its evidence, and knows its trace."""
        assert await run(rag_chain(), QUESTION, way) == ANSWER
        assert_whole(beside)
        assert [beside.how.traces["openinference"]] == roots.ids

    def test_closed_stream(self, beside: Captured) -> None:
        """A stream that the app closes is an aborted call."""
        stream: Any = rag_chain().stream(QUESTION)
        next(stream)
        stream.close()

        assert beside.how.status == "aborted"

    def test_agents_are_whole(self, beside: Captured) -> None:
        """An agent's retriever tool as well."""
        agent().invoke(asked())

        assert_whole(beside)


class TestTracesOfLangSmith:
    """LangSmith's tracer knows runs by the ids that LangChain gives them."""

    class Tracer(LangChainTracer):
        """Sends nothing."""

        def _persist_run_single(self, run: Any) -> None: ...

        @staticmethod
        def _update_run_single(run: Any) -> None: ...

    @pytest.mark.parametrize("theirs_first", [False, True])
    def test_chain_and_graph(self, captured: Captured, theirs_first: bool) -> None:
        """A root run is its own trace; a graph tells its runs later than a chain."""
        tracer = self.Tracer(client=SILENT)
        handlers = [captured.handler, tracer]
        config: Any = {"callbacks": handlers[::-1] if theirs_first else handlers}
        agent().invoke(asked(), config)
        rag_chain().invoke(QUESTION, config)

        for how in map(capture_of, captured.calls):
            assert how.traces == {"langsmith": (how.run_id,) * 2}
        assert len(captured.calls) == 2

    # langchain-core 1.0 reads runs of langsmith by them.
    @pytest.mark.filterwarnings("ignore:The `\\w+` method is deprecated")
    def test_retriever_alone(self) -> None:
        """So does the run of an `EvaluatedRetriever`, within the trace of the run around it."""
        calls: list[RagCall] = []
        tracer = self.Tracer(client=SILENT)
        retriever = EvaluatedRetriever(Sections(), calls.append)
        (retriever | (lambda documents: documents)).invoke("kettle", {"callbacks": [tracer]})

        assert tracer.latest_run is not None
        (how,) = map(capture_of, calls)
        assert how.traces == {"langsmith": (str(tracer.latest_run.trace_id), how.run_id)}
