"""The page of a comparison: figures of every score, then the calls that changed, side by side."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Any, Literal, NamedTuple

from rag_eval_integrations.evaluations import ScoreDifference
from rag_eval_integrations.evaluations._call_view import SIGNS, WORDS, unsupported, view_of
from rag_eval_integrations.evaluations._corrected import CorrectedRun
from rag_eval_integrations.evaluations._difference_words import cells, decimal, outcome
from rag_eval_integrations.evaluations._pairing import Change
from rag_eval_integrations.evaluations.comparison import (
    Comparison,
    answer_changes,
    moves,
    outcomes,
    places_of,
    remarks,
    table,
)
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._page import drawn, page_text, pieces
from rag_eval_integrations.report.html import evidence_of
from rag_eval_integrations.sentences import document_number

MOST_CALLS = 30
"""Calls of each run that are shown side by side."""
_MOST_LOST = 20
_MOST_DOCUMENTS = 20
_MOST_SENTENCES = 20
_OF_A_DOCUMENT = 2_000
_OF_A_MOVED = 160
"""Characters that tell which document it is whose place alone has changed."""
_OF_A_CALL = 100_000
"""Characters of a call, as JSON, that can be opened with all its documents."""
_REACHES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Differences at which the axis of intervals may end."""
_PLOT = 300

View = dict[str, Any]


def compare_page(
    comparison: Comparison,
    *,
    verdicts: Sequence[str] = (),
    calls: int = MOST_CALLS,
    corrected: Sequence[CorrectedRun] = (),
    served: bool = False,
) -> Iterator[str]:
    """Render the page in pieces.

    Args:
        comparison: what is shown, with its `others`.
        verdicts: lines about thresholds, shown first.
        calls: number of calls of each run that are shown side by side.
        corrected: the means of each run by people's labels.
        served: whether a server shows it.
    """
    names = [comparison.names[0], *(run.names[1] for run in comparison.all)]
    return pieces(
        "compare.html",
        style="report.css compare.css",
        title=f"{names[0]} compared with {', '.join(names[1:])}",
        verdicts=[page_text(line) for line in verdicts],
        corrected=corrected,
        runs=[_run(run, calls, number) for number, run in enumerate(comparison.all)],
        signs=SIGNS,
        states=WORDS,
        evidence_of=evidence_of,
        served=served,
    )


def _run(comparison: Comparison, limit: int, number: int) -> View:
    """Return what the page shows of a comparison.

    Calls that lost a value are listed up to 20, each once with the names of all its scores.
    """
    scores = list(comparison.scores.values())
    ends = [abs(end) for s in scores if s.interval for end in (s.interval.low, s.interval.high)]
    reach = next(reach for reach in _REACHES if reach >= max(ends, default=0.0))
    lost: dict[tuple[str, str], tuple[str, Change]] = {}
    for score in scores:
        for change in comparison.became_unscored(score.name, _MOST_LOST):
            key = (change.before.id, change.before.row_key)  # two calls may have equal texts
            names, _ = lost.get(key, ("", change))
            lost[key] = (f"{names}, {score.name}" if names else score.name, change)
    headings, *figures = table(comparison)
    aside = headings.index("p") if "p" in headings else len(headings)
    return {
        "a": page_text(comparison.names[0]),
        "b": page_text(comparison.names[1]),
        "outcomes": [
            (told, page_text(score.name), score.fell_and_rose)
            for told, score in outcomes(comparison)
        ],
        "rows": [_row(score, places_of(comparison), reach) for score in scores],
        "headings": headings[aside:],
        "figures": [[page_text(row[0]), *row[aside:]] for row in figures],
        "answers": [page_text(line) for line in answer_changes(comparison)],
        "remarks": [page_text(line) for line in remarks(comparison)],
        "reach": f"{reach:g}",
        "changed": comparison.changed_count,
        "calls": [
            _call(change, comparison, f"{number}-{place}")
            for place, change in enumerate(comparison.changed_calls(limit))
        ],
        "lost": [
            {"names": page_text(names), **_call(change, comparison, f"{number}-lost-{place}")}
            for place, (names, change) in enumerate(list(lost.values())[:_MOST_LOST])
        ],
    }


def _row(
    score: ScoreDifference, places: int, reach: float
) -> tuple[str, Sequence[str], str, Sequence[str]]:
    """Return what the page shows of a score: name, figures, outcome, and the interval's places."""
    ends = score.interval
    at = (ends.low, ends.high, score.difference or 0.0) if ends else ()
    drawing = [drawn((value / reach + 1) / 2, _PLOT) for value in at]
    return page_text(score.name), cells(score, places), outcome(score), drawing


def _call(change: Change, comparison: Comparison, at: str) -> View:
    """Return what the page shows of a changed call.

    Documents that are the same are only counted, and of the others 20 are shown.
    """
    before, after = change.before, change.after
    response = word_diff(before.response or "", after.response or "")
    documents = document_changes(before, after)
    different = [document for document in documents if document.kind != "same"]
    return {
        "id": page_text(change.id),
        "question": page_text(after.question[:MOST_CHARACTERS]),
        "asked_before": page_text(before.question[:MOST_CHARACTERS])
        if before.question != after.question
        else "",
        "scores": [
            _score_change(*score, after, places_of(comparison))
            for score in moves(change, comparison)
        ],
        "before": _side(before, response, "added"),
        "after": _side(after, response, "gone"),
        "whole": [("A", _whole(before, f"{at}-A")), ("B", _whole(after, f"{at}-B"))],
        "same_response": before.response == after.response,
        "documents": [_document(document) for document in different[:_MOST_DOCUMENTS]],
        "more_documents": max(0, len(different) - _MOST_DOCUMENTS),
        "kept": len(documents) - len(different),
    }


def _whole(evaluation: Evaluation, at: str) -> View | None:
    """Return a call as the report shows it; None if it is too long for a page of many calls."""
    view = {**view_of(evaluation), "at": at}
    return view if len(json.dumps(view, ensure_ascii=False)) <= _OF_A_CALL else None


def _score_change(
    name: str, was: float | None, now: float | None, after: Evaluation, places: int
) -> View:
    """Return what the page shows of a score's change.

    A value that was lost says why.
    """
    change = None if was is None or now is None else now - was
    new = after.scores.get(name)
    why = "" if new is None or now is not None else page_text(new.unscored or new.status)
    return {
        "name": page_text(name),
        "before": decimal(was, places),
        "after": decimal(now, places) if not why else f"– ({why})",
        "change": decimal(change, places, sign=True),
        "fell": change is not None and change < 0,
    }


def _side(evaluation: Evaluation, diff: Sequence[Piece], other: str) -> View:
    """Return what the page shows of one run's response.

    Unsupported sentences are listed up to 20; `more` counts characters that were not compared.
    """
    text = evaluation.response
    return {
        "none": text is None,
        "pieces": [(piece.kind, page_text(piece.text)) for piece in diff if piece.kind != other],
        "more": max(0, len(text or "") - MOST_CHARACTERS),
        "unsupported": [
            f"{page_text(sentence.key)} {page_text(sentence.text)}"
            for sentence, *_ in unsupported(evaluation, _MOST_SENTENCES)
        ],
        "error": page_text(f"{evaluation.error.type}: {evaluation.error.message}")
        if evaluation.error
        else "",
    }


def _document(change: DocumentChange) -> View:
    """Return what the page shows of a changed document, up to 2,000 characters of its text.

    Of a moved one up to 160. Words are compared where it was edited.
    """
    most = _OF_A_MOVED if change.kind == "moved" else _OF_A_DOCUMENT
    before, after = ((text or "")[:most] for text in (change.before, change.after))
    kinds: dict[str, Kind] = {"gone": "gone", "added": "added"}
    pieces = [Piece(kinds.get(change.kind, "same"), before if change.kind == "gone" else after)]
    if change.kind == "edited":
        pieces = word_diff(before, after)
    place = {
        "gone": f"gone, was document {change.number_before}",
        "added": f"added as document {change.number_after}",
    }.get(change.kind, f"{change.kind}, document {change.number_before} → {change.number_after}")
    longest = max(len(change.before or ""), len(change.after or ""))
    return {
        "kind": change.kind,
        "place": place,
        "id": page_text(change.id or ""),
        "pieces": [(piece.kind, page_text(piece.text)) for piece in pieces],
        "more": max(0, longest - most),
    }


# --- What changed between two texts, word by word, and between two lists of retrieved documents
#
# Sentences are aligned first, and only sentences that changed are compared word by word. White
# space is shown as it is and never counts as a change. `difflib` has no bound on its time: texts
# are cut, and what could be aligned in too many ways is shown as replaced as a whole.


MOST_CHARACTERS = 20_000
"""Characters of a text that are compared and shown."""
_MOST_TOKENS = 1_000
_MOST_MATCHES = 20_000
"""Pairs of equal tokens in two texts: `difflib` goes through all of them, perhaps many times."""
_MOST_NUMBERED = 200

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
    return list(_merged(pieces))


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield stretches of two lists as texts, and whether they are equal up to white space.

    What has too many words or pairs to be aligned is one stretch that differs. Stretches may be
    empty.
    """
    a, b = [token.strip() for token in old], [token.strip() for token in new]
    start = sum(takewhile(bool, map(eq, a, b)))
    end = sum(takewhile(bool, map(eq, a[start:][::-1], b[start:][::-1])))
    stop_a, stop_b = len(a) - end, len(b) - end
    changed_a, changed_b = a[start:stop_a], b[start:stop_b]
    changes: Sequence[tuple[str, int, int, int, int]]
    changes = [("replace", 0, len(changed_a), 0, len(changed_b))]
    if _fits_word_diff(changed_a, changed_b):
        changes = SequenceMatcher(None, changed_a, changed_b, autojunk=False).get_opcodes()
    yield "".join(old[:start]), "".join(new[:start]), True
    for kind, i, j, k, m in changes:
        gone, added = old[start + i : start + j], new[start + k : start + m]
        yield "".join(gone), "".join(added), kind == "equal"
    yield "".join(old[stop_a:]), "".join(new[stop_b:]), True


def _fits_word_diff(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two texts are small enough for a word diff, in words and equal pairs."""
    if len(a) > _MOST_TOKENS or len(b) > _MOST_TOKENS:
        return False
    counts = Counter(b)
    return sum(counts[token] for token in a) <= _MOST_MATCHES


def _merged(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Merge neighbouring pieces: white space between two changes joins them, `gone` first."""
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

    A document is `edited` if its text differs by more than white space, also where it moved.
    Documents beyond the first 200 are not compared.

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
    """List the documents of an evaluation: id, and text joined from its sentences."""
    size = min(len(evaluation.document_ids), _MOST_NUMBERED)
    sentences: dict[int, list[str]] = {number: [] for number in range(size)}
    for sentence in evaluation.sentences.documents:
        number = document_number(sentence.key)
        if number is not None and number < _MOST_NUMBERED:
            sentences.setdefault(number, []).append(sentence.text)
    names = dict(enumerate(evaluation.document_ids))
    return [(names.get(number), " ".join(sentences[number])) for number in sorted(sentences)]


def _unique_ids(documents: Sequence[tuple[str | None, str]]) -> bool:
    """Tell whether all documents have ids, and different ones."""
    names = [name for name, _ in documents]
    return None not in names and len(set(names)) == len(names)
