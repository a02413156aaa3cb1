"""Handing in calls: sampling, skipping, the full queue, and that nothing is ever raised."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from typing import Any

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.background import Budget, Counters
from rag_eval_integrations.background._worker import WhenFull
from rag_eval_integrations.background.budget import chosen
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.sinks import CallbackSink

from .conftest import WAIT, Kept, busy, call, evaluator, judged, submit


def test_every_call_is_evaluated_and_delivered_off_the_apps_thread() -> None:
    """Scores reach every sink once, in another thread, and the counts add up."""
    kept, also = Kept(), Kept()
    sinks: Any = (sink for sink in (kept, also))  # read once: a check of them leaves none out
    background = judged(20, evaluator(), sinks)

    counters = background.counters
    assert (counters.captured, counters.scored, counters.pending) == (20, 20, 0)
    assert sorted(kept.ids, key=int) == [str(number) for number in range(20)]
    assert sorted(also.ids) == sorted(kept.ids)
    assert kept.evaluations[0].scores["adherence"].value == 1.0
    assert len(kept.threads) == 1
    assert threading.get_ident() not in kept.threads


def test_only_calls_that_ended_well_are_judged() -> None:
    """A call that failed, was aborted or interrupted is counted as skipped."""
    statuses = (None, "ok", "error", "aborted", "interrupted")
    with BackgroundEvaluator(evaluator()) as background:
        for number, status in enumerate(statuses):
            background(call(number, status))
        assert background.flush(WAIT)

        counters = background.counters
    assert (counters.scored, counters.skipped) == (2, 3)
    reasons = [counters.not_judged[name] for name in ("run_failed", "aborted", "interrupted")]
    assert reasons == [1, 1, 1]


def test_what_is_no_call_is_counted_and_logged_once_a_kind(log: pytest.LogCaptureFixture) -> None:
    """Nothing is raised into the app."""
    with BackgroundEvaluator(evaluator()) as background:
        for wrong in (None, "text", 3, None, "text"):
            background.submit(wrong)  # type: ignore[arg-type]  # the point

        assert background.counters.failed == 5
    assert len(log.records) == 3


def test_a_process_without_threads_to_spare_is_no_failure_of_the_app(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    """The call is counted as failed; the next one tries again."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with BackgroundEvaluator(evaluator()) as background:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            background(call(0))
        background(call(1))
        assert background.flush(WAIT)

        assert (background.counters.failed, background.counters.scored) == (1, 1)
    assert len(log.records) == 1


@pytest.mark.parametrize("rate", [lambda call: 2.0, lambda call: 1 / 0, lambda call: None])
def test_a_broken_sample_rate_is_counted(rate: object, log: pytest.LogCaptureFixture) -> None:
    """Not raised, and the call is not judged at an unknown weight."""
    with BackgroundEvaluator(evaluator(), sample_rate=rate) as background:  # type: ignore[arg-type]
        submit(background, range(2))

        assert background.counters.failed == 2
    assert len(log.records) == 1


def test_sampling_is_decided_by_the_id_alone() -> None:
    """The same in another evaluator; a lower rate takes a part of what a higher one takes."""
    taken = []
    for rate in (0.3, 0.3, 0.6):
        kept = Kept()
        background = judged(200, evaluator(), [kept], sample_rate=rate)
        counters = background.counters
        assert counters.sampled_out + counters.scored == 200
        taken.append(set(kept.ids))

    assert taken[0] == taken[1]
    assert taken[0] < taken[2]


@pytest.mark.parametrize("make", [str, lambda n: f"{n:016x}", lambda n: f"user-{n}\ud800"])
def test_sampling_is_unbiased(make: object) -> None:
    """Of 5,000 ids of any form the wanted share is taken, within 4.5 standard deviations."""
    for rate in (0.0, 0.01, 0.25, 0.9, 1.0):
        taken = sum(chosen(make(number), rate) for number in range(5_000))  # type: ignore[operator]

        assert abs(taken - 5_000 * rate) <= 4.5 * (5_000 * rate * (1 - rate)) ** 0.5


@pytest.mark.parametrize(("when_full", "left"), [("drop_newest", "123"), ("drop_oldest", "345")])
def test_a_full_queue_drops_and_counts(when_full: WhenFull, left: str) -> None:
    """The newest or the oldest of what waits; never what is being evaluated."""
    gate, kept, background = busy(max_pending=3, when_full=when_full)
    submit(background, range(1, 6))

    assert (background.counters.dropped, background.counters.pending) == (2, 4)
    gate.open.set()
    assert background.close(WAIT)
    assert kept.ids == ["0", *left]


def test_a_full_queue_blocks_when_told_to() -> None:
    """The app waits for room, and nothing is dropped."""
    gate, kept, background = busy(max_pending=1, when_full="block")
    background(call(1))
    with ThreadPoolExecutor() as threads:
        app = threads.submit(background, call(2))
        assert not wait([app], 0.1).done
        gate.open.set()
        app.result(WAIT)
    assert background.close(WAIT)

    assert kept.ids == ["0", "1", "2"]
    assert background.counters.dropped == 0


def test_many_threads_may_submit_at_once() -> None:
    """Every call is in exactly one count."""
    background = BackgroundEvaluator(evaluator(), max_pending=50, sample_rate=0.8)
    with ThreadPoolExecutor(8) as threads:
        for k in range(8):
            threads.submit(submit, background, range(100 * k, 100 * (k + 1)))
    assert background.close(WAIT)

    c = background.counters
    assert (c.captured, c.pending) == (800, 0)
    assert c.sampled_out + c.dropped + c.scored == 800


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sample_rate", 1.5), ("max_pending", 0), ("max_concurrency", True), ("when_full", "wait"),
        ("sinks", [print]), ("sinks", [CallbackSink]), ("sinks", CallbackSink(print)),
        ("sinks", "evals.jsonl"),
        ("exit_grace", -1), ("on_sigterm", True), ("keep", -1), ("evaluator", RagEvaluator),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_at_construction(field: str, value: object) -> None:
    """With the argument's name; a path in place of sinks is shown whole, not by its first letter."""
    words = " = 'evals.jsonl': use a list of sinks" if value == "evals.jsonl" else ""
    with pytest.raises(ConfigurationError, match=f"`{field}`{words}"):
        BackgroundEvaluator(**{"evaluator": evaluator(), field: value})  # type: ignore[arg-type]


def test_a_call_that_is_dropped_says_why(log: pytest.LogCaptureFixture) -> None:
    """A full queue is something to set; a closed evaluator something to look for in the app."""
    gate, _, background = busy(max_pending=1)
    submit(background, (1, 2))
    gate.open.set()
    background.close(WAIT)
    background(call(3))

    counters, begin = background.counters, "background evaluation dropped a call: "
    assert counters.dropped == 2
    assert (counters.not_judged["queue_full"], counters.not_judged["closed"]) == (1, 1)
    for record, why in zip(log.records, ("its queue is full", "it is closed"), strict=True):
        assert record.getMessage().startswith(begin + why)


def test_every_call_that_is_not_judged_has_a_reason() -> None:
    """Sample, budget and missing documents are told apart, and every reason is always there."""
    limits: Any = {
        "budget": Budget(per_minute=1),
        "sample_rate": lambda call: float(call.id != "0"),
    }
    silent = RagCall("Question?", (), "It is so.")
    with BackgroundEvaluator(evaluator(), **limits) as background:
        for submitted in (silent, call(1), call(0)):
            background(submitted)
            assert background.flush(WAIT)
        counters = background.counters

    assert sum(counters.not_judged.values()) == counters.captured == 3
    assert {reason for reason, calls in counters.not_judged.items() if calls} == {
        "no_documents", "over_budget", "sampled_out",
    }  # fmt: skip
    assert (counters.unscored, counters.over_budget, counters.sampled_out) == (1, 1, 1)
    assert Counters(**asdict(counters)) == counters
