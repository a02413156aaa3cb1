"""`write_report`: evaluations ─▶ one HTML file that a person reads, sorts, filters and prints.

The figures and the calls to look at first are plain HTML, readable where no script may run. The
page's script adds the table of all calls: its index is JSON, a line per call; the calls' details
are JSON in compressed pieces of a hundred calls, unpacked when one of them is opened. The
evaluations are read once, and only their compressed details are kept.
"""

from __future__ import annotations

import os
import zlib
from base64 import b64encode
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._html_call import SIGNS, STATES, View, view_of
from rag_eval_integrations.report._html_figures import overview
from rag_eval_integrations.report._page import data, pieces, shown, write

if TYPE_CHECKING:
    from markupsafe import Markup

_WORST = 20
"""Calls that are shown in full without a script."""
_CHUNK = 100
"""Calls per compressed piece: fewer take more room, more take longer to open one."""
_LEVEL = 5
"""Of compression: 6 saves 3 % of the room, and takes half as long again."""
_PRINTED = 200
"""Rows of the table that are printed."""
_QUESTION = 160
"""Characters of a question in the table."""
_FINDING = 300
"""Characters of a sentence, and of the judge's words about it, above a call."""
_GRAVEST_FIRST = ("hallucination", "nothing_relevant_retrieved", "context_ignored", "incomplete")


def write_report(
    evaluations: Iterable[Evaluation],
    path: str | os.PathLike[str],
    *,
    title: str = "RAG evaluation",
) -> Path:
    """Write evaluations as one HTML file, which opens from disk and asks nothing of a network.

    The file holds the texts of the calls, so it is readable by its owner only. The same evaluations
    give the same bytes.

    Args:
        evaluations: any iterable; it is read once.
        path: the file. A report that this program wrote is replaced when the new one is whole.
        title: the title; any text.

    Returns:
        The path.

    Raises:
        ConfigurationError: there is a file that this program did not write, or no regular file.
        OSError: the file cannot be written; an earlier report is as it was.
    """
    return write(Path(path), report_pieces(evaluations, title=title))


def report_pieces(
    evaluations: Iterable[Evaluation], *, title: str = "RAG evaluation"
) -> Iterator[str]:
    """Render the report in pieces, for standard output; arguments as for `write_report`."""
    # zlib releases the interpreter, so one thread compresses while the next calls are read.
    with ThreadPoolExecutor(1, "rag-eval-report") as pool:
        calls = _Calls(pool)
        for evaluation in evaluations:
            calls.add(evaluation)
        calls.end_chunk()
    yield from pieces(
        "report.html",
        script="report.js",
        style="report.css",
        title=title,
        **overview(calls.summary),
        settings=calls.settings(),
        index=calls.index,
        chunks=(chunk.result() for chunk in calls.chunks),
        worst=[call for *_, call in calls.worst],
        worst_lead=_worst_lead(len(calls.worst)),
        signs=SIGNS,
        states=STATES,
        evidence_of=_evidence_of,
    )


def _worst_lead(count: int) -> str:
    if count == 1:
        return "The only call with a finding: its answer, its documents, and the judge's words."
    return (
        f"The {count} calls with the gravest findings, answers that the documents do not support "
        "first. Each opens to show the answer, the documents, and the judge's words."
    )


def _evidence_of(call: View, key: str) -> list[str]:
    evidence: list[str] = next(
        (sentence["evidence"] for sentence in call["support"] if sentence["key"] == key), []
    )
    return evidence


def _packed(text: bytes) -> str:
    # zlib's format, because that of gzip holds the name of a system.
    return b64encode(zlib.compress(text, _LEVEL)).decode("ascii")


@dataclass
class _Calls:
    """What the page needs of the calls, gathered one by one."""

    pool: ThreadPoolExecutor
    summary: Summary = field(default_factory=Summary)
    index: list[Markup] = field(default_factory=list)
    chunks: list[Future[str]] = field(default_factory=list)
    worst: list[tuple[int, float, float, int, View]] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)
    """Score → its column."""
    _codes: dict[str, int] = field(default_factory=dict)
    """Why a score has no value → its number."""
    _patterns: dict[str, int] = field(default_factory=dict)
    _rows: Counter[str] = field(default_factory=Counter)
    _chunk: list[bytes] = field(default_factory=list)

    def add(self, evaluation: Evaluation) -> None:
        self.summary.add(evaluation)
        call = view_of(evaluation, len(self.index) + 1, self._row_name(evaluation.id))
        # As bytes at once: a hundred calls are too many objects for the garbage collector.
        self._chunk.append(to_json(call))
        if len(self._chunk) == _CHUNK:
            self.end_chunk()
        self.index.append(data(self._row(evaluation, call)))
        self._look_at(evaluation, call)

    def end_chunk(self) -> None:
        """Compress the calls that were added since the last piece."""
        if self._chunk:
            self.chunks.append(self.pool.submit(_packed, b"[%b]" % b",".join(self._chunk)))
            self._chunk = []

    def settings(self) -> dict[str, Any]:
        """Gather what the script needs beside the calls."""
        return {
            "scores": [shown(name) for name in self._names],
            "means": self._means(),
            "codes": [shown(code) for code in self._codes],
            "patterns": list(self._patterns),
            "gravest": [*_GRAVEST_FIRST, "healthy"],
            "signs": SIGNS,
            "states": STATES,
            "chunk": _CHUNK,
            "printed": _PRINTED,
        }

    def _means(self) -> dict[str, str]:
        """Return the mean of every score that was made in one way."""
        figures = self.summary.scores
        several = Counter(score.name for score in figures)
        return {
            shown(score.name): f"{score.mean:.3f}"
            for score in figures
            if score.mean is not None and several[score.name] == 1
        }

    def _row_name(self, name: str) -> str:
        """Name a call as its user does; a name that was there before gets its number."""
        name = one_line(name) or "call"
        self._rows[name] += 1
        while self._rows[name] > 1:
            name = f"{name} ({self._rows[name]})"
            self._rows[name] += 1
        return name

    def _row(self, evaluation: Evaluation, call: View) -> list[object]:
        """Make a line of the index: the table's cells, and what is sorted and filtered by."""
        values: list[float | None] = [None] * len(self._names)
        failed = []
        for name, score in evaluation.scores.items():
            column = self._names.setdefault(name, len(self._names))
            value = score.value
            if value is None:
                code = score.unscored or score.status
                value = -1 - self._codes.setdefault(code, len(self._codes))
            if column == len(values):
                values.append(value)
            else:
                values[column] = value
            if score.passed is False:
                failed.append(column)
        patterns = [
            self._patterns.setdefault(name, len(self._patterns)) for name in call["patterns"]
        ]
        question = one_line(evaluation.question, _QUESTION)
        return [
            call["row"],
            question,
            patterns,
            values,
            failed,
            _marks(call),
            int(call["error"] is not None),
        ]

    def _look_at(self, evaluation: Evaluation, call: View) -> None:
        rank = _rank(evaluation, call["patterns"])
        if rank is None:
            return
        place = (*rank, call["at"], call)
        if len(self.worst) == _WORST and place[:4] > self.worst[-1][:4]:
            return
        call = {**call, "findings": list(_findings(call, evaluation))}
        insort(self.worst, (*rank, call["at"], call), key=lambda entry: entry[:4])
        del self.worst[_WORST:]


def _rank(evaluation: Evaluation, patterns: list[str]) -> tuple[int, float, float] | None:
    """Say how urgently a person should look at a call, least first; None for not at all."""
    values = {
        name: score.value for name, score in evaluation.scores.items() if score.value is not None
    }
    mean = sum(values.values()) / len(values) if values else 1.0
    supported = values.get("supported_fraction", 1.0)
    for gravity, pattern in enumerate(_GRAVEST_FIRST):
        if pattern in patterns:
            return gravity, supported, mean
    if any(score.passed is False for score in evaluation.scores.values()):
        return len(_GRAVEST_FIRST), supported, mean
    if not patterns and mean < 1:
        return len(_GRAVEST_FIRST) + 1, supported, mean
    return None


def _marks(call: View) -> str:
    """Name the sentences that are not fully supported, in a few characters: `✗ b d`."""
    marks = []
    for state in ("none", "partial"):
        keys = [sentence["key"] for sentence in call["support"] if sentence["state"] == state]
        if keys:
            rest = f" +{len(keys) - 3}" if len(keys) > 3 else ""
            marks.append(f"{SIGNS[state]} {one_line(' '.join(keys[:3]), 20)}{rest}")
    return "  ".join(marks)


def _findings(call: View, evaluation: Evaluation) -> Iterator[dict[str, str]]:
    """List the sentences that are not fully supported, with the judge's words about them."""
    texts = {shown(sentence.key): sentence.text for sentence in evaluation.sentences.response}
    for sentence in call["support"]:
        if sentence["state"] in ("none", "partial"):
            why = "; ".join(
                [*sentence["against"], sentence["why"]] if sentence["why"] else sentence["against"]
            )
            yield {
                "key": sentence["key"],
                "state": sentence["state"],
                "text": one_line(texts.get(sentence["key"], ""), _FINDING),
                "why": one_line(why, _FINDING),
            }
