"""The statistics of a group of rows, in a form that can be computed again on a draw of rows.

`at` is the row of the group that each observation belongs to, so that scores with gaps, sentences
and whole rows are all resampled by the same draws.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul

from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._bootstrap import (
    Column,
    Linear,
    OfSums,
    RankedAuroc,
    Statistic,
)
from rag_eval_integrations.agreement._ranked import Ranked, exact_sum, from_mean, pearson
from rag_eval_integrations.agreement._statistics import Counts
from rag_eval_integrations.agreement._summing import numpy_for

Path = tuple[str, ...]
"""Position of a block in the result, such as `("scores", "adherence")`."""


@dataclass(frozen=True)
class Block:
    """The statistics of one comparison."""

    counts: Mapping[str, int]
    """`n` and other numbers of rows or items."""
    statistics: Mapping[str, Statistic] = field(default_factory=dict)


Blocks = dict[Path, Block]


def _spread(size: int, at: Sequence[int], values: Sequence[float]) -> array[float]:
    column = array("d", bytes(8 * size))
    numpy = numpy_for(len(at))
    if numpy is not None:
        numpy.add.at(numpy.frombuffer(column, "f8"), numpy.asarray(at, "i8"), values)
        return column
    for row, value in zip(at, values, strict=True):
        column[row] += value
    return column


def rmse(
    xs: Sequence[float],
    ys: Sequence[float],
    at: Sequence[int],
    size: int,
    ones: array[float] | None = None,
) -> OfSums:
    """Prepare the root mean squared error of one pair of numbers per row.

    `ones` is what `present` makes of these rows; statistics that share it sum it once.
    """
    numpy = numpy_for(len(at))
    if numpy is None:
        squares: Sequence[float] = statistics.squares(xs, ys)
        value = statistics.rmse(xs, ys)
    else:
        apart = numpy.asarray(xs, "f8") - numpy.asarray(ys, "f8")
        squares = apart * apart
        value = math.sqrt(exact_sum(squares) / len(at))
    columns = _spread(size, at, squares), ones or present(at, size)
    return OfSums(value, len(at), columns, _root_mean)


def present(at: Sequence[int], size: int) -> array[float]:
    """Mark the rows that are there."""
    return _spread(size, at, [1.0] * len(at))


def _root_mean(total: float, n: float) -> float | None:
    return math.sqrt(total / n) if n else None


def correlations(
    xs: Sequence[float],
    ys: Sequence[float],
    at: Sequence[int],
    size: int,
    ones: array[float] | None = None,
) -> dict[str, Statistic]:
    """Prepare Pearson's, Spearman's and Kendall's correlation of one pair of numbers per row.

    `ones` is as for `rmse`.
    """
    ranked = Ranked.of(xs, ys)
    if ranked is not None:
        counted = ranked.concordance()
        return {
            "pearson": _pearson(xs, ys, at, size, ones, ranked),
            "spearman": _linear(ranked.spearman(), ranked.spearman_contributions(), at, size),
            "kendall": _linear(
                ranked.kendall(counted), ranked.kendall_contributions(counted), at, size
            ),
        }
    surplus = statistics.concordance(xs, ys)
    return {
        "pearson": _pearson(xs, ys, at, size, ones),
        "spearman": _linear(
            statistics.spearman(xs, ys), statistics.spearman_contributions(xs, ys), at, size
        ),
        "kendall": _linear(
            statistics.kendall(xs, ys, surplus),
            statistics.kendall_contributions(xs, ys, surplus),
            at,
            size,
        ),
    }


def _linear(
    value: float | None, contributions: Sequence[float] | None, at: Sequence[int], size: int
) -> Linear:
    spread = _spread(size, at, contributions) if contributions is not None else array("d")
    return Linear(value, len(at), spread)


def _pearson(
    xs: Sequence[float],
    ys: Sequence[float],
    at: Sequence[int],
    size: int,
    ones: array[float] | None = None,
    ranked: Ranked | None = None,
) -> OfSums:
    n = len(at)
    # Relative to the mean, so that subtracting sums below loses little precision.
    if ranked is None:
        x, y = (statistics.from_mean(one) if n else [] for one in (xs, ys))
        value = statistics.pearson(xs, ys)
        squares = [list(map(mul, *pair)) for pair in ((x, x), (y, y), (x, y))]
    else:
        x, y = (from_mean(ranked.array(one)) for one in (xs, ys))
        value = pearson(x, y, constant=ranked.constant)
        squares = [x * x, y * y, x * y]
    columns = tuple(_spread(size, at, one) for one in (x, y, *squares))
    return OfSums(value, n, (ones or present(at, size), *columns), _pearson_of_sums)


def _pearson_of_sums(n: float, x: float, y: float, xx: float, yy: float, xy: float) -> float | None:
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    # The variance of a draw of equal values is only rounding error.
    if spread_x <= 1e-10 * n * xx or spread_y <= 1e-10 * n * yy:
        return None
    return max(-1.0, min(1.0, (n * xy - x * y) / math.sqrt(spread_x * spread_y)))


def auroc(scores: Sequence[float], positive: Sequence[bool], at: Sequence[int]) -> RankedAuroc:
    """Prepare the AUROC of one score per row."""
    return RankedAuroc(scores, positive, at)


def clustered_auroc(
    scores: Sequence[float], positive: Sequence[bool], at: Sequence[int], size: int
) -> Linear:
    """Prepare the AUROC of several scores per row (sentences), resampled by row."""
    contributions = statistics.auroc_contributions(scores, positive, at, size)
    value = statistics.auroc(scores, positive)
    return Linear(value, len(set(at)), contributions or [], low=0.0)


def of_cells(columns: Sequence[Column], n: int, *names: str) -> dict[str, Statistic]:
    """Prepare statistics of summed counts: tp, fp, fn and tn of all rows, of which n have some."""
    total = Counts(*map(sum, columns))
    return {
        name: OfSums(getattr(total, name), n, tuple(columns), _of_cells(name)) for name in names
    }


def _of_cells(name: str) -> Callable[[float, float, float, float], float | None]:
    def formula(tp: float, fp: float, fn: float, tn: float) -> float | None:
        value: float | None = getattr(Counts(tp, fp, fn, tn), name)
        return value

    return formula


def kappa(
    predicted: Sequence[bool], gold: Sequence[bool], at: Sequence[int], size: int
) -> dict[str, Statistic]:
    """Prepare Cohen's kappa of one yes/no answer per row."""
    cells = [array("d", bytes(8 * size)) for _ in range(4)]  # tp, fp, fn, tn
    for row, p, g in zip(at, predicted, gold, strict=True):
        cells[(0 if g else 1) if p else (2 if g else 3)][row] = 1
    return of_cells(cells, len(at), "kappa")
