"""Traces of MLflow: `Trace.to_json()`, and the frame of `search_traces()` in any format."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.sinks._traced import client_library
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

NAME = "MLflow"
_KINDS: dict[object, SpanKind] = {
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "LLM": "model",
    "CHAT_MODEL": "model",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
}
_SESSION = "mlflow.trace.session"


def recognises(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a trace with its data, or one of the frame of `search_traces()`."""
    if "data" in row and object_in(row.get("info")).get("trace_id"):
        return True
    return "trace_metadata" in row and ("trace_id" in row or "request_id" in row)


def spans_of(row: Mapping[str, Any]) -> Iterator[Span]:
    """Read the spans of a trace.

    Raises:
        InputError: the row has no spans.
    """
    whole = row if "data" in row else object_in(row.get("trace"))
    info = object_in(whole.get("info"))
    metadata = object_in(info.get("trace_metadata") or row.get("trace_metadata"))
    trace = info.get("trace_id") or row.get("trace_id") or row.get("request_id")
    spans = items_in(object_in(whole.get("data")).get("spans") or row.get("spans"))
    if not isinstance(trace, str) or not spans:
        raise InputError("is a trace of MLflow without spans; export Trace.to_json() instead")
    for item in spans:
        yield _span(trace, object_in(item) or fields_of(item) or {}, metadata.get(_SESSION))


def _span(trace: str, span: Mapping[str, Any], session: object) -> Span:
    """Make a span; its attributes are JSON in texts."""
    attributes = object_in(span.get("attributes"))

    def value(name: str) -> Any:
        """Return an attribute, without the quotes of a text."""
        attribute = attributes.get(f"mlflow.{name}")
        quoted = isinstance(attribute, str) and attribute[:1] == attribute[-1:] == '"'
        return items_in(f"[{attribute}]")[0] if quoted else attribute  # type: ignore[index]  # a list

    kind = _KINDS.get(value("spanType"), "other")
    is_read = kind != "embedding"
    given, output = (value("spanInputs"), value("spanOutputs")) if is_read else (None, None)
    return Span(
        source="mlflow",
        trace=trace,
        id=_hex(span.get("span_id")) or "",
        parent=_hex(span.get("parent_span_id") or span.get("parent_id")),
        kind=kind,
        name=str(span.get("name") or ""),
        start=seconds(span.get("start_time_unix_nano") or span.get("start_time_ns")),
        end=seconds(span.get("end_time_unix_nano") or span.get("end_time_ns")),
        input=given,
        output=output,
        documents=documents_in(output) if kind in ("retriever", "reranker") else None,
        messages=turns_in(given) if kind == "model" else (),
        text=written_in(output) if kind == "model" else None,
        error="failed" if "ERROR" in str(span.get("status")) else None,
        session=session if isinstance(session, str) else None,
    )


def _hex(label: object) -> str | None:
    """Return a span's id in hex; MLflow writes it in base64."""
    if not isinstance(label, str) or not label:
        return None
    try:
        return base64.b64decode(label, validate=True).hex() if label.endswith("=") else label
    except binascii.Error:
        return label


# --- MLflow's client


def listed(client: Any, search: Search) -> Iterator[Listed]:
    """List the traces of an experiment, given by its id or name, with their spans.

    Raises:
        ConfigurationError: there is no such experiment.
    """
    traces: Any = _library("mlflow.tracing.client").TracingClient(client.get_tracking_uri())
    since = f"trace.timestamp_ms >= {search.since * 1e3:.0f}" if search.since else ""
    wanted = {
        "locations": [_experiment(client, search)],
        "filter_string": " AND ".join(filter(None, (since, search.query))) or None,
    }
    token: str | None = ""
    while token is not None:
        page = search.ask(partial(traces.search_traces, **wanted, page_token=token or None))
        for trace in page:
            took = (trace.info.execution_duration or 0) / 1e3
            ended = trace.info.request_time / 1e3 + took
            yield Listed(trace.info.trace_id, ended, [row_of(trace)])
        token = page.token or None


def _library(module: str) -> Any:
    """Import a part of the client."""
    return client_library(module, "mlflow-tracing", "mlflow")


def _experiment(client: Any, search: Search) -> str:
    """Return the id of the experiment; that of MLflow's default where none is named."""
    name = search.project or os.environ.get("MLFLOW_EXPERIMENT_NAME", "")
    if name.isdecimal() or not name:
        return name or os.environ.get("MLFLOW_EXPERIMENT_ID", "0")
    service = _library("mlflow.tracking._tracking_service.client")
    experiments: Any = service.TrackingServiceClient(client.get_tracking_uri())
    experiment = search.ask(partial(experiments.get_experiment_by_name, name))
    if experiment is None:
        raise ConfigurationError("--project", name, "is not an experiment of this server")
    return str(experiment.experiment_id)


def rows_of(client: Any, search: Search, traces: Sequence[str]) -> Sequence[Any]:
    """Return some traces."""
    return [row_of(search.ask(partial(client.get_trace, trace))) for trace in traces]
