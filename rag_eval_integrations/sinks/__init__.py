"""Sinks, the end of the flow: write evaluations to a file, a log or a function.

A sink is any object with a method `write(batch)`. `BackgroundEvaluator(sinks=[…])` calls each sink
from its own thread, so a slow or broken sink delays neither the scoring nor the other sinks.
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
    """Receives evaluations and writes them to one place."""

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Write a batch of at least one evaluation, in the order in which they were finished.

        The method may block: the background evaluator calls it from one thread, one batch at a
        time. An exception is logged and counted there, and the batch is not written again.

        Args:
            batch: the evaluations, at least one.
        """
        ...


publish(__name__, __all__)
