"""Runs the command line: in this process, so that coverage sees it, or in one of its own."""

from __future__ import annotations

import io
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ferries import Command, Done, ferries
from forked import WarmPopen
from loopback import LoopbackServer
from typer.main import get_command

from rag_eval_integrations import RagCall, Spool
from rag_eval_integrations.cli import app, main
from rag_eval_integrations.store import Store

PROGRAM = get_command(app)
"""Built once; `app()` builds it anew, which takes longer than many a command."""


MAIN = "from rag_eval_integrations.cli import main; main()"


def in_process(*words: object, first: str = "") -> list[str]:
    """The command in a process of its own, after some lines of code."""
    return [sys.executable, "-c", f"{first}\n{MAIN}", *map(str, words)]


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line that names `rag-eval` in a shell, buffered as it is for users."""
    named = line.replace("rag-eval", f"{sys.executable} -c '{MAIN}'")
    command = ["bash", "-c", f"unset PYTHONUNBUFFERED; {named}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def snapshot(folder: Path = Path()) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rag_eval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """`rag_eval("run", path, "-o", out)` → exit code, stdout, stderr.

    `code=` is the exit code that it has to have; `judge=SERVER` has a model there label.
    """
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rag_eval_integrations.cli.app", PROGRAM)

    def run(*words: object, code: int | None = None, judge: LoopbackServer | None = None) -> Done:
        if judge is not None:
            words += ("--judge", "openai:small", "--base-url", judge.base_url)
        monkeypatch.setattr(sys, "argv", ["rag-eval", *map(str, words)])
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        ended = exited.value.code
        done = Done(ended if isinstance(ended, int) else 0, out, err)
        assert code is None or done.code == code, done
        assert code != 2 or "Traceback" not in err
        return done

    return run


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """`stdin(CONTENT)`: standard input holds it."""
    return lambda held: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(held)))


@pytest.fixture
def calls() -> Path:
    """Twenty calls about ferries."""
    return ferries(Path("calls.jsonl"), 20)


@pytest.fixture
def out() -> Path:
    """Where a command puts evaluations."""
    return Path("evals.jsonl")


# --- Workers


PATH = Path("e.db")
"""The store of the tests of workers."""


@pytest.fixture
def store() -> Iterator[Store]:
    """The store, open."""
    with closing(Store(PATH)) as opened:
        yield opened


@pytest.fixture
def once(rag_eval: Command) -> Command:
    """Runs a worker, with more words, until the queue is empty."""
    return partial(rag_eval, "worker", "--store", PATH, "--once")


@contextmanager
def running(*words: object, first: str = "") -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own, after some lines of code."""
    command = in_process("worker", *words, first=first)
    with WarmPopen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def fill(store: Store | Spool, calls: int, **more: Any) -> None:
    """Submit calls of one sentence each."""
    for number in range(calls):
        question = f"When does ferry {number} leave?"
        store.submit(RagCall(question, ["It leaves at nine."], "It leaves at nine.", **more))


def change(*statements: str) -> None:
    """Change the store by statements of SQL."""
    with closing(sqlite3.connect(PATH)) as file, file:
        for statement in statements:
            file.execute(statement)


def judged() -> Counter[str]:
    """How many evaluations each call of the store has, by its id."""
    with closing(sqlite3.connect(PATH)) as store:
        rows = store.execute(
            "SELECT call_uid, count(e.id) FROM rag_call c LEFT JOIN rag_evaluation e "
            "ON e.call_id = c.id GROUP BY 1"
        )
        return Counter(dict(rows.fetchall()))


JUDGE = """
from pathlib import Path
from rag_eval_integrations.errors import JudgeUnavailableError
from rag_eval_integrations.judges import EmbeddedJudge

class Sometimes:
    name, version = "sometimes", "1"
    async def label(self, call):
        if Path("down").exists():
            raise JudgeUnavailableError("the model is down")
        return await EmbeddedJudge().label(call)

judge = Sometimes()
"""


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A judge of the user's own, `own_judge:judge`, fails as long as this file is there."""
    monkeypatch.delitem(sys.modules, "own_judge", raising=False)
    Path("own_judge.py").write_text(JUDGE)
    Path("down").touch()
    return Path("down")
