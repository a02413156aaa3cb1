"""Calls that capture hands in before their records are made."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from rag_eval_integrations import BackgroundEvaluator, Capture, RagCall, RagEvaluator
from rag_eval_integrations.background.budget import chosen
from rag_eval_integrations.records.call import CaptureStatus, EndedCall

from .conftest import WAIT, Gate, Kept, busy, call, evaluator, until


class Source:
    """Hands out ended calls, and notes in which threads their records are made."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        self.released: list[str] = []

    def ended(self, number: int = 0, status: CaptureStatus = "ok") -> EndedCall:
        name = str(number)

        def record() -> RagCall:
            self.threads[name] = threading.get_ident()
            return call(number, status)

        return EndedCall(f"run-{name}", status, record, lambda: self.released.append(name), print)

    def submit(self, background: BackgroundEvaluator, numbers: Iterable[int]) -> None:
        """Hand in the calls of these numbers."""
        for number in numbers:
            background.submit_ended(self.ended(number))


def test_records_of_waiting_calls_are_made_while_they_wait() -> None:
    """A call without its record holds all of its prompts; a queue may hold a thousand."""
    gate, source = Gate(), Source()
    background = BackgroundEvaluator(RagEvaluator(gate), max_concurrency=1)
    source.submit(background, range(6))
    until(lambda: len(source.threads) == 6 and gate.asked == ["0"])

    background.submit_ended(source.ended(6))
    until(lambda: "6" in source.threads)
    assert gate.asked == ["0"]
    gate.open.set()
    assert background.close(WAIT)
    assert background.counters.scored == 7
    assert len(source.released) == 7


def test_what_is_not_judged_is_released_without_a_record() -> None:
    """Sampled out, not complete, no room, or the evaluator closed."""
    source = Source()
    with BackgroundEvaluator(evaluator(), sample_rate=0.0) as background:
        background.submit_ended(source.ended(0))
        background.submit_ended(source.ended(1, "error"))
        counters = background.counters
    closed = BackgroundEvaluator(evaluator())
    closed.close(WAIT)
    closed.submit_ended(source.ended(2))

    assert (counters.sampled_out, counters.skipped) == (1, 1)
    assert closed.counters.dropped == 1
    assert source.released == ["0", "1", "2"]
    assert not source.threads


@pytest.mark.parametrize(("when_full", "dropped"), [("drop_newest", "3"), ("drop_oldest", "1")])
def test_a_call_without_room_is_released(when_full: str, dropped: str) -> None:
    """The newest or the oldest that waits, and at the end those that still wait."""
    source = Source()
    _, _, background = busy(max_pending=2, when_full=when_full)
    source.submit(background, (1, 2, 3))

    assert background.counters.dropped == 1
    assert source.released == [dropped]
    background.close(0.0)
    assert sorted(source.released) == list("123")


def test_a_captured_call_is_sampled_by_its_run() -> None:
    """With or without its record the same; calls of the same content are decided one by one."""
    source = Source()
    wanted = [str(number) for number in range(200) if chosen(f"run-{number}", 0.4)]
    assert 50 < len(wanted) < 110
    ended, made = Kept(), Kept()
    with BackgroundEvaluator(evaluator(), [ended], sample_rate=0.4) as background:
        source.submit(background, range(200))
        assert background.flush(WAIT)
    with BackgroundEvaluator(evaluator(), [made], sample_rate=0.4) as background:
        for number in range(200):
            capture = Capture(framework="plain", run_id=f"run-{number}")
            background.submit(call(number).model_copy(update={"capture": capture}))
        assert background.flush(WAIT)

    assert sorted(ended.ids, key=int) == wanted
    assert sorted(made.ids, key=int) == wanted


def test_a_rate_that_looks_at_the_call_gets_its_record() -> None:
    """On the app's thread, as documented."""
    source = Source()
    asked: list[str] = []

    def rate(call: RagCall) -> float:
        asked.append(call.id)
        return 1.0 if call.id == "1" else 0.0

    with BackgroundEvaluator(evaluator(), sample_rate=rate) as background:
        source.submit(background, range(3))
        assert background.flush(WAIT)

        assert background.counters.scored == 1
    assert asked == ["0", "1", "2"]
    assert set(source.threads.values()) == {threading.get_ident()}
