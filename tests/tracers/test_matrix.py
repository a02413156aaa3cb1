"""Every tracer × the order of attaching × every way to call × both frameworks, by the real packages."""

from __future__ import annotations

import pytest
from traced_apps import ORDERS, assert_traced, traced

pytestmark = pytest.mark.tracers

TRACERS = {
    "langchain": ("openinference", "openllmetry", "langfuse", "mlflow", "langsmith"),
    # Without a model's package, OpenLLMetry's instrumentor fails for LlamaIndex.
    "llama_index": ("openinference", "openllmetry", "langfuse", "mlflow"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("framework", "tracer"),
    [(framework, tracer) for framework, tracers in TRACERS.items() for tracer in tracers],
)
def test_call_knows_its_trace(framework: str, tracer: str, order: str) -> None:
    """A call has the ids of the tracer's own root span, and the app and the call are as without."""
    assert_traced(traced(framework, tracer, order), traced(framework, "none", order), tracer)
