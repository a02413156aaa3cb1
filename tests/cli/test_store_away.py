"""`rag-eval worker` and a database that fails over: it is waited for, told once, nothing is lost."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from ferries import LABELS, Command
from loopback import LoopbackServer
from processes import until

from rag_eval_integrations.cli import worker as worker_command
from rag_eval_integrations.store import Store, _worker
from rag_eval_integrations.store._failures import UnavailableError
from rag_eval_integrations.store.database import Outcome

from .conftest import fill, running
from .test_worker import asking

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(LABELS) as server:
        server.behave(latency=0.05)
        yield server


def tells(worker: Any, words: str) -> None:
    """Read what a worker tells until it says so."""
    while words not in (line := worker.stderr.readline()):
        assert line, "it ended"


def ended(worker: Any) -> list[str]:
    """End a worker, and return the further lines that told of the database."""
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate()
    assert worker.returncode == 0, said
    return [line for line in said.splitlines() if "tried again every second" in line]


@pytest.mark.parametrize("begins", ["at the start", "as it works"])
def test_a_worker_waits_while_the_database_is_read_only(
    postgresql: Any, server: LoopbackServer, begins: str
) -> None:
    """As after a failover to a standby; told once, whatever statement it is."""
    url = postgresql.database(name := f"standby{len(begins)}")
    with closing(Store(url)) as store:
        fill(store, 30)
        postgresql.make_read_only(name, begins == "at the start")
        with running("--store", url, *asking(server)) as worker:
            if begins == "as it works":
                until(lambda: len(server.requests) > 10)
                postgresql.make_read_only(name, True)
            tells(worker, "in a read-only transaction; tried again every second")
            postgresql.make_read_only(name, False)
            until(lambda: store.counts() == [("judged", "", 30)])
            told = ended(worker)

        assert not [line for line in told if "read-only" in line]
        assert len(list(store.evaluations())) == 30


def test_a_worker_that_is_started_before_its_database_waits_for_it(
    postgresql: Any, server: LoopbackServer
) -> None:
    """Of a server that is stopped at once, recovering and back: told once per kind."""
    url = postgresql.database("late")
    with closing(Store(url)) as store:
        fill(store, 20)
    postgresql.stop()
    with running("--store", url, *asking(server)) as worker:
        tells(worker, "tried again every second, and logged once")
        postgresql.start()
        with closing(Store(url)) as store:
            until(lambda: store.counts() == [("judged", "", 20)])
        assert ended(worker) == []


def test_a_disk_that_is_full_is_waited_for(postgresql: Any, server: LoopbackServer) -> None:
    """Its server answers, and takes nothing: told by its SQLSTATE, whatever the words."""
    url = postgresql.database("full")
    with closing(Store(url)) as store:
        fill(store, 20)
        postgresql.execute(
            "CREATE SEQUENCE tries",
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'file %: "
            "No space left on device', nextval('tries') USING ERRCODE = '53100'; END$$",
            "CREATE TRIGGER no_room BEFORE INSERT ON rag_evaluation EXECUTE FUNCTION no_room()",
            database="full",
        )
        with running("--store", url, *asking(server)) as worker:
            tells(worker, "No space left on device; tried again")
            until(lambda: store._read("SELECT last_value FROM tries")[0][0] > 2)
            postgresql.execute("DROP TRIGGER no_room ON rag_evaluation", database="full")
            until(lambda: store.counts() == [("judged", "", 20)])
            assert ended(worker) == []


def test_what_does_not_answer_is_waited_for_and_named_once(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`--once` waits for a minute, then exits with 1: no such host, a refused port, a silent one."""
    monkeypatch.setattr(worker_command, "PATIENCE", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for where, said in [
            ("postgresql://u@no-host.invalid/rag", "failed to resolve host 'no-host.invalid'"),
            ("postgresql://u@127.0.0.1:1/rag", "Connection refused"),
            (f"postgresql://u@127.0.0.1:{port}/rag?connect_timeout=2", "connection timeout"),
        ]:
            caplog.clear()
            done = rag_eval("worker", "--store", where, "--once", code=1)
            assert said in done.err
            assert done.err.count("\n") == 1
            assert [said in line for line in caplog.messages] in ([True], [])


def test_what_the_server_refuses_ends_the_worker(postgresql: Any, rag_eval: Command) -> None:
    """In one line, with 2: no such database, no such user, a wrong password or none, no right."""
    url = postgresql.database("guarded")
    guest = url.replace("tester", "guest")
    postgresql.ask_for_password("guest", "right")
    for where, said in [
        (url.replace("guarded", "absent"), 'database "absent" does not exist'),
        (url.replace("tester", "nobody_here"), 'role "nobody_here" does not exist'),
        (guest, "no password supplied"),
        (guest.replace("guest", "guest:wrong"), 'password authentication failed for user "guest"'),
        (guest.replace("guest", "guest:right"), "permission denied for schema public"),
    ]:
        done = rag_eval("worker", "--store", where, "--once", code=2)
        assert said in done.err
        assert "right" not in done.err
        assert done.err.count("\n") == 1


def test_a_database_that_is_away_for_long_ends_a_worker_that_ends_by_itself(
    postgresql: Any, rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it goes away as the worker works."""
    monkeypatch.setattr(_worker, "PATIENCE", 0.0)
    url = postgresql.database("leaving")
    with closing(Store(url)) as store:
        fill(store, 1)
        claim = Store.claim

        def claim_once(*args: Any, **more: Any) -> Any:
            claimed = claim(*args, **more)
            postgresql.make_read_only("leaving", True)
            return claimed

        monkeypatch.setattr(Store, "claim", claim_once)
        done = rag_eval("worker", "--store", url, "--once", code=1)
        assert "cannot execute UPDATE in a read-only transaction\n" in done.err
        postgresql.make_read_only("leaving", False)


def test_two_that_lock_rows_crosswise_are_both_served(postgresql: Any) -> None:
    """Renewing and settling lock in one order; one that a server ends for another is repeated."""
    url = postgresql.database("crosswise")
    with closing(Store(url)) as store:
        fill(store, 40)
        claimed = store.claim("a", 40)[::-1]
        renewing = threading.Event()

        def renew() -> None:
            while not renewing.is_set():
                store.renew("a")

        thread = threading.Thread(target=renew)
        thread.start()
        in_order = "SELECT id FROM rag_call ORDER BY id FOR UPDATE"
        try:
            for _ in range(50):
                store.settle([Outcome(call, "due") for call in claimed], "a")
                with store._running(writing=True) as run:
                    run(f"UPDATE rag_call SET lease_by = 'a' WHERE id IN ({in_order})")
        finally:
            renewing.set()
            thread.join()
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'crosswise'"
        assert store._read(deadlocks)[0][0] == 0

        with store._running(writing=True) as run:  # an administrator's, the other way round
            run("SET LOCAL deadlock_timeout = '1min'")
            run("UPDATE rag_call SET tries = 1 WHERE id = 2")
            settling = threading.Thread(
                target=store.settle, args=([Outcome(call, "parked") for call in claimed], "a")
            )
            settling.start()
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            until(lambda: store._read(waiting))
            run("UPDATE rag_call SET tries = 1 WHERE id = 1")
        settling.join()
        assert store.counts() == [("parked", "", 40)]
        until(lambda: store._read(deadlocks)[0][0] == 1)


@pytest.mark.parametrize("state", ["08006", "25006", "40P01", "53200", "55P03", "57P03", "58030"])
def test_failures_that_pass_are_told_apart_by_their_state(postgresql: Any, state: str) -> None:
    """And not by their words, which hold numbers of processes."""
    url = postgresql.database(f"state{state.lower()}")
    raised = f"DO $$BEGIN RAISE 'process 7' USING ERRCODE = '{state}', DETAIL = '8'; END$$"
    with closing(Store(url)) as store, pytest.raises(UnavailableError) as failed:
        store._read(raised)
    assert failed.value.kind == state
    assert str(failed.value).endswith(f"/state{state.lower()}: process 7")
