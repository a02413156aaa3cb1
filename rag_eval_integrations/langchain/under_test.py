"""Use LangChain's models, chains and templates in `rag_eval_integrations.prompt_tests`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.langchain._values import answer_of
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.langchain.model import LangChainModel
from rag_eval_integrations.models._framework import Borrowed, FrameworkTemplate
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest
from rag_eval_integrations.records import RagCall, Usage

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
    """Tell whether a runnable is a model, perhaps with bound arguments."""
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

        def sync(runnable: Runnable[Any, Any]) -> object:
            """Invoke the runnable."""
            return runnable.invoke(messages)

        output = await self._borrowed.ask(self.name, sync)
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

        def run(runnable: Runnable[Any, Any]) -> object:
            """Invoke the runnable with a handler that captures the call."""
            handler = RagEvalCallbackHandler(calls.append)
            return runnable.invoke(given, config={"callbacks": [handler]})

        output = await self._borrowed.ask(self.name, run)
        documents = calls[-1].documents if calls else ()
        return RagCall(text, documents, _text_of(output, self.name))


class TemplatePrompt(FrameworkTemplate):
    """A prompt under test that LangChain renders from its template, message by message."""

    _framework = "LangChain"

    def __init__(self, template: BasePromptTemplate[Any], name: str) -> None:
        self._template = template
        super().__init__(name, template.input_variables)

    def _rendered(self, given: dict[str, object]) -> list[tuple[str, str]]:
        """Return role and text of each message of the template."""
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
