"""What changed between two texts, word by word, and between two lists of retrieved documents.

Sentences are aligned first, and only sentences that changed are compared word by word. White space
is shown as it is and never counts as a change. `difflib` has no bound on its time: texts are cut,
and what could be aligned in too many ways is shown as replaced as a whole.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sentences import document_number

MOST_CHARACTERS = 20_000
"""Characters of a text that are compared and shown."""
_MOST_TOKENS = 1_000
_MOST_MATCHES = 20_000
"""Pairs of equal tokens in two texts: `difflib` goes through all of them, perhaps many times."""
_MOST_DOCUMENTS = 200

_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]*[.!?\u3002\uff01\uff1f\n]*\s*")
_WORD = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")

Kind = Literal["same", "gone", "added"]


class Piece(NamedTuple):
    """A part of a text that both texts have, or only the first (`gone`), or only the second."""

    kind: Kind
    text: str


def word_diff(before: str, after: str) -> list[Piece]:
    """Compare two texts word by word, in time that is bounded whatever they hold.

    Args:
        before: the first text; compared up to `MOST_CHARACTERS`.
        after: the second text, likewise.

    Returns:
        Pieces in order. Those that are not `added` make up the first text as far as it is compared,
        up to white space; those that are not `gone` make up the second exactly.
    """
    old = _SENTENCE.findall(before[:MOST_CHARACTERS])
    new = _SENTENCE.findall(after[:MOST_CHARACTERS])
    pieces: list[Piece] = []
    for gone, added, same in _aligned(old, new):
        if same:
            pieces.append(Piece("same", "".join(added)))
            continue
        words = _aligned(_WORD.findall("".join(gone)), _WORD.findall("".join(added)))
        for lost, present, kept in words:
            if kept:
                pieces.append(Piece("same", "".join(present)))
                continue
            pieces.append(Piece("gone", "".join(lost)))
            pieces.append(Piece("added", "".join(present)))
    return list(_joined(pieces))


def _aligned(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[Sequence[str], Sequence[str], bool]]:
    """Yield stretches of two lists, and whether they are equal up to white space."""
    a, b = [token.strip() for token in old], [token.strip() for token in new]
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    yield old[:start], new[:start], True
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    if _few(a, b):
        for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            yield old[start + i : start + j], new[start + k : start + m], kind == "equal"
    else:
        yield old[start : start + len(a)], new[start : start + len(b)], False
    yield old[len(old) - end :], new[len(new) - end :], True


def _few(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two texts have few enough words, and pairs of equal ones, for a word diff."""
    if len(a) > _MOST_TOKENS or len(b) > _MOST_TOKENS:
        return False
    counts = Counter(b)
    return sum(counts[token] for token in a) <= _MOST_MATCHES


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Join neighbours: white space between two changes belongs to them, and gone stands first."""
    gone = added = ""
    same = ""
    for piece in pieces:
        if piece.kind == "same" and piece.text.strip():
            if gone or added:
                yield from _changed(gone, added)
                gone = added = ""
            same += piece.text
            continue
        if piece.kind == "same":
            if gone or added:
                gone, added = gone + piece.text if gone else gone, added + piece.text
            else:
                same += piece.text
            continue
        if not piece.text:
            continue
        if same:
            yield Piece("same", same)
            same = ""
        if piece.kind == "gone":
            gone += piece.text
        else:
            added += piece.text
    yield from _changed(gone, added)
    if same:
        yield Piece("same", same)


def _changed(gone: str, added: str) -> Iterator[Piece]:
    """Yield the pieces of a replacement."""
    if gone:
        yield Piece("gone", gone)
    if added:
        yield Piece("added", added)


# --- Retrieved documents


DocumentKind = Literal["gone", "added", "edited", "moved", "same"]


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One retrieved document in two runs of a call."""

    kind: DocumentKind
    """`edited`: another text under the same id; `moved`: another place."""
    id: str | None
    before: str | None
    """Its text in the first run; None where it was not retrieved."""
    after: str | None
    number_before: int | None
    """From 0, as in keys."""
    number_after: int | None


def document_changes(before: Evaluation, after: Evaluation) -> list[DocumentChange]:
    """Match the documents of a call in two runs: by id where ids are unique, else by text.

    Returns:
        The second run's documents in their order, then those that are gone.
    """
    old, new = _documents(before), _documents(after)
    by_id = _unique_ids(old) and _unique_ids(new)
    places: dict[str, list[int]] = defaultdict(list)
    for place, (name, text) in enumerate(old):
        places[str(name) if by_id else text].append(place)
    changes = []
    left = set(range(len(old)))
    for place, (name, text) in enumerate(new):
        same = places.get(str(name) if by_id else text)
        if not same:
            changes.append(DocumentChange("added", name, None, text, None, place))
            continue
        was = same.pop(0)
        left.remove(was)
        text_before = old[was][1]
        kind: DocumentKind = "same" if was == place else "moved"
        kind = kind if _words(text_before) == _words(text) else "edited"
        changes.append(DocumentChange(kind, name, text_before, text, was, place))
    for was in sorted(left):
        name, text = old[was]
        changes.append(DocumentChange("gone", name, text, None, was, None))
    return changes


def _words(text: str) -> str:
    return " ".join(text.split())


def _documents(evaluation: Evaluation) -> list[tuple[str | None, str]]:
    """List ids and texts, of which an evaluation keeps the sentences."""
    size = min(len(evaluation.document_ids), _MOST_DOCUMENTS)
    sentences: dict[int, list[str]] = {number: [] for number in range(size)}
    for sentence in evaluation.sentences.documents:
        number = document_number(sentence.key)
        if number is not None and number < _MOST_DOCUMENTS:
            sentences.setdefault(number, []).append(sentence.text)
    names = dict(enumerate(evaluation.document_ids))
    return [(names.get(number), " ".join(sentences[number])) for number in sorted(sentences)]


def _unique_ids(documents: Sequence[tuple[str | None, str]]) -> bool:
    """Tell whether all documents have ids, and different ones."""
    names = [name for name, _ in documents]
    return None not in names and len(set(names)) == len(names)
