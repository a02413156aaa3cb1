"""Sinks, the end of the flow: write evaluations to a file, a log, a function or a trace tool.

A sink is any object with a method `write(batch)`. `BackgroundEvaluator(sinks=[…])` calls each sink
from its own thread, so a slow or broken sink delays neither the scoring nor the other sinks.
"""

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.sinks.langfuse import LangfuseSink
    from rag_eval_integrations.sinks.langsmith import LangSmithSink
    from rag_eval_integrations.sinks.local import CallbackSink, JsonlSink, LoggingSink
    from rag_eval_integrations.sinks.mlflow import MLflowSink
    from rag_eval_integrations.sinks.otel import OpenTelemetrySink
    from rag_eval_integrations.sinks.phoenix import PhoenixSink
    from rag_eval_integrations.sinks.sink import PartlyWrittenError, Sink

__all__ = [
    "CallbackSink",
    "JsonlSink",
    "LangSmithSink",
    "LangfuseSink",
    "LoggingSink",
    "MLflowSink",
    "OpenTelemetrySink",
    "PartlyWrittenError",
    "PhoenixSink",
    "Sink",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "langfuse": ["LangfuseSink"],
        "langsmith": ["LangSmithSink"],
        "local": ["CallbackSink", "JsonlSink", "LoggingSink"],
        "mlflow": ["MLflowSink"],
        "otel": ["OpenTelemetrySink"],
        "phoenix": ["PhoenixSink"],
        "sink": ["PartlyWrittenError", "Sink"],
    },
)
