"""Query streams: the app's tokens are untouched, whatever it does with its stream."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from typing import Any

import pytest
from llama_index.core.base.response.schema import StreamingResponse

from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall

from .conftest import (
    ANSWER,
    TOKENS,
    Captured,
    Model,
    Own,
    Sections,
    engine,
    ids,
    nodes,
    seen,
    substance,
)

QUESTION = "How fast is the kettle?"


def stream() -> Any:
    return engine(Sections(nodes()), streaming=True).query(QUESTION)


async def astream() -> Any:
    return await engine(Sections(nodes()), streaming=True).aquery(QUESTION)


class TestSameAsWithout:
    def test_reading_twice(self, captured: Captured) -> None:
        """A stream gives its tokens once, with a handler and without; its text stays."""
        response, other = stream(), stream()
        first, second = list(response.response_gen), list(response.response_gen)
        texts = [str(other), str(other), other.get_response().response]

        assert (first, second) == (TOKENS, [])
        assert texts == [ANSWER] * 3
        assert [call.response for call in captured.calls] == [ANSWER] * 2

    def test_return_value_and_odd_tokens(self, captured: Captured) -> None:
        """Tokens that are no strings, and a generator's return value, pass through."""

        def tokens() -> Generator[Any, None, str]:
            yield "four"
            yield None
            yield ""
            return "end"

        def answer(question: str) -> Any:
            return StreamingResponse(tokens(), Sections(nodes()).retrieve(question))  # type: ignore[arg-type]

        response: Any = Own(answer=answer).query(QUESTION)
        got = [next(response.response_gen) for _ in range(3)]
        with pytest.raises(StopIteration) as stop:
            next(response.response_gen)

        assert got == ["four", None, ""]
        assert stop.value.value == "end"
        assert captured.only.response == "four"

    def test_list_of_tokens(self, captured: Captured) -> None:
        """A response whose tokens are a list stays as it is, and can be read again."""

        def answer(question: str) -> Any:
            return StreamingResponse(TOKENS, Sections(nodes()).retrieve(question))  # type: ignore[arg-type]  # on purpose

        response: Any = Own(answer=answer).query(QUESTION)

        assert list(response.response_gen) == list(response.response_gen) == TOKENS
        assert captured.only.response is None


class TestLeft:
    @pytest.mark.parametrize("way", ["sync", "async"])
    async def test_dropped_in_the_middle(self, captured: Captured, way: str) -> None:
        """A stream that is let go in the middle is aborted, with what was read."""
        response = await astream() if way == "async" else stream()
        if way == "async":
            assert await anext(response.async_response_gen()) == TOKENS[0]
        else:
            assert next(response.response_gen) == TOKENS[0]
        del response
        gc.collect()
        await asyncio.sleep(0.05)

        assert (captured.only.response, captured.how.status) == (TOKENS[0], "aborted")

    async def test_dropped_unread(self, captured: Captured) -> None:
        """A stream that the app drops before it reads a token ends as aborted, without a text."""
        stream()
        await astream()
        gc.collect()

        assert captured.statuses == ["aborted", "aborted"]
        fields = [(call.response, len(call.documents)) for call in captured.calls]
        assert fields == [(None, 3), (None, 3)]

    def test_dropped_after_uninstall(self, calls: list[RagCall]) -> None:
        """So does one that outlives the handler's installation; what was read is its text."""
        with RagEvalHandler(calls.append):
            tokens = stream().response_gen
        next(tokens)
        del tokens
        gc.collect()

        assert [(seen(call).status, call.response) for call in calls] == [("aborted", TOKENS[0])]

    async def test_reader_cancelled(self, captured: Captured) -> None:
        """A reader's cancellation comes through, and aborts the call."""

        class Hesitant(Model):
            async def astream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> Any:
                async def parts() -> Any:
                    for part in self.stream_complete(prompt):
                        yield part
                        await asyncio.sleep(30 if part.delta == " kettle" else 0)

                return parts()

        hesitant = engine(Sections(nodes()), llm=Hesitant(), streaming=True)
        response: Any = await hesitant.aquery(QUESTION)
        got: list[str] = []

        async def read() -> None:
            async for token in response.response_gen:
                got.append(token)  # noqa: PERF401 -- what it got before it is cancelled counts

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(read(), 0.1)

        assert got == TOKENS[:2]
        assert (captured.only.response, captured.how.status) == ("The kettle", "aborted")

    def test_too_many_open(self, calls: list[RagCall]) -> None:
        """More unread streams than `max_open`: the oldest is dropped, and still works."""
        with RagEvalHandler(calls.append, max_open=2) as handler:
            streams = [stream() for _ in range(3)]

            assert (handler.open_calls, handler.dropped) == (2, 1)
            assert [list(stream.response_gen) for stream in streams] == [TOKENS] * 3
        assert len(calls) == 2


class TestLazyWork:
    def test_retrieval_while_reading(self, captured: Captured) -> None:
        """An engine that starts to work only when its stream is read: that is the call's too."""

        def answer(question: str) -> Any:
            def tokens() -> Generator[str, None, None]:
                retrieved = Sections(nodes()[:2]).retrieve(question)
                inner: Any = engine(Sections(nodes()[:1]), streaming=True).query(question)
                yield from inner.response_gen
                yield f" ({len(retrieved)})"

            return StreamingResponse(tokens())

        response: Any = Own(answer=answer).query(QUESTION)
        text = "".join(response.response_gen)

        assert text == f"{ANSWER} (2)"
        assert (captured.only.app, captured.only.response) == ("Own", text)
        assert captured.how.retrievers == ("Sections", "Sections")

    def test_read_inside_of_another_query(self, captured: Captured) -> None:
        """A stream that is read inside of somebody else's query keeps its own prompts."""
        response = stream()

        def answer(question: str) -> str:
            Sections(nodes()[2:]).retrieve(question)
            return "".join(response.response_gen)

        Own(answer=answer).query("Outer?")

        origins = {call.question: (ids(call), seen(call).documents_from) for call in captured.calls}
        assert origins == {QUESTION: (["a", "b", "c"], "prompt"), "Outer?": (["c"], "retriever")}


class TestTeedTwice:
    async def test_two_handlers(self, captured: Captured, calls: list[RagCall]) -> None:
        """Two handlers, six ways of reading: both get every record, the app its tokens."""
        with RagEvalHandler(calls.append):
            assert list(stream().response_gen) == TOKENS
            assert str(stream()) == ANSWER
            assert stream().get_response().response == ANSWER
            assert [token async for token in (await astream()).response_gen] == TOKENS
            assert [token async for token in (await astream()).async_response_gen()] == TOKENS
            assert (await (await astream()).get_response()).response == ANSWER

        assert [substance(call) for call in calls] == [substance(call) for call in captured.calls]
        assert [call.response for call in calls] == [ANSWER] * 6
        assert all(seen(call).documents_from == "prompt" for call in calls)
