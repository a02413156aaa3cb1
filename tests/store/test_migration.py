"""A store that an earlier version made is brought up to date in place, with all that it holds."""

from __future__ import annotations

import hashlib
from contextlib import closing

from runs import call as evaluation_of

from rag_eval_integrations import RagCall
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._transactions import STATEMENTS
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import Refusal

CALL = RagCall("When does the ferry leave?", ["It leaves at nine."], "At nine.")
FIRST = "c4db429b"


def test_no_statement_of_an_earlier_schema_changes() -> None:
    """A store has run them, so a change has to be a further statement."""
    known = hashlib.sha256("\n".join(STATEMENTS[:12]).encode()).hexdigest()
    assert known.startswith(FIRST)


def test_a_store_of_an_earlier_version_keeps_what_it_holds(url: str) -> None:
    """Of the schema before marks of what sinks have: its calls, scores, counts and queue."""
    with closing(Store(url)) as store:
        store.submit(CALL)
        store.submit(CALL)
        judged, parked = store.claim("a", 2)
        evaluation = evaluation_of("x", {"adherence": 0.25})
        store.settle([Outcome(judged, "judged", evaluation=evaluation)], "a")
        store.settle([Outcome(parked, "parked", "judge: down")], "a")
        store.add([], [Refusal("r", 1.0, "full", 7)])
        held = [store.counts(), store.means(0.0), list(store.evaluations())]
        with store._running(writing=True) as run:
            run("DROP TABLE rag_unsent")
            run("UPDATE rag_schema SET version = 12")

    with closing(Store(url, create=False)) as store:
        assert [store.counts(), store.means(0.0), list(store.evaluations())] == held
        assert store.retry() == 1
        again = store.claim("a", 1)
        store.settle([Outcome(again[0], "judged", evaluation=evaluation)], "a", ["log"])
        assert store._read("SELECT sink FROM rag_unsent") == [("log",)]
        assert store._read("SELECT version FROM rag_schema") == [(len(STATEMENTS),)]
