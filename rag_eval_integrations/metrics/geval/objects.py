"""JSON objects as judges write them: raw line breaks in strings, prose around, nothing repaired.

Only the fields of an object and where their values stand are needed, so the text is scanned and
not decoded: `json` refuses seed 000's reply, whose reason runs over several lines, and says of no
value where it stood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Span = tuple[int, int]

_KEY = re.compile(r"\s*(?P<quote>[\"'])(?P<key>[^\"'\n]{1,100})(?P=quote)\s*:\s*")
_MOST_TRIES = 200
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')


def objects_in(text: str) -> Iterator[list[dict[str, Span]]]:
    """Yield the fields (lower case) of every object with their spans, together with those in it.

    The outer one stands first.

    An object that breaks off gives the fields that are whole or that the end cut.
    """
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_TRIES:
        tries += 1
        fields, end = _fields(text, position + 1)
        if fields:
            inner = (
                found
                for start, stop in fields.values()
                if text.startswith("{", start) and stop > start
                for found in _inner(text[:stop], start)
            )
            yield [fields, *inner]
        position = text.find("{", max(end, position + 1))


def _inner(text: str, start: int, depth: int = 3) -> Iterator[dict[str, Span]]:
    fields, _ = _fields(text, start + 1)
    yield fields
    for begin, stop in fields.values():
        if depth and text.startswith("{", begin) and stop > begin:
            yield from _inner(text[:stop], begin, depth - 1)


def _fields(text: str, position: int) -> tuple[dict[str, Span], int]:
    """Read `"key": value, …` up to the closing brace; the position after it."""
    fields: dict[str, Span] = {}
    while (match := _KEY.match(text, position)) is not None:
        end = _value_end(text, match.end())
        stop = end
        while stop > match.end() and text[stop - 1].isspace():
            stop -= 1
        fields[match["key"].strip().lower()] = (match.end(), stop)
        if end >= len(text) or text[end] != ",":
            return fields, end + 1
        position = end + 1
    return fields, position


def _value_end(text: str, position: int) -> int:
    """Find the comma or brace that ends a value."""
    depth, quote = 0, ""
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character == '"' or (character == "'" and _opens(text, position)):
            quote = character
        elif character in "{[":
            depth += 1
        elif character in "}]":
            if not depth:
                return position
            depth -= 1
        elif character == "," and not depth:
            return position
        position += 1
    return len(text)


def _opens(text: str, position: int) -> bool:
    """Whether a single quote begins a string, as in Python's dicts, and is no apostrophe."""
    return text[max(0, position - 40) : position].rstrip()[-1:] in (":", ",", "[", "{")


def as_text(value: str) -> str:
    """Undo the quotes and escapes of a string value; a raw line break with its indent is a space.

    Other values are returned as they are written.
    """
    if value[:1] not in ("'", '"'):
        return value
    inner = value[1:-1] if len(value) > 1 and value[-1] == value[0] else value[1:]
    unescaped = _ESCAPE.sub(lambda match: str(json.loads(f'"{match[0]}"')), inner)
    lines = re.sub(r"[ \t]*\r?\n[ \t]*", " ", unescaped) if "\n" in inner else unescaped
    return lines.encode("utf-8", "replace").decode()
