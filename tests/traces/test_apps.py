"""Apps of both frameworks, traced by real instrumentors and captured at once: the calls are equal."""

from __future__ import annotations

from typing import Any

import pytest
from span_apps import traced_apps

from rag_eval_integrations.traces import read_traces

APPS = [
    ("langchain", "openinference"), ("llama_index", "openinference"), ("langchain", "langsmith"),
    *(pytest.param(framework, tracer, marks=pytest.mark.slow) for framework, tracer in [
        ("langchain", "mlflow"), ("llama_index", "mlflow"), ("langchain", "langfuse"),
        ("llama_index", "langfuse"),
    ]),
]  # fmt: skip


def substance(call: Any) -> dict[str, Any]:
    """What the judge is shown of a call, with the ids of its documents."""
    documents = [(each["text"], each["id"], each["header"]) for each in call["documents"]]
    return {
        "question": call["question"],
        "answer": call["response"],
        "documents": documents,
        "left out": [each["text"] for each in call["capture"]["not_in_prompt"]],
        "history": call["history"],
        "from": call["capture"]["documents_from"],
    }


@pytest.mark.parametrize(("framework", "tracer"), APPS)
def test_traced_calls_are_the_captured_ones(framework: str, tracer: str) -> None:
    """Streamed, async, with a reranker, a history, an agent and its memory: one call per question."""
    for name, app in traced_apps(framework, tracer).items():
        told: list[str] = []
        calls = [
            call.model_dump(mode="json") for call in read_traces(app["rows"], tell=told.append)
        ]
        assert [*map(substance, calls)] == [*map(substance, app["calls"])], (name, told)
        for call, captured in zip(calls, app["calls"], strict=True):
            for source, ids in captured["capture"]["traces"].items():
                # MLflow never ends the root span of a stream of LlamaIndex.
                if source in call["capture"]["traces"] and source != "mlflow":
                    assert call["capture"]["traces"][source] == ids, name
