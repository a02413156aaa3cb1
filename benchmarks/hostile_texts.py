"""Seconds per megabyte that each parser takes for hostile texts, beside a baseline.

    python benchmarks/hostile_texts.py [--size N] [--parser NAME]… [--pieces N] [--worst N] [--all]

A text repeats one short piece: the pieces that `tests/test_linear_time.py` grows, or, with
`--pieces N`, N random pairs of them as well. For every parser: the slowest texts, in seconds of CPU
per million characters, and how many times that is of `json.loads` for a JSON list of two-character
items of the same length, measured in the same run. `--all` prints every piece. The promise is one
second per megabyte at most.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from repeated import PARSERS, REPEATED, repeated


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


def main() -> int:
    """Print the figures; return 1 if a text takes more than a second per megabyte."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=1_000_000, help="characters of each text")
    options.add_argument("--parser", action="append", choices=PARSERS, help="default: all")
    options.add_argument("--pieces", type=int, default=0, help="number of random pairs")
    options.add_argument("--worst", type=int, default=4, help="texts to print per parser")
    options.add_argument("--all", action="store_true", help="print every text")
    given = options.parse_args()

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
