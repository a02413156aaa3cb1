"""Descriptions of score levels: checked when a metric is made, shown in the prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_eval_integrations.errors import ConfigurationError

RubricLike = Mapping[int | str | tuple[int, int], str] | Sequence["Level | Mapping[str, object]"]
"""`{1: "…", "2-4": "…", (5, 6): "…"}`, or a list of `{"range": [lo, hi], "description": "…"}`."""


@dataclass(frozen=True, slots=True)
class Level:
    """What scores from `low` to `high` mean."""

    low: int
    high: int
    text: str

    def __str__(self) -> str:
        numbers = f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"
        return f"{numbers}: {self.text}"


def checked_rubric(rubric: RubricLike | object, scale: tuple[int, int]) -> tuple[Level, ...]:
    """Read a rubric, lowest level first.

    Raises:
        ConfigurationError: for levels that overlap, lie outside of the scale or describe nothing,
            and for a rubric of one point, which leaves nothing to choose.
    """
    if rubric is None:
        return ()
    if isinstance(rubric, Mapping):
        levels = [Level(*_range(points), _text(text)) for points, text in rubric.items()]
    elif isinstance(rubric, Sequence) and not isinstance(rubric, str):
        levels = [_level(item) for item in rubric]
    else:
        raise ConfigurationError("rubric", rubric, "use a mapping of scores to descriptions")
    levels.sort(key=lambda level: (level.low, level.high))
    for level in levels:
        if not scale[0] <= level.low <= level.high <= scale[1]:
            raise ConfigurationError(
                "rubric", str(level)[:60], f"is outside of the scale {scale[0]} to {scale[1]}"
            )
    for lower, upper in pairwise(levels):
        if lower.high >= upper.low:
            raise ConfigurationError("rubric", str(upper)[:60], f"overlaps {str(lower)[:60]!r}")
    if sum(level.high - level.low + 1 for level in levels) < 2:
        raise ConfigurationError("rubric", rubric, "describe at least two points of the scale")
    return tuple(levels)


def _level(item: object) -> Level:
    if isinstance(item, Level):
        return Level(item.low, item.high, _text(item.text))
    if not isinstance(item, Mapping):
        raise ConfigurationError("rubric", item, "use {'range': [lo, hi], 'description': '…'}")
    points = item.get("range", item.get("score_range", item.get("score")))
    text = item.get("description", item.get("expected_outcome"))
    return Level(*_range(points), _text(text))


def _range(points: object) -> tuple[int, int]:
    if isinstance(points, str):
        match = re.fullmatch(r"\s*(\d+)\s*(?:(?:-|–|to)\s*(\d+)\s*)?", points)
        if match is not None:
            return int(match[1]), int(match[2] or match[1])
    elif isinstance(points, int) and not isinstance(points, bool):
        return points, points
    elif isinstance(points, Sequence) and len(points) == 2:
        low, high = points
        if type(low) is int and type(high) is int and low <= high:
            return low, high
    raise ConfigurationError("rubric", points, "use a score, or two as in '2-4' or [2, 4]")


def _text(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError("rubric", text, "describe the level in words")
    return text.strip()
