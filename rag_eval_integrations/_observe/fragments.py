"""Which texts a prompt holds in pieces: tags or markup taken out, other case, shortened, reworded.

Letters and digits alone are compared, in pieces of 24. Two pieces of a document are as good a sign
as the 48 characters by which a cut document is known; a piece that stands in the part of the prompt
which another document, the question or an earlier turn takes up is none.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from unicodedata import normalize

_PIECE = 24  # letters and digits
_ENOUGH = 2  # pieces; of a text with fewer than 4, one
_FEW = 4  # of a shorter text, nothing is to be told
_GONE = "\0"
_TAG = re.compile(r"<[^<>]{1,100}>")
_NO_LETTERS = re.compile(r"[\W_]+")
_MOST_PIECES = 2_000  # looked for at once; of more, every second, third … is: 5 ms at most
_DROPPED = {code: None for code in range(128) if not chr(code).isalnum()}  # as `_NO_LETTERS`
_BY_SEARCHING = 4_000_000  # characters gone through at most before pieces are looked up instead


class Rest:
    """What of a prompt is not yet accounted for."""

    def __init__(self, prompt: str, taken: Iterable[tuple[int, int]]) -> None:
        """Leave out the spans that are `taken`."""
        self._offsets: list[int] = []
        """Of every part in the prompt."""
        self._starts: list[int] = []
        """Of every part among the letters."""
        parts: list[str] = []
        at = length = 0
        for start, end in (*sorted(taken), (len(prompt), len(prompt))):
            if start > at:
                self._offsets.append(at)
                self._starts.append(length)
                parts.append(_letters(prompt[at:start]))
                length += len(parts[-1]) + 1
            at = max(at, end)
        self._letters = _GONE.join(parts)

    def traces(self, texts: Mapping[int, str], *, changed: bool) -> dict[int, int]:
        """Where the texts begin of which pieces are there, by their numbers.

        A piece counts for one text only: for the one of which most is there. Short texts, of which
        a few letters may stand anywhere, count where texts are known to have been `changed`.
        """
        letters = {number: _letters(text) for number, text in texts.items()}
        every = 1 + sum(map(len, letters.values())) // (_PIECE * _MOST_PIECES)
        pieces = {number: _pieces(text, every) for number, text in letters.items()}
        there = self._lookup(pieces.values())
        share = {
            number: sum(piece in there for piece in some) / len(some)
            for number, some in pieces.items()
            if some
        }
        found: dict[int, int] = {}
        for number in sorted(share, key=lambda one: (len(pieces[one][0]) < _PIECE, -share[one])):
            some = pieces[number]
            short = len(some[0]) < _PIECE
            here = [piece for piece in some if piece in there and piece in self._letters]
            enough = _ENOUGH if len(some) >= _ENOUGH * 2 else 1
            if len(here) >= enough and (changed or not short):
                found[number] = self._take(here)
                changed = True
        return found

    def _lookup(self, all_pieces: Iterable[list[str]]) -> set[str]:
        """The pieces that are there."""
        pieces = {piece for some in all_pieces for piece in some}
        letters = self._letters
        if len(pieces) * len(letters) > _BY_SEARCHING:
            known = {letters[i : i + _PIECE] for i in range(len(letters) - _PIECE + 1)}
            return {
                one for one in pieces if (one in known if len(one) == _PIECE else one in letters)
            }
        return {piece for piece in pieces if piece in letters}

    def _take(self, pieces: list[str]) -> int:
        at = min(self._letters.index(piece) for piece in pieces)
        for piece in pieces:
            self._letters = self._letters.replace(piece, _GONE * len(piece), 1)
        part = bisect_right(self._starts, at) - 1
        return self._offsets[part] + at - self._starts[part]


def _letters(text: str) -> str:
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        return text.lower().translate(_DROPPED)
    return _NO_LETTERS.sub("", normalize("NFKC", text).casefold())


def _pieces(letters: str, every: int) -> list[str]:
    """Cut letters into pieces and take every so-manieth of them."""
    if _FEW <= len(letters) < _PIECE:
        return [letters]
    starts = range(0, len(letters) - _PIECE + 1, _PIECE * every)
    return list(dict.fromkeys([letters[i : i + _PIECE] for i in starts]))
