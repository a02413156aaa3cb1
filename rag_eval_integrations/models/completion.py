"""`Model`, and the request and reply that are the same for every model.

`ModelBase` declares the optional members, and `WrappedModel` is the base of models around a model.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from rag_eval_integrations._contain import contained
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.records import Usage
from rag_eval_integrations.records._json import JsonObject, Record, Text

FinishReason = Literal["stop", "length", "content_filter", "refusal", "unknown"]

# OpenAI's words, then those of Mistral, Anthropic, TGI and Gemini, which gateways pass unchanged.
_FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos_token": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}


def finish_reason_of(word: object) -> FinishReason:
    """Read a vendor's finish reason, whatever its case; `unknown` when it is not a known one."""
    return _FINISHED.get(word.lower(), "unknown") if isinstance(word, str) else "unknown"


class Message(Record):
    """One message to a model; text under test is only ever part of a `user` message."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[str, ...] = ()
    """Images of a `user` message, after its text: URLs of `https:`, `http:` or `data:`."""


class CompletionRequest(Record):
    """A request to a model; settings that the endpoint does not support are dropped."""

    messages: tuple[Message, ...]
    json_schema: JsonObject | None = None
    """JSON Schema of the answer; None for free text."""
    schema_name: str = "answer"
    """Name of the schema: letters and underscores."""
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    """How many alternatives per token to return with their log-probabilities; None for none."""
    n: Annotated[int, Field(ge=1)] = 1
    """Number of answers."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    """None leaves it to the model, as reasoning models require."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    parameters: JsonObject = Field(default_factory=dict)
    """Settings of a prompt under test, by their names in OpenAI's chat API (`top_p`, `stop`,
    `tools` …); before all other settings, the model's own included."""
    prompt_version: str | None = None
    """Version of the prompt that the messages were made from; part of every cache key."""


class Token(Record):
    """One generated token with its log-probability."""

    text: Text
    logprob: float
    top: tuple[tuple[Text, float], ...] = ()
    """Alternatives at this position with their log-probabilities, as the endpoint gave them."""


class Choice(Record):
    """One answer."""

    text: Text
    """The answer without reasoning blocks; empty when there is no answer."""
    finish_reason: FinishReason = "unknown"
    tokens: tuple[Token, ...] | None = None
    """Tokens of the answer; None where the endpoint gave no log-probabilities."""
    refusal: Text | None = None
    """The model's words when the endpoint marks a refusal; None otherwise."""


class Completion(Record):
    """A model's reply: one answer or several."""

    choices: Annotated[tuple[Choice, ...], Field(min_length=1)]
    usage: Usage = Usage()
    model: Text | None = None
    """Name of the model that answered, as returned by the endpoint."""
    warnings: tuple[Text, ...] = ()
    """Settings that were dropped or changed, and parts of the answer that are missing."""

    @property
    def text(self) -> str:
        """The first answer's text."""
        return self.choices[0].text

    @property
    def parsed(self) -> dict[str, JsonValue] | None:
        """The first answer as a JSON object; None when its text is anything else."""
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    @property
    def tokens(self) -> tuple[Token, ...] | None:
        """The first answer's tokens; None where the endpoint gave no log-probabilities."""
        return self.choices[0].tokens

    @property
    def finish_reason(self) -> FinishReason:
        """Why the first answer ended."""
        return self.choices[0].finish_reason


Reason = Literal[
    "rate limit", "token limit", "Retry-After", "backoff", "concurrency", "circuit open"
]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A snapshot of what requests wait for; `str()` of it fits a progress line."""

    reason: Reason
    """`rate limit` and `token limit` are the user's own; `Retry-After` is the endpoint's request,
    `backoff` the pause before a retry; `concurrency` means that as many requests as allowed are
    running; `circuit open` means that requests fail at once because the endpoint is down."""
    seconds: float | None
    """Seconds until it ends, at least 0; None where the end is unknown: for `concurrency`, and for
    the `rate limit` of shared permits."""
    requests: int
    """How many requests wait for this."""
    why: str = field(default="", compare=False)
    """The failure that they wait after; empty where they wait for another reason."""

    def __str__(self) -> str:
        how_long = "" if self.seconds is None else f" for {self.seconds:.1f} s"
        after = f" after: {self.why}" if self.why else ""
        return f"{self.requests} waiting{how_long}: {self.reason}{after}"


@runtime_checkable
class Model(Protocol):
    """Answers messages.

    Any object with a `name` and `async complete(request)` is a model; `ModelBase` declares the
    optional members. Implementations may be called concurrently, from one loop at a time. Settings
    that the endpoint does not support are dropped and reported in `Completion.warnings`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score, such as `openai:gpt-4o-mini`."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; a retry may help.
            JudgeRejectedError: the request itself is refused; a retry is useless.
        """
        ...


class ModelBase(ABC):
    """Base class of models: a `Model` with its optional members.

    `name`, `model`, `version` and `base_url` are part of every cache key: two models that may
    answer differently must differ in one of them. Fingerprints cover `name` and `version`.
    """

    name: str
    """Name stamped on every score."""
    model: str | None = None
    """The endpoint's name for the model; None if it has none."""
    version: str | None = None
    """Version of everything else that answers depend on; None if there is nothing else."""
    base_url: str | None = None
    """The endpoint's URL; None for a model without one."""
    retries: bool = False
    """Whether failed requests are retried already; if not, `with_retries` adds `ThrottledModel`."""
    max_concurrency: int | None = None
    """Most requests at once, where the model sees to that itself; None where it does not."""

    @abstractmethod
    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request; see `Model.complete`."""

    def waiting(self) -> Waiting | None:
        """Return what requests are waiting for; None when none waits, or it is not known.

        Here always None; a model that lets requests wait overrides it.
        """
        return None

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name all `parameters` of a request, and `images` if it has any: none of them is sent.

        Models that send some of them override this.
        """
        images = any(message.images for message in request.messages)
        return (*request.parameters, *(("images",) if images else ()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def identity(self) -> tuple[str | None, ...]:
        """Name, model, version and endpoint: models that share these give the same answers."""
        return (self.name, self.model, self.version, self.base_url)


class WrappedModel(ModelBase):
    """Base class of models around another model; they share its name and change no answer."""

    def __init__(self, model: Model) -> None:
        self._wrapped = model_base(model)
        self.name = self._wrapped.name
        self.model = self._wrapped.model
        self.version = self._wrapped.version
        self.base_url = self._wrapped.base_url
        self.max_concurrency = self._wrapped.max_concurrency

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._wrapped!r})"

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the wrapped model."""
        return await self._wrapped.complete(request)

    def waiting(self) -> Waiting | None:
        """Return what the wrapped model's requests are waiting for."""
        return self._wrapped.waiting()

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name what the wrapped model leaves out."""
        return self._wrapped.not_sent(request)


class _ForeignModel(ModelBase):
    """Wraps a user's object that does not inherit `ModelBase`; keeps the members that it has."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        for member in ("model", "version", "base_url", "retries"):
            if hasattr(model, member):
                setattr(self, member, getattr(model, member))

    def __repr__(self) -> str:
        return f"{type(self._model).__name__}({self.name!r})"

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name what the user's object says that it leaves out; everything if it says nothing."""
        own = getattr(self._model, "not_sent", None)
        return super().not_sent(request) if own is None else tuple(own(request))

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the user's object."""
        return await self._model.complete(request)


async def completed(model: Model, request: CompletionRequest) -> Completion:
    """Ask a model, and check that it answers with a completion.

    Raises:
        JudgeError: it returned something else.
        EscapedError: it raised something that is not an `Exception`, such as `SystemExit`.
        Exception: whatever else it raised.
    """
    with contained:
        completion: object = await model.complete(request)
    if not isinstance(completion, Completion):
        kind = type(completion).__name__
        raise JudgeError(f"the model {model.name} returned {kind} instead of a Completion")
    return completion


def model_base(model: Model) -> ModelBase:
    """Return a model with its optional members: itself if it inherits `ModelBase`, else wrapped.

    Raises:
        ConfigurationError: it is not a model.
    """
    if not isinstance(model, Model):
        raise ConfigurationError("model", model, "needs a `name` and `async complete(request)`")
    return model if isinstance(model, ModelBase) else _ForeignModel(model)
