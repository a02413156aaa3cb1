"""`Secrets`: the values of a user's settings that no message, record or `repr` may show."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from pydantic import JsonValue

_LONG = 8
"""Characters from which a value is replaced wherever it stands."""
_MARK = "***"
_NAMED_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie|bearer", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]+(?:[ _-][a-z]+)*")
"""An ordinary word, or several: as an extra field it is a setting, such as `json_object`."""


class Secrets:
    """Replaces secrets in texts; its own `repr` shows none.

    A value of eight characters or more is replaced wherever it stands, except inside longer words
    if it is an ordinary word itself. A shorter one is replaced only where it stands as a value:
    after `Bearer`, `:` or `=`, or in quotes. A key such as "x" would otherwise star out "exist".
    """

    def __init__(self, values: Iterable[str]) -> None:
        found = {value for value in values if value and value != "EMPTY"}
        forms = {form for value in found for form in _forms(value)}
        self._anywhere = sorted((f for f in forms if _is_token(f)), key=len, reverse=True)
        self._bytes = [form.encode() for form in self._anywhere]
        bounded = sorted(forms.difference(self._anywhere), key=len, reverse=True)
        words = "|".join(re.escape(form) for form in bounded if len(form) >= _LONG)
        short = "|".join(re.escape(form) for form in bounded if len(form) < _LONG)
        self._as_word = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        self._as_value = (
            re.compile(rf"(Bearer\s+|[:=]\s{{0,8}}[\"'`]?|[\"'`])(?:{short})(?![\w-])")
            if short
            else None
        )

    def __repr__(self) -> str:
        return f"Secrets({_MARK})"

    def hide(self, text: str) -> str:
        """Replace the secrets in a text by `***`."""
        for secret in self._anywhere:
            text = text.replace(secret, _MARK)
        if self._as_word is not None:
            text = self._as_word.sub(_MARK, text)
        if self._as_value is not None:
            text = self._as_value.sub(rf"\1{_MARK}", text)
        return text

    def hide_in_reply(self, content: bytes) -> bytes:
        """Replace unmistakable secrets in a reply, which a server may repeat from the request."""
        for secret in self._bytes:
            if secret in content:
                content = content.replace(secret, _MARK.encode())
        return content


def _is_token(text: str) -> bool:
    return len(text) >= _LONG and not _WORDS.fullmatch(text)


def _forms(value: str) -> tuple[str, ...]:
    """Return a value as it stands in text, in JSON and in a URL."""
    return (value, json.dumps(value)[1:-1], quote(value, safe=""))


def header_values(headers: Mapping[str, str]) -> Iterator[str]:
    """Give what to hide of headers: each value, and the part behind a word such as `Bearer`."""
    for value in headers.values():
        yield value
        scheme, _, rest = value.partition(" ")
        if rest.strip():
            yield rest.strip()
        if scheme.lower() == "basic":
            with contextlib.suppress(binascii.Error, ValueError):
                decoded = base64.b64decode(rest, validate=True).decode()
                yield from (decoded, decoded.partition(":")[2])


def body_values(value: JsonValue | Mapping[str, JsonValue], name: str = "") -> Iterator[str]:
    """Give the texts in extra fields that may be secrets: by their name, or by their looks."""
    if isinstance(value, str):
        if _NAMED_SECRET.search(name) or _is_token(value):
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from body_values(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from body_values(inner, name)
