"""`SpoolImport`: moves the calls of spools into a store, while their writers live and afterwards.

    the writer lives             what is committed is imported, and the last row is remembered
    it closed the file, or died  the rest is imported, and the file is removed
    not all of it can be read    what can be read is imported; the file is renamed, and the store
                                 counts the rest

Calls are told apart by their ids: one that is read again is in the store once all the same.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations._contain import words_of
from rag_eval_integrations._visible import LogOnce, visible
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.store.database import Store
from rag_eval_integrations.store.spool import (
    LIFE,
    PARTS,
    SUFFIX,
    VERSION,
    Refusal,
    SpooledCall,
    remove,
    why_unusable,
)

_BATCH = 1_000
_ROWS = 128
"""Calls for which a page has no room; a larger number is a damaged one."""
_ABANDONED = 86_400.0
"""Seconds after which an empty file is removed: its writer died as it made it."""
_OF_THE_MOMENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
"""Errors of the disk, of rights or of memory, which say nothing of the file's content."""
_BEYOND = 2**63 - 1
_FORWARDS = "SELECT n, call_uid, at, body FROM call WHERE n > ? ORDER BY n LIMIT ?"
_BACKWARDS = "SELECT n, call_uid, at, body FROM call WHERE n > ? AND n < ? ORDER BY n DESC LIMIT ?"
_REFUSALS = "SELECT rowid, uid, at, why, calls FROM refusal WHERE rowid > ? ORDER BY rowid LIMIT ?"


class _Place(NamedTuple):
    """How far a file has been imported: the last rows that are in the store."""

    call: int = 0
    refusal: int = 0


class SpoolImport:
    """Moves the calls of spools into a store.

    Args:
        store: the store.
        folders: the spools, which need not exist yet.
        failures: logs what cannot be read.
    """

    def __init__(self, store: Store, folders: Sequence[Path], failures: LogOnce) -> None:
        self._store, self._folders, self._failures = store, folders, failures
        self._places: dict[Path, _Place] = {}

    def run(self, stopping: Callable[[], bool] = bool) -> int:
        """Import what there is, the oldest files first; return the number of new calls.

        Args:
            stopping: tells whether to end with this batch; the rest is imported another time.

        Raises:
            ConfigurationError: a spool is not a folder that can be read and written.
            OSError: the store cannot be written.
        """
        paths = [path for folder in self._folders for path in self._files(folder)]
        self._places = {path: self._places.get(path, _Place()) for path in paths}
        added = 0
        for path in paths:
            if stopping():
                break
            try:
                with suppress(FileNotFoundError):  # another worker has just removed it
                    added += self._import(path, stopping)
            except sqlite3.Error as error:
                if path.exists():
                    message = "%s cannot be read now (%s); it stays, and is tried again"
                    self._failures.log(("unread", path), message, visible(str(path)), error)
        return added

    def _files(self, folder: Path) -> list[Path]:
        """List the files of a spool; a folder that does not exist is logged once."""
        if not folder.exists():
            message = "the spool %s does not exist yet"
            self._failures.log(("no folder", folder), message, visible(str(folder)))
        elif not folder.is_dir():
            raise ConfigurationError("spool", str(folder), "is not a folder; use that of a Spool")
        elif (number := why_unusable(folder)) is not None:
            why = f"cannot be used: {os.strerror(number).lower()}"
            if number == errno.EACCES and folder.stat().st_uid != os.geteuid():
                why = "is another user's; run the worker as the user of the app"
            raise ConfigurationError("spool", str(folder), why)
        return sorted(folder.glob(f"*{SUFFIX}"))

    def _import(self, path: Path, stopping: Callable[[], bool]) -> int:
        """Import what a file holds behind its place; return the number of new calls.

        Raises:
            sqlite3.Error: it cannot be read now.
        """
        status = path.stat()
        if not status.st_size:  # its writer is making it, or died as it did
            if time.time() - status.st_mtime > _ABANDONED:
                remove(path)
            return 0
        closed = not _has_live_writer(path)  # looked at before reading: nothing comes after that
        added = 0
        uri = f"{path.as_uri()}?mode=rw"  # never made anew
        with closing(sqlite3.connect(uri, 1.0, isolation_level=None, uri=True)) as file:
            reading = _Reading(file, self._places[path], closed)
            for calls, refusals in reading.batches():
                added += self._store.add(calls, refusals)
                self._places[path] = reading.place
                if stopping():
                    return added
            lost = reading.lost()
        if closed and lost == 0 and reading.fault is None:
            remove(path)
        elif closed:
            self._put_aside(path, reading, lost)
        return added

    def _put_aside(self, path: Path, reading: _Reading, lost: int | None) -> None:
        """Rename a file of which not everything could be imported, and count the rest."""
        kind, suffix = "a damaged file", ".damaged"
        if reading.foreign:
            kind, suffix = "a file of another version", ".aside"
        number = "an unknown number " if lost is None else ""
        why = f"{number}in {kind}, kept in the spool as *{suffix}"
        self._store.add([], [Refusal(path.name, time.time(), why, lost or 0)])
        kept = path.with_suffix(suffix)
        path.with_name(path.name + LIFE).unlink(missing_ok=True)
        for part in PARTS:
            with suppress(FileNotFoundError):
                path.with_name(path.name + part).replace(kept.with_name(kept.name + part))
        message = "%s was imported without %s of its calls (%s); it is kept"
        left = "an unknown number" if lost is None else f"{lost:,}"
        fault = reading.fault or "rows are not as they were written"
        self._failures.log(("aside", path), message, visible(str(kept)), left, visible(fault))


class _Reading:
    """What a file holds behind a place, read in transactions of a batch each.

    Args:
        file: the file.
        place: the last rows that were read before.
        closed: whether nothing is written any more; only then is damage read around.
    """

    def __init__(self, file: sqlite3.Connection, place: _Place, closed: bool) -> None:
        file.text_factory = bytes  # where it is damaged, it may hold any
        file.execute("PRAGMA writable_schema = ON")  # else nothing of half a file can be read
        self._file, self._closed, self._first = file, closed, place.call
        self._calls = 0
        self.place = place
        self.fault: str | None = None
        """Why something cannot be read; None where everything could be."""
        self.foreign = False
        """Whether that is because another version wrote it."""

    def batches(self) -> Iterator[tuple[list[SpooledCall], list[Refusal]]]:
        """Yield calls in their order, those behind damage from the last one backwards.

        Counts of refused calls come last.
        """
        for (version,) in self._rows("PRAGMA user_version"):
            if version > VERSION:
                self.fault = f"of version {version}; rename it to *{SUFFIX} for a newer worker"
                self.foreign = True
                return
        if self._is_new():
            return
        while rows := self._following(_FORWARDS, self.place.call):
            self.place = self.place._replace(call=rows[-1][0])
            yield self._sound(rows), []
        before = _BEYOND
        while self.fault and self._closed:
            rows = self._rows(_BACKWARDS, self.place.call, before, _BATCH)
            if not rows or not self.place.call < rows[-1][0] < before:
                break
            before = rows[-1][0]
            yield self._sound(rows), []
        while rows := self._following(_REFUSALS, self.place.refusal):
            self.place = self.place._replace(refusal=rows[-1][0])
            yield [], [refusal for row in rows if (refusal := _refusal(*row)) is not None]

    def lost(self) -> int | None:
        """Return how many calls were not read, by the number of the last; None if unknown."""
        if self._is_new():
            return 0
        rows = self._rows("SELECT max(n) FROM call") + self._rows("PRAGMA page_count")
        if len(rows) < 2:
            return None
        (last,), (pages,) = rows
        lost = (last or 0) - self._first - self._calls
        known = lost <= pages * _ROWS and (lost > 0 or self.fault is None)
        return lost if known else None

    def _is_new(self) -> bool:
        """Tell whether the file has no tables yet: its writer is making it, or died as it did."""
        return not self._rows("SELECT 1 FROM sqlite_master") and self.fault is None

    def _following(self, sql: str, last: int) -> list[Any]:
        """Return the rows after the last one, up to the first gap in their numbers."""
        rows = self._rows(sql, last, _BATCH)
        for place, row in enumerate(rows):
            if row[0] != last + 1 + place:
                self.fault = self.fault or "rows are missing"
                return rows[:place]
        return rows

    def _sound(self, rows: list[Any]) -> list[SpooledCall]:
        """Return the calls of rows that a spool can have written, and count them."""
        calls = [call for row in rows if (call := _call(*row)) is not None]
        self._calls += len(calls)
        return calls

    def _rows(self, sql: str, *values: int) -> list[Any]:
        """Return the rows of a query, up to where the file is damaged.

        Raises:
            sqlite3.Error: it cannot be read now.
        """
        rows = []
        try:
            for row in self._file.execute(sql, values):
                rows.append(row)  # noqa: PERF402 -- those before damage stay
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _OF_THE_MOMENT:
                raise
            self.fault = self.fault or words_of(error)
            self.foreign = code == sqlite3.SQLITE_ERROR  # other tables or columns
        return rows


def _call(n: int, uid: Any, at: Any, body: Any) -> SpooledCall | None:
    """Read a call of a row; None if it is not as a spool writes it."""
    try:
        call = SpooledCall(uid.decode(), float(at), body.decode())
    except (AttributeError, TypeError, ValueError):
        return None
    return None if "\0" in call.call_uid or "\0" in call.body else call


def _refusal(n: int, uid: Any, at: Any, why: Any, calls: Any) -> Refusal | None:
    """Read a count of refused calls; None if it is not as a spool writes it."""
    try:
        return Refusal(uid.decode(), float(at), why.decode(), int(calls))
    except (AttributeError, TypeError, ValueError):
        return None


def _has_live_writer(path: Path) -> bool:
    """Tell whether the process that writes a file still lives and has it open."""
    life = path.with_name(path.name + LIFE)
    if not life.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{life.as_uri()}?mode=ro", 0.0, uri=True)) as locked:
            locked.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError:  # locked, or just removed by another worker
        return True
    return False
