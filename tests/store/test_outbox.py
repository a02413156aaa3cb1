"""`Outbox`: each evaluation is marked until its sink has it, whoever is killed or away meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
from processes import until
from runs import call as evaluation_of

from rag_eval_integrations import RagCall
from rag_eval_integrations._visible import LogOnce, logger_of
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks.sink import PartlyWrittenError
from rag_eval_integrations.store import Store, _outbox
from rag_eval_integrations.store._outbox import Outbox
from rag_eval_integrations.store.database import Outcome

CALL = RagCall("When does the ferry leave?", ["It leaves at nine."], "At nine.")


class Place:
    """A sink that keeps the ids that it took, and fails as it is told."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.batches = 0
        self.fail: Callable[[Sequence[Evaluation]], object] = lambda batch: None

    def write(self, batch: Sequence[Evaluation]) -> None:
        self.batches += 1
        self.fail(batch)
        self.ids += [evaluation.id for evaluation in batch]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(Store(url)) as store:
        yield store


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_outbox, "_POLL", 0.01)
    monkeypatch.setattr(_outbox, "pause_after", lambda failures: 0.01)


def judge(store: Store, count: int, *sinks: str) -> list[str]:
    """Record evaluations with marks, and return their ids."""
    for _ in range(count):
        store.submit(CALL)
    claimed = store.claim("a", count)
    ids = [f"id{call.id}" for call in claimed]
    outcomes = [
        Outcome(call, "judged", evaluation=evaluation_of(name, {"adherence": 1.0}))
        for call, name in zip(claimed, ids, strict=True)
    ]
    store.settle(outcomes, "a", sinks)
    return sorted(ids)


def sent(store: Store, *places: Place, name: str = "here") -> None:
    """Send to sinks of one name, as several workers do, until nothing is due."""
    failures = LogOnce(logger_of("rag_eval_integrations.store"))
    _outbox.end([Outbox(store, name, place, failures) for place in places], 60.0)


def marks(store: Store) -> list[tuple[str, int]]:
    return sorted(map(tuple, store._read("SELECT sink, count(*) FROM rag_unsent GROUP BY sink")))


def test_each_sink_has_each_evaluation_once(store: Store) -> None:
    """Two workers with one sink share its marks; those of a sink that nobody has wait."""
    ids = judge(store, 120, "here", "there")
    mine, theirs = Place(), Place()
    sent(store, mine, theirs)

    assert sorted(mine.ids + theirs.ids) == ids
    assert marks(store) == [("there", 120)]
    sent(store, mine, name="there")
    assert marks(store) == []
    assert len(mine.ids + theirs.ids) == 240


def test_all_that_is_due_is_sent_at_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was recorded since the last look, in as many batches as it takes."""
    monkeypatch.setattr(_outbox, "_POLL", 60.0)
    first = judge(store, 1, "here")
    place = Place()
    outbox = Outbox(store, "here", place, LogOnce(logger_of("rag_eval_integrations.store")))
    until(lambda: not marks(store))
    ids = judge(store, 120, "here")
    _outbox.end([outbox], 60.0)

    assert sorted(place.ids) == sorted(first + ids)


def test_what_a_sink_left_waits_and_the_others_go_on(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Ever longer, and after twelve times until `retry`; told, with the reason."""
    ids = judge(store, 3, "here")
    place = Place()

    def leave_first(batch: Sequence[Evaluation]) -> None:
        place.ids += [evaluation.id for evaluation in batch[1:]]
        raise PartlyWrittenError(batch[:1], ValueError("no such trace"))

    place.fail = leave_first
    sent(store, place)
    assert place.ids == ids[1:]
    waits = "SELECT tries, not_before - {now} FROM rag_unsent"
    ((tries, left),) = store._read(waits)
    assert (tries, left > 1) == (1, True)
    with store._running(writing=True) as run:
        run("UPDATE rag_unsent SET tries = 11, not_before = 0")
    sent(store, place)
    sent(store, place)
    assert place.batches == 2
    place.fail = lambda batch: None
    store.retry()
    sent(store, place)

    assert sorted(place.ids) == ids
    assert set(caplog.messages) == {
        "sink here failed: 1 not written: ValueError: no such trace; "
        "what it did not take is kept in the store and sent again"
    }


def test_a_sink_that_is_down_gets_all_when_it_is_back(store: Store) -> None:
    """However often it fails: no try of an evaluation is used up."""
    ids = judge(store, 3, "here")
    place, failures = Place(), LogOnce(logger_of("rag_eval_integrations.store"))

    def be_down(batch: Sequence[Evaluation]) -> None:
        raise ConnectionError("refused")

    place.fail = be_down
    outbox = Outbox(store, "here", place, failures)
    until(lambda: place.batches > 20)
    place.fail = lambda batch: None
    until(lambda: not marks(store))
    _outbox.end([outbox], 60.0)

    assert place.ids == ids
    assert failures.count >= 20


def test_what_a_killed_worker_was_sending_is_sent_after_the_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before: it may be alive."""
    ids = judge(store, 3, "here")
    hanging, released = Place(), threading.Event()
    hanging.fail = lambda batch: released.wait()
    failures = LogOnce(logger_of("rag_eval_integrations.store"))
    stuck = Outbox(store, "here", hanging, failures)
    until(lambda: hanging.batches)
    successor = Place()
    sent(store, successor)
    assert successor.ids == []
    with store._running(writing=True) as run:
        run("UPDATE rag_unsent SET not_before = not_before - :lease", lease=_outbox._LEASE)
    sent(store, successor)
    released.set()
    _outbox.end([stuck], 60.0)

    assert successor.ids == ids


def test_a_line_of_an_earlier_version_is_kept_and_told(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """It holds up no others."""
    ids = judge(store, 2, "here")
    with store._running(writing=True) as run:
        run("UPDATE rag_evaluation SET line = '{{\"schema\": 1}}' WHERE id = 1")
    place = Place()
    sent(store, place)

    assert place.ids == ids[1:]
    assert marks(store) == [("here", 1)]
    assert "sink here failed: " in caplog.text


def test_a_batch_that_a_sink_took_is_not_sent_again_as_the_database_was_away(
    postgresql: Any,
) -> None:
    """The marks are removed when it is back."""
    with closing(Store(postgresql.database("outbox"))) as store:
        ids = judge(store, 3, "here")
        place, failures = Place(), LogOnce(logger_of("rag_eval_integrations.store"))
        place.fail = lambda batch: postgresql.make_read_only("outbox", True)
        outbox = Outbox(store, "here", place, failures)
        until(lambda: failures.count > 3)
        postgresql.make_read_only("outbox", False)
        until(lambda: not marks(store))
        _outbox.end([outbox], 60.0)

        assert place.ids == ids
