"""Tables and notes of `rag-eval agreement`; no table needs more than 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.agreement import Agreement, CascadePoint, Figure, Group
from rag_eval_integrations.cli._terminal import safe, stdout
from rag_eval_integrations.records import Usage
from rag_eval_integrations.report.console import add_row, plain_table

if TYPE_CHECKING:
    from rich.table import Table


# --- Cells and tables: values, intervals, tables that fold, human ratings, cascades


_UNBOUNDED = 10_000
"""Width, in columns, at which a table is measured, so that no cell is folded."""
_LEVELS = {
    "human": "over rows",
    "human_by_document": "within documents",
    "human_by_system": "over systems",
}


def value_of(figure: Figure | None) -> str:
    """Format a value with three decimals; a dash if it is undefined."""
    return "–" if figure is None or figure.value is None else f"{figure.value:.3f}"


def cell_of(figure: Figure | None) -> str:
    """Format a value with its interval, if it has one."""
    if figure is None or figure.interval is None:
        return value_of(figure)
    low, high = figure.interval
    return f"{value_of(figure)} ({low:.3f} to {high:.3f})"


def foldable(title: str, *columns: str) -> Table:
    """Make a plain table whose cells are folded, not cut, if the terminal is too narrow."""
    table = plain_table(title, *columns)
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    return table


def show(tables: Iterable[Table]) -> None:
    """Print tables: in a terminal's width, or as wide as the widest table in a file or pipe."""
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
    """Tabulate agreement with human ratings: one table per level, one row per statistic."""
    tables = []
    for level, over in _LEVELS.items():
        title = f"Agreement with human ratings {over}"
        table = foldable(title, "score", "n>", "statistic", "value (95 % interval)")
        for path, block in group.blocks.items():
            if path[0] != level:
                continue
            for name in ("pearson", "spearman", "kendall", "rmse"):
                figure = block.figures.get(name)
                if figure is not None:
                    add_row(table, path[1], _count(block.counts), name, cell_of(figure))
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
    """Tabulate quality and cost of a cascade: one row per share of calls sent to judge two."""
    if not points:
        return []
    title = "Cascade: quality when the second judge gets the calls where the first is least sure"
    quality = foldable(title, "asked>", "ask_when", *(f"{short}>" for short, *_ in _CURVE))
    title = "Cascade: cost of asking the second judge"
    cost = foldable(title, "asked>", "requests>", "prompt tokens>", "completion tokens>", "cost>")
    for point in points:
        # The mean over data sets, if rows name them: pooled figures mostly reflect the differences
        # between data sets.
        group = point.mean_over_datasets if point.mean_over_datasets.blocks else point.pooled
        cells = [_statistic(group, score, statistic) for _, score, statistic in _CURVE]
        add_row(quality, f"{point.share:.0%}", _band(point), *cells)
        usage = point.usage
        numbers = (usage.requests, usage.prompt_tokens, usage.completion_tokens)
        add_row(cost, f"{point.share:.0%}", *map(str, numbers), _cost(usage))
    return [quality, cost]


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


# --- The output of `rag-eval agreement`


_STATISTICS = {"auroc": "AUROC", "kappa": "κ", "rmse": "RMSE", "f1": "F1"}
_SCORES = (
    ("A AUROC", "adherence", "auroc"),
    ("A κ", "adherence", "kappa"),
    ("R RMSE", "context_relevance", "rmse"),
    ("U RMSE", "context_utilization", "rmse"),
    ("C RMSE", "completeness", "rmse"),
)
"""Short title, score, statistic."""
_SENTENCES = ("relevant", "utilized", "supported", "unsupported", "supporting")
_OF_SENTENCES = ("f1", "auroc", "kappa")
_LEGEND = (
    "A: adherence (AUROC and Cohen's κ for 'not adherent'); R: context_relevance; U:"
    " context_utilization; C: completeness. Sentences: relevant and utilized document sentences;"
    " supported and unsupported response sentences; supporting: pairs of a response sentence and"
    " a document sentence that supports it, which have no probabilities and therefore no AUROC."
)
_BASELINE_NOTE = "The judge's figures next to a baseline are over the same rows."


def print_agreement(found: Agreement, curve: tuple[CascadePoint, ...] = ()) -> None:
    """Print an agreement and, if there is one, the curve of a cascade."""
    humans = human_tables(found.pooled)
    rows = len(found.matched.pairs)
    if humans and not found.formulas:
        show(humans)  # the gold rows have no labels, so there is nothing else to compare
        stdout().print(f"{rows} rows; 95 % intervals by bootstrap.")
        return
    compared = [_scores_by_dataset(found), _scores_with_intervals(found)]
    show([*humans, *compared, *_sentences(found), *_baselines(found), *cascade_tables(curve)])
    used = sorted({str(maker.get("formulas")) for maker in found.formulas.values()} - {"None"})
    console = stdout()
    console.print(_LEGEND, soft_wrap=True)
    if any(path[0] == "baselines" for path in found.pooled.blocks):
        console.print(_BASELINE_NOTE, soft_wrap=True)
    console.print(
        f"{rows} rows; {', '.join(used)} formulas; 95 % intervals by bootstrap "
        "over rows. Pooled AUROC mostly reflects the differences between data sets: compare the "
        "mean over data sets.",
        soft_wrap=True,
    )
    for note in found.notes:
        console.print(safe(note), soft_wrap=True)


def _figure(group: Group, section: str, name: str, statistic: str) -> Figure | None:
    block = group.blocks.get((section, name))
    return block.figures.get(statistic) if block else None


def _groups(found: Agreement) -> Iterator[tuple[str, Group]]:
    yield from found.by_dataset.items()
    if len(found.by_dataset) > 1:
        yield "mean over sets", found.mean_over_datasets
    yield "pooled", found.pooled


def _scores_by_dataset(found: Agreement) -> Table:
    titles = (f"{short}>" for short, *_ in _SCORES)
    table = foldable("Agreement with gold by data set", "data set", "n>", *titles)
    for name, group in _groups(found):
        cells = (value_of(_figure(group, "scores", *where)) for _, *where in _SCORES)
        add_row(table, name, str(group.counts.get("n", "")), *cells)
    return table


def _scores_with_intervals(found: Agreement) -> Table:
    table = foldable("Scores with 95 % intervals", "score", "mean over data sets", "pooled")
    for _, score, statistic in _SCORES:
        add_row(
            table, f"{score} {_STATISTICS[statistic]}", *_cells(found, "scores", score, statistic)
        )
        if statistic == "rmse" and ("estimates", score) in found.pooled.blocks:
            table.add_row("  its estimate RMSE", *_cells(found, "estimates", score, "rmse"))
    return table


def _cells(found: Agreement, section: str, name: str, statistic: str) -> Iterator[str]:
    for group in (found.mean_over_datasets, found.pooled):
        yield cell_of(_figure(group, section, name, statistic))


def _sentences(found: Agreement) -> Iterator[Table]:
    """Yield one table per statistic, by data set, then one of all statistics with intervals."""
    for statistic in _OF_SENTENCES:
        title = f"Sentences by data set: {_STATISTICS[statistic]}"
        table = foldable(title, "data set", *(f"{kind}>" for kind in _SENTENCES))
        for name, group in _groups(found):
            cells = (value_of(_figure(group, "keys", kind, statistic)) for kind in _SENTENCES)
            add_row(table, name, *cells)
        yield table
    title = "Sentences with 95 % intervals"
    table = foldable(title, "sentences", "statistic", "mean over data sets", "pooled")
    for kind in _SENTENCES:
        for statistic in _OF_SENTENCES:
            if (kind, statistic) != ("supporting", "auroc"):
                figures = _cells(found, "keys", kind, statistic)
                add_row(table, kind, _STATISTICS[statistic], *figures)
    yield table


def _baselines(found: Agreement) -> Iterator[Table]:
    """Yield one table per score: each baseline's figure next to the judge's on the same rows."""
    # A mean over data sets needs rows that name their data set.
    mean = found.mean_over_datasets if found.by_dataset else found.pooled
    over = "mean over data sets" if found.by_dataset else "pooled"
    scores = dict.fromkeys(path[2] for path in mean.blocks if path[0] == "baselines")
    for score in scores:
        name = _STATISTICS["auroc" if score == "adherence" else "rmse"]
        title = f"Baselines: {score} {name}, {over}"
        table = foldable(title, "baseline", "baseline's", "judge's")
        for baseline, theirs, own in _against(mean, score):
            add_row(table, baseline, cell_of(theirs), cell_of(own))
        yield table
        if len(found.by_dataset) > 1:
            title = f"Baselines: {score} {name} by data set"
            table = foldable(title, "data set", "baseline", "baseline's>", "judge's>")
            for dataset, group in (*found.by_dataset.items(), ("pooled", found.pooled)):
                for baseline, theirs, own in _against(group, score):
                    add_row(table, dataset, baseline, value_of(theirs), value_of(own))
                table.add_section()
            yield table


def _against(group: Group, score: str) -> Iterator[tuple[str, Figure, Figure | None]]:
    for path, block in group.blocks.items():
        if path[0] != "baselines" or path[2] != score:
            continue
        for name, figure in block.figures.items():
            if not name.startswith("judge_"):
                own = block.figures.get(f"judge_{name}") or _figure(group, "scores", score, name)
                yield path[1], figure, own
