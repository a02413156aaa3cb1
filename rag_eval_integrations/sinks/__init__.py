"""Where evaluations go. The end of the flow: `JsonlSink`, `LoggingSink`, `CallbackSink`.

A sink is any object with `write(batch)`; `BackgroundEvaluator(sinks=[…])` calls each from a thread
of its own, so a slow or broken sink holds up neither the scoring nor the other sinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks.callback import CallbackSink
from rag_eval_integrations.sinks.jsonl import JsonlSink
from rag_eval_integrations.sinks.logs import LoggingSink

__all__ = ["CallbackSink", "JsonlSink", "LoggingSink", "Sink"]


@runtime_checkable
class Sink(Protocol):
    """Takes evaluations somewhere."""

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Take a batch of at least one evaluation, in the order in which they were finished.

        Plain and blocking: the background evaluator calls it from one thread, never at the same
        time twice. What it raises is logged and counted there, and the batch is not written again.
        """
        ...


publish(__name__, __all__)
