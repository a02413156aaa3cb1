"""Query streams: the app's tokens are untouched, whatever it does with its stream."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from typing import Any

import pytest
from captured_calls import capture_of
from llama_index.core.base.response.schema import StreamingResponse

from .apps import Own
from .conftest import ANSWER, QUESTION, TOKENS, Captured, Model, Sections, engine, ids, nodes


def stream() -> Any:
    return engine(Sections(), streaming=True).query(QUESTION)


def of_its_own(tokens: Any) -> Any:
    """A response that an engine makes of tokens and retrieved nodes."""
    return Own(answer=lambda q: StreamingResponse(tokens, Sections().retrieve(q))).query(QUESTION)


async def astream() -> Any:
    return await engine(Sections(), streaming=True).aquery(QUESTION)


class TestSameAsWithout:
    def test_reading_twice(self, captured: Captured) -> None:
        """A stream gives its tokens once, with a handler and without; its text stays."""
        response, other = stream(), stream()
        first, second = list(response.response_gen), list(response.response_gen)
        texts = [str(other), str(other), other.get_response().response]

        assert (first, second) == (TOKENS, [])
        assert texts == [ANSWER] * 3
        assert captured.responses == [ANSWER] * 2

    def test_return_value_and_odd_tokens(self, captured: Captured) -> None:
        """Tokens that are no strings, and a generator's return value, pass through."""

        def tokens() -> Generator[Any, None, str]:
            yield "four"
            yield None
            yield ""
            return "end"

        response: Any = of_its_own(tokens())
        got = [next(response.response_gen) for _ in range(3)]
        with pytest.raises(StopIteration) as stop:
            next(response.response_gen)

        assert got == ["four", None, ""]
        assert stop.value.value == "end"
        assert captured.only.response == "four"

    def test_list_of_tokens(self, captured: Captured) -> None:
        """A response whose tokens are a list stays as it is, and can be read again."""
        response = of_its_own(TOKENS)

        assert list(response.response_gen) == list(response.response_gen) == TOKENS
        assert captured.only.response is None


class TestLeft:
    async def test_dropped(self, captured: Captured) -> None:
        """A stream that is let go in the middle, or unread, is aborted, with what was read."""
        stream()
        await astream()
        assert next(stream().response_gen) == TOKENS[0]
        assert await anext((await astream()).async_response_gen()) == TOKENS[0]
        gc.collect()
        await asyncio.sleep(0.05)

        assert captured.statuses == ["aborted"] * 4
        assert captured.responses == [None, None, TOKENS[0], TOKENS[0]]
        assert [len(call.documents) for call in captured.calls] == [3] * 4

    def test_dropped_after_uninstall(self) -> None:
        """So is one that outlives the handler's installation; what was read is its text."""
        captured = Captured()
        with captured.handler:
            tokens = stream().response_gen
        next(tokens)
        del tokens
        gc.collect()

        assert captured.ended == (TOKENS[0], "aborted")

    async def test_reader_cancelled(self, captured: Captured) -> None:
        """A reader's cancellation comes through, and aborts the call."""

        class Hesitant(Model):
            async def astream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> Any:
                async def parts() -> Any:
                    for part in self.stream_complete(prompt):
                        yield part
                        await asyncio.sleep(30 if part.delta == " kettle" else 0)

                return parts()

        hesitant = engine(Sections(), llm=Hesitant(), streaming=True)
        response: Any = await hesitant.aquery(QUESTION)
        tokens = response.response_gen
        assert [await anext(tokens), await anext(tokens)] == TOKENS[:2]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(tokens), 0.1)

        assert captured.ended == ("The kettle", "aborted")

    def test_too_many_open(self) -> None:
        """More unread streams than `max_open`: the oldest is dropped, and still works."""
        captured = Captured(max_open=2)
        with captured.handler as handler:
            streams = [stream() for _ in range(3)]

            assert (handler.open_calls, handler.dropped) == (2, 1)
            assert [list(stream.response_gen) for stream in streams] == [TOKENS] * 3
        assert captured.responses == [ANSWER] * 2


class TestLazyWork:
    def test_retrieval_while_reading(self, captured: Captured) -> None:
        """An engine that starts to work only when its stream is read: that is the call's too."""

        def tokens() -> Generator[str, None, None]:
            retrieved = Sections(nodes()[:2]).retrieve(QUESTION)
            yield from stream().response_gen
            yield f" ({len(retrieved)})"

        response: Any = Own(answer=lambda question: StreamingResponse(tokens())).query(QUESTION)
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

        origins = {
            call.question: (ids(call), capture_of(call).documents_from) for call in captured.calls
        }
        assert origins == {QUESTION: (["a", "b", "c"], "prompt"), "Outer?": (["c"], "retriever")}


class TestTeedTwice:
    async def test_two_handlers(self, captured: Captured) -> None:
        """Two handlers, six ways of reading: both get every record, the app its tokens."""
        other = Captured()
        with other.handler:
            assert list(stream().response_gen) == TOKENS
            assert str(stream()) == ANSWER
            assert stream().get_response().response == ANSWER
            assert [token async for token in (await astream()).response_gen] == TOKENS
            assert [token async for token in (await astream()).async_response_gen()] == TOKENS
            assert (await (await astream()).get_response()).response == ANSWER

        assert other.substances == captured.substances == [captured.substances[0]] * 6
        assert (other.responses[0], capture_of(other.calls[0]).documents_from) == (ANSWER, "prompt")
