"""LlamaIndex's LLMs as a judge's model (`LlamaIndexModel`) and under prompt tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import LLM, ChatMessage, ChatResponse
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index._answers import Answer, answer_from
from rag_eval_integrations.models._framework import (
    Borrowed,
    FrameworkModel,
    FrameworkTemplate,
    Reply,
    finished_in,
)
from rag_eval_integrations.models._reading import alternative, token_count
from rag_eval_integrations.models.completion import CompletionRequest, Message, Token
from rag_eval_integrations.records import RagCall, Usage


class LlamaIndexModel(FrameworkModel[LLM, ChatResponse]):
    """A model that asks a LlamaIndex `LLM`, with the LLM's own settings.

    The LLM's sync `chat` is called in a pool of threads, never on the app's loop or the library's,
    and its calls are never captured as RAG calls. A request for log-probabilities or for several
    answers sets `logprobs`, `seed` and `temperature` if the LLM has settings of these names
    (`OpenAI` and similar classes), until it refuses them. Otherwise log-probabilities are left out
    with a warning. LlamaIndex gives one answer per request, so several answers are requested one by
    one. A JSON schema is left out, since prompts ask for their JSON in words as well.

    Args:
        llm: the LLM.
        make_llm: makes an LLM for each event loop that asks, whose async method is used; pass
            either this or `llm`.
        name: name recorded on every score; by default the LLM's class and model name.
        timeout: seconds per answer, above 0.

    Raises:
        ConfigurationError: an argument cannot be used; the message names it.
    """

    _who = "the LlamaIndex model"

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        make_llm: Callable[[], LLM] | None = None,
        name: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        if llm is not None and not isinstance(llm, LLM):
            raise ConfigurationError("llm", llm, "use a LlamaIndex LLM")
        borrowed = Borrowed(llm, make_llm, timeout=timeout)
        kind = "llama_index" if llm is None else f"llama_index:{llm.class_name()}"
        model = llm.metadata.model_name if llm is not None else None
        super().__init__(borrowed, kind, model=model, name=name)

    def _settings(self, model: LLM) -> Collection[str]:
        """Return the settings that the model class has."""
        # `n` would give several answers, of which LlamaIndex keeps one.
        return set(type(model).model_fields) - {"n"}

    def _ask(
        self, model: LLM, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[ChatResponse]:
        return [model.chat(_messages(request), **sent)]

    async def _aask(
        self, model: LLM, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[ChatResponse]:
        return [await model.achat(_messages(request), **sent)]

    def _read(self, reply: ChatResponse) -> Reply:
        """Read text, end and log-probabilities of a reply."""
        raw = _mapping(reply.raw)
        choices = raw.get("choices")
        first = _mapping(choices[0]) if isinstance(choices, Sequence) and choices else {}
        return Reply(
            text=reply.message.content or "",
            finished=finished_in({**raw, **first}),
            logprobs=_mapping(first.get("logprobs")),
            tokens=lambda: _tokens_of_response(reply),
        )

    def _usage(self, replies: Sequence[ChatResponse], requests: int) -> Usage:
        return _usage(replies)


def _messages(request: CompletionRequest) -> list[ChatMessage]:
    """Convert the messages of a request to LlamaIndex's class."""
    return [ChatMessage(role=m.role, content=m.content) for m in request.messages]


def _tokens_of_response(reply: ChatResponse) -> tuple[Token, ...] | None:
    """Read LlamaIndex's own list of alternatives by position, the likeliest first.

    The list does not say which alternative was sampled. At temperature 0, at which they are
    requested, it is the first one. If it is not, the tokens do not spell the answer, and G-Eval
    does not use them.
    """
    tokens = []
    for position in reply.logprobs or ():
        pairs = [alternative(item.token, item.logprob) for item in position]
        top = tuple(pair for pair in pairs if pair is not None)
        if not top or pairs[0] is None:
            return None
        tokens.append(Token(text=top[0][0], logprob=top[0][1], top=top))
    return tuple(tokens) or None


def _usage(replies: Sequence[ChatResponse]) -> Usage:
    """Sum the tokens of replies."""
    prompt = completion = 0
    for reply in replies:
        counted = {**_mapping(_mapping(reply.raw).get("usage")), **reply.additional_kwargs}
        prompt += _count(counted, "prompt_tokens", "input_tokens")
        completion += _count(counted, "completion_tokens", "output_tokens")
    return Usage(requests=len(replies), prompt_tokens=prompt, completion_tokens=completion)


def _count(counted: Mapping[str, Any], *names: str) -> int:
    """Return the first token count among names; 0 without one."""
    return next((count for name in names if (count := token_count(counted.get(name)))), 0)


def _mapping(value: object) -> dict[str, Any]:
    """Return the fields of the raw reply that a vendor's integration keeps; empty without any."""
    if isinstance(value, Mapping):
        return dict(value)
    fields = getattr(value, "model_dump", None)
    return fields() if callable(fields) else {}


# --- As models, apps and prompts under test (`rag_eval_integrations.prompt_tests`)


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
