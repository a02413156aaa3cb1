"""Premises: the document sentences that are read together, in windows that fit the model.

Sentences are ranked by the model's own tokens that they share with a response sentence, the rarer
the more weight. That holds in every language that the model has tokens for, and needs no word list.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log
from typing import NamedTuple

from rag_eval_integrations.judges._reader._backend import Backend, Span


class Piece(NamedTuple):
    """A document sentence, or a part of one that is longer than the model reads."""

    sentence: int
    """Index of the document sentence."""
    text: str
    ids: frozenset[int]
    size: int
    """Number of its tokens."""


def pieces_of(backend: Backend, texts: Sequence[str], most: int) -> list[Piece]:
    """Cut document sentences into pieces of at most `most` tokens, in order.

    A text without tokens is left out: there is nothing to read.
    """
    found = []
    for start in range(0, len(texts), 512):
        some = texts[start : start + 512]
        encoded = backend.encode([(text, None) for text in some], special=False)
        for number, (text, one) in enumerate(zip(some, encoded, strict=True), start):
            for low in range(0, len(one.ids), most):
                ids = one.ids[low : low + most]
                whole = len(one.ids) <= most
                part = text if whole else _cut(text, one.spans, low, low + len(ids), len(one.ids))
                found.append(Piece(number, part, frozenset(ids), len(ids)))
    return found


def shortened(backend: Backend, text: str, most: int) -> str:
    """Cut a text after `most` tokens."""
    [one] = backend.encode([(text, None)], special=False)
    return text if len(one.ids) <= most else _cut(text, one.spans, 0, most, len(one.ids))


def _cut(text: str, spans: Sequence[Span], low: int, high: int, size: int) -> str:
    if spans:
        return text[spans[low][0] : spans[high - 1][1]]
    return text[len(text) * low // size : len(text) * high // size]


class Ranking:
    """Ranks the pieces of a call by what they share with a text."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._holders: dict[int, list[int]] = {}
        for number, piece in enumerate(pieces):
            for token in piece.ids:
                self._holders.setdefault(token, []).append(number)
        count = len(pieces)
        # A token that every piece holds still counts a little: one piece alone is ranked as well.
        self._weight = {
            token: log((1 + count) / (0.5 + len(holders)))
            for token, holders in self._holders.items()
        }
        self._own = [fsum(self._weight[token] for token in piece.ids) for piece in pieces]

    def order(self, ids: frozenset[int]) -> list[int]:
        """List the numbers of all pieces, the best match first."""
        shared = [0.0] * len(self._own)
        for token in sorted(ids & self._holders.keys()):
            for number in self._holders[token]:
                shared[number] += self._weight[token]
        mass = fsum(self._weight[token] for token in sorted(ids & self._holders.keys()))
        # A long piece shares more by chance; half of its weight would rank short titles first.
        score = [
            s / (mass + 0.2 * own) if s else 0.0 for s, own in zip(shared, self._own, strict=True)
        ]
        return sorted(range(len(score)), key=lambda number: (-score[number], number))


def windows(
    order: Sequence[int], sizes: Sequence[int], budget: int, most: int
) -> tuple[list[list[int]], int]:
    """Pack pieces into windows, the best matches first; within a window in their own order.

    Args:
        order: numbers of the pieces, the best match first.
        sizes: tokens of each piece, none above the budget.
        budget: most tokens of a window.
        most: most windows.

    Returns:
        The windows, and how many pieces were left out of them.
    """
    found: list[list[int]] = []
    taken: list[int] = []
    used = 0
    for place, number in enumerate(order):
        # One more per piece, for the space between two pieces.
        if taken and used + sizes[number] + 1 > budget:
            found.append(sorted(taken))
            taken, used = [], 0
            if len(found) == most:
                return found, len(order) - place
        taken.append(number)
        used += sizes[number] + 1
    return ([*found, sorted(taken)] if taken else found), 0
