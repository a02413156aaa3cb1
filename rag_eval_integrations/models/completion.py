"""What is asked of a model and what comes back: the same shape whatever model answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from rag_eval_integrations.records import JsonObject, Record, Usage

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

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()
    """Alternatives at this position with their log-probabilities, as the endpoint gave them."""


class Choice(Record):
    """One answer."""

    text: str
    """The answer without reasoning blocks; empty when there is none."""
    finish_reason: FinishReason = "unknown"
    tokens: tuple[Token, ...] | None = None
    """Tokens of the answer; None where the endpoint gave no log-probabilities."""
    refusal: str | None = None
    """What the model said instead, when the endpoint marks a refusal."""


class Completion(Record):
    """A model's reply: one answer or several."""

    choices: Annotated[tuple[Choice, ...], Field(min_length=1)]
    usage: Usage = Usage()
    model: str | None = None
    """Name of the model that answered, as the endpoint gave it."""
    warnings: tuple[str, ...] = ()
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
    """Answers messages.

    Any object with a `name` and `async complete(request)` is a model; `ModelBase` declares the
    optional members. Implementations may be called concurrently, from one loop at a time. Settings
    that the endpoint does not know are left out and named in `Completion.warnings`.
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


class ModelBase(ABC):
    """A `Model` with its optional members; inherit it to state them.

    `name`, `model`, `version` and `base_url` are part of every cache key and fingerprint: two
    models that may answer differently must differ in one of them.
    """

    name: str
    """Name stamped on every score."""
    model: str | None = None
    """The endpoint's name for the model; None where it has none."""
    version: str | None = None
    """Version of whatever else an answer depends on; None where nothing does."""
    base_url: str | None = None
    """The endpoint's URL; None for a model without one."""
    retries: bool = False
    """Whether failed requests are already asked again; else `ThrottledModel` is put around it."""

    @abstractmethod
    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request; see `Model.complete`."""

    @property
    def identity(self) -> tuple[str | None, ...]:
        """Name, model, version and endpoint: models of one identity give the same answers."""
        return (self.name, self.model, self.version, self.base_url)


class WrappedModel(ModelBase):
    """A model around another one, known by the other's name: it changes no answer."""

    def __init__(self, model: Model) -> None:
        self._wrapped = model_base(model)
        self.name = self._wrapped.name
        self.model = self._wrapped.model
        self.version = self._wrapped.version
        self.base_url = self._wrapped.base_url

    async def complete(self, request: CompletionRequest) -> Completion:
        """Let the model answer."""
        return await self._wrapped.complete(request)


class _Foreign(ModelBase):
    """A user's object that does not inherit `ModelBase`; the members that it has are kept."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        for member in ("model", "version", "base_url", "retries"):
            if hasattr(model, member):
                setattr(self, member, getattr(model, member))

    async def complete(self, request: CompletionRequest) -> Completion:
        """Let the user's object answer."""
        return await self._model.complete(request)


def model_base(model: Model) -> ModelBase:
    """Return a model with its optional members declared: itself where it inherits `ModelBase`."""
    return model if isinstance(model, ModelBase) else _Foreign(model)


def with_retries(model: Model) -> ModelBase:
    """Put the one layer that retries around a model, unless the model has it already."""
    known = model_base(model)
    if known.retries:
        return known
    from rag_eval_integrations.models.throttling import ThrottledModel  # noqa: PLC0415

    return ThrottledModel(known)
