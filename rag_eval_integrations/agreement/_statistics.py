"""Statistics of the agreement of two columns of numbers, as pure functions.

An undefined statistic, such as an AUROC without positives or a correlation with a constant, is
None, never NaN and never 0. Columns of different lengths raise ValueError.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby


def rmse(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Compute the root of the mean squared difference.

    In [0, ∞), 0 is best; at most 1 where both columns lie in [0, 1]. None for no rows.
    """
    found = squares(xs, ys)
    return math.sqrt(math.fsum(found) / len(found)) if found else None


def squares(xs: Sequence[float], ys: Sequence[float]) -> list[float]:
    """Square the difference of each row."""
    # Times itself, which is rounded correctly everywhere, as a power need not be.
    return [(x - y) * (x - y) for x, y in zip(xs, ys, strict=True)]


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Compute the probability that a random positive scores above a random negative.

    A tie counts half. In [0, 1], 1 is best, .5 is chance, and also the value of a constant score.
    None unless there is at least one positive and one negative. Computed as the Mann-Whitney U over
    the number of pairs (Hanley and McNeil 1982), in O(n log n).
    """
    rows = list(zip(scores, positive, strict=True))
    negatives = sorted(score for score, is_one in rows if not is_one)
    ones = [score for score, is_one in rows if is_one]
    if not ones or not negatives:
        return None
    # In halves, so that the count is exact.
    won = sum(bisect_left(negatives, one) + bisect_right(negatives, one) for one in ones)
    return won / (2 * len(ones) * len(negatives))


def midranks(values: Sequence[float]) -> list[float]:
    """Rank the values from 1 upwards; equal values share the mean of their ranks."""
    ranks = [0.0] * len(values)
    done = 0
    for tied in tied_groups(values):
        for row in tied:
            ranks[row] = done + (len(tied) + 1) / 2
        done += len(tied)
    return ranks


def tied_groups(values: Sequence[float]) -> Iterable[list[int]]:
    """Group the positions of equal values, in ascending order of the value."""
    order = sorted(range(len(values)), key=values.__getitem__)
    return (list(group) for _, group in groupby(order, key=values.__getitem__))


def pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Compute Pearson's linear correlation.

    In [-1, 1], 1 is best, 0 is none. None for fewer than two rows or a constant column.
    """
    if len(xs) != len(ys):
        raise ValueError(f"columns of {len(xs)} and {len(ys)} rows")
    # Tested on the values: the mean is rounded, and a constant column may differ from it.
    if len(xs) < 2 or min(xs) == max(xs) or min(ys) == max(ys):
        return None
    from_mean_x = from_mean(xs)
    from_mean_y = from_mean(ys)
    # One root of the product, so that a column correlates with itself by exactly 1.
    spread = math.sqrt(
        math.fsum(x * x for x in from_mean_x) * math.fsum(y * y for y in from_mean_y)
    )
    if not spread:  # the differences are too small: their product is 0 as a float
        return None
    product = math.fsum(x * y for x, y in zip(from_mean_x, from_mean_y, strict=True))
    return max(-1.0, min(1.0, product / spread))


def from_mean(values: Sequence[float]) -> list[float]:
    """Subtract the mean."""
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Compute Spearman's rank correlation: Pearson's correlation of the midranks (Spearman 1904).

    In [-1, 1], 1 is best, 0 is none. None for fewer than two rows or a constant column.
    """
    return pearson(midranks(xs), midranks(ys))


def kendall(
    xs: Sequence[float], ys: Sequence[float], surplus: Sequence[int] | None = None
) -> float | None:
    """Compute Kendall's tau-b: (C - D) / √((P - Tx)(P - Ty)) (Kendall 1945), in O(n √n).

    P pairs of rows, of which C are concordant, D discordant, and Tx and Ty tied in a column. In
    [-1, 1], 1 is best, 0 is none. None for fewer than two rows or a constant column. `surplus` is
    the rows' `concordance`, where it is known already.
    """
    # Each pair is seen from both of its ends.
    twice = sum(concordance(xs, ys) if surplus is None else surplus)
    untied = untied_pairs(xs) * untied_pairs(ys)
    return max(-1.0, min(1.0, twice / math.sqrt(untied))) if untied else None


def untied_pairs(values: Sequence[float]) -> int:
    """Count the ordered pairs of rows whose values differ."""
    return len(values) ** 2 - sum(len(tied) ** 2 for tied in tied_groups(values))


def concordance(xs: Sequence[float], ys: Sequence[float]) -> list[int]:
    """Count for each row the rows concordant with it, less those discordant with it.

    Rows tied with it in either column count 0. Takes O(n √n), of which Python sees O(n).
    """
    if len(xs) != len(ys):
        raise ValueError(f"columns of {len(xs)} and {len(ys)} rows")
    distinct = sorted(set(ys))
    level_of = {y: level for level, y in enumerate(distinct)}
    levels = [level_of[y] for y in ys]
    everywhere = _Tally(len(distinct))
    for level in levels:
        everywhere.add(level)
    below = list(accumulate(everywhere.counts, initial=0))
    lower = _Tally(len(distinct))
    surplus = [0] * len(xs)
    for tied in tied_groups(xs):
        own = sorted(levels[row] for row in tied)
        for row in tied:
            level = levels[row]
            # Rows lower in x, then of the same x, then all; what is left is higher in x.
            less, same = lower.below(level), lower.counts[level]
            more = lower.total - less - same
            tied_less, tied_more = bisect_left(own, level), len(own) - bisect_right(own, level)
            higher_less = below[level] - less - tied_less
            higher_more = len(xs) - below[level + 1] - more - tied_more
            surplus[row] = less - more + higher_more - higher_less
        for row in tied:
            lower.add(levels[row])
    return surplus


class _Tally:
    """Counts by level from 0, with prefix sums of √n blocks, which `sum` adds up fast."""

    def __init__(self, levels: int) -> None:
        self._size = max(1, math.isqrt(levels))
        self._blocks = [0] * (levels // self._size + 1)
        self.counts = [0] * levels
        self.total = 0

    def add(self, level: int) -> None:
        self.counts[level] += 1
        self._blocks[level // self._size] += 1
        self.total += 1

    def below(self, level: int) -> int:
        """Count what is below a level."""
        block = level // self._size
        return sum(self._blocks[:block]) + sum(self.counts[block * self._size : level])


@dataclass(frozen=True)
class Counts:
    """Counts of two yes/no columns: `tp` is yes in both, `fp` is yes in the first only."""

    tp: float = 0
    fp: float = 0
    fn: float = 0
    tn: float = 0

    @classmethod
    def of(cls, predicted: Sequence[bool], gold: Sequence[bool]) -> Counts:
        """Count two columns."""
        pairs = [(bool(p), bool(g)) for p, g in zip(predicted, gold, strict=True)]
        return cls(
            tp=pairs.count((True, True)),
            fp=pairs.count((True, False)),
            fn=pairs.count((False, True)),
            tn=pairs.count((False, False)),
        )

    @property
    def precision(self) -> float | None:
        """Share of the predicted yes that is right, in [0, 1]; None without a predicted yes."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        """Share of the gold yes that was predicted, in [0, 1]; None without a gold yes."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """2 tp / (2 tp + fp + fn), in [0, 1], 1 is best; None without any yes on either side."""
        either = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / either if either else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: agreement beyond the chance agreement of the two yes-rates (Cohen 1960).

        In [-1, 1], 1 is best, 0 is chance. None without rows, and when both columns hold the same
        answer throughout, since chance then explains everything.
        """
        chance = (self.tp + self.fp) * (self.fp + self.tn) + (self.tp + self.fn) * (
            self.fn + self.tn
        )
        return 2 * (self.tp * self.tn - self.fp * self.fn) / chance if chance else None


def cohen_kappa(predicted: Sequence[bool], gold: Sequence[bool]) -> float | None:
    """Compute Cohen's kappa of two yes/no columns; see `Counts.kappa` for range and empty cases."""
    return Counts.of(predicted, gold).kappa


def fleiss_kappa(rows: Sequence[Sequence[bool]]) -> float | None:
    """Compute Fleiss' kappa of two or more raters' yes/no answers (Fleiss 1971).

    Args:
        rows: for each item the answers of all raters, as many for every item.

    Returns:
        In [-1, 1], 1 is best, 0 is chance; None without items, for fewer than two raters, and when
        all answers are the same, since chance then explains everything.
    """
    raters = len(rows[0]) if rows else 0
    if raters < 2:
        return None
    yes = [sum(map(bool, row)) for row in rows]
    pairs = raters * (raters - 1)
    agreed = sum(n * (n - 1) + (raters - n) * (raters - n - 1) for n in yes) / (pairs * len(yes))
    share = sum(yes) / (raters * len(yes))
    chance = share * share + (1 - share) * (1 - share)
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def shares_below(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Compute for each value the share of `others` below it; equal ones count half.

    `others` must not be empty.
    """
    ordered = sorted(others)
    twice = 2 * len(ordered)
    return [(bisect_left(ordered, v) + bisect_right(ordered, v)) / twice for v in values]


# --- Influence of each row on a rank statistic, to first order (Hampel's influence function, 1974)


def spearman_contributions(xs: Sequence[float], ys: Sequence[float]) -> list[float] | None:
    """Compute the contribution of each row to Spearman's correlation; None where undefined."""
    n = len(xs)
    groups_x, groups_y = list(tied_groups(xs)), list(tied_groups(ys))
    ranks_x, ranks_y = _centred_ranks(groups_x, n), _centred_ranks(groups_y, n)
    variance_x = math.fsum(rank * rank for rank in ranks_x) / n if n else 0.0
    variance_y = math.fsum(rank * rank for rank in ranks_y) / n if n else 0.0
    if not variance_x or not variance_y:
        return None
    pairs = list(zip(ranks_x, ranks_y, strict=True))
    covariance = math.fsum(x * y for x, y in pairs) / n
    # A row changes the covariance by its own product, and by raising the ranks of the rows above it
    # in x and in y. It changes the variances in the same way.
    by_x = zip(_mean_above(groups_x, ranks_y), _mean_above(groups_x, ranks_x), strict=True)
    by_y = zip(_mean_above(groups_y, ranks_x), _mean_above(groups_y, ranks_y), strict=True)
    scale = math.sqrt(variance_x * variance_y)
    result = []
    for (x, y), (push_xy, push_xx), (push_yx, push_yy) in zip(pairs, by_x, by_y, strict=True):
        d_covariance = x * y + push_xy + push_yx - 3 * covariance
        d_variance_x = x * x + 2 * push_xx - 3 * variance_x
        d_variance_y = y * y + 2 * push_yy - 3 * variance_y
        relative = d_variance_x / variance_x + d_variance_y / variance_y
        result.append((d_covariance - covariance * relative / 2) / scale / n)
    return result


def _centred_ranks(groups: Sequence[Sequence[int]], n: int) -> list[float]:
    ranks = [0.0] * n
    below = 0
    for tied in groups:
        for row in tied:
            ranks[row] = (below + (len(tied) - n) / 2) / n
        below += len(tied)
    return ranks


def _mean_above(groups: Sequence[Sequence[int]], values: Sequence[float]) -> list[float]:
    """Sum `values` for each row over the higher groups and half of its own group, divided by n."""
    n = len(values)
    result = [0.0] * n
    above = 0.0
    for tied in reversed(groups):
        here = math.fsum(values[row] for row in tied)
        for row in tied:
            result[row] = (above + here / 2) / n
        above += here
    return result


def kendall_contributions(
    xs: Sequence[float], ys: Sequence[float], surplus: Sequence[int] | None = None
) -> list[float] | None:
    """Compute the contribution of each row to Kendall's tau-b; None where undefined.

    `surplus` is the rows' `concordance`, where it is known already.
    """
    n = len(xs)
    own_x, own_y = _untied_with(xs), _untied_with(ys)
    untied_x, untied_y = sum(own_x), sum(own_y)
    if not untied_x or not untied_y:
        return None
    surplus = concordance(xs, ys) if surplus is None else surplus
    scale = math.sqrt(untied_x * untied_y)
    tau = sum(surplus) / scale
    result = []
    for row in range(n):
        d_surplus = 2 * (surplus[row] / scale - tau / n)
        d_untied = 2 * (own_x[row] / untied_x + own_y[row] / untied_y - 2 / n)
        result.append(d_surplus - tau * d_untied / 2)
    return result


def _untied_with(values: Sequence[float]) -> list[int]:
    counts = [0] * len(values)
    for tied in tied_groups(values):
        for row in tied:
            counts[row] = len(values) - len(tied)
    return counts


def auroc_contributions(
    scores: Sequence[float], positive: Sequence[bool], rows: Sequence[int], size: int
) -> list[float] | None:
    """Compute the contribution of each of `size` rows to the AUROC over items; None if undefined.

    `rows[i]` is the row of item i.
    """
    ones = [i for i, is_one in enumerate(positive) if is_one]
    zeros = [i for i, is_one in enumerate(positive) if not is_one]
    if not ones or not zeros:
        return None
    of_ones, of_zeros = [scores[i] for i in ones], [scores[i] for i in zeros]
    won_by_ones = shares_below(of_ones, of_zeros)
    value = math.fsum(won_by_ones) / len(ones)
    result = [0.0] * size
    for i, share in zip(ones, won_by_ones, strict=True):
        result[rows[i]] += (share - value) / len(ones)
    for i, share in zip(zeros, shares_below(of_zeros, of_ones), strict=True):
        result[rows[i]] += (1 - share - value) / len(zeros)
    return result
