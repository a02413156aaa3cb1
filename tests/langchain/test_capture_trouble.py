"""Streams that end early, failures, second tries and bounds: always a record, never a remainder."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy
import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, LLMResult
from langchain_core.runnables import RunnableLambda

from rag_eval_integrations.langchain import RagEvalCallbackHandler

from .apps import QUESTION, Named
from .conftest import ANSWER, Captured, Sections, cancel, rag_chain, run, sections


async def settle() -> None:
    """Let asyncio finalise what was left."""
    for turn in range(60):
        await asyncio.sleep(0)
        if turn == 30:
            gc.collect()


class TestStreams:
    async def test_break_out_of_a_stream(self, captured: Captured) -> None:
        """An async stream that is broken out of is aborted, with what was given."""
        given = ""
        async for chunk in rag_chain().astream(QUESTION, captured.config):
            given += chunk
            if len(given) == 3:
                break
        await settle()

        assert not captured.handler._late
        assert captured.ended == (given, "aborted") == ("The", "aborted")
        assert (captured.questions, captured.ids) == ([QUESTION], ["a", "b", "c"])

    def test_tokens_of_blocks(self, captured: Captured) -> None:
        """What was given of a stream is read where a model writes lists of blocks, too."""

        class Blocks(FakeListChatModel):
            def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
                for word in ("The", " kettle", " boils."):
                    block = {"type": "text", "text": word, "index": 0}
                    yield ChatGenerationChunk(message=AIMessageChunk(content=[block]))

        stream = rag_chain(llm=Blocks(responses=[])).stream(QUESTION, captured.config)
        given = next(stream) + next(stream)
        del stream
        gc.collect()

        assert captured.ended == (given, "aborted")

    @pytest.mark.parametrize("where", ["retriever", "model"])
    async def test_cancelled(self, captured: Captured, where: str) -> None:
        """A task that is cancelled leaves an aborted call with what it found.

        A retriever fires no event when it is cancelled; its chain's end takes it along.
        """
        begun = asyncio.Event()

        async def wait(given: Any) -> str:
            begun.set()
            await asyncio.sleep(60)
            return ""

        class Slow(Sections):
            async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
                return await wait(query)

        in_model = where == "model"
        chain = rag_chain(llm=RunnableLambda(wait)) if in_model else rag_chain(Slow())

        await cancel(chain.ainvoke(QUESTION, captured.config), begun)

        assert captured.ended == (None, "aborted")
        assert captured.ids == (["a", "b", "c"] if in_model else [])
        assert not (in_model and captured.handler._late)

    @pytest.mark.parametrize("way", ["stream", "astream"])
    async def test_stream_that_fails_midway(self, captured: Captured, way: str) -> None:
        """A model that breaks off is an error; half an answer is no response."""
        broken = FakeListChatModel(responses=[ANSWER], error_on_chunk_number=4)
        chain = rag_chain(llm=broken)

        with pytest.raises(Exception):  # noqa: B017, PT011 -- LangChain's private class
            await run(chain, QUESTION, way, captured.config)
        await settle()

        assert (captured.questions, captured.ended) == ([QUESTION], (None, "error"))


class TestSecondTries:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch"])
    async def test_fallback_around_it_all(self, captured: Captured, way: str) -> None:
        """A whole chain that stands in for another: one call, of the one that answered."""
        broken = FakeListChatModel(responses=[])
        primary = rag_chain(Sections(found=sections()[:1]), llm=broken)
        chain = primary.with_fallbacks([rag_chain(Sections(found=sections()[1:]))])

        assert await run(chain, QUESTION, way, captured.config) == ANSWER

        assert captured.ended == (ANSWER, "ok")
        assert captured.ids == ["b", "c"]

    def test_batch_with_exceptions(self, captured: Captured) -> None:
        """Of a batch, every item is a call, those that failed included."""

        class Picky(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                if query == "bad":
                    raise KeyError(query)
                return sections()

        questions = ["good", "bad", "fine"]
        outputs = rag_chain(Picky()).batch(questions, captured.config, return_exceptions=True)

        assert isinstance(outputs[1], KeyError)
        statuses = dict(zip(captured.questions, captured.statuses, strict=True))
        assert statuses == {"good": "ok", "bad": "error", "fine": "ok"}


class TestUndisturbed:
    @pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, MemoryError])
    def test_target_that_wants_to_leave(self, error: type[BaseException]) -> None:
        """What a target raises to end a program or a task does not end the app."""

        def leave(given: object) -> Any:
            raise error

        handler = RagEvalCallbackHandler(leave)

        assert rag_chain().invoke(QUESTION, {"callbacks": [handler]}) == ANSWER
        assert handler.failed == 1

    def test_values_that_cannot_be_compared(self, captured: Captured) -> None:
        """As arrays and frames: they are passed on untouched."""
        odd = numpy.array([1, 2])
        chain: Any = (
            RunnableLambda(lambda _: {"odd": odd, "more": [odd]})
            | RunnableLambda(lambda _: QUESTION)
            | rag_chain()
            | RunnableLambda(lambda answer: odd)
        )

        assert chain.invoke({"odd": odd, "question": QUESTION}, captured.config) is odd
        assert captured.only.response == ANSWER

    def test_odd_events(self, captured: Captured) -> None:
        """What no LangChain of today tells breaks nothing: blocks without end, unknown runs."""
        root, asked = uuid4(), uuid4()
        block: dict[str, Any] = {"type": "search_result", "content": []}
        block["content"].append(block)
        message = HumanMessage("x").model_copy(update={"content": [block]})
        handler = captured.handler
        handler.on_chain_start({}, QUESTION, run_id=root)
        odd: Any = [[message, 7]]
        handler.on_chat_model_start({}, odd, run_id=asked, parent_run_id=root)
        handler.on_llm_end(LLMResult(generations=[[]]), run_id=asked)
        handler.on_interrupt(SimpleNamespace(run_id=uuid4()))
        handler.on_chain_end("", run_id=root)

        assert captured.calls == []


class TestBounds:
    def test_calls_let_go_of_their_documents(self, captured: Captured) -> None:
        """After a call, nothing of ours holds the app's documents."""
        retrieved = sections()
        held = [weakref.ref(document) for document in retrieved]
        rag_chain(Sections(found=retrieved)).invoke(QUESTION, captured.config)
        retrieved.clear()
        captured.calls.clear()
        gc.collect()

        assert [reference() for reference in held] == [None, None, None]

    def test_late_runs_are_bounded(self, caplog: pytest.LogCaptureFixture) -> None:
        """Ids of runs that outlive their call are kept in a bounded number."""
        handler = RagEvalCallbackHandler(print, max_open=1)
        with caplog.at_level(logging.ERROR):
            for _ in range(5_000):
                handler.on_chain_start({}, "q", run_id=uuid4())

        assert (handler.open_calls, len(handler._late), handler.failed) == (1, 4_096, 0)

    def test_run_under_a_late_run(self, captured: Captured) -> None:
        """What starts under a run that outlived its call is no call of its own."""
        handler = captured.handler
        root, late, below = uuid4(), uuid4(), uuid4()
        handler.on_chain_start({}, QUESTION, run_id=root)
        handler.on_chain_start({}, {}, run_id=late, parent_run_id=root)
        handler.on_chain_end("", run_id=root)

        handler.on_retriever_start({}, QUESTION, run_id=below, parent_run_id=late)
        handler.on_retriever_end(sections(), run_id=below)
        handler.on_chain_end("", run_id=late)

        assert (captured.calls, list(handler._late)) == ([], [])


class TestSameRunId:
    """Parts of calls that share a run id cannot be told apart: no row mixes them."""

    @pytest.fixture
    def same(self, captured: Captured) -> Any:
        """A config that an app uses for all of its calls."""
        return {**captured.config, "run_id": uuid4()}

    @pytest.mark.parametrize("number", [2, 3])
    async def test_at_once(
        self, captured: Captured, same: Any, number: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Calls at once are dropped and counted, with one line that names the cause."""
        chain = rag_chain(Named())
        for _ in range(2):
            await asyncio.gather(*(chain.ainvoke(f"q{i}", same) for i in range(number)))

        assert (captured.calls, captured.handler.dropped) == ([], 2 * number)
        (line,) = caplog.messages
        assert f"share the run_id {same['run_id']}" in line
        assert not captured.handler._late

        await chain.ainvoke("q", same)
        assert (captured.questions, captured.ids) == (["q"], ["q"])

    async def test_longer_than_the_other(self, captured: Captured, same: Any) -> None:
        """What the one still does when the other has ended is no call either."""
        begun, over = asyncio.Event(), asyncio.Event()

        async def wait(question: str) -> str:
            if question == "kettle":
                await begun.wait()
            else:
                begun.set()
                await over.wait()
            return question

        chain = RunnableLambda(wait) | rag_chain(Named())

        async def ask_first() -> None:
            await chain.ainvoke("kettle", same)
            over.set()

        await asyncio.gather(ask_first(), chain.ainvoke("toaster", same))

        assert (captured.calls, captured.handler.dropped) == ([], 2)

    def test_one_after_the_other(self, captured: Captured, same: Any) -> None:
        """Calls that follow one another are kept; so is one that gives its config to its parts."""
        chain = rag_chain(Named())
        chain.invoke("first", same)
        again: Any = RunnableLambda(lambda question: chain.invoke(question, same))
        again.invoke("second", same)
        chain.with_config(callbacks=[captured.handler]).invoke("third", same)

        assert captured.questions == ["first", "second", "third"]
        assert captured.ids_by_call == [["first"], ["second"], ["third"]]
        assert (captured.handler.dropped, captured.handler._late) == (0, {})
