"""Seconds per megabyte that each parser takes for hostile texts, beside a baseline.

    python benchmarks/hostile_texts.py [--size N] [--parser NAME]… [--pieces N] [--worst N] [--all]
    python benchmarks/hostile_texts.py --patterns

A text repeats one short piece of `tests/support/repeated.py`, or, with `--pieces N`, N random pairs
of them as well. For every parser: the slowest texts, in seconds of CPU
per million characters, and how many times that is of `json.loads` for a JSON list of two-character
items of the same length, measured in the same run. `--all` prints every piece. The promise is one
second per megabyte at most.

With `--patterns`, the patterns of the package read 64,000 characters that grow out of what each of
them repeats; one that grows with the square of the length takes seconds for them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from patterns import all_patterns, read, units, used_by
from repeated import PARSERS, REPEATED, grown, repeated


def seconds(read: Callable[[str], object], text: str) -> float:
    """Return the CPU seconds per million characters; the smaller of two readings if it is long."""
    least = float("inf")
    for _ in range(2):
        began = time.process_time()
        read(text)
        least = min(least, (time.process_time() - began) / len(text) * 1e6)
        if least < 0.2:
            break
    return least


def pieces(pairs: int) -> list[str]:
    """Return the pieces, and random pairs of them."""
    chance = random.Random(0)
    made = ("".join(chance.choices(REPEATED, k=2)) for _ in range(pairs))
    return list(dict.fromkeys([*REPEATED, *made]))


SHORT = {"_BEFORE_AN_ORDER": 30, "_NO_ORDER": 30, "_ABSENCES": 400}
"""Patterns that are given so many characters at most."""


def of_patterns() -> int:
    """Print the slowest patterns; return 1 if one takes more than a second per megabyte."""
    chance = random.Random(5)
    slowest = []
    for module, name, pattern in all_patterns().values():
        search = partial(read, pattern, used_by(module, name))
        size = SHORT.get(name, 64_000)
        texts = [(repr(unit), grown(begin, unit, size)) for begin, unit in units(pattern, chance)]
        slowest.append(
            max((seconds(search, text), f"{module}.{name} {unit}") for unit, text in texts)
        )
    for took, text in sorted(slowest, reverse=True)[:8]:
        print(f"{took:6.2f} s/MB {text}")
    over = sum(took > 1 for took, _ in slowest)
    print(f"patterns: {len(slowest)}, over 1 s/MB: {over}")
    return 1 if over else 0


def main() -> int:
    """Print the figures; return 1 if a text takes more than a second per megabyte."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=1_000_000, help="characters of each text")
    options.add_argument("--parser", action="append", choices=PARSERS, help="default: all")
    options.add_argument("--pieces", type=int, default=0, help="number of random pairs")
    options.add_argument("--worst", type=int, default=4, help="texts to print per parser")
    options.add_argument("--all", action="store_true", help="print every text")
    options.add_argument(
        "--patterns", action="store_true", help="the patterns of the package instead"
    )
    given = options.parse_args()
    if given.patterns:
        return of_patterns()

    listed = "[" + "1," * (given.size // 2) + "1]"
    baseline = min(seconds(json.loads, listed) for _ in range(5))
    print(f"json.loads: {baseline:.3f} s/MB; characters per text: {given.size:,}")
    over = 0
    for name in given.parser or PARSERS:
        read = PARSERS[name]
        read("A text. Another one.")
        texts = ((piece, repeated(piece, given.size)) for piece in pieces(given.pieces))
        found = sorted(((seconds(read, text), piece) for piece, text in texts), reverse=True)
        over += sum(took > 1 for took, _ in found)
        for took, piece in found if given.all else found[: given.worst]:
            print(f"{name:14} {took:6.2f} s/MB {took / baseline:7.1f} x {piece!r}", flush=True)
    print(f"over 1 s/MB: {over}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
