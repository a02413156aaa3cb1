"""A span of any tool, as its reader makes it of a row: what `_calls` makes a call of.

A reader is a module of a tool: `_openinference`, `_mlflow`, `_langfuse`, `_langsmith`. It has

    NAME           the tool's name, as people write it, for messages
    recognises     whether a row, by its columns, is the tool's
    spans_of       the spans of a row: one, or all spans of a trace
    listed         the traces that a client of the tool lists
    rows_of        the rows of some traces

and raises `InputError` for a row of the tool that holds no span, saying which export does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Turn
from rag_eval_integrations.records.call import TraceSource
from rag_eval_integrations.traces._values import (
    items_in,
    messages_in,
    object_in,
    text_from,
    turns_from,
)

SpanKind = Literal["retriever", "reranker", "model", "embedding", "tool", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace.

    Spans of the kind `embedding` are made without input and output, which are not parsed.
    """

    source: TraceSource
    trace: str
    id: str
    parent: str | None
    """Id of the span around it; None for the root."""
    kind: SpanKind
    name: str = ""
    start: float | None = None
    """Seconds since 1970; None where the tool does not tell."""
    end: float | None = None
    input: object = None
    """The input as the tool has it: a text, which may be JSON, or the value."""
    output: object = None
    documents: Sequence[Any] | None = None
    """What a retriever or a reranker returned, in its order, in any form that `documents_from`
    reads; None where this is not recorded."""
    messages: tuple[Turn, ...] = ()
    """What a model was shown; the results of tools are turns of the role `tool`."""
    text: str | None = None
    """What a model wrote; None without a text, as where it called a tool."""
    error: str | None = None
    session: str | None = None
    """The tool's id of the conversation."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Search:
    """A query for a tool's traces: project, start and filter."""

    ask: Callable[[Callable[[], Any]], Any]
    """Calls a function that makes a request, again after a failure that may pass."""
    project: str | None = None
    since: float | None = None
    """Seconds since 1970."""
    query: str | None = None
    """A filter in the tool's own words."""

    @property
    def start(self) -> datetime | None:
        """The time from which on traces are asked for."""
        return None if self.since is None else datetime.fromtimestamp(self.since, UTC)


class Listed(NamedTuple):
    """A trace that a tool lists."""

    trace: str
    ended: float | None
    """Seconds since 1970 at which its root ended, or began where it has not ended."""
    rows: Sequence[Any] | None = None
    """Its rows, where the tool lists them along."""


class Reader(Protocol):
    """A module that reads the rows of one tool, and asks its client for them."""

    NAME: str

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is of this tool."""

    def spans_of(self, row: Mapping[str, Any]) -> Iterable[Span]:
        """Read the spans of a row."""

    def listed(self, client: Any, search: Search) -> Iterator[Listed]:
        """List the traces that a search asks for."""

    def rows_of(self, client: Any, search: Search, traces: Sequence[str]) -> Sequence[Any]:
        """Return the rows of some traces, given by their ids."""


_LAST = 253_402_300_800_000_000_000
"""Nanoseconds at which the year 10,000 begins, which Python's dates do not reach."""


def seconds(value: object) -> float | None:
    """Read a time as seconds since 1970: of numbers, nanoseconds; of texts, ISO 8601 in UTC.

    None for anything else, and for a number that no date has.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LAST:
        return value / 1e9 if value > 1e14 else value / 1e3 if value > 1e11 else float(value)
    if isinstance(value, str) and value.isdecimal():
        return seconds(int(value))
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime) and value == value:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return None


def parsed(value: object) -> object:
    """Return the object or list that a text holds as JSON; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        items = items_in(value)
        if items is None:
            return object_in(value) or ({} if value == "{}" else value)
        return items
    return value


def turns_in(value: object) -> tuple[Turn, ...]:
    """Read what a model was shown, from its input: messages, or a prompt as a user's.

    Empty where there is neither.
    """
    value = parsed(value)
    if isinstance(value, Mapping) and "messages" not in value:
        named = (value[name] for name in ("prompts", "prompt", "args", "input") if name in value)
        value = next(named, None)
    if isinstance(value, Mapping):
        value = value.get("messages")
    while isinstance(value, list | tuple) and len(value) == 1 and not messages_in(value):
        value = value[0]
    if isinstance(value, str):
        return tuple(_turns_of(value))
    if not messages_in(value):
        return ()
    turns = turns_from(messages_in(value), "messages") or ()
    return tuple([Turn.model_validate(turn) for turn in turns if turn["content"]])


_ROLE = re.compile(r"^(system|user|assistant|tool): ", re.M)
_TALK = re.compile(r"\A(?:system|user): .*^assistant:\s*\Z", re.M | re.S)
"""A prompt as LlamaIndex makes it of messages for a model without a chat."""


def _turns_of(prompt: str) -> list[Turn]:
    """Read a prompt: as the messages that it was made of, or as a user's."""
    if not prompt.strip():
        return []
    if not _TALK.match(prompt):
        return [Turn(role="user", content=prompt)]
    parts = _ROLE.split(prompt)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    turns = ({"role": role, "content": text.strip()} for role, text in pairs)
    return [Turn.model_validate(turn) for turn in turns if turn["content"]]


REPR = re.compile(
    r"<.* at 0x[0-9A-Fa-f]+>|<(?:[\w.]+ object\b|[A-Z]\w*\().*>|"
    r"[\w.]*\b[A-Z]\w*\((?:\w+=.*)?(?:\)|\.\.\.)",
    re.S,
)
"""An object as Python shows it, such as a generator or a workflow's last event; not code."""


def written_in(output: object) -> str | None:
    """Read what a model wrote, from its output; None where it is not a text, or empty."""
    value = parsed(output)
    if isinstance(value, Mapping):
        for name in ("choices", "generations", "message", "text", "content", "blocks", "output"):
            if (inside := value.get(name)) is not None:
                return _text_in(value) or written_in(inside)
        return None
    if isinstance(value, list | tuple) and value and not isinstance(value[0], str):
        return _text_in(value) or written_in(value[0])
    return _text_in(value)


def _text_in(value: object) -> str | None:
    """Return a text, or that of a message; None for anything else, such as a generator's name."""
    try:
        text = text_from(value, "")
    except InputError:
        return None
    return None if not text or REPR.fullmatch(text) else text


def documents_in(output: object) -> list[Any] | None:
    """Return the documents that a retriever's output holds; None where it shows none of them."""
    value = parsed(output)
    listed = items_in(value.get("documents")) if isinstance(value, Mapping) else items_in(value)
    if listed is None or any(isinstance(item, str) and REPR.fullmatch(item) for item in listed):
        return None
    return listed
