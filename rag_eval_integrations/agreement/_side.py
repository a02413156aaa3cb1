"""The numbers of one side: what is kept of an evaluation once it was read, in columns.

Reasons, evidence, texts and explanations are let go; what many rows share is kept once (`Codes`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, eq
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from rag_eval_integrations.agreement._summing import numpy_for
from rag_eval_integrations.judges.cascade import CASCADE_FLAGS, DOUBT
from rag_eval_integrations.records import By, Evaluation, JudgeInfo, Score, Usage

T = TypeVar("T", bound=Hashable)
N = TypeVar("N", int, float)
Numbers: TypeAlias = "array[float]"
Rows = Sequence[int]
"""Rows of a table, by their numbers."""

NONE = math.nan
"""Stands for None in a column of numbers; no record holds a NaN."""


class Codes(Generic[T]):
    """Numbers for the different values of a column, from 0 in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._codes: dict[T, int] = {}

    def code(self, value: T, recent: int = 0) -> int:
        """Return the number of a value, which is often that of the row before."""
        # To compare two values takes a quarter of the time that it takes to hash one.
        if recent < len(self.values) and self.values[recent] == value:
            return recent
        found = self._codes.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


BY_FIELDS = tuple(By.model_fields)
maker_by: Callable[[By], tuple[str | int | None, ...]] = attrgetter(*BY_FIELDS)


class Maker(NamedTuple):
    """Everything about a score that many rows share."""

    method: str | None
    scale: tuple[float, float] | None
    estimator: str | None
    """Method of its estimate; None where it has none."""
    by: tuple[str | int | None, ...]

    def of(self, name: str) -> str | int | None:
        """Return a field of `by`."""
        return self.by[BY_FIELDS.index(name)]

    @classmethod
    def made(cls, score: Score) -> Maker:
        estimator = None if score.estimate is None else score.estimate.method
        return cls(score.method, score.scale, estimator, maker_by(score.by))


class Origin(NamedTuple):
    """Everything about an evaluation that many rows share."""

    judge: JudgeInfo
    fingerprint: str | None
    part: str | None
    """Judge of a cascade that labelled; None outside of a cascade."""
    doubted: bool
    """Whether the judge doubts its labels."""


class Kept(NamedTuple):
    """What a side keeps of an evaluation, before it is put into columns."""

    scores: list[tuple[str, Maker, float | None, float | None, float | None, float | None]]
    """Name, maker, value, probability, estimate and raw value of each score.

    A raw value that is the value, on a scale of 0 to 1, is left out."""
    origin: Origin
    length: int
    listed: int
    usage: tuple[int, int, int]
    cost: float | None


class ScoreColumns:
    """One score of all rows; a column that no row needs stays empty."""

    def __init__(self) -> None:
        self.value, self.probability, self.estimate, self.raw = (array("d") for _ in range(4))
        self.maker = array("i")
        """Number of the maker; -1 where a row has no such score."""

    def number(self, column: Numbers, row: int) -> float:
        """Look up a number; NaN stands for none."""
        return column[row] if row < len(column) else NONE


def _put(column: Any, row: int, value: float | None, missing: float = NONE) -> None:
    """Write a value into its row of an array, and what stands for none into those before it."""
    if value is not None:
        if len(column) < row:
            column.extend(array(column.typecode, [missing]) * (row - len(column)))
        column.append(value)


@dataclass
class Side:
    """The evaluations of one judge, or of gold."""

    size: int = 0
    scores: dict[str, ScoreColumns] = field(default_factory=dict)
    makers: Codes[Maker] = field(default_factory=Codes)
    origins: Codes[Origin] = field(default_factory=Codes)
    origin: array[int] = field(default_factory=lambda: array("i"))
    shapes: Codes[tuple[str, ...]] = field(default_factory=Codes)
    """Names of the scores of a row, in order."""
    shape: array[int] = field(default_factory=lambda: array("i"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    """Characters of the response; -1 where there is none."""
    listed: bytearray = field(default_factory=bytearray)
    """Of each row: 0 without labels, 1 with relevant and utilized keys, 2 without one of them."""
    usages: array[int] = field(default_factory=lambda: array("q"))
    """Requests, prompt tokens and completion tokens of each row."""
    costs: Numbers = field(default_factory=lambda: array("d"))

    def add(self, evaluation: Evaluation) -> int:
        """Take up an evaluation; return its row."""
        return self.put(kept_of(evaluation))

    def put(self, kept: Kept) -> int:
        """Take up what is kept of an evaluation; return its row."""
        row = self.size
        self.size += 1
        names = []
        for name, maker, value, probability, estimate, raw in kept.scores:
            names.append(name)
            columns = self.scores.get(name)
            if columns is None:
                columns = self.scores[name] = ScoreColumns()
            makers = columns.maker
            recent = makers[-1] if makers else 0
            _put(makers, row, self.makers.code(maker, recent), -1)
            _put(columns.value, row, value)
            if probability is not None:
                _put(columns.probability, row, probability)
            if estimate is not None:
                _put(columns.estimate, row, estimate)
            if raw is not None:
                _put(columns.raw, row, raw)
        self.shape.append(self.shapes.code(tuple(names)))
        self.origin.append(self.origins.code(kept.origin, self.origin[-1] if row else 0))
        self.lengths.append(kept.length)
        self.listed.append(kept.listed)
        self.usages.extend(kept.usage)
        _put(self.costs, row, kept.cost)
        return row

    def usage(self, row: int) -> Usage:
        """Return what an evaluation has cost."""
        requests, prompt, completion = self.usages[3 * row : 3 * row + 3]
        cost = self.costs[row] if row < len(self.costs) else NONE
        return Usage(
            requests=requests,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=None if math.isnan(cost) else cost,
        )

    def names(self, rows: Iterable[int]) -> list[str]:
        """List the names of the scores of some rows, in order of appearance."""
        shapes = dict.fromkeys(map(self.shape.__getitem__, rows))
        return list(dict.fromkeys(name for code in shapes for name in self.shapes.values[code]))

    def maker(self, name: str, row: int) -> Maker | None:
        """Return what the makers of a row's score share; None where the row has no such score."""
        columns = self.scores.get(name)
        code = -1 if columns is None or row >= len(columns.maker) else columns.maker[row]
        return None if code < 0 else self.makers.values[code]

    def number(self, name: str, column: str, row: int) -> float | None:
        """Look up one number of a score; None where there is none."""
        columns = self.scores.get(name)
        found = NONE if columns is None else columns.number(getattr(columns, column), row)
        return None if found != found else found

    def numbers(self, name: str, column: str, rows: Rows) -> Numbers:
        """Take a column of some rows."""
        columns = self.scores.get(name)
        held: Numbers = array("d") if columns is None else getattr(columns, column)
        return _taken(held, rows, NONE)

    def make_up(self, name: str, rows: Rows) -> array[int]:
        """Take the numbers of the makers of some rows' scores; -1 for no such score."""
        columns = self.scores.get(name)
        return _taken(array("i") if columns is None else columns.maker, rows, -1)

    def take(self, rows: Rows) -> Side:
        """Return a side of these rows, in this order; itself if they are all rows as they are."""
        if len(rows) == self.size and all(map(eq, rows, range(self.size))):
            return self
        taken = {}
        for name, columns in self.scores.items():
            taken[name] = ScoreColumns()
            for one, missing in _COLUMNS.items():
                column: Any = getattr(columns, one)
                setattr(taken[name], one, _taken(column, rows, missing) if column else column)
        usages = array("q")
        for row in rows:
            usages.extend(self.usages[3 * row : 3 * row + 3])
        return Side(
            len(rows), taken, self.makers, self.origins, _taken(self.origin, rows, -1),
            self.shapes, _taken(self.shape, rows, -1), _taken(self.lengths, rows, -1),
            bytearray(map(self.listed.__getitem__, rows)), usages,
            _taken(self.costs, rows, NONE) if self.costs else self.costs,
        )  # fmt: skip

    def mixed(self, other: Side, rows: Rows) -> Side:
        """Return the values and probabilities of both: of these rows, those of the other side."""
        shape, shapes = self.shape[:], Codes[tuple[str, ...]]()
        for value in self.shapes.values:
            shapes.code(value)
        for row in rows:
            shape[row] = shapes.code(other.shapes.values[other.shape[row]])
        found = {}
        for name in {**self.scores, **other.scores}:
            found[name] = ScoreColumns()
            for one in ("value", "probability"):
                column = self.numbers(name, one, range(self.size))
                for row, number in zip(rows, other.numbers(name, one, rows), strict=True):
                    column[row] = number
                setattr(found[name], one, column)
        return Side(self.size, found, shapes=shapes, shape=shape)


_COLUMNS: Mapping[str, Any] = {
    "value": NONE, "probability": NONE, "estimate": NONE, "raw": NONE, "maker": -1,
}  # fmt: skip


def kept_of(evaluation: Evaluation) -> Kept:
    """Return what a side keeps of an evaluation."""
    usage, labels = evaluation.usage, evaluation.labels
    scores = [
        (
            name,
            Maker.made(score),
            score.value,
            score.probability,
            None if score.estimate is None else score.estimate.value,
            raw_of(score.raw, score.value, score.scale),
        )
        for name, score in evaluation.scores.items()
    ]
    listed = 0
    if labels is not None:
        listed = listed_of(labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys)
    return Kept(
        scores,
        origin_of(evaluation.judge, evaluation.fingerprint, evaluation.flags),
        -1 if evaluation.response is None else len(evaluation.response),
        listed,
        (usage.requests, usage.prompt_tokens, usage.completion_tokens),
        usage.cost_usd,
    )


UNIT = (0.0, 1.0)


def raw_of(
    raw: float | None, value: float | None, scale: tuple[float, float] | None
) -> float | None:
    """Leave out a raw value that says no more than the value."""
    return None if raw == value and scale == UNIT else raw


def listed_of(relevant: Sequence[str], utilized: Sequence[str]) -> int:
    """Tell whether labels have keys of both kinds; see `Side.listed`."""
    return 1 if relevant and utilized else 2


def origin_of(judge: JudgeInfo, fingerprint: str | None, flags: Sequence[str]) -> Origin:
    """Return what many evaluations share."""
    part = next((flag for flag in CASCADE_FLAGS if flag in flags), None)
    doubted = any(flag.startswith(DOUBT) for flag in flags)
    return Origin(judge, fingerprint, part, doubted)


def _taken(column: array[N], rows: Rows, missing: N) -> array[N]:
    """Take some rows of an array, which may end before them."""
    if not column:
        return array(column.typecode, [missing]) * len(rows)
    end = len(column)
    found = column[:0]
    numpy = numpy_for(len(rows))
    if numpy is not None:
        places = numpy.asarray(rows, "i8")
        held = numpy.frombuffer(column, column.typecode)
        taken = held[numpy.minimum(places, end - 1)]
        taken[places >= end] = missing
        found.frombytes(taken.tobytes())
        return found
    found.extend([column[row] if row < end else missing for row in rows])
    return found
