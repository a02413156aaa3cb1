"""`Store`: calls are told apart by their ids, evaluations recorded once, means worked out in SQL."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forked import FORKS, Fork, forked
from processes import until
from runs import call as evaluation_of

from rag_eval_integrations import RagCall, RagEvaluator, record_call
from rag_eval_integrations.errors import ConfigurationError, RagEvalError
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.records import Means, Usage, to_line
from rag_eval_integrations.store import Store, _reading, _worker, database
from rag_eval_integrations.store._worker import StorePermits, Worker
from rag_eval_integrations.store.database import ClaimedCall, Outcome
from rag_eval_integrations.store.spool import SpooledCall
from rag_eval_integrations.testing import ScriptedModel, labels_reply

CALL = RagCall("When does the ferry leave?", ["It leaves at nine."], "At nine.")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(Store(url)) as store:
        yield store


def judged(claimed: ClaimedCall, value: float | str | None = 1.0, **more: Any) -> Outcome:
    """A call that an evaluator by hand has judged."""
    fields = {"fingerprint": "f1", **more}
    evaluation = evaluation_of(claimed.call().id, {"adherence": value, "mrr@3": 0.5}, **fields)
    return Outcome(claimed, "judged", evaluation=evaluation, seconds=0.5)


def claimed_one(store: Store) -> ClaimedCall:
    """A call that was submitted, and that the worker `a` has claimed."""
    store.submit(CALL)
    (claimed,) = store.claim("a", 1)
    return claimed


def test_equal_calls_are_two_rows_each_claimed_by_one_worker(store: Store, url: str) -> None:
    """What a worker holds no other gets, until it has settled it; nothing is recorded twice."""
    with closing(Store(url)) as other:
        uids = {store.submit(CALL), store.submit(CALL), store.submit(CALL)}
        mine, theirs = store.claim("a", 2), other.claim("b", 5)

        assert {claimed.call_uid for claimed in (*mine, *theirs)} == uids
        assert (len(mine), len(theirs)) == (2, 1)
        assert mine[0].call() == CALL
        outcomes = [judged(claimed) for claimed in mine]
        assert len(store.settle(outcomes, "a")) == 2
        assert store.settle(outcomes, "a") == []
        assert other.settle(outcomes, "b") == []
        assert len(list(store.evaluations())) == 2
        assert store.counts() == [("judged", "", 2), ("due", "", 1)]


def test_a_lease_that_ran_out_is_another_workers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker's late result is dropped, and a renewed lease does not run out."""
    monkeypatch.setattr(database, "LEASE", 0.0)
    store.submit(CALL)
    (first,) = store.claim("a", 5)
    (again,) = store.claim("b", 5)
    monkeypatch.setattr(database, "LEASE", 60.0)
    store.renew("b")

    assert store.claim("c", 5) == []
    assert store.settle([judged(first)], "a") == []
    assert len(store.settle([judged(again)], "b")) == 1
    assert again.tries == 2


def test_what_is_tried_in_vain_is_parked_until_it_is_brought_back(store: Store) -> None:
    """With its error; one that is to be tried again is not due before."""
    claimed = claimed_one(store)
    store.settle([Outcome(claimed, "due", "judge: down", wait=1_800.0)], "a")
    assert store.claim("a", 1) == []
    assert store.counts() == [("due", "judge: down", 1)]
    other = store.submit(CALL)
    (claimed,) = store.claim("a", 1)
    assert claimed.call_uid == other
    store.settle([Outcome(claimed, "parked", "a \0 byte")], "a")

    assert ("parked", "a \ufffd byte", 1) in store.counts()
    assert store.retry() == 1
    assert [again.tries for again in store.claim("a", 5)] == [1]


def test_on_postgresql_the_servers_clock_counts(
    postgresql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose clock is a day early takes nobody's lease away."""
    with closing(Store(postgresql.database("clock"))) as store:
        store.submit(CALL)
        assert len(store.claim("a", 1)) == 1
        early = time.time() + 86_400
        monkeypatch.setattr(time, "time", lambda: early)

        assert store.claim("b", 1) == []
        assert store.now() < early - 80_000


def test_means_are_those_of_the_evaluations(store: Store) -> None:
    """By maker, with the same intervals as everywhere, and counts of calls without a value.

    The evaluations read back whole.
    """
    values: list[float | str | None] = [1.0, 0.0, 0.25, 0.5, "no_context", 1.0]
    for _ in values:
        store.submit(CALL)
    outcomes = [judged(c, v) for c, v in zip(store.claim("a", 9), values, strict=True)]
    recorded = store.settle(outcomes, "a")
    means = store.means(0.0)
    by_hand = Means()
    for evaluation in recorded:
        by_hand.add(evaluation)

    assert list(store.evaluations()) == recorded
    assert {period.made.name for period in means} == {"adherence", "mrr@3"}
    for period in means:
        mean: Any = by_hand.mean(period.made.name)
        assert (period.made in by_hand.made, period.total) == (True, len(values))
        assert (period.mean.n, period.mean.mean) == (mean.n, pytest.approx(mean.mean))
        assert period.mean.ci95 == pytest.approx(mean.ci95)
        assert str(period.mean.interval)[12:] == str(mean.interval)[12:]
    began = store.now() - 120
    assert {p.start for p in store.means(began, step=60.0)} == {began + 60.0}
    assert store.means(0.0, began) == []


def test_two_evaluators_are_kept_apart(store: Store) -> None:
    """An evaluation stands once per call and fingerprint, and no mean is of both."""
    claimed = claimed_one(store)
    recorded = store.settle([judged(claimed)], "a")
    second = judged(claimed, 0.0, fingerprint="f2", method="other")
    ((left, latest),) = store.without("f2")

    assert (left.call_uid, [latest]) == (claimed.call_uid, recorded)
    assert len(store.settle([second])) == 1
    assert store.settle([second]) == []
    assert list(store.without("f2")) == []
    assert [(row[0], row[2]) for row in store.evaluators()] == [("by hand", 1)] * 2
    values = [p.mean.mean for p in store.means(0.0) if p.made.name == "adherence"]
    assert sorted(values) == [0.0, 1.0]  # type: ignore[type-var]


def test_failing_calls_costs_and_old_ones(store: Store) -> None:
    """The newest failing first; what is pruned is gone with its scores."""
    for name in ("good", "bad"):
        store.submit(CALL.model_copy(update={"question": name}))
        (claimed,) = store.claim("a", 1)
        more: Any = {"usage": Usage(requests=1, cost_usd=0.25), "metadata": {"name": name}}
        good = name == "good"
        store.settle([judged(claimed, float(good), supported=good, **more)], "a")
    assert [e.metadata["name"] for e in store.evaluations()] == ["good", "bad"]
    assert [e.metadata["name"] for e in store.failing(0.0, 5)] == ["bad"]
    assert store.failing(time.time() + 60, 5) == []
    assert store.spent(0.0) == 0.5
    assert store.prune(time.time() - 3_600) == 0
    assert store.prune(time.time() + 3_600) == 2
    assert list(store.evaluations()) == []
    assert store.means(0.0) == []


def test_evaluations_are_in_the_order_of_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By submission, whatever the order of judging; over pages, and with equal moments."""
    monkeypatch.setattr(_reading, "_PAGE", 2)
    moments = [5.0, 1.0, 3.0, 3.0, 3.0, 2.0, 4.0]
    store.add([SpooledCall(f"{n}", at, to_line(CALL)) for n, at in enumerate(moments)])
    claimed = store.claim("a", 9)
    for call in reversed(claimed):
        store.settle([judged(call, metadata={"at": call.at, "uid": call.call_uid})], "a")

    found = [(row.metadata["at"], row.metadata["uid"]) for row in store.evaluations()]
    assert [at for at, _ in found] == sorted(moments)
    assert {uid for _, uid in found} == {call.call_uid for call in claimed}
    assert [row.metadata["at"] for row in store.evaluations(4.0)] == [4.0, 5.0]


def test_the_last_evaluation_says_whether_a_call_fails(store: Store) -> None:
    """A call that was judged again is in the lists of newest and failing calls once."""
    claimed = claimed_one(store)
    store.settle([judged(claimed, 0.0, supported=False)], "a")
    assert len(store.failing(0.0, 9)) == 1
    store.settle([judged(claimed, 1.0, fingerprint="f2")])

    assert store.failing(0.0, 9) == []
    assert [row.fingerprint for row in store.newest(0.0, 9)] == ["f2"]


def test_redaction_comes_before_anything_is_written(url: str) -> None:
    """As in a spool."""
    hidden = CALL.model_copy(update={"question": "***"})
    with closing(Store(url, redact=lambda call: hidden)) as store:
        store(CALL)

        assert store.claim("a", 1)[0].call().question == "***"


def test_a_failed_redaction_is_told_without_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They may quote what was to be masked; as a target, too, nothing is written of the call."""

    def redact(call: RagCall) -> RagCall:
        raise SystemExit(call.question)

    with closing(Store(tmp_path / "s.db", redact=redact)) as store:
        with pytest.raises(RagEvalError, match=r"^`redact` failed with SystemExit \(test_store"):
            store.submit(CALL)
        record_call(store, question=CALL.question, documents=CALL.documents, response="")

        assert store.claim("a", 1) == []
    assert "Store'> failed with RagEvalError" in caplog.text
    assert CALL.question not in caplog.text


def test_a_file_is_private_and_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """And so is another kind of URL, without its password."""
    with closing(Store(f"sqlite:///{tmp_path / 's.db'}")) as store:
        store.submit(CALL)
        for path in tmp_path.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "text").write_text("no database, but enough text to be none " * 50)
    with pytest.raises(OSError, match=r"text: file is not a database"):
        Store(tmp_path / "text")
    with pytest.raises(ConfigurationError, match=r"use a path, sqlite:///PATH or post") as caught:
        Store("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)
    with pytest.raises(OSError, match=r"(?s)^postgresql://\*\*\*@/x: .*") as failed:
        Store(f"postgresql://me:secret@/x?host={tmp_path}")
    assert "secret" not in str(failed.value)


def test_all_share_one_limit_per_minute(store: Store, url: str) -> None:
    """Starts of two workers are counted together."""
    with closing(Store(url)) as other:
        assert store.take_permit("judge requests", 61.0) == 0.0
        assert 60.0 < other.take_permit("judge requests", 61.0) <= 61.0
        assert other.take_permit("another", 61.0) == 0.0


async def test_a_request_above_the_whole_limit_takes_a_minute(store: Store) -> None:
    """It is started, and the next one waits for that minute to end."""
    permits = StorePermits(store, "judge", None, 6_000)
    await permits.take(1, 9_000)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(permits.take(1, 500), 0.5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
@pytest.mark.parametrize("fork", FORKS)
def test_a_store_made_before_a_fork_loses_no_call_of_the_children(store: Store, fork: Fork) -> None:
    """As with `gunicorn --preload` and uWSGI: each child connects anew."""
    store.submit(CALL)
    children = [forked(lambda: len([store.submit(CALL) for _ in range(9)]), fork) for _ in range(4)]
    assert [child.printed() for child in children] == ["9"] * 4
    store.submit(CALL)

    assert store.counts() == [("due", "", 38)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("fork", FORKS)
def test_a_child_goes_on_when_its_parent_and_others_close(
    store: Store, url: str, fork: Fork
) -> None:
    """SQLite's last user removes the log; a child with the parent's connection would be no user."""
    store.submit(CALL)
    begun, closed = os.pipe(), os.pipe()

    def child() -> int:
        store.submit(CALL)
        os.write(begun[1], b"1")
        os.read(closed[0], 1)
        return len([store.submit(CALL) for _ in range(9)])

    running = forked(child, fork)
    os.read(begun[0], 1)
    store.close()
    with closing(Store(url)) as other:
        other.submit(CALL)
    os.write(closed[1], b"1")
    assert running.printed() == "9"
    for end in (*begun, *closed):
        os.close(end)

    assert store.counts() == [("due", "", 12)]


def test_a_call_whose_lease_ran_out_is_given_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a worker that has nothing else in progress; new calls come first, and without it."""
    monkeypatch.setattr(database, "LEASE", 0.0)
    lapsed = {store.submit(CALL) for _ in range(2)}
    assert len(store.claim("dead", 5)) == 2
    monkeypatch.setattr(database, "LEASE", 60.0)
    new = {store.submit(CALL) for _ in range(3)}

    assert {(call.call_uid, call.lapsed) for call in store.claim("a", 5)} == {
        (uid, False) for uid in new
    }
    assert store.claim("a", 5, busy=True) == []
    alone = [store.claim("b", 5) for _ in range(3)]
    assert [len(calls) for calls in alone] == [1, 1, 0]
    assert {call.call_uid for calls in alone for call in calls if call.lapsed} == lapsed


async def test_a_worker_leaves_a_call_alone_that_it_still_judges(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ran out, as in a long outage of the database: it is not asked about again."""
    monkeypatch.setattr(database, "LEASE", 0.0)
    store.submit(CALL)
    claims, claim = [], store.claim

    def counted(*args: Any, **more: Any) -> list[ClaimedCall]:
        claims.append(args)
        return claim(*args, **more)

    monkeypatch.setattr(store, "claim", counted)

    class Slow(ScriptedModel):
        async def complete(self, request: CompletionRequest) -> Completion:
            await asyncio.to_thread(until, lambda: len(claims) > 2)
            return await super().complete(request)

    model = Slow(lambda _: labels_reply(["0a"], ["a"]))
    worker = Worker(store, RagEvaluator(model))
    await worker.run(once=True)

    assert worker.counts == Counter(judged=1)
    assert len(model.requests) == 1


async def test_a_worker_begins_no_call_beside_one_whose_lease_ran_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that come meanwhile wait: they would end with it, if it ends the worker again."""
    monkeypatch.setattr(_worker, "_POLL", 0.01)
    monkeypatch.setattr(database, "LEASE", 0.0)
    store.submit(CALL)
    store.claim("dead", 1)
    monkeypatch.setattr(database, "LEASE", 60.0)
    rooms: list[int] = []
    asked: list[CompletionRequest] = []

    class Slow(ScriptedModel):
        async def complete(self, request: CompletionRequest) -> Completion:
            asked.append(request)
            if len(asked) == 1:
                store.submit(CALL.model_copy(update={"question": "When does it land?"}))
                seen = len(rooms)
                await asyncio.to_thread(until, lambda: len(rooms) > seen + 2)
                assert len(asked) == 1
            return await super().complete(request)

    worker = Worker(store, RagEvaluator(Slow(lambda _: labels_reply(["0a"], ["a"]))))
    room = worker._room

    def counted() -> int:
        rooms.append(room())
        return rooms[-1]

    monkeypatch.setattr(worker, "_room", counted)
    await worker.run(once=True)

    assert worker.counts == Counter(judged=2)
