"""Find texts of which a prompt holds pieces: cut, reworded, without markup, or in other case."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import normalize

_PIECE = 24  # letters and digits per piece
_ENOUGH = 2  # pieces that have to be found; one for a text with fewer than 4 pieces
_FEW = 4  # letters; a shorter text is not looked for
_GONE = "\0"
_TAG = re.compile(r"<[^<>]{1,100}>")
_NO_LETTERS = re.compile(r"[\W_]+")
_MOST_PIECES = 2_000  # looked for at once; of more, only every n-th: 5 ms at most
_DROPPED = {code: None for code in range(128) if not chr(code).isalnum()}  # as `_NO_LETTERS`
_BY_SEARCHING = 4_000_000  # characters searched at most before pieces are looked up in a set


class Unclaimed:
    """The parts of a prompt that no text has claimed yet.

    Args:
        prompt: the prompt.
        taken: spans `(start, end)` that are already claimed.
    """

    def __init__(self, prompt: str, taken: Iterable[tuple[int, int]]) -> None:
        self._offsets: list[int] = []
        """Offset of every part in the prompt."""
        self._starts: list[int] = []
        """Offset of every part in `_letters`."""
        parts: list[str] = []
        begin = length = 0
        for start, end in (*sorted(taken), (len(prompt), len(prompt))):
            if start > begin:
                self._offsets.append(begin)
                self._starts.append(length)
                parts.append(_letters(prompt[begin:start]))
                length += len(parts[-1]) + 1
            begin = max(begin, end)
        self._letters = _GONE.join(parts)

    def traces(
        self, texts: Mapping[int, str], known: Sequence[str] = (), *, changed: bool
    ) -> dict[int, int]:
        """Find the texts of which pieces are in the rest.

        A piece counts for one text only: the one with the largest share of its pieces found. A
        piece that several texts have, such as a common title, counts for none that has others.

        Args:
            texts: the texts, by number.
            known: the texts that have been found.
            changed: whether the prompt is known to hold changed texts. Only then are texts of a
                single piece looked for, since a few letters may occur anywhere.

        Returns:
            Number of the text → offset in the prompt where it begins.
        """
        letters = {number: _letters(text) for number, text in texts.items()}
        every = 1 + sum(map(len, letters.values())) // (_PIECE * _MOST_PIECES)
        every_piece = {number: _pieces(text, every) for number, text in letters.items()}
        pieces = _own(letters, every_piece, [_pieces(_letters(text), every) for text in known])
        there = self._lookup([*pieces.values(), *every_piece.values()])
        share = {
            number: sum(piece in there for piece in some) / len(some)
            for number, some in pieces.items()
            if some
        }
        begins: dict[int, int] = {}
        for number in sorted(
            share, key=lambda number: (len(pieces[number][0]) < _PIECE, -share[number])
        ):
            some = pieces[number]
            short = len(some[0]) < _PIECE
            here = [piece for piece in some if piece in there and piece in self._letters]
            enough = _ENOUGH if len(some) >= _ENOUGH * 2 else 1
            if len(here) >= enough and (changed or not short):
                begins[number] = self._take(here, every_piece[number])
                changed = True
        return begins

    def _lookup(self, all_pieces: Iterable[list[str]]) -> set[str]:
        """Return the pieces that are in the rest."""
        pieces = {piece for some in all_pieces for piece in some}
        letters = self._letters
        if len(pieces) * len(letters) > _BY_SEARCHING:
            known = {letters[i : i + _PIECE] for i in range(len(letters) - _PIECE + 1)}
            return {
                piece
                for piece in pieces
                if (piece in known if len(piece) == _PIECE else piece in letters)
            }
        return {piece for piece in pieces if piece in letters}

    def _take(self, here: list[str], pieces: list[str]) -> int:
        """Claim the pieces of a text; return where those that tell it begin in the prompt."""
        start = min(self._letters.index(piece) for piece in here)
        for piece in dict.fromkeys([*here, *pieces]):
            self._letters = self._letters.replace(piece, _GONE * len(piece), 1)
        part = bisect_right(self._starts, start) - 1
        return self._offsets[part] + start - self._starts[part]


def _letters(text: str) -> str:
    """Return the letters and digits of a text without markup, in lower case."""
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        return text.lower().translate(_DROPPED)
    return _NO_LETTERS.sub("", normalize("NFKC", text).casefold())


def _pieces(letters: str, every: int) -> list[str]:
    """Cut letters into pieces and keep every n-th, for n = `every`."""
    if _FEW <= len(letters) < _PIECE:
        return [letters]
    starts = range(0, len(letters) - _PIECE + 1, _PIECE * every)
    return list(dict.fromkeys([letters[i : i + _PIECE] for i in starts]))


def _own(
    letters: Mapping[int, str],
    pieces: Mapping[int, list[str]],
    others: Iterable[Iterable[str]],
) -> dict[int, list[str]]:
    """Leave out the pieces that several texts have: a common title tells nothing by itself.

    A text that has no other pieces keeps them if it is part of another text, else has its end.
    """
    times = Counter(piece for some in (*pieces.values(), *others) for piece in some)
    if len(times) == sum(times.values()):
        return dict(pieces)
    own: dict[int, list[str]] = {}
    for number, some in pieces.items():
        own[number] = [piece for piece in some if times[piece] == 1]
        if some and not own[number]:  # a short text behind a title, or a part of another text
            end = letters[number][-_PIECE:]
            part = any(letters[number] in text for i, text in letters.items() if i != number)
            own[number] = some if part else [end] if end not in times else []
    return own
