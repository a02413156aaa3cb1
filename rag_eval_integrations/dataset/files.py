"""Reads JSONL files line by line, in flat memory; gzip is recognised by its first bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, Self, TypeVar, cast

from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError
from rag_eval_integrations.records import Evaluation, RagCall, from_line, parse_object, to_line

T = TypeVar("T")

_MAX_LINE = 256 * 1024 * 1024
"""Bytes; a longer line is not a row but a file of another kind."""


@dataclass(frozen=True)
class Line(Generic[T]):
    """One line of a file: its value, or the reason why it has none."""

    number: int
    """From 1."""
    value: T | None
    error: InputError | None = None


def open_lines(path: Path) -> BinaryIO:
    """Open a file for reading lines of bytes, through gzip where it is compressed.

    Raises:
        OSError: when it cannot be opened.
    """
    with path.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if compressed else path.open("rb")


def read_lines(path: Path, read: Callable[[dict[str, Any]], T]) -> Iterator[Line[T]]:
    """Read every line that is not blank; a bad one is an error in its place, not the end.

    Args:
        path: a JSONL file, also gzipped.
        read: makes a value of the parsed object, or raises `InputError`.

    Yields:
        One `Line` for each line that is not blank, in order.

    Raises:
        ConfigurationError: when another version of the library wrote the file's evaluations.
        OSError: when the file cannot be opened or read.
    """
    with open_lines(path) as stream:
        number = 0
        while line := stream.readline(_MAX_LINE):
            number += 1
            if line.isspace():
                continue
            try:
                yield Line(number, read(parse_object(line)))
            except SchemaError as error:
                raise ConfigurationError("file", str(path), error.why) from error
            except InputError as error:
                yield Line(number, None, InputError(error.why, field=error.field, line=number))


def read_calls(path: Path) -> Iterator[Line[RagCall]]:
    """Read the calls of a CALLS, LABELLED or RAGBench file."""
    return read_lines(path, call_from)


# --- EVALS.jsonl: rows as they finish, the ordered file at the end, nothing paid for twice


_PARTIAL, _OUT = 0, 1


class EvaluationFile:
    """The output of one run; a context manager.

    Args:
        path: OUT. Replaced at the end, atomically.
        fingerprint: of the evaluator; rows made by another one are not taken over.
        resume: take over what OUT and OUT.partial hold.

    Raises:
        ConfigurationError: when OUT.partial exists and `resume` is not set, when another run is
            writing it, or when there is something else to resume from than evaluations of this
            version's format.
        OSError: when the files cannot be written.
    """

    def __init__(self, path: Path, fingerprint: str, *, resume: bool = False) -> None:
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.stale = 0
        """Rows of an earlier run that were made otherwise or failed, and are made again."""
        self._kept = False  # whether OUT.partial holds an evaluation without an error
        self._offsets = array("q")
        self._recorded: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        if not resume and self.partial.exists():
            raise ConfigurationError(
                "out", str(self.partial),
                "is there from a run that did not end; go on with --resume, or delete it",
            )  # fmt: skip
        with ExitStack() as opened:
            try:
                self._file = opened.enter_context(
                    LineFile(self.partial, new=not resume, wait=False)
                )
            except BlockingIOError as error:
                why = "is being written by another run"
                raise ConfigurationError("out", str(self.partial), why) from error
            self._sources = [opened.enter_context(self.partial.open("rb"))]
            if resume:
                opened.callback(self._remove_if_empty)
                self._index(_PARTIAL, fingerprint)
                if path.exists():
                    self._sources.append(opened.enter_context(path.open("rb")))
                    self._index(_OUT, fingerprint)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def take(self, index: int, row: RagCall | Evaluation) -> Evaluation | None:
        """Take over an earlier run's evaluation of a call; None when there is none left."""
        places = self._recorded.get(_identity(row))
        if not places:
            return None
        source, offset = places.pop(0)
        self._place(index, source, offset)
        return from_line(Evaluation, self._line(source, offset))

    def add(self, index: int, evaluation: Evaluation) -> None:
        """Append the evaluation of the call at `index` (from 0)."""
        offset = self._file.append(to_line(evaluation).encode("ascii"))
        self._place(index, _PARTIAL, offset)
        self._kept = self._kept or evaluation.error is None

    def finish(self) -> None:
        """Write OUT in input order and remove OUT.partial."""
        ordered = self.path.with_name(self.path.name + ".ordered")
        with ordered.open("wb") as target:
            for place in self._offsets:
                if place >= 0:
                    target.write(self._line(place & 1, place >> 1))
            target.flush()
            os.fsync(target.fileno())
        ordered.replace(self.path)
        self.partial.unlink()

    def discard(self) -> bool:
        """Remove OUT.partial unless it holds rows to resume from; return whether it is gone."""
        if self._kept:
            return False
        self.partial.unlink(missing_ok=True)
        return True

    def _remove_if_empty(self) -> None:
        if self.partial.exists() and not self.partial.stat().st_size:
            self.partial.unlink()  # a refused or idle run leaves nothing to resume

    def _place(self, index: int, source: int, offset: int) -> None:
        if index >= len(self._offsets):
            self._offsets.extend([-1] * (index + 1 - len(self._offsets)))
        self._offsets[index] = offset << 1 | source

    def _line(self, source: int, offset: int) -> bytes:
        stream = self._sources[source]
        stream.seek(offset)
        return stream.readline()

    def _index(self, source: int, fingerprint: str) -> None:
        stream = self._sources[source]
        found = foreign = 0
        for offset, line in _lines(stream):
            try:
                evaluation = from_line(Evaluation, line)
            except SchemaError as error:
                raise ConfigurationError("out", stream.name, error.why) from error
            except InputError:
                if source == _PARTIAL and not line.endswith(b"\n"):
                    self._file.truncate(offset)  # the row that a killed run was writing
                    break
                foreign += 1
                continue
            found += 1
            if evaluation.error is None and evaluation.fingerprint == fingerprint:
                self._recorded[_identity(evaluation)].append((source, offset))
                self._kept = self._kept or source == _PARTIAL
            else:
                self.stale += 1
        if foreign and not found:
            raise ConfigurationError(
                "out", stream.name, "holds no evaluations, so there is nothing to resume"
            )
        self.stale += foreign


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while line := stream.readline():
        yield offset, line
        offset += len(line)


def _identity(row: RagCall | Evaluation) -> bytes:
    """Digest what a row is known by: its content, its label and its metadata."""
    text = json.dumps([row.row_key, row.id, row.metadata], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:16]
