"""What one actor does: a batch of calls, any of which may kill its process.

    batch ─▶ Worker ─▶ evaluations, in order
               └── Attempts, in an actor that outlives it: what was begun, and never ended

Ray starts an actor that died again, and gives it the batch once more. Then its calls are evaluated
one by one, and the one with which the process dies again is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rag_eval_integrations.dataset import Line, evaluate_calls
from rag_eval_integrations.dataset._processes import DIED
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall, from_line, to_line

Item = RagCall | Line[RagCall]


@dataclass
class Suspect:
    """A batch with which a process died."""

    trying: int | None = None
    """Place of the call that is evaluated alone; None before the first."""
    rows: dict[int, str] = field(default_factory=dict)
    """Rows of EVALS of the calls before it, by their place."""


class Records(Protocol):
    """`Attempts`, or what asks it in another process."""

    def begin(self, batch: str) -> Suspect | None: ...
    def alone(self, batch: str, place: int, rows: Mapping[int, str]) -> None: ...
    def end(self, batch: str) -> None: ...


class Attempts:
    """The batches that were begun and have not ended; lives longer than those who work on them."""

    def __init__(self) -> None:
        self._open: dict[str, Suspect | None] = {}

    def begin(self, batch: str) -> Suspect | None:
        """Note that a batch is begun; return what is known of it if it was begun before."""
        if batch not in self._open:
            self._open[batch] = None
            return None
        suspect = self._open[batch] or Suspect()
        self._open[batch] = suspect
        return suspect

    def alone(self, batch: str, place: int, rows: Mapping[int, str]) -> None:
        """Note which call of a suspect batch is evaluated now, and rows that are finished."""
        suspect = self._open.get(batch) or Suspect()
        suspect.trying = place
        suspect.rows |= rows
        self._open[batch] = suspect

    def end(self, batch: str) -> None:
        """Forget a batch, which has its rows."""
        self._open.pop(batch, None)


@dataclass(frozen=True)
class Worker:
    """Evaluates batches of calls.

    Args:
        evaluator: the evaluator.
        max_concurrency: calls in progress at once, from 1.
        attempts: what outlives this process.
    """

    evaluator: RagEvaluator
    max_concurrency: int
    attempts: Records

    def evaluate(self, items: Sequence[Item], task: str) -> list[Evaluation]:
        """Evaluate a batch; there is one evaluation per call, in order.

        Args:
            items: the calls, and rows that are none.
            task: what is the same when the batch is given out again, and different for two batches
                that are evaluated at one time.
        """
        batch = f"{task}:{_digest(items)}"
        suspect = self.attempts.begin(batch)
        found = self._all(items) if suspect is None else list(self._each(items, batch, suspect))
        self.attempts.end(batch)
        return found

    def _all(self, items: Sequence[Item]) -> list[Evaluation]:
        return list(evaluate_calls(items, self.evaluator, max_concurrency=self.max_concurrency))

    def _each(self, items: Sequence[Item], batch: str, suspect: Suspect) -> Iterator[Evaluation]:
        finished: dict[int, str] = {}
        for place, item in enumerate(items):
            if place in suspect.rows:
                yield from_line(Evaluation, suspect.rows[place])
                continue
            if place == suspect.trying:
                call = item.value if isinstance(item, Line) else item
                (made,) = (
                    self._all([item])
                    if call is None
                    else [self.evaluator.without_result(call, DIED)]
                )
            else:
                self.attempts.alone(batch, place, finished)
                finished = {}
                (made,) = self._all([item])
            finished[place] = to_line(made)
            yield made


def _digest(items: Sequence[Item]) -> str:
    found = hashlib.sha256()
    for item in items:
        call = item.value if isinstance(item, Line) else item
        text = "-" if call is None else f"{call.row_key} {call.id}\n"
        found.update(text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]
