"""Files of people's labels, `labels.jsonl`: an answer per line, a row of RAGBench per whole call.

EVALS ─▶ which calls are asked ─▶ answers, appended one by one ─▶ rows that are gold

Each line has `row_key` (the call's in EVALS), `id`, `who`, `when`, and what the call was drawn by:
`pick`, `n`, `seed`, `population`. An answer has `key` and `label`; a whole call has the columns of
RAGBench with what people are asked. Lines of several files may stand behind one another.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, StrictBool

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.dataset._input import Line, Numbered, read_lines
from rag_eval_integrations.dataset.rows import Labelled, labelled_from_evaluation, ragbench_row
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Labels,
    Sentence,
    SentenceSupport,
)
from rag_eval_integrations.records._json import Record, Text, from_object
from rag_eval_integrations.records.labels import SUPPORTING, UTILIZED
from rag_eval_integrations.sentences import document_number

Pick = Literal["random", "unsure", "low", "single"]
"""How a call was chosen: drawn, or one that a person corrected in a report."""

PEOPLE = "people"
"""Model of the labeller of recorded rows, whoever labelled: their scores are of one kind."""
_BEGIN = b'{"row_key":'
"""How each line begins."""

_COLUMNS = (
    "id",
    "question",
    "documents",
    "response",
    "generation_model_name",
    "dataset_name",
    "annotating_model_name",
    "documents_sentences",
    "response_sentences",
    "reference",
    "all_relevant_sentence_keys",
    "all_utilized_sentence_keys",
    "sentence_support_information",
    "unsupported_response_sentence_keys",
    "unasked_keys",
)
"""Columns of RAGBench that a whole row has: the call, and what people said."""


# --- Which calls


class Population(NamedTuple):
    """The calls of EVALS that can be drawn: those with labels and something to ask."""

    size: int
    digest: str
    """sha256 of their sorted row keys, joined by line feeds; 64 hex digits."""

    @classmethod
    def of(cls, row_keys: Iterable[str]) -> Population:
        """Describe the calls that can be drawn; a repeated call counts each time."""
        ordered = sorted(row_keys)
        return cls(len(ordered), hashlib.sha256("\n".join(ordered).encode()).hexdigest())


class Draw(NamedTuple):
    """The draw that a call belongs to."""

    pick: Pick
    n: int | None
    """Number of calls that were to be drawn; None for `single`."""
    seed: int
    population: Population

    def fields(self) -> dict[str, Any]:
        """Return the fields of a line."""
        return self._asdict() | {"population": self.population._asdict()}


def random_order(row_keys: Sequence[str], seed: int) -> list[int]:
    """Return the positions of calls in the order in which a seed draws them.

    The first n are a simple random draw without replacement, whatever n is. The order depends on
    neither the order of the file nor the version of Python.

    Args:
        row_keys: of the calls of a population; of equal ones, the first is drawn first.
        seed: the draw's seed.
    """
    places = sorted(range(len(row_keys)), key=row_keys.__getitem__)
    before, repeat, ranks = None, 0, {}
    for place in places:
        repeat = repeat + 1 if row_keys[place] == before else 0
        before = row_keys[place]
        ranks[place] = hashlib.sha256(f"{seed}:{before}:{repeat}".encode()).digest()
    return sorted(places, key=ranks.__getitem__)


def asked(evaluation: Evaluation) -> list[Sentence]:
    """List what people are asked about a call: its claims, then this turn's document sentences.

    Empty for a call without labels, which is not in the population.
    """
    if evaluation.labels is None or evaluation.error is not None:
        return []
    earlier, sentences = evaluation.earlier, evaluation.sentences
    own = [s for s in sentences.documents if document_number(s.key) not in earlier]
    return [*sentences.claims, *own]


# --- Reading


Answers = Mapping[str, bool]
"""Key → whether a claim is supported, or a document sentence relevant."""


@dataclass
class CallLabels:
    """One person's labels of one call."""

    row_key: str
    id: str
    who: str
    when: str = ""
    """Time of the latest line, ISO 8601 in UTC."""
    answers: dict[str, bool] = field(default_factory=dict)
    """The latest answer to each key."""
    whole: dict[str, Any] | None = None
    """The latest row with all labels; None while some are missing."""
    draws: dict[Draw, dict[str, Any]] = field(default_factory=dict)
    """The draws under which it was labelled whole, in order, each with its latest row."""


class LabelsFile:
    """The answers in a file of people's labels, collected per call and person.

    Args:
        path: the file, also gzipped.

    Raises:
        ConfigurationError, OSError: as for `read_lines`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.calls: dict[tuple[str, str], CallLabels] = {}
        """By row key and person, in the order of their latest lines."""
        self.bad: list[Line[Any]] = []
        for line in read_lines(path, _label_line):
            if line.value is None:
                self.bad.append(line)
            else:
                self._add(*line.value)

    def _add(self, line: _LabelLine, whole: dict[str, Any] | None) -> None:
        """Add a line."""
        where = line.row_key, line.who
        call = self.calls.pop(where, CallLabels(line.row_key, line.id, line.who))
        self.calls[where] = call
        call.when = line.when
        if whole is None:
            call.answers[line.key] = line.label
        else:
            call.whole = whole
            call.draws[Draw(line.pick, line.n, line.seed, line.population)] = whole

    def gold(self) -> dict[str, CallLabels]:
        """Return the labels of each whole call; of several people's, the latest."""
        return {call.row_key: call for call in self.calls.values() if call.whole is not None}

    def partial(self) -> dict[str, CallLabels]:
        """Return the latest labels of each call that nobody has labelled whole."""
        whole = self.gold()
        return {call.row_key: call for call in self.calls.values() if call.row_key not in whole}


def labels_in(path: str | os.PathLike[str]) -> LabelsFile | None:
    """Read a file of people's labels; None for another file, or a folder.

    Raises:
        ConfigurationError, OSError: as for `read_lines`.
    """
    lines = read_lines(path, dict) if os.path.isfile(path) else iter(())
    first = next(lines, None)
    return LabelsFile(path) if first is not None and is_answer(first.value) else None


def is_answer(row: Any) -> bool:
    """Tell whether a row is one answer of a person."""
    return isinstance(row, dict) and {"row_key", "who", "key", "label"} <= row.keys()


def is_whole(row: object) -> bool:
    """Tell whether a row is a call that a person has labelled whole."""
    columns = {"row_key", "who", "unasked_keys", "all_relevant_sentence_keys"}
    return isinstance(row, dict) and columns <= row.keys()


def whole_rows(rows: Numbered) -> Numbered:
    """Yield the rows of a file; of people's labels, only the latest whole row of each call.

    Bad rows are yielded, too. The first row tells: people's labels begin with an answer.
    """
    head = list(islice(rows, 1))
    rows = chain(head, rows)
    if not head or not is_answer(head[0][1]):
        yield from rows
        return
    latest: dict[object, tuple[int, Any]] = {}
    for number, row in rows:
        if not is_answer(row):
            latest[row["row_key"] if is_whole(row) else number] = (number, row)
    yield from sorted(latest.values(), key=itemgetter(0))


class _LabelLine(Record):
    """What each line says, beside the columns of a whole row."""

    model_config = ConfigDict(extra="ignore")

    row_key: Text
    id: Text = ""
    who: Text
    when: Text
    pick: Pick
    n: int | None
    seed: int
    population: Population
    key: Text = ""
    label: StrictBool = False


def _label_line(content: dict[str, Any]) -> tuple[_LabelLine, dict[str, Any] | None]:
    """Validate a line of people's labels; return it, and its content if it is a whole row.

    Raises:
        InputError: it is another, or a field is missing or wrong.
    """
    if not is_answer(content) and not is_whole(content):
        raise InputError("is not a person's label, as `rag-eval review` writes it")
    return from_object(_LabelLine, content), content if is_whole(content) else None


# --- From answers to labels


def labelled_by(evaluation: Evaluation, answers: Answers) -> Labelled:
    """Give a call of EVALS a person's labels in place of the judge's."""
    labelling = Labelling(labels=_labels(evaluation, answers), judge=_PERSON)
    labelled = labelled_from_evaluation(evaluation)
    return Labelled(labelled.call, labelling, row_key=evaluation.row_key)


_PERSON = JudgeInfo(name="recorded", model=PEOPLE)


def _labels(evaluation: Evaluation, answers: Answers) -> Labels:
    """Make the labels of answers; what they leave out is unlabelled."""
    claims = [s.key for s in evaluation.sentences.claims if s.key in answers]
    documents = [sentence.key for sentence in evaluation.sentences.documents]
    verdicts = [
        SentenceSupport(response_sentence_key=key, fully_supported=answers[key]) for key in claims
    ]
    return Labels(
        all_relevant_sentence_keys=tuple([key for key in documents if answers.get(key)]),
        all_utilized_sentence_keys=(),
        sentence_support_information=tuple(verdicts),
        unsupported_response_sentence_keys=tuple([key for key in claims if not answers[key]]),
        unasked_keys=(UTILIZED, SUPPORTING, *[key for key in documents if key not in answers]),
    )


def whole_row(evaluation: Evaluation, answers: Answers) -> dict[str, Any]:
    """Return the row of a call that is labelled whole, without who labelled it and the draw."""
    by_person = {"labels": _labels(evaluation, answers), "judge": _PERSON}
    row = ragbench_row(evaluation.model_copy(update=by_person)) or {}
    history = [turn.model_dump() for turn in evaluation.history]
    more = {"history": history, "earlier": list(evaluation.earlier)}
    return {
        "row_key": evaluation.row_key,
        **{name: row[name] for name in _COLUMNS if name in row},
        **{name: value for name, value in more.items() if value},
    }


# --- Writing


class LabelsWriter:
    """Appends a person's answers to a file, each at once; a context manager.

    Args:
        path: the file; made when absent, for its owner only.
        who: the person.
        draw: what the calls were drawn by.
        field: name of the argument, for errors.
        now: returns the present.

    Raises:
        ConfigurationError: there is something else than people's labels, or another process is
            writing them.
        OSError: the file cannot be read or written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        who: str,
        draw: Draw,
        *,
        field: str = "path",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        target = _target.resolved(path, field)
        self._who, self._draw, self._now = who, draw, now
        try:
            self._file = LineFile(target, new=not target.exists(), wait=False)
        except BlockingIOError:
            why = "is being written by another process; end that first"
            raise ConfigurationError(field, str(path), why) from None
        try:
            head = self._file.head(len(_BEGIN))
            if not _BEGIN.startswith(head):
                why = "holds something else than people's labels; use another name"
                raise ConfigurationError(field, str(path), why)
            self._file.end_last_line(_is_torn)
            labels = LabelsFile(target)
            if labels.bad:
                why = f"holds something else than people's labels: {labels.bad[0].error}"
                raise ConfigurationError(field, str(path), why)
        except BaseException:
            self._file.close()
            raise
        self.calls = {row_key: call for (row_key, by), call in labels.calls.items() if by == who}
        """What the person has labelled, by row key."""

    def answers(self, row_key: str) -> Answers:
        """Return the person's answers about a call so far."""
        call = self.calls.get(row_key)
        return {} if call is None else call.answers

    def answer(self, evaluation: Evaluation, key: str, label: bool) -> None:
        """Append an answer, and the whole row with it once all is answered.

        Raises:
            OSError: the file cannot be written.
        """
        new = CallLabels(evaluation.row_key, evaluation.id, self._who)
        self.calls.setdefault(evaluation.row_key, new).answers[key] = label
        answer = {"row_key": evaluation.row_key, "id": evaluation.id, "key": key, "label": label}
        self._append(answer, *self._whole(evaluation))

    def is_whole(self, evaluation: Evaluation) -> bool:
        """Tell whether a call is labelled whole."""
        answers = self.answers(evaluation.row_key)
        return all(sentence.key in answers for sentence in asked(evaluation))

    def add_to_draw(self, evaluation: Evaluation) -> None:
        """Note that a call which is labelled whole belongs to this draw, too."""
        if self._draw not in self.calls[evaluation.row_key].draws:
            self._append(*self._whole(evaluation))

    def _whole(self, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
        """Yield the whole row of a call; nothing while answers are missing."""
        if self.is_whole(evaluation):
            call = self.calls[evaluation.row_key]
            row = whole_row(evaluation, call.answers)
            call.draws[self._draw] = row
            yield row

    def _append(self, *rows: dict[str, Any]) -> None:
        """Append rows, by one write, so that an answer and its whole row are both there."""
        labeller = {"who": self._who, "when": self._now().isoformat(timespec="seconds")}
        more = labeller | self._draw.fields()
        lines = (json.dumps(row | more, separators=(",", ":")) for row in rows)
        self._file.append("\n".join(lines).encode("ascii"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def _is_torn(line: bytes) -> bool:
    """Tell whether a line without its end is one that a killed process was writing."""
    try:
        json.loads(line)
    except ValueError:
        return line.startswith(_BEGIN) or _BEGIN.startswith(line)
    return False
