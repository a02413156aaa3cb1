"""The answers that models gave, as lines of JSON by key: `AnswerStore`, and `CacheFile` on disk.

A file is opened only if it is a cache of this schema, and never used across a fork. `AnswerStore`
is all that a model needs of it, so that prompt tests can share one among models.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rag_eval_integrations import _process, _target
from rag_eval_integrations._visible import LogOnce, logger_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import SCHEMA

logger = logger_of(__name__)

FORGOTTEN = "null"
"""The line of an answer that was removed: it is asked for again."""


@runtime_checkable
class AnswerStore(Protocol):
    """Keeps lines of JSON by key; its methods are called on the loop, so they should be quick."""

    @property
    def path(self) -> Path | None:
        """The file; None when answers are only in memory."""
        ...

    def get_line(self, key: str) -> str | None:
        """Return the line of a key; None when there is none."""
        ...

    def put_line(self, key: str, line: str) -> None:
        """Store a line under a key, in place of an earlier one."""
        ...


_MAGIC = b"SQLite format 3\x00"
_APPLICATION = 0x52455643  # "REVC", in the header of every cache file
_BUSY_TIMEOUT = 30.0
"""Seconds. Four writing processes waited up to 2.4 s for one another when measured."""
_CHECKED = 64 * 2**20
"""Bytes up to which all pages of a file are checked when it is opened: about 0.1 s."""
_PUTS_BETWEEN_CHECKS = 256
_CREATE = "CREATE TABLE completions (key TEXT PRIMARY KEY, value TEXT NOT NULL, stored REAL)"


class CacheFile(_process.ProcessObserver):
    """Keys and lines of JSON in an SQLite file: one connection per process, behind a lock.

    One connection per process, however many threads: SQLite before 3.51.3 has a rare bug that
    damages a file when several connections write and checkpoint it at the same moment.

    Args:
        path: the file; links are followed. It is made for its owner only.
        most_bytes: size above which the oldest tenth is dropped; None to drop nothing.
        strict: raise `OSError` when the file fails, instead of logging it; and create the file and
            its folder with the first line, not before.

    Raises:
        ConfigurationError: for a file that cannot be used.
    """

    def __init__(self, path: Path, most_bytes: int | None = None, *, strict: bool = False) -> None:
        self.path = path.absolute()
        self._most_bytes = most_bytes
        self._strict = strict
        self._lock = threading.RLock()
        self._puts = 0
        self._damaged = False
        self._closed = False
        self._failures = LogOnce(logger)
        self._connection: sqlite3.Connection | None = None
        if not strict or self.path.exists():
            self._connection = _open(self.path)
        _process.register(self)

    def keys(self) -> set[str]:
        """Return all keys."""
        if not self.path.exists():
            return set()
        return {row[0] for row in self._execute("SELECT key FROM completions")}

    def get_line(self, key: str) -> str | None:
        """Return the line of a key; None when there is none, or the file fails."""
        if self._connection is None and not self.path.exists():
            return None
        rows = self._execute("SELECT value FROM completions WHERE key = ?", key)
        return rows[0][0] if rows and isinstance(rows[0][0], str) else None

    def put_line(self, key: str, line: str) -> None:
        """Store a line under a key; if that fails, the failure is logged."""
        if self._strict and self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._execute("INSERT OR REPLACE INTO completions VALUES (?, ?, ?)", key, line, time.time())
        if self._most_bytes is None:
            return
        with self._lock:
            self._puts += 1
            full = self._puts % _PUTS_BETWEEN_CHECKS == 0 and self._size() > self._most_bytes
        if full:
            self._execute(
                "DELETE FROM completions WHERE rowid IN (SELECT rowid FROM completions "
                "ORDER BY rowid LIMIT (SELECT 1 + count(*) / 10 FROM completions))"
            )

    def _size(self) -> int:
        """Return the bytes in use of the file."""
        pages, free, size = (
            (self._execute(f"PRAGMA {name}") or [(0,)])[0][0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _execute(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; each kind of failure is logged once."""
        with self._lock:
            if self._damaged or self._closed:
                return []
            try:
                if self._connection is None:  # after a fork, in both processes, or `disconnect`
                    self._connection = _open(self.path)
                return self._connection.execute(sql, values).fetchall()
            except (sqlite3.Error, ConfigurationError) as error:
                if self._strict:
                    self._disconnect()  # the next use checks the file again
                    raise OSError(f"{self.path}: {error}") from error
                # Nothing is written to a damaged file any more.
                self._damaged = type(error) is sqlite3.DatabaseError
                message = "%s failed, the run continues without it: %s"
                self._failures.log(str(error), message, self.path, error)
                return []

    def disconnect(self) -> None:
        """Close the connection; the next use opens another one."""
        with self._lock:
            self._disconnect()

    def close(self) -> None:
        """Close the connection; nothing is read or stored from then on."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Close the connection before a fork: one that two processes have damages the file."""
        self._lock.acquire()
        self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Allow use again."""
        self._lock.release()

    def after_fork(self) -> None:
        """Allow use again, in the child."""
        self._lock.release()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


def _open(path: Path) -> sqlite3.Connection:
    """Open a cache file; create it when absent or empty.

    Raises:
        ConfigurationError: it cannot be opened, is not a cache, has another schema or is damaged.
    """
    try:
        path = _target.resolved(path)
        _check_header(path)
        with suppress(FileExistsError):  # SQLite gives its other files the mode of this one
            os.close(_target.create(path))
        connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise _refusal(path, f"cannot be opened: {error}") from error
    try:
        _create(connection)
        _check(connection, path)
        switch_to_wal(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        raise _refusal(path, f"cannot be opened: {error}") from error
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(path, f"is damaged: {error}; move it away to start a new one") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _refusal(path: Path, why: str) -> ConfigurationError:
    """Make the error of a file that is not used."""
    return ConfigurationError("path", str(path), why)


def _check_header(path: Path) -> None:
    """Refuse a file that is not a cache by its first 100 bytes.

    Without SQLite, which may roll back a journal or replay a log when it opens a database.
    """
    if not path.exists():
        return
    with path.open("rb") as stream:
        header = stream.read(100)
    if not header:
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise _refusal(path, "is not an SQLite file; a cache does not overwrite other files")
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise _refusal(path, "is another application's SQLite database")
    version = int.from_bytes(header[60:64], "big")
    if version != SCHEMA:
        raise _refusal(
            path,
            f"was written with schema {version}, this version reads {SCHEMA}; use another file",
        )


def _create(connection: sqlite3.Connection) -> None:
    """Make the table in a file that has none, and mark the file as a cache."""
    if connection.execute("PRAGMA schema_version").fetchone()[0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have created it meanwhile.
    if not connection.execute("PRAGMA schema_version").fetchone()[0]:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute(_CREATE)
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a small file whose pages are damaged."""
    if path.stat().st_size <= _CHECKED:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _refusal(path, f"is damaged: {verdict}; move it away to start a new one")


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch a database to write-ahead logging, also while others open it."""
    # In WAL mode with NORMAL, four processes killed while writing lost no committed row and damaged
    # no file, at 100 times the rows per second of FULL.
    connection.execute("PRAGMA synchronous = NORMAL")
    end = time.monotonic() + _BUSY_TIMEOUT
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            # Another process is opening the file, and the busy timeout does not cover this pragma.
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
