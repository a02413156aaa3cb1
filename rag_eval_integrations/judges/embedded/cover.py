"""Which document sentences together hold most of a response sentence's words."""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.overlap import Overlap

_COVER = 4  # most supporting sentences


class Cover(NamedTuple):
    """The document sentences that together hold most of a response sentence's words."""

    sentences: tuple[int, ...]
    """At most four, in the order in which they add most weight."""
    gains: tuple[float, ...]
    """What each adds, as a share of the response sentence's weight."""

    def found(self, size: int) -> float:
        """Share of the weight in the first ``size`` sentences."""
        return fsum(self.gains[:size])


def covers(o: Overlap) -> list[Cover]:
    """The covering document sentences of each response sentence."""
    made = []
    for left, mass, matches in zip(o.found, o.response_mass, o.matches, strict=True):
        taken: list[int] = []
        gains: list[float] = []
        while left and len(taken) < _COVER:
            best, best_at = 1e-9, -1
            for match in matches:
                # Matches come by falling weight, and none adds more than that.
                if match.weight <= best:
                    break
                # In any order: sums of weights are exact.
                weight = sum(map(o.idf.__getitem__, left & o.shared[match.sentence]))
                if weight > best + 1e-9:
                    best, best_at = weight, match.sentence
            if best_at < 0:
                break
            taken.append(best_at)
            gains.append(best / mass)
            left = left - o.shared[best_at]
        made.append(Cover(tuple(taken), tuple(gains)))
    return made
