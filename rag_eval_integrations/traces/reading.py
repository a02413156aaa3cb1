"""Group the rows of a tool by trace, and make a call of each trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_eval_integrations._visible import counted, logger_of
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.traces import _langfuse, _langsmith, _mlflow, _openinference
from rag_eval_integrations.traces._calls import call_of
from rag_eval_integrations.traces._rows import frame_rows, row_of
from rag_eval_integrations.traces._span import Reader, Span

logger = logger_of(__name__)

READERS: dict[str, Reader] = {
    "phoenix": _openinference,
    "mlflow": _mlflow,
    "langfuse": _langfuse,
    "langsmith": _langsmith,
}
_MOST_HELD = 2**26
"""Characters of spans that wait for others of their traces."""


def reader_of(row: object, tool: str | None = None) -> Reader | None:
    """Return the reader of a tool, or else of the one that a row is recognised as; None for none.

    Raises:
        ConfigurationError: no such tool is known.
        InputError: the row is of a tool whose traces are not read.
    """
    if tool is not None:
        if tool not in READERS:
            raise ConfigurationError("tool", tool, f"use one of {', '.join(READERS)}")
        return READERS[tool]
    if not isinstance(row, Mapping):
        return None
    if "record_attributes" in row:
        why = "is an event of TruLens, which is not read; write question, documents and response"
        raise InputError(f"{why} of each record into a row")
    return next((reader for reader in READERS.values() if reader.recognises(row)), None)


def read_traces(
    rows: Iterable[Any], *, tool: str | None = None, tell: Callable[[str], object] | None = None
) -> list[RagCall]:
    """Read calls from what a tool traced: one call per trace.

    `docs/traces.md` says which exports are read, and by which rules.

    Args:
        rows: spans, traces or runs of one tool: a data frame, or an iterable of dicts or of the
            objects of the tool's client.
        tool: `phoenix`, `mlflow`, `langfuse` or `langsmith`; by default recognised by the columns.
        tell: called with the numbers of spans, traces and calls, and with what is left out, by
            reason; by default they are logged.

    Returns:
        The calls, in the order in which their traces begin. A trace without question or documents
        has none.

    Raises:
        ConfigurationError: the tool is not known or not recognised.
        InputError: a row of the tool holds no span; says which export does.
    """
    framed = frame_rows(rows)
    numbered = enumerate(map(row_of, rows if framed is None else framed), 1)
    first = next(numbered, None)
    if first is None:
        return []
    reader = reader_of(first[1], tool)
    if reader is None:
        why = "is not a span of a tool that is known; name the tool with `tool`"
        raise ConfigurationError("rows", type(first[1]).__name__, why)

    def every() -> Iterator[tuple[int, Any]]:
        yield first
        yield from numbered

    calls = []
    for _, call in calls_in(every(), reader, tell or logger.warning):
        if isinstance(call, InputError):
            raise call
        calls.append(call)
    return calls


def calls_in(
    rows: Iterable[tuple[int, Any]], reader: Reader, tell: Callable[[str], object]
) -> Iterator[tuple[int, RagCall | InputError]]:
    """Make a call of each trace of numbered rows.

    A trace ends with the rows, or where 64 million characters of spans wait for others: then those
    that had no span for the longest time end. A later span of such a trace is an error.

    Args:
        rows: number of each row, and the row or its error.
        reader: reads the rows.
        tell: called once with the numbers, when the last row has been read.

    Yields:
        The number of a trace's first row and its call; or the number of a row and its error.
    """
    traces = Traces(reader)
    for number, row in rows:
        if (error := traces.add(number, row)) is not None:
            yield number, error
        while traces.characters > _MOST_HELD and len(traces.waiting) > 1:
            yield from traces.end(next(iter(traces.waiting)))
    by_row = sorted(traces.waiting, key=lambda trace: traces.waiting[trace].number)
    rest = [numbered for trace in by_row for numbered in traces.end(trace)]
    tell(traces.summary())
    yield from rest


@dataclass
class _Trace:
    """The spans of a trace that have been read so far."""

    number: int
    """That of its first row."""
    spans: list[Span] = field(default_factory=list)
    size: int = 0


class Traces:
    """The traces of one source.

    Args:
        reader: reads the rows.
    """

    def __init__(self, reader: Reader) -> None:
        self.waiting: dict[str, _Trace] = {}
        """Traces that may have more spans, the one with the newest at the end."""
        self.characters = 0
        """Characters of their spans, about."""
        self._reader = reader
        self._ended: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._spans = self._calls = 0

    def add(self, number: int, row: Any) -> InputError | None:
        """Add the spans of a row to their traces; return why it has none."""
        if isinstance(row, InputError):
            return row
        try:
            sized = [(span, _size_of(span)) for span in self._reader.spans_of(row)]
        except InputError as error:
            return error
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            return InputError(f"is not a span of {self._reader.NAME}: {error!s:.80}")
        for span, size in sized:
            if span.trace in self._ended:
                why = f"belongs to the trace {span.trace:.40}, which ended above"
                return InputError(f"{why}; sort the rows by the id of the trace")
            trace = self.waiting.pop(span.trace, None) or _Trace(number)
            self.waiting[span.trace] = trace
            if span.kind == "model":  # whose messages and text are read
                span = replace(span, input=None, output=None)
            if span.parent:  # the root's metadata are the call's
                span = replace(span, metadata={})
            trace.spans.append(span)
            trace.size += size
            self.characters += size
        self._spans += len(sized)
        return None

    def end(self, label: str) -> Iterator[tuple[int, RagCall]]:
        """Make the call of a trace, unless it has none."""
        trace = self.waiting.pop(label)
        self.characters -= trace.size
        self._ended.add(label)
        try:
            call = call_of(trace.spans)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            call = f"that cannot be read ({error!s:.80})"
        if isinstance(call, str):
            self._left_out[call] += 1
        else:
            self._calls += 1
            yield trace.number, call

    def summary(self) -> str:
        """Say how many spans, traces and calls there were, and what is left out, by reason."""
        counts = (self._spans, "span"), (len(self._ended), "trace"), (self._calls, "call")
        numbers = ", ".join(counted(count, word) for count, word in counts)
        reasons = [f"{counted(some, 'trace')} {why}" for why, some in self._left_out.most_common()]
        more = f"; left out: {', '.join(reasons)}" if reasons else ""
        if self._spans and not self._calls and self._spans == len(self._ended):
            more += "; each trace is a single span: export the spans below the roots, too"
        return f"read as spans of {self._reader.NAME}: {numbers}{more}"


def _size_of(span: Span) -> int:
    """Return about how many characters of a span are kept."""
    said = [turn.content for turn in span.messages]
    values = () if span.kind == "model" else (span.input, span.output)
    metadata = {} if span.parent else span.metadata
    return _size((*values, span.documents, span.text, said, metadata, span.tags))


def _size(value: Any) -> int:
    """Return about how many characters a value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values())) + 64 * len(value)
    if isinstance(value, list | tuple):
        return sum(map(_size, value)) + 8 * len(value)
    return 8
