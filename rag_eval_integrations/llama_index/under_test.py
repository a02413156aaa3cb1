"""LlamaIndex's LLMs, engines and templates for `rag_eval_integrations.prompt_tests`."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.borrowed import judge_error
from rag_eval_integrations.judges.completion import Message
from rag_eval_integrations.llama_index.answers import answer_from
from rag_eval_integrations.llama_index.judge import LLMJudge
from rag_eval_integrations.records import RagCall

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
}


def as_model_under_test(
    model: LLM | BaseQueryEngine | BaseChatEngine, *, name: str | None = None
) -> LLMJudge | EngineApp:
    """Make a model under test of an LLM, a query engine or a chat engine.

    Args:
        model: an LLM gets the rendered prompt; an engine is an app that has the prompt inside and
            gets the test's one input as its question. Its source nodes are the contexts.
        name: what it is called in files and reports; by default its class.

    Raises:
        ConfigurationError: none of these.
    """
    if isinstance(model, LLM):
        return LLMJudge(model, name=name)
    if isinstance(model, BaseQueryEngine | BaseChatEngine):
        return EngineApp(model, name or type(model).__name__)
    raise ConfigurationError("model", model, "use a LlamaIndex LLM, query engine or chat engine")


class EngineApp:
    """An engine that has the prompt inside: an `App` of prompt tests.

    Its sync method is called in a bounded pool of threads. A chat engine remembers what was said:
    it is reset before each test, and asked one at a time.
    """

    def __init__(
        self,
        engine: BaseQueryEngine | BaseChatEngine,
        name: str,
        *,
        max_threads: int = 16,
        timeout: float = 120.0,
    ) -> None:
        self.name = name
        self._engine = engine
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(max_threads, thread_name_prefix="rag-eval-app")
        self._alone = threading.Lock()

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Ask the engine once; the documents of the call are its source nodes.

        Raises:
            JudgeError: whatever it raised, as `judges.borrowed` tells failures apart.
        """
        context = contextvars.Context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                response = await loop.run_in_executor(
                    self._pool, lambda: context.run(self._ask, text)
                )
                answer = answer_from(response, MetadataMode.LLM)
        except Exception as error:
            raise judge_error(error, self.name) from error
        return RagCall(text, answer.documents, answer.text or "")

    def _ask(self, question: str) -> object:
        if isinstance(self._engine, BaseQueryEngine):
            return self._engine.query(question)
        with self._alone:
            self._engine.reset()
            return self._engine.chat(question)


class TemplatePrompt:
    """A LlamaIndex template as a prompt under test; rendered by LlamaIndex, message by message."""

    def __init__(self, template: BasePromptTemplate, name: str) -> None:
        self.name = name
        self._template = template
        filled = set(template.kwargs)
        self.input_names: Sequence[str] = tuple(
            one for one in dict.fromkeys(template.template_vars) if one not in filled
        )
        self.text = "\n\n".join(
            message.content
            for message in self.render({one: f"{{{{{one}}}}}" for one in self.input_names})
        )

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values.

        Raises:
            ConfigurationError: a value is missing, or a message is no text.
        """
        given = {name: values[name] for name in self.input_names if name in values}
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise ConfigurationError("prompt", self.name, f"{missing[0]!r} is not given")
        try:
            messages = self._template.format_messages(**given)  # type: ignore[arg-type]
        except (KeyError, ValueError, TypeError) as error:
            why = f"LlamaIndex cannot render it: {type(error).__name__}: {error}"
            raise ConfigurationError("prompt", self.name, why) from error
        return tuple(_message(one, self.name) for one in messages)


def as_prompt(template: BasePromptTemplate, *, name: str = "prompt") -> TemplatePrompt:
    """Make a prompt under test of a `PromptTemplate`, `ChatPromptTemplate` or `RichPromptTemplate`.

    Raises:
        ConfigurationError: no template, or one with messages that are no text.
    """
    if not isinstance(template, BasePromptTemplate):
        raise ConfigurationError("prompt", template, "use a LlamaIndex prompt template")
    return TemplatePrompt(template, name)


def _message(message: ChatMessage, name: str) -> Message:
    kind = str(getattr(message.role, "value", message.role))
    role = _ROLES.get(kind)
    if role is None:
        raise ConfigurationError("prompt", name, f"has a message of the kind {kind!r}")
    return Message(role=role, content=message.content or "")
