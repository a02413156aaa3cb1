"""Reading a generator's reply: fences, refusals, statements, JSON that needs repair. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"\A\s*```[\w-]*[ \t]*\n(?P<body>.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_INNER_FENCE = re.compile(r"```[\w-]*[ \t]*\n(?P<body>.*?)\n[ \t]*```", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:(?:\d{1,3}[.)]|[-*•–]|_(?=\s))\s+)+")
_HEADING = re.compile(r"^(?:[#*_\s]*)(?:[\w ]{0,30})?(?:rules|specification)[*_\s]*:[*_\s]*$", re.I)
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m (?:very )?sorry|i am sorry|sorry|i apologi[sz]e|"
    r"i (?:can['’]?t|cannot|can not|won['’]?t|will not|am unable to|['’]?m unable to)\b|"
    r"i['’]m (?:unable|not able) to\b)|\bcan['’]?t assist\b|\bcannot assist\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 600
_MOST_REPAIRED = 20_000
_MOST_MARKS = 1500
"""Limits of JSON repair, in characters and in brackets and quotes. Its time is quadratic: 7 s were
measured for 20,000 brackets, and 4 s for 4,000 misplaced quotes."""
NUMBER = re.compile(r"^\s*(\d{1,3})\s*[.):]\s+")


def unfenced(text: str) -> str:
    """Return the content of the code fence around a text, or of the only fence in a prose text.

    A text without a fence, or with several, is returned unchanged.
    """
    match = _FENCE.match(text)
    if match is None:
        fences = list(_INNER_FENCE.finditer(text))
        match = fences[0] if len(fences) == 1 else None
    return text if match is None else match["body"]


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
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    if body[-1:] not in ("}", "]"):
        return None  # cut off: repair would make the missing part look as if it was left out
    marks = body.count("{") + body.count("[") + body.count('"')
    if len(body) > _MOST_REPAIRED or marks > _MOST_MARKS:
        return None
    from json_repair import loads  # noqa: PLC0415  # only when a reply needs it

    try:
        return loads(body) or None
    except (ValueError, RecursionError):
        return None
