"""Deliver evaluations to sinks: one bounded queue and one thread per sink."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.background.counters import FailureLog, SinkCounters
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks import Sink
from rag_eval_integrations.sinks.jsonl import PartlyWrittenError

_MAX_BATCH = 100
_GATHER = 0.05
"""Seconds in which further evaluations join a batch. Whenever the sink's thread wakes up, the app's
threads wait for the interpreter: at 200 evaluations per second, 20 wake-ups per second suffice."""


_LEAST_DELIVERIES = 1_000
"""Smallest queue of evaluations per sink: a small queue of calls is not a reason to lose scores."""


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
        self._queue: deque[Evaluation] = deque()
        self._changed = threading.Condition()
        self._accepted = self._written = self._failed = self._dropped = 0
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._waited_for = 0  # calls of `wait` in progress

    def enqueue(self, evaluation: Evaluation) -> None:
        """Queue an evaluation without waiting; it is dropped and counted if the queue is full."""
        with self._changed:
            if self._stopping or len(self._queue) >= self._max_pending:
                self._dropped += 1
                return
            if self._thread is None:
                thread = threading.Thread(
                    target=self._serve, name=f"rag-eval-sink-{self._name}", daemon=True
                )
                thread.start()
                self._thread = thread
            self._queue.append(evaluation)
            self._accepted += 1
            if len(self._queue) in (1, _MAX_BATCH):
                self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait until everything queued before now is written or has failed.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether that was in time.
        """
        with self._changed:
            target = self._accepted
            self._waited_for += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(
                    lambda: self._written + self._failed >= target, max(0.0, timeout)
                )
            finally:
                self._waited_for -= 1

    def stop(self, timeout: float) -> None:
        """End the thread after its current batch; the rest of the queue is dropped and counted.

        Args:
            timeout: seconds to wait for the thread at most.
        """
        with self._changed:
            self._stopping = True
            self._dropped += len(self._queue)
            self._accepted -= len(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(max(0.0, timeout))

    def is_own_thread(self) -> bool:
        """Return whether the caller is on the sink's own thread."""
        return threading.current_thread() is self._thread

    def counters(self) -> SinkCounters:
        """Return a snapshot of the counts."""
        with self._changed:
            return SinkCounters(
                name=self._name,
                written=self._written,
                failed=self._failed,
                dropped=self._dropped,
                pending=self._accepted - self._written - self._failed,
            )

    def _serve(self) -> None:
        # RAG calls that a sink makes (a summary by a chain, say) are not the app's traffic:
        # capturing them would feed the sink its own output.
        with suppress_capture():
            while batch := self._take():
                size = len(batch)  # a sink may empty it
                written = self._write(batch, size)
                with self._changed:
                    self._written += written
                    self._failed += size - written
                    self._changed.notify_all()

    def _take(self) -> list[Evaluation]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping)
            self._changed.wait_for(self._is_due, _GATHER)
            return [self._queue.popleft() for _ in range(min(_MAX_BATCH, len(self._queue)))]

    def _is_due(self) -> bool:
        return self._stopping or self._waited_for > 0 or len(self._queue) >= _MAX_BATCH

    def _write(self, batch: list[Evaluation], size: int) -> int:
        try:
            self._sink.write(batch)
            return size
        except BaseException as error:  # noqa: BLE001 -- also SystemExit: the thread must go on
            kind = ("sink", self._name, type(error).__name__)
            self._failures.log(kind, f"sink {self._name} failed", error)
            return error.written if isinstance(error, PartlyWrittenError) else 0
