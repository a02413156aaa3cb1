"""`Spool`: calls in files of SQLite, one writer each, which `rag-eval worker` imports (`_import`).

A worker reads what is committed while the writer lives. With a write-ahead log no reader makes
the app's thread wait, and since the log is copied every few calls, closing a file takes no longer
than with a rollback journal.

Beside each file is an empty one, NAME-life, on which its writer holds SQLite's exclusive lock. That
is a record lock: it ends with the process, and a child that a fork of C made does not inherit it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rag_eval_integrations import _process, _target
from rag_eval_integrations._contain import EscapedError, contained, words_of
from rag_eval_integrations._visible import LogOnce, kind_and_place, logger_of, visible
from rag_eval_integrations.errors import ConfigurationError, RagEvalError, whole_number
from rag_eval_integrations.records import RagCall, to_line

_logger = logger_of("rag_eval_integrations.store")

SUFFIX = ".spool"
"""End of the names of the files."""
LIFE = "-life"
PARTS = (LIFE, "", "-wal", "-shm", "-journal")
"""Ends of the names of all files of one: without its life, it is a file that nobody writes."""
VERSION = 1
"""Of the tables (`PRAGMA user_version`); a file without a version has the same."""
_FILE_BYTES = 16 * 2**20
_FILE_SECONDS = 60.0
_AGAIN = 1.0
"""Seconds between attempts to open a file where the last one failed."""
_NEW_FILE = f"""
PRAGMA synchronous = {{}};
PRAGMA journal_mode = WAL;
PRAGMA wal_autocheckpoint = 16;
BEGIN EXCLUSIVE;
PRAGMA user_version = {VERSION};
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
    same. Each process writes files of its own, which a worker reads meanwhile, and removes when the
    process has closed them or is dead. It closes them after 16 MB or 60 s, at the next call then,
    or at its end.

    Calls that cannot be written (the folder holds `max_bytes`, the disk is full, `redact` failed)
    are refused: counted, also in the next file, and logged once per reason. `submit` never raises.

    Args:
        folder: the folder, on a local disk; made when absent, for its owner only, as its files are.
        redact: changes a call before anything is written, such as to mask names. It runs in the
            app's thread.
        max_bytes: size of all files in the folder above which calls are refused, above 0.
        durable: force each call to the disk before it is acknowledged, so that it outlives a loss
            of power, too. Takes milliseconds per call.

    Raises:
        ConfigurationError: an argument cannot be used, or there is something else than a folder, or
            another user's that everybody may write to.
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
        whole_number("max_bytes", max_bytes)
        _make_folder(self.folder)
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
        self._life: sqlite3.Connection | None = None
        self._path = ""
        self._room, self._until = 0, 0.0
        self._failed: tuple[Exception, float] | None = None
        self._unwritten: Counter[str] = Counter()
        self.accepted = self.refused = 0
        """Calls of this process that were accepted, and those that were not."""

    def __repr__(self) -> str:
        return f"Spool({str(self.folder)!r}; {self.accepted} accepted, {self.refused} refused)"

    def __call__(self, call: RagCall) -> None:
        """Submit a call; handlers call the spool in this form."""
        self.submit(call)

    def submit(self, call: RagCall) -> str | None:
        """Write a call; takes tens of microseconds and never raises.

        A refusal is counted, and logged once per reason.

        Returns:
            The call's id in the store (`call_uid`); None if the call was refused.
        """
        _process.notice_fork()
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
            except (OSError, sqlite3.Error, ConfigurationError) as error:
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
        _process.notice_fork()
        with self._lock:
            if self._unwritten:
                self._failed = None  # there may be room by now
                with suppress(OSError, sqlite3.Error, ConfigurationError):
                    self._file()
                    self._write_refusals()
            self._close()

    def _file(self) -> sqlite3.Connection:
        """Return the open file; close a full one, and open the next, also where it was removed.

        Raises:
            OSError: the folder is full, or a file could not be made just now or a second ago.
            ConfigurationError: what is there now cannot be used as the folder.
            sqlite3.Error: the file cannot be set up.
        """
        now = time.monotonic()
        if self._connection is not None:
            there = os.path.exists(self._path)
            if there and self._room > 0 and now < self._until:
                return self._connection
            self._close()
            if not there:
                message = "%s was removed while it was written, with calls that no worker had read"
                self._failures.log("removed", message, visible(self._path))
        if self._failed is not None and now < self._failed[1]:
            raise self._failed[0]
        _make_folder(self.folder)
        used = 0
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):  # a worker has just imported it
                used += entry.stat().st_size
        if used >= self._max_bytes:
            raise OSError(f"the spool {self.folder} is full: it holds {self._max_bytes:,} bytes")
        path = self.folder / f"{time.time_ns()}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
        try:
            # The life last: a file without it is left alone as long as it is empty.
            for file in (path, path.with_name(path.name + LIFE)):
                os.close(_target.create(file))  # private; SQLite gives its log the same mode
            connect = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
            self._life = connect(path.with_name(path.name + LIFE))
            self._life.executescript("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
            self._connection = connect(path, 1.0)
            self._connection.executescript(_NEW_FILE.format("FULL" if self._durable else "OFF"))
        except (OSError, sqlite3.Error):
            self._close()
            with suppress(OSError):
                remove(path)
            raise
        self._path, self._failed = str(path), None
        self._room, self._until = min(_FILE_BYTES, self._max_bytes - used), now + _FILE_SECONDS
        return self._connection

    def _close(self) -> None:
        """Close the file, then its life, if they are open; never raises SQLite's errors."""
        opened = self._connection, self._life
        self._connection = self._life = None
        for connection in opened:
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
        except (OSError, sqlite3.Error, ConfigurationError):
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
        if self._connection is not None:  # of a fork that Python did not see
            _process.keep((self._connection, self._life))
        self._start_empty()

    def at_exit(self) -> None:
        """Close the file, with the counts of refused calls."""
        self.close()


# --- The folder and its files, for their writer and for a worker


def why_unusable(folder: Path) -> int | None:
    """Return the number of the error with which a folder cannot be used; None if it can."""
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    return errno.EROFS if read_only else errno.EACCES


def _make_folder(folder: Path) -> None:
    """Make a folder for its owner only, or check the one that is there.

    Raises:
        ConfigurationError: there is something else, or the folder was planted.
        OSError: it cannot be made or written.
    """
    _target.make_folder(folder, mode=0o700)
    if (number := why_unusable(folder)) is not None:
        raise OSError(number, os.strerror(number), str(folder))
    status = folder.stat()
    # Root's are not planted: volumes of containers are often root's, and everybody's to write.
    if status.st_mode & stat.S_IWOTH and status.st_uid and status.st_uid != os.geteuid():
        why = "is another user's, and everybody may write to it; use a folder of the app's own user"
        raise ConfigurationError("folder", str(folder), why)


def remove(path: Path) -> None:
    """Remove a file with all that belongs to it, as far as it is there."""
    for part in PARTS:
        path.with_name(path.name + part).unlink(missing_ok=True)
