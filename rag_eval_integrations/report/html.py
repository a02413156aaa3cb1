"""`write_report`: evaluations ─▶ one HTML file that a person reads, sorts, filters and prints.

The figures and the calls to look at first are plain HTML, readable where no script may run. The
page's script adds the table of the calls: its index is JSON, a line per call; the calls' details
are JSON in compressed pieces of a hundred calls, unpacked when one of them is opened. The
evaluations are read once, and only the calls that the page holds are kept, compressed.
"""

from __future__ import annotations

import os
import zlib
from base64 import b64encode
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappush, heappushpop, nlargest
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.dataset._labels_file import asked
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import Groups
from rag_eval_integrations.evaluations._call_view import (
    SIGNS,
    WORDS,
    View,
    unsupported,
    view_of,
)
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.metrics._outcome import FAILING, outcome
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records.score import DIAGNOSES
from rag_eval_integrations.report._conversations import Conversations
from rag_eval_integrations.report._html_figures import Origin, overview
from rag_eval_integrations.report._page import data, page_text, pieces, write
from rag_eval_integrations.report._review_page import review_data, review_settings

MOST_CALLS = 2_000
"""Calls that a page holds: 5 MB of RAGBench's rows, which a browser opens within a second."""
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
_WORDS = 120
"""Characters of an unsupported sentence in the table."""


def write_report(
    evaluations: Iterable[Evaluation],
    path: str | os.PathLike[str],
    *,
    title: str = "RAG evaluation",
    calls: int = MOST_CALLS,
    overwrite: bool = False,
) -> Path:
    """Write evaluations as one HTML file, which opens from disk and asks nothing of a network.

    The file holds the texts of the calls, so it is readable by its owner only. The same evaluations
    give the same bytes.

    Args:
        evaluations: any iterable; it is read once.
        path: the file. A report that this program wrote is replaced when the new one is whole.
        title: the title; any text.
        calls: number of calls that the page holds at most, from 1; its figures are of all. Of more
            calls it holds the newest (the last of the iterable), the gravest, and a sample of the
            others, and says so.
        overwrite: replace a file that this program did not write as well.

    Returns:
        The path.

    Raises:
        ConfigurationError: there is a file that this program did not write, or no regular file;
            the name ends as another format's, such as `.xlsx`; `calls` is below 1.
        OSError: the file cannot be written; an earlier report is as it was.
    """
    content = report_pieces(evaluations, title=title, calls=calls)
    return write(Path(path), content, overwrite=overwrite)


def report_pieces(
    evaluations: Iterable[Evaluation],
    *,
    title: str = "RAG evaluation",
    calls: int = MOST_CALLS,
    groups: Groups | None = None,
    corrected: Callable[[], CorrectedMeans | None] = lambda: None,
    review: str | None = None,
    part: Part | None = None,
) -> Iterator[str]:
    """Render the report in pieces, for standard output; arguments as for `write_report`.

    `groups` are filled by whoever yields the evaluations, after which `corrected` gives the means
    by people's labels. `review` is the name of a person who is asked about the sentences of each
    call; None asks nobody. `part` says of what the evaluations are a part.

    Raises:
        ConfigurationError: `calls` is below 1.
    """
    if calls < 1:
        raise ConfigurationError("calls", calls, "use a number from 1")
    pack = partial(_packed, review=review is not None)
    summary, chosen = Summary(), _ChosenCalls(calls, pack)
    table = _Table(part.first if part else 0)
    conversations, origin = Conversations(), Origin()
    asks_about: list[str] = []
    for evaluation in evaluations:
        if review is not None and asked(evaluation):
            asks_about.append(evaluation.row_key)
        if part is None:
            summary.add(evaluation)
        origin.add(evaluation)
        chosen.add(evaluation)
        conversations.add(evaluation)
    if part is not None:
        summary = part.summary
    worst: dict[int, View] = {number: {} for number in chosen.gravest()}
    for number, packed in chosen.in_order():
        view = table.add(packed)
        if number in worst:
            worst[number] = {**view, "findings": list(findings_of(view))}
    asks = review_settings(review, asks_about)
    if part is not None and review is not None:
        asks["review"] |= part.saved
    yield from pieces(
        "report.html",
        script="report.js" if review is None else "review.js report.js",
        style="report.css" if review is None else "report.css review.css",
        title=title,
        **overview(summary),
        origin=origin.lines(),
        groups=groups,
        corrected=corrected(),
        conversations=conversations,
        settings=table.settings(summary, part) | asks,
        index=table.index,
        chunks=table.chunks(),
        selection=part.words if part else chosen.words(),
        part=part,
        served=part is not None,
        worst=list(worst.values()),
        signs=SIGNS,
        states=WORDS,
        evidence_of=evidence_of,
    )


@dataclass(frozen=True)
class Part:
    """A part of the calls of a run, as a server shows it: the figures are of all of them."""

    summary: Summary
    first: int
    """Number of calls in front of the part."""
    words: str
    """What is shown of the run, in a sentence; empty for all of it."""
    links: Sequence[tuple[str, str]]
    """Name and address of the pages beside this one; an address is empty for the page itself."""
    state: str
    """What the run does now; empty for one that has ended."""
    saved: Mapping[str, Any]
    """Where answers about sentences are saved (`save`, `file`), and those that are (`given`)."""
    more: str
    """Address that gives calls behind those of the page; empty where none will come."""


def more_calls(evaluations: Iterable[Evaluation], first: int) -> dict[str, Any]:
    """Return calls as JSON that adds them to a page that is open.

    Args:
        evaluations: the calls.
        first: number of calls in front of them.
    """
    table = _Table(first)
    for evaluation in evaluations:
        table.add(_packed(evaluation, review=True))
    settings = table.settings(Summary())
    names = {name: settings[name] for name in ("scores", "codes", "patterns")}
    return {**names, "index": table.index, "chunks": table.chunks()}


def evidence_of(call: View, key: str) -> list[str]:
    """List the keys of the sentences that support a sentence of a response; empty for none."""
    evidence: list[str] = next(
        (sentence["evidence"] for sentence in call["support"] if sentence["key"] == key), []
    )
    return evidence


# --- The calls that a page holds


class _Call(NamedTuple):
    """A call in the heap of the gravest, ordered by urgency; of equals the earlier is larger."""

    urgency: tuple[float, ...]
    place: int
    """Minus its number."""
    packed: bytes


class _ChosenCalls:
    """All calls, or of more than `most` the newest, the gravest, and a sample of the others.

    A call is first one of the newest, then perhaps one of the gravest, then perhaps in the sample.
    """

    def __init__(self, most: int, pack: Callable[[Evaluation], bytes]) -> None:
        self._pack = pack
        self._share = most // 4
        """Number of the newest, and of the sample; the gravest are twice as many."""
        self._grave = most - 2 * self._share
        self._count = 0
        self._newest: deque[tuple[int, Evaluation]] = deque()
        self._gravest: list[_Call] = []
        """A heap, the least grave call first."""
        self._others = 0
        self._sample: list[tuple[int, bytes]] = []
        self._random = Random(0)  # the same calls each time

    def add(self, evaluation: Evaluation) -> None:
        """Offer a call: the newest and the gravest are chosen, others by a draw.

        A call that is no longer one of the newest is compared with the gravest then.
        """
        self._count += 1
        self._newest.append((self._count, evaluation))
        if len(self._newest) <= self._share:
            return
        number, evaluation = self._newest.popleft()
        rank = (_urgency(evaluation), -number)
        if len(self._gravest) < self._grave:
            heappush(self._gravest, _Call(*rank, self._pack(evaluation)))
        elif rank < self._gravest[0][:2]:
            self._draw(number, evaluation)
        else:
            least = heappushpop(self._gravest, _Call(*rank, self._pack(evaluation)))
            self._draw(-least.place, least.packed)

    def _draw(self, number: int, content: Evaluation | bytes) -> None:
        """Add a call to the random sample, each with equal chance.

        The same calls are drawn each time.
        """
        self._others += 1
        place = len(self._sample)
        if place == self._share:
            place = self._random.randrange(self._others)
        if place < self._share:
            packed = content if isinstance(content, bytes) else self._pack(content)
            self._sample[place : place + 1] = [(number, packed)]

    def gravest(self) -> list[int]:
        """Return the numbers of the calls to look at first, 20 at most, the gravest first.

        Calls that need no look are left out.
        """
        newest = [_Call(_urgency(evaluation), -number, b"") for number, evaluation in self._newest]
        first = nlargest(_WORST, [*self._gravest, *newest])
        return [-call.place for call in first if call.urgency != _WELL]

    def in_order(self) -> Iterator[tuple[int, bytes]]:
        """Yield the calls of the page with their numbers, in the order of the evaluations."""
        gravest = [(-call.place, call.packed) for call in self._gravest]
        yield from sorted([*gravest, *self._sample])
        for number, evaluation in self._newest:
            yield number, self._pack(evaluation)

    def words(self) -> str:
        """Say how many of the newest, the gravest and the other calls the page holds.

        Empty where it holds all.
        """
        size = len(self._newest) + len(self._gravest) + len(self._sample)
        if size == self._count:
            return ""
        sample = f", and {len(self._sample):,} of the others by chance" if self._sample else ""
        return (
            f"The figures above are of all {self._count:,} calls. This page holds {size:,} of "
            f"them: the last {len(self._newest):,}, the {len(self._gravest):,} gravest of those "
            f"before{sample}. `rag-eval report` holds more with --calls, and chooses with --where."
        )


_WELL: tuple[float, ...] = ()


def _urgency(evaluation: Evaluation) -> tuple[float, ...]:
    """Return how urgently a person should look at a call; empty, the least, for not at all."""
    verdict = outcome(evaluation)
    values = {
        name: score.value for name, score in evaluation.scores.items() if score.value is not None
    }
    mean = sum(values.values()) / len(values) if values else 1.0
    degrees = (-values.get("supported_fraction", 1.0), -mean)
    if verdict == "hallucination":
        return 0, *_certainty(evaluation), *degrees
    if verdict in FAILING:
        return -FAILING.index(verdict), *degrees
    return (-len(FAILING), *degrees) if verdict == "no_verdict" and mean < 1 else _WELL


def _certainty(evaluation: Evaluation) -> tuple[float, float]:
    """Return how certain a hallucination is: a contradiction first, then a low probability.

    A judge without probabilities is taken at its word.
    """
    labels = evaluation.labels
    if labels is None:
        return 0, 0
    chances = labels.supported_probabilities or {}
    against = [chances.get(sentence.key, 0.0) for sentence, *_ in unsupported(evaluation)]
    return bool(labels.contradictions), -min(against, default=0.0)


def _packed(evaluation: Evaluation, *, review: bool) -> bytes:
    """Compress what the page shows of a call, with its scores as the table sorts them.

    With `review`, also what its script needs to ask about it.
    """
    scores = [
        (name, score.unscored or score.status if score.value is None else score.value)
        for name, score in evaluation.scores.items()
    ]
    view = view_of(evaluation)
    if review and asked(evaluation):
        view["review"] = review_data(evaluation)
    return zlib.compress(to_json((view, scores)), 1)


# --- The table of the calls


class _Table:
    """The index of the calls, and their details in pieces.

    Args:
        first: number of calls in front of them.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self.index: list[Any] = []
        self._pieces: list[str] = []
        self._piece: list[bytes] = []
        self._names: dict[str, int] = {}
        """Score → its column."""
        self._codes: dict[str, int] = {}
        """Why a score has no value → its number."""
        self._patterns: dict[str, int] = {}
        self._links: Counter[str] = Counter()

    def add(self, packed: bytes) -> View:
        """Add the next call, and return its view.

        After a hundred calls, a piece is compressed.
        """
        view, scores = from_json(zlib.decompress(packed))
        view = {
            "at": self._first + len(self.index) + 1,
            "row": self._link(view.pop("link")),
            **view,
        }
        self.index.append(data(self._row(view, scores)))
        # As bytes at once: a hundred calls are too many objects for the garbage collector.
        self._piece.append(to_json(view))
        if len(self._piece) == _CHUNK:
            self._end_piece()
        return view

    def _end_piece(self) -> None:
        """Compress the gathered calls as one piece, and begin the next."""
        # zlib's format, because that of gzip holds the name of a system.
        piece = zlib.compress(b"[%b]" % b",".join(self._piece), _LEVEL)
        self._pieces.append(b64encode(piece).decode("ascii"))
        self._piece = []

    def chunks(self) -> list[str]:
        """Return the details of all calls as compressed pieces."""
        if self._piece:
            self._end_piece()
        return self._pieces

    def settings(self, summary: Summary, part: Part | None = None) -> dict[str, Any]:
        """Return what the page's script needs beside the calls.

        Args:
            summary: the figures.
            part: what a server shows; None for a page from disk.
        """
        several = Counter(score.name for score in summary.scores)
        return {
            "scores": [page_text(name) for name in self._names],
            "means": {  # of every score that was made in one way
                page_text(score.name): f"{score.mean:.3f}"
                for score in summary.scores
                if score.mean is not None and several[score.name] == 1
            },
            "codes": [page_text(code) for code in self._codes],
            "patterns": list(self._patterns),
            "gravest": list(DIAGNOSES),
            "signs": SIGNS,
            "states": WORDS,
            "chunk": _CHUNK,
            "printed": _PRINTED,
            "part": len(self.index) < summary.calls,
            "first": self._first,
            **({"more": part.more} if part else {}),
        }

    def _link(self, name: str) -> str:
        """Return a unique link for a call: its name, numbered where another call has the same.

        An empty name becomes `call`.
        """
        name = name or "call"
        self._links[name] += 1
        while self._links[name] > 1:
            name = f"{name} ({self._links[name]})"
            self._links[name] += 1
        return name

    def _row(self, view: View, scores: list[tuple[str, float | str]]) -> list[object]:
        """Return the line of a call in the index: what the table shows, sorts and filters.

        A score without a value has a negative number for the code of why.
        """
        values: list[float | None] = [None] * len(self._names)
        bad: dict[str, list[int]] = {"none": [], "partial": [], "": []}
        for (name, value), score in zip(scores, view["scores"], strict=True):
            column = self._names.setdefault(name, len(self._names))
            if isinstance(value, str):
                value = -1 - self._codes.setdefault(value, len(self._codes))
            values[column : column + 1] = [value]
            bad[score["bad"]].append(column)
        return [
            view["row"],
            one_line(view["question"], _QUESTION),
            [self._patterns.setdefault(name, len(self._patterns)) for name in view["patterns"]],
            values,
            bad["none"],
            bad["partial"],
            _quoted_finding(view),
            int(view["error"] is not None),
            view["id"],
        ]


def _quoted_finding(call: View) -> str:
    """Quote the first sentence that is not fully supported, and count the others; empty without."""
    findings = list(findings_of(call))
    rest = f" +{len(findings) - 1}" if findings[1:] else ""
    if not findings:
        return ""
    gravest = findings[0]
    return f"{SIGNS[gravest['state']]} {one_line(gravest['text'], _WORDS)}{rest}"


def findings_of(call: View) -> Iterator[dict[str, str]]:
    """List the sentences that are not fully supported, with the judge's words about them.

    Each text is one line of at most 300 characters.
    """
    texts = {key: "".join(pieces) for key, _, _, pieces in call["response"]}
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
