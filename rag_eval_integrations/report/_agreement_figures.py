"""Which figures of an agreement are shown, and how they are written: on terminals and on pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rag_eval_integrations.agreement import Agreement, CascadePoint, Figure, Group
from rag_eval_integrations.records import Usage

STATISTICS = {"auroc": "AUROC", "kappa": "κ", "rmse": "RMSE", "f1": "F1"}


class ShownStatistic(NamedTuple):
    """A statistic of a score that stands for its agreement."""

    score: str
    statistic: str

    @property
    def title(self) -> str:
        """The name of the score and that of the statistic."""
        return f"{self.score} {STATISTICS[self.statistic]}"


SCORES = (
    ShownStatistic("adherence", "auroc"),
    ShownStatistic("adherence", "kappa"),
    ShownStatistic("context_relevance", "rmse"),
    ShownStatistic("context_utilization", "rmse"),
    ShownStatistic("completeness", "rmse"),
)
CURVE = tuple(score for score in SCORES if score.statistic != "kappa")
"""Figures of a cascade."""
SENTENCES = ("relevant", "utilized", "supported", "unsupported", "supporting")
OF_SENTENCES = ("f1", "auroc", "kappa")
SENTENCE_LINES = [
    (kind, statistic, ("keys", kind, statistic))
    for kind in SENTENCES
    for statistic in OF_SENTENCES
    if (kind, statistic) != ("supporting", "auroc")
]
"""Figures of sentences: kind, statistic, and where it is in a group."""
LEVELS = {
    "human": "over rows",
    "human_by_document": "within documents",
    "human_by_system": "over systems",
}
OF_HUMANS = ("pearson", "spearman", "kendall", "rmse")
LEGEND = (
    "adherence: AUROC and Cohen's κ for 'not adherent'. Sentences: relevant and utilized document"
    " sentences; supported and unsupported response sentences; supporting: pairs of a response"
    " sentence and a document sentence that supports it, which have no probabilities and so no"
    " AUROC."
)
BASELINE_NOTE = "The judge's figures next to a baseline are over the same rows."
POOLED_NOTE = (
    "Pooled AUROC mostly reflects the differences between data sets: compare the mean over data"
    " sets."
)


def value_of(figure: Figure | None) -> str:
    """Format a value with three decimals; a dash if it is undefined."""
    return "–" if figure is None or figure.value is None else f"{figure.value:.3f}"


def interval_of(figure: Figure | None) -> str:
    """Write an interval; empty where there is none, or where it has no width to show."""
    low, high = (f"{end:.3f}" for end in (figure and figure.interval) or (0.0, 0.0))
    return f"{low} to {high}" if low != high else ""


def several(agreement: Agreement) -> bool:
    """Tell whether the rows are of several data sets, which have a mean."""
    return len(agreement.by_dataset) > 1


def figure_of(group: Group, *where: str) -> Figure | None:
    """Look up a figure by the path of its block and its name; None if there is none."""
    block = group.blocks.get(where[:-1])
    return block.figures.get(where[-1]) if block else None


def groups_of(agreement: Agreement) -> Iterator[tuple[str, Group]]:
    """Yield the data sets, the mean over several of them, and all rows, each with its name."""
    yield from agreement.by_dataset.items()
    if several(agreement):
        yield "mean over sets", agreement.mean_over_datasets
    yield "pooled", agreement.pooled


def formulas_of(agreement: Agreement) -> str:
    """Name the formulas of the scores that are compared, sorted; empty without any."""
    used = {str(maker.get("formulas")) for maker in agreement.formulas.values()} - {"None"}
    return ", ".join(sorted(used))


def humans_only(agreement: Agreement) -> bool:
    """Tell whether the gold rows have a human's ratings and no labels."""
    return not agreement.formulas and any(path[0] in LEVELS for path in agreement.pooled.blocks)


def count_of(counts: Mapping[str, int]) -> str:
    """Format the number of rows, documents or systems behind agreement with human ratings.

    Documents come with the number of skipped ones.
    """
    if "documents" in counts:
        return f"{counts['documents']} ({counts['skipped']} skipped)"
    return str(counts.get("systems", counts.get("n", 0)))


def lines_of(agreement: Agreement) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the figures of scores: score, statistic, and where it is in a group.

    An estimate follows the RMSE of its score, where there is one.
    """
    for score, statistic in SCORES:
        yield score, statistic, ("scores", score, statistic)
        if statistic == "rmse" and ("estimates", score) in agreement.pooled.blocks:
            yield score, statistic, ("estimates", score, statistic)


def human_tables(group: Group) -> Iterator[tuple[str, list[tuple[str, str, list[Figure | None]]]]]:
    """Yield the tables of agreement with human ratings: title, and a row per score.

    A row has the score, its count, and the figures of `OF_HUMANS`. Tables without rows are left
    out.
    """
    for level, over in LEVELS.items():
        rows = [
            (path[1], count_of(block.counts), [*map(block.figures.get, OF_HUMANS)])
            for path, block in group.blocks.items()
            if path[0] == level
        ]
        if rows:
            yield f"Agreement with human ratings {over}", rows


class Rival(NamedTuple):
    """A baseline beside the judge, on the same rows."""

    group: str
    """Data set, or `pooled`."""
    name: str
    theirs: Figure
    own: Figure | None


def baselines_of(agreement: Agreement) -> Iterator[tuple[str, str, list[Rival], list[Rival]]]:
    """Yield of each score with baselines its statistic, the rivals, and these by data set.

    The last list is empty unless the rows are of several data sets.
    """
    # A mean over data sets needs rows that name their data set.
    group = agreement.mean_over_datasets if agreement.by_dataset else agreement.pooled
    parts = {**agreement.by_dataset, "pooled": agreement.pooled} if several(agreement) else {}
    for score in dict.fromkeys(path[2] for path in group.blocks if path[0] == "baselines"):
        by_dataset = [rival for name, part in parts.items() for rival in _rivals(name, part, score)]
        statistic = "auroc" if score == "adherence" else "rmse"
        yield score, statistic, list(_rivals("", group, score)), by_dataset


def _rivals(name: str, group: Group, score: str) -> Iterator[Rival]:
    """Yield each baseline of a score in a group, beside the judge's figure."""
    for path, block in group.blocks.items():
        if path[0] == "baselines" and path[2] == score:
            for statistic, figure in block.figures.items():
                if not statistic.startswith("judge_"):
                    own = block.figures.get(f"judge_{statistic}")
                    own = own or figure_of(group, "scores", score, statistic)
                    yield Rival(name, path[1], figure, own)


def group_of(point: CascadePoint) -> Group:
    """Return the group of a cascade's point that is shown.

    That is the mean over data sets, if rows name them: pooled figures mostly reflect the
    differences between data sets.
    """
    return point.mean_over_datasets if point.mean_over_datasets.blocks else point.pooled


def curve_cells(point: CascadePoint) -> list[str]:
    """Write the figures of a cascade's point, in the order of `CURVE`.

    A dash for one that is undefined.
    """
    group = group_of(point)
    return [value_of(figure_of(group, "scores", *where)) for where in CURVE]


def band_of(point: CascadePoint) -> str:
    """Write when the second judge is asked, as `ask_when` of `CascadeJudge` takes it.

    An interval of probabilities; without one, `never` if no call is passed on, else `no
    probability, or doubt`.
    """
    if point.band is None:
        return "no probability, or doubt" if point.share else "never"
    return f"({max(0.0, 0.5 - point.band):.3f}, {min(1.0, 0.5 + point.band):.3f})"


def cost_of(usage: Usage) -> str:
    """Write what requests cost in US dollars; `unknown` where no price is known."""
    if usage.requests and usage.cost_usd is None:
        return "unknown"
    return f"${usage.cost_usd or 0:.4f}"
