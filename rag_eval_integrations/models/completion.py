"""What is asked of a model and what comes back: the same shape whatever model answers."""

from __future__ import annotations

import json
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from rag_eval_integrations.records import JsonObject, Record, Text, Usage

FinishReason = Literal["stop", "length", "content_filter", "refusal", "unknown"]

# OpenAI's words, then those that Mistral, Anthropic, TGI and Gemini put through unchanged.
_FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos_token": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}


def finish_reason_of(word: object) -> FinishReason:
    """Read a vendor's word for why an answer ended, in either case."""
    return _FINISHED.get(str(word).lower(), "unknown")


class Message(Record):
    """One message to a model; text under test only ever stands inside a `user` message."""

    role: Literal["system", "user", "assistant"]
    content: str


class CompletionRequest(Record):
    """A question to a model. What the endpoint does not know is left out, with a warning."""

    messages: tuple[Message, ...]
    json_schema: JsonObject | None = None
    """Ask for JSON of this shape; None for free text."""
    schema_name: str = "answer"
    """Name of the shape, letters and underscores."""
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    """Ask for the log-probabilities of this many alternatives a token."""
    n: Annotated[int, Field(ge=1)] = 1
    """How many answers."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    """None leaves it to the model, which is what reasoning models require."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    prompt_version: str | None = None
    """Version of the prompt that the messages were made by; part of a cache's key."""


class Token(Record):
    """One generated token with its log-probability."""

    text: Text
    logprob: float
    top: tuple[tuple[Text, float], ...] = ()
    """Alternatives at this position with their log-probabilities, as the endpoint gave them."""


class Choice(Record):
    """One answer."""

    text: Text
    """The answer without reasoning blocks; empty when there is none."""
    finish_reason: FinishReason = "unknown"
    tokens: tuple[Token, ...] | None = None
    """Tokens of the answer; None where the endpoint gave no log-probabilities."""
    refusal: Text | None = None
    """What the model said instead, when the endpoint marks a refusal."""


class Completion(Record):
    """A model's reply: one answer or several."""

    choices: Annotated[tuple[Choice, ...], Field(min_length=1)]
    usage: Usage = Usage()
    model: Text | None = None
    """Name of the model that answered, as the endpoint gave it."""
    warnings: tuple[Text, ...] = ()
    """What had to be left out or done otherwise than asked."""

    @property
    def text(self) -> str:
        """The first answer's text."""
        return self.choices[0].text

    @property
    def parsed(self) -> dict[str, JsonValue] | None:
        """The first answer as a JSON object; None when its text is not one as it stands."""
        try:
            value = json.loads(self.text)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    @property
    def tokens(self) -> tuple[Token, ...] | None:
        """The first answer's tokens."""
        return self.choices[0].tokens

    @property
    def finish_reason(self) -> FinishReason:
        """Why the first answer ended."""
        return self.choices[0].finish_reason


@runtime_checkable
class Model(Protocol):
    """A model that answers messages.

    Implementations may be called concurrently, from one loop at a time. What the endpoint does
    not know is left out and said in `Completion.warnings`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score, such as `openai:gpt-4o-mini`."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; asking again may help.
            JudgeRejectedError: the request itself is refused; asking again is no use.
        """
        ...


class WrappedModel:
    """Base of the judges that stand around another one."""

    retries = False
    """Whoever gets a judge that retries does not wrap it in another layer of retries."""

    def __init__(self, completer: Model) -> None:
        self._completer = completer

    @property
    def name(self) -> str:
        """The completer's name."""
        return self._completer.name

    @property
    def model(self) -> str | None:
        """The completer's model; None when it names none."""
        return self._known("model")

    @property
    def version(self) -> str | None:
        """The completer's version; None when it has none."""
        return self._known("version")

    @property
    def base_url(self) -> str | None:
        """The completer's endpoint; None when it has none."""
        return self._known("base_url")

    def _known(self, field: str) -> str | None:
        value: str | None = getattr(self._completer, field, None)
        return value


def with_retries(completer: Model) -> Model:
    """Wrap a model in the one layer that retries, unless it is inside of it already."""
    if getattr(completer, "retries", False):
        return completer
    from rag_eval_integrations.models.throttling import ThrottledModel  # noqa: PLC0415

    return ThrottledModel(completer)
