"""`rag-eval worker` and `rescore` under faults: nothing acknowledged is lost, nothing recorded twice."""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from ferries import Command
from forked import finished
from loopback import Behaviour, LoopbackServer
from processes import until
from trace_tools import PhoenixService
from trace_tools import running as tools_running

from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.store import Store, _transactions, database
from rag_eval_integrations.testing import labels_reply

from .conftest import PATH, change, fill, in_process, judged, running

LABELS = Behaviour(content=labels_reply(["0a"], ["a"]))

pytestmark = pytest.mark.slow


def asking(server: LoopbackServer) -> list[object]:
    return ["--judge", "openai:m", "--base-url", server.base_url, "--max-concurrency", 4]


def test_calls_of_killed_workers_are_judged_by_the_next(
    store: Store, once: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL at random instants; only what was in flight is asked again, after its lease."""
    seed = random.getrandbits(32)
    instants = random.Random(seed)
    calls, kills, at_once = 120, 3, 4
    with LoopbackServer(LABELS) as server:
        fill(store, calls)
        server.behave(latency=0.05)
        for _ in range(kills):
            before = len(server.requests)
            with running("--store", PATH, *asking(server)) as worker:
                until(lambda: len(server.requests) > before)  # noqa: B023 -- at once
                time.sleep(instants.uniform(0.0, 0.3))
                worker.kill()
                worker.wait()
        server.behave(latency=0.0)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + database.LEASE + 1)
        once(*asking(server), code=0)

        assert list(judged().values()) == [1] * calls, f"seed {seed}"
        assert calls <= len(server.requests) <= calls + kills * at_once, f"seed {seed}"


UNREADABLE = "UPDATE rag_call SET body = '{{\"soon\": 1}}' WHERE id = {}"


@pytest.mark.parametrize(
    ("statements", "code", "said"),
    [
        # The clock, of this machine or of the server, was a day early when the call was claimed.
        (["UPDATE rag_call SET not_before = {now} + 86400, lease_by = 'dead', tries = 1"], 0,
         "1 judged"),
        (["DROP TABLE rag_unsent", "UPDATE rag_schema SET version = 12"], 0, "1 judged"),
        (["UPDATE rag_schema SET version = 99"], 2,
         "was made by a newer version: its schema is 99, this version knows 14; install the newer"),
    ],
    ids=["clock set back", "older schema", "newer schema"],
)  # fmt: skip
def test_a_store_that_another_clock_or_version_wrote(
    url: str, rag_eval: Command, statements: list[str], code: int, said: str
) -> None:
    """Its calls are judged once, or it is left as it is and the message says what to install."""
    with closing(Store(url)) as store:
        fill(store, 1)
        with store._running(writing=True) as run:
            for statement in statements:
                run(statement)
        done = [rag_eval("worker", "--store", url, "--once") for _ in range(2)]

        assert done[0].code == done[1].code == code
        assert said in done[0].err
        assert [row[0] for row in store.counts()] == ["due" if code else "judged"]
        assert len(list(store.evaluations())) == (0 if code else 1)


def test_a_worker_waits_for_a_database_that_was_killed(postgresql: Any) -> None:
    """PostgreSQL by SIGKILL: told once, then all is recorded once; SIGTERM ends the worker."""
    url = postgresql.database("killed")
    with closing(Store(url)) as store, LoopbackServer(LABELS) as server:
        fill(store, 60)
        server.behave(latency=0.05)
        with running("--store", url, *asking(server)) as worker:
            until(lambda: len(server.requests) > 10)
            postgresql.kill()
            asked = len(server.requests)
            until(lambda: len(server.requests) >= asked)
            postgresql.start()
            store.close()  # its connections are of the killed server
            until(lambda: store.counts() == [("judged", "", 60)])
            worker.send_signal(signal.SIGTERM)
            _, said = worker.communicate()

        assert worker.returncode == 0, said
        told = [line for line in said.splitlines() if "tried again every second" in line]
        assert len(set(told)) == len(told) > 0  # lost, then refused or starting up
        assert len(list(store.evaluations())) == 60
        assert "0 parked" in said
        assert 60 <= len(server.requests) <= 64


def test_a_worker_waits_for_room_on_the_disk(store: Store) -> None:
    """Its files may not grow at first: told once, nothing is lost, and it goes on by itself."""
    fill(store, 40)
    size, unlimited = max(each.stat().st_size for each in Path().iterdir()), resource.RLIM_INFINITY
    with running("--store", PATH, "--max-concurrency", 4) as worker:
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (size, unlimited))
        assert worker.stderr is not None
        assert worker.stderr.readline().startswith("Watching ")
        told = worker.stderr.readline()
        assert not all(judged().values())
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        until(lambda: list(judged().values()) == [1] * 40)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate()

    assert told.startswith(f"{PATH}: ")
    assert "tried again every second" in told
    assert "40 judged" in said


def test_what_is_left_out_says_why_and_can_be_judged_later(
    store: Store, rag_eval: Command, once: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample, the budgets and calls whose run failed; `rescore` says first what it would do."""
    rescore = partial(rag_eval, "rescore", "--store", PATH)
    fill(store, 20)
    fill(store, 1, capture={"framework": "plain", "status": "error"})
    once("--sample-rate", "0", code=0)
    fill(store, 5)
    once("--per-minute", "2", "--to", Path("sink.jsonl"))
    assert sorted(store.counts()) == [
        ("judged", "", 2),
        ("left_out", "not in the sample of 0", 20),
        ("left_out", "the app's run ended as error", 1),
        ("left_out", "the limit of 2 evaluations per minute is reached", 3),
    ]
    dry = rescore("--dry-run")
    assert dry.out.startswith("24 calls, ")
    assert "; about " in dry.out
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    foreseen = rescore("--judge", "openai:gpt-4o", "--dry-run")
    assert "about 26 requests" in foreseen.out  # before there is a key
    assert len(list(store.evaluations())) == 2
    assert rescore().out.splitlines()[-1] == "24 evaluations recorded"
    assert store.counts() == [("judged", "", 26)]
    assert len(Path("sink.jsonl").read_text().splitlines()) == 2
    assert "`per_day_usd` = 0.0" in once("--dollars-per-day", "0", code=2).err


def test_a_worker_waits_for_a_file_that_another_program_has_locked(
    store: Store, once: Command, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Told once; what was judged meanwhile is recorded when the file is free again."""
    fill(store, 1)
    locked, settle = OSError(f"{PATH}: database is locked"), Store.settle
    answers = iter([Mock(side_effect=locked)])
    monkeypatch.setattr(Store, "settle", lambda *args: next(answers, settle)(*args))

    assert "1 judged" in once().err
    assert caplog.messages == [f"{locked}; tried again every second, and logged once"]


def test_calls_that_cannot_be_read_or_end_their_workers_are_parked(
    store: Store, rag_eval: Command, once: Command
) -> None:
    """They hold up no others, and `store info` says why."""
    fill(store, 3)
    change("UPDATE rag_call SET tries = 5 WHERE id = 1", UNREADABLE.format(2))
    once()
    shown = rag_eval("store", "info", "--store", PATH).out

    assert "1 tried in vain: its worker ended 5 times as it was judged" in shown
    assert "1 tried in vain: cannot be read: field `question`: is missing" in shown
    assert "1 evaluation by embedded" in shown


def test_a_rescore_goes_on_where_the_judge_failed(
    store: Store, down: Path, rag_eval: Command, once: Command
) -> None:
    """Calls that could not be judged are named, and the same command judges them."""
    fill(store, 3)
    once()
    fill(store, 1)
    change(UNREADABLE.format(4))
    words = ["--store", PATH, "--judge", "own_judge:judge", "--since", "2020-01-01"]
    failed = rag_eval("rescore", *words, code=1)
    assert store.counts() == [("judged", "", 3), ("due", "", 1)]
    down.unlink()
    done = rag_eval("rescore", *words, code=0)

    assert failed.err.count("JudgeUnavailableError") == 3
    assert "FAILED: 3 calls were not judged; the same command tries them again" in failed.err
    assert "how long it takes is not known" in failed.out
    assert "is left out: field `question`: is missing" in failed.err
    assert done.out.splitlines()[-1] == "3 evaluations recorded"


def test_evaluations_go_on_to_the_tools_that_push_knows(
    store: Store, once: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same words, once they are recorded; another word is refused before anything else."""
    traces: Any = {"openinference": ("0af7651916cd43dd8448eb211c80319c", f"{1:016x}")}
    with tools_running(PhoenixService()) as service:
        fill(store, 2, capture={"framework": "langchain", "traces": traces})
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", service.url)
        once("--to", "phoenix", code=0)
        assert len(service.scores) == 2 * len(TRACE_SCORES)
    wrong = once("--to", "pheonix", code=2)
    assert "langsmith, log, a name that ends in .jsonl" in wrong.err


def test_what_a_killed_worker_had_not_sent_is_sent_by_the_next(store: Store, once: Command) -> None:
    """To a file that could not be made at first: each evaluation once."""
    fill(store, 20)
    to = ("--to", Path("later", "sink.jsonl"))
    with running("--store", PATH, *to) as worker:
        assert worker.stderr is not None
        assert worker.stderr.readline().startswith("Watching ")
        assert "sink.jsonl failed: " in worker.stderr.readline()
        until(lambda: store.counts() == [("judged", "", 20)])
        worker.kill()
    Path("later").mkdir()
    once(*to)
    with closing(sqlite3.connect(PATH)) as file, file:  # what was being sent when it was killed
        file.execute("UPDATE rag_unsent SET not_before = 0")
    once(*to)

    rows = [json.loads(line)["id"] for line in Path("later/sink.jsonl").read_text().splitlines()]
    assert len(rows) == len(set(rows)) == 20


def test_the_log_prints_each_evaluation(store: Store) -> None:
    """On stderr, by the command alone."""
    fill(store, 2)
    done = finished(in_process("worker", "--store", PATH, "--once", "--to", "log"), check=True)
    assert len(re.findall("(?m)^call [0-9a-f]+: .*adherence=1.000", done.stderr)) == 2


def test_dollars_per_day_are_those_of_the_store(store: Store, once: Command) -> None:
    """So that a worker that is started again does not begin at 0."""
    with LoopbackServer(LABELS) as server:
        fill(store, 2)
        words = [*asking(server), "--dollars-per-day", "1", "--rpm", "60000"]
        once(*words)
        assert len(server.requests) == 2
        with closing(sqlite3.connect(PATH)) as file:
            permits = file.execute("SELECT name FROM rag_permit").fetchall()
        assert permits == [("openai:m requests",)]
        change("UPDATE rag_evaluation SET usd = 0.5")
        fill(store, 3)
        once(*words)

        assert len(server.requests) == 2
        assert ("left_out", "the budget of 1 USD per day is spent", 3) in store.counts()


def test_two_evaluators_on_one_store_judge_each_call_once(
    store: Store, rag_eval: Command, once: Command
) -> None:
    """Workers share the queue; the second evaluator's view of all is a rescore of chosen calls."""
    other = ["--metrics", "trace,label_retrieval"]
    words = ["--store", PATH, "--max-concurrency", 1]

    def both_have_judged() -> bool:
        fill(store, 1)
        return len(store.evaluators()) == 2

    with running(*words) as first, running(*words, *other) as second:
        until(both_have_judged)
        for worker in (first, second):
            worker.send_signal(signal.SIGTERM)
            assert worker.wait() == 0
    once("--max-concurrency", 1)
    assert set(judged().values()) == {1}
    rescore = partial(rag_eval, "rescore", "--store", PATH, *other, "--where", "adherence=1")
    rescore("--since", "1h")
    assert set(judged().values()) == {1, 2}
    assert rescore().out.startswith("0 calls")


def test_the_store_and_its_options_are_checked_first(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line that names the place: no folder, no room to write, a locked file, a wrong time."""
    monkeypatch.setattr(_transactions, "_BUSY", 0.0)
    once = ("worker", "--once", "--store")
    for where in ("none/e.db", "/proc/e.db"):
        done = rag_eval(*once, where, code=2)
        assert (done.err.count("\n"), where in done.err) == (1, True)
    rag_eval(*once, PATH, "--spool", "spol", code=0)
    assert caplog.messages == [f"the spool {Path('spol').resolve()} does not exist yet"]
    with closing(sqlite3.connect(PATH, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = rag_eval("store", "retry", "--store", PATH, code=2)
    assert locked.err == f"rag-eval: {PATH}: database is locked\n"
    wrong = rag_eval("store", "prune", "--store", PATH, "--older-than", "soon", code=2)
    assert "`--older-than` = 'soon': use a time ago" in wrong.err


def test_evaluations_are_exported_as_evals(store: Store, rag_eval: Command, once: Command) -> None:
    """As lines and as Parquet, which `report` reads; an empty choice says so."""
    fill(store, 3)
    export = partial(rag_eval, "store", "export", "--store", PATH, "-o")
    export(Path("none.jsonl"), code=2)
    assert not Path("none.jsonl").exists()
    once()
    for out in (Path("e.jsonl"), Path("e.parquet")):
        assert export(out).out == f"Wrote 3 evaluations to {out}\n"
        report = rag_eval("report", out, "-o", "-", "--format", "json")
        assert json.loads(report.out)["calls"] == 3
    assert len(export("-", "--where", "adherence=1").out.splitlines()) == 3
    pruned = rag_eval("store", "prune", "--store", PATH, "--older-than", "7d")
    assert pruned.out == "0 calls deleted\n"
