"""The parsers behind published tables, only for reproducing these tables. No I/O.

Both count a reply without a number as 0, which lowers a mean, and accept numbers out of range. For
everything else, `read_reply` is the parser to use.
"""

from __future__ import annotations

import re
from typing import Literal

PaperParser = Literal["g-eval", "chiang-lee"]
PAPER_PARSERS: tuple[PaperParser, ...] = ("g-eval", "chiang-lee")

_LEADING = re.compile(r" ?([\d.]+)")
_FIRST = re.compile(r"([0-9])")


def paper_score(text: str, parser: PaperParser) -> float:
    """Read a reply as the authors did; return 0 where they found no number.

    Args:
        text: the reply.
        parser: `g-eval` reads a number at the very beginning (Liu et al. 2023); `chiang-lee` reads
            the first digit after the last `rating:` (Chiang and Lee 2023, who read 1 in
            `1. Engagingness: 2` and in `1.3`).
    """
    if parser == "g-eval":
        return _number(_LEADING.match(text))
    lowered = text.lower().replace("\n", " ").replace("1-3", " ").rpartition("rating:")[2]
    return _number(_FIRST.search(lowered) or _LEADING.match(lowered))


def _number(match: re.Match[str] | None) -> float:
    if match is None:
        return 0.0
    try:
        return float(match[1])
    except ValueError:  # "1.2.3", "."
        return 0.0
