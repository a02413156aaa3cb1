"""Runs of LangSmith: flat or with their child runs, as objects, JSON, CSV or Parquet."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rag_eval_integrations.errors import InputError
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

NAME = "LangSmith"
_KINDS: dict[object, SpanKind] = {
    "retriever": "retriever",
    "llm": "model",
    "embedding": "embedding",
    "tool": "tool",
}


def recognises(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a run that knows its place in a trace."""
    places = ("trace_id", "parent_run_id", "dotted_order", "child_runs")
    return "run_type" in row and any(place in row for place in places)


def spans_of(row: Mapping[str, Any], parent: str | None = None, trace: str = "") -> Iterator[Span]:
    """Read a run and its child runs.

    Args:
        row: the run.
        parent: id of the run around it, where that is known.
        trace: id of the trace, where the run does not say it.

    Raises:
        InputError: the run has no id.
    """
    waiting = [(row, parent, trace)]
    while waiting:
        run, above, whole = waiting.pop()
        label = str(run.get("id") or run.get("run_id") or "")
        if not label:
            raise InputError("is a run of LangSmith without an id; export runs with their ids")
        whole = str(run.get("trace_id") or whole or label)
        yield _span(run, label, str(run.get("parent_run_id") or above or "") or None, whole)
        children = [fields_of(each) or {} for each in items_in(run.get("child_runs")) or ()]
        waiting += [(child, label, whole) for child in reversed(children)]


def _span(run: Mapping[str, Any], label: str, parent: str | None, trace: str) -> Span:
    """Make a span of a run."""
    kind = _KINDS.get(run.get("run_type"), "other")
    is_read = kind != "embedding"
    given, output = (run.get("inputs"), run.get("outputs")) if is_read else (None, None)
    metadata = object_in(object_in(run.get("extra")).get("metadata"))
    return Span(
        source="langsmith",
        trace=trace,
        id=label,
        parent=parent,
        kind=kind,
        name=str(run.get("name") or ""),
        start=seconds(run.get("start_time")),
        end=seconds(run.get("end_time")),
        input=given,
        output=output,
        documents=documents_in(output) if kind == "retriever" else None,
        messages=turns_in(given) if kind == "model" else (),
        text=written_in(output) if kind == "model" else None,
        error=str(run["error"]) if run.get("error") else None,
        metadata=metadata,
        tags=items_in(run.get("tags")) or (),
    )


# --- LangSmith's client


def listed(client: Any, search: Search) -> Iterator[Listed]:
    """List the root runs of a project."""
    wanted = {
        "project_name": search.project or os.environ.get("LANGSMITH_PROJECT", "default"),
        "is_root": True,
        "start_time": search.start,
        "filter": search.query,
        "select": ["id", "trace_id", "start_time", "end_time"],
    }
    for run in search.ask(partial(_runs, client, wanted)):
        yield Listed(str(run.trace_id), seconds(run.end_time or run.start_time))


def rows_of(client: Any, search: Search, traces: Sequence[str]) -> Sequence[Any]:
    """Return the runs of some traces."""
    rows: list[Any] = []
    for trace in traces:
        rows += map(row_of, search.ask(partial(_runs, client, {"trace_id": trace})))
    return rows


def _runs(client: Any, wanted: Mapping[str, Any]) -> list[Any]:
    """Return the runs that are asked for, of all pages."""
    with warnings.catch_warnings():  # its successor is for servers from 0.16 on alone
        warnings.filterwarnings("ignore", r"list_runs\(\) is deprecated")
        return list(client.list_runs(**wanted))
