"""`Figures` and `Group`: statistics with 95 % intervals, for a set of rows or a mean over sets.

One function serves pooled rows and single data sets, so that only their rows differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from rag_eval_integrations.agreement._bootstrap import Draws, Figure, mean_figure
from rag_eval_integrations.agreement._resampled import Block, Blocks, Path

Json = dict[str, JsonValue]


@dataclass(frozen=True)
class Figures:
    """The figures of one comparison, such as of one score."""

    counts: Mapping[str, int]
    """`n` and other numbers of rows."""
    figures: Mapping[str, Figure]
    """Figure by name of the statistic; its value is None where it is undefined on these rows."""
    sets: Mapping[str, int] | None = None
    """For a mean over data sets, the number of sets in which each statistic is defined."""

    def to_json(self) -> Json:
        """Return counts, values, and `ci95` with the intervals of the statistics that have one."""
        content: Json = {**self.counts}
        content |= {name: figure.value for name, figure in self.figures.items()}
        if self.sets is not None:
            content["sets"] = {**self.sets}
        content["ci95"] = {
            name: list(figure.interval)
            for name, figure in self.figures.items()
            if figure.interval is not None
        }
        return content


@dataclass(frozen=True)
class Group:
    """All figures of one data set, of all rows, or of the mean over data sets."""

    counts: Mapping[str, int]
    """`n` pairs and `keys_skipped`, the rows without comparable keys; `datasets` for a mean."""
    blocks: Mapping[Path, Figures]
    """Figures by path: `("scores", NAME)`, `("estimates", NAME)`, `("keys", KIND)`,
    `("baselines", NAME, SCORE)`, `("human", NAME)`, `("human_by_document", NAME)`,
    `("human_by_system", NAME)`."""

    def to_json(self) -> Json:
        """Return the blocks nested by their paths."""
        content: Json = {**self.counts, "scores": {}, "keys": {}}
        for section in dict.fromkeys(path[0] for path in self.blocks):
            content[section] = _nested(
                {path[1:]: figures for path, figures in self.blocks.items() if path[0] == section}
            )
        return content


def _nested(blocks: Mapping[Path, Figures]) -> Json:
    content: Json = {}
    for name in dict.fromkeys(path[0] for path in blocks):
        inner = {path[1:]: block for path, block in blocks.items() if path[0] == name}
        content[name] = inner[()].to_json() if () in inner else _nested(inner)
    return content


def figures_of(
    blocks: Blocks | Iterable[tuple[Path, Block]], rows: int, resamples: int, seed: str
) -> dict[Path, Figures]:
    """Compute all statistics of a group with their intervals, on the same draws of its rows.

    Blocks that an iterator makes one by one are let go one by one.
    """
    draws = Draws(rows, resamples, seed)
    counts: dict[Path, tuple[Mapping[str, int], list[str]]] = {}
    for path, block in blocks.items() if isinstance(blocks, dict) else blocks:
        draws.add({(path, name): statistic for name, statistic in block.statistics.items()})
        counts[path] = block.counts, list(block.statistics)
    figures = draws.figures((path, name) for path, (_, names) in counts.items() for name in names)
    return {
        path: Figures(of, {name: figures[path, name] for name in names})
        for path, (of, names) in counts.items()
    }


def mean_over(groups: Sequence[Group]) -> Group:
    """Compute the unweighted mean of each statistic over the groups where it is defined."""
    paths = dict.fromkeys(path for group in groups for path in group.blocks)
    blocks = {}
    for path in paths:
        present = [group.blocks[path].figures for group in groups if path in group.blocks]
        names = dict.fromkeys(name for figures in present for name in figures)
        columns = {
            name: [figures[name] for figures in present if name in figures] for name in names
        }
        blocks[path] = Figures(
            counts={},
            figures={name: mean_figure(column) for name, column in columns.items()},
            sets={
                name: sum(figure.value is not None for figure in column)
                for name, column in columns.items()
            },
        )
    return Group({"datasets": len(groups)}, blocks)
