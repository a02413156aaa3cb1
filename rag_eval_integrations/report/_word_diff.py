"""What changed between two texts, word by word, and between two lists of retrieved documents.

Sentences are aligned first, and only sentences that changed are compared word by word. White space
is shown as it is and never counts as a change. `difflib` has no bound on its time: texts are cut,
and what could be aligned in too many ways is shown as replaced as a whole.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
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
_CHANGES: tuple[Kind, Kind] = ("gone", "added")


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
        words: Iterable[tuple[str, str, bool]] = [(gone, added, True)]
        if not same:
            words = _aligned(_WORD.findall(gone), _WORD.findall(added))
        for lost, present, kept in words:
            if not kept:
                pieces.append(Piece("gone", lost))
            pieces.append(Piece("same" if kept else "added", present))
    return list(_joined(pieces))


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield stretches of two lists as texts, and whether they are equal up to white space."""
    a, b = [token.strip() for token in old], [token.strip() for token in new]
    start = sum(takewhile(bool, map(eq, a, b)))
    end = sum(takewhile(bool, map(eq, a[start:][::-1], b[start:][::-1])))
    stop_a, stop_b = len(a) - end, len(b) - end
    changed_a, changed_b = a[start:stop_a], b[start:stop_b]
    changes: Sequence[tuple[str, int, int, int, int]]
    changes = [("replace", 0, len(changed_a), 0, len(changed_b))]
    if _few(changed_a, changed_b):
        changes = SequenceMatcher(None, changed_a, changed_b, autojunk=False).get_opcodes()
    yield "".join(old[:start]), "".join(new[:start]), True
    for kind, i, j, k, m in changes:
        gone, added = old[start + i : start + j], new[start + k : start + m]
        yield "".join(gone), "".join(added), kind == "equal"
    yield "".join(old[stop_a:]), "".join(new[stop_b:]), True


def _few(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two texts have few enough words, and pairs of equal ones, for a word diff."""
    if len(a) > _MOST_TOKENS or len(b) > _MOST_TOKENS:
        return False
    counts = Counter(b)
    return sum(counts[token] for token in a) <= _MOST_MATCHES


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Join neighbours: white space between two changes belongs to them, and gone stands first."""
    gathered: dict[Kind, str] = {"gone": "", "added": "", "same": ""}
    for kind, text in pieces:
        changed: list[Kind] = [side for side in _CHANGES if gathered[side]]
        if kind == "same" and changed and not text.strip():
            gathered |= {side: gathered[side] + text for side in changed}
            continue
        # Either a change is gathered or what is the same; the other kind ends it.
        ended: list[Kind] = ["same"] if text and gathered["same"] else []
        for side in changed if kind == "same" else ended:
            yield Piece(side, gathered[side])
            gathered[side] = ""
        gathered[kind] += text
    yield from (Piece(kind, text) for kind, text in gathered.items() if text)


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
        kind = kind if _single_spaced(text_before) == _single_spaced(text) else "edited"
        changes.append(DocumentChange(kind, name, text_before, text, was, place))
    for was in sorted(left):
        name, text = old[was]
        changes.append(DocumentChange("gone", name, text, None, was, None))
    return changes


def _single_spaced(text: str) -> str:
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
