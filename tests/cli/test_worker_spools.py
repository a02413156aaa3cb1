"""`rag-eval worker --spool`: apps that live, were killed or forked; files that cannot be imported."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ferries import Command
from forked import WarmPopen
from processes import python

from rag_eval_integrations import Spool
from rag_eval_integrations.store import Store, database

from .conftest import PATH, fill, judged, running

SPOOL = Path("spool")

pytestmark = pytest.mark.slow

APP = """
import sys, threading, time
from rag_eval_integrations import RagCall, Spool
from rag_eval_integrations.store import spool as files
files._FILE_BYTES = 20_000  # so that it is also killed as it closes a file and opens the next
spool = Spool(sys.argv[1])
def serve(name):
    for number in range(10**6):
        uid = spool.submit(RagCall(f"{name} {number}?", ["It leaves at nine."], "At nine."))
        sys.stdout.write(f"{uid}\\n")
        sys.stdout.flush()
        time.sleep(.002)
for name in range(2):
    threading.Thread(target=serve, args=(name,)).start()
"""


KILLS = int(os.environ.get("RAG_EVAL_KILLS", "6"))


def test_calls_that_a_killed_app_had_acknowledged_are_judged_once(
    once: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL at random instants of two threads, and of a worker that reads beside them.

    The files of dead processes are gone; one that was killed as it made its next file leaves it
    empty, which is removed after a day.
    """
    seed = random.getrandbits(32)
    instants = random.Random(seed)
    acknowledged: set[str] = set()
    for _ in range(KILLS // 3):
        with running("--store", PATH, "--spool", SPOOL):
            for _ in range(2):
                command = [sys.executable, "-c", APP, str(SPOOL)]
                app = WarmPopen(command, stdout=subprocess.PIPE, text=True)
                assert app.stdout is not None
                told = [app.stdout.readline()]
                time.sleep(instants.uniform(0.0, KILLS / 20))
                app.kill()
                told += app.communicate()[0].splitlines(keepends=True)
                acknowledged |= {line.strip() for line in told if len(line) == 33}

    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + database.LEASE + 1)
    once("--spool", SPOOL, code=0)
    for left in SPOOL.iterdir():
        os.utime(left, (0, 0))
    again = once("--spool", SPOOL)

    counts = judged()
    assert len(acknowledged) >= 5
    assert again.err.startswith("0 calls imported"), f"seed {seed}"
    assert acknowledged <= counts.keys(), f"seed {seed}"
    assert set(counts.values()) == {1}, f"seed {seed}"
    assert list(SPOOL.iterdir()) == []


def test_the_calls_of_a_quiet_app_are_judged(once: Command) -> None:
    """What a living app has committed is imported once; its file is removed when it is closed."""
    spool = Spool(SPOOL)
    fill(spool, 2)
    assert "2 calls imported, 2 judged" in once("--spool", SPOOL).err
    assert "0 calls imported, 0 judged" in once("--spool", SPOOL).err
    fill(spool, 1)
    assert "1 call imported, 1 judged" in once("--spool", SPOOL).err
    assert len(list(SPOOL.glob("*.spool"))) == 1
    spool.close()
    assert "0 calls imported, 0 judged" in once("--spool", SPOOL).err

    assert list(SPOOL.iterdir()) == []
    assert list(judged().values()) == [1] * 3


FORKING = """
import ctypes, os, signal, sys, time
from rag_eval_integrations import RagCall, Spool
spool = Spool(sys.argv[1])
spool.submit(RagCall("When?", ["It leaves at nine."], "At nine."))
child = ctypes.CDLL(None).fork()  # as an app server does it, unseen by Python
if child:
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_child_does_not_keep_the_file_of_its_dead_parent(once: Command) -> None:
    """The life of a file is that of the process that writes it."""
    app = subprocess.Popen([sys.executable, "-c", FORKING, SPOOL], stdout=subprocess.PIPE)
    assert app.stdout is not None
    child = int(app.stdout.readline())
    try:
        app.wait()
        assert "1 call imported, 1 judged" in once("--spool", SPOOL).err
        assert list(SPOOL.iterdir()) == []
    finally:
        os.kill(child, signal.SIGKILL)
        app.stdout.close()


def by_sql(*statements: str) -> Callable[[Path], None]:
    """A change of a file by statements."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file, file:
            for statement in statements:
                file.execute(statement)

    return change


def overwritten(path: Path) -> None:
    """A piece in the middle is lost."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\0\xff" * 4_500)


def cut(path: Path) -> None:
    """A file's second half is lost."""
    os.truncate(path, path.stat().st_size // 2 + 777)


def no_database(path: Path) -> None:
    """Something else."""
    path.write_text("no database, but enough text to be none " * 50)


DAMAGED, ASIDE = "a damaged file, kept in the spool as *.damaged", "a file of another version, kept"


FAULTS = {
    "newer version": (by_sql("PRAGMA user_version = 2"), 0, True, ASIDE),
    "another column": (by_sql("ALTER TABLE call RENAME body TO line"), 0, True, ASIDE),
    "more columns": (
        by_sql(
            "ALTER TABLE call ADD more",
            "ALTER TABLE refusal ADD more",
            "INSERT INTO refusal VALUES ('uid', 1.0, 'the disk was full', 2, 'more')",
        ),
        300,
        True,
        None,
    ),
    "a constraint": (
        by_sql("UPDATE call SET call_uid = NULL WHERE n IN (7, 9)"),
        298,
        True,
        DAMAGED,
    ),
    "rows missing": (by_sql("DELETE FROM call WHERE n = 7"), 299, True, DAMAGED),
    "damaged": (overwritten, 250, True, DAMAGED),
    "half a file": (cut, 100, False, f"an unknown number in {DAMAGED}"),
    "no database": (no_database, 0, False, f"an unknown number in {DAMAGED}"),
}
"""How a file is changed, the fewest calls of 300 that are left, whether the rest can be counted, and
the words of `store info`."""


@pytest.mark.parametrize("fault", FAULTS)
def test_of_a_file_that_cannot_be_imported_what_can_be_read_is_and_the_rest_is_counted(
    store: Store, once: Command, rag_eval: Command, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """It is kept under another name, told once, counted once, and the next file is taken."""
    changed, fewest, counted, why = FAULTS[fault]
    spool = Spool(SPOOL)
    fill(spool, 300)
    spool.close()
    (path,) = SPOOL.glob("*.spool")
    changed(path)
    fill(spool, 5)
    spool.close()
    once("--spool", SPOOL, "--sample-rate", "0", code=0)
    once("--spool", SPOOL, "--sample-rate", "0", code=0)

    refused = [(words, calls) for state, words, calls in store.counts() if state == "refused"]
    imported = len(judged()) - 5
    assert fewest <= imported <= 300
    kept = [each.name for each in SPOOL.iterdir()]
    if why is None:
        assert (refused, kept, imported) == ([("the disk was full", 2)], [], 300)
        return
    ((words, calls),) = refused
    assert why in words
    assert calls == (300 - imported if counted else 0)
    assert kept == [path.with_suffix(".aside" if why is ASIDE else ".damaged").name]
    assert caplog.text.count("it is kept") == 1
    assert (
        f"{calls:,} refused by a spool: {words}" in rag_eval("store", "info", "--store", PATH).out
    )


def test_a_file_that_cannot_be_read_now_stays_and_the_next_is_taken(
    once: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """That is told once; another time, the lock or the failing disk may be gone."""
    spool = Spool(SPOOL)
    fill(spool, 2)
    spool.close()
    (path,) = SPOOL.glob("*.spool")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        fill(spool, 3)
        spool.close()
        assert "3 calls imported, 3 judged" in once("--spool", SPOOL).err
    assert [each.name for each in SPOOL.glob("*.spool")] == [path.name]
    assert f"{path.name} cannot be read now (database is locked); it stays" in caplog.text

    assert "2 calls imported, 2 judged" in once("--spool", SPOOL).err
    assert list(SPOOL.iterdir()) == []


OTHER_USER = """
import os, sys
from rag_eval_integrations.cli import main
def worker(*words):
    sys.argv = ["rag-eval", "worker", *words]
    try:
        main()
    except SystemExit as end:
        print(end.code, file=sys.stderr, flush=True)
folder = sys.argv[1]
worker("--store", f"{folder}/e.db", "--once")  # which imports all that the next ones need
if os.getuid() == 0:
    os.setuid(65534)  # root may write everywhere
worker("--store", f"{folder}/read-only/e.db", "--once")
worker("--store", f"{folder}/other.db", "--once", "--spool", f"{folder}/read-only")
os.mkdir(f"{folder}/own", 0o500)
worker("--store", f"{folder}/other.db", "--once", "--spool", f"{folder}/own")
worker("--store", f"{folder}/other.db", "--once", "--spool", f"{folder}/file")
"""


def test_a_folder_that_cannot_be_used_is_told() -> None:
    """In one line, as the worker starts: a store's, a spool of another user, one's own, a file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        read_only = Path(folder, "read-only")
        read_only.mkdir(0o555)
        Path(folder, "file").touch()
        done = python(OTHER_USER, folder, check=True)
        for path in (read_only, Path(folder, "own")):
            path.chmod(0o755)

    assert done.stderr.splitlines()[1:] == [
        "0", f"rag-eval: {read_only / 'e.db'}: permission denied",
        "2", f"rag-eval: `spool` = '{read_only}': is another user's; run the worker as the user of the app",
        "2", f"rag-eval: `spool` = '{folder}/own': cannot be used: permission denied",
        "2", f"rag-eval: `spool` = '{folder}/file': is not a folder; use that of a Spool",
        "2",
    ]  # fmt: skip
