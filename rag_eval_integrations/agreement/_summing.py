"""The bootstrap's sums of large groups by numpy, where it is installed; exact, as without it.

`_bootstrap.Packed` sums whole numbers of some 45 bits. Here each is cut into two halves, so that no
sum of halves needs more than the 53 bits of a float: the sums are the same whole numbers in
whatever order they are added up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

LEAST_ROWS = 2_000
"""From here on, numpy saves more than the time of its import."""
_HALF = 31
_WHOLE = 2.0**53
"""Sums of whole numbers below it need no halves."""
_COLUMNS = 12
"""Columns that are floats at one time: a few hundred bytes for each row."""
_DRAWS = 100
"""Draws of one multiplication."""
_PRODUCTS = 200_000
"""Products of one multiplication: with more, numpy's library would start threads, which cost more
than they save on a machine with other work."""


def summing(rows: int, resamples: int, seed: int | str) -> Summed | None:
    """Prepare the draws of a group; None where plain Python is as good, or all there is."""
    numpy = numpy_for(rows) if resamples else None
    return None if numpy is None else Summed(numpy, rows, resamples, seed)


def numpy_for(rows: int) -> Any:
    """Import numpy for the figures of so many rows; None where plain Python is as good, or all."""
    if rows < LEAST_ROWS or rows >= 1 << 31 or find_spec("numpy") is None:
        return None
    try:
        return import_module("numpy")
    except ImportError:  # a broken installation
        return None


class Summed:
    """The draws of a group of rows: how often each row was drawn, one byte per row and draw."""

    def __init__(self, numpy: Any, rows: int, resamples: int, seed: int | str) -> None:
        self._numpy = numpy
        self._rows = rows
        self._bits = 62 - rows.bit_length()
        generator = random.Random(seed)
        self._drawn = numpy.empty((resamples, rows), "u1")
        for at in range(resamples):
            words = numpy.frombuffer(generator.randbytes(4 * rows), "<u4").astype("u8")
            counts = numpy.bincount((words * rows >> 32).astype("i8"), minlength=rows)
            if counts.max() > numpy.iinfo(self._drawn.dtype).max:
                self._drawn = self._drawn.astype("u4")
            self._drawn[at] = counts

    def totals(self, columns: Sequence[Sequence[float]]) -> list[list[float]]:
        """Sum each column over the rows of each draw."""
        found: list[list[float]] = []
        for at in range(0, len(columns), _COLUMNS):
            found += self._some(columns[at : at + _COLUMNS])
        return found

    def _some(self, columns: Sequence[Sequence[float]]) -> list[list[float]]:
        numpy = self._numpy
        exponents = [self._exponent(numpy.asarray(column, "f8")) for column in columns]
        width = sum([1 if exponent is None else 2 for exponent in exponents])
        halves = numpy.empty((self._rows, width))
        at = 0
        for column, exponent in zip(columns, exponents, strict=True):
            if exponent is None:
                halves[:, at] = column
                at += 1
                continue
            fixed = numpy.rint(numpy.ldexp(numpy.asarray(column, "f8"), exponent))
            high = numpy.floor(numpy.ldexp(fixed, -_HALF))
            halves[:, at] = high
            halves[:, at + 1] = fixed - numpy.ldexp(high, _HALF)
            at += 2
        sums = iter(self._sums(halves).T.tolist())
        return [
            next(sums)
            if exponent is None
            else [
                math.ldexp((int(high) << _HALF) + int(low), -exponent)
                for high, low in zip(next(sums), next(sums), strict=True)
            ]
            for exponent in exponents
        ]

    def _exponent(self, numbers: Any) -> int | None:
        """Return the exponent of a column's last bit; None for whole numbers as they are."""
        largest = float(abs(numbers).max())
        if largest * self._rows < _WHOLE and not (numbers % 1).any():
            return None
        return self._bits - math.frexp(largest)[1]

    def _sums(self, halves: Any) -> Any:
        numpy = self._numpy
        found = numpy.zeros((len(self._drawn), halves.shape[1]))
        step = _PRODUCTS // (_DRAWS * halves.shape[1])
        for row in range(0, self._rows, step):
            for at in range(0, len(self._drawn), _DRAWS):
                weights = self._drawn[at : at + _DRAWS, row : row + step].astype("f8")
                found[at : at + _DRAWS] += weights @ halves[row : row + step]
        return found

    def replicates(self, statistic: Any, totals: Sequence[Sequence[float]]) -> list[float | None]:
        """Compute a statistic on every draw, from the sums of its columns."""
        if not hasattr(statistic, "negatives"):
            return [statistic.replicate(one, list) for one in zip(*totals, strict=True)]
        numpy = self._numpy
        negatives, positives, below, up_to = (
            numpy.asarray(one, "i8")
            for one in (statistic.negatives, statistic.positives, statistic.below, statistic.up_to)
        )
        found: list[float | None] = []
        cumulated = numpy.zeros(len(negatives) + 1, "i8")
        for drawn in self._drawn:
            numpy.cumsum(drawn[negatives], out=cumulated[1:], dtype="i8")
            ones = drawn[positives].astype("i8")
            pairs = 2 * int(ones.sum()) * int(cumulated[-1])
            twice = int((ones * (cumulated[below] + cumulated[up_to])).sum())
            found.append(twice / pairs if pairs else None)
        return found
