"""`agree`: compares a judge with gold, pooled, per data set, and as the mean over data sets.

Pooled figures mislead where data sets differ: the AUROC of the response's length alone is .69
pooled over RAGBench's sets but .56 within them. Compare judges by the mean over data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._provenance import (
    NOBODY,
    Makers,
    Provenance,
    check_one_predictor,
    check_one_provenance,
)
from rag_eval_integrations.agreement._statistics import Array, Places, Statistic, cells_of
from rag_eval_integrations.agreement._table import (
    RESPONSE,
    Compared,
    KeyCounts,
    Row,
    Table,
    column,
)
from rag_eval_integrations.agreement.figures import (
    RESAMPLES,
    SEED,
    Block,
    Curves,
    Group,
    Json,
    Path,
    curves_from,
    figures_of,
    mean_over,
)
from rag_eval_integrations.agreement.levels import human_figures
from rag_eval_integrations.agreement.matching import BASELINE_COLUMNS, Joined, Matched, Pair
from rag_eval_integrations.errors import ConfigurationError

ADHERENCE = "adherence"


# --- Scores


def score_blocks(table: Table) -> Iterator[tuple[Path, Block]]:
    """Compute the statistics of every score that both sides have."""
    for name in table.names():
        rows = table.compared(name)
        if name == ADHERENCE:
            yield ("scores", name), _adherence(table, rows)
        else:
            yield ("scores", name), _continuous(rows.predicted, rows.gold, rows.places)


def _estimate_blocks(table: Table) -> Iterator[tuple[Path, Block]]:
    """Compute the statistics of the estimates beside the predicted values.

    An estimate is compared with gold's estimate, which another run has, or with its value. Where
    one row of a score has estimates, the value stands for those that are missing: it has none in
    the empty cases of the formulas. Adherence is left out: its AUROC is of its estimate already.
    """
    for name in table.names():
        rows = table.compared(name)
        predicted, gold = (
            column(side, name, "estimate")[rows.places.rows]
            for side in (table.predicted, table.gold)
        )
        if name != ADHERENCE and not np.isnan(predicted).all():
            xs, ys = _fill_missing(predicted, rows.predicted), _fill_missing(gold, rows.gold)
            yield ("estimates", name), _continuous(xs, ys, rows.places)


def _fill_missing(numbers: Array, others: Array) -> Array:
    """Replace missing numbers by those of another column."""
    return np.where(np.isnan(numbers), others, numbers)


def _continuous(xs: Array, ys: Array, places: Places) -> Block:
    """Compare two columns of numbers: RMSE and correlations."""
    errors = {"rmse": statistics.rmse(xs, ys, places)}
    return Block({"n": len(xs)}, errors | statistics.correlations(xs, ys, places))


def _adherence(table: Table, rows: Compared) -> Block:
    """Compare adherence: RMSE, AUROC of not adherent responses, and their yes/no statistics."""
    positive, places = not_adherent(rows), rows.places
    figures = {
        "rmse": statistics.rmse(rows.predicted, rows.gold, places),
        "auroc": statistics.auroc(_hallucination_scores(table, rows), positive, places),
    }
    cells = _cells_by_row(rows.predicted == 0, positive, places)
    return _verdict_block(cells, len(rows.gold), figures)


def _cells_by_row(flagged: Array, positive: Array, places: Places) -> Array:
    """Count the tp, fp, fn and tn of each row: an array with a line per cell."""
    return np.array([places.spread(cell) for cell in statistics.cells_of(flagged, positive)])


def _verdict_block(cells: Array, n: int, figures: Mapping[str, Statistic], **more: int) -> Block:
    """Make the block of yes/no verdicts: counts of positives, alarms and hits, and statistics."""
    right, false, missed, _ = (int(count) for count in cells.sum(axis=1))
    counts = {"n": n, "positives": right + missed, "flagged": right + false, "right": right, **more}
    names = "precision", "recall", "f1", "kappa"
    return Block(counts, {**figures, **statistics.of_cells(cells, n, *names)})


def not_adherent(rows: Compared) -> Array:
    """Tell for each row whether gold calls it not adherent, the positive class."""
    return rows.gold == 0


def _hallucination_scores(table: Table, rows: Compared) -> Array:
    """Return the judge's confidence in "not adherent": 1 - `probability`, else 1 - `value`."""
    probabilities = column(table.predicted, rows.name, "probability")[rows.places.rows]
    return 1 - _fill_missing(probabilities, rows.predicted)


# --- Sentences: relevant, utilized, supporting, supported, unsupported keys


_KINDS = ("relevant", "utilized", "supporting", "supported", "unsupported")


def _key_blocks(table: Table) -> Iterator[tuple[Path, Block]]:
    """Compute the statistics of all kinds of keys, and of the trivial baselines beside them.

    Each block is micro-averaged: its counts are summed over the sentences of all rows. `n` is the
    number of rows, less those of people who were not asked. A response sentence that either side
    left unlabelled has no verdict to compare: it is counted as `unlabelled`, not as unsupported.
    """
    for kind in _KINDS:
        # Of unsupported sentences, yes and no change places.
        swapped = kind == "unsupported"
        own = "supported" if swapped else kind
        cells = np.array([row.counts.get(own, np.zeros(4)) for row in table.keys]).reshape(-1, 4).T
        cells = cells[::-1] if swapped else cells
        n, counts = sum(own in row.counts for row in table.keys), {}
        if own == "supported":
            counts["unlabelled"] = sum(row.unlabelled for row in table.keys)
        figures = {}
        scores, positive, places = table.items(own)
        if len(scores):
            if swapped:
                scores, positive = -scores, ~positive
            figures["auroc"] = statistics.clustered_auroc(scores, positive, places)
            # Reported, because a judge need not give probabilities for every row.
            counts["auroc_n"] = figures["auroc"].rows
        yield ("keys", kind), _verdict_block(cells, n, figures, **counts)
        lengths, positive, places = table.items(f"{own} length")
        # The longer, the likelier relevant or unsupported.
        ordered = (-lengths if kind == "supported" else lengths), positive ^ swapped, places
        trivial = _trivial_verdicts(cells, n, *ordered, statistics.clustered_auroc)
        for name, of_name in zip(("constant", "sentence_length"), trivial, strict=False):
            yield ("key_baselines", name, kind), of_name


# --- Baselines that a judge has to beat: RAGBench's published columns, a constant, length


def _published_blocks(table: Table, left_out: Mapping[str, str]) -> Iterator[tuple[Path, Block]]:
    """Compare the published columns that the rows have with gold."""
    for name, baseline in BASELINE_COLUMNS.items():
        rows = table.compared(baseline.score)
        published = np.array([row.baselines.get(name) for row in table.gold], "f8")[
            rows.places.rows
        ]
        known = ~np.isnan(published)
        if name in left_out or not known.any():
            continue
        rows, published = rows.some(known), published[known]
        if baseline.orientation == "not_adherent":
            published, judge = 1 - published, _hallucination_scores(table, rows)
        else:
            judge = rows.predicted
        figures, own = _against_gold(rows, published), _against_gold(rows, judge)
        figures |= {f"judge_{name}": statistic for name, statistic in own.items()}
        yield ("baselines", name, baseline.score), Block({"n": len(rows.gold)}, figures)


def _trivial_blocks(table: Table) -> Iterator[tuple[Path, Block]]:
    """Compare two trivial baselines of the scores with gold: a constant, and response length.

    The constant is the gold mean of the row's data set (the worth of knowing only the data set); of
    adherence it flags every response. The longer a response, the likelier not adherent.
    """
    for name in table.names():
        rows = table.compared(name)
        n, places = len(rows.gold), rows.places
        if name != ADHERENCE:
            figures = _against_gold(rows, _dataset_means(table, rows))
            yield ("baselines", "constant", name), Block({"n": n}, figures)
            continue
        responses = [table.predicted[row].response or "" for row in places.rows]
        items = np.array([len(response) for response in responses]), not_adherent(rows), places
        cells = _cells_by_row(rows.predicted == 0, *items[1:])
        trivial = _trivial_verdicts(cells, n, *items, statistics.auroc)
        for baseline, block in zip(("constant", "response_length"), trivial, strict=False):
            yield ("baselines", baseline, name), block


def _trivial_verdicts(
    cells: Array, n: int, lengths: Array, positive: Array, places: Places, auroc: _Auroc
) -> Iterator[Block]:
    """Yield the verdict blocks of two baselines: flag every item, or only the longest.

    The second flags as many as the judge, and needs lengths, which pairs of sentences lack.
    """
    right, false, missed, spared = cells
    every = np.array([right + missed, false + spared, 0 * right, 0 * right])
    constant = auroc(np.zeros(len(lengths)), positive, places)
    yield _verdict_block(every, n, {"auroc": constant} if len(lengths) else {})
    if len(lengths):
        longest = np.zeros(len(lengths), bool)
        longest[np.argsort(-lengths, kind="stable")[: int((right + false).sum())]] = True
        figures = {"auroc": auroc(lengths, positive, places)}
        yield _verdict_block(_cells_by_row(longest, positive, places), n, figures)


_Auroc = Callable[[Array, Array, Places], Statistic]


def _against_gold(rows: Compared, predictions: Array) -> dict[str, Statistic]:
    """Compute the AUROC of not adherent rows, for adherence; the RMSE for other scores."""
    if rows.name == ADHERENCE:
        return {"auroc": statistics.auroc(predictions, not_adherent(rows), rows.places)}
    return {"rmse": statistics.rmse(predictions, rows.gold, rows.places)}


def _dataset_means(table: Table, rows: Compared) -> Array:
    """Return for each row the mean gold score of its data set."""
    datasets = [table.gold[row].dataset for row in rows.places.rows]
    groups = np.array([dataset or "" for dataset in datasets])
    means = np.zeros(len(groups))
    for dataset in np.unique(groups):
        own = groups == dataset
        means[own] = statistics.exact_sum(rows.gold[own]) / own.sum()
    return means


def _incomparable_columns(provenance: Mapping[str, Provenance]) -> dict[str, str]:
    """Map each published column that cannot be compared with these scores to the reason why."""
    reasons = {}
    for name, baseline in BASELINE_COLUMNS.items():
        maker = provenance.get(baseline.score)
        if maker is None:
            continue
        formulas, normaliser = maker["formulas"], maker["relevance_baseline"]
        # The published utilization is |U|/T; relevance is |R|/T under both formula sets.
        why = None
        if baseline.score == "context_utilization" and formulas != "ragbench":
            why = "|U|/T (formulas 'ragbench')", f"formulas {formulas!r}"
        if baseline.score == "context_relevance" and normaliser is not None:
            why = "a share of all sentences", f"relevance_baseline {normaliser}"
        if why is not None:
            reasons[name] = (
                f"{name} is left out: it is {why[0]}, but {baseline.score} was computed with"
                f" {why[1]}"
            )
    return reasons


# --- The calls in which judge and gold differ


_MOST = 50


class Difference(NamedTuple):
    """A call on which the verdicts of judge and gold differ, on the answer or its sentences."""

    gravity: float
    """How sure the judge was of the sentence, else the answer, that it was most wrong about, in
    [0, 1]; 1 without a probability."""
    row: Row
    """The judge's row."""
    supported: Mapping[int, bool]
    """Response sentences with other verdicts, by their places, and whether gold supports them."""
    adherent: bool | None
    """Gold's verdict on the whole answer, where the judge's is another."""


def _differences(table: Table) -> tuple[int, tuple[Difference, ...]]:
    """Count the calls in which judge and gold differ on the answer, and list the gravest."""
    sides = zip(table.predicted, table.gold, table.keys, strict=True)
    differences = [difference for row in sides if (difference := _difference(*row))]

    def rank(difference: Difference) -> tuple[float, int]:
        """Rank by the gravest error; among equals, by how much was missed."""
        return difference.gravity, sum(not yes for yes in difference.supported.values())

    return len(differences), tuple(nlargest(_MOST, differences, key=rank))


def _difference(mine: Row, other: Row, keys: KeyCounts) -> Difference | None:
    """Compare the verdicts of a row; None where they are the same."""
    errors: list[float] = []
    supported: dict[int, bool] = {}
    if keys.same == RESPONSE and mine.marks and other.marks:
        judge, gold = mine.marks, other.marks
        places = np.flatnonzero(judge.labelled & gold.labelled & (judge.full != gold.full))
        supported = dict(zip(places.tolist(), gold.full[places].tolist(), strict=True))
        said, right = judge.full[places].astype("f8"), gold.full[places].astype("f8")
        chances = judge.probabilities.get("supported", judge.full.astype("f8"))[places]
        errors += np.abs(_fill_missing(chances, said) - right).tolist()
    ours, theirs = (row.scores.get(ADHERENCE) for row in (mine, other))
    adherent = None
    if ours and theirs and ours.value != theirs.value and None not in (ours.value, theirs.value):
        adherent = theirs.value == 1
        chance = ours.value if ours.probability is None else ours.probability
        errors = errors or [abs((chance or 0) - (theirs.value or 0))]
    return Difference(max(errors), mine, supported, adherent) if errors else None


# --- People beside each other


class BetweenPeople(NamedTuple):
    """How two people agree on the sentences that both have labelled."""

    people: tuple[str, str]
    kind: str
    """`supported` or `relevant`."""
    n: int
    """Number of sentences."""
    same: float
    """Share of them with the same label."""
    kappa: float | None
    """Cohen's; None where both gave the same label throughout."""

    def __str__(self) -> str:
        first, second = self.people
        kappa = "–" if self.kappa is None else f"{self.kappa:.3f}"
        return (
            f"People: {first} and {second}, {self.kind}: {self.n:,} sentences labelled by both, "
            f"{self.same:.0%} the same, κ {kappa}"
        )


def between_people(
    labels: Mapping[tuple[str, str], Mapping[str, bool]],
) -> Iterator[BetweenPeople]:
    """Compare people's labels of the same sentences, each pair of people for itself.

    Args:
        labels: call and person → key → label.
    """
    by_person: dict[str, dict[tuple[str, str], bool]] = {}
    for (call, who), answers in labels.items():
        sentences = {(call, key): label for key, label in answers.items()}
        by_person.setdefault(who, {}).update(sentences)
    for pair in combinations(sorted(by_person), 2):
        first, second = (by_person[who] for who in pair)
        for kind in ("supported", "relevant"):
            is_document = kind == "relevant"
            both = [s for s in first if s in second and s[1][:1].isdigit() == is_document]
            first_labels = np.array([first[s] for s in both], bool)
            cells = cells_of(first_labels, np.array([second[s] for s in both], bool))
            kappa = statistics.of_cells(cells, len(both), "kappa")["kappa"].value
            if both:
                same = float(cells[0].sum() + cells[3].sum()) / len(both)
                yield BetweenPeople(pair, kind, len(both), same, kappa)


@dataclass(frozen=True)
class Agreement:
    """The agreement of a judge with gold."""

    matched: Joined
    pooled: Group
    by_dataset: Mapping[str, Group]
    """Figures per data set, in alphabetical order; rows without a data set are in `pooled` only."""
    mean_over_datasets: Group
    """Unweighted means of `by_dataset`."""
    formulas: Mapping[str, Provenance]
    """By score name: `formulas`, `relevance_baseline`, and the judge's `method`."""
    gold_models: tuple[str, ...] = ()
    """Models that annotated the gold rows, as far as the rows name them."""
    notes: tuple[str, ...] = ()
    """Comparisons that were left out, each with its reason."""
    makers: Makers = NOBODY
    """The makers of the predicted rows."""
    differing: int = 0
    """Number of calls in which judge and gold differ on the answer or on sentences of it."""
    gravest: tuple[Difference, ...] = ()
    """The gravest of these, 50 at most."""
    people: tuple[BetweenPeople, ...] = ()
    """The agreement of people with each other, where gold is their labels."""

    def to_json(self) -> Json:
        """Return the content of `rag-eval agreement --json`."""
        content: Json = {
            **self.pooled.to_json(),
            "unmatched": self.matched.unmatched,
            "unmatched_predicted": self.matched.unmatched_predicted,
            "unmatched_gold": self.matched.unmatched_gold,
            "joined_by_id": self.matched.joined_by_id,
            "ambiguous": self.matched.ambiguous,
            "by_dataset": {name: group.to_json() for name, group in self.by_dataset.items()},
            "mean_over_datasets": self.mean_over_datasets.to_json(),
            "gold_models": list(self.gold_models),
            "formulas": {name: {**maker} for name, maker in self.formulas.items()},
            "differing": self.differing,
            "gravest": [difference.row.row_key for difference in self.gravest],
        }
        if self.notes:
            content["note"] = "; ".join(self.notes)
        if self.people:
            content["people"] = [pair._asdict() for pair in self.people]
        return content


def agree(
    matched: Matched | Sequence[Pair],
    *,
    baselines: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Agreement:
    """Compare a judge's scores and labels with gold.

    The result, intervals included, does not depend on the order of the rows.

    Args:
        matched: the result of `match`, or pairs.
        baselines: also compare the published columns with gold.
        resamples: number of bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.

    Raises:
        ConfigurationError: the scores of one side were made in several ways, the two sides used
            different formulas, or `resamples` is negative.
    """
    if resamples < 0:
        raise ConfigurationError("resamples", resamples, "use 0 or more")
    if not isinstance(matched, Matched):
        matched = Matched(tuple(matched))
    table = Table.of(matched.pairs)
    return agreement_of(table, matched.joined, baselines=baselines, resamples=resamples, seed=seed)


def agreement_of(
    table: Table,
    joined: Joined,
    *,
    baselines: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Agreement:
    """Compare the two sides of a table, as `agree` compares pairs: pooled, and by data set.

    Rows with a human's ratings have to be of one predictor.
    """
    everything = table.ordered()
    provenance = check_one_provenance(everything)
    left_out = _incomparable_columns(provenance) if baselines else {}
    if any(number is not None for number in everything.humans()):
        check_one_predictor(everything.predicted)

    def group(part: Table, name: str) -> Group:
        """Compute all figures of a set of rows."""
        skipped = sum(not row.same for row in part.keys)
        blocks = [*score_blocks(part), *_estimate_blocks(part), *_key_blocks(part)]
        blocks += _trivial_blocks(part)
        if baselines:
            blocks += _published_blocks(part, left_out)
        # Each set has its own seed, so that the draws of the sets are independent.
        figures = figures_of(blocks, len(part), resamples, f"{seed} {name}")
        figures |= human_figures(part, everything, resamples, f"{seed} {name}")
        return Group({"n": len(part), "keys_skipped": skipped}, figures)

    by_dataset = {name: group(part, name) for name, part in everything.by_dataset().items()}
    models = {row.judge.model for row in table.gold}
    differing, gravest = _differences(table)
    return Agreement(
        matched=joined,
        pooled=group(everything, ""),
        by_dataset=by_dataset,
        mean_over_datasets=mean_over(list(by_dataset.values())),
        formulas=provenance,
        gold_models=tuple(sorted(model for model in models if model)),
        notes=tuple(left_out.values()),
        makers=Makers.of(table),
        differing=differing,
        gravest=gravest,
    )


# --- Curves


def curves(pairs: Sequence[Pair]) -> Mapping[str, Curves]:
    """Compute the curves of every kind of verdict for which the judge gives probabilities.

    Returns:
        Curves by title: `not adherent` (responses), `relevant` and `utilized` (document sentences),
        `unsupported` (response sentences). A kind without probabilities is left out.
    """
    return curves_of(Table.of(pairs))


def curves_of(table: Table) -> Mapping[str, Curves]:
    """Compute the curves of a table; `curves` takes pairs."""
    rows = table.compared(ADHERENCE)
    chances = column(table.predicted, ADHERENCE, "probability")[rows.places.rows]
    known = ~np.isnan(chances)
    verdicts = {"not adherent": (1 - chances[known], not_adherent(rows)[known])}
    for kind in ("relevant", "utilized"):
        scores, positive, _ = table.items(kind)
        verdicts[kind] = scores, positive
    # Where only the verdict is missing, its probability tells all the same.
    scores, supported, _ = table.items("supported")
    unlabelled_scores, unlabelled_supported, _ = table.items("no_verdict")
    verdicts["unsupported"] = (
        1 - np.concatenate([scores, unlabelled_scores]),
        ~np.concatenate([supported, unlabelled_supported]),
    )
    return {
        name: curves_from(scores, positive)
        for name, (scores, positive) in verdicts.items()
        if len(scores)
    }
