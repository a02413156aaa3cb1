"""Hostile input by the thousand: JSON that is almost what a reader expects, and texts around it.

A fuzz target is a test that calls `fuzz`. Every case is made from its name and number, so that a
failure is repeated by its number. `RAG_EVAL_FUZZ_CASES` says how many cases each target tries;
`.ci/deep` asks for 500.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

CASES = int(os.environ.get("RAG_EVAL_FUZZ_CASES", "100"))
"""Cases of each target."""


class Raw(str):
    """JSON that is written as it is; most of it is nothing that `json.dumps` could write."""

    __slots__ = ()


HOSTILE = (
    *map(Raw, ("9" * 5_000, "1" + "0" * 400, "-" + "9" * 4_299, "1e999", "-1e400", "NaN")),
    *map(Raw, ("-Infinity", "null", "true", "false", "0", "-1", "1.5", "3", "1e308", "[]", "{}")),
    *(Raw("[" * depth + "]" * depth) for depth in (3, 60, 70, 150, 900, 980, 10_000)),
    *(Raw('{"a":' * depth + "1" + "}" * depth) for depth in (70, 200, 900)),
    *map(Raw, ('""', r'"\ud800"', r'"\udfff\ud800 x"', r'"\u0000"', '" "', '"²"', '"--5"', '"٣"')),
    *map(Raw, ('"0a"', '"a"', '"9z"', '"general"', '"' + "1" * 5_000 + 'a"', '"999999999a"')),
    *map(Raw, ('"0a through 0zzz"', '"' + "to" * 3_000 + '!"', '"' + "x, " * 500 + '"', "[[]]")),
    *map(Raw, ('[""]', '["0a", null]', "[1]", '{"0a": 1}', '"NaN"', '"1e999"', "[0.5, 1e999]")),
)
"""Values that are somewhere of the wrong kind, size or depth."""

_MARKS = (
    *"\"'{}[],:\\", "\\ud800", "\ud800", "`", "```", "\n",
    "\x00", "9" * 50, "²", "null", "NaN", "<think>", "</think>", "score: 4", "OK", " " * 99,
)  # fmt: skip


def written(value: object) -> str:
    """Write a value as JSON."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def mangled(rng: random.Random, value: object) -> Any:
    """Copy a value; at some places, something hostile, something twice, or something missing.

    Most cases have one such place, so that they are not refused before anything else is read.
    """
    return _mangled(rng, value, rng.choice((0.3, 1, 1, 4)) / _size(value))


def _size(value: object) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, parts))


def _mangled(rng: random.Random, value: object, rate: float) -> Any:
    if rng.random() < rate:
        return rng.choice(HOSTILE)
    if isinstance(value, dict):
        kept = {
            rng.choice(tuple(value)) if rng.random() < rate / 8 else key: _mangled(rng, part, rate)
            for key, part in value.items()
            if rng.random() > rate / 4
        }
        if rng.random() < rate:
            name = rng.choice(("x", "schema", "metadata", "\ud800", "labels", "id"))
            kept[name] = rng.choice(HOSTILE)
        return kept
    if isinstance(value, list):
        items = [_mangled(rng, part, rate) for part in value if rng.random() > rate / 4]
        return items * 2 if rng.random() < rate / 2 else items
    return value


def disturbed(rng: random.Random, text: str) -> str:
    """Cut a text, put marks into it, or leave it as it is."""
    for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
        start = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:start]
        elif kind == 1:
            text = text[:start] + rng.choice(_MARKS) + text[start:]
        elif kind == 2:
            text = text[:start] + text[start + rng.randrange(1, 9) :]
        else:
            text = rng.choice(
                ("```json\n{}\n```", "So: {}", "{}{}", "<think>{}</think>{}")
            ).replace("{}", text)
    return text


def fuzz(name: str, make: Callable[[random.Random], T], check: Callable[[T], object]) -> None:
    """Try a check with many cases.

    Args:
        name: name of the target.
        make: makes a case.
        check: raises for a case that is not handled as it should be.

    Raises:
        AssertionError: names the first case that failed, and shows it.
    """
    for number in range(CASES):
        case = make(random.Random(f"{name} {number}"))
        try:
            check(case)
        except BaseException as error:
            shown = ascii(case)
            raise AssertionError(
                f"{name}, case {number}: {type(error).__name__}: {shown[:3_000]}"
            ) from error
