"""Figures as the command line shows them: a value, an interval, tables of a human's and a cascade.

Each table fits 80 columns; what does not is folded, never cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.agreement import CascadePoint, Figure, Group
from rag_eval_integrations.cli.terminal import safe, stdout
from rag_eval_integrations.records import Usage
from rag_eval_integrations.report.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table

_UNBOUNDED = 10_000
"""Columns to measure a table in, so that none of its cells is folded."""
_LEVELS = {
    "human": "over rows",
    "human_by_document": "within documents",
    "human_by_system": "over systems",
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


def foldable(title: str, *columns: str) -> Table:
    """Make a plain table whose cells are folded where the terminal is too narrow, not cut."""
    table = plain_table(title, *columns)
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    return table


def show(tables: Iterable[Table]) -> None:
    """Print tables: to a terminal in its width, else as wide as the widest table needs."""
    from rich.measure import Measurement  # noqa: PLC0415  # costs 0.1 s

    console = stdout()
    tables = list(tables)
    if not sys.stdout.isatty():
        room = console.options.update(width=_UNBOUNDED)
        needed = [Measurement.get(console, room, table).maximum for table in tables]
        console.width = max(console.width, *needed, 1)
    for table in tables:
        console.print(table)


def human_tables(group: Group) -> list[Table]:
    """Tabulate scores against a human's numbers: a table a level, a row a score and statistic."""
    tables = []
    for level, over in _LEVELS.items():
        title = f"Agreement with the human's numbers: {over}"
        table = foldable(title, "score", "n>", "statistic", "with 95 % interval")
        for path, block in group.blocks.items():
            if path[0] != level:
                continue
            for name in ("pearson", "spearman", "kendall", "rmse"):
                figure = block.figures.get(name)
                if figure is not None:
                    table.add_row(safe(path[1]), _count(block.counts), name, cell_of(figure))
            table.add_section()
        if table.row_count:
            tables.append(table)
    return tables


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


def cascade_tables(points: Sequence[CascadePoint]) -> list[Table]:
    """Tabulate what a cascade is worth and costs: one row a share of calls asked of the second."""
    if not points:
        return []
    title = "Cascade: the second judge is asked where the first is least sure"
    worth = foldable(title, "asked>", "ask_when", *(f"{short}>" for short, *_ in _CURVE))
    title = "Cascade: what asking the second judge cost"
    cost = foldable(title, "asked>", "requests>", "prompt tokens>", "completion tokens>", "cost>")
    for point in points:
        # Where rows name data sets, their mean: pooled figures mostly say which set a row is of.
        group = point.mean_over_datasets if point.mean_over_datasets.blocks else point.pooled
        cells = [_statistic(group, score, statistic) for _, score, statistic in _CURVE]
        worth.add_row(f"{point.share:.0%}", _band(point), *cells)
        usage = point.usage
        numbers = (usage.requests, usage.prompt_tokens, usage.completion_tokens)
        cost.add_row(f"{point.share:.0%}", *map(str, numbers), _cost(usage))
    return [worth, cost]


def _cost(usage: Usage) -> str:
    if usage.requests and usage.cost_usd is None:
        return "unknown"
    return f"${usage.cost_usd or 0:.4f}"


def _statistic(group: Group, score: str, statistic: str) -> str:
    block = group.blocks.get(("scores", score))
    return value_of(None if block is None else block.figures.get(statistic))


def _band(point: CascadePoint) -> str:
    if point.band is None:
        return "never" if point.share == 0 else "no probability"
    return f"({max(0.0, 0.5 - point.band):.3f}, {min(1.0, 0.5 + point.band):.3f})"
