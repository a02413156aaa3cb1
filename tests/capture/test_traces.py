"""The traces of other libraries in which a call is recorded."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from processes import python
from traced_apps import assert_traced, traced

from rag_eval_integrations import capture_call, record_call
from rag_eval_integrations.capture import capture_failures

from .conftest import Captured

ANSWERED: Any = {"question": "Question?", "documents": ["It is so."], "response": "Answer."}
TRACERS = {
    **{name: name for name in ("openinference", "langfuse", "mlflow", "langsmith")},
    "openllmetry": "opentelemetry.instrumentation",
}


@pytest.mark.slow
@pytest.mark.parametrize("tracer", TRACERS)
def test_a_call_of_langchain_knows_its_trace(tracer: str) -> None:
    """It has the ids of the tracer's root span; answer and call are as without a tracer."""
    if find_spec(TRACERS[tracer]) is None:
        pytest.skip(f"{tracer} is not installed")
    told = traced("langchain", tracer, "ours-first")
    assert_traced(told, traced("langchain", "none", "ours-first"), tracer)


@pytest.mark.slow
def test_a_call_of_llama_index_knows_its_trace() -> None:
    """The same for a query engine, whose spans pass by a dispatcher."""
    told = traced("llama_index", "openinference", "theirs-first")
    assert_traced(told, traced("llama_index", "none", "theirs-first"), "openinference")


# --- A span of the app's own


def traces(captured: Captured) -> list[Any]:
    return [call.capture.traces for call in captured.calls if call.capture]


def test_a_request_around_a_call(captured: Captured) -> None:
    """Plain code knows the current span around it, whether the call is a block or one line."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    span = TracerProvider().get_tracer("web").start_span("GET /")
    with trace.use_span(span):
        with capture_call(captured, "Question?"):
            pass
        record_call(captured, **ANSWERED)

    ids = span.get_span_context()
    assert traces(captured) == [{"otel": (f"{ids.trace_id:032x}", f"{ids.span_id:016x}")}] * 2


def test_spans_that_reach_no_service(captured: Captured) -> None:
    """A span that has ended, or is not sampled, is nobody's trace."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    ended = TracerProvider().get_tracer("web").start_span("GET /")
    ended.end()
    for span in (ended, TracerProvider(sampler=ALWAYS_OFF).get_tracer("web").start_span("GET /")):
        with trace.use_span(span):
            record_call(captured, **ANSWERED)

    assert traces(captured) == [{}, {}]


def test_a_tracer_that_fails(captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exception is counted and logged, and the call is delivered."""

    def fail() -> None:
        raise LookupError("no active run")

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(get_current_active_span=fail))
    record_call(captured, **ANSWERED)

    assert captured.only.response == "Answer."
    assert capture_failures() == 1


def test_nothing_is_imported() -> None:
    """A process without tracers has none after a captured call."""
    code = """
import sys
from rag_eval_integrations import record_call
record_call(lambda call: None, question="Q?", documents=(), response="A.")
assert not {"opentelemetry", "mlflow", "langfuse", "openinference", "langsmith"} & sys.modules.keys()
"""
    python(code, check=True)
