"""Figures as the command line shows them: a value, an interval, a table of a human's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_eval_integrations.agreement import Figure, Group
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
