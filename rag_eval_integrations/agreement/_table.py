"""A table of matched rows as numbers, and `Joining`, which fills one while files are read.

predicted rows ─▶ numbers, marks ─▶ wait for their gold row ─▶ compared ─▶ a row of the table
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from rag_eval_integrations.agreement._marks import Keys, Marks, marks_of, packed, unpacked
from rag_eval_integrations.agreement._side import NONE, Codes, Kept, Numbers, Rows, Side, kept_of
from rag_eval_integrations.agreement.matching import (
    Gold,
    GoldFields,
    Joined,
    Pair,
    joined_of,
    positions,
)
from rag_eval_integrations.agreement.published import BASELINE_COLUMNS
from rag_eval_integrations.records import Evaluation


def _codes() -> array[int]:
    return array("i")


@dataclass
class Others:
    """The other fields of gold rows, in columns."""

    names: Codes[str | None] = field(default_factory=Codes)
    dataset: array[int] = field(default_factory=_codes)
    document: array[int] = field(default_factory=_codes)
    system: array[int] = field(default_factory=_codes)
    human: Numbers = field(default_factory=lambda: array("d"))
    baselines: dict[str, Numbers] = field(default_factory=dict)

    def add(self, row: Gold | GoldFields | Pair) -> None:
        """Take up a row's fields."""
        self.dataset.append(self.names.code(row.dataset))
        self.document.append(self.names.code(row.document))
        self.system.append(self.names.code(row.system))
        self.human.append(NONE if row.human is None else row.human)
        for name, value in row.baselines.items():
            if value is not None and name in BASELINE_COLUMNS:
                column = self.baselines.setdefault(name, array("d"))
                column.extend([NONE] * (len(self.human) - 1 - len(column)))
                column.append(value)

    def take(self, rows: Rows) -> Others:
        """Return the fields of these rows, in this order."""
        dataset, document, system = (
            array("i", [column[row] for row in rows])
            for column in (self.dataset, self.document, self.system)
        )
        baselines = {
            name: array("d", [column[row] if row < len(column) else NONE for row in rows])
            for name, column in self.baselines.items()
        }
        human = array("d", [self.human[row] for row in rows])
        return Others(self.names, dataset, document, system, human, baselines)


@dataclass
class Table:
    """Matched rows as numbers."""

    predicted: Side
    gold: Side
    others: Others
    keys: Keys
    appearance: array[int]
    """All rows, in the order in which they appear on the predicted side."""
    ordered: array[int]
    """All rows, in an order that does not depend on it: by `row_key`, then by id."""
    questions: Sequence[bytes]
    """Digests of the questions; empty where they were not asked for."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.appearance)

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Table:
        """Make the table of pairs that are in memory, in their order."""
        table = cls(Side(), Side(), Others(), Keys(), array("q"), array("q"), [])
        names, questions = [], []
        for row, pair in enumerate(pairs):
            table.predicted.add(pair.predicted)
            table.gold.add(pair.gold)
            table.others.add(pair)
            table.keys.add(marks_of(pair.predicted), marks_of(pair.gold))
            table.appearance.append(row)
            names.append((pair.predicted.row_key, pair.predicted.id))
            questions.append(digest_of(pair.predicted.question))
        table.ordered = array("q", sorted(range(len(names)), key=names.__getitem__))
        table.questions = questions
        table.others = table.others.take(range(len(names)))
        return table

    def dataset(self, row: int) -> str | None:
        """Return the data set of a row."""
        return self.others.names.values[self.others.dataset[row]]

    def human(self, row: int) -> float | None:
        """Return the human rating of a row."""
        number = self.others.human[row]
        return None if number != number else number


class Part(NamedTuple):
    """Some rows of a table, in an order: all, or those of a data set."""

    table: Table
    rows: Rows

    def by_dataset(self) -> dict[str, Part]:
        """Part the rows by their data sets, in alphabetical order; some rows have none."""
        found: dict[str, array[int]] = {}
        for row in self.rows:
            name = self.table.dataset(row)
            if name is not None:
                found.setdefault(name, array("q")).append(row)
        return {name: Part(self.table, found[name]) for name in sorted(found)}


def ordered(pairs: Iterable[Pair]) -> Part:
    """Make the rows of pairs that are in memory, in an order that does not depend on theirs."""
    table = Table.of(pairs)
    return Part(table, table.ordered)


def digest_of(question: str) -> bytes:
    """Return what stands for a question."""
    return sha256(question.encode("utf-8", "replace")).digest()


class Row(NamedTuple):
    """What is kept of an evaluation while its partner is sought."""

    id: str
    row_key: str
    question: str
    kept: Kept
    marks: Marks | None


def row_of(evaluation: Evaluation) -> Row:
    """Return what is kept of an evaluation."""
    return Row(
        evaluation.id, evaluation.row_key, evaluation.question, kept_of(evaluation),
        marks_of(evaluation),
    )  # fmt: skip


class _Waiting(NamedTuple):
    """A gold row without a partner so far."""

    row: int
    row_key: str
    id: str
    marks: Marks | None


class Joining:
    """Joins gold rows to predicted ones as they are read; see `match`, whose result it has.

    First all predicted rows, then gold's. Of each, numbers are kept, and labels until they are
    compared.
    """

    def __init__(self, *, questions: bool = False) -> None:
        self._predicted, self._gold, self._others = Side(), Side(), Others()
        self._keys = Keys()
        self._names: list[tuple[str, str]] = []
        self._marks: list[bytes | None] = []
        self._questions: list[bytes] | None = [] if questions else None
        self._by_key: dict[str, int] = {}
        """The row of each key that has one; -1 where it has its partner."""
        self._many: dict[str, deque[int]] = {}
        """The rows of each key that has several, without those that have a partner."""
        self._waiting: list[_Waiting] = []
        self._left, self._right = array("q"), array("q")

    @property
    def predicted(self) -> int:
        """Number of predicted rows."""
        return self._predicted.size

    @property
    def gold(self) -> int:
        """Number of gold rows."""
        return self._gold.size

    @property
    def rated(self) -> bool:
        """Whether a gold row has a human rating."""
        return any(number == number for number in self._others.human)

    def add_predicted(self, evaluation: Evaluation) -> None:
        """Take up a predicted row."""
        self.put_predicted(row_of(evaluation))

    def put_predicted(self, one: Row) -> None:
        """Take up what is kept of a predicted row."""
        row, key = self._predicted.put(one.kept), one.row_key
        self._names.append((key, one.id))
        self._marks.append(None if one.marks is None else packed(one.marks))
        if self._questions is not None:
            self._questions.append(digest_of(one.question))
        first = self._by_key.setdefault(key, row)
        if first != row:
            self._many.setdefault(key, deque([first])).append(row)

    def add_gold(self, gold: Gold) -> None:
        """Take up a gold row, and compare it if its partner is known."""
        self.put_gold(row_of(gold.evaluation), gold)

    def put_gold(self, one: Row, others: Gold | GoldFields) -> None:
        """Take up what is kept of a gold row, and compare it if its partner is known."""
        row, key, marks = self._gold.put(one.kept), one.row_key, one.marks
        self._others.add(others)
        several = self._many.get(key)
        if several is not None:
            partner = several.popleft() if several else -1
        else:
            partner = self._by_key.get(key, -1)
        if partner < 0:
            self._waiting.append(_Waiting(row, key, one.id, marks))
            return
        if several is None:
            self._by_key[key] = -1
        self._join(partner, row, marks)

    def _join(self, predicted: int, gold: int, marks: Marks | None) -> None:
        self._left.append(predicted)
        self._right.append(gold)
        ours = self._marks[predicted]
        self._keys.add(None if ours is None else unpacked(ours), marks)
        self._marks[predicted] = None

    def joined(self) -> tuple[Table, Joined]:
        """Join the rows that are left by their ids; return the table and what was counted."""
        again = {one.row_key for one in self._waiting}
        ambiguous = sum(
            self._names[row][0] in self._many or self._names[row][0] in again for row in self._left
        )
        by_id, ambiguous_ids = self._by_id()
        for predicted, waiting in by_id:
            self._join(predicted, waiting.row, waiting.marks)
        left = self._left
        counts = Joined(
            len(left), self.predicted - len(left), self.gold - len(left), len(by_id),
            ambiguous + ambiguous_ids,
        )  # fmt: skip
        names = [self._names[row] for row in left]
        table = Table(
            self._predicted.take(left),
            self._gold.take(self._right),
            self._others.take(self._right),
            self._keys,
            array("q", sorted(range(len(left)), key=left.__getitem__)),
            array("q"),
            [self._questions[row] for row in left] if self._questions is not None else [],
        )
        # Those with equal names stay in the order in which they appear.
        table.ordered = array("q", sorted(table.appearance, key=names.__getitem__))
        return table, counts

    def row_keys(self) -> list[str]:
        """List the predicted `row_key` of each row of the table."""
        return [self._names[row][0] for row in self._left]

    def _by_id(self) -> tuple[list[tuple[int, _Waiting]], int]:
        """Pair the rows of both sides that no `row_key` joined; count the ambiguous ones."""
        taken = bytearray(self.predicted)
        for row in self._left:
            taken[row] = 1
        partner, ambiguous = joined_of(
            positions((row for row in range(self.predicted) if not taken[row]),
                      lambda row: self._names[row][1]),
            positions(range(len(self._waiting)), lambda at: self._waiting[at].id),
        )  # fmt: skip
        return [(row, self._waiting[partner[row]]) for row in sorted(partner)], ambiguous
