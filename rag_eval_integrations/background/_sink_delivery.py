"""Hands evaluations to one sink: a bounded queue and a thread, so that nobody waits for it."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.background.counters import FailureLog, SinkCounters
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks import Sink

_MAX_BATCH = 100
_GATHER = 0.05
"""Seconds in which further evaluations join a batch. In each wake of the sink's thread the app's
threads wait for the interpreter: at 200 evaluations a second, 20 wakes a second are enough."""


_LEAST_DELIVERIES = 1_000
"""Evaluations that wait for each sink, at least: a small queue of calls is no reason to lose what
they were scored."""


def deliveries_to(
    sinks: Sequence[Sink], max_pending: int, failures: FailureLog
) -> tuple[SinkDelivery, ...]:
    """Make a delivery to each sink, named after its class, numbered where several have one class.

    Args:
        sinks: where evaluations go.
        max_pending: calls that wait at most; as many evaluations wait for each sink, or 1,000.
        failures: logs what a sink raises.
    """
    classes = [type(sink).__name__ for sink in sinks]
    several = Counter(classes)
    names = [f"{name}-{n}" if several[name] > 1 else name for n, name in enumerate(classes)]
    most = max(max_pending, _LEAST_DELIVERIES)
    return tuple(
        SinkDelivery(sink, name, most, failures) for sink, name in zip(sinks, names, strict=True)
    )


class SinkDelivery:
    """One sink's queue and thread.

    A thread for each sink, not one for all: a sink that hangs would starve the others.

    Args:
        sink: where evaluations go; called from one thread only.
        name: of the sink, in counters and logs.
        max_pending: evaluations held for it; further ones are dropped while it is full.
        failures: logs what the sink raises.
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
        self._waited_for = 0  # `wait` calls under way

    def put(self, evaluation: Evaluation) -> None:
        """Queue an evaluation; never waits. Dropped and counted when the queue is full."""
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
        """Wait until what is queued now has been written, or has failed; at most `timeout` s."""
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
        """End the thread after the batch that it is writing, waiting at most `timeout` seconds."""
        with self._changed:
            self._stopping = True
            self._dropped += len(self._queue)
            self._accepted -= len(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(max(0.0, timeout))

    def is_own_thread(self) -> bool:
        """Whether the sink itself is asking."""
        return threading.current_thread() is self._thread

    def counters(self) -> SinkCounters:
        """Take a snapshot."""
        with self._changed:
            return SinkCounters(
                name=self._name,
                written=self._written,
                failed=self._failed,
                dropped=self._dropped,
                pending=self._accepted - self._written - self._failed,
            )

    def _serve(self) -> None:
        # What a sink runs (a summary by a chain, say) is no traffic of the app: evaluating it
        # would feed the sink with its own doing.
        with suppress_capture():
            while batch := self._take():
                error = self._write(batch)
                with self._changed:
                    if error is None:
                        self._written += len(batch)
                    else:
                        self._failed += len(batch)
                    self._changed.notify_all()

    def _take(self) -> list[Evaluation]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping)
            self._changed.wait_for(self._is_due, _GATHER)
            return [self._queue.popleft() for _ in range(min(_MAX_BATCH, len(self._queue)))]

    def _is_due(self) -> bool:
        return self._stopping or self._waited_for > 0 or len(self._queue) >= _MAX_BATCH

    def _write(self, batch: list[Evaluation]) -> BaseException | None:
        try:
            self._sink.write(batch)
        except BaseException as error:  # noqa: BLE001 -- also SystemExit: the thread must go on
            kind = ("sink", self._name, type(error).__name__)
            self._failures.say(kind, f"sink {self._name} failed", error)
            return error
        return None
