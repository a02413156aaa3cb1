"""Which figures of an agreement are shown, and how they are written: on terminals and on pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rag_eval_integrations._visible import counted
from rag_eval_integrations.agreement import Agreement, CascadePoint, Figure, Group
from rag_eval_integrations.agreement.matching import BASELINE_COLUMNS
from rag_eval_integrations.records import Usage

STATISTICS = {"auroc": "AUROC", "kappa": "κ", "rmse": "RMSE", "f1": "F1"} | {
    name: name for name in ("precision", "recall")
}


class ShownStatistic(NamedTuple):
    """A statistic of a score that stands for its agreement."""

    score: str
    statistic: str

    @property
    def title(self) -> str:
        """The name of the score and that of the statistic."""
        return f"{self.score} {STATISTICS[self.statistic]}"


SCORES = (
    ShownStatistic("adherence", "precision"),
    ShownStatistic("adherence", "recall"),
    ShownStatistic("adherence", "auroc"),
    ShownStatistic("adherence", "kappa"),
    ShownStatistic("context_relevance", "rmse"),
    ShownStatistic("context_utilization", "rmse"),
    ShownStatistic("completeness", "rmse"),
)
CURVE = tuple(score for score in SCORES if score.statistic in ("auroc", "rmse"))
"""Figures of a cascade."""
SENTENCES = ("unsupported", "supported", "relevant", "utilized", "supporting")
SENTENCE_LINES = [
    (kind, statistic, ("keys", kind, statistic))
    for kind in SENTENCES
    for statistic in ("precision", "recall", "f1", "auroc", "kappa")
    # Those of `supported` are those of `unsupported`, and pairs have no probabilities.
    if (kind, statistic)
    not in (("supported", "auroc"), ("supported", "kappa"), ("supporting", "auroc"))
]
"""Figures of sentences: kind, statistic, and where it is in a group."""


def _of_sentences(statistic: str) -> list[ShownStatistic]:
    """List the figures of sentences by one statistic, such as `recall`."""
    return [ShownStatistic(kind, name) for kind, name, _ in SENTENCE_LINES if name == statistic]


BY_DATASET = (
    ("Scores", "scores", [score for score in SCORES if score.statistic != "kappa"]),
    *((name, "keys", _of_sentences(name)) for name in ("precision", "recall", "auroc")),
)
"""Tables by data set: title, where the figures are in a group, and their names."""
LEVELS = {
    "human": "over rows",
    "human_by_document": "within documents",
    "human_by_system": "over systems",
}
OF_HUMANS = ("pearson", "spearman", "kendall", "rmse")
LEGEND = (
    "adherence: its figures but RMSE are of answers that are not adherent. Sentences: relevant and"
    " utilized ones of documents; supported and unsupported ones of answers; supporting: pairs of"
    " both. Constant: flags all of them, or says the data set's mean. Length: flags the longest, as"
    " many as the judge."
)
POOLED_NOTE = "Pooled AUROC mostly tells data sets apart: compare the mean over data sets."


_TOLD = (
    (("scores", "adherence"), "answer", "unsupported"),
    (("keys", "unsupported"), "answer sentence", "unsupported"),
    (("keys", "relevant"), "document sentence", "relevant"),
)
"""What is told in words first: where it is in a group, a thing, and its verdict."""


def first_sentences(agreement: Agreement, gold: str, judge: str = "the judge") -> list[str]:
    """Say what a judge finds, what two trivial baselines find, and in how many calls they differ.

    Args:
        agreement: the figures.
        gold: whose verdicts count as right: `people`, or a name.
        judge: who is compared with them.
    """
    blocks = agreement.pooled.blocks
    told = [
        verdict_words(blocks[where].counts, thing, verdict, gold, judge)
        for where, thing, verdict in _TOLD
        if where in blocks and blocks[where].counts["n"]
    ]
    if longest := blocks.get(("baselines", "response_length", "adherence")):
        n, bad, flagged, right = (longest.counts[name] for name in ("n", *_COUNTS))
        of_all = f"Of all {counted(n, 'answer')}, {gold} {_calls(gold)} {bad:,} unsupported"
        told.insert(1, f"{of_all}; of the {flagged:,} longest, {right:,}.")
        both, differing = f"{judge[:1].upper()}{judge[1:]} and {gold}", agreement.differing
        told.append(f"{both} differ on the answer in {counted(differing, 'call')} of {n:,}.")
    return told


_COUNTS = ("positives", "flagged", "right")


def verdict_words(
    counts: Mapping[str, int], thing: str, verdict: str, gold: str, judge: str
) -> str:
    """Say how many of gold's verdicts the judge gives, too, and how many of its own are right.

    Args:
        counts: `positives` of gold, `flagged` by the judge, and `right` of these.
        thing: what has the verdict, in the singular.
        verdict: the verdict, such as `unsupported`.
        gold: as for `first_sentences`.
        judge: likewise.
    """
    positives, flagged, right = (counts[name] for name in _COUNTS)
    its = "its" if judge == "the judge" else f"{judge}'s"
    flags, alarm = ("flags", "alarm") if verdict == "unsupported" else ("finds", "find")
    hits = f"Of {counted(positives, thing)} that {gold} {_calls(gold)} {verdict}, {judge} {flags}"
    are = "is" if right == 1 else "are"
    return f"{hits} {right:,}; of {its} {counted(flagged, alarm)}, {right:,} {are} right."


def _calls(gold: str) -> str:
    return "call" if gold == "people" else "calls"


def gold_of(agreement: Agreement) -> str:
    """Name who labelled the gold rows: `gold` for a model, else `people`."""
    return "gold" if agreement.gold_models else "people"


def value_of(figure: Figure | None) -> str:
    """Format a value with three decimals; a dash if it is undefined."""
    return "–" if figure is None or figure.value is None else f"{figure.value:z.3f}"


def interval_of(figure: Figure | None) -> str:
    """Write the ends of an interval; empty without one, or if both read the same."""
    low, high = (f"{end:.3f}" for end in (figure and figure.interval) or (0.0, 0.0))
    return f"{low} to {high}" if low != high else ""


def several(agreement: Agreement) -> bool:
    """Tell whether there are several data sets, so that a mean over them is shown."""
    return len(agreement.by_dataset) > 1


def figure_of(group: Group, *where: str) -> Figure | None:
    """Look up a figure by the path of its block and its name; None if there is none."""
    block = group.blocks.get(where[:-1])
    return block.figures.get(where[-1]) if block else None


def beside(group: Group, kind: str, name: str, statistic: str) -> list[Figure | None]:
    """Look up the same figure of the two trivial baselines, constant and length."""
    baselines = {"scores": "baselines", "keys": "key_baselines"}.get(kind, "")
    length = "response_length" if kind == "scores" else "sentence_length"
    return [figure_of(group, baselines, rival, name, statistic) for rival in ("constant", length)]


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
    """Yield where the figures of scores stand: score, statistic, and path in a group.

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
    """A published baseline beside the judge, on the same rows."""

    name: str
    theirs: Figure
    own: Figure | None


def baselines_of(agreement: Agreement) -> Iterator[tuple[str, str, list[Rival]]]:
    """Yield of each score with published baselines its statistic and the rivals."""
    # A mean over data sets needs rows that name their data set.
    group = agreement.mean_over_datasets if agreement.by_dataset else agreement.pooled
    rivals: dict[str, list[Rival]] = {}
    for name, baseline in BASELINE_COLUMNS.items():
        statistic = "auroc" if baseline.score == "adherence" else "rmse"
        where = "baselines", name, baseline.score
        if theirs := figure_of(group, *where, statistic):
            rival = Rival(name, theirs, figure_of(group, *where, f"judge_{statistic}"))
            rivals.setdefault(baseline.score, []).append(rival)
    for score, of_score in rivals.items():
        yield score, "auroc" if score == "adherence" else "rmse", of_score


def group_of(point: CascadePoint) -> Group:
    """Return the figures of a cascade's point to show: the mean over data sets, or pooled.

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
