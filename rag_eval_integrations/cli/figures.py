"""Figures as the command line shows them: a value, an interval, a table of a human's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.agreement import CascadePoint, Figure, Group
from rag_eval_integrations.cli.terminal import safe
from rag_eval_integrations.report.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table

_LEVELS = {
    "human": "rows",
    "human_by_document": "within documents",
    "human_by_system": "systems",
}


def value_of(figure: Figure | None) -> str:
    """Write a value; a dash where it is undefined."""
    return "–" if figure is None or figure.value is None else f"{figure.value:.3f}"


def cell_of(figure: Figure | None) -> str:
    """Write a value with its interval."""
    if figure is None or figure.interval is None:
        return value_of(figure)
    low, high = figure.interval
    return f"{value_of(figure)} ({low:.3f} to {high:.3f})"


def human_table(group: Group) -> Table | None:
    """Tabulate scores against a human's numbers: one row a score and level; None without any."""
    names = ("pearson", "spearman", "kendall", "rmse")
    table = plain_table("Agreement with the human's numbers", "score", "over", "n>", *names)
    for path, block in group.blocks.items():
        if path[0] not in _LEVELS:
            continue
        cells = [cell_of(block.figures.get(name)) for name in names]
        table.add_row(safe(path[1]), _LEVELS[path[0]], _count(block.counts), *cells)
    return table if table.row_count else None


def _count(counts: Mapping[str, int]) -> str:
    if "documents" in counts:
        return f"{counts['documents']} ({counts['skipped']} skipped)"
    return str(counts.get("systems", counts.get("n", 0)))


_CURVE = (
    ("A AUROC", "adherence", "auroc"),
    ("R RMSE", "context_relevance", "rmse"),
    ("U RMSE", "context_utilization", "rmse"),
    ("C RMSE", "completeness", "rmse"),
)


def cascade_table(points: Sequence[CascadePoint]) -> Table:
    """Tabulate what a cascade costs and is worth: one row a share of calls asked of the second."""
    title = "Cascade: the second judge is asked where the first is least sure"
    table = plain_table(
        title, "asked>", "ask_when", "requests>", *(f"{short}>" for short, *_ in _CURVE)
    )
    for point in points:
        # Where rows name data sets, their mean: pooled figures mostly say which set a row is of.
        group = point.mean_over_datasets if point.mean_over_datasets.blocks else point.pooled
        cells = [_statistic(group, score, statistic) for _, score, statistic in _CURVE]
        table.add_row(f"{point.share:.0%}", _band(point), str(point.usage.requests), *cells)
    return table


def _statistic(group: Group, score: str, statistic: str) -> str:
    block = group.blocks.get(("scores", score))
    return value_of(None if block is None else block.figures.get(statistic))


def _band(point: CascadePoint) -> str:
    if point.band is None:
        return "never" if point.share == 0 else "no probability"
    return f"({max(0.0, 0.5 - point.band):.3f}, {min(1.0, 0.5 + point.band):.3f})"
