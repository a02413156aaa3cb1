"""Observations of Langfuse: of a trace's download, the API, tables and blob storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.traces._openinference import Attributes
from rag_eval_integrations.traces._rows import row_of
from rag_eval_integrations.traces._span import (
    Listed,
    Search,
    Span,
    SpanKind,
    documents_in,
    seconds,
    turns_in,
    written_in,
)
from rag_eval_integrations.traces._values import fields_of, items_in, object_in

NAME = "Langfuse"
_KINDS: dict[str, SpanKind] = {
    "RETRIEVER": "retriever",
    "GENERATION": "model",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
}
_TYPES = (*_KINDS, "SPAN", "EVENT", "AGENT", "CHAIN", "EVALUATOR", "GUARDRAIL")


def recognises(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is an observation, or a trace with its observations.

    Raises:
        InputError: it is a trace without its observations.
    """
    observations = items_in(row.get("observations")) or []
    is_list = bool(observations) and all(isinstance(item, str) for item in observations)
    is_bare = {"bookmarked", "input"} <= row.keys() and "observations" not in row
    if is_bare or is_list:
        why = "a trace of Langfuse without its observations has no documents; export observations"
        raise InputError(why)
    has_trace = "traceId" in row or "trace_id" in row
    return (has_trace and str(row.get("type")).upper() in _TYPES) or _is_trace(row)


def _is_trace(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a trace with its observations."""
    return "observations" in row and ("trace" in row or "id" in row)


def spans_of(row: Mapping[str, Any]) -> Iterator[Span]:
    """Read an observation, or those of a trace.

    Raises:
        InputError: a row has no ids.
    """
    if not _is_trace(row):
        yield _span(row, {})
        return
    trace = object_in(row.get("trace")) or row
    listed = items_in(row.get("observations")) or []
    for item in listed:
        span = _span(object_in(item) or fields_of(item) or {}, trace)
        if span.parent is None and span.input is None and span.output is None:
            span = replace(span, input=trace.get("input"), output=trace.get("output"))
        yield span


def _span(row: Mapping[str, Any], trace: Mapping[str, Any]) -> Span:
    """Make a span of an observation, whose names are written in one of two ways."""

    def value(name: str, other: str) -> Any:
        return row.get(name, row.get(other)) or None

    label, whole = row.get("id"), value("traceId", "trace_id") or trace.get("id")
    if not isinstance(label, str) or not isinstance(whole, str):
        raise InputError("is an observation of Langfuse without `id` and `traceId`; export both")
    kind = _KINDS.get(str(row.get("type")).upper(), "other")
    is_read = kind != "embedding"
    given, output = (row.get("input"), row.get("output")) if is_read else (None, None)
    metadata = object_in(row.get("metadata"))
    # A trace by OpenTelemetry keeps OpenInference's attributes there.
    attributes = Attributes(metadata)
    documents = documents_in(output) if kind == "retriever" else None
    if kind == "retriever" and documents is None:
        documents = attributes.documents("retrieval.documents")
    session = value("sessionId", "session_id") or trace.get("sessionId")
    return Span(
        source="langfuse",
        trace=whole,
        id=label,
        parent=value("parentObservationId", "parent_observation_id"),
        kind=kind,
        name=str(row.get("name") or ""),
        start=seconds(value("startTime", "start_time")),
        end=seconds(value("endTime", "end_time")),
        input=given,
        output=output,
        documents=documents,
        messages=attributes.messages() or turns_in(given) if kind == "model" else (),
        text=written_in(output) if kind == "model" else None,
        error=str(value("statusMessage", "status_message") or "failed")
        if row.get("level") == "ERROR"
        else None,
        session=session if isinstance(session, str) else None,
        metadata={name: value for name, value in metadata.items() if name != "attributes"},
        tags=items_in(trace.get("tags")) or (),
    )


# --- Langfuse's client


def listed(client: Any, search: Search) -> Iterator[Listed]:
    """List the traces of the keys' project by their root observations.

    Raises:
        ConfigurationError: a project is named.
    """
    if search.project is not None:
        why = "leave it out: the keys of Langfuse belong to one project"
        raise ConfigurationError("--project", search.project, why)
    roots = _observations(
        client,
        search,
        {
            "is_root_observation": True,
            "from_start_time": search.start,
            "filter": search.query,
        },
    )
    ends: set[str] = set()
    for span in map(partial(_span, trace={}), roots):
        if span.trace not in ends:
            ends.add(span.trace)
            yield Listed(span.trace, span.end or span.start)


def rows_of(client: Any, search: Search, traces: Sequence[str]) -> Sequence[Any]:
    """Return the observations of some traces."""
    rows: list[Any] = []
    for trace in traces:
        rows += _observations(client, search, {"trace_id": trace})
    return rows


def _observations(client: Any, search: Search, wanted: Mapping[str, Any]) -> Iterator[Any]:
    """Return observations, page by page."""
    cursor: str | None = None
    while True:
        more = {"cursor": cursor, "fields": "core,basic,io,metadata", "limit": 100}
        page = search.ask(partial(client.api.observations.get_many, **wanted, **more))
        yield from map(row_of, page.data)
        cursor = getattr(page.meta, "cursor", None)
        if not cursor:
            return
