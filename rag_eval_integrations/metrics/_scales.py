"""The range of scores that instructions name, where it is not the scale of the metric."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_NUMBER = r"\d{1,4}(?:\.\d{1,3})?"
_IN_WORDS = r"(?: ?\([^()\n]{1,40}\))?"  # "1 (worst) to 10 (best)"
_SCORES = r"(?:scor(?:e[sd]?|ing)|rat(?:e[sd]?|ings?)|grad(?:e[sd]?|ing)|scales?|marks?|points?)"
_RANGE = re.compile(
    rf"(?<![\w.,-])(?P<low>{_NUMBER}) ?%?{_IN_WORDS} ?(?:[-–—]|\b(?:to|and|through)\b) ?"
    rf"(?P<high>{_NUMBER})(?![\w.]?\d)(?P<percent> ?%)?{_IN_WORDS}"
    rf"|\bout of (?P<of>{_NUMBER})(?![\w.]?\d)"
    r"|(?<![\w.-])(?P<points>\d{1,3})[- ]points?(?= (?:scale|rating))"
)
_SPOKEN = re.compile(rf"\b{_SCORES}\b", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?:\b(?:{_SCORES}|from|between|of|is|be|as|an?|range|answer|response|output|summary|text|it)"
    r"|[(:=])\W{0,3}\Z",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r"\b(?:scale(?: of)?|range|from|between)\W{0,3}\Z", re.IGNORECASE)
_CHANGES = re.compile(r"\b(?:add|deduct|subtract|remove|lose|take|minus)\b[^.]{0,12}\Z", re.I)
# Any other word is what is counted: "1 to 3 sentences".
_BEHIND = re.compile(
    rf" ?(?:(?P<own>{_SCORES}|range)\b|(?P<level>if|when)\b|[^\w\s%]|\Z|\n"
    r"|(?:where|with|inclusive|based|for|depending|according|as|by|how|and|or|only)\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;\n](?=\s)")
_REACH = 80  # characters in front of a range, in which scores are spoken of


class _Range(NamedTuple):
    """A range of scores that instructions name."""

    low: float | None
    """None where only the highest score is named: "out of 10"."""
    high: float
    words: str
    whole: bool
    """Whether it is said to be all of the scale, not a level of it."""


def warn_of_other_range(
    field: str, texts: Iterable[str], scale: tuple[float, float], remedy: str
) -> None:
    """Warn the caller's caller where instructions name a range of scores that is not the scale.

    Args:
        field: the argument or file that holds the instructions.
        texts: the instructions.
        scale: lowest and highest score.
        remedy: what to do.
    """
    words = _other_range(texts, scale)
    if words is not None:
        low, high = scale
        warnings.warn(
            f"{field}: the instructions name scores of “{words}”, and a score is read on the scale "
            f"{low:g} to {high:g}: {remedy}",
            stacklevel=3,
        )


def _other_range(texts: Iterable[str], scale: tuple[float, float]) -> str | None:
    """Return the words of a range that is not the scale; None where the scale is named, too."""
    named = [each for text in texts for each in _ranges(text)]
    low, high = scale
    if any(each.high == high and each.low in (low, None) for each in named):
        return None
    for each in named:
        if each.high > high or (each.low is not None and each.low < low) or each.whole:
            return each.words
    return None


def _ranges(text: str) -> Iterator[_Range]:
    """Yield the ranges of scores that a text names."""
    for match in _RANGE.finditer(text):
        before = _SENTENCE.split(text[max(0, match.start() - _REACH) : match.start()])[-1]
        behind = _BEHIND.match(text, match.end())
        if behind is None or _CHANGES.search(before):
            continue
        highest = match["of"] or match["points"]
        own = behind["own"] is not None or match["points"] is not None
        if not own and not (_SPOKEN.search(before) and (highest or _BEFORE.search(before))):
            continue
        low, high = None if highest else float(match["low"]), float(highest or match["high"])
        if low not in (None, 0, 1) or (low or 0) >= high or (match["percent"] and high != 100):
            continue
        whole = bool(highest) or own or "." in match[0] or bool(_INTRODUCES.search(before))
        yield _Range(low, high, match[0].strip(), whole and behind["level"] is None)
