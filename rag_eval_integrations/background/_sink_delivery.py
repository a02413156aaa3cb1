"""Deliver evaluations to sinks: one bounded queue and one thread per sink.

A repeatable sink is given again what it did not write. If it says nothing of single evaluations,
its place is down: the sink pauses, ever longer, and an evaluation is given up 15 minutes after its
first failure. If it says which are left (`PartlyWrittenError`), only they wait, and each is given
up after six failures, within half a minute.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import inf

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.background.counters import FailureLog, SinkCounters
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks.sink import PartlyWrittenError, RepeatableSink, Sink

_MAX_BATCH = 100
_GATHER = 0.05
"""Seconds in which further evaluations join a batch. Whenever the sink's thread wakes up, the app's
threads wait for the interpreter: at 200 evaluations per second, 20 wake-ups per second suffice."""


_LEAST_DELIVERIES = 1_000
"""Smallest queue of evaluations per sink: a small queue of calls is not a reason to lose scores."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
"""Seconds before the first repeat; each further pause is twice as long, up to the longest."""
_LONGEST_OUTAGE = 900.0
"""Seconds for which an evaluation is sent again to a place that takes nothing."""
_MOST_TRIES = 6
"""Failures of an evaluation by itself, such as of one whose trace never arrives."""


def pause_after(failures: int) -> float:
    """Return the seconds to back off after a number of failures in a row, at least one."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, 20))


def deliveries_to(
    sinks: Sequence[Sink], max_pending: int, failures: FailureLog
) -> tuple[SinkDelivery, ...]:
    """Make one delivery per sink, named after the sink's class.

    Sinks of the same class are told apart by their position, from 0.

    Args:
        sinks: the sinks.
        max_pending: calls waiting at most; the queue of each sink holds as many evaluations, but
            at least 1,000.
        failures: logs the exceptions of the sinks.
    """
    classes = [type(sink).__name__ for sink in sinks]
    several = Counter(classes)
    names = [f"{name}-{n}" if several[name] > 1 else name for n, name in enumerate(classes)]
    most = max(max_pending, _LEAST_DELIVERIES)
    return tuple(
        SinkDelivery(sink, name, most, failures) for sink, name in zip(sinks, names, strict=True)
    )


@dataclass(slots=True, eq=False)
class _Queued:
    """An evaluation in the queue of a sink."""

    evaluation: Evaluation
    number: int
    """How many were queued up to and with this one."""
    tries: int = 0
    """Failures by itself."""
    failed_at: float | None = None
    """When it first failed, by `time.monotonic`."""
    due: float = 0.0
    """When it may be sent again."""


class SinkDelivery:
    """The queue and the thread of one sink.

    Each sink has its own thread, so that a sink that hangs does not hold up the others.

    Args:
        sink: receives the evaluations; called from one thread only.
        name: name of the sink, in counters and logs.
        max_pending: evaluations in the queue at most; further ones are dropped.
        failures: logs the exceptions of the sink.
    """

    def __init__(self, sink: Sink, name: str, max_pending: int, failures: FailureLog) -> None:
        self._sink = sink
        self._name = name
        self._max_pending = max_pending
        self._failures = failures
        self._repeatable = isinstance(sink, RepeatableSink) and sink.repeatable
        self._queue: deque[_Queued] = deque()
        self._again: list[_Queued] = []  # those that failed and are sent again when they are due
        self._batch: list[_Queued] = []  # those that are being written
        self._outages = 0  # failures in a row of the place itself
        self._resumes = 0.0  # when an outage's pause ends
        self._changed = threading.Condition()
        self._accepted = self._delivered = self._failed = self._dropped = 0
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._waited_for = 0  # uses of `hurried` in progress

    def enqueue(self, evaluation: Evaluation) -> bool:
        """Queue an evaluation without waiting, and start the thread with the first.

        It is dropped and counted if the queue is full, or the delivery is stopping.

        Returns:
            Whether it is queued.
        """
        with self._changed:
            if self._stopping or len(self._queue) + len(self._again) >= self._max_pending:
                self._dropped += 1
                return False
            if self._thread is None:
                thread = threading.Thread(
                    target=self._serve, name=f"rag-eval-sink-{self._name}", daemon=True
                )
                thread.start()
                self._thread = thread
            self._accepted += 1
            self._queue.append(_Queued(evaluation, self._accepted))
            if len(self._queue) in (1, _MAX_BATCH):
                self._changed.notify_all()
            return True

    def wait(self, timeout: float) -> bool:
        """Wait until everything queued before now is written or has failed.

        What waits to be sent again is sent again at once, in addition to its tries: an app that
        calls `flush` after every request would use them up before a trace arrives.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether that was in time.
        """
        with self._changed:
            target = self._accepted
            self._resumes = 0.0
            for queued in self._again:
                queued.tries -= queued.due > time.monotonic()
                queued.due = 0.0
            with self.hurried():
                return self._changed.wait_for(
                    lambda: self._oldest_pending() > target, max(0.0, timeout)
                )

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Deliver at once, without gathering batches, while somebody waits."""
        with self._changed:
            self._waited_for += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._waited_for -= 1

    def _oldest_pending(self) -> float:
        """Return the number of the oldest pending evaluation; infinity without any."""
        left = [*self._batch, *self._again, *islice(self._queue, 1)]
        return min([queued.number for queued in left], default=inf)

    def stop(self, timeout: float) -> None:
        """End the thread after its current batch; the rest of the queue is dropped and counted.

        Args:
            timeout: seconds to wait for the thread at most; it does not wait for itself.
        """
        with self._changed:
            self._stopping = True
            self._dropped += len(self._queue)
            self._queue.clear()
            self._failed += len(self._again)
            self._again.clear()
            self._changed.notify_all()
        if self._thread is not None and not self.is_own_thread():
            self._thread.join(max(0.0, timeout))

    def is_own_thread(self) -> bool:
        """Return whether the caller is on the sink's own thread."""
        return threading.current_thread() is self._thread

    def counters(self) -> SinkCounters:
        """Return a snapshot of the counts."""
        with self._changed:
            return SinkCounters(
                name=self._name,
                written=self._delivered,
                failed=self._failed,
                dropped=self._dropped,
                pending=len(self._batch) + len(self._again) + len(self._queue),
            )

    def _serve(self) -> None:
        """Write batches in the sink's thread until the delivery stops."""
        # RAG calls that a sink makes (a summary by a chain, say) are not the app's traffic:
        # capturing them would feed the sink its own output.
        with suppress_capture():
            while batch := self._take():
                error = self._write([queued.evaluation for queued in batch])
                with self._changed:
                    given_up = self._settle(batch, error)
                    self._batch = []
                    self._changed.notify_all()
                if given_up:
                    text = f"sink {self._name} gave up evaluations that it could not write"
                    self._failures.log(("given up", self._name), text)
                batch.clear()  # the next may be long in coming

    def _take(self) -> list[_Queued]:
        """Wait for the next batch: retries that are due, then new evaluations; empty at the end.

        Once something is due, it waits a moment longer to gather a batch, unless one is full or
        `wait` is running. At the end it does not wait: it takes what is left,
        and `stop` leaves nothing.
        """
        with self._changed:
            while not self._stopping and (seconds := self._seconds_left()) != 0:
                self._changed.wait(seconds)
            self._changed.wait_for(self._is_due, _GATHER)
            now = time.monotonic()
            batch = [queued for queued in self._again if queued.due <= now][:_MAX_BATCH]
            for queued in batch:
                self._again.remove(queued)
            while self._queue and len(batch) < _MAX_BATCH:
                batch.append(self._queue.popleft())
            self._batch = batch
            return batch

    def _seconds_left(self) -> float | None:
        """Return the seconds until something may be sent; None if nothing is waiting."""
        due = [queued.due for queued in self._again] + [0.0] * bool(self._queue)
        if not due:
            return None
        return max(0.0, max(self._resumes, min(due)) - time.monotonic())

    def _is_due(self) -> bool:
        """Tell whether the sink should be called now: for a full batch, a waiter or the end."""
        return self._stopping or self._waited_for > 0 or len(self._queue) >= _MAX_BATCH

    def _write(self, batch: list[Evaluation]) -> BaseException | None:
        """Have the sink write a batch, and return the exception that it raised."""
        try:
            self._sink.write(list(batch))  # a sink may empty it
        except BaseException as error:  # noqa: BLE001 -- also SystemExit: the thread must go on
            kind = ("sink", self._name, type(error.__cause__ or error).__name__)
            text = f"sink {self._name} failed"
            if self._repeatable:
                text += "; what it did not write is sent again"
            self._failures.log(kind, text, error)
            return error
        return None

    def _settle(self, batch: Sequence[_Queued], error: BaseException | None) -> int:
        """Count a batch's outcome, and queue retries; return how many evaluations are given up.

        An evaluation is given up after its tries or the longest outage, at the end, and at once for
        a sink that may not be given the same twice, for which 0 is returned.
        """
        failed: Sequence[_Queued] = () if error is None else batch
        if isinstance(error, PartlyWrittenError):
            left = {id(evaluation) for evaluation in error.left}
            known = [queued for queued in batch if id(queued.evaluation) in left]
            failed = known if len(known) == len(left) else batch  # a sink may name copies
        self._delivered += len(batch) - len(failed)
        outage = error is not None and not isinstance(error, PartlyWrittenError)
        self._outages = self._outages + 1 if outage else 0
        now = time.monotonic()
        if outage and self._repeatable:
            self._resumes = now + pause_after(self._outages)
        given_up = 0
        for queued in failed:
            queued.failed_at = now if queued.failed_at is None else queued.failed_at
            queued.tries += not outage
            late = now - queued.failed_at >= _LONGEST_OUTAGE or queued.tries >= _MOST_TRIES
            if late or self._stopping or not self._repeatable:
                given_up += 1
            else:
                queued.due = now if outage else now + pause_after(queued.tries)
                self._again.append(queued)
        self._failed += given_up
        return given_up if self._repeatable else 0
