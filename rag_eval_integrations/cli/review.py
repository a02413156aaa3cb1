"""`rag-eval review`: asks a person which claims are supported and which sentences are relevant."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

from rich.rule import Rule
from rich.table import Table

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._arguments import ReviewOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli._terminal import account, kept, print_stdout
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsWriter,
    Pick,
    Population,
    asked,
    random_order,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._pairing import EvaluationsFile
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._repr import EARLIER
from rag_eval_integrations.report import _page
from rag_eval_integrations.report._review_page import asked_view, review_page
from rag_eval_integrations.sentences import document_number

_TURNS = 6
"""Turns of the conversation that are shown, the last ones."""
_NEXT = "s skip · c next call · d documents · b back · q quit"


def review(options: ReviewOptions) -> int:
    """Ask about the calls of a draw; return 2 for invalid lines, unless `skip_invalid`, else 0.

    Raises:
        ConfigurationError: there is no terminal, nothing to ask, or OUT holds something else.
        OSError: a file cannot be read or written.
    """
    page = options.page
    if page is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        why = "review asks in a terminal, and this is none; run it in one, or make a --page"
        raise ConfigurationError("review", None, why, missing=True)
    evals = Input(options.evals)
    evals.check(folder=True)
    if str(options.out) == "-":
        raise ConfigurationError("--out", "-", "labels are appended to a file: name one")
    if evals.is_file(options.out):
        raise ConfigurationError("--out", str(options.out), "is the input file")
    if page is not None:
        _page.check(page, field="--page")
    who, bad = person(options.who), BadRows(evals)
    if options.pick not in ("random", "unsure", "low"):
        raise ConfigurationError("--pick", options.pick, "use random, unsure or low")
    pick = cast(Pick, options.pick)
    draw, calls = draw_calls(EvaluationsFile(evals, bad.tell), pick, options.n, options.seed)
    if page is not None:
        _page.write(page, review_page(calls, draw, who, options.out.name), field="--page")
        print_stdout(f"Wrote {page}, which downloads {options.out.name}. {_extent_of(calls)}")
        return bad.end("left out", skip=options.skip_invalid)
    with LabelsWriter(options.out, who, draw, field="--out") as labels:
        review = _Review(calls, labels)

        def progress() -> str:
            return f"{review.done()} labelled whole in {options.out}."

        print_stdout(_extent_of(calls))
        with kept(progress), _single_keys() as key:
            review.ask(key)
        print_stdout(progress())
    return bad.end("left out", skip=options.skip_invalid)


def person(name: str | None) -> str:
    """Return the name of the person who labels.

    Raises:
        ConfigurationError: it is empty, or the account has none.
    """
    who = account() if name is None else name.strip()
    if not who:
        raise ConfigurationError("--who", name, "give your name, which stands beside your labels")
    return who


# --- The draw


class _Candidate(NamedTuple):
    """A call as the draw sees it."""

    row_key: str
    position: int
    low: float
    estimate: tuple[float, float] | None
    """P(adherent) and its standard error."""
    adherent: float | None


def _extent_of(calls: Sequence[Evaluation]) -> str:
    """Say how many calls and sentences are asked about."""
    keys = [sentence.key for call in calls for sentence in asked(call)]
    answers = sum(not key[0].isdigit() for key in keys)
    return (
        f"{counted(len(calls), 'call')}: {counted(answers, 'sentence')} of answers and "
        f"{len(keys) - answers:,} of documents."
    )


def draw_calls(
    evals: EvaluationsFile, pick: Pick, n: int, seed: int
) -> tuple[Draw, list[Evaluation]]:
    """Draw calls, the same each time for the same arguments.

    Returns:
        The draw, and its calls, each once.

    Raises:
        ConfigurationError: there is nothing to ask.
        OSError: the file cannot be read.
    """
    candidates = [_candidate(place, each) for place, each in enumerate(evals) if asked(each)]
    if not candidates:
        raise ConfigurationError("evals", str(evals.path), "has no call with labels to correct")
    row_keys = [candidate.row_key for candidate in candidates]
    order = [candidates[place] for place in random_order(row_keys, seed)]
    if pick == "low":
        order.sort(key=lambda candidate: candidate.low)
    elif pick == "unsure":
        cutoff = _cutoff(candidates)
        order.sort(key=lambda candidate: _distance(candidate, cutoff))
    n = min(n, len(order))
    chosen = {candidate.row_key: candidate.position for candidate in reversed(order[:n])}
    draw = Draw(pick, n, seed, Population.of(row_keys))
    read = dict(evals.some(chosen.values()))
    return draw, [read[place] for place in reversed(chosen.values())]


def _candidate(position: int, evaluation: Evaluation) -> _Candidate:
    """Reduce a call to what the draw needs; a call without a score comes last by `low`."""
    scores = evaluation.scores
    fraction, adherence = scores.get("supported_fraction"), scores.get("adherence")
    low = fraction.value if fraction and fraction.value is not None else 2.0
    estimate = adherence.estimate if adherence else None
    sure = (estimate.value, estimate.std_error) if estimate and estimate.std_error else None
    return _Candidate(
        evaluation.row_key, position, low, sure, adherence.value if adherence else None
    )


def _cutoff(candidates: Sequence[_Candidate]) -> float:
    """Find the estimate at which the judge's verdict changes; rows do not record it.

    That is between the highest of its verdicts against a response and the lowest for one.
    """
    of = {0.0: [0.0], 1.0: [1.0]}
    for candidate in candidates:
        if candidate.estimate is not None and candidate.adherent is not None:
            of[candidate.adherent].append(candidate.estimate[0])
    return (max(of[0.0]) + min(of[1.0])) / 2


def _distance(candidate: _Candidate, cutoff: float) -> float:
    """Return how sure the judge is: standard errors to the cut-off, else support's way to .5."""
    if candidate.estimate is None:
        return abs(candidate.low - 0.5)
    estimate, error = candidate.estimate
    return abs(estimate - cutoff) / error


# --- The questions


class _Question(NamedTuple):
    """A sentence that is asked about."""

    call: int
    key: str
    text: str


class _Review:
    """Dialogue in a terminal that asks about one sentence after the other.

    Args:
        calls: the calls of the draw.
        labels: where the answers go, and those of earlier sessions are.
    """

    def __init__(self, calls: Sequence[Evaluation], labels: LabelsWriter) -> None:
        self._calls, self._labels = calls, labels
        self._items = [
            _Question(number, sentence.key, sentence.text)
            for number, call in enumerate(calls)
            for sentence in asked(call)
        ]
        for call in calls:
            if labels.is_whole(call):
                labels.add_to_draw(call)
        self._console = stdout()
        self._call: int | None = None
        """The call whose question was shown."""

    def done(self) -> str:
        """Say how many calls are labelled whole."""
        whole = sum(map(self._labels.is_whole, self._calls))
        return f"{whole:,} of {counted(len(self._calls), 'call is', 'calls are')}"

    def ask(self, key: Callable[[], str]) -> None:
        """Ask until every sentence is answered, or the person quits.

        Args:
            key: waits for a key and returns it; empty at the end of the input.
        """
        place = self._next(-1)
        while place is not None:
            item = self._items[place]
            self._show(item)
            pressed = key()
            while pressed not in tuple("ynbscdq") and pressed not in _ENDS:
                pressed = key()
            if pressed == "q" or pressed in _ENDS:
                return
            if pressed in ("y", "n"):
                self._labels.answer(self._calls[item.call], item.key, pressed == "y")
            if pressed == "d":
                self._documents(self._calls[item.call])
            elif pressed == "b":
                place = max(0, place - 1)
            elif pressed == "c":
                place = self._next(place, of_call=item.call + 1)
            else:
                place = self._next(place)

    def _next(self, place: int, of_call: int = 0) -> int | None:
        """Return the place of the next sentence without an answer; None behind the last."""
        for after, item in enumerate(self._items[place + 1 :], place + 1):
            if item.call >= of_call and self._answer(item) is None:
                return after
        return None

    def _answer(self, item: _Question) -> bool | None:
        """Return the answer about a sentence; None without one."""
        return self._labels.answers(self._calls[item.call].row_key).get(item.key)

    # --- What is shown

    def _show(self, item: _Question) -> None:
        """Print a sentence with its call and evidence, and ask about it."""
        call = self._calls[item.call]
        keys = [each.key for each in self._items if each.call == item.call]
        self._console.print()
        place = f"sentence {keys.index(item.key) + 1} of {len(keys)}"
        self._console.print(
            Rule(f"Call {item.call + 1} of {len(self._calls)} · {place}", align="left")
        )
        if self._call != item.call:
            turns = call.history[-_TURNS:]
            self._grid((f"{turn.role}:", one_line(turn.content, 300)) for turn in turns)
            self._call = item.call
        self._grid([("Question:", one_line(call.question, 600))])
        is_claim = document_number(item.key) is None
        if is_claim:
            self._evidence(call, item.key)
        title = "Answer sentence" if is_claim else f"Document {document_number(item.key)}, sentence"
        self._grid([(f"{title} {item.key}:", one_line(item.text))])
        words = ("supported", "not supported") if is_claim else ("relevant", "not relevant")
        before = {None: "", True: f" (you said {words[0]})", False: f" (you said {words[1]})"}
        asks = "Do the documents fully support it?" if is_claim else "Does it help to answer?"
        self._console.print(f"{asks}{before[self._answer(item)]}")
        self._console.print(f"y {words[0]} · n {words[1]}")
        self._console.print(_NEXT)

    def _evidence(self, call: Evaluation, key: str) -> None:
        """Print the document sentences that the judge named for a claim."""
        evidence = next(c["evidence"] for c in asked_view(call)["claims"] if c["key"] == key)
        if not evidence:
            self._console.print("The judge names no document sentence; press d for all of them.")
            return
        self._console.print("The judge names:")
        self._grid((f"  {sentence.key}", one_line(sentence.text)) for sentence in evidence)

    def _documents(self, call: Evaluation) -> None:
        """Print all documents of a call."""
        for document in asked_view(call)["documents"]:
            again = f" ({EARLIER})" if document["earlier"] else ""
            name = one_line(document["name"], 300)
            self._console.print()
            self._grid([(f"Document {document['number']}{again}:", name)])
            self._grid((f"  {s.key}", one_line(s.text)) for s in document["sentences"])

    def _grid(self, rows: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> None:
        """Print texts in a column beside our words, so that no line of a text looks like ours."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for words, text in rows:
            grid.add_row(words, text)
        if grid.row_count:
            self._console.print(grid)


_ENDS = ("", "\x03", "\x04")
"""End of the input, Ctrl-C where it is not a signal, and Ctrl-D."""


@contextmanager
def _single_keys() -> Iterator[Callable[[], str]]:
    """Yield a function that reads one key without Enter; restore the terminal at the end."""
    try:
        import termios  # noqa: PLC0415  # not on every platform
        import tty  # noqa: PLC0415
    except ImportError:  # pragma: no cover
        import msvcrt  # noqa: PLC0415

        yield msvcrt.getwch  # type: ignore[attr-defined]
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)  # what was typed ahead stays
        yield lambda: os.read(terminal, 1).decode("latin-1")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
