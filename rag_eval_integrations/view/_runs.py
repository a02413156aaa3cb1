"""The runs of a folder: files of evaluations, read in a thread as they come and as they grow.

    scan     folder ─▶ runs, each known by its first row, the newest first; the rest is counted
    figures  a run's running totals, as far as its file is read; what is appended goes on from there
    calls    one page of a run's calls, by the offsets at which pages begin

A file is known by its name, size and time: as long as they stay, it is not read again.
"""

from __future__ import annotations

import gzip
import os
import stat
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._input import LONGEST_ROW, Line, lines_from, lines_of
from rag_eval_integrations.dataset._labels_file import labels_in
from rag_eval_integrations.errors import InputError, RagEvalError
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.records import Evaluation, from_line

PAGE = 1_000
"""Calls of a page: fewer than a report holds, as a person waits for each page."""
POLL = 2.0
"""Seconds for which what was found of a folder is taken to be so."""
_MOST = 1_000
"""Runs that are listed, at some 40 kB of figures each."""
_TAIL = 256
"""Bytes of the last row that tell whether a file was appended to or written anew."""
_TURN = 0.2
"""Seconds after which a run that grows is read first."""
PARTIAL = ".partial"
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Stamp(NamedTuple):
    """Inode, size and time of a file, which tell whether it has changed."""

    inode: int
    size: int
    time: int
    """Nanoseconds since 1970."""


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns)


class ReplacedError(Exception):
    """The file is not the one that was read before."""


class Cursor:
    """Position in a file that may grow, from which each line is read once."""

    def __init__(self) -> None:
        self._offset = 0
        self._before = b""

    @property
    def is_at_line(self) -> bool:
        """Whether the position is at the beginning of a line."""
        return self._before[-1:] in (b"", b"\n")

    def lines(self, stream: BinaryIO, *, growing: bool) -> Iterator[tuple[int, bytes | InputError]]:
        """Yield the offset of each further line, and the line or why it cannot be read.

        Args:
            stream: the file, opened anew.
            growing: leave a line without its end for later.

        Raises:
            ReplacedError: in front of the place stands something else than before.
        """
        stream.seek(self._offset - len(self._before))
        if stream.read(len(self._before)) != self._before:
            raise ReplacedError
        start = self._offset
        for _, offset, line in lines_of(stream, LONGEST_ROW):
            if isinstance(line, bytes):
                if growing and not line.endswith(b"\n"):
                    return
                self._offset, self._before = start + offset + len(line), line[-_TAIL:]
            yield start + offset, line


class RunFile:
    """A file of evaluations, whole or still being written by a run.

    Args:
        path: the file.
        stamp: its state as it was found.

    Raises:
        RagEvalError: its first row is not an evaluation.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.path, self.stamp = path, stamp
        self.name = path.name
        self.address = quote(os.fsencode(path.name), safe="")
        """The name as a part of an address; not every name is text."""
        self.link = f"/run/{quote(self.address)}"
        self.growing = path.name.endswith(PARTIAL)
        """Whether a run writes it, or wrote it and was ended early."""
        self.bad = 0
        """Rows that cannot be read."""
        self.is_read = False
        """Whether the figures are of the whole file."""
        self._summary, self._copy = Summary(), Summary()
        self._lock = threading.Lock()
        """Held while the figures change or are copied."""
        self._figures, self._pages = Cursor(), Cursor()
        self._offsets: list[int] = []
        """Offset of the first call of each page."""
        self._count = 0
        self._counted: Stamp | None = None
        self._indexing = threading.Lock()
        self.first = self._first_row()

    def _first_row(self) -> Evaluation | None:
        """Read the first row; None for a run that has only begun."""
        with self._open() as stream:
            self._packed = isinstance(stream, gzip.GzipFile)
            if stream.read(1).strip(b"{\xef \t\r\n"):
                raise InputError("not a row of JSON")  # nor is its first line, however long, read
            _, line = next(Cursor().lines(stream, growing=self.growing), (0, b""))
        if isinstance(line, InputError):
            raise line
        if not line and not self.growing:
            raise InputError("is empty")
        return from_line(Evaluation, line) if line else None

    def _open(self) -> BinaryIO:
        """Open the file, unpacked; refuse a link that has taken its place."""
        file = os.open(self.path, _FLAGS)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(f"{self.path}: is not a regular file")
        return _input.unpacked(os.fdopen(file, "rb"))

    @property
    def modified(self) -> datetime:
        """When its file was last written."""
        return datetime.fromtimestamp(self.stamp.time / 1e9, UTC)

    @property
    def started(self) -> datetime:
        """When it was started, or when its file was last written where the rows do not say."""
        if self.first is not None and self.first.run is not None:
            return self.first.run.start
        return self.modified

    def accept_growth(self, stamp: Stamp) -> bool:
        """Accept a new stamp if the file may have been appended to; else return False."""
        same = stamp.inode == self.stamp.inode and stamp.size > self.stamp.size
        if not same or self._packed or not (self._figures.is_at_line and self._pages.is_at_line):
            return False
        with self._lock:
            self.stamp, self.is_read = stamp, False
        if self.first is None:
            self.first = self._first_row()
        return True

    def read(self) -> Iterator[None]:
        """Add the rows since the last read to the figures; yield now and then.

        Raises:
            ReplacedError, OSError: as for `Cursor.lines`; it cannot be read any more.
        """
        stamp = self.stamp
        turn = time.monotonic() + _TURN
        with self._open() as stream:
            rows = enumerate(line for _, line in self._figures.lines(stream, growing=self.growing))
            for line in lines_from(rows, partial(from_line, Evaluation), "line", self.path):
                with self._lock:
                    if line.value is None:
                        self.bad += 1
                    else:
                        self._summary.add(line.value)
                if time.monotonic() > turn:
                    yield
                    turn = time.monotonic() + _TURN
        with self._lock:
            self.is_read = stamp == self.stamp

    def figures(self) -> Summary:
        """Return a copy of the figures so far."""
        with self._lock:
            if self._copy.calls != self._summary.calls:
                self._copy = Summary()
                self._copy.merge(self._summary)
            return self._copy

    def count(self) -> int:
        """Count the rows that the file holds now, and note where pages begin."""
        with self._indexing:
            if self._counted == self.stamp:
                return self._count
            self._counted = self.stamp
            with self._open() as stream:
                for offset, _ in self._pages.lines(stream, growing=self.growing):
                    if self._count % PAGE == 0:
                        self._offsets.append(offset)
                    self._count += 1
            return self._count

    def calls(self, first: int, most: int) -> list[Line[Evaluation]]:
        """Read a range of calls.

        Args:
            first: number of the first, from 0, of those that `count` has counted.
            most: their number at most.
        """
        page, skipped = divmod(first, PAGE)
        if first >= self._count:
            return []
        most = min(most, self._count - first)
        with self._open() as stream:
            stream.seek(self._offsets[page])
            rows = ((n, line) for n, _, line in lines_of(stream, LONGEST_ROW))
            wanted = islice(rows, skipped, skipped + most)
            return list(lines_from(wanted, partial(from_line, Evaluation), "line", self.path))

    def call(self, number: int) -> Evaluation | None:
        """Return the call that has a number, from 1, on the pages; None without one."""
        self.count()
        page, place = divmod(number - 1, PAGE)
        rows = self.calls(page * PAGE, PAGE) if number > 0 else []
        calls = [row.value for row in rows if row.value is not None]
        return calls[place] if place < len(calls) else None


_PEOPLE = "holds people's labels"


def _is_labels(path: Path) -> bool:
    """Return whether a file holds people's labels."""
    try:
        return labels_in(path) is not None
    except (OSError, RagEvalError):
        return False


class Folder:
    """The runs of a folder, scanned every two seconds at most, and read by a thread.

    Args:
        path: the folder; files in it are served, what links lead to and other folders are not.

    Raises:
        OSError: it is not a folder that can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.others: dict[str, tuple[Stamp | None, str]] = {}
        """Names of files that are not runs, and why."""
        self.more = 0
        """Older runs that are not listed."""
        self.version = 0
        """Rises when something has changed."""
        self._runs: dict[str, RunFile] = {}
        self._scanned = -POLL
        self._lock = threading.Lock()
        self._work = threading.Event()
        self.runs()
        threading.Thread(target=self._read_runs, name="rag-eval-view", daemon=True).start()

    def runs(self) -> list[RunFile]:
        """List the runs, the newest first."""
        with self._lock:
            if time.monotonic() >= self._scanned + POLL:
                self._scan()
                self._scanned = time.monotonic()
            return sorted(self._runs.values(), key=lambda run: run.started, reverse=True)

    def run(self, address: str) -> RunFile | None:
        """Return the run of an address, percent-encoded or not; None without one."""
        runs = {run.address: run for run in self.runs()}
        run = runs.get(address) or runs.get(quote(address, safe=""))
        if run is not None and not run.path.exists():  # since it was looked for
            self.forget(run)
            return self.run(address)
        return run

    def _scan(self) -> None:
        """Scan the folder, and update the runs by what is new, grown or gone."""
        files: dict[str, Stamp] = {}
        others: dict[str, tuple[Stamp | None, str]] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    files[entry.name] = _stamp(entry.stat(follow_symlinks=False))
                elif not entry.is_dir(follow_symlinks=False):
                    others[entry.name] = None, "is a link, or no regular file"
        newest = nlargest(_MOST, files, key=lambda name: files[name].time)
        runs: dict[str, RunFile] = {}
        for name in newest:
            try:
                run = self._run_of(name, files[name], others)
            except FileNotFoundError:  # gone meanwhile
                continue
            except (OSError, RagEvalError) as error:
                why = str(getattr(error, "why", error))
                others[name] = files[name], _PEOPLE if _is_labels(self.path / name) else why
                continue
            if run is not None:
                runs[name] = run
        self.version += runs != self._runs or any(not run.is_read for run in runs.values())
        self._runs, self.others, self.more = runs, others, len(files) - len(newest)
        self._work.set()

    def _run_of(
        self, name: str, stamp: Stamp, others: dict[str, tuple[Stamp | None, str]]
    ) -> RunFile | None:
        """Return the run of a file, be it known, grown or new; None for a known other file."""
        known, other = self._runs.get(name), self.others.get(name)
        if other is not None and other[0] == stamp:
            others[name] = other
            return None
        if known is not None and (known.stamp == stamp or known.accept_growth(stamp)):
            return known
        return RunFile(self.path / name, stamp)

    def forget(self, run: RunFile) -> None:
        """Drop a run whose file was replaced or is gone, and scan again at the next look."""
        with self._lock:
            self._runs.pop(run.name, None)
            self._scanned = -POLL

    # --- The thread

    def _read_runs(self) -> None:
        """Read the figures of every run, for ever, those of growing runs first."""
        while True:
            self._work.wait()
            run = self._next()
            if run is None:
                self._work.clear()
                continue
            for _ in self._read_run(run):
                while (growing := self._next(growing=True)) not in (None, run):
                    for _ in self._read_run(growing):
                        pass

    def _next(self, *, growing: bool = False) -> RunFile | None:
        """Return the run to read next, or only a growing one; None without one."""
        runs = sorted(self._runs.values(), key=lambda run: (run.growing, run.stamp.time))
        waiting = (run for run in reversed(runs) if not run.is_read)
        run = next(waiting, None)
        return run if run is None or run.growing or not growing else None

    def _read_run(self, run: RunFile) -> Iterator[None]:
        """Read a run to its end, in steps; drop it if its file was replaced."""
        try:
            for _ in run.read():
                self.version += 1
                yield
        except (FileNotFoundError, ReplacedError):
            self.forget(run)
        except (OSError, RagEvalError):  # the rest of it is lost
            run.bad += 1
            run.is_read = True
        self.version += 1
