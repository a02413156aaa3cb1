"""Sinks that may be given a failed batch again: who gets what, how often, and what is given up."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from rag_eval_integrations import BackgroundEvaluator, Evaluation
from rag_eval_integrations.background import _sink_delivery as delivery
from rag_eval_integrations.sinks import PartlyWrittenError

from .conftest import WAIT, Kept, call, evaluator, judged, submit, until


class Failing(Kept):
    """Keeps by id, and fails as it is told; it says what others do not inherit."""

    repeatable = True

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.down = threading.Event()
        self.refused = set(refused)
        self.asked: list[list[str]] = []

    def write(self, batch: Sequence[Evaluation]) -> None:
        self.asked.append([evaluation.id for evaluation in batch])
        if self.down.is_set():
            raise ConnectionError("nobody answers")
        left = [evaluation for evaluation in batch if evaluation.id in self.refused]
        super().write([evaluation for evaluation in batch if evaluation not in left])
        if left:
            raise PartlyWrittenError(left, KeyError("no such trace"))


class Once(Failing):
    """The same without repeats."""

    repeatable = False


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 0.0)


@pytest.mark.usefixtures("at_once")
def test_one_that_is_never_taken_holds_up_no_other(log: pytest.LogCaptureFixture) -> None:
    """It is tried six times, given up and counted; the failure and the end are told once each."""
    sink = Failing("3", "4")
    background = judged(20, evaluator(), [sink])
    counts = background.counters.sinks[0]

    assert len(sink.ids) == len(set(sink.ids)) == 18
    assert (counts.written, counts.failed) == (18, 2)
    assert [id for batch in sink.asked for id in batch].count("3") == 6
    first, second = [record.getMessage() for record in log.records]
    assert first.startswith("sink Failing failed; what it did not write is sent again")
    assert second.startswith("sink Failing gave up evaluations that it could not write")


@pytest.mark.usefixtures("at_once")
def test_what_a_sink_did_not_write_of_its_copies_is_not_written() -> None:
    """A sink that redacts hands on copies, and the error names those."""

    class Redacting(Failing):
        def write(self, batch: Sequence[Evaluation]) -> None:
            super().write([evaluation.model_copy() for evaluation in batch])

    counts = judged(1, evaluator(), [Redacting("0")]).counters.sinks[0]

    assert (counts.written, counts.failed) == (0, 1)


@pytest.mark.usefixtures("at_once")
def test_an_outage_ends_in_giving_up(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    """After as long as it takes; what is given up is counted, and told once."""
    monkeypatch.setattr(delivery, "_LONGEST_OUTAGE", 0.0)
    sink = Failing()
    sink.down.set()
    background = judged(5, evaluator(), [sink])
    counts = background.counters.sinks[0]

    assert (counts.written, counts.failed) == (0, 5)
    assert len([record for record in log.records if "gave up" in record.getMessage()]) == 1


def test_others_are_asked_once(log: pytest.LogCaptureFixture) -> None:
    """A sink that does not say that it may be asked again keeps today's promise."""
    for sink in (Once("1"), Once()):
        if not sink.refused:
            sink.down.set()
        background = judged(3, evaluator(), [sink])
        counts = background.counters.sinks[0]

        asked = [id for batch in sink.asked for id in batch]
        assert sorted(asked) == ["0", "1", "2"]
        assert counts.failed == (1 if sink.refused else 3)
    assert not any("again" in record.getMessage() for record in log.records)


def test_the_queue_of_a_place_that_is_down_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be sent again counts; further evaluations are dropped and counted."""
    monkeypatch.setattr(delivery, "_LEAST_DELIVERIES", 10)
    monkeypatch.setattr(delivery, "_MAX_BATCH", 5)
    sink = Failing()
    sink.down.set()
    background = BackgroundEvaluator(evaluator(), [sink], max_pending=10)
    for number in range(40):
        background(call(number))
        assert background._worker.drain(WAIT)
    counts = background.counters.sinks[0]

    assert background.counters.scored == 40
    assert 10 <= counts.pending <= 10 + 5  # a batch that is being sent has left the queue
    assert (counts.dropped, counts.failed) == (40 - counts.pending, 0)
    assert not background.close(0.0)


def test_pauses_grow_and_are_bounded() -> None:
    """Half a second, doubled each time, a minute at most."""
    assert [delivery.pause_after(n) for n in (1, 2, 3, 8, 10_000)] == [0.5, 1.0, 2.0, 60.0, 60.0]


def test_what_waits_at_the_end_is_counted_as_failed(log: pytest.LogCaptureFixture) -> None:
    """`close` tries once more, and says what is not written."""
    sink = Failing()
    sink.down.set()
    background = BackgroundEvaluator(evaluator(), [sink])
    background(call(0))
    until(lambda: bool(sink.asked))

    assert not background.close(0.2)
    counts = background.counters.sinks[0]
    assert (counts.written, counts.failed, counts.pending) == (0, 1, 0)
    assert "1 evaluation not written at close" in log.records[-1].getMessage()


def test_flush_waits_for_what_was_there_whatever_is_written_meanwhile() -> None:
    """Later evaluations that are written do not stand for one that the sink still refuses."""
    sink = Failing("0")
    with BackgroundEvaluator(evaluator(), [sink]) as background:
        submit(background, [0])
        until(lambda: bool(sink.asked))
        done: list[bool] = []
        flushing = threading.Thread(target=lambda: done.append(background.flush(WAIT)))
        flushing.start()
        submit(background, range(1, 4))
        until(lambda: len(sink.ids) == 3)
        assert not done
        sink.refused.clear()
        flushing.join(WAIT)

    assert done == [True]
    assert "0" in sink.ids


def test_flush_uses_up_no_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app may call it after every request: what is not taken yet is given up no earlier.

    Nor does it wait for the pause: what a service that is back takes is written when it returns.
    """
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 10_000.0)
    monkeypatch.setattr(delivery, "_LONGEST_PAUSE", 10_000.0)
    sink = Failing("1")
    sink.down.set()
    with BackgroundEvaluator(evaluator(), [sink]) as background:
        submit(background, range(2))
        for times in range(1, 20):
            until(lambda: not background.flush(0.01) and len(sink.asked) > times)  # noqa: B023
            if times == 10:
                assert sink.ids == []
                sink.down.clear()
        assert sink.ids == ["0"]  # 1 waits by itself
        sink.refused.clear()
        assert background.flush(WAIT)

    assert sink.ids == ["0", "1"]
