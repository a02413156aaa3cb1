"""`agree`: compares a judge with gold, pooled, per data set, and as the mean over data sets.

Pooled figures mislead where data sets differ: the AUROC of the response's length alone is .69
pooled over RAGBench's sets but .56 within them. Compare judges by the mean over data sets.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Statistic
from rag_eval_integrations.agreement._keys import key_blocks
from rag_eval_integrations.agreement._resampled import Block, Blocks
from rag_eval_integrations.agreement.figures import Group, Json, figures_of, mean_over
from rag_eval_integrations.agreement.levels import level_figures
from rag_eval_integrations.agreement.matching import Matched, Pair
from rag_eval_integrations.agreement.published import BASELINE_COLUMNS
from rag_eval_integrations.agreement.scores import (
    ADHERENCE,
    Provenance,
    ScorePair,
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
    score_blocks,
)
from rag_eval_integrations.errors import ConfigurationError

# --- Baselines that a judge has to beat: RAGBench's published columns, a constant, response length


def baseline_blocks(pairs: Sequence[Pair], made: Mapping[str, Provenance]) -> Blocks:
    """Compare the published columns that the rows have, and the two trivial baselines, with gold.

    `made` is the provenance of each score (`check_one_provenance`); a published column with another
    formula is left out (`left_out`).
    """
    return {**_published(pairs, made), **_constant(pairs), **_response_length(pairs)}


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


def _published(pairs: Sequence[Pair], made: Mapping[str, Provenance]) -> Blocks:
    blocks: Blocks = {}
    incomparable = left_out(made)
    for column, baseline in BASELINE_COLUMNS.items():
        if column in incomparable:
            continue
        rows: list[ScorePair] = []
        values: list[float] = []
        for item in compared(pairs, baseline.score):
            value = item.pair.baselines.get(column)
            if value is not None:
                rows.append(item)
                values.append(value)
        if not rows:
            continue
        judge: Sequence[float]
        if baseline.orientation == "not_adherent":
            name, judge = "auroc", hallucination_scores(rows)
            values = [1 - value for value in values]
        else:
            name, judge = "rmse", [item.predicted_value for item in rows]
        statistic = _auroc if name == "auroc" else _rmse
        blocks["baselines", column, baseline.score] = Block(
            {"n": len(rows)},
            {
                name: statistic(rows, values, len(pairs)),
                f"judge_{name}": statistic(rows, judge, len(pairs)),
            },
        )
    return blocks


def _auroc(rows: Sequence[ScorePair], hallucination: Sequence[float], size: int) -> Statistic:
    return resampled.auroc(hallucination, not_adherent(rows), [item.row for item in rows])


def _rmse(rows: Sequence[ScorePair], values: Sequence[float], size: int) -> Statistic:
    gold = [item.gold_value for item in rows]
    return resampled.rmse(values, gold, [item.row for item in rows], size)


def _constant(pairs: Sequence[Pair]) -> Blocks:
    """Predict the gold mean of the row's data set: the worth of knowing only the data set."""
    blocks: Blocks = {}
    for name in names_on_both_sides(pairs):
        rows = compared(pairs, name)
        statistics = (
            {"auroc": _auroc(rows, [0.0] * len(rows), len(pairs))}
            if name == ADHERENCE
            else {"rmse": _rmse(rows, _dataset_means(rows), len(pairs))}
        )
        blocks["baselines", "constant", name] = Block({"n": len(rows)}, statistics)
    return blocks


def _dataset_means(rows: Sequence[ScorePair]) -> list[float]:
    values = defaultdict(list)
    for item in rows:
        values[item.pair.dataset].append(item.gold_value)
    means = {dataset: math.fsum(group) / len(group) for dataset, group in values.items()}
    return [means[item.pair.dataset] for item in rows]


def _response_length(pairs: Sequence[Pair]) -> Blocks:
    """Predict by length in characters: the longer the response, the likelier not adherent."""
    if ADHERENCE not in names_on_both_sides(pairs):
        return {}
    rows: list[ScorePair] = []
    lengths: list[float] = []
    for item in compared(pairs, ADHERENCE):
        if item.pair.predicted.response is not None:
            rows.append(item)
            lengths.append(len(item.pair.predicted.response))
    block = Block({"n": len(rows)}, {"auroc": _auroc(rows, lengths, len(pairs))})
    return {("baselines", "response_length", ADHERENCE): block}


@dataclass(frozen=True)
class Agreement:
    """The agreement of a judge with gold."""

    matched: Matched
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
    # Sums of floats and draws of rows depend on the order, so the rows are sorted first.
    pairs = sorted(matched.pairs, key=lambda pair: (pair.predicted.row_key, pair.predicted.id))
    made = check_one_provenance(pairs)
    humans = [pair.human for pair in pairs if pair.human is not None]
    if humans:
        check_one_predictor(pairs)
    by_set: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.dataset is not None:
            by_set.setdefault(pair.dataset, []).append(pair)

    def group(rows: Sequence[Pair], name: str) -> Group:
        keys, skipped = key_blocks(rows)
        blocks = {**score_blocks(rows), **estimate_blocks(rows), **keys}
        if baselines:
            blocks |= baseline_blocks(rows, made)
        if humans:
            blocks |= human_blocks(rows, within_unit=in_unit(humans))
        counts = {"n": len(rows), "keys_skipped": skipped}
        # Each set has its own seed, so that the draws of the sets are independent.
        figures = figures_of(blocks, len(rows), resamples, f"{seed} {name}")
        if humans:
            figures |= level_figures(rows, resamples, f"{seed} {name}")
        return Group(counts, figures)

    by_dataset = {name: group(by_set[name], name) for name in sorted(by_set)}
    return Agreement(
        matched=matched,
        pooled=group(pairs, ""),
        by_dataset=by_dataset,
        mean_over_datasets=mean_over(list(by_dataset.values())),
        formulas=made,
        gold_models=gold_models(pairs),
        notes=tuple(left_out(made).values()) if baselines else (),
    )
