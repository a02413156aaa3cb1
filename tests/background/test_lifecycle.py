"""Flush, close, re-entry, fork and the interpreter's end."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

import pytest
from by_hand import ScriptedJudge
from forked import FORKS_WITH_HOOKS, Fork, forked
from loopback import Behaviour, LoopbackServer
from processes import fresh_python

from rag_eval_integrations import BackgroundEvaluator, Evaluation, RagEvaluator
from rag_eval_integrations.errors import ReentryError
from rag_eval_integrations.records import Labelling, SentencizedCall
from rag_eval_integrations.sinks import CallbackSink
from rag_eval_integrations.testing import labels_reply

from .conftest import LABELS, WAIT, Gate, Kept, call, evaluator, submit, until


def test_flush_of_nothing_is_done() -> None:
    """Before the first call there is no thread to wait for."""
    before = threading.active_count()
    background = BackgroundEvaluator(evaluator())

    assert background.flush(0.0)
    assert background.close(0.0)
    assert threading.active_count() == before


def test_flush_ends_under_steady_traffic() -> None:
    """It waits for what was submitted before it, not for what comes meanwhile."""
    kept = Kept()
    background = BackgroundEvaluator(evaluator(), [kept], max_pending=100_000)
    stop = threading.Event()

    def traffic() -> None:
        number = 1000
        while not stop.wait(0.002):
            background(call(number))
            number += 1

    thread = threading.Thread(target=traffic)
    thread.start()
    background(call(1))
    assert background.flush(WAIT)
    assert "1" in kept.ids
    stop.set()
    thread.join()
    assert background.close(WAIT)


def test_close_drops_and_counts_what_is_not_done(log: pytest.LogCaptureFixture) -> None:
    """One line says how much; later calls are dropped; the thread has ended."""
    before = threading.active_count()
    gate = Gate()
    background = BackgroundEvaluator(RagEvaluator(gate), max_concurrency=2)
    submit(background, range(5))
    until(lambda: len(gate.asked) == 2)

    assert not background.close(0.0)
    background(call(9))

    assert (background.counters.dropped, background.counters.pending) == (6, 0)
    assert log.records[0].getMessage() == (
        "5 calls were not evaluated and 0 evaluations not written at close"
    )
    assert threading.active_count() == before
    assert background.close()


async def test_async_with_drains_without_blocking_the_loop() -> None:
    """The app's loop goes on while the evaluator closes."""
    gate = Gate()
    async with BackgroundEvaluator(RagEvaluator(gate)) as background:
        background(call())
        asyncio.get_running_loop().call_later(0.05, gate.open.set)

    assert background.counters.scored == 1


def test_it_works_again_after_a_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that went to sleep is woken by the next call."""
    monkeypatch.setattr("rag_eval_integrations.background._worker._QUIET", 0.0)
    with BackgroundEvaluator(evaluator()) as background:
        for number in range(3):
            background(call(number))
            assert background.flush(WAIT)
            until(lambda: background._worker._idle)

    assert background.counters.scored == 3


def test_never_more_at_once_than_allowed() -> None:
    """And full use of what is allowed."""
    gate = Gate()
    with BackgroundEvaluator(RagEvaluator(gate), max_concurrency=3) as background:
        submit(background, range(10))
        until(lambda: len(gate.asked) == 3)
        assert not background.flush(0.1)
        assert len(gate.asked) == 3
        gate.open.set()
        assert background.flush(WAIT)

        assert background.counters.scored == 10


def test_a_sink_may_submit_but_not_wait() -> None:
    """A submission from a sink is evaluated; `flush` and `close` there would wait for themselves."""
    ids: list[str] = []

    def follow_up(evaluation: Evaluation) -> None:
        ids.append(evaluation.id)
        if evaluation.id == "0":
            background(call(1))
            for wait in (background.flush, background.close):
                with pytest.raises(ReentryError):
                    wait()

    background = BackgroundEvaluator(evaluator(), [CallbackSink(follow_up)])
    background(call(0))
    until(lambda: ids == ["0", "1"])

    assert background.close(WAIT)
    assert background.counters.sinks[0].failed == 0  # nor did either wait end otherwise


@pytest.mark.parametrize("in_thread", [False, True])
def test_an_evaluation_may_submit_but_not_wait(in_thread: bool) -> None:
    """Not even for room in a full queue, on the loop or in a thread that it waits for."""
    seen: list[str] = []

    class Judge(ScriptedJudge):
        async def label(self, call_: SentencizedCall) -> Labelling:
            if call_.call.id == "0":
                await asyncio.to_thread(again) if in_thread else again()
            return await super().label(call_)

    def again() -> None:
        with pytest.raises(ReentryError):
            background.flush()
        submit(background, (1, 2))
        seen.append("done")

    background = BackgroundEvaluator(
        RagEvaluator(Judge(LABELS)), max_pending=1, max_concurrency=1, when_full="block"
    )
    background(call(0))
    until(lambda: bool(seen))
    assert background.close(WAIT)

    assert (background.counters.scored, background.counters.dropped) == (2, 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
@pytest.mark.parametrize("fork", FORKS_WITH_HOOKS)
def test_a_forked_child_starts_empty_and_works(fork: Fork) -> None:
    """The parent's calls are evaluated once, by the parent; the child has its own thread."""
    gate, kept = Gate(), Kept()
    background = BackgroundEvaluator(RagEvaluator(gate), [kept], max_concurrency=2)
    submit(background, range(5))
    until(lambda: len(gate.asked) == 2)

    def child() -> str:
        at_start = background.counters
        gate.open.set()
        submit(background, (7, 8))
        done = background.close(WAIT)
        return json.dumps([at_start.captured, done, sorted(kept.ids), background.counters.scored])

    printed = forked(child, fork).printed()
    gate.open.set()
    assert background.close(WAIT)

    assert json.loads(printed) == [0, True, ["7", "8"], 2]
    assert sorted(kept.ids) == ["0", "1", "2", "3", "4"]
    assert background.counters.scored == 5


FORKS = """
import os, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.models import OpenAIModel
from rag_eval_integrations.testing import small_call

def submit(calls, name):
    for number in range(calls):
        background(small_call().call.model_copy(update={"question": f"{name} {number}?"}))

embedded = BackgroundEvaluator(RagEvaluator())
before = set(sys.modules)
background = embedded
submit(1, "first")
assert background.flush(20) and background.counters.scored == 1
assert set(sys.modules) == before, set(sys.modules) - before

background = BackgroundEvaluator(
    RagEvaluator(OpenAIModel("m", base_url=sys.argv[1])), exit_grace=0
)
submit(20, "parent")
children = []
for _ in range(3):
    time.sleep(0.04)
    child = os.fork()
    if not child:
        submit(2, "child")
        background.flush(60)
        os._exit(0 if background.counters.scored == 2 else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], background.flush(60))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_during_the_first_evaluation(root: Path) -> None:
    """What it needs is loaded before; what an endpoint's client imports is never cut in two."""
    with LoopbackServer(Behaviour(content=labels_reply(["0a"], ["a", "b"]))) as server:
        done = fresh_python(FORKS, server.base_url, cwd=root)

    assert (done.stdout, done.stderr) == ("[0, 0, 0] True\n", "")


def test_the_exit_line_is_for_what_is_pending_alone(log: pytest.LogCaptureFixture) -> None:
    """Nothing is said of an evaluator that is drained, or was closed and said it then."""
    gate = Gate()
    background = BackgroundEvaluator(RagEvaluator(gate), exit_grace=0)
    background.at_exit()
    background(call())
    background.at_exit()
    background.close(0.0)
    background.at_exit()

    assert [record.getMessage().split(" written ")[1] for record in log.records] == [
        "at exit; `flush()` or `close()` before it",
        "at close",
    ]


def test_a_wait_may_have_no_end() -> None:
    """Longer than locks can wait for is as long as it takes."""
    background = BackgroundEvaluator(evaluator(), exit_grace=1e10)
    for number, wait in enumerate((background.flush, background.close)):
        background(call(number))
        assert wait(float("inf"))

    assert background.counters.scored == 2
