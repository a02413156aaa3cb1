"""Capture beside another instrumentor's tracer, attached before or after the handler."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool

from .apps import QUESTION, Scripted, calls_tool, says
from .conftest import ANSWER, Captured, Sections, model, rag_chain, run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    instrumentors = pytest.importorskip("openinference.instrumentation.langchain")
    from opentelemetry.sdk.trace import TracerProvider


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request: pytest.FixtureRequest) -> Iterator[Captured]:
    """What a handler captures, attached to the whole process beside the other instrumentor."""
    captured = Captured()
    other = instrumentors.LangChainInstrumentor()

    def theirs() -> None:
        other.instrument(tracer_provider=TracerProvider())

    attaching = [captured.handler.attach_globally, theirs]
    for attach in attaching if request.param == "ours first" else attaching[::-1]:
        attach()
    yield captured
    captured.handler.detach()
    other.uninstrument()
    assert captured.handler.open_calls == 0
    assert captured.handler.failed == 0


def assert_whole(captured: Captured) -> None:
    assert (captured.only.question, captured.only.response) == (QUESTION, ANSWER)
    assert captured.found == (["a", "b", "c"], "prompt", [])
    assert captured.how.status == "ok"


class TestChains:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
    async def test_are_whole(self, beside: Captured, way: str) -> None:
        """The app gets its answer, and the call keeps its evidence."""
        chain = rag_chain(llm=model())
        assert await run(chain, QUESTION, way) == ANSWER
        assert_whole(beside)

    def test_closed_stream(self, beside: Captured) -> None:
        """A stream that the app closes is an aborted call."""
        stream: Any = rag_chain().stream(QUESTION)
        next(stream)
        stream.close()

        assert beside.how.status == "aborted"


class TestAgents:
    def test_are_whole(self, beside: Captured) -> None:
        """An agent's retriever tool as well."""
        tool = create_retriever_tool(Sections(), "search", "Finds sections.")
        agent: Any = create_agent(Scripted(replies=[calls_tool("kettle"), says()]), [tool])
        given = {"messages": [("human", QUESTION)]}
        agent.invoke(given)

        assert_whole(beside)
