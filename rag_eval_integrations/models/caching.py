"""`CachedModel`: answers from an SQLite file, and asks the model only for what is not in it.

A file is opened only if it is a cache of this schema, and never used across a fork. `AnswerStore`
is all that a model needs of it, so that prompt tests can share one among models.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar, get_args, runtime_checkable

from rag_eval_integrations import _process, _target
from rag_eval_integrations._visible import LogOnce, logger_of
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    WrappedModel,
)
from rag_eval_integrations.records import Usage, from_line, to_line
from rag_eval_integrations.records._json import SCHEMA

logger = logger_of(__name__)

R = TypeVar("R")

Keep = Literal["complete", "all"]


class CachedModel(WrappedModel):
    """A model that remembers answers in an SQLite file.

    The key is a digest of everything that decides the answer: `name`, `model`, `base_url` and
    `version` of the model (the last covers its own settings), and the whole request with messages,
    schema and prompt version. Requests that should be answered independently, such as several
    samples of one prompt, must differ in their `seed`.

    By default only complete answers are stored: those with text and `finish_reason` "stop". A
    truncation, a refusal or a content filter may not happen again with the next attempt, a larger
    limit or a changed policy. `keep="all"` stores these too, for a model under test, whose answers
    are results. An error is never stored.

    The usage of a hit is 0 requests and 0 tokens, so that costs are counted once; the rest is the
    answer as it was stored. Concurrent equal requests are made once, and usage is counted once.

    An answer is stored before `complete` returns it: killing the process loses only requests in
    flight. (A power failure may lose the last answers too, but does not damage the file.) Several
    processes may share a file on a local disk. A file that is not a cache, is damaged or was
    written with another schema is refused and left unchanged.

    Args:
        model: asked for answers that are not in the file. Wrap the throttled model: hits then do
            not wait for its limits.
        path: the file; created when absent or empty, in a folder that exists. Or a store that
            several models share, such as `prompt_tests.Journal`; `close` leaves it open.
        keep: which answers are stored and used: `complete` or `all`.

    Raises:
        ConfigurationError: for a file that cannot be used, or an argument out of range.
    """

    _max_bytes = 2**30
    """Size above which the oldest tenth of a file is dropped."""

    def __init__(
        self,
        model: Model,
        path: str | Path | AnswerStore,
        *,
        keep: Keep = "complete",
    ) -> None:
        if keep not in get_args(Keep):
            raise ConfigurationError("keep", keep, "use 'complete' or 'all'")
        super().__init__(model)
        self.retries = self._wrapped.retries
        self.keep = keep
        self._own: CacheFile | None = None
        if isinstance(path, AnswerStore):
            self._file = path
        else:
            self._file = self._own = CacheFile(_target.path_from(path), self._max_bytes)
        self._closed = False
        self._flights = SingleFlight[Completion](0)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request from the file, or from the model.

        If the file fails later (disk full, locked for 30 s, damaged), a warning is logged and the
        model's answer is returned.

        Raises:
            Exception: whatever the model, or a store that was given, raises; `RuntimeError` after
                `close`.
        """
        if self._closed:
            raise RuntimeError(f"the cache {self._file.path} is closed")
        key = self.key(request)
        charged = False

        async def make() -> Completion:
            """Return the stored completion, or ask the model and store what is to be kept."""
            nonlocal charged
            line = await self._call_file(self._file.get_line, key)
            remembered = None if line in (None, FORGOTTEN) else self._read(key, line)
            if remembered is not None:
                return remembered
            charged = True
            completion = await self._ask(request)
            if self._keeps(completion):
                await self._call_file(self._file.put_line, key, to_line(completion))
            return completion

        completion = await self._flights.get(key, make)
        return completion if charged else completion.model_copy(update={"usage": Usage()})

    async def _call_file(self, use: Callable[..., R], *args: object) -> R:
        """Call a method of the file, in a thread where the file is our own.

        It is read or written to the end even if the caller is cancelled.
        """
        if self._own is None:
            return use(*args)
        # To the end even if the caller is cancelled: an answer that has arrived is stored although
        # another request's failure, or Ctrl-C, ends the run.
        running = asyncio.get_running_loop().run_in_executor(None, use, *args)
        return await asyncio.shield(running)

    async def _ask(self, request: CompletionRequest) -> Completion:
        """Ask the model for an answer that is not in the file."""
        return await self._wrapped.complete(request)

    def forget(self, request: CompletionRequest) -> None:
        """Remove a request's answer from the file, so that it is asked for again."""
        self._file.put_line(self.key(request), FORGOTTEN)

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

    def _keeps(self, completion: Completion) -> bool:
        """Whether a completion may be stored, and used when it is read."""
        return self.keep == "all" or all(
            choice.finish_reason == "stop" and choice.text for choice in completion.choices
        )

    def _read(self, key: str, line: str) -> Completion | None:
        """Read a stored line; None when it is to be asked for again.

        That is when `keep` does not cover it, or it cannot be read, which is logged.
        """
        try:
            completion = from_line(Completion, line)
            return completion if self._keeps(completion) else None
        except InputError as error:
            logger.warning("%s: answer %s is asked for again: %s", self._file.path, key[:8], error)
            return None

    def close(self) -> None:
        """Close the file; the model and a store that was given stay open.

        `complete` raises `RuntimeError` from then on. Closing twice does nothing.
        """
        self._closed = True
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


# --- Answers by key: `AnswerStore`, and `CacheFile` on disk


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
        most_bytes: size above which the oldest tenth is dropped, or what is above it; None to drop
            nothing.
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
        """Return all keys; empty for a file that is absent, fails or was closed.

        Raises:
            OSError: the file fails, with `strict`.
        """
        if not self.path.exists():
            return set()
        return {row[0] for row in self._execute("SELECT key FROM completions")}

    def get_line(self, key: str) -> str | None:
        """Return the line of a key; None when there is none, or the file fails or was closed.

        Raises:
            OSError: the file fails, with `strict`.
        """
        if self._connection is None and not self.path.exists():
            return None
        rows = self._execute("SELECT value FROM completions WHERE key = ?", key)
        return rows[0][0] if rows and isinstance(rows[0][0], str) else None

    def put_line(self, key: str, line: str) -> None:
        """Store a line under a key, in place of an earlier one; does nothing after `close`.

        A failure is logged; with `strict`, it is raised, and the folder of a new file is made. If
        the file has grown above `most_bytes`, which is checked at the first line and once in 256,
        its oldest tenth is deleted, or what is above that size.

        Raises:
            OSError: the file fails, with `strict`.
        """
        if self._strict and self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._execute("INSERT OR REPLACE INTO completions VALUES (?, ?, ?)", key, line, time.time())
        if self._most_bytes is None:
            return
        with self._lock:
            is_due = self._puts % _PUTS_BETWEEN_CHECKS == 0  # at first, too: a run may be short
            above = 1 - self._most_bytes / max(1, self._size()) if is_due else 0.0
            self._puts += 1
        if above > 0:
            self._execute(
                "DELETE FROM completions WHERE rowid IN (SELECT rowid FROM completions ORDER BY "
                "rowid LIMIT (SELECT 1 + CAST(count(*) * ? AS INTEGER) FROM completions))",
                max(0.1, above),
            )

    def _size(self) -> int:
        """Return the bytes in use of the file, without its free pages; 0 when it fails."""
        pages, free, size = (
            (self._execute(f"PRAGMA {name}") or [(0,)])[0][0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _execute(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; opens the connection if there is none.

        Empty after `close`, when the statement fails, and from then on if the file is damaged. Each
        kind of failure is logged once.

        Raises:
            OSError: the file fails, with `strict`.
        """
        _process.notice_fork()
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
        """Close the connection; the next use opens another one and checks the file again."""
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
        """Close the connection before a fork, and hold the lock until the fork is over.

        A connection that two processes have damages the file.
        """
        self._lock.acquire()
        self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Release the lock in the parent; the next use opens a connection."""
        self._lock.release()

    def after_fork(self) -> None:
        """Close a connection that no thread was using; the next use opens another one."""
        # SQLite takes the locks of one that stays open for the child's.
        if self._lock.acquire(blocking=False):
            self._disconnect()
        else:
            _process.keep(self._connection)
        self._lock, self._connection = threading.RLock(), None

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


def _open(path: Path) -> sqlite3.Connection:
    """Open a cache file in WAL mode; create it, for its owner only, when absent or empty.

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
    """Refuse a file that is not a cache of this schema; an absent or empty one passes.

    Reads the first 100 bytes without SQLite, which may roll back a journal or replay a log when it
    opens a database.
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
    """Refuse a file whose pages are damaged; one above 64 MB is not checked."""
    if path.stat().st_size <= _CHECKED:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _refusal(path, f"is damaged: {verdict}; move it away to start a new one")


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch a database to write-ahead logging, also while others open it.

    Sets `synchronous` to `NORMAL` as well. While another process holds the file, it tries again for
    30 seconds.

    Raises:
        sqlite3.OperationalError: the file was held for longer.
    """
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
