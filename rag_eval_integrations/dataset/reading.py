"""Reads JSONL files line by line, in flat memory; gzip is recognised by its first bytes."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, cast

from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import RagCall, parse_object

T = TypeVar("T")

_MAX_LINE = 256 * 1024 * 1024
"""Bytes; a longer line is no row but a file of another kind."""


@dataclass(frozen=True)
class Line(Generic[T]):
    """One line of a file: what it holds, or what is wrong with it."""

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
            except InputError as error:
                yield Line(number, None, InputError(error.why, field=error.field, line=number))


def read_calls(path: Path) -> Iterator[Line[RagCall]]:
    """Read the calls of a CALLS, LABELLED or RAGBench file."""
    return read_lines(path, call_from)
