"""Every export of the tools is read, or refused in one line that says which export has it."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from exported_traces import (
    ANSWER,
    QUESTION,
    SNAKE,
    TEXTS,
    collector,
    download,
    mlflow_row,
    mlflow_trace,
    nested,
    observations,
    phoenix,
    rest,
    runs,
    without_children,
)

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.traces import read_traces

# --- Files


def lines(rows: Any) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def table(rows: list[dict[str, Any]], doubled: str | None = None) -> bytes:
    """CSV with objects as JSON; with a column doubled in front, as pandas writes an index."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out)
    head = [doubled] if doubled else []
    writer.writerow([*head, *names])
    for row in rows:
        cells = [row.get(name) for name in [*head, *names]]
        writer.writerow([json.dumps(c) if isinstance(c, list | dict) else c for c in cells])
    return out.getvalue().encode()


def parquet(rows: list[dict[str, Any]], as_text: bool = False) -> bytes:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    if as_text:
        rows = [
            {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()}
            for row in rows
        ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{n: row.get(n) for n in names} for row in rows]), out)
    return out.getvalue()


def columns(rows: list[dict[str, Any]]) -> bytes:
    """A frame as `to_json()` writes it by default: columns of cells by the row's label."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = {n: {row["context.span_id"]: row.get(n) for row in rows} for n in names}
    return json.dumps(cells).encode()


EXPORTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "Phoenix' frame as JSON lines": ("p.jsonl", lambda: lines(phoenix())),
    "Phoenix' frame as JSON": ("p.json", lambda: json.dumps(phoenix()).encode()),
    "Phoenix' frame as JSON by columns": ("p.json", lambda: columns(phoenix())),
    "Phoenix' frame as CSV": ("p.csv", lambda: table(phoenix())),
    "Phoenix' frame as CSV with its index": ("p.csv", lambda: table(phoenix(), "context.span_id")),
    "Phoenix' frame as Parquet": ("p.parquet", lambda: parquet(phoenix())),
    "Phoenix by REST": ("p.json", lambda: json.dumps({"data": rest()}).encode()),
    "the SDK's exporter": ("p.jsonl", lambda: lines(rest("0x"))),
    "OTLP of a collector": ("p.json", lambda: json.dumps(collector()).encode()),
    "OTLP of a collector, a line each": ("p.jsonl", lambda: lines([collector()])),
    "MLflow's frame as JSON lines": ("m.jsonl", lambda: lines([mlflow_row()])),
    "MLflow's frame as CSV": ("m.csv", lambda: table([mlflow_row()])),
    "Trace.to_json()": ("m.jsonl", lambda: lines([mlflow_trace()])),
    "Trace.to_json(), one": ("m.json", lambda: json.dumps(mlflow_trace(), indent=1).encode()),
    "LangSmith's runs": ("l.jsonl", lambda: lines(runs())),
    "LangSmith's runs, gzipped": ("l.jsonl.gz", lambda: gzip.compress(lines(runs()))),
    "LangSmith's runs, nested": ("l.jsonl", lambda: lines([nested()])),
    "LangSmith's bulk export": ("l.parquet", lambda: parquet(runs(), as_text=True)),
    "LangSmith's table": ("l.csv", lambda: table(runs())),
    "Langfuse's download of a trace": ("f.json", lambda: json.dumps(download()).encode()),
    "a trace that has its input itself": ("f.json", lambda: json.dumps(download(True)).encode()),
    "Langfuse's table as CSV": ("f.csv", lambda: table(observations())),
    "Langfuse's table as JSON": ("f.json", lambda: json.dumps(observations(text=True)).encode()),
    "Langfuse's blob storage": ("f.jsonl", lambda: lines(observations(SNAKE, text=True))),
    "the same as CSV": ("f.csv", lambda: table(observations(SNAKE, text=True))),
    "the same as Parquet": ("f.parquet", lambda: parquet(observations(SNAKE), as_text=True)),
    "Langfuse's API": (
        "f.json", lambda: json.dumps({"data": observations(), "meta": {}}).encode(),
    ),
    "Langfuse's first API": (
        "f.json", lambda: json.dumps({"id": "t1", "observations": observations()}).encode(),
    ),
}  # fmt: skip


def assert_read(calls: list[RagCall]) -> None:
    """Question, answer, documents with their ids, the conversation, and where scores belong."""
    (call,) = calls
    assert (call.question, call.response) == (QUESTION, ANSWER)
    assert [(each.text, each.id) for each in call.documents] == [(TEXTS[0], "p0"), (TEXTS[1], "p1")]
    assert call.capture is not None
    assert call.capture.documents_from == "prompt"
    assert call.history == ()
    ((trace, span),) = call.capture.traces.values()
    assert (trace, span) in [
        ("t1", "a0"), ("t1", "o0"), ("tr-1", "0000000000000000"), (str(UUID(int=1)),) * 2,
    ]  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_one_call(name: str, tmp_path: Path) -> None:
    """And what it was read as is told, with the numbers."""
    file, content = EXPORTS[name]
    path = tmp_path / file
    path.write_bytes(content())
    told: list[str] = []
    rows = list(read_calls(path, tell=told.append))
    assert [row.error for row in rows] == [None]
    assert_read([row.value for row in rows if row.value is not None])
    assert "3 spans, 1 trace, 1 call" in told[-1]


@pytest.mark.parametrize("make", [phoenix, rest, runs, observations])
def test_rows_in_memory_are_calls(make: Callable[[], list[dict[str, Any]]]) -> None:
    """Dicts in any order, a data frame, and a tool named by the user."""
    assert_read(read_traces(make()[::-1]))
    assert_read(read_traces(iter(make())))
    pd = pytest.importorskip("pandas")
    assert_read(read_traces(pd.DataFrame(make())))


def test_objects_of_clients_are_calls() -> None:
    """LangSmith's runs and MLflow's traces, as their clients return them."""
    schemas = pytest.importorskip("langsmith.schemas")
    assert_read(read_traces([schemas.Run(**run) for run in runs()]))
    trace = mlflow_trace()
    one = SimpleNamespace(info=trace["info"], data=trace["data"], to_json=lambda: json.dumps(trace))
    assert_read(read_traces([one]))


@pytest.mark.parametrize("artifact", [True, False])
def test_a_run_without_child_runs_has_its_tools_messages(artifact: bool) -> None:
    """The documents of a tool's artifact, else its text."""
    (call,) = read_traces([without_children(artifact)])
    assert (call.question, call.response) == (QUESTION, ANSWER)
    expected = TEXTS if artifact else ["\n".join(TEXTS)]
    assert [document.text for document in call.documents] == expected


REFUSED: dict[str, tuple[Any, str]] = {
    "get_retrieved_documents": (
        {"context.trace_id": "t", "input": "q", "document": "d", "document_score": 1},
        "get_spans_dataframe",
    ),
    "Langfuse's traces": (
        {"id": "t", "input": "q", "output": "a", "bookmarked": False},
        "observations",
    ),
    "Langfuse's list of traces": (
        {"id": "t", "input": "q", "observations": ["o1"]},
        "observations",
    ),
    "TruLens' events": ({"record": {}, "record_attributes": {}}, "TruLens"),
    "a trace of MLflow without spans": ({"trace_id": "t", "trace_metadata": {}}, "to_json"),
    "a run without an id": ({"run_type": "chain", "trace_id": "t", "inputs": {}}, "ids"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_export_that_lacks_what_is_needed_is_refused(name: str) -> None:
    """In one line, which says what to export."""
    row, words = REFUSED[name]
    (line,) = read_calls([row])
    assert line.value is None
    assert words in str(line.error)


def test_one_text_for_all_documents_is_told() -> None:
    """Phoenix' own helper joins the documents of a trace."""
    row = {
        "context.trace_id": "t",
        "input": QUESTION,
        "output": ANSWER,
        "context": "\n\n".join(TEXTS),
    }
    told: list[str] = []
    (line,) = read_calls([row], tell=told.append)
    assert line.value is not None
    assert any("documents cannot be told apart" in words for words in told)


def test_a_folder_is_read_across_its_files(tmp_path: Path) -> None:
    """Of a trace, two files may hold spans; a folder of anything else is refused."""
    first, *others = runs()
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "part-2.jsonl").write_bytes(lines([first]))
    (tmp_path / "day=1" / "part-10.jsonl.gz").write_bytes(gzip.compress(lines(others)))
    assert_read([row.value for row in read_calls(tmp_path) if row.value])
    (tmp_path / "day=1" / "part-2.jsonl").write_bytes(lines([{"question": "q"}]))
    with pytest.raises(ConfigurationError, match="traces alone are read"):
        list(read_calls(tmp_path))


def test_calls_beside_a_trace_are_calls() -> None:
    """A table of the user's own may say in which trace a call is, and of which type."""
    row = {"trace_id": "t", "type": "faq", "question": "q", "documents": ["d"], "response": "r"}
    assert [line.value.question for line in read_calls([row]) if line.value] == ["q"]


def test_the_tool_can_be_named() -> None:
    """A name that is not known is refused; rows of nobody need one."""
    assert_read(read_traces(runs(), tool="langsmith"))
    with pytest.raises(ConfigurationError, match="use one of phoenix"):
        read_traces(runs(), tool="wandb")
    with pytest.raises(ConfigurationError, match="name the tool"):
        read_traces([{"a": 1}])
    assert read_traces([]) == []
