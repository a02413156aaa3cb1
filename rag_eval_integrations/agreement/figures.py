"""Figures: statistics with 95 % intervals, for a set of rows or a mean over data sets.

Intervals are the percentile bootstrap's: rows are drawn with replacement, as many as there are, and
the interval extends from the 2.5th to the 97.5th percentile (Efron and Tibshirani 1993, ch. 13).
All statistics of a group are computed on the same draws, which depend only on the seed and the
number of rows. Sentence-level statistics are resampled by row too, because the sentences of a row
are not independent.

A figure has no interval when it rests on fewer than `MIN_ROWS` rows, when it is undefined, or when
more than 1 in 20 resamples leave it undefined (as with fewer than three rows of the rarer class).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from rag_eval_integrations.agreement._statistics import Array, Statistic, exact_sum

RESAMPLES = 400
"""Default number of resamples: the ends of an interval are the 10th lowest and the 10th highest."""
MIN_ROWS = 10
SEED = 20240707
"""Default seed; any number would do."""
_AT_ONCE = 50
"""Draws that are in memory at one time."""

Interval = tuple[float, float]
Json = dict[str, JsonValue]
Path = tuple[str, ...]
"""Position of a block in the result, such as `("scores", "adherence")`."""


@dataclass(frozen=True)
class Block:
    """The statistics of one comparison."""

    counts: Mapping[str, int]
    """`n` and other numbers of rows or items."""
    statistics: Mapping[str, Statistic]


@dataclass(frozen=True)
class Figure:
    """A statistic's value with its 95 % interval."""

    value: float | None
    """The value; None where the statistic is undefined."""
    interval: Interval | None = None
    """Lower and upper end; None when there is no interval."""
    replicates: tuple[float, ...] = field(default=(), repr=False)
    """The value on each resample, NaN where it is undefined; empty when there are too few rows for
    an interval."""


@dataclass(frozen=True)
class Figures:
    """The figures of one comparison, such as of one score."""

    counts: Mapping[str, int]
    """`n` and other numbers of rows."""
    figures: Mapping[str, Figure]
    """Figure by name of the statistic; its value is None where it is undefined on these rows."""
    sets: Mapping[str, int] | None = None
    """For a mean over data sets, the number of sets in which each statistic is defined."""

    def to_json(self) -> Json:
        """Return counts, values, and `ci95` with the intervals of the statistics that have one."""
        content: Json = {**self.counts}
        content |= {name: figure.value for name, figure in self.figures.items()}
        if self.sets is not None:
            content["sets"] = {**self.sets}
        content["ci95"] = {
            name: list(figure.interval)
            for name, figure in self.figures.items()
            if figure.interval is not None
        }
        return content


@dataclass(frozen=True)
class Group:
    """All figures of one data set, of all rows, or of the mean over data sets."""

    counts: Mapping[str, int]
    """`n` pairs and `keys_skipped`, the rows without comparable keys; `datasets` for a mean."""
    blocks: Mapping[Path, Figures]
    """Figures by path: `("scores", NAME)`, `("estimates", NAME)`, `("keys", KIND)`,
    `("baselines", NAME, SCORE)`, `("human", NAME)`, `("human_by_document", NAME)`,
    `("human_by_system", NAME)`."""

    def to_json(self) -> Json:
        """Return the blocks nested by their paths."""
        content: Json = {**self.counts, "scores": {}, "keys": {}}
        for path, figures in self.blocks.items():
            inner = content
            for name in path[:-1]:
                inner = inner.setdefault(name, {})  # type: ignore[assignment]  # all are objects
            inner[path[-1]] = figures.to_json()
        return content


def figures_of(
    blocks: Iterable[tuple[Path, Block]], rows: int, resamples: int, seed: str
) -> dict[Path, Figures]:
    """Compute all statistics of a group of `rows` rows with their intervals, on the same draws."""
    known = dict(blocks)
    redrawn: dict[tuple[Path, str], list[Array]] = {
        (path, name): []
        for path, block in known.items()
        for name, statistic in block.statistics.items()
        if statistic.value is not None and statistic.rows >= MIN_ROWS
    }
    generator = random.Random(seed)
    for first in range(0, resamples if redrawn else 0, _AT_ONCE):
        count = min(_AT_ONCE, resamples - first)
        weights = np.stack([_draw(generator, rows) for _ in range(count)])
        with np.errstate(divide="ignore", invalid="ignore"):
            for (path, name), draws in redrawn.items():
                draws.append(known[path].statistics[name].on_draws(weights))
    figures = {}
    for path, block in known.items():
        by_name = {
            name: _figure(statistic.value, redrawn.get((path, name), ()))
            for name, statistic in block.statistics.items()
        }
        figures[path] = Figures(block.counts, by_name)
    return figures


def _draw(generator: random.Random, rows: int) -> Array:
    """Draw rows with replacement, as many as there are; return how often each was drawn."""
    words = np.frombuffer(generator.randbytes(4 * rows), "<u4").astype("u8")
    return np.bincount((words * rows >> 32).astype("i8"), minlength=rows).astype("f8")


def _figure(value: float | None, parts: Sequence[Array]) -> Figure:
    """Pair a value with the interval of its replicates."""
    replicates = np.concatenate(parts) if parts else np.empty(0)
    known = replicates[~np.isnan(replicates)]
    interval = None
    if len(known) and len(known) >= 0.95 * len(replicates):
        low, high = np.quantile(known, (0.025, 0.975)).tolist()
        interval = low, high
    return Figure(value, interval, tuple(replicates.tolist()))


def _mean_figure(figures: Sequence[Figure]) -> Figure:
    """Compute the unweighted mean of the defined figures of independent groups.

    The interval is that of the mean of their replicates (rows are drawn within each group); None
    when one of these groups has too few rows.
    """
    defined = [(item.value, item.replicates) for item in figures if item.value is not None]
    if not defined:
        return Figure(None)
    value = math.fsum(value for value, _ in defined) / len(defined)
    columns = [replicates for _, replicates in defined]
    return _figure(value, [np.mean(columns, axis=0)] if all(columns) else ())


def mean_over(groups: Sequence[Group]) -> Group:
    """Compute the unweighted mean of each statistic over the groups where it is defined."""
    columns: dict[Path, dict[str, list[Figure]]] = {}
    for group in groups:
        for path, block in group.blocks.items():
            for name, figure in block.figures.items():
                columns.setdefault(path, {}).setdefault(name, []).append(figure)
    blocks = {path: _mean_figures(by_name) for path, by_name in columns.items()}
    return Group({"datasets": len(groups)}, blocks)


def _mean_figures(columns: Mapping[str, Sequence[Figure]]) -> Figures:
    """Average each statistic of one comparison, and count the groups that define it."""
    means, sets = {}, {}
    for name, column in columns.items():
        means[name] = _mean_figure(column)
        sets[name] = sum(figure.value is not None for figure in column)
    return Figures(counts={}, figures=means, sets=sets)


# --- Curves of a judge against gold: ROC and reliability


BINS = 10


class Bin(NamedTuple):
    """The items whose probability lies in one tenth of [0, 1]."""

    n: int
    mean: float
    """Mean of the items' probabilities."""
    share: float
    """Share of the items that are positive in gold."""


@dataclass(frozen=True)
class Curves:
    """ROC curve and reliability of the probabilities of one kind of verdict."""

    n: int
    """Number of items."""
    positives: int
    """Number of items that are positive in gold."""
    roc: tuple[tuple[float, float], ...]
    """(false positive rate, true positive rate) from (0, 0) to (1, 1); empty when gold has only
    one class."""
    bins: tuple[Bin, ...]
    """Bins of equal width, without the empty ones."""

    @property
    def auroc(self) -> float | None:
        """Area under the ROC curve; None when gold has only one class."""
        if not self.roc:
            return None
        steps = zip(self.roc, self.roc[1:], strict=False)
        return math.fsum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in steps)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error in ten bins: Σ n/N · |mean probability - share|; 0 is best."""
        return _error_of(self.bins)


def curves_from(scores: Array, positive: Array) -> Curves:
    """Compute the curves of at least one probability, and whether it is positive in gold."""
    return Curves(len(scores), int(positive.sum()), _roc(scores, positive), _bins(scores, positive))


def _roc(scores: Array, positive: Array) -> tuple[tuple[float, float], ...]:
    """Return the points of the ROC curve; none without both classes."""
    if positive.all() or not positive.any():
        return ()
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    # Equal probabilities share one point, because their order has no meaning.
    last = np.append(falling[1:] != falling[:-1], True)
    axes = (np.cumsum(chosen[order])[last] / chosen.sum() for chosen in (~positive, positive))
    return ((0.0, 0.0), *zip(*(axis.tolist() for axis in axes), strict=True))


def calibration_error(scores: Array, gold: Array) -> float:
    """Compute the expected calibration error of at least one score in [0, 1] with its gold value.

    As `Curves.calibration_error`, with the mean of gold values in place of a share.
    """
    return _error_of(_bins(scores, gold))


def _error_of(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error of bins."""
    return math.fsum(group.n * abs(group.mean - group.share) for group in bins) / sum(
        group.n for group in bins
    )


def _bins(scores: Array, gold: Array) -> tuple[Bin, ...]:
    """Group scores into bins of equal width, with the mean score and gold share of each."""
    bins = np.minimum(BINS - 1, (scores * BINS).astype("i8"))
    groups = [
        (scores[bins == number], gold[bins == number])
        for number in range(BINS)
        if (bins == number).any()
    ]
    return tuple(
        Bin(len(ours), exact_sum(ours) / len(ours), exact_sum(theirs) / len(ours))
        for ours, theirs in groups
    )
