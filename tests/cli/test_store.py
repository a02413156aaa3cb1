"""`rag-eval … --store`: where a store is, and what is told of one that is not there."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from runs import call as evaluation_of

from rag_eval_integrations import RagCall, Spool
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import SpooledCall

_URL = "use postgresql://USER@HOST/NAME"
_ESCAPE = "write it as %40"
_AWAY = "Connection refused"
_PORT = "has a port that is not a number"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("postgresql://u:HUSH@127.0.0.1:1/db", _AWAY),
        ("postgresql://u:HU:SH@127.0.0.1:1/db", _AWAY),
        ("postgresql://u:HU/SH@127.0.0.1:1/db", _AWAY),
        ("postgresql://u:HU SH@127.0.0.1:1/db", _AWAY),
        ("postgresql://u:HU%40SH@127.0.0.1:1/db", _AWAY),
        ("postgresql+psycopg://u:HUSH@127.0.0.1:1/db", _AWAY),
        ("postgresql://127.0.0.1:1/db?user=u&password=HUSH", _AWAY),
        ("postgresql://u:HUSH@127.0.0.1/db?sslmode=HUSH", 'invalid sslmode value: "***"'),
        ("postgresql://127.0.0.1/db?password=HU%2FSH&sslmode=HU/SH", 'sslmode value: "***"'),
        ("postgresql://127.0.0.1/db?passwd=HUSH", 'invalid connection option "passwd"'),
        ("postgresql://u:HU@SH@127.0.0.1:1/db", _ESCAPE),
        ("postgresql://u:HU@SH/HUSH@127.0.0.1:1/db", _ESCAPE),
        ("postgresql://u:HU@SH?HUSH@127.0.0.1:1/db", _ESCAPE),
        ("postgresql://u:HUSH/db", _PORT),
        ("postgresql://u:HUSH@127.0.0.1:port/db", _PORT),
        ("host=127.0.0.1 port=1 user=u password=HU@SH dbname=db", _URL),
        ("user=u password = 'a://HUSH'", _URL),
        ("postgresql//u:HUSH@127.0.0.1/db", _URL),
        ("postgresql:/u:HUSH@127.0.0.1/db", _URL),
        ("u:HUSH@127.0.0.1/db", _URL),
        ("mysql://u:HUSH@127.0.0.1/db", "or postgresql://USER@HOST/NAME"),
    ],
)  # fmt: skip
def test_no_form_of_a_url_shows_its_password(where: str, said: str, rag_eval: Command) -> None:
    """In one line that says what is wrong; and no file has the password as its name."""
    done = rag_eval("store", "info", "--store", where, code=2)

    assert said in done.err
    assert not {part for part in ("HU", "SH") if part in done.err}
    assert done.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_the_environment_names_the_store(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL on the command line stands in the list of processes; the command line wins."""
    for name in ("one.db", "two.db"):
        Store(name).close()
    monkeypatch.setenv("RAG_EVAL_STORE", "one.db")
    assert rag_eval("store", "info", code=0).out.startswith("one.db: ")
    assert rag_eval("store", "info", "--store", "two.db", code=0).out.startswith("two.db: ")
    rag_eval("worker", "--once", code=0)


_READING = [
    "store info",
    "store report -o page.html",
    "store export -o evals.jsonl",
    "store retry",
    "store prune --older-than 7d",
    "store prune --where user=ann",
    "rescore --dry-run",
]


@pytest.mark.parametrize("command", _READING)
def test_reading_makes_no_store(url: str, command: str, rag_eval: Command) -> None:
    """One that is not there is named, on each database; nothing is made."""
    where = "typo.db" if "://" not in url else url
    done = rag_eval(*command.split(), "--store", where, code=2)

    assert done.err.startswith("rag-eval: ")
    assert done.err.endswith("typo.db: no such store\n" if where != url else ": no such store\n")
    assert list(Path().iterdir()) == []
    if where == url:
        with pytest.raises(FileNotFoundError):
            Store(url, create=False)


def test_a_database_of_another_program_stays_as_it_is(rag_eval: Command) -> None:
    """It is no store, whatever is asked of it."""
    with closing(sqlite3.connect("other.db")) as file:
        file.execute("CREATE TABLE mine (x)")
    before = Path("other.db").read_bytes()
    for command in _READING:
        done = rag_eval(*command.split(), "--store", "other.db", code=2)
        assert done.err == "rag-eval: other.db: no such store\n"

    assert Path("other.db").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["other.db"]


def add(store: Store, name: str, at: float, **fields: Any) -> None:
    """Write a call of a person at a moment, its id the name in the store."""
    call = RagCall("When?", ["It leaves at nine."], "At nine.", id=name, **fields)
    store.add([SpooledCall(name, at, to_line(call))])


def judge(store: Store, *sinks: str) -> None:
    """Record an evaluation of each call that is due."""
    outcomes = [
        Outcome(call, "judged", evaluation=evaluation_of(call.call_uid, {"adherence": 0.5}))
        for call in store.claim("w", 100)
    ]
    store.settle(outcomes, "w", sinks)


def test_the_calls_of_a_person_are_deleted(url: str, rag_eval: Command) -> None:
    """Whatever their state, with evaluations, scores and marks; others, and their counts, stay."""
    now = time.time()
    with closing(Store(url)) as store:
        add(store, "judged", now, metadata={"user": "ann"})
        add(store, "of another", now, metadata={"user": "bob"})
        judge(store, "phoenix")
        add(store, "captured", now, capture={"framework": "plain", "metadata": {"user": "ann"}})
        add(store, "other version", now)
        with store._running(writing=True) as run:
            body = json.dumps({"metadata": {"user": "ann", "schema": 9}})
            run("UPDATE rag_call SET body = :body WHERE call_uid = 'other version'", body=body)
        add(store, "old", now - 10 * 86_400, metadata={"user": ["bob", "eve"], "id": "x"})
        add(store, "nobody", now, metadata={})
        prune = ("store", "prune", "--store", url)
        done = rag_eval(*prune, "--where", "metadata.user=ann", code=0)

        assert done.out == "3 calls deleted\n"
        assert "spools" in done.err
        assert "--to, push or export" in done.err
        uids = "SELECT call_uid FROM rag_call ORDER BY id"
        assert [uid for (uid,) in store._read(uids)] == ["of another", "old", "nobody"]
        assert [evaluation.id for evaluation in store.evaluations()] == ["of another"]
        assert store.unsent() == [("phoenix", 1)]
        assert store.means(0.0)[0].total == 1

        assert rag_eval(*prune, "--where", "user=ann", code=0).out == "0 calls deleted\n"
        older = ("--older-than", "7d", "--where", "user=bob")
        assert rag_eval(*prune, *older, code=0).out == "1 call deleted\n"
        assert rag_eval(*prune, "--where", "id=nobody", code=0).out == "1 call deleted\n"
        assert store.counts() == [("judged", "", 1)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say which calls to delete"),
        (["--where", "usr=ann"], "is a field of none of 1 call; did you mean 'user'?"),
        (["--where", "adherence<1"], "calls are chosen by their metadata"),
        (["--where", "pattern=hallucination"], "calls are chosen by their metadata"),
        (["--where", "judge=embedded"], "calls are chosen by their metadata"),
    ],
)
def test_a_choice_of_calls_that_cannot_be_meant_deletes_none(
    words: list[str], said: str, rag_eval: Command
) -> None:
    """In one line."""
    with closing(Store("e.db")) as store:
        add(store, "a", time.time(), metadata={"user": "ann"})
        done = rag_eval("store", "prune", "--store", "e.db", *words, code=2)

        assert said in done.err
        assert store.counts() == [("due", "", 1)]


def test_an_evaluation_of_a_deleted_call_is_not_recorded(url: str) -> None:
    """As of a worker or a `rescore` that was at it."""
    with closing(Store(url)) as store:
        add(store, "a", time.time())
        (claimed,) = store.claim("w", 1)
        outcome = Outcome(claimed, "judged", evaluation=evaluation_of("a", {"adherence": 0.5}))
        store.prune()
        assert store.settle([outcome], "w") == store.settle([outcome]) == []


def test_what_waits_and_what_was_found_is_told(url: str, rag_eval: Command) -> None:
    """Until when, in which spool, for which sink; and the means of the last day."""
    now = time.time()
    with closing(Store(url)) as store:
        add(store, "old", now - 2 * 86_400)
        add(store, "new", now)
        judge(store, "phoenix")
        add(store, "later", now)
        (claimed,) = store.claim("w", 1)
        store.settle([Outcome(claimed, "due", "judge: down", wait=1_800.0)], "w")
        for name in ("in progress", "this one, too"):
            add(store, name, now)
        store.claim("w", 2)
        add(store, "due", now)
    with closing(Spool("spool")) as spool:
        spool.submit(RagCall("When?", ["At nine."], "At nine."))
    Path("spool/1.damaged").touch()
    info = ("store", "info", "--store", url)
    lines = rag_eval(*info, "--spool", "spool", code=0).out.splitlines()

    clock = r"\d\d:\d\d:\d\d UTC"
    for line in [
        "  of those waiting, 1 due now",
        f"  of those waiting, 2 in progress until {clock} at most",
        f"  of those waiting, 1 to be tried again, from {clock} to {clock}",
        "  2 evaluations not sent to phoenix yet",
        "  last day: adherence, mean 0.500, 1 of 1 scored",
        "  spool: 1 file; 1 put aside",
    ]:
        assert [each for each in lines if re.fullmatch(line, each)], (line, lines)
    missing = rag_eval(*info, "--spool", "spol", code=2)
    assert missing.err == "rag-eval: spol: no such spool\n"
    assert not Path("spol").exists()
