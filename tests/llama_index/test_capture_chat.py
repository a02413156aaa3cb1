"""Chat engines: four modes, waiting and streaming, sync and async; one record a turn."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.types import Thread
from pydantic import Field

from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall, Turn

from .conftest import (
    ANSWER,
    TOKENS,
    Captured,
    Model,
    Sections,
    ToolCaller,
    engine,
    ids,
    nodes,
    seen,
)

QUESTION = "How fast is the kettle?"
EARLIER = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(role="user", content="Do you know kettles?"),
    ChatMessage(role="assistant", content="I do."),
    ChatMessage(role="assistant", content=""),
]
TURNS = (Turn(role="user", content="Do you know kettles?"), Turn(role="assistant", content="I do."))


def memory() -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(token_limit=3000, tokenizer_fn=str.split)


def context(llm: Any = None, retriever: Any = None) -> Any:
    return ContextChatEngine.from_defaults(
        retriever=retriever or Sections(nodes()), llm=llm or Model(), memory=memory()
    )


def condense_question(llm: Any = None, retriever: Any = None) -> Any:
    return CondenseQuestionChatEngine.from_defaults(
        query_engine=engine(retriever or Sections(nodes()), llm=llm),
        llm=Model(),
        memory=memory(),
    )


def condense_plus(llm: Any = None, retriever: Any = None) -> Any:
    return CondensePlusContextChatEngine.from_defaults(
        retriever=retriever or Sections(nodes()), llm=llm or Model(), memory=memory()
    )


MODES = [context, condense_question, condense_plus]


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

    def _parts(self, message: str) -> dict[str, Any]:
        return {"source_nodes": self._retriever.retrieve(message)}

    def stream_chat(self, message: str, chat_history: Any = None) -> Any:
        parts = self._parts(message)
        said = self._llm.stream_chat([ChatMessage(role="user", content=message)])
        response = StreamingAgentChatResponse(chat_stream=said, **parts)
        Thread(target=response.write_response_to_history, args=(self._memory,)).start()
        return response

    async def astream_chat(self, message: str, chat_history: Any = None) -> Any:
        parts = self._parts(message)
        said = await self._llm.astream_chat([ChatMessage(role="user", content=message)])
        response = StreamingAgentChatResponse(achat_stream=said, **parts)
        response.awrite_response_to_history_task = asyncio.create_task(
            response.awrite_response_to_history(self._memory)
        )
        return response


def writes(llm: Any = None) -> Any:
    return Writes.from_defaults(retriever=Sections(nodes()), llm=llm or Model(), memory=memory())


class Database(BaseMemory):
    """A memory that is no plain store, as the one that an engine makes for itself."""

    rows: list[ChatMessage] = Field(default_factory=list)

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> Database:
        return cls()

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        return list(self.rows)

    def get_all(self) -> list[ChatMessage]:
        raise AssertionError("asked")

    def put(self, message: ChatMessage) -> None:
        self.rows.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        self.rows = list(messages)

    def reset(self) -> None:
        self.rows = []


def wait_for(condition: Callable[[], object]) -> None:
    """Until another thread has done its part; a test that waits in vain fails on its assertion."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])
class TestModes:
    async def test_give_one_record(self, captured: Captured, mode: Any, way: str) -> None:
        """Question, nodes, answer; the streamed tokens are those of the model."""
        tokens = await read(mode(), way)
        await asyncio.to_thread(wait_for, lambda: captured.calls)

        assert tokens == ([ANSWER] if "stream" not in way else TOKENS)
        call = captured.only
        assert call.question == QUESTION
        assert call.response == ANSWER
        assert ids(call) == ["a", "b", "c"]
        assert call.documents[0].score == 0.5
        assert call.history == ()
        assert call.app == type(mode()).__name__
        assert seen(call).status == "ok"
        assert seen(call).documents_from == "prompt"
        assert seen(call).retrievers == ("Sections",)

    async def test_keep_the_users_question(self, captured: Captured, mode: Any, way: str) -> None:
        """The second turn's question is what the user said, not the condensed one."""
        chat = mode()
        chat.chat("Do you know kettles?")

        await read(chat, way)
        await asyncio.to_thread(wait_for, lambda: len(captured.calls) == 2)

        call = captured.calls[1]
        assert call.question == QUESTION
        assert call.response == ANSWER
        assert call.history == (
            Turn(role="user", content="Do you know kettles?"),
            Turn(role="assistant", content=ANSWER),
        )


class TestHistory:
    @pytest.mark.parametrize("mode", MODES)
    def test_may_be_given(self, captured: Captured, mode: Any) -> None:
        """What users and assistants said before; system and empty messages are no turns."""
        mode().chat(QUESTION, chat_history=list(EARLIER))

        assert captured.only.history == TURNS
        assert captured.only.question == QUESTION

    def test_given_empty_replaces_the_memory(self, captured: Captured) -> None:
        """An empty history given to a turn starts the conversation anew."""
        chat = context()
        chat.chat("Do you know kettles?")
        chat.chat(QUESTION, chat_history=[])

        assert captured.calls[1].history == ()

    def test_of_a_memory_that_is_not_asked(self, captured: Captured) -> None:
        """A memory in a database is left alone: the turns are those that the model was shown."""
        model = ToolCaller(script=["I do.", ANSWER])
        chat = ContextChatEngine.from_defaults(
            retriever=Sections(nodes()), llm=model, memory=Database()
        )
        chat.chat("Do you know kettles?")
        chat.chat(QUESTION)

        assert [call.history for call in captured.calls] == [(), TURNS]
        assert [call.response for call in captured.calls] == ["I do.", ANSWER]

    @pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
    @pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])
    async def test_of_a_model_of_texts(self, captured: Captured, kind: Any, way: str) -> None:
        """Such a model gets no messages: the turns are those of the template, braces and all."""
        chat = kind.from_defaults(retriever=Sections(nodes()), llm=Model(), memory=Database())
        await chat.achat("Do you {know} kettles?")
        await read(chat, way)
        await asyncio.to_thread(wait_for, lambda: len(captured.calls) == 2)

        first, second = captured.calls
        assert first.history == ()
        assert [turn.content for turn in second.history] == ["Do you {know} kettles?", ANSWER]
        assert ids(second) == ["a", "b", "c"]
        assert seen(second).documents_from == "prompt"

    def test_of_a_model_without_a_system_role(self, captured: Captured) -> None:
        """The message that holds the nodes is no turn, whatever its role."""

        class Plain(Model):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(model_name="scripted", system_role=MessageRole.USER)

        chat = ContextChatEngine.from_defaults(
            retriever=Sections(nodes()), llm=Plain(), memory=Database()
        )
        chat.chat("Do you know kettles?")
        chat.chat(QUESTION)

        assert [len(call.history) for call in captured.calls] == [0, 2]


class TestNoRagCall:
    async def test_simple(self, captured: Captured) -> None:
        """A chat without retrieval is no RAG call, in any way, and leaves nothing open."""
        for way in ("chat", "achat", "stream_chat", "astream_chat"):
            chat = SimpleChatEngine.from_defaults(llm=Model(), memory=memory())
            assert "".join(await read(chat, way)) == ANSWER

        await asyncio.to_thread(wait_for, lambda: captured.handler.open_calls == 0)
        assert captured.calls == []

    def test_a_models_chat(self, captured: Captured) -> None:
        """Models and chat engines name their methods alike: a model's chat opens nothing."""
        stream = Model().stream_chat([ChatMessage(role="user", content=QUESTION)])

        assert captured.handler.open_calls == 0
        assert "".join(part.delta or "" for part in stream) == ANSWER


class TestStreams:
    def test_nobody_reads(self, captured: Captured) -> None:
        """The engine writes its stream whether it is read or not: the answer is on the record."""
        chat = writes()
        chat.stream_chat(QUESTION)

        wait_for(lambda: captured.calls)
        assert captured.only.response == ANSWER
        assert seen(captured.only).status == "ok"

    def test_left_in_the_middle(self, captured: Captured) -> None:
        """A reader that stops early does not stop the engine, which keeps the whole answer."""
        chat = writes()
        tokens = chat.stream_chat(QUESTION).response_gen
        assert next(tokens) == TOKENS[0]
        tokens.close()

        wait_for(lambda: captured.calls)
        assert captured.only.response == ANSWER
        assert chat.chat_history[-1].content == ANSWER

    async def test_never_written(self) -> None:
        """A stream whose writer never runs is forgotten after `ttl` seconds."""
        calls: list[RagCall] = []
        with RagEvalHandler(calls.append, ttl=0.05) as handler:
            response = await writes().astream_chat(QUESTION)
            response.awrite_response_to_history_task.cancel()
            await asyncio.sleep(0.1)

            assert handler.open_calls == 0
            assert handler.dropped == 1
        assert calls == []

    async def test_cancelled(self, captured: Captured) -> None:
        """A writer that is cancelled leaves the part that it had written."""

        class Hesitant(ToolCaller):
            async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
                async def replies() -> Any:
                    for token in TOKENS:
                        yield ChatResponse(
                            message=ChatMessage(role="assistant", content=token), delta=token
                        )
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

        call = captured.only
        assert call.response == "The kettle"
        assert seen(call).status == "aborted"

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_that_fail(self, captured: Captured) -> None:
        """The app gets the model's error; the record has no response."""
        response = context(Model(fail_after=2)).stream_chat(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(response.response_gen)

        wait_for(lambda: captured.calls)
        call = captured.only
        assert call.response is None
        assert ids(call) == ["a", "b", "c"]
        assert seen(call).status == "error"

    def test_printed(self, captured: Captured, capsys: pytest.CaptureFixture[str]) -> None:
        """Printing a stream reads it like any other way."""
        context().stream_chat(QUESTION).print_response_stream()

        wait_for(lambda: captured.calls)
        assert capsys.readouterr().out == ANSWER
        assert captured.only.response == ANSWER

    def test_without_memory(self, captured: Captured) -> None:
        """A stream that is not written into memory is read by the app, and read along."""

        class Direct(ContextChatEngine):
            def stream_chat(self, message: str, chat_history: Any = None) -> Any:
                found = self._retriever.retrieve(message)
                return StreamingAgentChatResponse(
                    chat_stream=self._llm.stream_chat([ChatMessage(role="user", content=message)]),
                    source_nodes=found,
                    is_writing_to_memory=False,
                )

        chat = Direct.from_defaults(retriever=Sections(nodes()), llm=Model(), memory=memory())
        response = chat.stream_chat(QUESTION)
        assert captured.calls == []

        assert list(response.response_gen) == TOKENS
        assert captured.only.response == ANSWER

    def test_given_up_at_uninstall(self) -> None:
        """What an engine writes after `uninstall` cannot be seen: the call is forgotten."""
        calls: list[RagCall] = []
        go = threading.Event()

        class Waiting(ToolCaller):
            def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
                go.wait(10)
                yield self._reply()

        with RagEvalHandler(calls.append) as handler:
            response = writes(Waiting(script=[ANSWER])).stream_chat(QUESTION)
        go.set()

        assert list(response.response_gen) == [ANSWER]
        assert handler.open_calls == 0
        assert calls == []


class TestTrouble:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])
    async def test_retriever(self, captured: Captured, mode: Any, way: str) -> None:
        """A failing retriever is the app's error, and an error on the record."""
        with pytest.raises(RuntimeError, match="index is gone"):
            await read(mode(retriever=Sections([], error="index is gone")), way)

        assert captured.only.question == QUESTION
        assert captured.only.response is None
        assert seen(captured.only).status == "error"

    def test_empty_index(self, captured: Captured) -> None:
        """Nothing found is a call without documents."""
        context(retriever=Sections([])).chat(QUESTION)

        assert captured.only.documents == ()
        assert seen(captured.only).documents_from == "retriever"

    def test_leaves_no_response_behind(self, captured: Captured) -> None:
        """A finished chat keeps none of the app's objects alive."""
        import weakref

        response = context().stream_chat(QUESTION)
        list(response.response_gen)
        wait_for(lambda: captured.calls)
        gone = weakref.ref(response)
        del response
        gc.collect()

        assert gone() is None
