"""`rag-eval worker` and judges that hang, end the process, or cannot be reached."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from ferries import Command
from processes import until

from rag_eval_integrations import RagCall
from rag_eval_integrations.store import Store, _outage, _worker, database

from .conftest import PATH, change, judged, running

pytestmark = pytest.mark.slow

JUDGE = """
import asyncio, os, threading, time
from pathlib import Path
from rag_eval_integrations.errors import JudgeUnavailableError
from rag_eval_integrations.judges import EmbeddedJudge

at_once, seen = [], []

class Own:
    name, version = "own", "1"
    async def label(self, call):
        at_once.append(call)
        seen.append(len(at_once))
        await asyncio.sleep(0)
        at_once.pop()
        words = call.call.question.split()
        if "end" in words:
            os._exit(9)
        if "block" in words:
            time.sleep(600)
        down = Path("down")
        if "fail" in words or down.exists() and len(seen) <= int(down.read_text()):
            raise JudgeUnavailableError("the model is down")
        await asyncio.to_thread(threading.Event().wait, 600 if "hang" in words else 0)
        return await EmbeddedJudge().label(call)

judge = Own()
"""
DOWN = Path("down")
"""How many calls fail, if it is there."""


@pytest.fixture(autouse=True)
def _own_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "own_judge", raising=False)
    Path("own_judge.py").write_text(JUDGE)


OWN = ("--judge", "own_judge:judge")


def ask(store: Store, *words: str) -> list[str]:
    """Submit calls whose questions tell the judge what to do; return their ids."""
    return [
        store.submit(RagCall(f"When does {n} {word} ?", ["It leaves at nine."], "At nine."))
        for n, word in enumerate(words)
    ]


@contextmanager
def hurried_by(settings: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own, with other constants."""
    first = "from rag_eval_integrations.store import _outage, _worker\n"
    first += f"from rag_eval_integrations.cli import worker\n{settings}"
    with running("--store", PATH, *OWN, *words, first=first) as process:
        yield process


def states() -> dict[str, tuple[str, int, str | None]]:
    """State, tries and holder of each call, by its id."""
    with closing(sqlite3.connect(PATH)) as file:
        rows = file.execute("SELECT call_uid, state, tries, lease_by FROM rag_call").fetchall()
    return {uid: tuple(rest) for uid, *rest in rows}


def test_a_judge_whose_threads_hang_costs_its_own_calls_alone(store: Store) -> None:
    """More than asyncio has threads for: the others are judged, and SIGTERM gives them back."""
    hung, sound = ask(store, *["hang"] * 12), ask(store, *["leave"] * 40)
    with hurried_by("_worker._GRACE = 0.5") as worker:
        until(lambda: sum(state[0] == "judged" for state in states().values()) == 40)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=100)

    assert worker.returncode == 0, said
    assert "40 judged, 0 left out, 12 to be tried again" in said
    assert {uid: states()[uid] for uid in hung} == dict.fromkeys(hung, ("due", 0, None))
    assert {uid: judged()[uid] for uid in sound} == dict.fromkeys(sound, 1)


def test_a_call_that_exceeds_its_time_gives_its_place_to_another(store: Store) -> None:
    """It is counted, uses a try, and its thread does not keep the process from ending."""
    hung = ask(store, *["hang"] * 4)
    ask(store, *["leave"] * 6)
    with hurried_by("_worker._TIMEOUT = 0.5", "--once", "--max-concurrency", 4) as worker:
        _, said = worker.communicate(timeout=100)

    assert worker.returncode == 0, said
    assert "6 judged" in said
    assert "calls had no result in time; what the judge began for them was left" in said
    assert {states()[uid][0] for uid in hung} == {"due"}


def test_judges_that_hang_in_all_of_their_threads_do_not_stop_the_work_with_the_store(
    store: Store,
) -> None:
    """New calls are claimed, and what was claimed is given back."""
    (first,) = ask(store, "hang")
    settings = "_worker._JUDGE_THREADS = 1; _worker._GRACE = 0.5; worker._LAST = 600.0"
    with hurried_by(settings) as worker:
        until(lambda: states()[first][1])
        (second,) = ask(store, "leave")
        until(lambda: states()[second][1])
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=100) == 0
    assert states() == dict.fromkeys((first, second), ("due", 0, None))


@pytest.mark.parametrize(("word", "again", "code"), [("hang", True, 143), ("block", False, 1)])
def test_sigterm_ends_the_worker_whatever_hangs(
    store: Store, word: str, again: bool, code: int
) -> None:
    """A second one at once; the first one soon, even where the judge blocks the event loop."""
    (uid,) = ask(store, word)
    last = 600.0 if again else 0.5
    with hurried_by(f"_worker._GRACE = 600.0; worker._LAST = {last}") as worker:
        until(lambda: states()[uid][1])
        worker.send_signal(signal.SIGTERM)
        assert worker.stderr is not None
        assert any("Finishing" in line for line in worker.stderr)
        if again:
            worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=100) == code


def test_of_calls_that_were_judged_beside_a_deadly_one_only_that_is_parked(
    store: Store, once: Command, rag_eval: Command
) -> None:
    """What a worker that ended held is tried alone; its id is told, and brings it alone back."""
    deadly, *sound = ask(store, "end", *["leave"] * 20)
    sound.pop()
    change("UPDATE rag_call SET state = 'parked' WHERE id = 21")
    codes = []
    for _ in range(database.TRIES + 1):
        change("UPDATE rag_call SET not_before = 0")  # the lease is over
        with running("--store", PATH, "--once", *OWN) as worker:
            codes.append(worker.wait(timeout=100))

    assert codes == [9] * database.TRIES + [0]
    assert {states()[uid][0] for uid in sound} == {"judged"}
    why = f"its worker ended 5 times as it was judged (id {deadly})"
    assert f"1 tried in vain: {why}" in rag_eval("store", "info", "--store", PATH).out
    retry = partial(rag_eval, "store", "retry", "--store", PATH)
    assert "`--id` = 'none': is not a parked call" in retry("--id", "none", code=2).err
    assert retry("--id", deadly, code=0).out == "1 call is due again\n"
    assert states()[deadly][:2] == ("due", 0)
    assert retry(code=0).out == "1 call is due again\n"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of seconds instead of minutes."""
    monkeypatch.setattr(_worker, "_POLL", 0.01)
    monkeypatch.setattr(_worker, "PATIENCE", 0.05)
    monkeypatch.setattr(_outage, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(_outage, "_LONGEST_PAUSE", 0.02)


def test_a_judge_that_cannot_be_reached_uses_up_no_tries(
    store: Store, once: Command, hurried: None, caplog: pytest.LogCaptureFixture
) -> None:
    """However often the worker comes: it says so once each time, and the calls wait."""
    ask(store, *["leave"] * 3)
    DOWN.write_text("1000000")
    for _ in range(database.TRIES + 2):
        caplog.clear()
        done = once(*OWN, code=1)
        assert "FAILED: the judge could not be reached; 3 calls wait" in done.err
        assert caplog.text.count("the judge cannot be reached (judge: JudgeUnavailableError") == 1
    assert {state[:2] for state in states().values()} == {("due", 0)}
    DOWN.unlink()

    assert "3 judged" in once(*OWN, code=0).err
    assert list(judged().values()) == [1] * 3


def test_a_judge_that_comes_back_was_asked_with_one_call_at_a_time(
    store: Store, once: Command, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then has all of them, with as many at once as before."""
    monkeypatch.setattr(_worker, "PATIENCE", 600.0)
    ask(store, *["leave"] * 12)
    DOWN.write_text("10")
    done = once(*OWN, "--max-concurrency", 4, code=0)

    seen = sys.modules["own_judge"].seen
    assert "12 judged, 0 left out, 0 to be tried again" in done.err
    assert seen[:10] == [1, 2, 3, 4, *[1] * 6]
    assert max(seen[10:]) > 1


def test_while_others_are_answered_a_call_that_fails_uses_its_tries(
    store: Store, once: Command, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is parked after five, however healthy the judge is."""
    (failing,) = ask(store, "fail")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    said = []
    for pause in (1.0, *database.BACKOFF, 1.0):
        ask(store, "leave")
        said.append(once(*OWN, "--max-concurrency", 1).err)
        now += pause + 1

    assert states()[failing][:2] == ("parked", database.TRIES)
    assert sum(judged().values()) == len(said)


def test_calls_that_wait_too_long_for_a_judge_are_parked(
    store: Store, once: Command, hurried: None, rag_eval: Command
) -> None:
    """With that reason, and brought back they are judged, whatever their age."""
    ask(store, *["leave"] * 2)
    change("UPDATE rag_call SET at = at - 7200 WHERE id = 1")
    DOWN.write_text("1000000")
    once(*OWN, "--max-age", "1h", code=1)
    why = "older than --max-age, and the judge cannot be reached: judge: JudgeUnavailableError"
    shown = rag_eval("store", "info", "--store", PATH).out
    assert f"1 tried in vain: {why}" in shown
    assert "1 waiting: judge: JudgeUnavailableError" in shown
    DOWN.unlink()
    rag_eval("store", "retry", "--store", PATH, code=0)

    assert "2 judged" in once(*OWN, "--max-age", "1h", code=0).err
    assert "`--max-age` = 'soon': use a time ago" in once("--max-age", "soon", code=2).err


def test_a_worker_says_what_it_watches_and_what_waits_and_ends_a_pause_at_once(
    store: Store,
) -> None:
    """At its start, and once a minute as long as calls wait."""
    ask(store, *["leave"] * 2)
    DOWN.write_text("1000000")
    settings = "_worker._STATUS = 0.1; _outage._FIRST_PAUSE = _outage._LONGEST_PAUSE = 600.0"
    with hurried_by(settings, "--spool", "spool") as worker:
        assert worker.stderr is not None
        assert worker.stderr.readline() == f"Watching e.db, {Path('spool').resolve()}; judge own.\n"
        waits = "2 calls wait: 2 judge: JudgeUnavailableError: the model is down\n"
        assert any(line == waits for line in worker.stderr)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=100) == 0
