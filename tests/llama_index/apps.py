"""Agents, chat engines and custom engines to observe, on models that answer from a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import ToolSelection

from .conftest import Model, Sections, engine


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


class ToolCaller(FunctionCallingLLM):
    """An agent's model that follows a script: a step is an answer, or (tool, arguments) pairs."""

    script: list[Any]
    step: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            model_name="scripted", is_chat_model=True, is_function_calling_model=True
        )

    def _reply(self) -> ChatResponse:
        said = self.script[self.step % len(self.script)]
        self.step += 1
        text, calls = (said, []) if isinstance(said, str) else ("", said)
        message = ChatMessage(role="assistant", content=text, additional_kwargs={"calls": calls})
        return ChatResponse(message=message, delta=text)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def replies() -> AsyncIterator[ChatResponse]:
            yield self._reply()

        return replies()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError("abstract in the base class; no test asks so")

    acomplete = stream_complete = astream_complete = complete
    achat = stream_chat = complete  # type: ignore[assignment]  # never called

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=name, tool_name=name, tool_kwargs=arguments)
            for name, arguments in response.message.additional_kwargs["calls"]
        ]


class Slow(Sections):
    """Finds its nodes only after `wait` seconds."""

    def __init__(self, wait: float = 30.0) -> None:
        super().__init__()
        self._wait = wait
        self._begun = asyncio.Event()

    async def begun(self) -> None:
        """Wait until it has been asked: how long an agent takes to do so depends on the machine."""
        await asyncio.wait_for(self._begun.wait(), 20)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._begun.set()
        await asyncio.sleep(self._wait)
        return self._retrieve(query_bundle)


def agent(*script: Any, tools: Any, kind: Any = FunctionAgent, **options: Any) -> Any:
    """An agent that follows a script."""
    return kind(tools=tools, llm=ToolCaller(script=list(script)), **options)


def memory() -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(token_limit=3000, tokenizer_fn=str.split)


def context(
    llm: Any = None, retriever: Any = None, kind: Any = ContextChatEngine, kept: Any = None
) -> Any:
    parts = {"retriever": retriever or Sections(), "llm": llm or Model()}
    return kind.from_defaults(**parts, memory=kept or memory())


def condense_question(llm: Any = None, retriever: Any = None, **options: Any) -> Any:
    inner = engine(retriever or Sections(), llm=llm, **options)
    return CondenseQuestionChatEngine.from_defaults(inner, llm=Model(), memory=memory())


condense_plus = partial(context, kind=CondensePlusContextChatEngine)
MODES = [context, condense_question, condense_plus]
