"""What every sink is: an object that takes batches of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rag_eval_integrations.records import Evaluation


@runtime_checkable
class Sink(Protocol):
    """Takes evaluations somewhere."""

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Take a batch of at least one evaluation, in the order in which they were finished.

        Plain and blocking: the background evaluator calls it from one thread, never at the same
        time twice. What it raises is logged and counted there, and the batch is not written again.
        """
        ...
