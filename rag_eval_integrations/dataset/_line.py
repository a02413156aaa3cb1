"""`Line`: one row of a source, or why it is none; bad rows without number are counted together.

A megabyte may hold half a million bad rows, and to say of each why it is one takes 5 to 40 µs. So
the first of them are told in full; after those, what is seen to be bad at a glance is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, TypeVar

from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError

T = TypeVar("T")

TOLD = 1_000
"""Bad rows of a source that are told one by one."""
_TOGETHER = 10_000
"""Bad rows that one line stands for at most, so that whoever reads them is not held up."""

NOT_AN_OBJECT = InputError("not a JSON object")
"""Stands for each row that is seen to be bad at a glance, once enough were told."""
OTHER_CELLS = InputError("has another number of cells than the table has columns")
_LACKS_A_FIELD = InputError("a field is missing")


@dataclass(frozen=True)
class Line(Generic[T]):
    """One line of a file: its value, or the reason why it has none."""

    number: int
    """From 1; of the line, or of the row in a JSON array, a Parquet file or a list."""
    value: T | None
    error: InputError | None = None
    count: int = 1
    """Rows that it stands for, this one and those behind it. More than 1 only after 1,000 bad rows
    of a source: bad rows that follow each other are then told as one."""


class Patience:
    """How many bad rows of a source are still told in full; what reads a source shares one."""

    def __init__(self) -> None:
        self._left = TOLD

    @property
    def over(self) -> bool:
        return self._left <= 0

    def told(self) -> None:
        self._left -= 1


def lines_from(
    rows: Iterable[tuple[int, Any]],
    read: Callable[[Any], T],
    *,
    unit: str,
    patience: Patience,
    hopeless: Callable[[dict[str, Any]], bool],
) -> Iterator[Line[T]]:
    """Read every row; a bad one is an error in its place, not the end.

    Args:
        rows: number of each row, and the row or why it is none.
        read: makes a value of a row, or raises `InputError`.
        unit: what the number counts.
        patience: shared with what yields the rows.
        hopeless: tells at a glance that a row is bad, without a reason; false where only `read`
            tells.

    Raises:
        ConfigurationError, SchemaError: as `read` does.
    """
    first, why, count = 0, NOT_AN_OBJECT, 0
    for number, row in rows:
        if patience.over:
            bad = None
            if row is NOT_AN_OBJECT or row is OTHER_CELLS:
                bad = row
            elif type(row) is dict and hopeless(row):
                bad = _LACKS_A_FIELD
            if bad is not None:
                if not count:
                    first, why = number, bad
                count += 1
                if count == _TOGETHER:
                    yield _several(first, why, count, unit)
                    count = 0
                continue
            if count:
                yield _several(first, why, count, unit)
                count = 0
        found = _line(number, row, read, unit)
        if found.error is not None:
            patience.told()
        yield found
    if count:
        yield _several(first, why, count, unit)


def _line(number: int, row: Any, read: Callable[[Any], T], unit: str) -> Line[T]:
    try:
        if isinstance(row, InputError):
            raise row
        return Line(number, read(row))
    except SchemaError:
        raise
    except InputError as error:
        told = InputError(error.why, field=error.field, line=number, unit=unit)
    except ConfigurationError:
        raise
    except (ArithmeticError, RecursionError, ValueError) as error:
        # Of a number that is too large, or of nesting: what a row holds ends no run.
        told = InputError(f"not usable: {error}", line=number, unit=unit)
    return Line(number, None, told)


def _several(first: int, why: InputError, count: int, unit: str) -> Line[Any]:
    more = f"; {count - 1:,} bad rows follow" if count > 1 else ""
    return Line(first, None, InputError(why.why + more, line=first, unit=unit), count)


def first_rows(lines: Iterable[Line[T]], limit: int | None) -> Iterator[Line[T]]:
    """Yield the lines that begin within the first `limit` rows; all of them where it is None."""
    if limit is None:
        return iter(lines)
    seen = 0

    def within(line: Line[T]) -> bool:
        nonlocal seen
        seen += line.count
        return seen - line.count < limit

    return takewhile(within, lines)
