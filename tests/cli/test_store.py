"""`rag-eval … --store`: where a store is, and what is told of one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from ferries import Command

from rag_eval_integrations.store import Store

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
