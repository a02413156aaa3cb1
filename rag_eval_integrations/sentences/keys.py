"""Keys of sentences: documents numbered from 0, sentences lettered like spreadsheet columns.

`0a … 0z 0aa 0ab …`, `1a …`; response sentences `a … z aa …` (RAGBench's scheme: 23,267 of 23,267
documents follow it).
"""

from __future__ import annotations

import re

_DOCUMENT_KEY = re.compile(r"(\d+)([a-z]+)")


def letters(index: int) -> str:
    """Letters of the sentence at `index` (from 0): a … z aa ab … zz aaa.

    Raises:
        ValueError: for a negative index.
    """
    if index < 0:
        raise ValueError(f"`index` = {index}: counts from 0")
    text = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def position(text: str) -> int:
    """Index (from 0) of a sentence's letters; the inverse of `letters`.

    Raises:
        ValueError: when `text` is not one or more of the letters a to z.
    """
    if not text or not all("a" <= letter <= "z" for letter in text):
        raise ValueError(f"{text!r} is not made of the letters a to z")
    index = 0
    for letter in text:
        index = index * 26 + ord(letter) - ord("a") + 1
    return index - 1


def document_number(key: str) -> int | None:
    """Number of the document that a key belongs to; None for a response key or no key at all."""
    match = _DOCUMENT_KEY.fullmatch(key)
    return int(match[1]) if match else None
