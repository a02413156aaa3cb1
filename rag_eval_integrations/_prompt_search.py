"""Find documents in the text of a prompt: as they are, cut, escaped, or changed."""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

_HEAD = 48  # characters at the start that tell a cut document from one that was left out
_TELLING = 8  # characters beyond a head that several documents share
_WORDY = 16  # characters from which a text is not part of a longer word by chance
_ESCAPABLE = re.compile(r"[^ -~]|[\"'\\&<>]")
_BY_SEARCHING = 20_000_000  # characters searched at most, before places are looked up
_SPACED = "\u2e80"  # from here on, scripts that put no space between words


class PromptPlace(NamedTuple):
    """The place of a document in a prompt."""

    start: int
    whole: bool
    """False for a document that is cut, changed or escaped, or that might be the question."""


Places = list[PromptPlace | None]
"""The place of each text; None for a text that was not found."""


def reached(
    texts: Sequence[str], prompt: str, question: str, earlier: Sequence[str] = ()
) -> Places:
    """Find each text in the prompt, whatever its whitespace.

    A place is given to one text only, longest first: a short document is not found inside a longer
    one, inside a word, inside the question, or inside an earlier turn of the conversation. A text
    that equals the question is found if the prompt holds the question twice. Empty texts are never
    found. 100 documents in 50 kB take about 1 ms, 4,000 in 250 kB at most 1 s: of many, the place
    where a text may begin is looked up, and equal ones go on where the last one was found.

    Args:
        texts: the documents' texts.
        prompt: the prompt.
        question: the user's question.
        earlier: texts of the earlier turns.

    Returns:
        One place per text, in order; None for a text that was not found.
    """
    others = (question, *earlier) if earlier else (question,)
    places = _in_order(texts, prompt, others) or _find(texts, prompt, others)
    # Normalising takes about 10 µs per kB of prompt, so it is done only if a text is not found as
    # it is: prompts nearly always hold documents verbatim.
    if all(place or not text for place, text in zip(places, texts, strict=True)):
        return places
    normal, normal_prompt = [_normal(text) for text in texts], _normal(prompt)
    asked = tuple(map(_normal, others))
    places = _find(normal, normal_prompt, asked, accept_heads=True)
    many = len(_ESCAPES) * places.count(None)
    searched = [_Prompt(each, many) for each in dict.fromkeys((prompt, _unfolded(prompt)))]
    known: dict[str, int | None] = {}
    for i, text in enumerate(texts):
        if places[i] is None:
            if text not in known:
                starts = (_escaped(text, each, others) for each in searched)
                known[text] = next((start for start in starts if start is not None), None)
            if (start := known[text]) is not None:
                places[i] = PromptPlace(start, whole=False)
    lost = {i: text for i, text in enumerate(normal) if text and places[i] is None}
    if lost:
        rest = Unclaimed(normal_prompt, _claimed_spans(normal, places, normal_prompt, asked))
        changed = any(place and not place.whole for place in places)
        placed = [text for text, place in zip(normal, places, strict=True) if place]
        for i, start in rest.traces(lost, placed, changed=changed).items():
            places[i] = PromptPlace(start, whole=False)
    return places


def _claimed_spans(
    texts: Sequence[str], places: Sequence[PromptPlace | None], prompt: str, others: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the spans of a prompt that hold the found texts, the question and earlier turns."""
    spans = []
    for text, place in zip(texts, places, strict=True):
        if place:
            length = len(text) if place.whole else _common_length(text, prompt, place.start)
            spans.append((place.start, place.start + length))
    quoted = _occurrences({shape for text in others for shape in _shapes(text)}, prompt)
    return [*spans, *zip(quoted.starts, quoted.ends, strict=True)]


def _common_length(text: str, prompt: str, start: int) -> int:
    """Count the characters that a text has in common with a place of the prompt."""
    length = min(len(text), len(prompt) - start)
    low = 0
    while low < length:  # O(log n) comparisons in C
        half = (low + length + 1) // 2
        if prompt.startswith(text[:half], start):
            low = half
        else:
            length = half - 1
    return low


def in_order(texts: Iterable[str], prompt: str, question: str) -> bool:
    """Return whether all texts are in the prompt one after the other, and none in the question.

    False as well for a text of fewer than 16 characters, for which `reached` has to decide.
    """
    return _in_order(texts, prompt, (question,)) is not None


def _in_order(texts: Iterable[str], prompt: str, others: Sequence[str]) -> Places | None:
    """Find the texts one after the other, the usual case; None where `_find` has to look closer.

    Ten times as fast as `_find`.
    """
    places: Places = []
    end = 0
    for text in texts:
        # A short text might be part of a word: `_find` looks closer.
        if len(text) < _WORDY or any(text in other for other in others):
            return None
        start = prompt.find(text, end)
        if start < 0:
            return None
        places.append(PromptPlace(start, whole=True))
        end = start + len(text)
    return places


def _normal(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


class _Taken:
    """Disjoint spans of the prompt, in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def end_of_clash(self, start: int, end: int) -> int | None:
        """Return the end of a span that overlaps [start, end); None when it is free."""
        position = bisect_right(self.starts, start)
        if position and self.ends[position - 1] > start:
            return self.ends[position - 1]
        if position < len(self.starts) and self.starts[position] < end:
            return self.ends[position]
        return None

    def take(self, start: int, end: int) -> None:
        """Note a span of the prompt as taken."""
        position = bisect_right(self.starts, start)
        self.starts.insert(position, start)
        self.ends.insert(position, end)


class _Prompt:
    """A prompt in which many texts are looked for.

    Args:
        text: the prompt.
        many: how many texts will be looked for.
    """

    def __init__(self, text: str, many: int) -> None:
        self.text = text
        self._begins: dict[str, int] | None = None
        """What `_WORDY` characters begin first where; None where searching costs less."""
        if many * len(text) > _BY_SEARCHING:
            places = range(len(text) - _WORDY, -1, -1)
            self._begins = {text[i : i + _WORDY]: i for i in places}

    def find(self, text: str, begin: int = 0) -> int:
        """Find a text as `str.find` does; by an index of the words' beginnings in a long prompt."""
        if self._begins is not None and len(text) >= _WORDY:
            first = self._begins.get(text[:_WORDY])
            if first is None or text[-_WORDY:] not in self._begins:
                return -1
            begin = max(begin, first)
        return self.text.find(text, begin)


def _free_place(text: str, prompt: _Prompt, taken: Sequence[_Taken], begin: int = 0) -> int | None:
    """Find a text in a prompt, at the first place that is not taken and not inside a word.

    None if there is no such place.
    """
    start = prompt.find(text, begin)
    while start >= 0:
        end = start + len(text)
        clashes = [spans.end_of_clash(start, end) for spans in taken]
        ends = [clash for clash in clashes if clash is not None]
        if not ends and not _inside_a_word(text, prompt.text, start, end):
            return start
        start = prompt.find(text, max(ends, default=start + 1))
    return None


def _inside_a_word(text: str, prompt: str, start: int, end: int) -> bool:
    """Return whether a short text's place is part of a word, as "art" in "start"."""
    return len(text) < _WORDY and (
        (start > 0 and _in_one_word(prompt[start - 1], text[0]))
        or (end < len(prompt) and _in_one_word(text[-1], prompt[end]))
    )


def _in_one_word(left: str, right: str) -> bool:
    """Tell whether two characters that touch belong to one word."""
    return left.isalnum() and right.isalnum() and max(left, right) < _SPACED


def _occurrences(texts: Iterable[str], prompt: str) -> _Taken:
    """Find every place of the texts in the prompt; overlaps go to the longer text."""
    spans = _Taken()
    for text in sorted(texts, key=len, reverse=True):
        start = prompt.find(text) if text else -1
        while start >= 0:
            end = start + len(text)
            if spans.end_of_clash(start, end) is None:
                spans.take(start, end)
            start = prompt.find(text, end)
    return spans


def _find(
    texts: Sequence[str], prompt: str, others: Sequence[str], *, accept_heads: bool = False
) -> Places:
    """Find each text in the prompt, the longest first, without overlaps; None for one not there.

    A text that the question holds has to stand outside of the question, too. With `accept_heads`,
    texts may be cut, or stand without their headers.
    """
    places: Places = [None] * len(texts)
    taken = _Taken()
    searched = _Prompt(prompt, len(texts))
    quoted: dict[tuple[str, ...], _Taken] = {}
    # Where to go on for a text that is there again: what was not free before never will be.
    after: dict[str, int | None] = {}
    asked_at: int | None = 0
    longest_first = sorted((i for i in range(len(texts)) if texts[i]), key=lambda i: -len(texts[i]))
    for i in longest_first:
        text = texts[i]
        # A text that is part of the question must be in the prompt outside of the question too.
        begin = after.get(text, 0)
        containing = tuple(other for other in others if text in other)
        if containing and containing not in quoted:
            quoted[containing] = _occurrences(containing, prompt)
        blocked = (taken, quoted[containing]) if containing else (taken,)
        start = None if begin is None else _free_place(text, searched, blocked, begin)
        whole = start is not None
        after[text] = None if start is None else start + len(text)
        if start is None and text == others[0] and asked_at is not None:
            # An entry of a FAQ: if the prompt holds it twice, one is likely to be the document.
            start = _free_place(text, searched, (taken,), asked_at)
            if start is not None and _free_place(text, searched, (), start + len(text)) is None:
                start = None
            asked_at = None if start is None else start + len(text)
        if start is not None:
            taken.take(start, start + len(text))
            places[i] = PromptPlace(start, whole)
    if accept_heads and any(len(texts[i]) > _HEAD and places[i] is None for i in longest_first):
        _find_cut(texts, searched, others, places, taken)
        if None in places:  # the prompt may show a header once, or not at all
            _find_cut(_behind_headers(texts), searched, others, places, taken)
    return places


def _find_cut(
    texts: Sequence[str],
    searched: _Prompt,
    others: Sequence[str],
    places: Places,
    taken: _Taken,
) -> None:
    """Find the texts of which the prompt holds only the beginning, and add their places.

    Of texts that begin alike, the one that agrees with the prompt the longest has the place. A
    beginning that several texts share (a title, a header) tells nothing by itself: the prompt has
    to agree with a text further than any other text does.
    """
    prompt = searched.text
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        if len(text) > _HEAD:
            alike.setdefault(text[:_HEAD], []).append(i)
    for head, numbers in alike.items():
        if all(places[i] for i in numbers):
            continue
        numbers.sort(key=lambda i: texts[i])
        shared = _shared_lengths(texts[i] for i in numbers)
        enough = {i: max(_HEAD, min(shared[texts[i]] + _TELLING, len(texts[i]))) for i in numbers}
        lost = [i for i in numbers if places[i] is None]
        containing = [other for other in others if head in other]
        blocked = (taken, _occurrences(containing, prompt)) if containing else (taken,)
        begin = 0
        while lost and (start := searched.find(head, begin)) >= 0:
            begin = start + 1
            if any(spans.end_of_clash(start, start + _HEAD) is not None for spans in blocked):
                continue
            longest = max(len(texts[i]) for i in lost)
            # Texts that agree with the prompt the longest are next to it in alphabetical order.
            near = bisect_left(lost, prompt[start : start + longest], key=lambda i: texts[i])
            beside = lost[max(0, near - 1) : near + 1]
            agree, best = max((_common_length(texts[i], prompt, start), i) for i in beside)
            if agree >= enough[best]:
                taken.take(start, start + _HEAD)
                places[best] = PromptPlace(start, whole=False)
                lost.remove(best)


def _shared_lengths(texts: Iterable[str]) -> dict[str, int]:
    """Return for each text the length of the beginning that another one has; -1 if alone."""
    distinct = sorted(set(texts))
    same = [_common_length(text, other, 0) for text, other in pairwise(distinct)]
    return dict(zip(distinct, map(max, [-1, *same], [*same, -1]), strict=True))


def _behind_headers(texts: Sequence[str]) -> list[str]:
    """Return each text without the words that other texts begin with, too."""
    shared = _shared_lengths(texts)
    return [text[text.rfind(" ", 0, max(shared[text], 0)) + 1 or len(text) :] for text in texts]


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    html.escape,
    lambda text: html.escape(text, quote=False),
    lambda text: repr(text)[1:-1],
)


def _shapes(text: str) -> Iterable[str]:
    """Return a text as it is, and as JSON, HTML and Python literals write it."""
    return [text] if _ESCAPABLE.search(text) is None else [text, *(e(text) for e in _ESCAPES)]


_FOLD = re.compile(r"\\\n *(?:\\(?= ))?")
_HEX = re.compile(r"\\[xu]([0-9A-F]{2,4})")


def _unfolded(prompt: str) -> str:
    """Return a prompt in which YAML's quoted texts are in one line and written as JSON's."""
    return _HEX.sub(lambda code: f"\\u{code[1].lower():0>4}", _FOLD.sub("", prompt))


def is_begun(text: str, prompt: str) -> bool:
    """Return whether a prompt holds the beginning of a text, as it is or escaped."""
    return any(shape in prompt for shape in _shapes(text[:_HEAD]))


def _escaped(text: str, prompt: _Prompt, others: Sequence[str]) -> int | None:
    """Find where a text starts as JSON, HTML or Python literals write it; None if it is not there.

    None as well for a text that all of them write as it is. A place inside one of the `others`,
    written in the same way, does not count.
    """
    if _ESCAPABLE.search(text) is None:
        return None  # all of them write it as it is
    containing = [other for other in others if text in other]
    for escape in _ESCAPES:
        shape = escape(text)
        if shape != text and prompt.find(shape) >= 0:
            quoted = _occurrences(map(escape, containing), prompt.text)
            if (start := _free_place(shape, prompt, (quoted,))) is not None:
                return start
    return None


# --- What a prompt writes in front of a text from its metadata


_HEADER_LINES = 3
_HEADER_CHARACTERS = 300
_TELLING_VALUE = 4  # characters from which a value tells by itself where a text comes from
_AHEAD = re.compile(r"\n[^\w\n]*\n|\n[^\n]*\Z")  # from here on nothing is of the text before
_BETWEEN = " \t:=\"'([#*|>"  # a name and its value

Mark = tuple[str, str]
"""Name and value of an entry of metadata, in lower case."""


def headers(
    texts: Sequence[str],
    metadata: Sequence[Mapping[str, object]],
    messages: Iterable[str],
    others: Sequence[str],
) -> dict[int, str]:
    """Return what a prompt says of texts' metadata right in front of them.

    It begins with the first of the three lines in front that has a value which tells by itself, or
    an entry's name and value. It has at most 300 characters and ends where another text does. A
    line that says more of the text before it is that one's.

    Args:
        texts: the documents' texts.
        metadata: the documents' metadata.
        messages: the messages of the prompt.
        others: the question and the earlier turns.

    Returns:
        Number of a text → its header, for those that have one.
    """
    marks = [_marks_of(each) for each in metadata]
    in_front: dict[int, str] = {}
    for message in messages if any(marks) else ():
        spans = []
        behind = 0
        for i, text in enumerate(texts):
            text = text.strip()
            start = message.find(text, behind)
            start = message.find(text) if start < 0 < behind else start
            if start >= 0 and len(text) >= _WORDY:
                behind = start + len(text)
                spans.append((start, behind, i))
        if spans:
            quoted = _occurrences(others, message)
            spans += [(*span, -1) for span in zip(quoted.starts, quoted.ends, strict=True)]
        claimed, before = 0, -1
        for start, end, i in sorted(spans):
            space = message[max(claimed, start - _HEADER_CHARACTERS) : start]
            if i >= 0 and marks[i] and not space.isspace():
                header = _header_before(space, marks[i], marks[before] if before >= 0 else ())
                if header:
                    in_front.setdefault(i, header)
            claimed, before = max(claimed, end), i
    return in_front


def _marks_of(metadata: Mapping[str, object]) -> list[Mark]:
    """Return metadata entries that are a text or number; a path's last part is one more."""
    marks = []
    for key, value in metadata.items():
        mark = str(value).strip().lower() if type(value) in (str, int, float) else ""
        if mark:
            marks.append((key.lower().replace("_", " "), mark))
        if last := mark.rpartition("/")[2] if "/" in mark else "":
            marks.append(("", last))
    return marks


def _header_before(space: str, own: Sequence[Mark], other: Sequence[Mark]) -> str | None:
    """Return the lines in front of a text, from the first that has its metadata."""
    whole = space.lower()
    if not any([value in whole for _, value in own]):  # the usual case
        return None
    lines = [line for line in space.splitlines() if line.strip()][-_HEADER_LINES:]
    footer = _AHEAD.split(space, maxsplit=1)[0].splitlines()
    for n, line in enumerate(lines):
        entry = _from_metadata(line, own)
        low = entry.lower()
        says = sum(_has_mark(low, *mark) for mark in own)
        theirs = sum(_has_mark(low, *mark) for mark in other)
        if says and says + (entry not in footer) > theirs:
            return "\n".join([entry, *lines[n + 1 :]]).strip()
    return None


def _from_metadata(line: str, own: Sequence[Mark]) -> str:
    """Cut a line to the JSON object or dict that holds a text's metadata."""
    low = line.lower()
    places = [low.find(value) for _, value in own if len(value) >= _TELLING_VALUE]
    begin = line.rfind("{", 0, min([place for place in places if place >= 0], default=0))
    return line[begin:] if begin > 0 and ('"' in line[:begin] or "'" in line[:begin]) else line


def _has_mark(line: str, name: str, value: str) -> bool:
    """Tell whether a line has an entry's name and value, or a value that is telling alone."""
    if len(value) >= _TELLING_VALUE and not value.replace(".", "").isdigit() and value in line:
        return True
    start = line.replace("_", " ").find(name) if name else -1
    rest = line[start + len(name) :].lstrip(_BETWEEN) if start >= 0 else ""
    return rest.startswith(value) and not rest[len(value) :][:1].isalnum()


# --- Texts of which a prompt holds pieces: cut, reworded, without markup, or in other case


_PIECE = 24  # letters and digits per piece
_ENOUGH = 2  # pieces that have to be found; one for a text with fewer than 4 pieces
_FEW = 4  # letters; a shorter text is not looked for
_GONE = "\0"
_TAG = re.compile(r"<[^<>]{1,100}>")
_NO_LETTERS = re.compile(r"[\W_]+")
_MOST_PIECES = 2_000  # looked for at once; of more, only every n-th: 5 ms at most
_DROPPED = {code: None for code in range(128) if not chr(code).isalnum()}  # as `_NO_LETTERS`
_PIECES_BY_SEARCHING = 4_000_000  # characters searched at most before pieces are looked up in a set


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
        """Find texts of which the unclaimed parts hold only pieces.

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
        others = [_pieces(_letters(text), every) for text in known]
        pieces = _own_pieces(letters, every_piece, others)
        there = self._present([*pieces.values(), *every_piece.values()])
        share: dict[int, float] = {}
        for number, some in pieces.items():
            if some:
                share[number] = sum(piece in there for piece in some) / len(some)
        begins: dict[int, int] = {}
        likeliest = sorted(share, key=lambda i: (len(pieces[i][0]) < _PIECE, -share[i]))
        for number in likeliest:
            some = pieces[number]
            short = len(some[0]) < _PIECE
            here = [piece for piece in some if piece in there and piece in self._letters]
            enough = _ENOUGH if len(some) >= _ENOUGH * 2 else 1
            if len(here) >= enough and (changed or not short):
                begins[number] = self._take(here, every_piece[number])
                changed = True
        return begins

    def _present(self, all_pieces: Iterable[list[str]]) -> set[str]:
        """Return the pieces that the unclaimed parts hold."""
        pieces = {piece for some in all_pieces for piece in some}
        letters = self._letters
        if len(pieces) * len(letters) > _PIECES_BY_SEARCHING:
            known = {letters[i : i + _PIECE] for i in range(len(letters) - _PIECE + 1)}
            whole = {piece for piece in pieces if len(piece) == _PIECE}
            return whole & known | {piece for piece in pieces - whole if piece in letters}
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
    """Cut letters into pieces and keep every n-th, for n = `every`; few letters are one piece."""
    if _FEW <= len(letters) < _PIECE:
        return [letters]
    starts = range(0, len(letters) - _PIECE + 1, _PIECE * every)
    return list(dict.fromkeys([letters[i : i + _PIECE] for i in starts]))


def _own_pieces(
    letters: Mapping[int, str],
    pieces: Mapping[int, list[str]],
    others: Iterable[Iterable[str]],
) -> dict[int, list[str]]:
    """Return the pieces that only one text has: a common title tells nothing by itself.

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
