"""Spans of OpenInference: of Phoenix' data frames and REST, and of the OpenTelemetry SDK's JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Turn
from rag_eval_integrations.traces._rows import frame_rows, row_of
from rag_eval_integrations.traces._span import (
    Listed,
    Search,
    Span,
    SpanKind,
    seconds,
    turns_in,
    written_in,
)
from rag_eval_integrations.traces._values import items_in, object_in

NAME = "Phoenix"
_KINDS: dict[str, SpanKind] = {
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "LLM": "model",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
}
_DOCUMENTS = {"retriever": "retrieval.documents", "reranker": "reranker.output_documents"}


def recognises(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a span with its context, or an OTLP envelope of such spans.

    Raises:
        InputError: it is a row of `get_retrieved_documents`.
    """
    if "resourceSpans" in row or "resource_spans" in row:
        return True
    if {"context.trace_id", "document", "document_score"} <= row.keys():
        why = "single documents of Phoenix have no answer; export get_spans_dataframe() instead"
        raise InputError(why)
    has_call = {"input", "output", "context"} <= row.keys()  # of `get_input_output_context`
    context = object_in(row.get("context"))
    return ("context.span_id" in row or "span_id" in context) and not has_call


def spans_of(row: Mapping[str, Any]) -> Iterator[Span]:
    """Read the span of a row, or those of an OTLP envelope.

    Raises:
        InputError: the row has no ids.
    """
    if "resourceSpans" in row or "resource_spans" in row:
        yield from _of_collector(row)
        return
    context = object_in(row.get("context"))
    attributes = Attributes(row)
    trace = row.get("context.trace_id", context.get("trace_id"))
    span = row.get("context.span_id", context.get("span_id"))
    if not isinstance(trace, str) or not isinstance(span, str):
        raise InputError("is not a span: it has no text as `context.trace_id` and `span_id`")
    parent = row.get("parent_id") or None
    name, times = str(row.get("name") or ""), (row.get("start_time"), row.get("end_time"))
    status = object_in(row.get("status")).get("status_code") or row.get("status_code")
    yield _span(
        trace,
        span,
        parent if isinstance(parent, str) else None,
        name,
        times,
        str(row.get("span_kind") or ""),
        attributes,
        status == "ERROR",
    )


def _of_collector(row: Mapping[str, Any]) -> Iterator[Span]:
    """Read the spans of an OTLP envelope, whose attributes are pairs of a key and a typed value."""
    for resource in items_in(row.get("resourceSpans", row.get("resource_spans"))) or ():
        scopes = resource.get("scopeSpans", resource.get("scope_spans"))
        for scope in items_in(scopes) or ():
            for span in items_in(scope.get("spans")) or ():
                yield _of_otlp(span)


def _of_otlp(span: Mapping[str, Any]) -> Span:
    """Read a span of an OTLP envelope."""
    pairs = {
        pair["key"]: next(iter(pair["value"].values()), None) for pair in span.get("attributes", ())
    }
    return _span(
        span.get("traceId", ""),
        span.get("spanId", ""),
        span.get("parentSpanId") or None,
        span.get("name", ""),
        (span.get("startTimeUnixNano"), span.get("endTimeUnixNano")),
        "",
        Attributes({"attributes": pairs}),
        object_in(span.get("status")).get("code") in (2, "STATUS_CODE_ERROR"),
    )


def _span(
    trace: str,
    span: str,
    parent: str | None,
    name: str,
    times: tuple[Any, Any],
    kind: str,
    attributes: Attributes,
    failed: bool,
) -> Span:
    """Make a span of its parts."""
    known = kind if kind in _KINDS else str(attributes.get("openinference.span.kind"))
    of = _KINDS.get(known, "other")
    is_read = of != "embedding"
    return Span(
        source="openinference",
        trace=trace.removeprefix("0x"),  # as the SDK's own JSON writes ids
        id=span.removeprefix("0x"),
        parent=parent and parent.removeprefix("0x"),
        kind=of,
        name=name,
        start=seconds(times[0]),
        end=seconds(times[1]),
        input=attributes.get("input.value") if is_read else None,
        output=attributes.get("output.value") if is_read else None,
        documents=attributes.documents(_DOCUMENTS[of]) if of in _DOCUMENTS else None,
        messages=attributes.messages() if of == "model" else (),
        text=attributes.text() if of == "model" else None,
        error="failed" if failed else None,
        session=attributes.get("session.id") if is_read else None,
        metadata=attributes.metadata(),
        tags=items_in(attributes.get("tag.tags")) or (),
    )


class Attributes:
    """The attributes of a span, under dotted names, in nested objects, or both.

    Args:
        row: the row; a column `attributes.a.b`, or `b` inside of `attributes.a`, is `a.b`.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        inside = object_in(row.get("attributes"))
        columns = {
            name.removeprefix("attributes."): value
            for name, value in row.items()
            if name.startswith("attributes.")
        }
        self._values = {**inside, **columns}

    def get(self, name: str) -> Any:
        """Return an attribute; None where there is none."""
        if name in self._values:
            return self._values[name]
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            value = self._values.get(".".join(parts[:cut]))
            if value is not None:
                for part in parts[cut:]:
                    value = object_in(value).get(part)
                return value
        return None

    def metadata(self) -> Mapping[str, Any]:
        """Return the metadata of the span."""
        return _object(self._values, "metadata")

    def items(self, name: str) -> list[dict[str, Any]] | None:
        """Return the objects of a list, whose fields may be attributes by number; None for none."""
        listed = items_in(self.get(name))
        if listed is not None:
            return [_flat(item) for item in listed]
        begin = f"{name}."
        numbered: dict[int, dict[str, Any]] = {}
        for key, value in self._values.items():
            number, dot, field = key.removeprefix(begin).partition(".")
            if key.startswith(begin) and dot and number.isdecimal():
                numbered.setdefault(int(number), {})[field] = value
        return [numbered[number] for number in sorted(numbered)] or None

    def documents(self, name: str) -> list[dict[str, Any]] | None:
        """Read documents; LangChain's have their ids in the output alone."""
        items = self.items(name)
        if items is None:
            return None
        output = items_in(object_in(self.get("output.value")).get("documents")) or []
        ids = [object_in(each).get("id") for each in output] if len(output) == len(items) else []
        documents = []
        for number, item in enumerate(items):
            document = {
                "text": item.get("document.content"),
                "id": item.get("document.id") or (ids[number] if ids else None),
                "metadata": _object(item, "document.metadata"),
                "score": item.get("document.score"),
            }
            if isinstance(document["text"], str):
                documents.append({k: v for k, v in document.items() if v is not None})
        return documents

    def messages(self) -> tuple[Turn, ...]:
        """Read what a model was shown: messages, or a prompt as one."""
        turns = []
        for item in self.items("llm.input_messages") or ():
            content = _content(item)
            role = item.get("message.role")
            if content and role in ("system", "user", "assistant", "tool"):
                turns.append(Turn(role=role, content=content))
        for prompt in items_in(self.get("llm.prompts")) or () if not turns else ():
            turns += turns_in(
                prompt if isinstance(prompt, str) else _flat(prompt).get("prompt.text")
            )
        return tuple(turns)

    def text(self) -> str | None:
        """Return what a model wrote."""
        outputs = [_content(item) for item in self.items("llm.output_messages") or ()]
        if outputs:
            return "".join(outputs) or None
        return written_in(self.get("output.value"))


def _object(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object, whose fields may be values with dotted names."""
    begin = f"{name}."
    return object_in(values.get(name)) or {
        key.removeprefix(begin): value for key, value in values.items() if key.startswith(begin)
    }


def _flat(item: object, begin: str = "") -> dict[str, Any]:
    """Return an object with dotted names for the fields of objects inside of it."""
    flat: dict[str, Any] = {}
    for name, value in object_in(item).items():
        nested = isinstance(value, Mapping) and not name.endswith("metadata")
        flat |= _flat(value, f"{begin}{name}.") if nested else {f"{begin}{name}": value}
    return flat


def _content(item: Mapping[str, Any]) -> str:
    """Return the text of a message, also of its blocks."""
    content = item.get("message.content")
    if isinstance(content, str) and content:
        return content
    blocks = items_in(item.get("message.contents"))
    if blocks is not None:
        texts = [_flat(block).get("message_content.text") for block in blocks]
    else:
        texts = [text for name, text in sorted(item.items()) if name.endswith("content.text")]
    return "".join([text for text in texts if isinstance(text, str)])


# --- Phoenix' client

_MOST = 1_000_000
_SECONDS = 60


def listed(client: Any, search: Search) -> Iterator[Listed]:
    """List the traces by their roots; with a query, those that have a span which it selects."""
    project = search.project or os.environ.get("PHOENIX_PROJECT_NAME", "default")
    spans, limits = client.spans, {"limit": _MOST, "timeout": _SECONDS}
    if search.query is None:
        roots = search.ask(
            lambda: spans.get_spans(
                project_identifier=project, start_time=search.start, parent_id="null", **limits
            )
        )
    else:
        from phoenix.client.types.spans import SpanQuery  # noqa: PLC0415 -- for a query only

        query = SpanQuery().where(search.query)
        frame = search.ask(
            lambda: spans.get_spans_dataframe(
                query=query, start_time=search.start, project_identifier=project, **limits
            )
        )
        roots = [row_of(row) for row in frame_rows(frame) or ()]
    ends: dict[str, float | None] = {}
    for row in roots:
        for span in spans_of(row):
            ends.setdefault(span.trace, span.end or span.start)
    for trace, ended in ends.items():
        yield Listed(trace, ended)


def rows_of(client: Any, search: Search, traces: Sequence[str]) -> Sequence[Any]:
    """Return the spans of some traces."""
    project = search.project or os.environ.get("PHOENIX_PROJECT_NAME", "default")
    rows: Sequence[Any] = search.ask(
        lambda: client.spans.get_spans(
            project_identifier=project, trace_ids=list(traces), limit=_MOST, timeout=_SECONDS
        )
    )
    return rows
