"""`Seekable`: streams of bytes that are made when they are read, from any place."""

from __future__ import annotations

import io


class Seekable(io.RawIOBase):
    """A stream whose size is not known; `readinto` reads from the byte that is wanted."""

    def __init__(self) -> None:
        self._wanted = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset from the beginning, or from the current one."""
        if whence not in (0, 1):
            raise io.UnsupportedOperation("the size is not known")
        self._wanted = offset + (self._wanted if whence else 0)
        return self._wanted
