"""Agreement sentence by sentence: relevant, utilized, supporting, supported, unsupported keys."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, repeat
from operator import mul
from typing import Any, cast

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._bootstrap import Linear
from rag_eval_integrations.agreement._marks import MILLION, Counted, Items
from rag_eval_integrations.agreement._ranked import Sentences, clustered_auroc
from rag_eval_integrations.agreement._resampled import Block, Path
from rag_eval_integrations.agreement._side import Rows
from rag_eval_integrations.agreement._summing import numpy_for
from rag_eval_integrations.agreement._table import Part

_DOCUMENTS, _RESPONSE = 1, 2


def skipped(part: Part) -> int:
    """Count the rows whose keys cannot be compared."""
    return sum(not part.table.keys.same[row] for row in part.rows)


def key_blocks(part: Part) -> Iterator[tuple[Path, Block]]:
    """Compute the statistics of all kinds of keys, one by one.

    Each block is micro-averaged: its counts are summed over the sentences of all rows. `n` is the
    number of rows. A response sentence that either side left unlabelled has no verdict to compare:
    it is counted as `unlabelled`, and not as unsupported.
    """
    yield _block(part, "relevant", _DOCUMENTS)
    yield _block(part, "utilized", _DOCUMENTS)
    yield _block(part, "supporting", _RESPONSE)
    unlabelled = sum(part.table.keys.unlabelled[row] for row in part.rows)
    yield _block(part, "supported", _RESPONSE, {"unlabelled": unlabelled})
    yield _block(part, "unsupported", _RESPONSE, {"unlabelled": unlabelled})


def _block(
    part: Part, kind: str, same: int, more: Mapping[str, int] | None = None
) -> tuple[Path, Block]:
    keys = part.table.keys
    # What is not supported is unsupported: yes and no change places.
    swapped = kind == "unsupported"
    found = "supported" if swapped else kind
    at = [place for place, row in enumerate(part.rows) if keys.same[row] >= same]
    cells = _cells(keys.counts[found], part.rows)
    if swapped:
        cells.reverse()
    n = {"n": len(at), **(more or {})}
    statistics = resampled.of_cells(cells, len(at), "f1", "precision", "recall", "kappa")
    if found in keys.items:
        auroc = _auroc(keys.items[found], part.rows, swapped=swapped)
        if auroc is not None:
            # Reported, because a judge need not give probabilities for every row.
            n["auroc_n"] = auroc.rows
            statistics["auroc"] = auroc
    return ("keys", kind), Block(n, statistics)


def _cells(counts: array[int], rows: Rows) -> list[array[float]]:
    """Take the columns of the counts of some rows."""
    cells = len(Counted._fields)
    numpy = numpy_for(len(rows))
    if numpy is not None:
        held = numpy.frombuffer(counts, counts.typecode).reshape(-1, cells)
        taken = held[numpy.asarray(rows, "i8")].astype("f8")
        return [array("d", taken[:, cell].tobytes()) for cell in range(cells)]
    return [array("d", [counts[cells * row + cell] for row in rows]) for cell in range(cells)]


MANY = 250_000
"""From so many items on, they are counted by probability and not sorted."""


def _auroc(items: Items, rows: Rows, *, swapped: bool) -> Linear | None:
    """Prepare the AUROC over the sentences of some rows; None without probabilities."""
    numpy = numpy_for(len(rows))
    if numpy is not None:
        return _by_numpy(numpy, items, rows, swapped=swapped) if items.positive else None
    count = sum(len(items.of(row)) for row in rows)
    if not count:
        return None
    if count >= MANY and items.in_millionths:
        return _of_millionths(items, rows, swapped=swapped)
    scores, positive, owners = items.columns(rows)
    if swapped:
        scores = array("d", [1 - score for score in scores])
        positive = [not one for one in positive]
    return resampled.clustered_auroc(scores, positive, owners, len(rows))


def _by_numpy(numpy: Any, items: Items, rows: Rows, *, swapped: bool) -> Linear | None:
    """Compute what `resampled.clustered_auroc` does; whole millionths rank as their floats do."""
    scores, positive, owners = items.arrays(numpy, rows)
    if not len(owners):
        return None
    steps = MILLION if items.in_millionths else None
    if swapped:
        scores = (steps or 1) - scores
        positive = 1 - positive
    with_items = 1 + int((owners[1:] != owners[:-1]).sum())
    found = Sentences(scores, positive, owners)
    value, contributions = clustered_auroc(numpy, found, len(rows), steps)
    return Linear(value, with_items, contributions, low=0.0)


def _of_millionths(items: Items, rows: Rows, *, swapped: bool) -> Linear:
    """Compute what `resampled.clustered_auroc` does, in memory that does not grow with the items.

    Where yes and no change places, p becomes 1 - p: an item then wins against those below it by
    the same numbers, so it is enough to read the table of levels from its other end.
    """
    levels = range(MILLION + 1)
    tallies = array("I", bytes(4 * len(levels))), array("I", bytes(4 * len(levels)))
    zeros, ones = tallies
    levels_of = cast("array[int]", items.probabilities)
    for row in rows:
        for item in items.of(row):
            tallies[items.positive[item]][levels_of[item]] += 1
    del tallies
    if swapped:
        zeros, ones = ones[::-1], zeros[::-1]
    n_zeros, n_ones = sum(zeros), sum(ones)
    with_items = sum(len(items.of(row)) > 0 for row in rows)
    if not n_zeros or not n_ones:
        return Linear(None, with_items, array("d"), low=0.0)
    won = sum(map(mul, ones, _twice_below(zeros)))
    gain = array("d", (twice / (2 * n_zeros) for twice in _twice_below(zeros)))
    mean = math.fsum(chain.from_iterable(map(repeat, gain, ones))) / n_ones
    gain = array("d", ((share - mean) / n_ones for share in gain))
    del zeros
    loss = array("d", (
        (1 - twice / (2 * n_ones) - mean) / n_zeros for twice in _twice_below(ones)
    ))  # fmt: skip
    del ones
    contributions = array("d", bytes(8 * len(rows)))
    for place, row in enumerate(rows):
        own = items.of(row)
        found = levels_of[own.start : own.stop]
        marks = items.positive[own.start : own.stop]
        if swapped:
            found = array("I", [MILLION - level for level in found])
            marks = bytearray([not mark for mark in marks])
        total = 0.0
        for level in compress(found, marks):
            total += gain[level]
        for level, mark in zip(found, marks, strict=True):
            if not mark:
                total += loss[level]
        contributions[place] = total
    return Linear(won / (2 * n_ones * n_zeros), with_items, contributions, low=0.0)


def _twice_below(counts: Sequence[int]) -> Iterator[int]:
    """Yield for each level twice the number below it, equal ones once."""
    below = accumulate(counts, initial=0)
    return (2 * less + same for less, same in zip(below, counts, strict=False))
