"""Capture beside another instrumentor, whose proxies stand around the app's streams."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from rag_eval_integrations.llama_index import EvaluatedQueryEngine, RagEvalHandler, TraceEvaluator
from rag_eval_integrations.llama_index._stream import read_along
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.testing import ScriptedModel, labels_reply

from .conftest import ANSWER, TOKENS, Captured, Model, Sections, engine, ids, nodes, seen

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    instrumentors = pytest.importorskip("openinference.instrumentation.llama_index")
    from opentelemetry.sdk.trace import TracerProvider

QUESTION = "How fast is the kettle?"


class Beside:
    """Both instrumentors, attached in one order or the other."""

    def __init__(self, handler: RagEvalHandler) -> None:
        self.handler = handler
        self.other = instrumentors.LlamaIndexInstrumentor()

    def attach(self, order: str) -> None:
        def theirs() -> None:
            self.other.instrument(tracer_provider=TracerProvider())

        attaching = [self.handler.install, theirs]
        for attach in attaching if order == "ours first" else attaching[::-1]:
            attach()

    def detach(self) -> None:
        self.handler.uninstall()
        self.other.uninstrument()


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request: pytest.FixtureRequest) -> Iterator[list[RagCall]]:
    """The calls that a handler captures beside the other instrumentor."""
    calls: list[RagCall] = []
    both = Beside(RagEvalHandler(calls.append))
    both.attach(request.param)
    yield calls
    both.detach()
    assert both.handler.open_calls == 0
    assert both.handler.failed == 0
    assert not both.handler._recorder.spans


def only(calls: list[RagCall]) -> RagCall:
    """The only call, once a chat engine's thread has ended it."""
    for _ in range(500):
        if calls:
            break
        time.sleep(0.01)
    assert len(calls) == 1
    return calls[0]


def assert_whole(calls: list[RagCall], text: str) -> None:
    call = only(calls)
    assert text == ANSWER
    assert call.response == ANSWER
    assert sorted(map(str, ids(call))) == ["a", "b", "c"]
    assert seen(call).status == "ok"
    assert seen(call).documents_from == "prompt"


class TestSyncStreams:
    @pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize"])
    def test_tokens(self, beside: list[RagCall], mode: str) -> None:
        """The app gets its tokens one by one, and the call keeps its evidence."""
        response: Any = engine(streaming=True, mode=mode).query(QUESTION)
        tokens = list(response.response_gen)

        assert tokens == TOKENS
        assert_whole(beside, "".join(tokens))

    def test_print(self, beside: list[RagCall], capsys: pytest.CaptureFixture[str]) -> None:
        """`print_response_stream` prints the answer."""
        response: Any = engine(streaming=True).query(QUESTION)
        response.print_response_stream()

        assert_whole(beside, capsys.readouterr().out)

    def test_get_response(self, beside: list[RagCall]) -> None:
        """`get_response` collects the answer."""
        response: Any = engine(streaming=True).query(QUESTION)

        assert_whole(beside, str(response.get_response().response))

    def test_closed(self, beside: list[RagCall]) -> None:
        """A stream that the app closes is an aborted call with the text so far."""
        response: Any = engine(streaming=True).query(QUESTION)
        next(response.response_gen)
        response.response_gen.close()

        call = only(beside)
        assert (call.response, seen(call).status) == (TOKENS[0], "aborted")

    def test_wrapped_engine(self, beside: list[RagCall]) -> None:
        """An `EvaluatedQueryEngine` passes the stream on as well."""
        calls: list[RagCall] = []
        response: Any = EvaluatedQueryEngine(engine(streaming=True), calls.append).query(QUESTION)

        assert list(response.response_gen) == TOKENS
        assert_whole(calls, ANSWER)
        assert_whole(beside, ANSWER)

    def test_evaluator_puts_the_stream_back(self, beside: list[RagCall]) -> None:
        """An evaluator reads the stream, and the app can read it afterwards."""
        reply = labels_reply(documents=["0a", "1a", "2a"], response=["a"])
        response: Any = engine(streaming=True).query(QUESTION)
        result = TraceEvaluator(ScriptedModel([reply])).evaluate_response(QUESTION, response)

        assert (result.response, result.invalid_reason) == (ANSWER, None)
        assert list(response.response_gen) == TOKENS
        assert_whole(beside, ANSWER)


async def joined(stream: Any) -> str:
    return "".join([token async for token in stream])


class Found(Event):
    nodes: list[Any]
    question: str


class Streaming(Workflow):
    """A workflow whose result is a stream."""

    @step
    async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
        found = await Sections(nodes()).aretrieve(ev.query)
        return Found(nodes=found, question=ev.query)

    @step
    async def synthesize(self, ev: Found) -> StopEvent:
        writer = engine(streaming=True)._response_synthesizer
        return StopEvent(result=await writer.asynthesize(ev.question, nodes=ev.nodes))


class TestAsyncStreams:
    async def test_tokens(self, beside: list[RagCall]) -> None:
        """`async_response_gen` gives the tokens, and the call keeps its evidence."""
        response: Any = await engine(streaming=True).aquery(QUESTION)

        assert_whole(beside, await joined(response.async_response_gen()))

    async def test_field(self, beside: list[RagCall]) -> None:
        """So does the field `response_gen`."""
        response: Any = await engine(streaming=True).aquery(QUESTION)

        assert_whole(beside, await joined(response.response_gen))

    async def test_workflow(self, beside: list[RagCall]) -> None:
        """So does a workflow whose result is a stream."""
        response: Any = await Streaming(timeout=20).run(query=QUESTION)

        assert_whole(beside, await joined(response.async_response_gen()))

    async def test_closed(self, beside: list[RagCall]) -> None:
        """A stream that the app closes is an aborted call with the text so far."""
        response: Any = await engine(streaming=True).aquery(QUESTION)
        await anext(response.response_gen)
        await response.response_gen.aclose()

        call = only(beside)
        assert (call.response, seen(call).status) == (TOKENS[0], "aborted")


def chat_engine(kind: str) -> Any:
    options: Any = {
        "llm": Model(),
        "memory": ChatMemoryBuffer.from_defaults(token_limit=2000, llm=Model()),
    }
    if kind == "context":
        return ContextChatEngine.from_defaults(retriever=Sections(nodes()), **options)
    if kind == "condense_plus_context":
        return CondensePlusContextChatEngine.from_defaults(Sections(nodes()), **options)
    return CondenseQuestionChatEngine.from_defaults(engine(streaming=True), **options)


KINDS = ["context", "condense_plus_context", "condense_question"]


class TestChatStreams:
    @pytest.mark.parametrize("kind", KINDS)
    def test_sync(self, beside: list[RagCall], kind: str) -> None:
        """`stream_chat` gives the tokens, and the call keeps its evidence."""
        response = chat_engine(kind).stream_chat(QUESTION)

        assert_whole(beside, "".join(response.response_gen))

    @pytest.mark.parametrize("kind", KINDS)
    async def test_async(self, beside: list[RagCall], kind: str) -> None:
        """So does `astream_chat`."""
        response = await chat_engine(kind).astream_chat(QUESTION)

        assert_whole(beside, await joined(response.async_response_gen()))


class TestStreamThatCannotBeWrapped:
    def test_is_left_as_it_is(self, captured: Captured) -> None:
        """A response whose field cannot be set keeps its stream, and its call is delivered."""

        class Sealed(StreamingResponse):
            def __setattr__(self, name: str, value: object) -> None:
                if name == "response_gen" and "response_gen" in self.__dict__:
                    raise AttributeError("sealed")
                super().__setattr__(name, value)

        tokens = iter(TOKENS)
        response = Sealed(tokens)  # type: ignore[arg-type]  # an iterator

        assert not read_along(response, object(), lambda *_: None)  # type: ignore[arg-type]  # never used
        assert response.response_gen is tokens
        assert list(response.response_gen) == TOKENS
