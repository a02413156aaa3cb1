"""How much each row moves a rank statistic, to first order (Hampel's influence function, 1974).

Two statistics are not resampled directly. Rank correlations: drawing rows with replacement makes
ties that the data does not have, which biases ranks (and one Kendall costs O(n log n) a
resample). AUROC over sentences: there are some 25 sentences a row. Both are smooth functions of
the row weights, so the sum of the drawn rows' contributions is their first-order change; for the
AUROC this is DeLong's variance (1988), clustered by row (Obuchowski 1997).

Contributions sum to 0. None where the statistic itself is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_eval_integrations.agreement.statistics import (
    concordance,
    shares_below,
    tied_groups,
)


def spearman_contributions(xs: Sequence[float], ys: Sequence[float]) -> list[float] | None:
    """Contribution of each row to Spearman's correlation."""
    n = len(xs)
    groups_x, groups_y = list(tied_groups(xs)), list(tied_groups(ys))
    ranks_x, ranks_y = _centred_ranks(groups_x, n), _centred_ranks(groups_y, n)
    variance_x = math.fsum(rank * rank for rank in ranks_x) / n if n else 0.0
    variance_y = math.fsum(rank * rank for rank in ranks_y) / n if n else 0.0
    if not variance_x or not variance_y:
        return None
    pairs = list(zip(ranks_x, ranks_y, strict=True))
    covariance = math.fsum(x * y for x, y in pairs) / n
    # A row changes the covariance by its own product and, twice, by pushing up the ranks of
    # the rows above it, in x and in y; a variance likewise.
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
    """Of each row: the sum of `values` over rows in higher groups (its own: half), over n."""
    n = len(values)
    result = [0.0] * n
    above = 0.0
    for tied in reversed(groups):
        here = math.fsum(values[row] for row in tied)
        for row in tied:
            result[row] = (above + here / 2) / n
        above += here
    return result


def kendall_contributions(xs: Sequence[float], ys: Sequence[float]) -> list[float] | None:
    """Contribution of each row to Kendall's tau-b."""
    n = len(xs)
    own_x, own_y = _untied_with(xs), _untied_with(ys)
    untied_x, untied_y = sum(own_x), sum(own_y)
    if not untied_x or not untied_y:
        return None
    surplus = concordance(xs, ys)
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
    """Contribution of each of `size` rows to the AUROC over items; `rows[i]` is item i's row."""
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
