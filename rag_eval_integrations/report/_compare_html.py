"""The page of a comparison: figures of every score, then the calls that changed, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rag_eval_integrations.evaluations import ScoreDifference
from rag_eval_integrations.evaluations.comparison import (
    HEADINGS,
    Change,
    Comparison,
    cells,
    decimal,
    in_answers,
    remarks,
)
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._shown import unsupported
from rag_eval_integrations.report._page import drawn, pieces, shown
from rag_eval_integrations.report._word_diff import (
    MOST_CHARACTERS,
    DocumentChange,
    Kind,
    Piece,
    document_changes,
    word_diff,
)

MOST_CALLS = 30
"""Calls of each run that are shown side by side."""
_MOST_LOST = 20
_MOST_DOCUMENTS = 20
_MOST_SENTENCES = 20
_OF_A_DOCUMENT = 2_000
_OF_A_MOVED = 160
"""Characters that tell which document it is whose place alone has changed."""

View = dict[str, Any]


def compare_page(
    comparison: Comparison, *, verdicts: Sequence[str] = (), calls: int = MOST_CALLS
) -> Iterator[str]:
    """Render the page in pieces.

    Args:
        comparison: what is shown, with its `others`.
        verdicts: lines about thresholds, shown first.
        calls: number of calls of each run that are shown side by side.
    """
    names = [comparison.names[0], *(run.names[1] for run in comparison.all)]
    return pieces(
        "compare.html",
        style="compare.css",
        title=f"{names[0]} compared with {', '.join(names[1:])}",
        verdicts=[shown(line) for line in verdicts],
        headings=HEADINGS,
        runs=[_run(run, calls) for run in comparison.all],
    )


def _run(comparison: Comparison, limit: int) -> View:
    """Return what the page shows of a comparison."""
    scores = list(comparison.scores.values())
    reach = max(
        (max(abs(s.interval.low), abs(s.interval.high)) for s in scores if s.interval),
        default=0.0,
    )
    changed = comparison.changed_count
    lost: dict[tuple[str, str], tuple[str, Change]] = {}
    for score in scores:
        for change in comparison.became_unscored(score.name, _MOST_LOST):
            key = (change.before.id, change.before.row_key)  # two calls may have equal texts
            names, _ = lost.get(key, ("", change))
            lost[key] = (f"{names}, {score.name}" if names else score.name, change)
    return {
        "a": shown(comparison.names[0]),
        "b": shown(comparison.names[1]),
        "rows": [{"name": shown(score.name), "cells": [shown(cell) for cell in cells(score)[1:]],
                  "bar": _bar(score, reach), "bad": _fall(score)} for score in scores],
        "answers": [shown(line) for line in in_answers(comparison)],
        "remarks": [shown(line) for line in remarks(comparison)],
        "reach": f"{reach:.3f}",
        "changed": changed,
        "calls": [_call(change, comparison.scores) for change in comparison.changed_calls(limit)],
        "lost": [
            {"names": shown(names), **_call(change, comparison.scores)}
            for names, change in list(lost.values())[:_MOST_LOST]
        ],
    }  # fmt: skip


def _fall(score: ScoreDifference) -> str:
    """Return the state whose look a fall has: `none` where it is sure, else `partial`."""
    if score.difference is None or score.difference >= 0:
        return ""
    return "none" if score.interval is not None and score.interval.high < 0 else "partial"


def _bar(score: ScoreDifference, reach: float) -> View | None:
    """Place an interval in a drawing of 200 units around zero difference."""
    if score.interval is None or score.difference is None or not reach:
        return None
    low, high, mean = score.interval.low, score.interval.high, score.difference
    places = {
        name: drawn((value / reach + 1) / 2, 200)
        for name, value in (("low", low), ("high", high), ("mean", mean))
    }
    return {**places, "said": f"{mean:+.3f}, interval {low:+.3f} to {high:+.3f}"}


def _call(change: Change, names: Iterable[str]) -> View:
    """Return what the page shows of a changed call."""
    before, after = change.before, change.after
    response = word_diff(before.response or "", after.response or "")
    documents = document_changes(before, after)
    different = [document for document in documents if document.kind != "same"]
    return {
        "id": shown(change.id),
        "question": shown(after.question[:MOST_CHARACTERS]),
        "asked_before": shown(before.question[:MOST_CHARACTERS])
        if before.question != after.question
        else "",
        "scores": [_moved(*score, after) for score in change.scores(names)],
        "before": _side(before, response, "added"),
        "after": _side(after, response, "gone"),
        "same_response": before.response == after.response,
        "documents": [_document(document) for document in different[:_MOST_DOCUMENTS]],
        "more_documents": max(0, len(different) - _MOST_DOCUMENTS),
        "kept": len(documents) - len(different),
    }


def _moved(name: str, was: float | None, now: float | None, after: Evaluation) -> View:
    """Return what the page shows of a score's change."""
    change = None if was is None or now is None else now - was
    new = after.scores.get(name)
    why = "" if new is None or now is not None else shown(new.unscored or new.status)
    return {
        "name": shown(name),
        "before": decimal(was),
        "after": decimal(now) if not why else f"– ({why})",
        "change": decimal(change, sign=True),
        "fell": change is not None and change < 0,
    }


def _side(evaluation: Evaluation, diff: Sequence[Piece], other: str) -> View:
    """Return what the page shows of one run's response."""
    text = evaluation.response
    return {
        "none": text is None,
        "pieces": [(piece.kind, shown(piece.text)) for piece in diff if piece.kind != other],
        "more": max(0, len(text or "") - MOST_CHARACTERS),
        "unsupported": [
            f"{shown(sentence.key)} {shown(sentence.text)}"
            for sentence, *_ in unsupported(evaluation, _MOST_SENTENCES)
        ],
        "error": shown(f"{evaluation.error.type}: {evaluation.error.message}")
        if evaluation.error
        else "",
    }


def _document(change: DocumentChange) -> View:
    """Return what the page shows of a changed document."""
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
        "id": shown(change.id or ""),
        "pieces": [(piece.kind, shown(piece.text)) for piece in pieces],
        "more": max(0, longest - most),
    }
