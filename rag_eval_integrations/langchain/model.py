"""LangChain's models as a judge's model (`LangChainModel`) and under prompt tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.langchain._values import answer_of
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.models._framework import (
    Borrowed,
    FrameworkModel,
    FrameworkTemplate,
    Reply,
    finished_in,
)
from rag_eval_integrations.models._reading import token_count
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest, Message
from rag_eval_integrations.records import RagCall, Usage

_MESSAGES: dict[str, type[BaseMessage]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
}


class LangChainModel(FrameworkModel[BaseChatModel, BaseMessage]):
    """A model that asks a LangChain `BaseChatModel`, with the chat model's own settings.

    The chat model's sync method is called in a pool of threads, never on the app's loop or the
    library's, and its calls are never captured as RAG calls. A request for log-probabilities or
    for several answers sets `logprobs`, `n`, `seed` and `temperature` if the chat model has
    settings of these names (`ChatOpenAI` and similar classes), until it refuses them. Otherwise
    log-probabilities are left out with a warning, and several answers are requested one by one,
    without LangChain's cache, which would repeat the first answer. A JSON schema is left out, since
    prompts ask for their JSON in words as well.

    Args:
        model: the chat model.
        make_model: makes a chat model for each event loop that asks, whose async method is used;
            pass either this or `model`. A `ChatOpenAI` made this way needs its own
            `http_async_client`: instances without one share a client, whatever loop they are on.
        name: name recorded on every score; by default the chat model's class and model name.
        timeout: seconds per answer, above 0.

    Raises:
        ConfigurationError: an argument cannot be used; the message names it.
    """

    _who = "the LangChain model"

    def __init__(
        self,
        model: BaseChatModel | None = None,
        *,
        make_model: Callable[[], BaseChatModel] | None = None,
        name: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        if model is not None and not isinstance(model, BaseChatModel):
            raise ConfigurationError("model", model, "use a LangChain chat model")
        borrowed = Borrowed(model, make_model, timeout=timeout)
        kind = "langchain" if model is None else f"langchain:{type(model).__name__}"
        super().__init__(borrowed, kind, model=_model_name(model), name=name)

    def _settings(self, model: BaseChatModel) -> Collection[str]:
        """Return the settings that the model class has."""
        return type(model).model_fields

    def _ask(
        self, model: BaseChatModel, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[BaseMessage]:
        messages = _as_langchain(request.messages)
        return _messages(_uncached(model, request, sent).generate([messages], **sent))

    async def _aask(
        self, model: BaseChatModel, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[BaseMessage]:
        messages = _as_langchain(request.messages)
        return _messages(await _uncached(model, request, sent).agenerate([messages], **sent))

    def _read(self, reply: BaseMessage) -> Reply:
        """Read text, end, log-probabilities and refusal of a reply."""
        metadata = reply.response_metadata
        refusal = reply.additional_kwargs.get("refusal")
        return Reply(
            text=str(reply.text),
            finished=finished_in(metadata),
            logprobs=metadata.get("logprobs"),
            refusal=refusal if isinstance(refusal, str) and refusal else None,
        )

    def _usage(self, replies: Sequence[BaseMessage], requests: int) -> Usage:
        return _usage(replies, requests)

    def _answered_by(self, reply: BaseMessage) -> str | None:
        """Return the name of the model that answered."""
        metadata = reply.response_metadata
        name = metadata.get("model_name") or metadata.get("model")
        return name if isinstance(name, str) else None


def _uncached(
    model: BaseChatModel, request: CompletionRequest, sent: Mapping[str, Any]
) -> BaseChatModel:
    """Return the model, or a copy without its cache if the answers have to be independent."""
    several = request.n > 1 and "n" not in sent
    another = request.seed is not None and "seed" not in sent
    if not (several or another) or model.cache is False:
        return model
    if model.cache is None and get_llm_cache() is None:
        return model
    uncached = copy.copy(model)
    uncached.cache = False
    return uncached


def _messages(result: LLMResult) -> list[BaseMessage]:
    """Return the messages of a result, each with the metadata that they share."""
    messages = [item.message for item in result.generations[0] if isinstance(item, ChatGeneration)]
    output = result.llm_output or {}
    for message in messages:
        # `generate` does not add the metadata that all answers share; `invoke` would.
        message.response_metadata = {**output, **message.response_metadata}
    return messages


def _as_langchain(messages: Sequence[Message]) -> list[BaseMessage]:
    """Convert messages to LangChain's classes."""
    return [_MESSAGES[message.role](content=message.content) for message in messages]


def _usage(replies: Sequence[BaseMessage], requests: int) -> Usage:
    """Sum the tokens of replies; a hit of LangChain's cache costs nothing."""
    usages = [reply.usage_metadata for reply in replies if isinstance(reply, AIMessage)]
    if requests == 1:  # each of several answers carries the usage of all of them together
        usages = usages[:1]
    # A hit of LangChain's cache keeps the counts, if there were any, with a cost of 0.
    hits = [usage for usage in usages if usage and usage.get("total_cost") == 0]
    paid = [usage for usage in usages if usage and usage not in hits]
    return Usage(
        requests=requests - len(hits),
        prompt_tokens=sum(token_count(usage["input_tokens"]) for usage in paid),
        completion_tokens=sum(token_count(usage["output_tokens"]) for usage in paid),
    )


def _model_name(model: BaseChatModel | None) -> str | None:
    for field in ("model_name", "model", "model_id"):
        name = getattr(model, field, None)
        if isinstance(name, str) and name:
            return name
    return None


# --- As models, apps and prompts under test (`rag_eval_integrations.prompt_tests`)


Takes = Literal["messages", "inputs", "text"]


def as_model_under_test(
    model: Runnable[Any, Any], *, name: str | None = None, takes: Takes | None = None
) -> LangChainModel | RunnableModel | RunnableApp:
    """Make a model under test from a chat model or any other runnable.

    Args:
        model: a chat model, or a binding of one, gets the rendered prompt. Any other runnable is
            an app that contains its own prompt: it gets the test's inputs, and the documents that
            it retrieves are captured.
        name: name in files and reports; by default the runnable's own name.
        takes: form of the input, if it differs from the above: `messages`, `inputs` (a dict) or
            `text` (the only input, for a chain that takes a question).

    Raises:
        ConfigurationError: `model` is not a runnable.
    """
    if not isinstance(model, Runnable):
        raise ConfigurationError("model", model, "use a LangChain chat model or another runnable")
    if takes is None:
        takes = "messages" if _is_model(model) else "inputs"
    if takes != "messages":
        return RunnableApp(model, name or model.get_name(), takes)
    if isinstance(model, BaseChatModel):
        return LangChainModel(model, name=name)
    return RunnableModel(model, name or model.get_name())


def _is_model(model: Runnable[Any, Any]) -> bool:
    """Return whether a runnable is a model, perhaps with bound arguments."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    return isinstance(model, BaseLanguageModel)


class RunnableModel:
    """A `Model` that answers messages with a runnable that takes messages."""

    def __init__(self, runnable: Runnable[Any, Any], name: str) -> None:
        self.name = name
        self._borrowed = Borrowed(runnable, None)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer messages.

        Raises:
            JudgeError: the runnable failed, gave no answer in time, or returned no text.
        """
        kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
        messages = [kinds[m.role](content=m.content) for m in request.messages]

        def invoke(runnable: Runnable[Any, Any]) -> object:
            """Invoke the runnable with the messages."""
            return runnable.invoke(messages)

        output = await self._borrowed.ask(self.name, invoke)
        text = _text_of(output, self.name)
        return Completion(
            choices=(Choice(text=text, finish_reason="stop"),), usage=Usage(requests=1)
        )


class RunnableApp:
    """An `App` of prompt tests: a chain that contains its own prompt.

    Its sync `invoke` is called in a bounded pool of threads, never on the app's loop or the
    library's.
    """

    def __init__(self, runnable: Runnable[Any, Any], name: str, takes: Takes) -> None:
        self.name = name
        self._takes = takes
        self._borrowed = Borrowed(runnable, None, captured=True)

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Run the chain once; the call's documents are those that it retrieved.

        Raises:
            JudgeError: the chain failed, gave no answer in time, or returned no text.
        """
        given: object = dict(inputs) if self._takes == "inputs" else text
        calls: list[RagCall] = []

        def invoke_captured(runnable: Runnable[Any, Any]) -> object:
            """Invoke the runnable with a handler that captures the call."""
            handler = RagEvalCallbackHandler(calls.append)
            return runnable.invoke(given, config={"callbacks": [handler]})

        output = await self._borrowed.ask(self.name, invoke_captured)
        documents = calls[-1].documents if calls else ()
        return RagCall(text, documents, _text_of(output, self.name))


class TemplatePrompt(FrameworkTemplate):
    """A prompt under test that LangChain renders from its template, message by message."""

    _framework = "LangChain"

    def __init__(self, template: BasePromptTemplate[Any], name: str) -> None:
        self._template = template
        super().__init__(name, template.input_variables)

    def _rendered(self, given: dict[str, object]) -> list[tuple[str, str]]:
        """Render the template: kind (`human`, `ai` …) and text of each message."""
        messages = self._template.format_prompt(**given).to_messages()
        return [(message.type, str(message.text)) for message in messages]


def as_prompt(template: BasePromptTemplate[Any], *, name: str = "prompt") -> TemplatePrompt:
    """Make a prompt under test from a `ChatPromptTemplate` or `PromptTemplate`.

    Args:
        template: the template.
        name: name in files and reports, for a template without a name of its own.

    Raises:
        ConfigurationError: `template` is not a template, or has a placeholder for messages, which
            has to be filled first (`template.partial(history=[…])`).
    """
    if not isinstance(template, BasePromptTemplate):
        raise ConfigurationError("prompt", template, "use a LangChain prompt template")
    return TemplatePrompt(template, template.name or name)


def _text_of(output: object, name: str) -> str:
    """Return the text of an output; refuse one without text."""
    text = output if isinstance(output, str) else answer_of(output)
    if text is None:
        raise JudgeOutputError(f"{name} returned {type(output).__name__}, not text", repr(output))
    return text
