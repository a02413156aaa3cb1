"""`agree`: compares a judge with gold, pooled, per data set, and as the mean over data sets.

Pooled figures mislead where data sets differ: the AUROC of the response's length alone is .69
pooled over RAGBench's sets but .56 within them. Compare judges by the mean over data sets.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Statistic
from rag_eval_integrations.agreement._keys import key_blocks, skipped
from rag_eval_integrations.agreement._resampled import Block, Path
from rag_eval_integrations.agreement._table import Part, Table
from rag_eval_integrations.agreement.figures import Group, Json, figures_of, mean_over
from rag_eval_integrations.agreement.levels import level_figures
from rag_eval_integrations.agreement.matching import Joined, Matched, Pair
from rag_eval_integrations.agreement.published import BASELINE_COLUMNS
from rag_eval_integrations.agreement.scores import (
    ADHERENCE,
    Compared,
    Provenance,
    check_one_predictor,
    check_one_provenance,
    compared,
    estimate_blocks,
    gold_models,
    hallucination_scores,
    human_blocks,
    in_unit,
    names_on_both_sides,
    not_adherent,
    ratings,
    score_blocks,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import JudgeInfo

# --- Baselines that a judge has to beat: RAGBench's published columns, a constant, response length


def baseline_blocks(part: Part, made: Mapping[str, Provenance]) -> Iterator[tuple[Path, Block]]:
    """Compare the published columns that the rows have, and the two trivial baselines, with gold.

    `made` is the provenance of each score (`check_one_provenance`); a published column with another
    formula is left out (`left_out`).
    """
    yield from _published(part, made)
    yield from _constant(part)
    yield from _response_length(part)


def left_out(made: Mapping[str, Provenance]) -> dict[str, str]:
    """Map each published column that cannot be compared with these scores to the reason why."""
    reasons = {}
    for column, baseline in BASELINE_COLUMNS.items():
        maker = made.get(baseline.score)
        if maker is None:
            continue
        formulas, normaliser = maker["formulas"], maker["relevance_baseline"]
        # The published utilization is |U|/T; relevance is |R|/T under both formula sets.
        if baseline.score == "context_utilization" and formulas != "ragbench":
            reasons[column] = (
                f"{column} is left out: it is |U|/T (formulas 'ragbench'), but"
                f" {baseline.score} was computed with formulas {formulas!r}"
            )
        if baseline.score == "context_relevance" and normaliser is not None:
            reasons[column] = (
                f"{column} is left out: it is a share of all sentences, but"
                f" {baseline.score} was computed with relevance_baseline {normaliser}"
            )
    return reasons


def _published(part: Part, made: Mapping[str, Provenance]) -> Iterator[tuple[Path, Block]]:
    incomparable = left_out(made)
    for column, baseline in BASELINE_COLUMNS.items():
        found = part.table.others.baselines.get(column)
        if column in incomparable or found is None:
            continue
        everything = compared(part, baseline.score)
        some = [at for at, row in enumerate(everything.rows) if found[row] == found[row]]
        if not some:
            continue
        rows = _some(everything, some)
        values = [found[row] for row in rows.rows]
        judge: Sequence[float]
        if baseline.orientation == "not_adherent":
            name, judge = "auroc", hallucination_scores(part, rows)
            values = [1 - value for value in values]
        else:
            name, judge = "rmse", rows.predicted
        statistic = _auroc if name == "auroc" else _rmse
        yield (
            ("baselines", column, baseline.score),
            Block(
                {"n": len(rows.at)},
                {
                    name: statistic(rows, values, len(part.rows)),
                    f"judge_{name}": statistic(rows, judge, len(part.rows)),
                },
            ),
        )


def _some(rows: Compared, places: Sequence[int]) -> Compared:
    return Compared(
        rows.name,
        array("q", [rows.at[place] for place in places]),
        array("q", [rows.rows[place] for place in places]),
        array("d", [rows.predicted[place] for place in places]),
        array("d", [rows.gold[place] for place in places]),
    )


def _auroc(rows: Compared, hallucination: Sequence[float], size: int) -> Statistic:
    return resampled.auroc(hallucination, not_adherent(rows), rows.at)


def _rmse(rows: Compared, values: Sequence[float], size: int) -> Statistic:
    return resampled.rmse(values, rows.gold, rows.at, size)


def _constant(part: Part) -> Iterator[tuple[Path, Block]]:
    """Predict the gold mean of the row's data set: the worth of knowing only the data set."""
    for name in names_on_both_sides(part):
        rows = compared(part, name)
        statistics = (
            {"auroc": _auroc(rows, [0.0] * len(rows.at), len(part.rows))}
            if name == ADHERENCE
            else {"rmse": _rmse(rows, _dataset_means(part, rows), len(part.rows))}
        )
        yield ("baselines", "constant", name), Block({"n": len(rows.at)}, statistics)


def _dataset_means(part: Part, rows: Compared) -> list[float]:
    values = defaultdict(list)
    for row, value in zip(rows.rows, rows.gold, strict=True):
        values[part.table.others.dataset[row]].append(value)
    means = {dataset: math.fsum(group) / len(group) for dataset, group in values.items()}
    return [means[part.table.others.dataset[row]] for row in rows.rows]


def _response_length(part: Part) -> Iterator[tuple[Path, Block]]:
    """Predict by length in characters: the longer the response, the likelier not adherent."""
    if ADHERENCE not in names_on_both_sides(part):
        return
    lengths = part.table.predicted.lengths
    everything = compared(part, ADHERENCE)
    rows = _some(everything, [at for at, row in enumerate(everything.rows) if lengths[row] >= 0])
    statistic = _auroc(rows, [float(lengths[row]) for row in rows.rows], len(part.rows))
    path = "baselines", "response_length", ADHERENCE
    yield path, Block({"n": len(rows.at)}, {"auroc": statistic})


class Makers(NamedTuple):
    """The makers of the predicted rows, each kind in order of appearance."""

    judges: tuple[tuple[JudgeInfo, int], ...] = ()
    """Judges with their numbers of rows, the most frequent first."""
    prompt_versions: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()


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
    makers: Makers = field(default_factory=Makers)
    """The makers of the predicted rows."""

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
        }
        if self.notes:
            content["note"] = "; ".join(self.notes)
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
        baselines: also compare the published columns and two trivial baselines with gold.
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
    """Compare a judge with gold as `agree` does, of rows that were read as numbers."""
    # Sums of floats and draws of rows depend on the order, so the rows are sorted.
    everything = Part(table, table.ordered)
    made = check_one_provenance(everything)
    humans = [number for number in ratings(everything) if number is not None]
    within_unit = in_unit(humans)
    if humans:
        check_one_predictor(table.predicted, table.ordered)

    def blocks(part: Part) -> Iterator[tuple[Path, Block]]:
        yield from score_blocks(part)
        yield from estimate_blocks(part)
        yield from key_blocks(part)
        if baselines:
            yield from baseline_blocks(part, made)
        if humans:
            yield from human_blocks(part, within_unit=within_unit)

    def group(part: Part, name: str) -> Group:
        counts = {"n": len(part.rows), "keys_skipped": skipped(part)}
        # Each set has its own seed, so that the draws of the sets are independent.
        figures = figures_of(blocks(part), len(part.rows), resamples, f"{seed} {name}")
        if humans:
            figures |= level_figures(part, resamples, f"{seed} {name}")
        return Group(counts, figures)

    by_dataset = {name: group(part, name) for name, part in everything.by_dataset().items()}
    return Agreement(
        matched=joined,
        pooled=group(everything, ""),
        by_dataset=by_dataset,
        mean_over_datasets=mean_over(list(by_dataset.values())),
        formulas=made,
        gold_models=gold_models(everything),
        notes=tuple(left_out(made).values()) if baselines else (),
        makers=_makers(table),
    )


def _makers(table: Table) -> Makers:
    side, rows = table.predicted, table.appearance
    origins = Counter(side.origins.values[side.origin[row]] for row in rows)
    by = dict.fromkeys(
        side.makers.values[code]
        for name in side.names(rows)
        for code in dict.fromkeys(side.make_up(name, rows))
        if code >= 0
    )
    judges: Counter[JudgeInfo] = Counter()
    for origin, count in origins.items():
        judges[origin.judge] += count
    return Makers(
        tuple(judges.most_common()),
        *(
            tuple(dict.fromkeys(str(value) for value in found if value))
            for found in (
                (one.of("prompt_version") for one in by),
                (one.of("formulas") for one in by),
                (origin.fingerprint for origin in origins),
            )
        ),
    )
