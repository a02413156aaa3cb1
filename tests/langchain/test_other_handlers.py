"""Handlers beside ours: each hears what it hears without ours, in the same order."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models.fake import FakeStreamingListLLM
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from .apps import QUESTION, State, graph
from .conftest import ANSWER, Captured, Sections, joined, model, run, sections

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

WAYS = ["invoke", "ainvoke", "batch", "abatch", "stream", "astream"]
UUIDS = re.compile("[0-9a-f]{8}-[0-9a-f-]{27}")


def completion_model() -> FakeStreamingListLLM:
    """A model of texts, not of messages."""
    return FakeStreamingListLLM(responses=[ANSWER])


def line(llm: Any) -> Any:
    """A chain whose runs follow one another, so that their order is always the same."""
    texts: Any = Sections() | RunnableLambda(joined)
    return texts | PromptTemplate.from_template("Use:\n{context}") | llm


# --- Handlers that record what they hear


class Heard(list[tuple[str, int, int | None, str]]):
    """Events: name, number of the run and of the one around it, and what was told."""

    def __init__(self) -> None:
        self.numbers: dict[UUID, int] = {}

    def note(self, name: str, told: object, run_id: UUID, around: UUID | None) -> None:
        number = self.numbers.setdefault(run_id, len(self.numbers))
        parent = None if around is None else self.numbers.get(around)
        self.append((name, number, parent, UUIDS.sub("", str(told))))


def _method(name: str, *, is_async: bool) -> Callable[..., Any]:
    def hear(self: Any, *told: Any, run_id: UUID, parent_run_id: Any = None, **_: Any) -> None:
        self.heard.note(name, told, run_id, parent_run_id)

    async def hear_async(self: Any, *told: Any, **about: Any) -> None:
        hear(self, *told, **about)

    return hear_async if is_async else hear


def recorder(kind: str) -> Any:
    """A handler that hears everything, of one of the kinds that LangChain serves differently."""
    starts_and_ends = [
        f"on_{run}_{moment}"
        for run in ("chain", "retriever", "llm", "chat_model")
        for moment in ("start", "end", "error")
    ]
    methods: dict[str, Any] = {
        name: _method(name, is_async=kind == "async")
        for name in (*starts_and_ends, "on_llm_new_token")
    }
    base = AsyncCallbackHandler if kind == "async" else BaseCallbackHandler
    attributes = {"run_inline": kind == "inline", "heard": Heard()}
    return type("Recorder", (base,), {**methods, **attributes})()


OTHERS = [["thread"], ["inline"], ["async"], ["thread", "async", "inline"]]


async def heard_by(kinds: list[str], way: str, chain: Any, *ours: Any, first: bool) -> list[Heard]:
    """What other handlers hear of a call, beside ours or without."""
    others = [recorder(kind) for kind in kinds]
    callbacks = [*ours, *others] if first else [*others, *ours]
    await run(chain, QUESTION, way, {"callbacks": callbacks})
    return [other.heard for other in others]


class TestEvents:
    """Beside ours, every other handler hears the same as alone, in either order."""

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("make", [model, completion_model])
    async def test_are_the_same(self, make: Callable[[], Any], way: str) -> None:
        """Of chains with models of messages and of texts, in every way to run them."""
        chain = line(make())
        for kinds in OTHERS:
            alone = await heard_by(kinds, way, chain, first=True)
            assert {"on_retriever_end", "on_llm_end"} <= {name for name, *_ in alone[0]}
            for ours in ([Captured()], [Captured(), Captured()]):
                for first in (True, False):
                    handlers = [captured.handler for captured in ours]
                    assert await heard_by(kinds, way, chain, *handlers, first=first) == alone
                    for captured in ours:
                        assert captured.found == (["a", "b", "c"], "prompt", [])
                        captured.calls.clear()

    async def test_of_streams_of_events(self, captured: Captured) -> None:
        """The app's own stream of events is the same, the start of its text model included."""

        async def events(config: Any) -> list[tuple[str, str]]:
            stream = line(completion_model()).astream_events(QUESTION, config, version="v2")
            return [(event["event"], UUIDS.sub("", str(event["data"]))) async for event in stream]

        alone = await events({})

        assert await events(captured.config) == alone
        assert "on_llm_start" in dict(alone)

    async def test_after_we_have_gone(self, captured: Captured) -> None:
        """A handler that was attached to the process and detached leaves nothing behind."""
        chain = line(completion_model())
        alone = await heard_by(["thread"], "ainvoke", chain, first=True)
        captured.handler.attach_globally()
        captured.handler.detach()

        assert await heard_by(["thread"], "ainvoke", chain, first=True) == alone
        assert "on_llm_start" in {name for name, *_ in alone[0]}

    async def test_of_a_graph_that_streams_messages(self, captured: Captured) -> None:
        """Beside LangGraph's own inline handler we hear of a text model, too."""

        async def answer(state: State) -> State:
            return {"answer": await completion_model().ainvoke(joined(state["context"]))}

        app = graph(State, search=lambda state: {"context": sections()}, answer=answer)
        given: Any = {"question": QUESTION}
        async for _ in app.astream(given, captured.config, stream_mode=["messages", "values"]):
            pass

        assert captured.found == (["a", "b", "c"], "prompt", [])


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of OpenInference's instrumentor."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    yield exporter
    LangChainInstrumentor().uninstrument()


class TestSpans:
    """OpenInference has the same spans with ours and without, and complains of nothing."""

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("make", [model, completion_model])
    @pytest.mark.parametrize("globally", [False, True])
    async def test_are_the_same(
        self,
        make: Callable[[], Any],
        way: str,
        globally: bool,
        captured: Captured,
        spans: InMemorySpanExporter,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Given to the call, or attached to the process."""

        async def told(config: Any) -> list[tuple[str, str, str]]:
            spans.clear()
            await run(line(make()), QUESTION, way, config)
            ended = spans.get_finished_spans()
            names = {span.context.span_id: span.name for span in ended}
            return [
                (
                    span.name,
                    names[span.parent.span_id] if span.parent else "",
                    UUIDS.sub("", str(span.attributes)),
                )
                for span in ended
            ]

        alone = await told({})
        if globally:
            captured.handler.attach_globally()
        beside = await told({} if globally else captured.config)
        captured.handler.detach()

        assert beside == alone
        assert len(alone) == 5
        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert caplog.records == []
