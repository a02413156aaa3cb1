"""A span of any tool, as its reader makes it of a row: what `_calls` makes a call of.

A reader is a module of a tool: `openinference`, `mlflow`, `langfuse`, `langsmith`. It has

    NAME           the tool's name, as people write it, for messages
    recognises     whether a row, by its columns, is one of the tool's
    spans_of       the spans of a row: one, or all spans of a trace

and raises `InputError` for a row of the tool that holds no span, saying which export does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.records import Document, TraceSource, Turn

SpanKind = Literal["retriever", "reranker", "model", "embedding", "tool", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace.

    Spans of the kind `embedding` are made without their input and output, which are not parsed.
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
    """The input as the tool has it, with texts that hold JSON parsed."""
    output: object = None
    documents: tuple[Document, ...] | None = None
    """What a retriever or a reranker returned, in its order; None where this is not recorded."""
    messages: tuple[Turn, ...] = ()
    """What a model was shown; tools' texts are turns of the role `tool`."""
    text: str | None = None
    """What a model wrote; None without a text, as where it called a tool."""
    error: str | None = None
    session: str | None = None
    """The tool's id of the conversation."""
