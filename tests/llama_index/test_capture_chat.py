"""Chat engines: four modes, waiting and streaming, sync and async; one record a turn."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.types import Thread
from llama_index_instrumentation.dispatcher import instrument_tags
from processes import until

from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall, Turn

from .apps import MODES, ToolCaller, condense_plus, context, memory
from .conftest import ANSWER, QUESTION, TOKENS, Captured, Model, Sections

FIRST = "Do you know kettles?"
SAID = [("system", "Be brief."), ("user", FIRST), ("assistant", "I do."), ("assistant", "")]
TURNS = (Turn(role="user", content=FIRST), Turn(role="assistant", content="I do."))


async def read(chat: Any, way: str) -> list[str]:
    if way == "chat":
        return [chat.chat(QUESTION).response]
    if way == "achat":
        return [(await chat.achat(QUESTION)).response]
    if way == "stream_chat":
        return list(chat.stream_chat(QUESTION).response_gen)
    response = await chat.astream_chat(QUESTION)
    return [token async for token in response.async_response_gen()]


class Writes(ContextChatEngine):
    """Writes its streams itself, in all versions: some of LlamaIndex's own engines did not."""

    def stream_chat(self, message: str, chat_history: Any = None) -> Any:
        retrieved = self._retriever.retrieve(message)
        stream = self._llm.stream_chat([ChatMessage(role="user", content=message)])
        response = StreamingAgentChatResponse(chat_stream=stream, source_nodes=retrieved)
        Thread(target=response.write_response_to_history, args=(self._memory,)).start()
        return response

    async def astream_chat(self, message: str, chat_history: Any = None) -> Any:
        retrieved = self._retriever.retrieve(message)
        stream = await self._llm.astream_chat([ChatMessage(role="user", content=message)])
        response = StreamingAgentChatResponse(achat_stream=stream, source_nodes=retrieved)
        writing = response.awrite_response_to_history(self._memory)
        response.awrite_response_to_history_task = asyncio.create_task(writing)
        return response


def writes(llm: Any = None) -> Any:
    return context(llm, kind=Writes)


class Database(BaseMemory):
    """A memory that is no plain store, as the one that an engine makes for itself."""

    rows: list[ChatMessage] = []  # noqa: RUF012  # pydantic copies it

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        return list(self.rows)

    def put(self, message: ChatMessage) -> None:
        self.rows.append(message)

    def get_all(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("asked")

    from_defaults = set = reset = get_all  # abstract in the base class, and not asked either


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])
async def test_give_one_record_a_turn(captured: Captured, mode: Any, way: str) -> None:
    """The user's question, not the condensed one; nodes, turns, answer; the model's own tokens."""
    chat = mode()
    chat.chat(FIRST)
    tokens = await read(chat, way)
    await asyncio.to_thread(until, lambda: len(captured.calls) == 2)

    assert tokens == ([ANSWER] if "stream" not in way else TOKENS)
    assert captured.calls.pop(0).history == ()
    call = captured.only
    assert (call.question, call.response, call.app) == (QUESTION, ANSWER, type(chat).__name__)
    assert [document.score for document in call.documents] == [0.5] * 3
    assert call.history == (TURNS[0], Turn(role="assistant", content=ANSWER))
    assert captured.found == (["a", "b", "c"], "prompt", [])
    assert (captured.how.status, captured.how.retrievers) == ("ok", ("Sections",))


async def test_without_retrieval_is_no_call(captured: Captured) -> None:
    """In no way, and nothing stays open; a model's own chat is named alike and opens nothing."""
    for way in ("chat", "achat", "stream_chat", "astream_chat"):
        chat = SimpleChatEngine.from_defaults(llm=Model(), memory=memory())
        assert "".join(await read(chat, way)) == ANSWER
    await asyncio.to_thread(until, lambda: captured.handler.open_calls == 0)
    stream = Model().stream_chat([ChatMessage(role="user", content=QUESTION)])

    assert captured.handler.open_calls == 0
    assert "".join(part.delta or "" for part in stream) == ANSWER
    assert captured.calls == []


class TestHistory:
    @pytest.mark.parametrize("mode", MODES)
    def test_may_be_given(self, captured: Captured, mode: Any) -> None:
        """What users and assistants said before; system and empty messages are no turns."""
        history = [ChatMessage(role=role, content=text) for role, text in SAID]
        mode().chat(QUESTION, chat_history=history)

        assert (captured.only.question, captured.only.history) == (QUESTION, TURNS)

    def test_of_a_memory_that_is_not_asked(self, captured: Captured) -> None:
        """A memory in a database is left alone: the turns are those that the model was shown."""
        chat = context(ToolCaller(script=["I do.", ANSWER]), kept=Database())
        chat.chat(FIRST)
        chat.chat(QUESTION)

        turns = [(call.history, call.response) for call in captured.calls]
        assert turns == [((), "I do."), (TURNS, ANSWER)]

    @pytest.mark.parametrize("mode", [context, condense_plus])
    @pytest.mark.parametrize("way", ["chat", "astream_chat"])
    async def test_of_a_model_of_texts(self, captured: Captured, mode: Any, way: str) -> None:
        """Such a model gets no messages: the turns are those of the template, braces and all."""
        chat = mode(kept=Database())
        await chat.achat("Do you {know} kettles?")
        await read(chat, way)
        await asyncio.to_thread(until, lambda: len(captured.calls) == 2)

        assert captured.calls.pop(0).history == ()
        said = [turn.content for turn in captured.only.history]
        assert said == ["Do you {know} kettles?", ANSWER]
        assert captured.found == (["a", "b", "c"], "prompt", [])

    def test_of_a_model_without_a_system_role(self, captured: Captured) -> None:
        """The message that holds the nodes is no turn, whatever its role."""

        class Plain(Model):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(model_name="scripted", system_role=MessageRole.USER)

        chat = context(Plain(), kept=Database())
        chat.chat(FIRST)
        chat.chat(QUESTION)

        assert [len(call.history) for call in captured.calls] == [0, 2]


class TestStreams:
    def test_left_in_the_middle(self, captured: Captured) -> None:
        """A reader that stops early, or none, does not stop the engine: the answer is whole."""
        writes().stream_chat(QUESTION)
        chat = writes()
        tokens = chat.stream_chat(QUESTION).response_gen
        assert next(tokens) == TOKENS[0]
        tokens.close()
        until(lambda: len(captured.calls) == 2)

        assert captured.responses == [ANSWER] * 2
        assert chat.chat_history[-1].content == ANSWER

    async def test_cancelled(self, captured: Captured) -> None:
        """A writer that is cancelled leaves the part that it had written."""

        class Hesitant(ToolCaller):
            async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
                async def replies() -> Any:
                    for token in TOKENS:
                        yield ChatResponse(message=ChatMessage(content=token), delta=token)
                        await asyncio.sleep(30 if token == " kettle" else 0)

                return replies()

        response = await writes(Hesitant(script=[])).astream_chat(QUESTION)
        tokens = response.async_response_gen()
        assert [await anext(tokens), await anext(tokens)] == TOKENS[:2]
        response.awrite_response_to_history_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):  # the task's, which is waited for here
            await tokens.aclose()
        with pytest.raises(asyncio.CancelledError):
            await response.awrite_response_to_history_task

        assert captured.ended == ("The kettle", "aborted")

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_that_fail(self, captured: Captured) -> None:
        """The app gets the model's error; the record has no response."""
        response = context(Model(fail_after=2)).stream_chat(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(response.response_gen)

        until(lambda: captured.calls)
        assert captured.ended == (None, "error")
        assert captured.ids == ["a", "b", "c"]

    def test_without_memory(self, captured: Captured) -> None:
        """A stream that is not written into memory is read by the app, and read along."""

        class Direct(ContextChatEngine):
            def stream_chat(self, message: str, chat_history: Any = None) -> Any:
                left: Any = {"source_nodes": self._retriever.retrieve(message)}
                stream = self._llm.stream_chat([ChatMessage(role="user", content=message)])
                return StreamingAgentChatResponse(
                    chat_stream=stream, is_writing_to_memory=False, **left
                )

        response = context(kind=Direct).stream_chat(QUESTION)
        assert captured.calls == []

        assert list(response.response_gen) == TOKENS
        assert captured.only.response == ANSWER

    def test_given_up_at_uninstall(self, calls: list[RagCall]) -> None:
        """What an engine writes after `uninstall` cannot be seen: the call is forgotten."""
        go = threading.Event()

        class Waiting(ToolCaller):
            def stream_chat(self, messages: Any, **kwargs: Any) -> Any:  # type: ignore[override]
                go.wait(10)
                yield self._reply()

        with RagEvalHandler(calls.append) as handler:
            response = writes(Waiting(script=[ANSWER])).stream_chat(QUESTION)
        go.set()

        assert list(response.response_gen) == [ANSWER]
        assert (handler.open_calls, calls) == (0, [])


class TestTrouble:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("way", ["chat", "astream_chat"])
    async def test_retriever(self, captured: Captured, mode: Any, way: str) -> None:
        """A failing retriever is the app's error, and an error on the record."""
        with pytest.raises(RuntimeError, match="index is gone"):
            await read(mode(retriever=Sections(error="index is gone")), way)

        assert (captured.questions, captured.ended) == ([QUESTION], (None, "error"))

    def test_leaves_no_response_behind(self, captured: Captured) -> None:
        """A finished chat keeps none of the app's objects alive."""
        response = context().stream_chat(QUESTION)
        list(response.response_gen)
        until(lambda: captured.calls)
        gone = weakref.ref(response)
        del response
        gc.collect()

        assert gone() is None


def test_the_session_of_the_memory_names_the_conversation(captured: Captured) -> None:
    """Of each kind of memory; not the key that all have by default, nor over the app's own."""
    keyed = ChatMemoryBuffer.from_defaults(
        token_limit=3000, tokenizer_fn=str.split, chat_store_key="user 7"
    )

    class Session(Database):
        """As `Memory` names it, which would leave a connection open."""

        session_id: str = "s1"

    session = Session()
    for kept in (keyed, session, memory()):
        context(kept=kept).chat(QUESTION)
    with instrument_tags({"thread_id": "own"}):
        context(kept=session).chat(QUESTION)

    assert [call.capture.metadata if call.capture else None for call in captured.calls] == [
        {"conversation_id": "user 7"}, {"conversation_id": "s1"}, {}, {"thread_id": "own"},
    ]  # fmt: skip
