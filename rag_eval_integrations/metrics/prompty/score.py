"""What a judge wrote becomes a score of 0 to 100, a verdict, or the reason why neither. Pure.

In this order: a JSON object with a field `score`; a reply that is a number; the last "score … N"
that is no range; OK or ERR. The recorded 4,299 replies of PromptPex's scoring metrics read the
same; what upstream reads as 0 or passes on unseen (no score, null, 150) has no value here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from rag_eval_integrations.metrics.prompty.verdict import Outcome, read_verdict

Problem = Literal["judge_output_invalid", "out_of_range"]
_MOST_TRIES = 200
_MOST_READ = 200_000
"""Characters; what a runaway model wrote beyond is not looked at from the front."""

_NUMBER = r"[-+]?\d{1,40}(?:\.\d{1,40})?"
_OF = r"(?:\s*(?P<of>/|%|out\s+of)\s*(?P<whole>\d+(?:\.\d+)?)?)?"
_WHOLE_REPLY = re.compile(rf"[\s*_`\"']*(?P<n>{_NUMBER}){_OF}[\s*_`\"'.]*\Z")
_RANGE = re.compile(
    r"(?<!\d)\d{1,9}(?:\.\d{1,9})?\s{0,3}(?:-|–|—|\bto\b|\band\b|\bthrough\b)\s{0,3}\d{1,9}"
    r"(?:\.\d{1,9})?(?!\d)"
)
# "score: **85**", "score of 85", "score is 85", and, only where none of these stands, a number that
# follows within the sentence: "the score, on a scale of …, is 85".
_TIGHT = re.compile(
    rf"\bscore\b[\s*_`\"':=()|>-]*(?:(?:is|of|was|value|as|at|be)\b[\s*_`\"':=()-]*)?(?P<n>{_NUMBER})(?!\.?\d){_OF}",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    rf"\bscore[sd]?\b[^\d.!?{{}}]{{0,80}}?(?P<n>{_NUMBER})(?!\.?\d){_OF}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says: a score, or an outcome, or a problem; never two of them."""

    score: float | None = None
    """0 to 100."""
    outcome: Literal["ok", "err"] | None = None
    problem: Problem | None = None
    reason: str = ""
    """The judge's explanation; where there is a problem, what it is."""


def read_score(text: str) -> Reading:
    """Read a metric's reply."""
    whole = text.strip()
    if not whole:
        return Reading(problem="judge_output_invalid", reason="the reply is empty")
    shown = whole[-_MOST_READ:]
    found, cut_off = _object_with_score(shown)
    if found is not None:
        return _of_object(found)
    if cut_off:
        return Reading(problem="judge_output_invalid", reason="the judge's JSON was cut off")
    match = _WHOLE_REPLY.match(shown)
    if match is not None:
        return _checked(match, "")
    spoken = _spoken(shown)
    if spoken is not None:
        return _checked(spoken, whole)
    verdict = read_verdict(whole)
    outcome: Outcome = verdict.outcome
    if outcome == "unknown":
        why = f"neither a score nor OK or ERR: {verdict.reason.partition(': ')[2] or 'no words'}"
        return Reading(problem="judge_output_invalid", reason=why)
    return Reading(outcome=outcome, reason=verdict.reason)


def _object_with_score(text: str) -> tuple[dict[str, Any] | None, bool]:
    """Find the last JSON object with a score, and whether the text ends inside of one."""
    decoder = json.JSONDecoder(parse_constant=lambda name: name)
    found: dict[str, Any] | None = None
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_TRIES:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if (
                re.match(r"\{\s*[\"']", text[position : position + 40])
                and "}" not in text[position:]
            ):
                return found, True
            end = position + 1
        else:
            if isinstance(value, dict) and any(key.lower() == "score" for key in value):
                found = value
        position = text.find("{", end)
    return found, False


def _of_object(content: dict[str, Any]) -> Reading:
    lower = {key.lower(): value for key, value in content.items()}
    value = lower["score"]
    said = lower.get("explanation", lower.get("reason", lower.get("reasoning", "")))
    explanation = said if isinstance(said, str) else json.dumps(said)
    if isinstance(value, str):
        match = _WHOLE_REPLY.match(value)
        if match is not None:
            return _checked(match, explanation)
    if isinstance(value, bool) or not isinstance(value, int | float):
        why = f"the score is {json.dumps(value)[:60]}, which is no number"
        return Reading(problem="judge_output_invalid", reason=why)
    return _in_range(value, explanation)


def _spoken(text: str) -> re.Match[str] | None:
    without = _RANGE.sub(" ", text)
    for pattern in (_TIGHT, _LOOSE):
        matches = list(pattern.finditer(without))
        if matches:
            return matches[-1]
    return None


def _checked(match: re.Match[str], explanation: str) -> Reading:
    whole = match["whole"]
    if match["of"] and match["of"] != "%" and (whole is None or float(whole) != 100):
        return Reading(
            problem="out_of_range", reason=f"the score is {match[0].strip()[:60]!r}, not out of 100"
        )
    return _in_range(float(match["n"]), explanation)


def _in_range(value: float, explanation: str) -> Reading:
    # NaN compares as outside; an integer too large for a float is never turned into one.
    if not 0 <= value <= 100:
        why = f"the score is {str(value)[:40]}, outside of 0 to 100"
        return Reading(problem="out_of_range", reason=why)
    return Reading(score=float(value), reason=explanation)
