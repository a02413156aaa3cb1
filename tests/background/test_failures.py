"""What fails: evaluations and sinks. Nothing is raised, each kind is said once, all is counted."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge

from rag_eval_integrations import BackgroundEvaluator, Evaluation, Labels, RagCall, RagEvaluator
from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.background import _sink_delivery as delivery
from rag_eval_integrations.errors import JudgeRejectedError
from rag_eval_integrations.records import EvaluationError, Labelling, SentencizedCall
from rag_eval_integrations.sinks import CallbackSink

from .conftest import LABELS, WAIT, Kept, Stuck, call, evaluator, judged, python, submit


def test_100_failing_evaluations(log: pytest.LogCaptureFixture) -> None:
    """None is raised into the app, one log line each kind, all are counted and delivered."""
    rejected = JudgeRejectedError("401: wrong key\nFORGED line")
    kinds = (rejected, TypeError("a bug"), TimeoutError(), SystemExit(2))

    def fail(call: SentencizedCall) -> Labels:
        raise kinds[int(call.call.id) % 4]

    kept = Kept()
    background = judged(100, RagEvaluator(ScriptedJudge(fail)), [kept])
    counters = background.counters

    assert (counters.captured, counters.failed, counters.dropped) == (100, 100, 0)
    lines = [record.getMessage() for record in log.records]
    assert len(lines) == 4
    assert any("judge: JudgeRejectedError: 401: wrong key\\nFORGED line" in line for line in lines)
    assert not any("\n" in line for line in lines)
    assert len(kept.ids) == 100  # a SystemExit is a row like any other failure
    assert {e.error.stage for e in kept.evaluations if e.error is not None} == {"judge"}


def test_a_broken_evaluator_is_counted(log: pytest.LogCaptureFixture) -> None:
    """Also where the evaluator breaks its promise; a timeout of its own is not taken for ours."""

    class Broken(RagEvaluator):
        async def evaluate(self, call: RagCall | None = None, /, **options: Any) -> Evaluation:
            assert call is not None
            raise (asyncio.CancelledError, TimeoutError, KeyError, KeyError)[int(call.id)]

    kept = Kept()
    background = judged(4, Broken(ScriptedJudge(LABELS)), [kept])

    assert background.counters.failed == 4
    assert kept.ids == []
    assert len(log.records) == 3
    assert all("ended without a result" in record.getMessage() for record in log.records)


NO_FILES = """
import resource
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.testing import small_call

with BackgroundEvaluator(RagEvaluator()) as background:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    for _ in range(3):
        background(small_call().call)
        assert background.flush(20)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (background.counters.failed, background.counters.pending) == (3, 0)
    background(small_call().call)
    assert background.flush(20)
    assert background.counters.scored == 1
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="this platform counts no open files")
def test_a_loop_that_cannot_run_gives_up(root: Path) -> None:
    """Without a file to wait on: calls are counted as failed, logged once; later ones are scored."""
    done = python(NO_FILES, cwd=root)

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("an evaluation ended without a result") == 1


FULL = """
import resource, sys
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.sinks import JsonlSink
from rag_eval_integrations.testing import small_call

resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
with BackgroundEvaluator(RagEvaluator(), [JsonlSink(sys.argv[1])]) as background:
    for _ in range(60):
        background(small_call().call)
    assert background.flush(20)
    counts = background.counters.sinks[0]
print(counts.written, counts.failed, counts.pending)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="this platform limits no file")
def test_rows_that_are_in_the_file_are_counted_as_written(root: Path, tmp_path: Path) -> None:
    """A file that may not grow, as on a full disk: whole rows are written, the others have failed."""
    path = tmp_path / "evals.jsonl"
    done = python(FULL, path, cwd=root)

    assert done.returncode == 0, done.stderr
    rows = path.read_text().splitlines()
    assert 0 < len(rows) < 60
    assert done.stdout.split() == [str(len(rows)), str(60 - len(rows)), "0"]
    assert done.stderr.count("sink JsonlSink failed") == 1


def test_a_judge_that_never_answers_is_given_up(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no place for ever: counted as failed, delivered with an error, said once."""

    class Silent(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            if int(call.call.id) < 3:
                await asyncio.Event().wait()
            return await super().label(call)

    kept = Kept()
    monkeypatch.setattr(BackgroundEvaluator, "_timeout", 0.3)
    background = judged(4, RagEvaluator(Silent(LABELS)), [kept], max_concurrency=1)
    counters, summary = background.counters, background.summary()

    assert (counters.failed, counters.scored) == (3, 1)
    assert kept.ids == ["0", "1", "2", "3"]
    late, message = kept.evaluations[0], "no result within 0.3 s"
    assert late.error == EvaluationError(type="TimeoutError", message=message, stage="judge")
    assert {score.status for score in late.scores.values()} == {"error"}
    assert list(late.scores) == list(kept.evaluations[3].scores)
    assert summary.unscored["adherence"] == {"error": 3}
    assert len(log.records) == 1
    assert "TimeoutError: no result within 0.3 s" in log.records[0].getMessage()


def test_a_broken_sink_is_counted_and_holds_up_nobody(log: pytest.LogCaptureFixture) -> None:
    """The other sink has everything; each kind of failure is logged once, with a traceback."""

    class Broken:
        def write(self, batch: Sequence[Evaluation]) -> None:
            raise SystemExit(1) if batch[0].id == "0" else OSError("no space")

    kept = Kept()
    with BackgroundEvaluator(evaluator(), [Broken(), kept]) as background:
        for number in range(20):
            background(call(number))
            if number % 5 == 0:
                assert background.flush(WAIT)
        assert background.flush(WAIT)
        counters = background.counters

    assert len(kept.ids) == 20
    assert (counters.scored, counters.sinks[0].failed, counters.sinks[1].written) == (20, 20, 20)
    assert 1 <= len(log.records) <= 2
    assert all(record.exc_info for record in log.records)


def test_a_slow_sink_drops_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is bounded: what it cannot take is dropped and counted, for it alone."""
    monkeypatch.setattr(delivery, "_LEAST_DELIVERIES", 10)
    slow, kept = Stuck(), Kept()
    background = BackgroundEvaluator(evaluator(), [slow, kept], max_pending=10)
    background(call(0))
    assert slow.began.wait(WAIT)
    for start in range(1, 40, 5):
        submit(background, range(start, start + 5))
        assert background._worker.drain(WAIT)
        assert background._deliveries[1].wait(WAIT)

    counters = background.counters
    assert counters.scored == 41
    assert len(kept.ids) == 41
    assert (counters.sinks[0].pending, counters.sinks[0].dropped) == (11, 30)
    assert not background.flush(0.05)
    slow.go.set()
    assert background.close(WAIT)
    assert background.counters.sinks[0].written == 11


def test_what_a_sink_runs_is_not_captured() -> None:
    """A chain in a sink would otherwise be evaluated, and feed the sink again."""
    seen: list[bool] = []
    judged(1, evaluator(), [CallbackSink(lambda _: seen.append(suppressed()))])

    assert seen == [True]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_a_task_of_the_judge_that_exits_ends_nothing(error: BaseException) -> None:
    """Asyncio raises `SystemExit` of any task out of the loop, on which other calls wait."""

    class Starting(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            if call.call.id == "1":
                await asyncio.gather(asyncio.sleep(0.01), self._leave())
            await asyncio.sleep(0.05)  # in flight, while the other one exits
            return await super().label(call)

        async def _leave(self) -> None:
            raise error

    kept = Kept()
    background = judged(4, RagEvaluator(Starting(LABELS)), [kept])
    counters = background.counters

    assert (counters.scored, counters.failed) == (3, 1)
    errors = {row.id: row.error.type for row in kept.evaluations if row.error}
    assert errors == {"1": type(error).__name__}


@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_a_judge_that_meddles_with_the_loop_ends_no_later_call(
    log: pytest.LogCaptureFixture, how: str
) -> None:
    """Every call meets one fate, and `flush` is right about it; those after it are judged."""

    class Meddling(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            if call.call.id in ("2", "11") and how == "stop":
                asyncio.get_running_loop().stop()
            elif call.call.id in ("2", "11"):
                for task in asyncio.all_tasks():
                    task.cancel()
            await asyncio.sleep(0.01)
            return await super().label(call)

    background = judged(20, RagEvaluator(Meddling(LABELS)), [Kept()], max_concurrency=3)
    counters = background.counters

    assert counters.pending == 0
    assert counters.scored + counters.failed == 20
    assert counters.scored >= (20 if how == "stop" else 10)
    assert len(log.records) <= 1


def test_calls_that_wait_as_the_loop_is_cancelled_keep_their_order() -> None:
    """Also those that it had taken from the queue and had not begun to evaluate."""
    began, queued = threading.Event(), threading.Event()

    class Cancelling(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            if call.call.id == "0":
                began.set()
                queued.wait(WAIT)
            elif call.call.id == "1":
                for task in asyncio.all_tasks():
                    task.cancel()
            return await super().label(call)

    judge = Cancelling(LABELS)
    with BackgroundEvaluator(RagEvaluator(judge)) as background:
        background(call(0))
        assert began.wait(WAIT)
        submit(background, range(1, 7))
        queued.set()
        assert background.flush(WAIT)

    assert [asked.call.id for asked in judge.asked][-4:] == ["3", "4", "5", "6"]


def test_a_judge_that_catches_its_cancellation_holds_no_place(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its time, and a second, the call is delivered with an error and the next one begins."""
    monkeypatch.setattr("rag_eval_integrations.background.budget._LAST_STEPS", 0.05)
    heard = threading.Event()

    class Deaf(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            while not heard.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.05)
            raise AssertionError("nobody hears this")

    kept = Kept()
    monkeypatch.setattr(BackgroundEvaluator, "_timeout", 0.05)
    background = BackgroundEvaluator(RagEvaluator(Deaf(LABELS)), [kept], max_concurrency=1)
    submit(background, range(2))
    assert background.flush(WAIT)
    heard.set()
    background.close(WAIT)

    assert background.counters.failed == 2
    assert {e.error.type for e in kept.evaluations if e.error is not None} == {"TimeoutError"}
    assert len(log.records) == 1


def test_a_sink_that_empties_its_batch_is_counted() -> None:
    """What it was given is written, and `flush` ends."""

    class Emptying(Kept):
        def write(self, batch: Sequence[Evaluation]) -> None:
            super().write(batch)
            assert isinstance(batch, list)
            batch.clear()

    kept = Emptying()
    background = judged(5, evaluator(), [kept])

    counts = background.counters.sinks[0]
    assert (len(kept.ids), counts.written, counts.pending) == (5, 5, 0)


def test_a_sink_that_hangs_does_not_hang_close(log: pytest.LogCaptureFixture) -> None:
    """What it holds and what waits for it is said in one line."""
    hanging = Stuck()
    background = BackgroundEvaluator(evaluator(), [hanging])
    background(call(0))
    assert hanging.began.wait(WAIT)

    assert not background.close(0.05)
    hanging.go.set()
    assert [record.getMessage() for record in log.records] == [
        "0 calls were not evaluated and 1 evaluation not written at close"
    ]
