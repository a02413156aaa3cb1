"""Boosted trees that correct the regressions of document sentences; exact integers, no numpy.

Every tree asks three questions of a sentence, "is this feature at least so much?", the same three
on every path, and the answers are the bits of the number of its leaf. A leaf holds what it adds to
the log-odds of relevant and of utilized.

The trees are not walked one by one. Each feature has the bits of its questions in all trees in one
integer, one byte per two trees: the sum over the features is an integer whose bytes are the numbers
of the leaves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import add, getitem
from typing import Any, NamedTuple

from rag_eval_integrations.judges.embedded._features import SENTENCE_FEATURES, DocumentRows

QUESTIONS = 3
"""Questions per tree."""
SCALE = 4096
"""Leaves are integers, in multiples of 1/4096 of log-odds, so that their sums are exact."""

_BITS = 40
_SHIFT = 1 << 24
"""Added to each leaf, so that it is positive and two of them fit into one integer."""
_LOW = (1 << _BITS) - 1


class Asked(NamedTuple):
    """All questions about one feature."""

    feature: int
    limits: tuple[float, ...]
    """The limits in ascending order, each once."""
    places: tuple[int, ...]
    """Bits that are set in the numbers of leaves when 0, 1, 2 … of the limits are reached."""


class Trees(NamedTuple):
    """Trees in the form in which they are evaluated."""

    own: tuple[Asked, ...]
    """Questions about `SENTENCE_FEATURES`."""
    shared: tuple[Asked, ...]
    """Questions about `SHARED_FEATURES`, numbered from 0."""
    leaves: tuple[tuple[int, ...], ...]
    """Sum of the leaves of two trees, by the numbers of both; both values of it, packed."""


def trees_of(content: Mapping[str, Any]) -> Trees:
    """Prepare trees from the model file.

    Args:
        content: `questions`, [feature, limit] three times per tree, the first of which is the
            highest bit; and `relevant` and `utilized`, eight integers per tree.
    """
    places: dict[int, dict[float, int]] = {}
    for tree, questions in enumerate(content["questions"]):
        for bit, (feature, limit) in enumerate(reversed(questions)):
            of_feature = places.setdefault(feature, {})
            of_feature[limit] = of_feature.get(limit, 0) + (
                1 << (8 * (tree // 2) + QUESTIONS * (tree % 2) + bit)
            )
    cut = len(SENTENCE_FEATURES)
    asked = []
    for feature, by_limit in sorted(places.items()):
        limits = sorted(by_limit)
        sums = [0]
        for limit in limits:
            sums.append(sums[-1] + by_limit[limit])
        asked.append(Asked(feature, tuple(limits), tuple(sums)))
    return Trees(
        tuple([a for a in asked if a.feature < cut]),
        tuple([a._replace(feature=a.feature - cut) for a in asked if a.feature >= cut]),
        _by_twos(content["relevant"], content["utilized"]),
    )


def _by_twos(relevant: list[list[int]], utilized: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    packed = [
        [((r + _SHIFT) << _BITS) + u + _SHIFT for r, u in zip(*both, strict=True)]
        for both in zip(relevant, utilized, strict=True)
    ]
    if len(packed) % 2:
        packed.append([(_SHIFT << _BITS) + _SHIFT] * 2**QUESTIONS)
    return tuple(
        [
            tuple([low + high for high in packed[at + 1] for low in packed[at]])
            for at in range(0, len(packed), 2)
        ]
    )


def corrections(trees: Trees, documents: Sequence[DocumentRows]) -> tuple[list[float], list[float]]:
    """Compute what the trees add to the log-odds of relevant and of utilized, by sentence."""
    leaves, size = trees.leaves, len(trees.leaves)
    relevant: list[float] = []
    utilized: list[float] = []
    offset = 2 * size * _SHIFT
    for shared, columns in documents:
        start = sum([places[bisect_right(limits, shared[f])] for f, limits, places in trees.shared])
        numbers = [start] * len(columns[0])
        for feature, limits, places in trees.own:
            reached = map(bisect_right, repeat(limits), columns[feature])
            numbers = list(map(add, numbers, map(places.__getitem__, reached)))
        for number in numbers:
            both = sum(map(getitem, leaves, number.to_bytes(size, "little")))
            relevant.append(((both >> _BITS) - offset) / SCALE)
            utilized.append(((both & _LOW) - offset) / SCALE)
    return relevant, utilized
