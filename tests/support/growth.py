"""How the cost of reading grows with what is read, told without any number of seconds.

The clock of a busy machine fails no test: only the ratio of two costs counts, each the least of
several runs, and two and a half times what is linear is allowed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMES = 8
"""How much more the second reading is given."""
LINEAR = 2.5 * TIMES
"""The most that it costs, in readings of the first; what is quadratic costs 64."""


def cost(work: Callable[[], object], runs: int = 1) -> float:
    """Return the least CPU time of several runs, without garbage collections."""
    least = float("inf")
    gc.disable()  # how long one takes depends on all other objects, too
    try:
        for _ in range(runs):
            began = time.process_time()
            work()
            least = min(least, time.process_time() - began)
    finally:
        gc.enable()
    return least


def is_linear(read: Callable[[T], object], made: Callable[[int], T], size: int) -> bool:
    """Tell whether reading `TIMES` as much costs at most `LINEAR` times as much.

    A ratio that is too large is measured again: another process may have interfered.

    Args:
        read: reads a text, or whatever `made` makes.
        made: makes a text of a number of characters.
        size: number of characters of the short text; reading it should take 0.1 ms at least.
    """
    short, long = made(size), made(TIMES * size)
    return any(
        cost(lambda: read(long), runs) <= LINEAR * cost(lambda: read(short), 3 * runs)
        for runs in (1, 3)
    )
