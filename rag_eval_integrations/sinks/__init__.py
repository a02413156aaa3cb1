"""Where evaluations go. The end of the flow: `JsonlSink`, `LoggingSink`, `CallbackSink`.

A sink is any object with `write(batch)`; `BackgroundEvaluator(sinks=[…])` calls each from a thread
of its own, so a slow or broken sink holds up neither the scoring nor the other sinks.
"""

from __future__ import annotations

from rag_eval_integrations.sinks.callback import CallbackSink
from rag_eval_integrations.sinks.jsonl import JsonlSink
from rag_eval_integrations.sinks.logs import LoggingSink
from rag_eval_integrations.sinks.sink import Sink

__all__ = ["CallbackSink", "JsonlSink", "LoggingSink", "Sink"]
