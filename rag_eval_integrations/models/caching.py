"""`CachedModel`: answers from an SQLite file, and asks the model only for what is not in it.

`CacheFile` is that file: opened only if it is a cache of this schema, and never used across a fork.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Self

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    WrappedModel,
)
from rag_eval_integrations.records import SCHEMA, Usage, from_line, to_line

logger = logging.getLogger(__name__)


class CachedModel(WrappedModel):
    """A model that remembers answers in an SQLite file.

    The key is a digest of everything that decides the answer: `name`, `model`, `base_url` and
    `version` of the model (the last covers its own settings), and the whole request with messages,
    schema and prompt version. Requests that should be answered independently, such as several
    samples of one prompt, must differ in their `seed`.

    Only complete answers are stored: those with text and `finish_reason` "stop". An error, a
    truncation, a refusal or a content filter may not happen again with the next attempt, a larger
    limit or a changed policy.

    The usage of a hit is 0 requests and 0 tokens, so that costs are counted once; the rest is the
    answer as it was stored. Concurrent equal requests are made once, and usage is counted once.

    An answer is stored before `complete` returns it: killing the process loses only requests in
    flight. (A power failure may lose the last answers too, but does not damage the file.) Several
    processes may share a file on a local disk. A file that is not a cache, is damaged or was
    written with another schema is refused and left unchanged.

    Args:
        model: asked for answers that are not in the file. Wrap the throttled model: hits then do
            not wait for its limits.
        path: the file; created when absent or empty, in a folder that exists.
        max_mb: megabytes above which the oldest tenth is dropped, at least 1.

    Raises:
        ConfigurationError: for a file that cannot be used, or `max_mb` out of range.
    """

    def __init__(self, model: Model, path: str | Path, *, max_mb: float = 1024.0) -> None:
        if not max_mb >= 1:
            raise ConfigurationError("max_mb", max_mb, "use a number from 1")
        super().__init__(model)
        self.retries = self._wrapped.retries
        self._file = CacheFile(Path(path), int(max_mb * 2**20))
        self._closed = False
        self._process = os.getpid()
        self._flights = SingleFlight[Completion](0)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request from the file, or from the model.

        If the file fails later (disk full, locked for 30 s, damaged), a warning is logged and the
        model's answer is returned.

        Raises:
            Exception: whatever the model raises; `RuntimeError` after `close`.
        """
        if self._closed:
            raise RuntimeError(f"the cache {self._file.path} is closed")
        if self._process != os.getpid():
            # Requests in flight at a fork are answered in the parent; a child would wait for ever.
            self._process, self._flights = os.getpid(), SingleFlight[Completion](0)
        key = self.key(request)
        charged = False

        async def make() -> Completion:
            nonlocal charged
            value = await asyncio.to_thread(self._file.get, key)
            remembered = None if value is None else self._read(key, value)
            if remembered is not None:
                return remembered
            charged = True
            completion = await self._wrapped.complete(request)
            if _is_complete(completion):
                await asyncio.to_thread(self._file.put, key, to_line(completion))
            return completion

        completion = await self._flights.get(key, make)
        return completion if charged else completion.model_copy(update={"usage": Usage()})

    def key(self, request: CompletionRequest) -> str:
        """Return a request's key: 64 hexadecimal digits, the same in all processes and versions."""
        # Fields at their default are left out, so that a new field does not change keys, and so is
        # the query of a URL, which may be a secret that changes.
        content = {
            "schema": SCHEMA,
            "judge": self.name,  # not "model": keys in existing files have this word
            "model": self.model,
            "version": self.version,
            "base_url": (self.base_url or "").partition("?")[0],
            "request": request.model_dump(exclude_defaults=True),
        }
        # ASCII: scraped documents contain lone surrogates, which UTF-8 cannot encode.
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def _read(self, key: str, value: str) -> Completion | None:
        try:
            return from_line(Completion, value)
        except InputError as error:
            logger.warning("%s: answer %s is asked for again: %s", self._file.path, key[:8], error)
            return None

    def close(self) -> None:
        """Close the file; the model stays open. Closing twice does nothing."""
        self._closed = True
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _is_complete(completion: Completion) -> bool:
    return all(choice.finish_reason == "stop" and choice.text for choice in completion.choices)


# --- The SQLite file

_MAGIC = b"SQLite format 3\x00"
_APPLICATION = 0x52455643  # "REVC", in the header of every cache file
_BUSY_TIMEOUT = 30.0
"""Seconds. Four writing processes waited up to 2.4 s for one another when measured."""
_CHECKED = 64 * 2**20
"""Bytes up to which all pages of a file are checked when it is opened: about 0.1 s."""
_PUTS_BETWEEN_CHECKS = 256
_CREATE = "CREATE TABLE completions (key TEXT PRIMARY KEY, value TEXT NOT NULL, stored REAL)"
_COLUMNS = ["key", "value", "stored"]


class CacheFile:
    """Keys and lines of JSON in an SQLite file: one connection per process, behind a lock.

    One connection per process, however many threads: SQLite before 3.51.3 has a rare bug that
    damages a file when several connections write and checkpoint it at the same moment.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path.absolute()
        self._most_bytes = most_bytes
        self._lock = threading.RLock()
        self._puts = 0
        self._damaged = False
        self._closed = False
        self._logged: set[str] = set()
        self._connection: sqlite3.Connection | None = _open(self.path)
        _files.add(self)

    def get(self, key: str) -> str | None:
        """Return the line of a key; None when there is none, or the file fails."""
        row = self._execute("SELECT value FROM completions WHERE key = ?", key)
        return row[0] if row is not None and isinstance(row[0], str) else None

    def put(self, key: str, line: str) -> None:
        """Store a line under a key; if that fails, the failure is logged."""
        self._execute("INSERT OR REPLACE INTO completions VALUES (?, ?, ?)", key, line, time.time())
        with self._lock:
            self._puts += 1
            full = self._puts % _PUTS_BETWEEN_CHECKS == 0 and self._size() > self._most_bytes
        if full:
            self._execute(
                "DELETE FROM completions WHERE rowid IN (SELECT rowid FROM completions "
                "ORDER BY rowid LIMIT (SELECT 1 + count(*) / 10 FROM completions))"
            )

    def _size(self) -> int:
        pages, free, size = (
            (self._execute(f"PRAGMA {name}") or (0,))[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _execute(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """Run a statement; return its first row. Each kind of failure is logged once."""
        with self._lock:
            if self._damaged or self._closed:
                return None
            try:
                if self._connection is None:  # after a fork, in both processes
                    self._connection = _open(self.path)
                rows = self._connection.execute(sql, values).fetchall()
                return rows[0] if rows else None
            except (sqlite3.Error, ConfigurationError) as error:
                # Nothing is written to a damaged file any more.
                self._damaged = type(error) is sqlite3.DatabaseError
                if (kind := str(error)) not in self._logged:
                    self._logged.add(kind)
                    logger.warning("%s failed, the run continues without it: %s", self.path, error)
                return None

    def close(self) -> None:
        """Close the connection; nothing is read or stored from then on."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def hold(self) -> None:
        """Close the connection before a fork: one that two processes have damages the file."""
        self._lock.acquire()
        self._disconnect()

    def let_go(self) -> None:
        """Allow use again after a fork, in both processes."""
        self._lock.release()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


_files: weakref.WeakSet[CacheFile] = weakref.WeakSet()
_held: list[CacheFile] = []


def _hold_all() -> None:
    _held.extend(_files)
    for file in _held:
        file.hold()


def _let_all_go() -> None:
    while _held:
        _held.pop().let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_let_all_go, after_in_child=_let_all_go)


def _open(path: Path) -> sqlite3.Connection:
    """Open a cache file; create it when absent or empty.

    Raises:
        ConfigurationError: it cannot be opened, is not a cache, has another schema or is damaged.
    """
    try:
        _check_header(path)
        connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise _refusal(path, f"cannot be opened: {error}") from error
    try:
        _create(connection)
        _check(connection, path)
        _switch_to_wal(connection)
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
    _check_ids(path, int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big"))


def _check_ids(path: Path, application: int, version: int) -> None:
    if application != _APPLICATION:
        raise _refusal(path, "is another application's SQLite database")
    if version != SCHEMA:
        raise _refusal(
            path,
            f"was written with schema {version}, this version reads {SCHEMA}; use another file",
        )


def _create(connection: sqlite3.Connection) -> None:
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
    # Checked again through SQLite: another application may have written the file meanwhile.
    ids = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    ]
    _check_ids(path, *ids)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(completions)")]
    if columns != _COLUMNS:
        raise _refusal(path, f"has the columns {columns}, not {_COLUMNS}")
    if path.stat().st_size <= _CHECKED:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _refusal(path, f"is damaged: {found}; move it away to start a new one")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
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
