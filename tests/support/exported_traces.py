"""One trace of each tool, as its exports have it: three spans of the same question and answer."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

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
    spans: list[dict[str, Any]] = []
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
