"""A table of `BatchEvalRunner`'s results in which an unscored item is not a zero.

LlamaIndex's own `get_results_df` counts a missing score as 0, and needs pandas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llama_index.core.evaluation.base import EvaluationResult


@dataclass(frozen=True)
class MetricRow:
    """One evaluator's results over all items."""

    metric: str
    n: int
    """Items."""
    scored: int
    """Items with a score."""
    mean: float | None
    """Mean over the scored items; None when none is."""
    passed: int | None
    """Items that passed; None when the evaluator gave no verdict on any."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Why items have no score → how many."""


def results_table(results: Mapping[str, Sequence[EvaluationResult]]) -> list[MetricRow]:
    """Sum up the results of each evaluator; `pandas.DataFrame(rows)` makes a data frame of it.

    Args:
        results: evaluator name → results, as `BatchEvalRunner` returns them; of any evaluators.
    """
    return [_row(name, items) for name, items in results.items()]


def _row(name: str, items: Sequence[EvaluationResult]) -> MetricRow:
    scores = [item.score for item in items if item.score is not None]
    verdicts = [item.passing for item in items if item.passing is not None]
    reasons = Counter(_reason(item) for item in items if item.score is None)
    return MetricRow(
        metric=name,
        n=len(items),
        scored=len(scores),
        mean=sum(scores) / len(scores) if scores else None,
        passed=sum(verdicts) if verdicts else None,
        unscored=dict(reasons.most_common()),
    )


def _reason(item: EvaluationResult) -> str:
    # Ours begin with a code; the words after it differ from item to item.
    return (item.invalid_reason or "no score").partition(":")[0]
