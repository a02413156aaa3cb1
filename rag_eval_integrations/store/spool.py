"""`Spool`: calls in files of SQLite, one writer each, which `rag-eval worker` imports.

A process locks its file for as long as it lives, so that a worker that gets the lock knows that
the file is closed, or its writer dead. A rollback journal that is kept (`PERSIST`) costs less than
a write-ahead log: no log has to be copied, in the app's thread, when a file is closed.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rag_eval_integrations import _process, _target
from rag_eval_integrations._contain import EscapedError, contained, words_of
from rag_eval_integrations._visible import LogOnce, kind_and_place, logger_of, visible
from rag_eval_integrations.errors import ConfigurationError, RagEvalError
from rag_eval_integrations.records import RagCall, to_line

_logger = logger_of("rag_eval_integrations.store")

SUFFIX = ".spool"
"""End of the names of the files."""
_BATCH = 1_000
_FILE_BYTES = 16 * 2**20
_FILE_SECONDS = 60.0
_AGAIN = 1.0
"""Seconds between attempts to open a file where the last one failed."""
_ABANDONED = 86_400.0
"""Seconds after which a file without tables is removed: its writer died as it made it."""
_NEW_FILE = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = PERSIST;
PRAGMA synchronous = {};
BEGIN EXCLUSIVE;
CREATE TABLE call (n INTEGER PRIMARY KEY, call_uid TEXT, at REAL, body TEXT);
CREATE TABLE refusal (uid TEXT PRIMARY KEY, at REAL, why TEXT, calls INTEGER);
COMMIT;
"""

Redact = Callable[[RagCall], RagCall]


def redacted(redact: Redact, call: RagCall) -> RagCall:
    """Return a call as `redact` changes it.

    Raises:
        RagEvalError: it failed. What it raised is in no log: it may quote what it was to mask.
    """
    try:
        with contained:
            return redact(call)
    except EscapedError as error:
        failure = kind_and_place(error.original)
    except Exception as error:  # noqa: BLE001 -- whatever the user's function raises
        failure = kind_and_place(error)
    raise RagEvalError(f"`redact` failed with {failure}")


class SpooledCall(NamedTuple):
    """A call that was accepted."""

    call_uid: str
    at: float
    """When it was accepted, in seconds since 1970."""
    body: str
    """The call as a line of JSON."""


class Refusal(NamedTuple):
    """Calls that a spool did not accept."""

    uid: str
    at: float
    why: str
    calls: int


def new_uid() -> str:
    """Make a unique id for a call."""
    return os.urandom(16).hex()


class Spool(_process.ProcessObserver):
    """Writes calls to files in a folder, for `rag-eval worker --store URL --spool DIR`.

    A target for handlers and for `capture_call`: `RagEvalCallbackHandler(Spool("spool/"))`. It
    needs no judge, no key and no thread, and may be used from any thread. A call is accepted when
    `submit` has returned its id: if the process is killed after that, the call is judged all the
    same. Each process writes files of its own, which it closes after 16 MB or 60 s, at the next
    call then, or at its end; a worker imports what is closed, and what dead processes left.

    Calls that cannot be written (the folder holds `max_bytes`, the disk is full, `redact` failed)
    are refused: counted, also in the next file, and logged once per reason. `submit` never raises.

    Args:
        folder: the folder, on a local disk; made when absent. Its files are readable by their owner
            only.
        redact: changes a call before anything is written, such as to mask names. It runs in the
            app's thread.
        max_bytes: size of all files in the folder above which calls are refused, above 0.
        durable: force each call to the disk before it is acknowledged, so that it outlives a loss
            of power, too. Takes milliseconds per call.

    Raises:
        ConfigurationError: an argument cannot be used, or there is something else than a folder.
        OSError: the folder cannot be made, or not be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        redact: Redact | None = None,
        max_bytes: int = 2**30,
        durable: bool = False,
    ) -> None:
        self.folder = _target.path_from(folder, "folder").absolute()
        if redact is not None and not callable(redact):
            raise ConfigurationError("redact", redact, "use a function from a call to a call")
        if type(max_bytes) is not int or max_bytes < 1:
            raise ConfigurationError("max_bytes", max_bytes, "use a whole number from 1")
        _target.make_folder(self.folder)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            why = os.strerror(errno.EACCES)
            raise PermissionError(errno.EACCES, why, str(self.folder))
        self._redact, self._max_bytes, self._durable = redact, max_bytes, durable
        self._failures = LogOnce(_logger)
        self._start_empty()
        _process.register(self)
        _process.finish_before_exit()  # children of multiprocessing, too

    def _start_empty(self) -> None:
        """Set up locks and counts, at first and in a forked child."""
        # Re-entrant: a garbage collection in here may finalise a stream, which submits its call.
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._room, self._until = 0, 0.0
        self._failed: tuple[OSError | sqlite3.Error, float] | None = None
        self._unwritten: Counter[str] = Counter()
        self.accepted = self.refused = 0
        """Calls of this process that were accepted, and those that were not."""

    def __repr__(self) -> str:
        return f"Spool({str(self.folder)!r}; {self.accepted} accepted, {self.refused} refused)"

    def __call__(self, call: RagCall) -> None:
        """Submit a call; handlers call the spool in this form."""
        self.submit(call)

    def submit(self, call: RagCall) -> str | None:
        """Write a call; takes some ten microseconds and never raises.

        A refusal is counted, and logged once per reason.

        Returns:
            The call's id in the store (`call_uid`); None if the call was refused.
        """
        try:
            if self._redact is not None:
                call = redacted(self._redact, call)
            if not isinstance(call, RagCall):
                raise TypeError(f"an object of type {type(call).__name__} is not a RagCall")
            line = to_line(call)
        except RagEvalError as error:
            self._refuse(f"not written: {error}", None)
            return None
        except Exception as error:  # noqa: BLE001 -- the app's call goes on
            self._refuse("not written: " + type(error).__name__, error)
            return None
        uid = new_uid()
        with self._lock:
            try:
                file = self._file()
                file.execute(
                    "INSERT INTO call (call_uid, at, body) VALUES (?, ?, ?)",
                    (uid, time.time(), line),
                )
            except (OSError, sqlite3.Error) as error:
                self._failed = error, time.monotonic() + _AGAIN
                self._close()
                self._refuse(words_of(error), None)
                return None
            self._room -= len(line) + 512  # of a row's pages
            self.accepted += 1
            if self._unwritten:
                self._write_refusals()
        return uid

    def close(self) -> None:
        """Close this process's file, so that a worker may import it; the next call opens one.

        Counts of refused calls are written first, to a new file if none is open.
        """
        with self._lock:
            if self._unwritten:
                self._failed = None  # there may be room by now
                with suppress(OSError, sqlite3.Error):
                    self._file()
                    self._write_refusals()
            self._close()

    def _file(self) -> sqlite3.Connection:
        """Return the open file; close a full one, and open the next.

        Raises:
            OSError: the folder is full, or a file could not be made just now or a second ago.
            sqlite3.Error: the file cannot be set up.
        """
        now = time.monotonic()
        if self._connection is not None and self._room > 0 and now < self._until:
            return self._connection
        self._close()
        if self._failed is not None and now < self._failed[1]:
            raise self._failed[0]
        used = 0
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):  # a worker has just imported it
                used += entry.stat().st_size
        if used >= self._max_bytes:
            raise OSError(f"the spool {self.folder} is full: it holds {self._max_bytes:,} bytes")
        path = self.folder / f"{time.time_ns()}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
        os.close(_target.create(path))  # private; SQLite gives its journal the same mode
        connection = sqlite3.connect(path, 1.0, isolation_level=None, check_same_thread=False)
        try:
            connection.executescript(_NEW_FILE.format("FULL" if self._durable else "OFF"))
        except sqlite3.Error:
            connection.close()
            raise
        self._connection, self._failed = connection, None
        self._room, self._until = min(_FILE_BYTES, self._max_bytes - used), now + _FILE_SECONDS
        return connection

    def _close(self) -> None:
        """Close the connection to the file, if there is one; never raises SQLite's errors."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _refuse(self, why: str, error: BaseException | None) -> None:
        """Count a call that was not accepted, and log the first one per reason."""
        with self._lock:
            self.refused += 1
            self._unwritten[why] += 1
        message = "a call was not accepted: %s; further ones are counted but not logged"
        self._failures.log(why, message, visible(why), error=error)

    def _write_refusals(self) -> None:
        """Write the counts of refused calls; if that fails, they are kept for the next call."""
        unwritten, self._unwritten = self._unwritten, Counter()
        rows = [(new_uid(), time.time(), why, calls) for why, calls in unwritten.items()]
        try:
            self._file().executemany("INSERT INTO refusal VALUES (?, ?, ?, ?)", rows)
        except (OSError, sqlite3.Error):
            self._unwritten.update(unwritten)  # with the next call

    # --- the process

    def before_fork(self) -> None:
        """Close the file, and hold the lock until the fork is over.

        A connection that two processes have damages the file.
        """
        self._lock.acquire()
        self._close()

    def after_fork_in_parent(self) -> None:
        """Release the lock that was taken before the fork."""
        self._lock.release()

    def after_fork(self) -> None:
        """Start with counts of 0 and a file of its own."""
        self._start_empty()

    def at_exit(self) -> None:
        """Close the file, with the counts of refused calls."""
        self.close()


# --- The other end: what a worker reads


@contextmanager
def finished(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Lock a file whose writer has closed it or is dead; None where it is still written.

    The caller reads it whole and removes it (`remove`) before the lock ends. A file without tables
    is removed when it is more than a day old, and None is given for it.

    Raises:
        sqlite3.DatabaseError: it is damaged, as after a loss of power.
    """
    uri = f"{path.as_uri()}?mode=rw"  # never made anew, where another worker has removed it
    with ExitStack() as opened:
        try:
            connection = sqlite3.connect(uri, 0.0, isolation_level=None, uri=True)
            opened.enter_context(closing(connection))
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'refusal'")
            if tables.fetchone() is None:  # its writer is about to make it
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    remove(path)
                yield None
                return
        except sqlite3.OperationalError:  # locked, or gone
            yield None
            return
        yield connection


def read_spooled(file: sqlite3.Connection) -> Iterator[tuple[list[SpooledCall], list[Refusal]]]:
    """Yield what a file holds: lists of calls in their order, at last counts of refused ones."""
    rows = file.execute("SELECT call_uid, at, body FROM call ORDER BY n")
    while batch := rows.fetchmany(_BATCH):
        yield [SpooledCall(*row) for row in batch], []
    yield [], [Refusal(*row) for row in file.execute("SELECT * FROM refusal")]


def remove(path: Path) -> None:
    """Remove a file and its journal, if they are there."""
    for name in (path, path.with_name(f"{path.name}-journal")):
        name.unlink(missing_ok=True)
