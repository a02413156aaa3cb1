"""Use LlamaIndex's LLMs, engines and templates in `rag_eval_integrations.prompt_tests`."""

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
from rag_eval_integrations.models._framework import Borrowed, FrameworkTemplate
from rag_eval_integrations.models.completion import Message
from rag_eval_integrations.records import RagCall


def as_model_under_test(
    model: LLM | BaseQueryEngine | BaseChatEngine, *, name: str | None = None
) -> LlamaIndexModel | EngineApp:
    """Make a model under test from an LLM, a query engine or a chat engine.

    Args:
        model: an LLM gets the rendered prompt. An engine is an app that contains its own prompt:
            it gets the test's only input as its question, and its source nodes are the documents.
        name: name in files and reports; by default the model's class.

    Raises:
        ConfigurationError: `model` is neither an LLM nor an engine.
    """
    if isinstance(model, LLM):
        return LlamaIndexModel(model, name=name)
    if isinstance(model, BaseQueryEngine | BaseChatEngine):
        return EngineApp(model, name or type(model).__name__)
    raise ConfigurationError("model", model, "use a LlamaIndex LLM, query engine or chat engine")


class EngineApp:
    """An `App` of prompt tests: an engine that contains its own prompt.

    Its sync method is called in a bounded pool of threads. A chat engine keeps its history, so it
    is reset before each test and asked one question at a time.
    """

    def __init__(self, engine: BaseQueryEngine | BaseChatEngine, name: str) -> None:
        self.name = name
        self._borrowed: Borrowed[BaseQueryEngine | BaseChatEngine] = Borrowed(
            engine, None, captured=True
        )
        self._alone = threading.Lock()

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Ask the engine once; the call's documents are its source nodes.

        Raises:
            JudgeError: the engine failed, or gave no answer in time.
        """

        def ask(engine: BaseQueryEngine | BaseChatEngine) -> Answer:
            """Ask the engine, and read its answer."""
            return answer_from(self._response_to(engine, text), MetadataMode.LLM)

        answer = await self._borrowed.ask(self.name, ask)
        return RagCall(text, answer.documents, answer.text or "")

    def _response_to(self, engine: BaseQueryEngine | BaseChatEngine, question: str) -> object:
        """Ask the engine a question; a chat engine begins anew."""
        if isinstance(engine, BaseQueryEngine):
            return engine.query(question)
        with self._alone:
            engine.reset()
            return engine.chat(question)


class TemplatePrompt(FrameworkTemplate):
    """A prompt under test that LlamaIndex renders from its template, message by message."""

    _framework = "LlamaIndex"

    def __init__(self, template: BasePromptTemplate, name: str) -> None:
        self._template = template
        variables = dict.fromkeys(template.template_vars)
        super().__init__(name, [name for name in variables if name not in template.kwargs])

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Render the template with values; LlamaIndex itself would leave out missing ones.

        Raises:
            ConfigurationError: a value is missing.
        """
        missing = [name for name in self.input_names if name not in values]
        if missing:
            raise ConfigurationError("prompt", self.name, f"the value of {missing[0]!r} is missing")
        return super().render(values)

    def _rendered(self, given: dict[str, object]) -> list[tuple[str, str]]:
        """Return role and text of each message of the template."""
        messages = self._template.format_messages(**given)  # type: ignore[arg-type]
        return [(_kind(message), message.content or "") for message in messages]


def as_prompt(template: BasePromptTemplate, *, name: str = "prompt") -> TemplatePrompt:
    """Make a prompt under test from a LlamaIndex template.

    Args:
        template: a `PromptTemplate`, `ChatPromptTemplate` or `RichPromptTemplate`.
        name: name in files and reports.

    Raises:
        ConfigurationError: `template` is not a template, or has messages that are not texts.
    """
    if not isinstance(template, BasePromptTemplate):
        raise ConfigurationError("prompt", template, "use a LlamaIndex prompt template")
    return TemplatePrompt(template, name)


def _kind(message: ChatMessage) -> str:
    """Return a message's role."""
    return str(getattr(message.role, "value", message.role))
