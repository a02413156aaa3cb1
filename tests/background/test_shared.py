"""What becomes of the calls of one handler, where several share a background."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from by_hand import ScriptedJudge

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.background._shared import Share
from rag_eval_integrations.records import Evaluation, Labelling, SentencizedCall
from rag_eval_integrations.records.call import EndedCall
from rag_eval_integrations.sinks import CallbackSink

from .conftest import LABELS, WAIT, Gate, call, evaluator, until


def share(of: RagEvaluator, *sinks: CallbackSink) -> Share:
    return Share(of, sinks, LogOnce(logging.getLogger("test")))


def test_the_latest_hundred_are_kept() -> None:
    """A handler that serves a process keeps no more."""
    part = share(evaluator())
    for number in range(120):
        part(call(number))
    assert part.flush(WAIT)

    assert part.kept == len(part.evaluations) == 100


def test_a_function_finds_what_it_is_told_of() -> None:
    """An evaluation is kept before the handler's function is told."""
    kept: list[int] = []

    def tell(evaluation: Evaluation) -> None:
        kept.append(part.kept)

    part = share(evaluator(), CallbackSink(tell))
    part(call(0))
    assert part.flush(WAIT)

    assert kept == [1]


def test_calls_that_are_not_judged_are_not_waited_for() -> None:
    """Without room in the queue, of a run that failed, or without a record."""
    gate, released = Gate(), list[str]()

    def broken() -> None:
        raise ZeroDivisionError

    def ended(name: str) -> EndedCall:
        failed = "error" if name == "failed" else "ok"
        return EndedCall(name, failed, broken, lambda: released.append(name), lambda error: None)  # type: ignore[arg-type]

    part = share(RagEvaluator(gate))
    part.submit_ended(ended("failed"))
    part.submit_ended(ended("broken"))
    assert part.flush(WAIT)
    assert part.pending == 0
    for number in range(1_000 + 8 + 5):
        part(call(number))
    part.submit_ended(ended("without room"))

    assert part.pending <= 1_000 + 8
    assert released == ["failed", "broken", "without room"]
    gate.open.set()
    assert part.flush(WAIT)
    assert part.pending == 0


def test_calls_without_a_thread_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that starts no thread loses them, and says so."""

    def refused(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    part = share(evaluator())
    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refused)
        part(call(0))

    assert part.pending == 0
    part(call(1))
    assert part.flush(WAIT)
    assert [evaluation.id for evaluation in part.evaluations] == ["1"]


def test_a_judge_that_cancels_all_leaves_nothing_to_wait_for() -> None:
    """Also of calls whose evaluation was not begun."""

    class Meddling(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            if call.call.id in ("2", "11"):
                for task in asyncio.all_tasks():
                    task.cancel()
            await asyncio.sleep(0.01)
            return await super().label(call)

    told: list[Evaluation] = []
    part = share(RagEvaluator(Meddling(LABELS)), CallbackSink(told.append))
    for number in range(20):
        part(call(number))

    assert part.flush(WAIT)
    assert part.pending == 0
    assert len(told) == part.kept >= 4


def test_a_function_that_hangs_holds_up_no_evaluation() -> None:
    """What is beyond its queue is kept and not told, and nobody waits for that."""
    began, go, told = threading.Event(), threading.Event(), list[str]()

    def slow(evaluation: Evaluation) -> None:
        began.set()
        assert go.wait(WAIT)
        told.append(evaluation.id)

    part = share(evaluator(), CallbackSink(slow))
    part.lease.background._deliveries[0]._max_pending = 2
    part(call(0))
    assert began.wait(WAIT)
    for number in range(1, 5):
        part(call(number))
    until(lambda: part.kept == 5)

    assert part.pending == 0
    assert not part.flush(0.0)
    go.set()
    assert part.flush(WAIT)
    assert told == ["0", "1", "2"]
