"""What is asked of a model and what comes back: the same shape whatever model answers."""

from __future__ import annotations

import json
from typing import Annotated, Literal

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
