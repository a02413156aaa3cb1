"""`match`: joins each predicted row with its gold row."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag_eval_integrations.agreement.published import BASELINE_COLUMNS
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._json import is_finite, shown


@dataclass(frozen=True)
class Gold:
    """A gold row: its scores and labels as an `Evaluation`, and other fields for comparison."""

    evaluation: Evaluation
    dataset: str | None = None
    """Data set of the row; None when the row does not name one."""
    baselines: Mapping[str, float | None] = field(default_factory=dict)
    """Published predictions by column (`BASELINE_COLUMNS`), unchanged and not clipped."""
    human: float | None = None
    """A human's rating, on any scale."""
    document: str | None = None
    """Name of the document that the response is about, where several systems wrote about it."""
    system: str | None = None
    """Name of the system that wrote the response."""

    @classmethod
    def from_row(
        cls,
        evaluation: Evaluation,
        row: Mapping[str, object],
        *,
        human: str | None = None,
        document: str = "doc_id",
        system: str = "system_id",
    ) -> Gold:
        """Read data set, published columns and a human's rating from a row's other fields.

        Args:
            evaluation: the row's scores and labels.
            row: the row's other fields.
            human: field that holds the rating; a dot leads into an object (`expert.coherence`).
            document: field that names the document.
            system: field that names the system.

        Raises:
            InputError: a published column or the field `human` is not a finite number.
        """
        fields = GoldFields.of(row, human=human, document=document, system=system)
        return cls(evaluation, **fields._asdict())


class GoldFields(NamedTuple):
    """The fields of a `Gold` without its evaluation."""

    dataset: str | None
    baselines: Mapping[str, float | None]
    human: float | None
    document: str | None
    system: str | None

    @classmethod
    def of(
        cls, row: Mapping[str, object], *, human: str | None, document: str, system: str
    ) -> GoldFields:
        """Read them as `Gold.from_row` does."""
        return cls(
            dataset=dataset_of(row),
            baselines={name: _number(row, name) for name in BASELINE_COLUMNS if name in row},
            human=_number(row, human) if human is not None else None,
            document=_name(row, document),
            system=_name(row, system),
        )


def dataset_of(row: Mapping[str, object]) -> str | None:
    """Return the name of a row's data set, without its split; None when the row does not name one.

    RAGBench's `dataset_name` holds both (`hagrid_validation`); `dataset` is used unchanged.
    """
    name = row.get("dataset")
    if isinstance(name, str) and name:
        return name
    name = row.get("dataset_name")
    if isinstance(name, str) and name:
        return re.sub(r"_(train|validation|test)$", "", name)
    return None


def _field(row: Mapping[str, object], name: str) -> object:
    """Look up a field by its whole name, or else by the parts between its dots."""
    if name in row:
        return row.get(name)
    first, _, rest = name.partition(".")
    inner = row.get(first)
    return _field(inner, rest) if isinstance(inner, Mapping) else None


def _name(row: Mapping[str, object], name: str) -> str | None:
    value = _field(row, name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


_MOST = 1e50  # the statistics square it


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = _field(row, name)
    if value is None:
        return None
    if not isinstance(value, bool | int | float) or not is_finite(value):
        raise InputError(f"should be a finite number, not {shown(value)}", field=name)
    if abs(value) > _MOST:
        raise InputError(f"should be a rating, and {shown(value)} is too large", field=name)
    return float(value)


@dataclass(frozen=True)
class Pair:
    """One call with the judge's evaluation and the gold one; other fields as in `Gold`."""

    predicted: Evaluation
    gold: Evaluation
    dataset: str | None = None
    baselines: Mapping[str, float | None] = field(default_factory=dict)
    human: float | None = None
    document: str | None = None
    system: str | None = None


@dataclass(frozen=True)
class Joined:
    """The numbers of rows of two files that have a partner, and of those that have none."""

    rows: int
    """Number of pairs."""
    unmatched_predicted: int = 0
    """Predicted rows without a gold row."""
    unmatched_gold: int = 0
    """Gold rows without a predicted row."""
    joined_by_id: int = 0
    """Pairs whose calls differ in content (`row_key`) and were joined by their id."""
    ambiguous: int = 0
    """Pairs whose key (`row_key` or id) occurs more than once; joined in order of appearance."""

    @property
    def unmatched(self) -> int:
        """Rows of either side without a partner."""
        return self.unmatched_predicted + self.unmatched_gold


@dataclass(frozen=True)
class Matched:
    """The pairs of two files, in the order of the predicted rows, and counts of the other rows."""

    pairs: tuple[Pair, ...]
    unmatched_predicted: int = 0
    """Predicted rows without a gold row."""
    unmatched_gold: int = 0
    """Gold rows without a predicted row."""
    joined_by_id: int = 0
    """Pairs whose calls differ in content (`row_key`) and were joined by their id."""
    ambiguous: int = 0
    """Pairs whose key (`row_key` or id) occurs more than once; joined in order of appearance."""

    @property
    def joined(self) -> Joined:
        """The numbers alone."""
        return Joined(
            len(self.pairs), self.unmatched_predicted, self.unmatched_gold, self.joined_by_id,
            self.ambiguous,
        )  # fmt: skip

    @property
    def unmatched(self) -> int:
        """Rows of either side without a partner."""
        return self.joined.unmatched


def match(predicted: Sequence[Evaluation], gold: Sequence[Gold]) -> Matched:
    """Join rows by `row_key`, and the remaining rows by id.

    Where a key occurs more than once, the k-th predicted row is joined with the k-th gold row.
    """
    left: Iterable[int] = range(len(predicted))
    right: Iterable[int] = range(len(gold))
    partner, ambiguous = joined_of(
        positions(left, lambda i: predicted[i].row_key),
        positions(right, lambda i: gold[i].evaluation.row_key),
    )
    taken = set(partner.values())
    by_id, ambiguous_ids = joined_of(
        positions((i for i in left if i not in partner), lambda i: predicted[i].id),
        positions((i for i in right if i not in taken), lambda i: gold[i].evaluation.id),
    )
    partner |= by_id
    return Matched(
        pairs=tuple(_pair(predicted[i], gold[partner[i]]) for i in sorted(partner)),
        unmatched_predicted=len(predicted) - len(partner),
        unmatched_gold=len(gold) - len(partner),
        joined_by_id=len(by_id),
        ambiguous=ambiguous + ambiguous_ids,
    )


def positions(rows: Iterable[int], key: Callable[[int], str]) -> dict[str, list[int]]:
    """Collect the rows of each key, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def joined_of(
    left: Mapping[str, list[int]], right: Mapping[str, list[int]]
) -> tuple[dict[int, int], int]:
    """Join the k-th row of each key with the other side's; count those with a key of several."""
    partner: dict[int, int] = {}
    ambiguous = 0
    for key, rows in left.items():
        others = right.get(key, [])
        joined = dict(zip(rows, others, strict=False))  # a surplus on either side stays unmatched
        partner |= joined
        if max(len(rows), len(others)) > 1:
            ambiguous += len(joined)
    return partner, ambiguous


def _pair(predicted: Evaluation, gold: Gold) -> Pair:
    return Pair(
        predicted, gold.evaluation, gold.dataset, gold.baselines, gold.human, gold.document,
        gold.system,
    )  # fmt: skip
