"""Capture beside another instrumentor's tracer, attached before or after the handler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client

from rag_eval_integrations.langchain import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, agent, asked
from .conftest import ANSWER, Captured, Sections, capture_of, rag_chain

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    instrumentors = pytest.importorskip("openinference.instrumentation.langchain")
    from opentelemetry.sdk.trace import TracerProvider


SILENT = Client(api_url="http://127.0.0.1:9", api_key="key", auto_batch_tracing=False)


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request: pytest.FixtureRequest, captured: Captured) -> Iterator[Captured]:
    """What a handler captures, attached to the whole process beside the other instrumentor."""
    other = instrumentors.LangChainInstrumentor()
    theirs = partial(other.instrument, tracer_provider=TracerProvider())
    attaching: list[Callable[[], object]] = [captured.handler.attach_globally, theirs]
    for attach in attaching if request.param == "ours first" else attaching[::-1]:
        attach()
    yield captured
    captured.handler.detach()
    other.uninstrument()


class TestChains:
    def test_closed_stream(self, beside: Captured) -> None:
        """A stream that the app closes is an aborted call."""
        stream: Any = rag_chain().stream(QUESTION)
        next(stream)
        stream.close()

        assert beside.how.status == "aborted"

    def test_agents_are_whole(self, beside: Captured) -> None:
        """The call of an agent keeps its evidence, its retriever's tool's, and knows its trace."""
        agent().invoke(asked())

        assert beside.exchange == (QUESTION, ANSWER)
        assert beside.found == (["a", "b", "c"], "prompt", [])
        assert (beside.how.status, list(beside.how.traces)) == ("ok", ["openinference"])


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
