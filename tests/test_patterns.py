"""No pattern of the library is one that a Python from 3.11 on reads wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from patterns import all_patterns, modules

pytestmark = pytest.mark.slow

_SINGLE = (constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN)


def possessive_groups(tree: Any) -> Iterator[Any]:
    """Find what is repeated possessively and is more than one character, however deep."""
    for kind, value in tree:
        if kind is constants.POSSESSIVE_REPEAT:
            repeated = value[2]
            if len(repeated) != 1 or repeated[0][0] not in _SINGLE:
                yield repeated
        for part in value if isinstance(value, tuple | list) else [value]:
            for below in part if isinstance(part, list) else [part]:
                if isinstance(below, parser.SubPattern):
                    yield from possessive_groups(below)


def of_bytes() -> Iterator[re.Pattern[bytes]]:
    for _, module in modules():
        for value in vars(module).values():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, bytes):
                yield value


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Before 3.11.5, `re` goes on from where the last repetition failed: write `(?>(?:…)*)`.

    In Python 3.11.2, which Debian 12 has, `(?:ab?c)++` matches three characters of "aca"
    (https://github.com/python/cpython/issues/106052).
    """
    patterns: list[re.Pattern[Any]] = [pattern for _, _, pattern in all_patterns().values()]
    patterns += of_bytes()

    trees = {each.pattern: parser.parse(each.pattern, each.flags) for each in patterns}
    repeating = [text for text, tree in trees.items() if any(possessive_groups(tree))]

    assert len(patterns) > 300
    assert repeating == []


@pytest.mark.parametrize("pattern", [r"a(?:b++c)?+", r"(?:(?>(?:ab)*+)|x)", r"(?!(x|(?:\s\d)++))"])
def test_a_group_that_is_repeated_possessively_would_be_found(pattern: str) -> None:
    """In alternatives, assertions and other groups, too."""
    assert any(possessive_groups(parser.parse(pattern)))
    assert not any(possessive_groups(parser.parse(r"(?:a++|(?>(?:b\s*+)*)|[cd]{1,3}+)?")))
