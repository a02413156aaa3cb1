"""What a judge has to beat: columns that RAGBench published, a constant, the response's length.

Each is compared on the rows where it and the judge both have a value. Beside a published column,
which has gaps, stands the judge's own figure on exactly those rows (`judge_auroc`, `judge_rmse`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rag_eval_integrations.agreement import resampled
from rag_eval_integrations.agreement.bootstrap import Statistic
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.published import BASELINE_COLUMNS
from rag_eval_integrations.agreement.resampled import Block, Blocks
from rag_eval_integrations.agreement.scores import (
    ADHERENCE,
    Compared,
    Maker,
    compared,
    hallucination_scores,
    names_on_both_sides,
    not_adherent,
)


def baseline_blocks(pairs: Sequence[Pair], made: Mapping[str, Maker]) -> Blocks:
    """Compare the published columns that the rows have, and the two trivial baselines.

    `made` says by which formulas each score was made (`check_one_maker`): a column is left out
    where its own formula differs (`left_out`).
    """
    return {**_published(pairs, made), **_constant(pairs), **_response_length(pairs)}


def left_out(made: Mapping[str, Maker]) -> dict[str, str]:
    """Say which published columns cannot be compared with scores made so, and why."""
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
                f" {baseline.score} was made by formulas {formulas!r}"
            )
        if baseline.score == "context_relevance" and normaliser is not None:
            reasons[column] = (
                f"{column} is left out: it is a share of all sentences, but"
                f" {baseline.score} was made with relevance_baseline {normaliser}"
            )
    return reasons


def _published(pairs: Sequence[Pair], made: Mapping[str, Maker]) -> Blocks:
    blocks: Blocks = {}
    incomparable = left_out(made)
    for column, baseline in BASELINE_COLUMNS.items():
        if column in incomparable:
            continue
        rows: list[Compared] = []
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


def _auroc(rows: Sequence[Compared], hallucination: Sequence[float], size: int) -> Statistic:
    return resampled.auroc(hallucination, not_adherent(rows), [item.row for item in rows])


def _rmse(rows: Sequence[Compared], values: Sequence[float], size: int) -> Statistic:
    gold = [item.gold_value for item in rows]
    return resampled.rmse(values, gold, [item.row for item in rows], size)


def _constant(pairs: Sequence[Pair]) -> Blocks:
    """Always the gold mean of the row's data set: what knowing only the data set is worth."""
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


def _dataset_means(rows: Sequence[Compared]) -> list[float]:
    values = defaultdict(list)
    for item in rows:
        values[item.pair.dataset].append(item.gold_value)
    means = {dataset: math.fsum(group) / len(group) for dataset, group in values.items()}
    return [means[item.pair.dataset] for item in rows]


def _response_length(pairs: Sequence[Pair]) -> Blocks:
    """The longer the response (in characters), the surer that it is not adherent."""
    if ADHERENCE not in names_on_both_sides(pairs):
        return {}
    rows: list[Compared] = []
    lengths: list[float] = []
    for item in compared(pairs, ADHERENCE):
        if item.pair.predicted.response is not None:
            rows.append(item)
            lengths.append(len(item.pair.predicted.response))
    block = Block({"n": len(rows)}, {"auroc": _auroc(rows, lengths, len(pairs))})
    return {("baselines", "response_length", ADHERENCE): block}
