"""How a judge writes a number: digits of any script, decimals, `4/5`, `**4**`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Problem = Literal["judge_output_invalid", "out_of_range"]

# Possessive quantifiers throughout: a runaway reply must not take quadratic time.
NUMBER = r"(?<![\d.])[-+−]?\d++(?:[.,]\d++)?"
OUT_OF = r"(?:\s*+(?P<of>/|%|out\s++of\b)\s*+(?P<whole>\d++)?)?"
_MARKS = r"[\s*_`\"'#>(\[:+]*+"
_ALONE = re.compile(rf"{_MARKS}(?:[-–—•]\s++{_MARKS})?(?P<n>{NUMBER}){OUT_OF}[\s*_`\"').\]]*+\Z")
_SIGNS = str.maketrans("−,", "-.")
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says: a score, or a problem; never both."""

    score: float | None = None
    """On the metric's own scale."""
    span: tuple[int, int] | None = None
    """Where the digits of an integer score stand in the reply (`8` of `8.0`); None for 4.5."""
    reason: str = ""
    """The judge's reasoning; where there is a problem, what it is."""
    problem: Problem | None = None
    sure: bool = True
    """False where it was found in prose or broken JSON: a reply that was cut off might go on."""


def invalid(why: str) -> Reading:
    """Say that a reply holds no score."""
    return Reading(reason=why, problem="judge_output_invalid")


def number_alone(text: str) -> re.Match[str] | None:
    """Match a text that is nothing but a number and its decoration."""
    return _ALONE.match(text)


def checked(match: re.Match[str], scale: tuple[int, int], reason: str, offset: int = 0) -> Reading:
    """Read a matched number and hold it against the scale: out of range is never made to fit.

    Args:
        match: with the groups `n`, `of` and `whole`.
        scale: lowest and highest score.
        reason: the judge's reasoning.
        offset: of the matched text in the reply.
    """
    low, high = scale
    words, whole = match["n"], match["whole"]
    if match["of"] and not (whole is not None and int(whole[:_MOST_DIGITS]) == high):
        return _outside(f"the score is {match[0].strip()[:40]!r}, not out of {high}")
    sign_and_digits, _, decimals = words.translate(_SIGNS).partition(".")
    if len(sign_and_digits) > _MOST_DIGITS:
        return _outside(f"the score has {len(sign_and_digits)} digits")
    value = float(int(sign_and_digits))
    if decimals.strip("0") and not all(int(digit) == 0 for digit in decimals):
        value = float(f"{int(sign_and_digits)}.{''.join(str(int(d)) for d in decimals)}")
        if sign_and_digits.startswith("-") and value > 0:  # "-0.5"
            value = -value
    if not low <= value <= high:
        return _outside(f"the score is {words[:40]}, outside of {low} to {high}")
    start = offset + match.start("n") + (sign_and_digits[0] in "+-")
    end = offset + match.start("n") + len(sign_and_digits)
    return Reading(value, (start, end) if value == int(value) else None, reason)


def _outside(why: str) -> Reading:
    return Reading(reason=why, problem="out_of_range")
