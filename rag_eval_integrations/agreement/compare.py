"""A judge against gold: every figure pooled, per data set, and as the mean over data sets.

Pooled figures mislead where data sets differ: the AUROC of the response's length alone is .69
pooled over RAGBench's sets but .56 within them. The mean over data sets is the one to compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_eval_integrations.agreement.baselines import baseline_blocks, left_out
from rag_eval_integrations.agreement.bootstrap import RESAMPLES, SEED
from rag_eval_integrations.agreement.figures import Group, Json, figures_of, mean_over
from rag_eval_integrations.agreement.human import human_blocks, in_unit
from rag_eval_integrations.agreement.keys import key_blocks
from rag_eval_integrations.agreement.levels import level_figures
from rag_eval_integrations.agreement.matching import Matched, Pair
from rag_eval_integrations.agreement.scores import (
    Maker,
    check_one_maker,
    check_one_predictor,
    gold_models,
    score_blocks,
)
from rag_eval_integrations.errors import ConfigurationError


@dataclass(frozen=True)
class Agreement:
    """How well a judge agrees with gold."""

    matched: Matched
    pooled: Group
    by_dataset: Mapping[str, Group]
    """In alphabetical order; rows that name no data set are in `pooled` only."""
    mean_over_datasets: Group
    """Unweighted means of `by_dataset`."""
    formulas: Mapping[str, Maker]
    """By score: `formulas`, `relevance_baseline`, and the judge's `method`."""
    gold_models: tuple[str, ...] = ()
    """Who annotated the gold rows, where they say; may be several."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""

    def to_json(self) -> Json:
        """Write `rag-eval agreement --json`."""
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
        matched: what `match` found, or pairs alone.
        baselines: compare the published columns and two trivial baselines as well.
        resamples: draws of the bootstrap; 0 for no intervals.
        seed: of the draws.

    Raises:
        ConfigurationError: one side's scores were made in several ways, or the two sides' by
            different formulas; or `resamples` is negative.
    """
    if resamples < 0:
        raise ConfigurationError("resamples", resamples, "should be 0 or more")
    if not isinstance(matched, Matched):
        matched = Matched(tuple(matched))
    # Sums of floats and draws of rows both depend on the order: make it the rows' own.
    pairs = sorted(matched.pairs, key=lambda pair: (pair.predicted.row_key, pair.predicted.id))
    made = check_one_maker(pairs)
    humans = [pair.human for pair in pairs if pair.human is not None]
    if humans:
        check_one_predictor(pairs)
    by_set: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.dataset is not None:
            by_set.setdefault(pair.dataset, []).append(pair)

    def group(rows: Sequence[Pair], name: str) -> Group:
        keys, skipped = key_blocks(rows)
        blocks = {**score_blocks(rows), **keys}
        if baselines:
            blocks |= baseline_blocks(rows, made)
        if humans:
            blocks |= human_blocks(rows, within_unit=in_unit(humans))
        counts = {"n": len(rows), "keys_skipped": skipped}
        # A seed of its own for each set, so that their draws are independent.
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
