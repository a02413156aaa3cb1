"""The values of a user's settings that no message, record or `repr` may show."""

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
_SECRET_NAME = re.compile(r"(?i)key(?!w)|token(?!iz)|secret|passw|auth(?!or(?!i))|credent|cookie")
"""Not the words keyword, tokenizer and author, whose values stand in answers."""
_WORDS = re.compile(r"[a-z]+(?:[ _-][a-z]+)*")
"""An ordinary word, or several: as an extra field it is a setting, such as `json_object`."""


class Secrets:
    """Replaces secrets in texts; its own `repr` shows none.

    A value of eight characters or more is replaced wherever it stands, except inside longer words
    if it is an ordinary word itself. A shorter one is replaced only where it stands as a value:
    after `Bearer`, `:` or `=`, or in quotes. A key such as "x" would otherwise star out "exist".

    Args:
        values: keys, passwords and tokens.
        settings: values that may be secrets, but may also be the name of a model or a page. They
            are hidden in errors, and left in answers.
    """

    def __init__(self, values: Iterable[str], settings: Iterable[str] = ()) -> None:
        secret = _forms(values)
        every = secret | _forms(value for value in settings if _is_token(value))
        self._anywhere = sorted(filter(_is_token, every), key=len, reverse=True)
        self._bytes = [form.encode() for form in self._anywhere if form in secret]
        bounded = sorted(secret.difference(self._anywhere), key=len, reverse=True)
        words = "|".join(re.escape(form) for form in bounded if len(form) >= _LONG)
        short = "|".join(re.escape(form) for form in bounded if len(form) < _LONG)
        self._as_word = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        self._as_value = (
            re.compile(rf"(Bearer\s{{1,8}}|[:=]\s{{0,8}}[\"'`]?|[\"'`])(?:{short})(?![\w-])")
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
        """Replace unmistakable secrets in a reply, which a server may repeat from the request.

        These are `values`, not `settings`, of eight characters or more that are not ordinary words.
        """
        for secret in self._bytes:
            if secret in content:
                content = content.replace(secret, _MARK.encode())
        return content


def _is_token(text: str) -> bool:
    """Whether a text has 8 characters or more and is not made of ordinary words, as keys are."""
    return len(text) >= _LONG and not _WORDS.fullmatch(text)


def _forms(values: Iterable[str]) -> set[str]:
    """Return secrets as they are spelled in text, in JSON and in URLs.

    Empty values and `EMPTY`, the key of servers without one, are left out.
    """
    known = {value for value in values if value and value != "EMPTY"}
    return {f for v in known for f in (v, json.dumps(v)[1:-1], quote(v, safe=""))}


def secrets_in_settings(
    values: Iterable[str],
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, JsonValue] | None = None,
) -> Secrets:
    """Collect the secrets in a model's settings.

    A text whose field name tells a secret, such as one with `key` or `token`, is hidden everywhere;
    other settings only in errors, and only if they look like a key.

    Args:
        values: keys, passwords and tokens.
        headers: of every request; a name such as `Authorization` tells a secret.
        query: of the URL.
        body: extra fields of the request.
    """
    fields = [*_named_texts(body or {}), *_named_texts({**(query or {})})]
    for name, value in (headers or {}).items():
        fields += [(name, part) for part in _header_parts(value)]
    secret = [value for name, value in fields if _SECRET_NAME.search(name)]
    return Secrets([*values, *secret], [value for _, value in fields])


def _named_texts(
    value: JsonValue | Mapping[str, JsonValue], name: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield each text with the names of the fields that hold it, at any depth.

    Numbers, booleans and nulls are left out.
    """
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_texts(inner, f"{name} {key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _named_texts(inner, name)


def _header_parts(header: str) -> Iterator[str]:
    """Yield a header's value, its part after a word such as `Bearer`, and a Basic password."""
    yield header
    scheme, _, rest = header.partition(" ")
    if rest.strip():
        yield rest.strip()
    if scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error, ValueError):
            decoded = base64.b64decode(rest, validate=True).decode()
            yield from (decoded, decoded.partition(":")[2])
