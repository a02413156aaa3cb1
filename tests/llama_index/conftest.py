"""A LlamaIndex app to observe: a real vector index and query engine; a scripted model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core import PromptHelper, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.llms import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import ToolSelection
from llama_index_instrumentation import get_dispatcher

from rag_eval_integrations.cli.demo.llama_index_app import HashedWords
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import Capture, RagCall

QUESTION = "How fast is the kettle?"
TOKENS = ["The", " kettle", " boils", " in", " four", " minutes."]
ANSWER = "".join(TOKENS)


class Model(CustomLLM):
    """Says the same, in one piece or token by token; fails where `error` is set."""

    error: str | None = None
    fail_after: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self.error is not None:
            raise RuntimeError(self.error)
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        text = ""
        for i, token in enumerate(TOKENS):
            if i == self.fail_after:
                raise RuntimeError("connection lost")
            text += token
            yield CompletionResponse(text=text, delta=token)


class Sections(BaseRetriever):
    """Finds the given nodes whatever is asked; fails where `error` is set."""

    def __init__(self, nodes: list[TextNode], error: str | None = None) -> None:
        super().__init__(callback_manager=CallbackManager([]))
        self._nodes = nodes
        self._error = error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._error is not None:
            raise RuntimeError(self._error)
        return [NodeWithScore(node=node, score=0.5) for node in self._nodes]


class Own(CustomQueryEngine):
    """An app's own engine, which answers by a function of the question."""

    answer: Callable[[str], Any]

    def custom_query(self, query_str: str) -> Any:
        return self.answer(query_str)


class Chooses(BaseNodePostprocessor):
    """Passes on what a function makes of the nodes."""

    choose: Callable[[list[NodeWithScore]], list[NodeWithScore]]

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> list[NodeWithScore]:
        return self.choose(nodes)


def nodes() -> list[TextNode]:
    return [
        TextNode(id_="a", text="The kettle boils in four minutes.", metadata={"page": 3}),
        TextNode(id_="b", text="The lid opens with one hand."),
        TextNode(id_="c", text="The base turns all the way round."),
    ]


HELPER = PromptHelper(context_window=4096, num_output=256, tokenizer=str.split)


def synthesizer(llm: Any = None, **options: Any) -> Any:
    return get_response_synthesizer(
        llm=llm or Model(), prompt_helper=HELPER, callback_manager=CallbackManager([]), **options
    )


def engine(
    retriever: BaseRetriever | None = None,
    *,
    llm: CustomLLM | None = None,
    streaming: bool = False,
    postprocessors: Any = None,
    mode: Any = "compact",
) -> RetrieverQueryEngine:
    if retriever is None:
        index = VectorStoreIndex(nodes(), embed_model=HashedWords(), transformations=[])
        retriever = index.as_retriever(similarity_top_k=3)
    writer = (
        NoText(llm=llm or Model())
        if mode == "no_text"
        else synthesizer(llm, response_mode=mode, streaming=streaming)
    )
    return RetrieverQueryEngine(
        retriever=retriever,
        response_synthesizer=writer,
        node_postprocessors=postprocessors,
        callback_manager=CallbackManager([]),
    )


@pytest.fixture
def calls() -> list[RagCall]:
    """Where a handler or a wrapper of the test's own delivers."""
    return []


class Captured:
    """An installed handler and what it delivered."""

    def __init__(self) -> None:
        self.calls: list[RagCall] = []
        self.handler = RagEvalHandler(self.calls.append)

    @property
    def only(self) -> RagCall:
        assert len(self.calls) == 1
        return self.calls[0]

    @property
    def how(self) -> Capture:
        return seen(self.only)

    @property
    def statuses(self) -> list[str]:
        """How the calls ended."""
        return [seen(call).status for call in self.calls]

    @property
    def ids(self) -> list[str | None]:
        return ids(self.only)

    @property
    def left_out(self) -> list[str | None]:
        """Ids of the nodes that did not reach the prompt."""
        return [document.id for document in self.how.not_in_prompt]


@pytest.fixture(autouse=True)
def _dispatcher_as_before() -> Iterator[None]:
    """The dispatcher belongs to the process: a test leaves nothing on it."""
    root = get_dispatcher()
    before = [id(handler) for handler in [*root.span_handlers, *root.event_handlers]]
    yield
    assert [id(handler) for handler in [*root.span_handlers, *root.event_handlers]] == before


@pytest.fixture
def captured() -> Iterator[Captured]:
    """Whatever a test does: nothing stays open, and the capture itself never fails."""
    captured = Captured()
    with captured.handler:
        yield captured
    assert captured.handler.open_calls == 0
    assert captured.handler.failed == 0
    assert not captured.handler._recorder.spans


class ToolCaller(FunctionCallingLLM):
    """An agent's model that follows a script: a step is an answer, or (tool, arguments) pairs."""

    script: list[Any]
    step: int = 0
    wait: float = 0.0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            model_name="scripted", is_chat_model=True, is_function_calling_model=True
        )

    def _reply(self) -> ChatResponse:
        said = self.script[self.step % len(self.script)]
        self.step += 1
        if isinstance(said, str):
            return ChatResponse(message=ChatMessage(role="assistant", content=said), delta=said)
        return ChatResponse(
            message=ChatMessage(role="assistant", content="", additional_kwargs={"calls": said})
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply()

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(self.wait)
        return self._reply()

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        def replies() -> Iterator[ChatResponse]:
            yield self._reply()

        return replies()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def replies() -> AsyncIterator[ChatResponse]:
            await asyncio.sleep(self.wait)
            yield self._reply()

        return replies()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError("abstract in the base class; agents ask by chat alone")

    acomplete = stream_complete = astream_complete = complete

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("calls", [])
        return [
            ToolSelection(tool_id=str(i), tool_name=name, tool_kwargs=arguments)
            for i, (name, arguments) in enumerate(calls)
        ]


class Slow(Sections):
    """Finds its nodes only after `wait` seconds."""

    def __init__(self, nodes: list[TextNode], wait: float = 30.0) -> None:
        super().__init__(nodes)
        self._wait = wait
        self._begun = asyncio.Event()

    async def begun(self) -> None:
        """Wait until it has been asked: how long an agent takes to do so depends on the machine."""
        await asyncio.wait_for(self._begun.wait(), 20)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._begun.set()
        await asyncio.sleep(self._wait)
        return self._retrieve(query_bundle)


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


def memory() -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(token_limit=3000, tokenizer_fn=str.split)


def context(llm: Any = None, retriever: Any = None, kind: Any = ContextChatEngine) -> Any:
    return kind.from_defaults(
        retriever=retriever or Sections(nodes()), llm=llm or Model(), memory=memory()
    )


def condense_question(llm: Any = None, retriever: Any = None, **options: Any) -> Any:
    return CondenseQuestionChatEngine.from_defaults(
        query_engine=engine(retriever or Sections(nodes()), llm=llm, **options),
        llm=Model(),
        memory=memory(),
    )


def condense_plus(llm: Any = None, retriever: Any = None) -> Any:
    return context(llm, retriever, CondensePlusContextChatEngine)


MODES = [context, condense_question, condense_plus]


def wait_for(condition: Callable[[], object]) -> None:
    """Until another thread has done its part; a test that waits in vain fails on its assertion."""
    pause = threading.Event()
    for _ in range(4_000):
        if condition():
            return
        pause.wait(0.005)


def ids(call: RagCall) -> list[str | None]:
    """The ids of a call's documents, in order."""
    return [document.id for document in call.documents]


def seen(call: RagCall) -> Capture:
    """How a call was captured; always there."""
    assert call.capture is not None
    return call.capture
