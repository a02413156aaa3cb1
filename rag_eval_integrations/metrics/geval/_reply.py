"""Read a G-Eval reply: the score and its position in the text, or the problem. No I/O.

A score is looked for in this order: the last JSON object with a score; a reply that is a number; a
line that names the criterion (`- Coherence: 2`, `1. Engagingness: 2`); a last line that is a
number; a number at the beginning; a number after a word such as "score" or "rate". List numbers,
ranges (`1-5`) and digits in copied text do not count. A number out of range is a problem, and no
further number is tried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from rag_eval_integrations.models._reading import Span, answer_in, as_text, fields_in

# --- Numbers: digits of any script, decimals, `4/5`, `**4**`


Problem = Literal["judge_output_invalid", "out_of_range"]

# Possessive quantifiers throughout: a runaway reply must not take quadratic time.
NUMBER = r"(?<![\d.])[-+−]?\d++(?:[.,]\d++)?"
OUT_OF = r"(?:\s*+(?P<of>/|%|out\s++of\b)\s*+(?P<whole>\d++)?)?"
_MARKS = r"[\s*_`\"'#>(\[:+]*+"
_ALONE = re.compile(rf"{_MARKS}(?:[-–—•]\s++{_MARKS})?(?P<n>{NUMBER}){OUT_OF}[\s*_`\"').\]]*+\Z")
_SIGNS = str.maketrans("−,", "-.")
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class RatingReply:
    """The content of a reply: a score or a problem, never both."""

    score: float | None = None
    """Score on the metric's own scale."""
    span: tuple[int, int] | None = None
    """Span of an integer score's digits in the reply (`8` of `8.0`); None for scores like 4.5."""
    reason: str = ""
    """The judge's reasoning, or the description of the problem."""
    problem: Problem | None = None
    sure: bool = True
    """False for a score from prose or broken JSON: a reply that was cut off might continue it."""


def invalid(why: str) -> RatingReply:
    """Make the reading of a reply without a score."""
    return RatingReply(reason=why, problem="judge_output_invalid")


def number_alone(text: str) -> re.Match[str] | None:
    """Match a text that consists of a number and its decoration only."""
    return _ALONE.match(text)


def checked(
    match: re.Match[str], scale: tuple[int, int], reason: str, offset: int = 0
) -> RatingReply:
    """Check a matched number against the scale; a number out of range is a problem, never clipped.

    Args:
        match: a match with the groups `n`, `of` and `whole`.
        scale: lowest and highest score.
        reason: the judge's reasoning.
        offset: position of the matched text in the reply.
    """
    low, high = scale
    words, whole = match["n"], "100" if match["of"] == "%" else match["whole"]
    if match["of"] and not (whole is not None and int(whole[:_MOST_DIGITS]) == high):
        return _outside(f"the score is {match[0].strip()[:40]!r}, not out of {high}")
    sign_and_digits = words.translate(_SIGNS).partition(".")[0]
    if len(sign_and_digits) > _MOST_DIGITS:
        return _outside(f"the score has {len(sign_and_digits)} digits")
    value = float(words.translate(_SIGNS)) + 0.0  # digits of any script; never -0.0
    if not low <= value <= high:
        return _outside(f"the score is {words[:40]}, outside of {low} to {high}")
    start = offset + match.start("n") + (sign_and_digits[0] in "+-")
    end = offset + match.start("n") + len(sign_and_digits)
    return RatingReply(value, (start, end) if value == int(value) else None, reason)


def _outside(why: str) -> RatingReply:
    """Return a rating outside of the scale."""
    return RatingReply(reason=why, problem="out_of_range")


# --- A whole reply


Scale = tuple[int, int]

_MOST_READ = 100_000
"""Characters that are read; of a longer reply, those at its end."""
_SCORE_KEYS = ("score", "rating", "final_score", "final score", "overall_score", "grade")
_REASON_KEYS = ("reason", "reasoning", "reasons", "explanation", "rationale", "analysis")
# In a broken object: `"score": 4` without a closing brace.
_BARE_FIELD = re.compile(rf"[\"']score[\"']\s*:\s*[\"']?(?P<n>{NUMBER}){OUT_OF}", re.IGNORECASE)
_RANGE = re.compile(
    r"(?:\b(?:from|between)\s++)?(?<!\d)\d++[^\S\n]*+"  # `- 2 gaps` on the next line ends no range
    r"(?:[-\u2010-\u2015\u2212]|\bto\b|\band\b|\bthrough\b)\s*+\d++",
    re.IGNORECASE,
)
# `\s` without the line feed, for a set of which more is part.
_BLANK = r"\t\v\f\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_BEFORE_LABEL = rf"^[{_BLANK}*_#>\"'`+•–-]*+(?:\d++[.)][^\S\n]*+)?[*_\"'`]*+"
_AFTER_LABEL = (
    rf"[{_BLANK}*_\"'`]*+(?:\([^)\n]*+\)[{_BLANK}*_\"'`]*+)?[:=：][\s*_\"'`]*+"
    rf"(?P<n>{NUMBER}){OUT_OF}"
)
_LABEL = re.compile(
    rf"{_BEFORE_LABEL}(?P<label>[^\W\d_][^\n:=：]{{0,60}}?){_AFTER_LABEL}", re.MULTILINE
)
# `1. ` before words is a list number; `4th` is an ordinal.
_LEADING = re.compile(rf"[\s*_#>\"'`:(\[+]*+(?P<n>{NUMBER})(?!(?:st|nd|rd|th)\b){OUT_OF}")
_LED_TO = re.compile(
    r"\b(?:scor(?:e[sd]?|ing)|rat(?:e[sd]?|ing)|grad(?:e[sd]?|ing)|give|gave|assign(?:ed)?|"
    rf"award(?:ed)?|deserves?|merits?)\b[^\d.!?\n{{}}]{{0,80}}?(?P<n>{NUMBER})(?!%){OUT_OF}",
    re.IGNORECASE,
)
_OF_THE_WHOLE = re.compile(rf"(?P<n>{NUMBER})\s*+(?P<of>/|out\s++of\b)\s*+(?P<whole>\d++)")
_NEXT_ITEM = re.compile(r"^[^\S\n]*+2[.)]\s", re.MULTILINE)
_KNOWN_LABELS = ("score", "rating", "grade", "result", "answer")


def read_reply(text: str, name: str, scale: Scale) -> RatingReply:
    """Read the score of a reply.

    Args:
        text: the reply.
        name: the metric's name, with which the judge may introduce the score.
        scale: lowest and highest score.

    Returns:
        The reading; its span counts characters of `text`.
    """
    answer = answer_in(text)
    start = answer.start + max(0, len(answer.text) - _MOST_READ)
    tail = answer.text[-_MOST_READ:]
    if not tail.strip():
        return invalid("the reply is empty")
    reading = _of_object(tail, name, scale) or _of_text(tail, name, scale)
    if reading.span is None or not start:
        return reading
    first, last = reading.span
    return replace(reading, span=(first + start, last + start))


def _of_object(text: str, name: str, scale: Scale) -> RatingReply | None:
    """Read the rating of a JSON reply, also a broken one; None if it holds no score.

    The last object with a score counts, and of one with several its own.
    """
    last_scored = None
    for nested in fields_in(text):
        scored = [(fields, span) for fields in nested if (span := _score_in(fields, text, name))]
        if scored:  # the object's own score, else the last one inside it
            last_scored = scored[0] if scored[0][0] is nested[0] else scored[-1]
    if last_scored is None:
        return _of_broken_object(text, scale)
    fields, (start, end) = last_scored
    match = number_alone(text[start:end].removesuffix("```"))
    if match is None:
        value = text[start:end][:60]
        return invalid(f"the score is {value or 'missing'}, which is not a number")
    reasons = (fields[key] for key in _REASON_KEYS if key in fields)
    first, last = next(reasons, (0, 0))
    return checked(match, scale, as_text(text[first:last]).strip(), start)


def _score_in(fields: dict[str, Span], text: str, name: str) -> Span | None:
    """Find the span of an object's score; an object as the value is read by itself."""
    own = name.lower()
    for key in (*_SCORE_KEYS, own, f"{own}_score", f"{own} score"):
        if key in fields and not text.startswith("{", fields[key][0]):
            return fields[key]
    return None


def _of_broken_object(text: str, scale: Scale) -> RatingReply | None:
    """Read `"score": N` from an object that quotes in its reason broke; None without it.

    Several N, written differently, make the reply invalid. One is checked against the scale and
    marked unsure; the text before it is the reason.
    """
    matches = list(_BARE_FIELD.finditer(text))
    if not matches:
        return None
    if len({match["n"] for match in matches}) > 1:
        return invalid("the judge's JSON is broken and holds several scores")
    last = matches[-1]
    return _unsure(checked(last, scale, text[: last.start()].strip(' \n,{`"')))


def _of_text(text: str, name: str, scale: Scale) -> RatingReply:
    """Read the rating of a reply in words.

    A number alone, one behind a label, the last line, the first words, or "3 out of 5"; what is
    less sure is marked so.
    """
    alone = number_alone(text)
    if alone is not None:
        return checked(alone, scale, "")
    if text.lstrip().startswith("{"):
        whole = text.rstrip(" \n`").endswith("}")
        return invalid(
            f"the judge's JSON {'holds no' if whole else 'was cut off before the'} score"
        )
    # Of the same length, so that positions in it are positions in the text.
    blanked = _RANGE.sub(lambda match: " " * len(match[0]), text)
    labelled = _labelled(blanked, name) or _named(text, blanked, name)
    if labelled is not None:
        return checked(labelled, scale, _reason_before(text, labelled))
    short = _short_label(blanked)
    if short is not None:
        return _unsure(checked(short, scale, _reason_before(text, short)))
    # Reasoning first and then the score alone, as the paper's prompt asks for it.
    last = text.rstrip().rfind("\n") + 1
    if last and (alone := number_alone(text[last:])) is not None:
        return _unsure(checked(alone, scale, text[:last].strip(), last))
    leading = _LEADING.match(blanked)
    of_list = leading is not None and _is_item(leading, text) and _NEXT_ITEM.search(text)
    of_name = text.lstrip(" \n*_#\"'`").lower().startswith(name.lower())
    if leading is not None and not of_list and not of_name:
        reading = checked(leading, scale, text[leading.end() :].strip(" .:-–\n\t"))
        return _unsure(reading) if _is_item(leading, text) else reading
    for pattern in (_LED_TO, _OF_THE_WHOLE):
        matches = list(pattern.finditer(blanked))
        if len({float(match["n"].translate(_SIGNS)) for match in matches}) > 1:
            return invalid("the reply names several scores")
        if matches:
            return _unsure(checked(matches[-1], scale, text.strip()))
    return invalid(f"the reply holds no score: {' '.join(text.split())[:80]}")


def _unsure(reading: RatingReply) -> RatingReply:
    """Mark a rating as one that was guessed from words."""
    return replace(reading, sure=False)


def _is_item(leading: re.Match[str], text: str) -> bool:
    """Tell whether a number at the beginning may be the number of a list's first item."""
    return leading["n"] == "1" and text[leading.end("n") : leading.end("n") + 1] in (".", ")")


def _labelled(text: str, name: str) -> re.Match[str] | None:
    """Match the last line `label: N` whose label is the metric's name or a word for a score."""
    own = re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")
    for match in reversed(list(_LABEL.finditer(text))):
        label = match["label"].lower()
        if own.search(label) or any(word in label for word in _KNOWN_LABELS):
            return match
    return None


def _named(text: str, blanked: str, name: str) -> re.Match[str] | None:
    """Match the last line that begins with the name, which may be long or begin with a digit."""
    matches = [
        match
        for match in _line_of(name).finditer(text)
        if blanked[match.start("n")] == text[match.start("n")]  # else it is part of a range
    ]
    return matches[-1] if matches else None


@lru_cache(maxsize=64)
def _line_of(name: str) -> re.Pattern[str]:
    """Make the pattern of a line that is labelled with a name."""
    return re.compile(
        f"{_BEFORE_LABEL}{re.escape(name)}{_AFTER_LABEL}", re.MULTILINE | re.IGNORECASE
    )


def _short_label(text: str) -> re.Match[str] | None:
    """Match the last line `label: N` with any label of one or two words."""
    short = [match for match in _LABEL.finditer(text) if len(match["label"].split()) <= 2]
    return short[-1] if short else None


def _reason_before(text: str, match: re.Match[str]) -> str:
    """Return the judge's reason, which stands before the score."""
    reason = text[: match.start()].strip()
    return re.sub(r"(?i)\A[*_#\s]*reason(?:s|ing)?[*_]*\s*:\s*", "", reason)


# --- Parsers behind published tables, only for reproducing these tables
#
# Both count a reply without a number as 0, which lowers a mean, and accept numbers out of range.
# For everything else, `read_reply` is the parser to use.

PaperParser = Literal["g-eval", "chiang-lee"]
PAPER_PARSERS: tuple[PaperParser, ...] = ("g-eval", "chiang-lee")

_AT_BEGINNING = re.compile(r" ?([\d.]+)")
_FIRST_DIGIT = re.compile(r"([0-9])")


def paper_score(text: str, parser: PaperParser) -> float:
    """Read a reply as the paper's code does; return 0 where it finds no number.

    Args:
        text: the reply.
        parser: `g-eval` reads a number at the very beginning (Liu et al. 2023); `chiang-lee` reads
            the first digit after the last `rating:` (Chiang and Lee 2023, who read 1 in
            `1. Engagingness: 2` and in `1.3`).
    """
    if parser == "g-eval":
        return _number(_AT_BEGINNING.match(text))
    lowered = text.lower().replace("\n", " ").replace("1-3", " ").rpartition("rating:")[2]
    return _number(_FIRST_DIGIT.search(lowered) or _AT_BEGINNING.match(lowered))


def _number(match: re.Match[str] | None) -> float:
    """Return the number of a match; 0 without one."""
    if match is None:
        return 0.0
    try:
        return float(match[1])
    except ValueError:  # "1.2.3", "."
        return 0.0
