"""Capture beside another instrumentor, whose proxies stand around the app's streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from captured_calls import capture_of
from llama_index.core.base.response.schema import StreamingResponse
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from processes import until
from pydantic import Field

from rag_eval_integrations import BackgroundEvaluator, RagEvaluator
from rag_eval_integrations.llama_index import (
    EvaluatedQueryEngine,
    EvaluationEvent,
    RagEvalHandler,
    TraceEvaluator,
    dispatch_evaluation,
)
from rag_eval_integrations.llama_index._stream import read_along
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.sinks import CallbackSink
from rag_eval_integrations.testing import ScriptedModel, labels_reply

from .apps import condense_plus, condense_question, context
from .conftest import ANSWER, QUESTION, TOKENS, engine

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    instrumentors = pytest.importorskip("openinference.instrumentation.llama_index")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider


REPLY = labels_reply(documents=["0a", "1a", "2a"], response=["a"])


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request: pytest.FixtureRequest) -> Iterator[list[RagCall]]:
    """The calls that a handler captures beside the other instrumentor, in either order."""
    calls: list[RagCall] = []
    handler = RagEvalHandler(calls.append)
    other = instrumentors.LlamaIndexInstrumentor()
    theirs = partial(other.instrument, tracer_provider=TracerProvider())
    attaching: list[Callable[[], object]] = [handler.install, theirs]
    for attach in attaching if request.param == "ours first" else attaching[::-1]:
        attach()
    yield calls
    handler.uninstall()
    other.uninstrument()
    assert (handler.open_calls, handler.failed) == (0, 0)
    assert not handler._recorder.spans


def instruments() -> bool:
    """Tell whether the other instrumentor works: it leaves older releases of LlamaIndex alone."""
    instrumented: bool = instrumentors.LlamaIndexInstrumentor().is_instrumented_by_opentelemetry
    return instrumented


def assert_whole(calls: list[RagCall], text: str) -> None:
    until(lambda: calls)  # a chat engine's thread ends it
    (call,) = calls
    how = capture_of(call)
    assert text == call.response == ANSWER
    assert (len(call.documents), how.status, how.documents_from) == (3, "ok", "prompt")
    assert list(how.traces) == ["openinference"] * instruments()


class TestSyncStreams:
    @pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
    def test_tokens(self, beside: list[RagCall], mode: str) -> None:
        """The app gets its tokens one by one, and the call keeps its evidence."""
        response: Any = engine(streaming=True, response_mode=mode).query(QUESTION)
        tokens = list(response.response_gen)

        assert tokens == TOKENS
        assert_whole(beside, "".join(tokens))

    def test_wrapped_engine(self, beside: list[RagCall], calls: list[RagCall]) -> None:
        """An `EvaluatedQueryEngine` passes the stream on as well."""
        response: Any = EvaluatedQueryEngine(engine(streaming=True), calls.append).query(QUESTION)

        assert list(response.response_gen) == TOKENS
        assert_whole(calls, ANSWER)
        assert_whole(beside, ANSWER)

    def test_evaluator_puts_the_stream_back(self, beside: list[RagCall]) -> None:
        """An evaluator reads the stream, and the app can read it afterwards."""
        response: Any = engine(streaming=True).query(QUESTION)
        result = TraceEvaluator(ScriptedModel([REPLY])).evaluate_response(QUESTION, response)

        assert (result.response, result.invalid_reason) == (ANSWER, None)
        assert list(response.response_gen) == TOKENS
        assert_whole(beside, ANSWER)


@pytest.mark.parametrize("streaming", [False, True])
def test_request_around_a_query(beside: list[RagCall], streaming: bool) -> None:
    """A call has the request's span and the tracer's own, which is the first, in one trace."""
    request = TracerProvider().get_tracer("web").start_span("GET /")
    with trace.use_span(request):
        response: Any = engine(streaming=streaming).query(QUESTION)
        assert "".join(response.response_gen if streaming else [str(response)]) == ANSWER

    (how,) = map(capture_of, beside)
    around = request.get_span_context()
    assert how.traces["otel"] == (f"{around.trace_id:032x}", f"{around.span_id:016x}")
    assert how.trace_id == how.traces["otel"][0]
    if instruments():
        assert how.span_id == how.traces["openinference"][1] != how.traces["otel"][1]


async def joined(stream: Any) -> str:
    return "".join([token async for token in stream])


async def test_closed_stream(beside: list[RagCall]) -> None:
    """An async stream that the app closes is an aborted call with the text so far."""
    response: Any = await engine(streaming=True).aquery(QUESTION)
    await anext(response.response_gen)
    await response.response_gen.aclose()

    (call,) = beside
    assert (call.response, capture_of(call).status) == (TOKENS[0], "aborted")


@pytest.mark.parametrize("mode", [context, condense_plus, condense_question])
async def test_chat_streams(beside: list[RagCall], mode: Any) -> None:
    """`stream_chat` and `astream_chat` give the tokens, and the call keeps its evidence."""
    options = {"streaming": True} if mode is condense_question else {}
    response = mode(**options).stream_chat(QUESTION)
    assert_whole(beside, "".join(response.response_gen))
    beside.clear()
    response = await mode(**options).astream_chat(QUESTION)
    assert_whole(beside, await joined(response.async_response_gen()))


class Told(BaseEventHandler):
    """Keeps the events with scores."""

    events: list[EvaluationEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if isinstance(event, EvaluationEvent):
            self.events.append(event)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[EvaluationEvent]:
    """The events with scores that an event handler gets."""
    handler = Told()
    root = get_dispatcher()
    monkeypatch.setattr(root, "event_handlers", [*root.event_handlers, handler])
    return handler.events


class TestScoresAsEvents:
    @pytest.mark.parametrize("wrapped", [False, True])
    def test_of_an_evaluator(self, told: list[EvaluationEvent], wrapped: bool) -> None:
        """A handler and a wrapper tell the scores with the id of the root span, and no open span."""
        judge = RagEvaluator(ScriptedModel([REPLY]))
        if wrapped:
            asked = EvaluatedQueryEngine(engine(), judge)
            asked.query(QUESTION)
            assert asked.flush()
        else:
            with RagEvalHandler(judge) as handler:
                engine().query(QUESTION)
                assert handler.flush()

        (event,) = told
        scores = {name: score.value for name, score in event.evaluation.scores.items()}
        assert event.scores == scores
        assert event.scores["adherence"] == 1.0
        assert event.evaluation.capture is not None
        assert event.root_span_id == event.evaluation.capture.run_id
        assert (event.span_id, event.class_name()) == (None, "EvaluationEvent")

    def test_of_a_background(
        self, told: list[EvaluationEvent], beside: list[RagCall], caplog: pytest.LogCaptureFixture
    ) -> None:
        """As a sink it tells the calls of LlamaIndex alone; another instrumentor is left in peace."""
        engine().query(QUESTION)
        (call,) = beside
        caplog.clear()
        sink = CallbackSink(dispatch_evaluation)
        with BackgroundEvaluator(RagEvaluator(), [sink]) as background:
            background(call)
            background(RagCall(QUESTION, ["It is so."], ANSWER))
            assert background.flush()

        assert [event.root_span_id for event in told] == [capture_of(call).run_id]
        assert not [record for record in caplog.records if "openinference" in record.name]


def test_a_stream_that_cannot_be_wrapped_is_left_as_it_is() -> None:
    """A response whose field cannot be set keeps its stream."""

    class Sealed(StreamingResponse):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "response_gen" and "response_gen" in self.__dict__:
                raise AttributeError("sealed")
            super().__setattr__(name, value)

    tokens = iter(TOKENS)
    response = Sealed(tokens)  # type: ignore[arg-type]  # an iterator

    assert not read_along(response, object(), lambda *_: None)  # type: ignore[arg-type]  # never used
    assert response.response_gen is tokens
