"""Gzipped files of lines: each line readable as soon as it is appended, and any line found again.

The file is gzip in members. A line ends with a flush of the compressor, so what a killed process
leaves is readable to its last whole line; `ZippedLines.mend` ends the member there.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.dataset._seekable import Seekable
from rag_eval_integrations.errors import ConfigurationError

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Of a member, without a name and a time, so that the same lines give the same bytes."""
_FLUSHED = b"\x00\x00\xff\xff"
"""The end of what a compressor gives out when it is flushed."""
_LAST_BLOCK = b"\x03\x00"
"""An empty block that ends the data of a member, where a flush has ended the one before."""
_LINES, _BYTES = 64, 1 << 20
"""Lines of a member, and bytes of them: to find a line again, its member is unpacked."""
_BLOCK = 1 << 16


def is_zipped(path: Path) -> bool:
    """Return whether a file that is going to be written is gzipped, by its name."""
    return path.suffix == ".gz"


class ZippedLines(LineFile):
    """A gzipped file to which whole lines are appended; arguments and errors as for `LineFile`.

    A file that is not empty has to be mended before anything is appended.
    """

    _packer: Any = None  # zlib's type has no name
    _tail = b""
    """What is still to be written to end the member."""
    _crc = _size = _lines = _total = 0

    def append(self, line: bytes) -> int:
        """Append a line; return the offset in the unpacked file at which it begins.

        Raises:
            OSError: when the line cannot be written whole; nothing of it is in the file.
        """
        data = line + b"\n"
        begin = b""
        if self._packer is None or self._lines >= _LINES or self._size >= _BYTES:
            begin = self._tail + _HEADER
            self._packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
            self._crc = self._size = self._lines = 0
        packed = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        try:
            self._write(begin + packed)
        except BaseException:
            self._packer = None  # it knows a line that is not in the file
            raise
        offset = self._total
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._total += len(data)
        self._lines += 1
        self._tail = _end(self._crc, self._size)
        return offset

    def mend(self) -> None:
        """Cut off a line that a killed process was writing, and end its member.

        Raises:
            ConfigurationError: the file is not gzip, or damaged.
            OSError: when the file cannot be read or written.
        """
        try:
            with open(self.path, "rb") as below:
                unpacked = Unzipped(below)
                last, ended = b"\n", True
                for block in iter(lambda: unpacked.read(_BLOCK), b""):
                    last = block[-1:]
                self._total = unpacked.tell()
                raw, start, ended = unpacked.last_member()
                if not ended:
                    below.seek(start)
                    keep, size, self._tail = _whole(below.read())
                    self.truncate(start + keep)
                    self._total, last = raw + size, b"\n"
        except zlib.error as error:
            why = f"the gzip data is damaged ({error}), so there is nothing to resume"
            raise ConfigurationError("out", str(self.path), why) from error
        self._end_member()
        if last != b"\n":  # of a file that was edited
            self.append(b"")

    def take_place(self, path: Path, *, new: bool) -> None:
        """Have the file take the place of another, whole."""
        self._end_member()
        super().take_place(path, new=new)

    def close(self) -> None:
        """Do the same as `LineFile.close`; the file is whole, unless the disk is full."""
        if self._file >= 0:
            with suppress(OSError):  # then it is as after a kill
                self._end_member()
        super().close()

    def _end_member(self) -> None:
        if self._tail:
            self._write(self._tail)
        self._packer, self._tail = None, b""


def _end(crc: int, size: int) -> bytes:
    return _LAST_BLOCK + crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _whole(member: bytes) -> tuple[int, int, bytes]:
    """Find the whole lines of a member that was cut: its bytes, theirs, and what ends it there."""
    found = 0, 0, b""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    at, crc, size = len(_HEADER), 0, 0
    while (flushed := member.find(_FLUSHED, at) + len(_FLUSHED)) >= at + len(_FLUSHED):
        data = unpacker.decompress(member[at:flushed])
        if unpacker.eof:  # the member's data have ended; only its check is cut
            break
        at, crc, size = flushed, zlib.crc32(data, crc), size + len(data)
        # The same bytes may occur within a block, where the data could not be ended.
        probe = unpacker.copy()
        with suppress(zlib.error):
            probe.decompress(_LAST_BLOCK)
        if probe.eof and data.endswith(b"\n"):
            found = at, size, _end(crc, size)
    return found


class Unzipped(Seekable):
    """The unpacked content of a gzipped file; a place is found again by unpacking its member.

    Args:
        below: the file, which may grow.
        whole: raise EOFError where the last member is cut.
    """

    def __init__(self, below: BinaryIO, *, whole: bool = False) -> None:
        super().__init__()
        self.name = below.name
        self._below, self._is_whole = below, whole
        self._raw, self._packed = array("q", [0]), array("q", [0])  # where members begin
        self._begin(0)

    def _begin(self, member: int) -> None:
        self._member, self._position = member, self._raw[member]
        self._read_to = self._packed[member]
        self._below.seek(self._read_to)
        self._unpacker, self._input = zlib.decompressobj(zlib.MAX_WBITS | 16), b""

    def last_member(self) -> tuple[int, int, bool]:
        """Return where the last member read begins, unpacked and packed, and whether it is whole.

        Of an empty file, there is a whole one.
        """
        return self._raw[-1], self._packed[-1], self._unpacker.eof or not self._read_to

    def readinto(self, buffer: Any, /) -> int:
        """Read at least a byte, unless there is none."""
        member = bisect_right(self._raw, self._wanted) - 1
        if self._wanted < self._position or member > self._member:
            self._begin(member)
        while self._position < self._wanted:
            if not self._unpack(min(_BLOCK, self._wanted - self._position)):
                return 0
        data = self._unpack(len(buffer))
        buffer[: len(data)] = data
        self._wanted += len(data)
        return len(data)

    def _unpack(self, size: int) -> bytes:
        while True:
            if self._unpacker.eof:
                following = self._unpacker.unused_data or self._more()
                if not following:
                    return b""
                self._member += 1
                if self._member == len(self._raw):
                    self._raw.append(self._position)
                    self._packed.append(self._read_to - len(following))
                self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._input = following
            data = self._unpacker.decompress(self._input, size)
            self._input = self._unpacker.unconsumed_tail
            if data:
                self._position += len(data)
                return data
            if not self._unpacker.eof and not self._input:
                self._input = self._more()
                if not self._input:
                    if self._is_whole and self._read_to:
                        raise EOFError("it ends within a member")
                    return b""

    def _more(self) -> bytes:
        block = self._below.read(_BLOCK)
        self._read_to += len(block)
        return block

    def close(self) -> None:
        """Close the file below, too."""
        super().close()
        self._below.close()
