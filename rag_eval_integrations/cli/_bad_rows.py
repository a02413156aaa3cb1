"""Tells the bad rows of a file on stderr as they are read, and counts all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.dataset import Line
from rag_eval_integrations.errors import InputError

_MOST_KINDS = 20
_LISTED = 10
"""Rows of one kind whose numbers are told."""

_PLACE = re.compile(r"\[\d++\]")
_WHY = re.compile(r"(?>(?:UTF-8|[^:;,`'\"\d])+)")


T = TypeVar("T")


class NoRowsError(Exception):
    """Raised when no row can be written, so that an existing output stays."""


class BadRows:
    """Counts the invalid rows of a file, by kind, and reports them on stderr.

    The first row of each kind is printed with its place, field and reason; `end` prints how many
    more there are.

    Args:
        path: the file.
    """

    def __init__(self, path: object) -> None:
        self._path = path
        self.count = 0
        self._kinds: dict[str, tuple[int, list[str]]] = {}
        """Kind → the number of its rows, and the places of the first ones."""

    @property
    def has_parsed(self) -> bool:
        """Whether an invalid row could be parsed, so that only its fields are wrong."""
        return not all(kind.startswith("not ") for kind in self._kinds)

    def tell(self, line: Line[Any]) -> None:
        """Count an invalid line by kind, and print it if it is the first of its kind."""
        self.count += 1
        kind = _kind_of(line.error)
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            kind = "other reasons"
        count, places = self._kinds.get(kind, (0, []))
        if not count:
            print_stderr(f"{self._path}: {line.error}")
        if len(places) <= _LISTED:
            places.append(str(line.number))
        self._kinds[kind] = (count + 1, places)

    def values(self, lines: Iterable[Line[T]]) -> Iterator[T]:
        """Yield the values of valid lines, and report the others."""
        for line in lines:
            if line.value is None:
                self.tell(line)
            else:
                yield line.value

    def end(self, what: str, *, skip: bool = False) -> int:
        """Print the number of invalid lines, and where those are that were not printed.

        Args:
            what: what became of them, in words that fit one line and several.
            skip: whether they may be skipped.

        Returns:
            The exit code: 2 after a bad line that may not be skipped, else 0.
        """
        self._print_further()
        if self.count:
            print_stderr(f"{self._path}: {counted(self.count, 'invalid line')} {what}")
        return 2 if self.count and not skip else 0

    def end_without_rows(
        self, what: str, out: object, more: str = "", *, skip: bool = False
    ) -> int:
        """Print that a file had no row to write.

        Args:
            what: what it should have, such as `call`.
            out: the file that was not written.
            more: the end of the sentence.
            skip: whether bad lines may be skipped.

        Returns:
            The exit code: 1 if all there is may be skipped, else 2.
        """
        if len(self._kinds) > 1:  # else the count of all lines says it
            self._print_further()
        had = f"{counted(self.count, 'invalid line')} and no {what}" if self.count else "no rows"
        print_stderr(f"{self._path}: has {had}, so nothing was written to {out}{more}")
        return 1 if self.count and skip else 2

    def _print_further(self) -> None:
        """Print per kind how many further lines were invalid, and where the first ones are."""
        for kind, (count, places) in self._kinds.items():
            if count > 1:
                more = f" and {count - len(places):,} more" if count > len(places) else ""
                where = f"{', '.join(places[1:])}{more}"
                print_stderr(f"{self._path}: {count - 1:,} more like {places[0]} ({kind}): {where}")


def _kind_of(error: InputError | None) -> str:
    """Return the field and the reason of an error, without the values of its row."""
    if error is None:
        return "is not a row"
    match = _WHY.match(error.why)
    why = match[0].strip() if match else error.why[:20]
    return f"`{_PLACE.sub('[…]', error.field)[:60]}` {why}" if error.field else why
