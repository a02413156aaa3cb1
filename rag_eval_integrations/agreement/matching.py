"""`match`: joins each predicted row with its gold row; `Gold` and RAGBench's published columns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._json import excerpt, is_finite


class Baseline(NamedTuple):
    """The score that a published column predicts."""

    score: str
    """Name of the score."""
    orientation: Literal["value", "not_adherent"]
    """`value`: the column predicts the score and is compared by RMSE. `not_adherent`: 1 - column
    ranks the rows that are not adherent and is compared by AUROC."""


BASELINE_COLUMNS: Mapping[str, Baseline] = {
    "gpt3_adherence": Baseline("adherence", "not_adherent"),
    "ragas_faithfulness": Baseline("adherence", "not_adherent"),
    "trulens_groundedness": Baseline("adherence", "not_adherent"),
    "gpt3_context_relevance": Baseline("context_relevance", "value"),
    "ragas_context_relevance": Baseline("context_relevance", "value"),
    "trulens_context_relevance": Baseline("context_relevance", "value"),
    "gpt35_utilization": Baseline("context_utilization", "value"),
}
"""Published columns of RAGBench (arXiv:2407.11005, Table 3). `gpt3_adherence` is 0 or 1;
`gpt3_context_relevance` and `gpt35_utilization` exceed 1 where GPT-3.5 listed more keys than
there are sentences, and are compared unchanged, as in the paper."""


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
        return cls(
            evaluation,
            dataset=dataset_of(row),
            baselines={name: _number(row, name) for name in BASELINE_COLUMNS if name in row},
            human=_number(row, human) if human is not None else None,
            document=_name(row, document),
            system=_name(row, system),
        )


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
    """Read a name (document or system) of a row; None if it is not a text or number."""
    value = _field(row, name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


_MOST = 1e50  # the statistics square it


def _number(row: Mapping[str, object], name: str) -> float | None:
    """Read a finite number of a row, such as a human rating; None if it has none."""
    value = _field(row, name)
    if isinstance(value, str):  # of a table
        with suppress(ValueError):
            value = float(value) if value.strip() else None
    if value is None:
        return None
    if not isinstance(value, bool | int | float) or not is_finite(value):
        raise InputError(f"should be a finite number, not {excerpt(value)}", field=name)
    if abs(value) > _MOST:
        raise InputError(f"should be a rating, and {excerpt(value)} is too large", field=name)
    return float(value)


@dataclass(frozen=True)
class Joined:
    """Counts of the rows of two files with a partner, and of those without."""

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
        """The counts, without the pairs."""
        return Joined(
            len(self.pairs),
            self.unmatched_predicted,
            self.unmatched_gold,
            self.joined_by_id,
            self.ambiguous,
        )

    @property
    def unmatched(self) -> int:
        """Rows of either side without a partner."""
        return self.joined.unmatched


def match(predicted: Sequence[Evaluation], gold: Sequence[Gold]) -> Matched:
    """Join rows by `row_key`, and the remaining rows by id.

    Where a key occurs more than once, the k-th predicted row is joined with the k-th gold row.
    """
    partner, counts = joined(predicted, [row.evaluation for row in gold])
    pairs = [(predicted[mine], gold[other]) for mine, other in partner.items()]
    return Matched(
        tuple(
            Pair(mine, of.evaluation, of.dataset, of.baselines, of.human, of.document, of.system)
            for mine, of in pairs
        ),
        counts.unmatched_predicted,
        counts.unmatched_gold,
        counts.joined_by_id,
        counts.ambiguous,
    )


def joined(predicted: Sequence[Any], gold: Sequence[Any]) -> tuple[dict[int, int], Joined]:
    """Join rows by their `row_key`, and the remaining rows by `id`.

    Returns:
        The gold row of each predicted row that has one, and the counts.
    """
    partner: dict[int, int] = {}
    by_key = ambiguous = 0
    for name in ("row_key", "id"):
        by_key = len(partner)
        rows: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for side, of, taken in ((0, predicted, set(partner)), (1, gold, set(partner.values()))):
            for row, item in enumerate(of):
                if row not in taken:
                    rows[getattr(item, name)][side].append(row)
        for own, others in rows.values():
            pairs = dict(zip(own, others, strict=False))  # a surplus stays unmatched
            partner |= pairs
            ambiguous += len(pairs) if max(len(own), len(others)) > 1 else 0
    n = len(partner)
    counts = Joined(n, len(predicted) - n, len(gold) - n, n - by_key, ambiguous)
    return dict(sorted(partner.items())), counts
