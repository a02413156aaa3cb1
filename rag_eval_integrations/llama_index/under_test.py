"""LlamaIndex's LLMs, engines and templates for `rag_eval_integrations.prompt_tests`."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index._answers import Answer, answer_from
from rag_eval_integrations.llama_index.model import LlamaIndexModel
from rag_eval_integrations.models._framework import Borrowed
from rag_eval_integrations.models._templates import FrameworkTemplate
from rag_eval_integrations.models.completion import Message
from rag_eval_integrations.records import RagCall


def as_model_under_test(
    model: LLM | BaseQueryEngine | BaseChatEngine, *, name: str | None = None
) -> LlamaIndexModel | EngineApp:
    """Make a model under test of an LLM, a query engine or a chat engine.

    Args:
        model: an LLM gets the rendered prompt; an engine is an app that has the prompt inside and
            gets the test's one input as its question. Its source nodes are the contexts.
        name: what it is called in files and reports; by default its class.

    Raises:
        ConfigurationError: none of these.
    """
    if isinstance(model, LLM):
        return LlamaIndexModel(model, name=name)
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
        self._borrowed: Borrowed[BaseQueryEngine | BaseChatEngine] = Borrowed(
            engine, None, max_threads=max_threads, timeout=timeout, captured=True
        )
        self._alone = threading.Lock()

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Ask the engine once; the documents of the call are its source nodes.

        Raises:
            JudgeError: whatever it raised, as `judges.borrowed` tells failures apart.
        """

        def ask(engine: BaseQueryEngine | BaseChatEngine) -> Answer:
            return answer_from(self._asked(engine, text), MetadataMode.LLM)

        answer = await self._borrowed.ask(self.name, ask)
        return RagCall(text, answer.documents, answer.text or "")

    def _asked(self, engine: BaseQueryEngine | BaseChatEngine, question: str) -> object:
        if isinstance(engine, BaseQueryEngine):
            return engine.query(question)
        with self._alone:
            engine.reset()
            return engine.chat(question)


class TemplatePrompt(FrameworkTemplate):
    """A LlamaIndex template as a prompt under test; rendered by LlamaIndex, message by message."""

    _framework = "LlamaIndex"

    def __init__(self, template: BasePromptTemplate, name: str) -> None:
        self._template = template
        filled = set(template.kwargs)
        super().__init__(
            name, [one for one in dict.fromkeys(template.template_vars) if one not in filled]
        )

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values; LlamaIndex itself would leave out those that are missing."""
        missing = [name for name in self.input_names if name not in values]
        if missing:
            raise ConfigurationError("prompt", self.name, f"{missing[0]!r} is not given")
        return super().render(values)

    def _rendered(self, given: dict[str, object]) -> list[tuple[str, str]]:
        messages = self._template.format_messages(**given)  # type: ignore[arg-type]
        return [(_kind(message), message.content or "") for message in messages]


def as_prompt(template: BasePromptTemplate, *, name: str = "prompt") -> TemplatePrompt:
    """Make a prompt under test of a `PromptTemplate`, `ChatPromptTemplate` or `RichPromptTemplate`.

    Raises:
        ConfigurationError: no template, or one with messages that are no text.
    """
    if not isinstance(template, BasePromptTemplate):
        raise ConfigurationError("prompt", template, "use a LlamaIndex prompt template")
    return TemplatePrompt(template, name)


def _kind(message: ChatMessage) -> str:
    return str(getattr(message.role, "value", message.role))
