"""Read a generator's reply: refusals, statements, JSON. Pure."""

from __future__ import annotations

import re
from typing import Any

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.models._reading import json_of, mended, unfenced

_BULLET = re.compile(r"^\s*(?:(?:\d{1,3}[.)]|[-*•–]|_(?=\s))\s+)+")
_HEADING = re.compile(r"^[#*_\s]*+(?:[\w ]{0,30})?(?:rules|specification)[*_\s]*:[*_\s]*$", re.I)
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m (?:very )?sorry|i am sorry|sorry|i apologi[sz]e|"
    r"i (?:can['’]?t|cannot|can not|won['’]?t|will not|am unable to|['’]?m unable to)\b|"
    r"i['’]m (?:unable|not able) to\b)|\bcan['’]?t assist\b|\bcannot assist\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 600
NUMBER = re.compile(r"^\s*(\d{1,3})\s*[.):]\s+")


def is_refusal(text: str) -> bool:
    """Return whether a whole reply is a refusal: short, and with the beginning of a refusal.

    A rule that quotes a refusal ("The output should begin with 'I'm sorry'") is not one.
    """
    stripped = text.strip()
    return len(stripped) <= _LONGEST_REFUSAL and bool(_REFUSAL.search(stripped[:80]))


def lines_in(text: str) -> list[str]:
    """Read one statement per line, without bullets, numbers, headings, comments, empty lines."""
    found = []
    for line in unfenced(text).splitlines():
        bare = _BULLET.sub("", line).strip()
        if bare and not bare.startswith(("#", "```")) and not _HEADING.match(bare):
            found.append(one_line(bare))
    return found


def statements_in(text: str, field: str) -> list[str]:
    """Read a list of statements from a JSON object with the field, a JSON list, or lines."""
    content = json_in(text)
    if isinstance(content, dict):
        content = content.get(field, next(iter(content.values()), None))
    if isinstance(content, list):
        return [one_line(str(item)) for item in content if str(item).strip()]
    return lines_in(text)


def one_line(text: str) -> str:
    """Join a text into one line: white space becomes single spaces."""
    return " ".join(text.split())


def json_in(text: str) -> Any:
    """Read a reply as JSON, in a fence or not, repaired if needed; None if it is not JSON."""
    body = unfenced(text).strip()
    if body[:1] not in ("{", "["):
        return None
    try:
        return json_of(body)
    except ValueError:
        pass
    try:
        return mended(body, whole=True) or None
    except JudgeOutputError:
        return None
