"""Measures of a ranking with binary relevance, as trec_eval defines them.

`ranks` are the ranks, from 1 and ascending, of the relevant documents that were retrieved; `total`
is the number of all relevant documents, retrieved or not, at least 1; `k`, at least 1, cuts the
ranking. All results are in [0, 1], 1 is best. A ranking of fewer than k documents is as good as
one that was filled up to k with irrelevant ones.

Source: trec_eval's `success`, `P`, `recall`, `recip_rank`, `map_cut` and `ndcg_cut`; Järvelin and
Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002, for nDCG, with
the discount log2(rank + 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def hit_rate(ranks: Sequence[int], total: int, k: int) -> float:
    """Tell whether any of the first k documents is relevant: 1.0 or 0.0."""
    return 1.0 if ranks and ranks[0] <= k else 0.0


def precision(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute the share of relevant ones in the first k; divides by k, however many there are."""
    return _within(ranks, k) / k


def recall(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute the share of the relevant documents that are among the first k."""
    return _within(ranks, k) / total


def reciprocal_rank(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute 1 / rank of the first relevant document; 0 if there is none among the first k."""
    return 1 / ranks[0] if ranks and ranks[0] <= k else 0.0


def average_precision(ranks: Sequence[int], total: int, k: int) -> float:
    """Sum the precision at the rank of each relevant one of the first k, and divide by `total`."""
    return math.fsum(hits / rank for hits, rank in enumerate(ranks, 1) if rank <= k) / total


def ndcg(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute DCG / ideal DCG, both of the first k; a relevant document gains 1 / log2(rank + 1).

    The ideal ranking begins with all relevant documents.
    """
    return _dcg(rank for rank in ranks if rank <= k) / _dcg(range(1, min(total, k) + 1))


def _within(ranks: Sequence[int], k: int) -> int:
    return sum(rank <= k for rank in ranks)


def _dcg(ranks: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank in ranks)
