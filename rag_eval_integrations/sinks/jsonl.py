"""A sink that appends evaluations to a file, one line of JSON each, never torn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_eval_integrations.records import Evaluation, to_line

_NEWLINE = b"\n"


class JsonlSink:
    """Appends each evaluation to a file as a line of EVALS.jsonl.

    A row is one `write` to a file opened with O_APPEND, so rows of several processes (gunicorn
    workers, a forked child) stand after one another, never within. The file is opened for each
    batch and closed after it: nothing is inherited by a fork, nothing is left open, and a file
    that was rotated away is made anew. Processes take turns by `flock` where there is one, so that
    a row that a full disk cut short is taken back; a part that a killed process left is ended with
    a line end, so that it does not spoil the next row.

    The data is handed to the operating system, not forced to the disk (no `fsync`).

    Args:
        path: the file; made by the first batch. Its folder has to be there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()  # the app may change its folder later

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Append the batch.

        Raises:
            OSError: when the file cannot be opened or written; rows before it are in the file.
        """
        lines = [to_line(evaluation).encode("ascii") + _NEWLINE for evaluation in batch]
        with _opened(self.path) as descriptor:
            _end_last_line(descriptor)
            for line in lines:
                _append(descriptor, line)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        with _locked(descriptor):
            yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    try:
        import fcntl  # noqa: PLC0415  # not on every platform
    except ImportError:  # pragma: no cover
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        # Closing is not enough: a child forked meanwhile holds the same open file, and its lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _end_last_line(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != _NEWLINE:
            _append(descriptor, _NEWLINE)


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    written = os.write(descriptor, line)
    if written < len(line):  # a full disk: the next write would say so, but half a row is here
        os.ftruncate(descriptor, size)
        raise OSError(f"only {written} of {len(line)} bytes could be written, and were taken back")
