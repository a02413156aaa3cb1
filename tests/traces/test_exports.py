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

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.traces import read_traces

QUESTION, ANSWER = "When does the ferry leave?", "It leaves at nine."
TEXTS = ["The ferry leaves at nine o'clock.", "It carries forty passengers."]
PROMPT = "Use:\n" + "\n".join(TEXTS)
PAGES = [
    {"page_content": text, "metadata": {"page": n}, "id": f"p{n}"} for n, text in enumerate(TEXTS)
]
AT = ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:06+00:00", "2026-01-02T03:04:07+00:00"]


# --- Phoenix


def attributes() -> list[dict[str, Any]]:
    """The attributes of the root, the retriever and the model, as OpenInference has them."""
    return [
        {"input.value": QUESTION, "output.value": ANSWER, "session.id": "s1"},
        {
            "input.value": QUESTION,
            "retrieval.documents": [
                {
                    "document.content": page["page_content"], "document.id": page["id"],
                    "document.metadata": page["metadata"], "document.score": 0.5,
                }
                for page in PAGES
            ],
        },
        {
            "llm.input_messages": [
                {"message.role": "system", "message.content": PROMPT},
                {"message.role": "user", "message.content": QUESTION},
            ],
            "llm.output_messages": [{"message.role": "assistant", "message.content": ANSWER}],
        },
    ]  # fmt: skip


def flat(values: dict[str, Any], begin: str = "") -> dict[str, Any]:
    """Attributes as REST and the SDK write them: lists by number, objects as dotted names."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list):
            for number, item in enumerate(value):
                flattened |= flat(item, f"{begin}{name}.{number}.")
        elif isinstance(value, dict):
            flattened |= flat(value, f"{begin}{name}.")
        else:
            flattened[begin + name] = value
    return flattened


KINDS = ("CHAIN", "RETRIEVER", "LLM")


def phoenix() -> list[dict[str, Any]]:
    """The rows of `get_spans_dataframe()`."""
    return [
        {
            "name": kind.lower(), "span_kind": kind, "parent_id": None if n == 0 else "a0",
            "start_time": AT[n], "end_time": AT[2], "status_code": "OK",
            "context.span_id": f"a{n}", "context.trace_id": "t1",
            **{f"attributes.{name}": value for name, value in attributes()[n].items()},
        }
        for n, kind in enumerate(KINDS)
    ]  # fmt: skip


def rest(prefix: str = "") -> list[dict[str, Any]]:
    """The rows of the API, or those of the SDK's exporter where ids have a prefix."""
    return [
        {
            "name": kind, "context": {"trace_id": f"{prefix}t1", "span_id": f"{prefix}a{n}"},
            "parent_id": None if n == 0 else f"{prefix}a0", "start_time": AT[n], "end_time": AT[2],
            "status": {"status_code": "OK"},
            "attributes": {"openinference.span.kind": kind, **flat(attributes()[n])},
        }
        for n, kind in enumerate(KINDS)
    ]  # fmt: skip


def collector() -> dict[str, Any]:
    """An envelope of OTLP, as a collector writes it."""
    spans = []
    for n, kind in enumerate(KINDS):
        pairs = {"openinference.span.kind": kind, **flat(attributes()[n])}
        spans.append({
            "traceId": "t1", "spanId": f"a{n}", "parentSpanId": "a0" if n else "", "name": kind,
            "startTimeUnixNano": str(1_767_323_045_000_000_000 + n), "status": {},
            "attributes": [
                {"key": key, "value": {"doubleValue" if type(value) is float else "stringValue": value}}
                for key, value in pairs.items()
            ],
        })  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


# --- MLflow


def mlflow_trace() -> dict[str, Any]:
    """`Trace.to_json()`, with ids in base64 and attributes as JSON."""
    said = {
        "messages": [
            {"role": "system", "content": PROMPT}, {"role": "user", "content": QUESTION},
        ]
    }  # fmt: skip
    parts: list[tuple[str, Any, Any]] = [
        ("CHAIN", {"message": QUESTION}, {"response": ANSWER, "source_nodes": []}),
        ("RETRIEVER", QUESTION, PAGES),
        ("CHAT_MODEL", said, {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}),
    ]
    spans = [
        {
            "span_id": f"AAAAAAAA{'ABC'[n]}AA=", "parent_span_id": "AAAAAAAAAAA=" if n else None, "name": kind,
            "start_time_unix_nano": 1_767_323_045_000_000_000 + n,
            "attributes": {
                "mlflow.spanType": json.dumps(kind), "mlflow.spanInputs": json.dumps(given),
                "mlflow.spanOutputs": json.dumps(output),
            },
        }
        for n, (kind, given, output) in enumerate(parts)
    ]  # fmt: skip
    info = {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "s1"}}
    return {"info": info, "data": {"spans": spans}}


def mlflow_row() -> dict[str, Any]:
    """A row of the frame of `search_traces()`."""
    trace = mlflow_trace()
    return {
        "trace_id": "tr-1", "trace": json.dumps(trace), "request": {"message": QUESTION},
        "response": {"response": ANSWER}, "spans": trace["data"]["spans"],
        "trace_metadata": trace["info"]["trace_metadata"], "tags": {}, "state": "OK",
    }  # fmt: skip


# --- LangSmith


def runs() -> list[dict[str, Any]]:
    """The rows of `list_runs`, flat."""
    ids = [str(UUID(int=n + 1)) for n in range(3)]
    message = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages"]}
    parts: list[tuple[str, Any, Any]] = [
        ("chain", {"input": QUESTION}, {"output": ANSWER}),
        ("retriever", {"query": QUESTION}, {"documents": PAGES}),
        (
            "llm",
            {
                "messages": [[
                    {**message, "kwargs": {"type": "system", "content": PROMPT}},
                    {**message, "kwargs": {"type": "human", "content": QUESTION}},
                ]]
            },
            {"generations": [[{"text": ANSWER}]]},
        ),
    ]  # fmt: skip
    return [
        {
            "id": ids[n], "trace_id": ids[0], "parent_run_id": ids[0] if n else None,
            "run_type": kind, "name": kind, "start_time": AT[n], "end_time": AT[2],
            "inputs": given, "outputs": output, "child_runs": None,
            "extra": {"metadata": {"thread_id": "s1"}},
        }
        for n, (kind, given, output) in enumerate(parts)
    ]  # fmt: skip


def nested() -> dict[str, Any]:
    """The root with its child runs."""
    root, *children = runs()
    return {**root, "child_runs": children}


def without_children(artifact: bool) -> dict[str, Any]:
    """A run of an agent whose messages alone hold what its tool returned."""
    tool: dict[str, Any] = {"type": "tool", "content": "\n".join(TEXTS), "tool_call_id": "c"}
    if artifact:
        tool["artifact"] = PAGES
    messages = [
        {"type": "human", "content": QUESTION}, {"type": "ai", "content": "", "tool_calls": []},
        tool, {"type": "ai", "content": ANSWER},
    ]  # fmt: skip
    root = {**runs()[0], "inputs": {"messages": messages[:1]}, "outputs": {"messages": messages}}
    return root


# --- Langfuse

CAMEL = ("traceId", "parentObservationId", "startTime", "endTime", "sessionId")
SNAKE = ("trace_id", "parent_observation_id", "start_time", "end_time", "session_id")


def observations(names: tuple[str, ...] = CAMEL, text: bool = False) -> list[dict[str, Any]]:
    """Observations of the API, or those of blob storage, which has snake case."""
    trace, parent, start, end, session = names
    said = [{"role": "system", "content": PROMPT}, {"role": "user", "content": QUESTION}]
    parts: list[tuple[str, Any, Any]] = [
        ("SPAN", {"query": QUESTION}, {"answer": ANSWER}),
        ("RETRIEVER", QUESTION, PAGES),
        ("GENERATION", said, {"role": "assistant", "content": ANSWER}),
    ]
    return [
        {
            "id": f"o{n}", trace: "t1", parent: "o0" if n else None, "type": kind, "name": kind,
            start: AT[n], end: AT[2], session: "s1", "level": "DEFAULT",
            "input": json.dumps(given) if text else given,
            "output": json.dumps(output) if text else output,
        }
        for n, (kind, given, output) in enumerate(parts)
    ]  # fmt: skip


def download(io_of_trace: bool = False) -> dict[str, Any]:
    """The download of a trace's page; with its input and output on the trace alone."""
    rows = observations()
    trace: dict[str, Any] = {"id": "t1", "name": "app", "input": None, "output": None}
    if io_of_trace:
        trace |= {"input": rows[0]["input"], "output": rows[0]["output"]}
        rows[0] |= {"input": None, "output": None}
    return {"trace": trace, "observations": rows, "scores": []}


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


def test_the_tool_can_be_named() -> None:
    """A name that is not known is refused; rows of nobody need one."""
    assert_read(read_traces(runs(), tool="langsmith"))
    with pytest.raises(ConfigurationError, match="use one of phoenix"):
        read_traces(runs(), tool="wandb")
    with pytest.raises(ConfigurationError, match="name the tool"):
        read_traces([{"a": 1}])
    assert read_traces([]) == []
