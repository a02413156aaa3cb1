"""No text hangs a pattern or a parser: whatever explodes would not finish within the time-out.

What grows with the square of a text's length is too small to be seen here, and is measured:
`benchmarks/hostile_texts.py` prints seconds per megabyte of every pattern and parser.
"""

from __future__ import annotations

import random
import re

import pytest
from patterns import all_patterns, read, units, used_by
from repeated import PARSERS, REPEATED, grown, repeated

pytestmark = pytest.mark.slow


def test_every_pattern_finishes() -> None:
    """On what it repeats itself, what nearly matches, and what texts have most of."""
    chance = random.Random(5)
    patterns = all_patterns()
    assert len(patterns) > 150
    for module, name, pattern in patterns.values():
        methods = used_by(module, name)
        for begin, unit in units(pattern, chance):
            read(pattern, methods, grown(begin, unit, 400))


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_finishes(name: str) -> None:
    """On short pieces that repeat without end."""
    for unit in REPEATED:
        PARSERS[name](repeated(unit, 2_000))


def test_a_pattern_that_explodes_would_be_seen() -> None:
    """The texts that are tried double the steps of such a pattern with every character or two."""
    pattern = re.compile(r"(?:a|aa)+$")
    texts = [grown(begin, unit, 24) for begin, unit in units(pattern, random.Random(5))]

    assert any(text.startswith("a" * 20) for text in texts)
