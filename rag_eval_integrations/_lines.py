"""`LineFile`: a file that lines are appended to, each whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from rag_eval_integrations import _target

_NEWLINE = b"\n"
_BLOCK = 1 << 16


class LineFile:
    """An open file to which whole lines are appended; a context manager.

    A line is one `write` to a file opened with O_APPEND, so lines of several processes stand after
    one another, never within. Processes take turns by `flock` where there is one, so that a line
    that a full disk cut short can be taken back.

    The data is handed to the operating system, not forced to the disk (no `fsync`).

    Args:
        path: the file, as returned by `_target.resolved`; created when absent, for its owner only.
        new: refuse a file that exists.
        wait: wait for a process that has the file open.

    Raises:
        ConfigurationError: when the path is not that of a regular file.
        FileExistsError: when the file exists and `new` is set.
        BlockingIOError: when another process has the file open and `wait` is not set.
        OSError: when the file cannot be opened.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, new: bool = False, wait: bool = True
    ) -> None:
        self.path = path
        while True:
            self._file = _target.append(path, new=new)
            try:
                self._locked = _target.lock(self._file, wait=wait)
            except BaseException:
                os.close(self._file)
                raise
            if self.is_at_path():
                return
            os.close(self._file)  # removed or renamed while its lock was waited for

    def is_at_path(self) -> bool:
        """Return whether the file still has its name."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file, at most `size`."""
        os.lseek(self._file, 0, os.SEEK_SET)
        return os.read(self._file, size)

    def append(self, line: bytes) -> int:
        """Append a line, given without its line end; return the offset at which it begins.

        Raises:
            OSError: when the line cannot be written whole; nothing of it is in the file.
        """
        return self._write(line + _NEWLINE)

    def take_place(self, path: Path, *, new: bool) -> None:
        """Rename the file to another's name, as `_target.take_place` does."""
        _target.take_place(self._file, Path(self.path), path, new=new)

    def end_last_line(self, torn: Callable[[bytes], bool] = lambda line: False) -> None:
        """End a line that a killed process left unfinished, so that it does not spoil the next.

        Args:
            torn: tells whether such a line is cut off instead.

        Raises:
            OSError: when the file cannot be read or written.
        """
        end = start = os.fstat(self._file).st_size
        pieces = [b""]
        while start and _NEWLINE not in pieces[-1]:
            size = min(start, _BLOCK)
            start -= size
            os.lseek(self._file, start, os.SEEK_SET)
            pieces.append(os.read(self._file, size))
        last = b"".join(reversed(pieces)).rpartition(_NEWLINE)[2]
        if last and torn(last):
            self.truncate(end - len(last))
        elif last:
            self._write(_NEWLINE)

    def truncate(self, size: int) -> None:
        """Cut the file to its first `size` bytes."""
        os.ftruncate(self._file, size)

    def _write(self, data: bytes) -> int:
        """Append data as a whole or not at all; return the size before."""
        size = os.fstat(self._file).st_size
        try:
            count = os.write(self._file, data)
        except OSError as error:
            raise _target.readable(error, self.path) from error
        if count < len(data):  # a full disk: the next write would say so, but half a line is here
            self.truncate(size)
            raise OSError(
                f"{self.path}: only {count} of {len(data)} bytes could be written and were taken "
                "back; is the disk full?"
            )
        return size

    def close(self) -> None:
        """Let other processes write, and close the file; closing twice does nothing."""
        if self._file < 0:
            return
        file, self._file = self._file, -1
        if self._locked:
            import fcntl  # noqa: PLC0415  # not on every platform

            # Closing is not enough: a child forked meanwhile holds the same open file, and its
            # lock.
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
