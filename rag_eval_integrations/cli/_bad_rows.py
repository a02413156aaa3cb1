"""Tells the bad rows of a file on stderr as they are read, and counts all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.dataset import Line
from rag_eval_integrations.errors import InputError

_TOLD = 1_000
"""Rows of one kind that are told one by one: nobody reads more, and a file may have millions."""
_MOST_KINDS = 20

_PLACE = re.compile(r"\[\d++\]")
_WHY = re.compile(r"[^:;,`'\"\d]++")


T = TypeVar("T")


class NoRowsError(Exception):
    """There is nothing to write, so whatever is there stays."""


class BadRows:
    """The bad rows of a file.

    Each is told with its place, field and reason; of more than 1,000 of one kind, the others are
    counted by kind, which `end` tells.

    Args:
        path: the file.
    """

    def __init__(self, path: object) -> None:
        self._path = path
        self.count = 0
        self._kinds: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()

    def tell(self, line: Line[Any]) -> None:
        """Tell a line without a value."""
        self.count += 1
        kind = _kind_of(line.error)
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            kind = "other reasons"
        if self._kinds[kind] < _TOLD:
            print_stderr(f"{self._path}: {line.error}")
        else:
            self._untold[kind] += 1
        self._kinds[kind] += 1

    def values(self, lines: Iterable[Line[T]]) -> Iterator[T]:
        """Yield the values of lines, and tell the others."""
        for line in lines:
            if line.value is None:
                self.tell(line)
            else:
                yield line.value

    def end(self, what: str) -> None:
        """Tell how many there were, if any, and how many of them were not told one by one.

        Args:
            what: what became of them.
        """
        self._rest()
        if self.count:
            print_stderr(f"{self._path}: {self.count} invalid line(s) {what}")

    def nothing(self, what: str, out: object, more: str = "") -> None:
        """Tell that a file gave nothing to write.

        Args:
            what: what it should have, such as `call`.
            out: the file that was not written.
            more: the end of the sentence.
        """
        self._rest()
        had = f"{self.count} invalid line(s) and no {what}" if self.count else "no rows"
        print_stderr(f"{self._path}: has {had}, so nothing was written to {out}{more}")

    def _rest(self) -> None:
        """Tell how many of each kind were not told one by one."""
        if self._untold:
            kinds = "; ".join(f"{count} × {kind}" for kind, count in self._untold.most_common())
            more = self._untold.total()
            print_stderr(f"{self._path}: {more} of the invalid lines are not listed: {kinds}")


def _kind_of(error: InputError | None) -> str:
    """Return the field and the reason of a bad row without what is of this row alone."""
    if error is None:
        return "is not a row"
    match = _WHY.match(error.why)
    why = match[0].strip() if match else error.why[:20]
    return f"`{_PLACE.sub('[…]', error.field)[:60]}` {why}" if error.field else why
