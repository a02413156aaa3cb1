r"""From a span of characters in a reply to the tokens that wrote it, by their bytes. Pure.

The list of tokens need not spell the text: servers leave the reasoning in it (SGLang #25055), add
the end-of-text token, and write a token that holds part of a character as `bytes:\\xe2\\x80` or as
U+FFFD. So tokens are laid against the text from its end, and from its beginning; a span is found
where either way reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_eval_integrations.judges.completion import Token

_ESCAPED = re.compile(r"(?:bytes:)?(?:\\x[0-9a-fA-F]{2})+")
_MOST_TRAILING = 2  # `<|im_end|>`, `</s>`


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span begins among the tokens."""

    index: int
    """Of the first token that holds a byte of the span."""
    rest: str
    """What that token writes from there on: some digits of the score, and perhaps more."""


def place_of(text: str, span: tuple[int, int], tokens: Sequence[Token]) -> Place | None:
    """Find the token in which a span begins; None where the tokens do not spell the text there."""
    written = text.encode("utf-8", "replace")
    start = len(text[: span[0]].encode("utf-8", "replace"))
    end = start + len(text[span[0] : span[1]].encode("utf-8", "replace"))
    pieces = [_bytes(token.text) for token in tokens]
    for trailing in range(_MOST_TRAILING + 1):
        found = _from_end(written, start, end, pieces[: len(pieces) - trailing])
        if found is not None:
            return found
    return _from_start(written, start, end, pieces)


def _bytes(text: str) -> bytes:
    if "\\x" in text and _ESCAPED.fullmatch(text):
        return bytes.fromhex(text.removeprefix("bytes:").replace("\\x", ""))
    return text.encode("utf-8", "replace")


def _from_end(written: bytes, start: int, end: int, pieces: Sequence[bytes]) -> Place | None:
    at = len(written)
    reached_end = False
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        begin = at - len(piece)
        # The first of the answer's tokens may begin in the reasoning before it.
        spelled = piece[-at:] if begin < 0 and at else piece
        if not spelled or written[max(begin, 0) : at] != spelled:
            if not piece:
                continue
            return None
        reached_end = reached_end or begin < end <= at
        if begin <= start:
            rest = written[start:at].decode("utf-8", "replace")
            return Place(index, rest) if reached_end else None
        at = begin
    return None


def _from_start(written: bytes, start: int, end: int, pieces: Sequence[bytes]) -> Place | None:
    at = 0
    found: Place | None = None
    for index, piece in enumerate(pieces):
        stop = at + len(piece)
        if written[at:stop] != piece:
            return None
        if found is None and piece and stop > start:
            found = Place(index, written[start:stop].decode("utf-8", "replace"))
        if found is not None and stop >= end:
            return found
        at = stop
    return None
