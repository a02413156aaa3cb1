"""`Outbox`: what a sink of `rag-eval worker --to` does not have yet is kept in the store.

    settle, with a mark per sink ─▶ rag_unsent ─▶ claim, with a lease ─▶ sink ─▶ unmark

The marks of a killed worker are taken by the next one that has the sink; those that it was sending,
after the lease. So nothing is missing at the sink, and what was being sent may come twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations._contain import words_of
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.background._sink_delivery import pause_after
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation, from_line
from rag_eval_integrations.sinks.sink import PartlyWrittenError, Sink
from rag_eval_integrations.store._failures import kind_of, repeated

if TYPE_CHECKING:
    from rag_eval_integrations.store.database import Store

_BATCH = 50
_POLL = 1.0
_LEASE = 300.0
"""Seconds in which a sink has to take a batch; then another worker may send it."""
_TRIES = 12
"""Times that a sink may leave an evaluation, over 34 hours; then it is kept until `retry`."""

_SENT = "DELETE FROM rag_unsent"
_DOWN = "UPDATE rag_unsent SET not_before = {now}"
_LEFT = "UPDATE rag_unsent SET tries = tries + 1, not_before = {now} + 30.0 * (1 << tries)"
"""What becomes of a mark: the sink has it, takes nothing, or left it; then it waits ever longer."""


class Outbox:
    """Sends marked evaluations to one sink, in a thread of its own, until it is ended.

    A sink that is down is tried again, ever later, up to once a minute.

    Args:
        store: the store.
        name: name of the sink in the store.
        sink: receives the evaluations; it may be given one twice.
        failures: logs failures of the sink and of the database, once per kind.
    """

    def __init__(self, store: Store, name: str, sink: Sink, failures: LogOnce) -> None:
        self._store, self._name, self._sink, self._failures = store, name, sink, failures
        self._outages = 0
        self._fates: dict[str, list[int]] = {}
        self.ending = threading.Event()
        # A daemon: a sink that hangs does not keep the process from ending.
        self.thread = threading.Thread(target=self._serve, name=f"sink {name}", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Send batch after batch; at the end, those that are due."""
        ending = False
        with suppress_capture():  # calls that a sink makes are not the app's
            while True:
                pause = self._round()
                if pause and ending:
                    return
                ending = pause > 0 and self.ending.wait(pause)

    def _round(self) -> float:
        """Send a batch; return the seconds until the next one."""
        try:
            if self._fates:  # the database was away
                self._settle()
            if batch := self._claim():
                self._fates = self._write(batch)
                self._settle()
        except OSError as error:
            message = "%s; tried again every second, and logged once"
            self._failures.log(("store", kind_of(error)), message, words_of(error))
            return _POLL
        if self._outages:
            return pause_after(self._outages)
        return 0.0 if batch else _POLL

    @repeated
    def _claim(self) -> dict[int, str]:
        """Take evaluations that are due, for the time of a lease: ids and lines."""
        with self._store._running(writing=True) as run:
            rows = run(
                "WITH due AS MATERIALIZED (SELECT evaluation_id FROM rag_unsent WHERE sink = :sink "
                "AND not_before <= {now} AND tries < :tries ORDER BY not_before, evaluation_id "
                "LIMIT :most {skip}) UPDATE rag_unsent SET not_before = {now} + :lease WHERE sink "
                "= :sink AND evaluation_id IN (SELECT evaluation_id FROM due) RETURNING "
                "evaluation_id, (SELECT line FROM rag_evaluation WHERE id = evaluation_id)",
                sink=self._name,
                tries=_TRIES,
                most=_BATCH,
                lease=_LEASE,
            ).all()
        return dict(sorted(map(tuple, rows)))

    def _write(self, batch: dict[int, str]) -> dict[str, list[int]]:
        """Have the sink write a batch; return what becomes of which marks."""
        evaluations: dict[int, Evaluation] = {}
        for number, line in batch.items():
            try:
                evaluations[number] = from_line(Evaluation, line)
            except InputError as error:  # an earlier version wrote it
                self._tell(error)
        fate, left, outages = _SENT, set[int](), 0
        try:
            if evaluations:
                self._sink.write([*evaluations.values()])
        except PartlyWrittenError as error:
            left = {id(evaluation) for evaluation in error.left}
            self._tell(error)
        except Exception as error:  # noqa: BLE001 -- a sink may raise anything
            fate, outages = _DOWN, self._outages + 1
            self._tell(error)
        self._outages = outages
        taken = [number for number, evaluation in evaluations.items() if id(evaluation) not in left]
        return {fate: taken, _LEFT: [number for number in batch if number not in taken]}

    @repeated
    def _settle(self) -> None:
        """Record what became of the last batch."""
        with self._store._running(writing=True) as run:
            for statement, numbers in self._fates.items():
                if numbers:
                    among = ", ".join(map(str, numbers))
                    where = f"WHERE sink = :sink AND evaluation_id IN ({among})"
                    run(f"{statement} {where}", sink=self._name)
        self._fates = {}

    def _tell(self, error: Exception) -> None:
        """Log a failure of the sink, once per kind."""
        kind = self._name, type(error.__cause__ or error).__name__
        message = "sink %s failed: %s; what it did not take is kept in the store and sent again"
        self._failures.log(kind, message, self._name, words_of(error))


def end(outboxes: Sequence[Outbox], within: float) -> None:
    """Wait until all that is due is sent, or the sinks are down, or so many seconds are over."""
    ends = time.monotonic() + within
    for outbox in outboxes:
        outbox.ending.set()
    for outbox in outboxes:
        outbox.thread.join(max(0.0, ends - time.monotonic()))
