"""Read a metric's reply: a score of 0 to 100, a verdict OK or ERR, or the problem. No I/O.

A score is looked for in this order: a JSON object with a field `score`; a reply that is a number;
the last "score … N" that is not a range; OK or ERR. The 4,299 recorded replies of PromptPex's
scoring metrics are read as by PromptPex itself, except that replies which it reads as 0 or does
not check (no score, null, 150) have no value here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from rag_eval_integrations.errors import safe_text
from rag_eval_integrations.models._reading import objects_in, repeats

# --- Verdicts: OK, ERR or unknown


Outcome = Literal["ok", "err", "unknown"]

_DECORATION = " \t\r\n*_`.!\"'()[]<>:;,~#-"
_LAST = re.compile(r"(?:^|(?<=\W))(OK|ERR)\Z")
_ALONE: dict[str, Literal["ok", "err"]] = {"ok": "ok", "err": "err"}
_LEADS = re.compile(r"(?i)\b(?:verdict|decision|result|answer|evaluation)\W{0,6}\Z")
# PromptPex reads these as OK: a verdict that is negated, or one of two alternatives.
_DENIED = re.compile(r"(?i)(?:\bnot|n't)\s+(?:\w+\s+)?\Z")
_OFFERED = re.compile(r"(?i)(?:\bok|\berr)\W*(?:\bor\b|/|\|)\W*\Z")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on one text."""

    outcome: Outcome
    reason: str
    """The judge's explanation; for `unknown`, the reason why the verdict is unknown."""


def read_verdict(text: str) -> Verdict:
    """Read the verdict of a reply: its last word, else a first line that holds nothing else.

    A word alone on its line counts in any case and decoration (`**Ok**`); within a line only `OK`
    and `ERR` in capitals count, so that "looks ok" is not a verdict.
    """
    whole = text.strip()
    if not whole:
        return Verdict("unknown", "the reply is empty")
    lines = whole.splitlines()
    outcome, why = _last_word(whole, lines[-1])
    if outcome is None and len(lines) > 1:
        outcome, why = _lone_verdict(lines[0]), "\n".join(lines[1:])
    if outcome is None:
        return Verdict("unknown", f"the reply does not end in OK or ERR: {_excerpt(whole)}")
    return Verdict(outcome, why.strip().strip("*").strip())


def _last_word(whole: str, line: str) -> tuple[Literal["ok", "err"] | None, str]:
    """Return the verdict at the end of a reply, and the text before it."""
    alone = _lone_verdict(line)
    if alone is not None:
        return alone, whole[: len(whole) - len(line)]
    ended = whole.rstrip(_DECORATION)
    match = _LAST.search(ended)
    if match is None:
        return None, ""
    before = ended[: match.start()]
    if _OFFERED.search(before[-20:]):
        return None, ""
    if match[1] == "ERR":
        return "err", _LEADS.sub("", before)
    return (None, "") if _DENIED.search(before[-40:]) else ("ok", _LEADS.sub("", before))


def _lone_verdict(line: str) -> Literal["ok", "err"] | None:
    """Return the verdict of a line that holds nothing else; None for another line."""
    return _ALONE.get(line.strip(_DECORATION).lower())


def _excerpt(text: str, most: int = 120) -> str:
    """Return a text on one line, cut at `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


# --- Scores: 0 to 100, else a verdict


Problem = Literal["judge_output_invalid", "out_of_range"]
_MOST_READ = 200_000
"""Characters that are read; of a longer reply, those at its end."""

_NUMBER = r"[-+]?\d{1,40}(?:\.\d{1,40})?"
_DASH = r"[-\u2010-\u2015\u2212]"  # models write every kind, also the hyphen that breaks no line
_OF = r"(?:[\s*_`\"']*+(?:points?\s++)?(?P<of>/|%|out\s+of)\s*+(?P<whole>\d+(?:\.\d+)?)?)?"
_WHOLE_REPLY = re.compile(rf"[\s*_`\"']*+(?P<n>{_NUMBER}){_OF}[\s*_`\"'.]*+\Z")
_RANGE = re.compile(
    rf"(?<!\d)(\d{{1,9}}(?:\.\d{{1,9}})?)[^\S\n]{{0,3}}(?:{_DASH}|\bto\b|\band\b|\bthrough\b)\s{{0,3}}"
    r"(\d{1,9}(?:\.\d{1,9})?)(?!\d)"
)
_FALLING = re.compile(rf"[\d.]++\s++{_DASH}\s")  # "85 - 2 rules are broken": a dash, no range
# "score: **85**", "score of 85", "score (out of 100): 85"; only if there is none of these, a later
# number of the same sentence: "the score, on a scale of …, is 85".
_TIGHT = re.compile(
    r"\bscore\b(?:[\s*_]*+(?:\((?!\d)[^()\n]{0,40}\)|out of 100)(?=[\s*_]*+[:=]))?"
    rf"[\s*_`\"':=()|>-]*(?:(?:is|of|was|value|as|at|be)\b[\s*_`\"':=()-]*)?(?P<n>{_NUMBER})(?!\.?\d){_OF}",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    rf"\bscore[sd]?\b[^\d.!?{{}}]{{0,80}}?(?P<n>{_NUMBER})(?!\.?\d){_OF}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a reply: a score, an outcome or a problem, and never two of them."""

    score: float | None = None
    """Score from 0 to 100."""
    outcome: Literal["ok", "err"] | None = None
    problem: Problem | None = None
    reason: str = ""
    """The judge's explanation, or the description of the problem."""


def read_score(text: str) -> Reading:
    """Read a metric's reply: a score, else OK or ERR, else a problem; see the module for order."""
    whole = text.strip()
    if not whole:
        return Reading(problem="judge_output_invalid", reason="the reply is empty")
    tail = whole[-_MOST_READ:]
    content, problem = _object_with_score(tail)
    if content is not None:
        return _object_reading(content)
    if problem:
        return Reading(problem="judge_output_invalid", reason=problem)
    match = _WHOLE_REPLY.match(tail)
    if match is not None:
        return _match_reading(match, "")
    spoken = _score_in_words(tail)
    if spoken is not None:
        return _match_reading(spoken, whole)
    verdict = read_verdict(whole)
    if verdict.outcome == "unknown":
        why = f"neither a score nor OK or ERR: {verdict.reason.partition(': ')[2] or 'no words'}"
        return Reading(problem="judge_output_invalid", reason=why)
    return Reading(outcome=verdict.outcome, reason=verdict.reason)


def _object_with_score(text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the last JSON object with a score, or what is wrong with it."""
    content: dict[str, Any] | None = None
    problem = ""
    for each in objects_in(text):
        if each.value is None:
            if text.find("}", each.start) < 0:
                return content, "the judge's JSON was cut off"
        elif any(key.lower() == "score" for key in each.value):
            content = each.value
            problem = "" if each.repeated is None else repeats(each.repeated)
    return (None, problem) if problem else (content, "")


def _object_reading(content: dict[str, Any]) -> Reading:
    """Return the reading of a JSON reply with a score."""
    lower = {key.lower(): value for key, value in content.items()}
    value = lower["score"]
    why = lower.get("explanation", lower.get("reason", lower.get("reasoning", "")))
    explanation = why if isinstance(why, str) else safe_text(why, json.dumps)
    if isinstance(value, str) and (match := _WHOLE_REPLY.match(value)):
        return _match_reading(match, explanation)
    if isinstance(value, bool) or not isinstance(value, int | float):
        why = f"the score is {safe_text(value, json.dumps)[:60]}, which is not a number"
        return Reading(problem="judge_output_invalid", reason=why)
    return _number_reading(value, explanation)


def _score_in_words(text: str) -> re.Match[str] | None:
    """Return the match of the last score in prose; None if there is none."""

    def without_range(match: re.Match[str]) -> str:
        """Replace a range by a space; keep what only looks like a range."""
        falls = float(match[1]) >= float(match[2])
        return match[0] if falls and _FALLING.match(match[0]) else " "

    without = _RANGE.sub(without_range, text)
    matches = list(_TIGHT.finditer(without)) or list(_LOOSE.finditer(without))
    return matches[-1] if matches else None


def _match_reading(match: re.Match[str], explanation: str) -> Reading:
    """Return the reading of a matched score; one that is not out of 100 is a problem."""
    whole = match["whole"]
    if match["of"] and match["of"] != "%" and (whole is None or float(whole) != 100):
        why = f"the score is {match[0].strip()[:60]!r}, not out of 100"
        return Reading(problem="out_of_range", reason=why)
    return _number_reading(float(match["n"]), explanation)


def _number_reading(value: float, explanation: str) -> Reading:
    """Return the reading of a number; one outside of 0 to 100 is a problem."""
    # NaN compares as outside; an integer too large for a float is never turned into one.
    if not 0 <= value <= 100:
        why = f"the score is {str(value)[:40]}, outside of 0 to 100"
        return Reading(problem="out_of_range", reason=why)
    return Reading(score=float(value), reason=explanation)
