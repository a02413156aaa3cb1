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
    """There is nothing to write, so whatever is there stays."""


class BadRows:
    """The bad rows of a file.

    The first of each kind is told with its place, field and reason; the others are counted, which
    `end` tells.

    Args:
        path: the file.
    """

    def __init__(self, path: object) -> None:
        self._path = path
        self.count = 0
        self._kinds: dict[str, tuple[int, list[str]]] = {}
        """Of each kind: how many there are, and the places of the first ones."""

    @property
    def is_text(self) -> bool:
        """Whether a row was JSON or a table's, whatever is wrong with its fields."""
        return not all(kind.startswith("not ") for kind in self._kinds)

    def tell(self, line: Line[Any]) -> None:
        """Count a line without a value, by kind; print it if it is the first of its kind."""
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
        """Yield the values of lines, and print the errors of bad ones."""
        for line in lines:
            if line.value is None:
                self.tell(line)
            else:
                yield line.value

    def end(self, what: str, *, skip: bool = False) -> int:
        """Print how many bad lines there were, and which were not printed one by one.

        Args:
            what: what became of them, for one as for several.
            skip: whether they may be skipped.

        Returns:
            The exit code: 2 after a bad line that may not be skipped, else 0.
        """
        self._rest()
        if self.count:
            print_stderr(f"{self._path}: {counted(self.count, 'invalid line')} {what}")
        return 2 if self.count and not skip else 0

    def nothing(self, what: str, out: object, more: str = "", *, skip: bool = False) -> int:
        """Tell that a file gave nothing to write.

        Args:
            what: what it should have, such as `call`.
            out: the file that was not written.
            more: the end of the sentence.
            skip: whether bad lines may be skipped.

        Returns:
            The exit code: 1 if all there is may be skipped, else 2.
        """
        if len(self._kinds) > 1:  # else the count of all lines says it
            self._rest()
        had = f"{counted(self.count, 'invalid line')} and no {what}" if self.count else "no rows"
        print_stderr(f"{self._path}: has {had}, so nothing was written to {out}{more}")
        return 1 if self.count and skip else 2

    def _rest(self) -> None:
        """Print per kind how many bad lines were not printed, and where the first ones are."""
        for kind, (count, places) in self._kinds.items():
            if count > 1:
                more = f" and {count - len(places):,} more" if count > len(places) else ""
                where = f"{', '.join(places[1:])}{more}"
                print_stderr(f"{self._path}: {count - 1:,} more like {places[0]} ({kind}): {where}")


def _kind_of(error: InputError | None) -> str:
    """Return the field and the reason of a bad row without what is of this row alone."""
    if error is None:
        return "is not a row"
    match = _WHY.match(error.why)
    why = match[0].strip() if match else error.why[:20]
    return f"`{_PLACE.sub('[…]', error.field)[:60]}` {why}" if error.field else why
