"""A judge against gold, score by score: figures, refusals, data sets, baselines, humans."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_integrations.agreement import (
    Gold,
    Matched,
    Pair,
    agree,
    agree_with_numbers,
    match,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By

from .conftest import Make, agreed


@pytest.fixture
def pair(evaluation: Make) -> Callable[..., Pair]:
    """A pair from two columns: a number or None for each side."""

    def make(
        identity: str,
        name: str,
        predicted: float | None,
        gold: float | None,
        *,
        probability: float | None = None,
        response: str | None = "Yes.",
        **rest: Any,
    ) -> Pair:
        ours = evaluation(identity, {name: predicted}, probability=probability, response=response)
        return Pair(ours, evaluation(identity, {name: gold}), **rest)

    return make


@pytest.fixture
def random_pairs(evaluation: Make) -> Callable[..., list[Pair]]:
    """Rows of two data sets with all scores, drawn with a seed."""

    def make(n: int, seed: int = 0, **gold: Any) -> list[Pair]:
        generator = random.Random(seed)
        pairs = []
        for row in range(n):
            bad = generator.random() < 0.3
            doubt = min(1.0, max(0.0, generator.gauss(0.6 if bad else 0.4, 0.2)))
            truth = {"context_relevance": generator.random(), "adherence": float(not bad)}
            guess = {
                "context_relevance": min(1.0, truth["context_relevance"] * generator.random()),
                "adherence": float(doubt < 0.5),
            }
            pairs.append(
                Pair(
                    evaluation(str(row), guess, probability=1 - doubt),
                    evaluation(str(row), truth),
                    dataset=f"set {row % 2}",
                    **gold,
                )
            )
        return pairs

    return make


def test_the_json_has_the_contracted_shape(random_pairs: Callable[..., list[Pair]]) -> None:
    """Every contracted field is there, in JSON that holds no NaN; data sets repeat the shape."""
    content = agreed(Matched(tuple(random_pairs(60)), 1, 2))

    json.dumps(content, allow_nan=False)
    assert (content["n"], content["unmatched"]) == (60, 3)
    relevance = content["scores"]["context_relevance"]
    statistics = {"rmse", "pearson", "spearman", "kendall"}
    assert relevance.keys() == {"n", "ci95"} | statistics
    assert relevance["ci95"].keys() == statistics
    adherence = {"n", "positives", "rmse", "auroc", "kappa", "ci95"}
    assert content["scores"]["adherence"].keys() == adherence
    kinds = {"relevant", "utilized", "supporting", "supported", "unsupported"}
    assert content["keys"].keys() == kinds
    assert content["by_dataset"].keys() == {"set 0", "set 1"}
    for group in content["by_dataset"].values():
        assert group["n"] == 30
        assert group["scores"].keys() == content["scores"].keys()
    assert content["formulas"]["adherence"]["formulas"] == "ragbench"


def test_adherence_finds_the_not_adherent_by_probability(pair: Callable[..., Pair]) -> None:
    """Gold 0 is the positive class; the judge's doubt ranks it, its 0/1 gives kappa and RMSE."""
    rows = [(1.0, 0.6, 0.0), (0.0, 0.2, 0.0), (1.0, 0.9, 1.0), (1.0, 0.5, 1.0)]
    pairs = [
        pair(str(row), "adherence", value, gold, probability=probability)
        for row, (value, probability, gold) in enumerate(rows)
    ]

    figures = agreed(pairs)["scores"]["adherence"]

    assert figures["positives"] == 2
    assert figures["auroc"] == 0.75  # doubts .4 and .8 over .1 and .5
    assert figures["kappa"] == pytest.approx(0.5)
    assert figures["rmse"] == 0.5


def test_a_score_never_scored_on_both_sides_has_no_figures(pair: Callable[..., Pair]) -> None:
    """The name stands in the result with n 0; no formulas are claimed for it."""
    content = agreed([pair("a", "completeness", None, 0.5)], baselines=True)

    assert content["scores"]["completeness"]["n"] == 0
    assert content["scores"]["completeness"]["rmse"] is None
    assert content["formulas"] == {}


def test_no_pairs_give_an_empty_agreement() -> None:
    """Two files without a common row are n 0, not a crash."""
    content = agreed(Matched((), 4, 5))

    assert (content["n"], content["unmatched"]) == (0, 9)
    assert (content["scores"], content["by_dataset"]) == ({}, {})
    assert content["keys"]["relevant"]["f1"] is None


def test_row_order_changes_nothing(random_pairs: Callable[..., list[Pair]]) -> None:
    """Files in another order give the same figures and intervals to the last digit."""
    pairs = random_pairs(50)
    shuffled = random.Random(5).sample(pairs, len(pairs))

    assert agree(pairs).to_json() == agree(shuffled).to_json()


def test_negative_resamples_are_refused() -> None:
    """The message names the argument."""
    with pytest.raises(ConfigurationError, match="`resamples` = -1"):
        agree([], resamples=-1)


@pytest.mark.parametrize(
    ("field", "theirs"),
    [
        ("formulas", By(judge="j", formulas="gpt-labeling")),
        ("relevance_baseline", By(judge="j", formulas="ragbench", relevance_baseline=20)),
    ],
)
def test_sides_made_by_different_formulas_are_refused(
    evaluation: Make, field: str, theirs: By
) -> None:
    """U = |U|/|R| and U = |U|/T are different scores of one name."""
    ours = evaluation("a", {"context_utilization": 0.5})
    gold = evaluation("a", {"context_utilization": 0.5}, by=theirs)

    with pytest.raises(ConfigurationError, match=f"`{field}`.*`context_utilization`"):
        agree([Pair(ours, gold)])


@pytest.mark.parametrize(
    ("field", "by", "method"),
    [
        ("judge", By(judge="other", formulas="ragbench"), "labels"),
        ("judge_version", By(judge="j", judge_version="2", formulas="ragbench"), "labels"),
        ("formulas", By(judge="j", formulas="gpt-labeling"), "labels"),
        ("method", By(judge="j", formulas="ragbench"), "expected"),
    ],
)
def test_predicted_rows_made_in_several_ways_are_refused(
    evaluation: Make, field: str, by: By, method: str
) -> None:
    """One figure over two judges, prompts, formulas or estimators says nothing of either."""
    gold = evaluation("a", {"completeness": 0.5})
    pairs = [
        Pair(evaluation("a", {"completeness": 0.5}), gold),
        Pair(evaluation("b", {"completeness": 0.5}, by=by, method=method), gold),
    ]

    with pytest.raises(ConfigurationError, match=f"`{field}`.*predicted rows"):
        agree(pairs)


def test_gold_of_several_annotators_is_compared_and_says_so(evaluation: Make) -> None:
    """RAGBench's sets have different annotators; their names are in the result."""
    ours = evaluation("a", {"completeness": 0.5})
    pairs = [
        Pair(
            ours,
            evaluation(
                "a",
                {"completeness": 0.5},
                by=By(judge="j", model=model, formulas="ragbench"),
                model=model,
            ),
        )
        for model in ("m2", "m1")
    ]

    assert agreed(pairs)["gold_models"] == ["m1", "m2"]


def test_the_mean_says_in_how_many_sets_a_figure_is_defined(pair: Callable[..., Pair]) -> None:
    """A set without hallucinations has no AUROC; the mean is that of the others."""
    pairs = [pair("a", "adherence", 1.0, 1.0, dataset="clean")]
    pairs += [
        pair("b", "adherence", 0.0, 0.0, dataset="mixed"),
        pair("c", "adherence", 1.0, 1.0, dataset="mixed"),
    ]

    adherence = agreed(pairs)["mean_over_datasets"]["scores"]["adherence"]

    assert adherence["auroc"] == 1.0
    assert adherence["sets"] == {"rmse": 2, "auroc": 1, "kappa": 1}


# Baselines


def test_published_columns_stand_beside_the_judge_on_the_same_rows(
    pair: Callable[..., Pair],
) -> None:
    """Nulls are skipped; `n` says so; the judge's figure is that of the remaining rows."""
    rows = [(0.0, 0.0, 0.1), (1.0, 0.0, 0.2), (1.0, 1.0, 0.8), (0.0, 1.0, None)]
    pairs = [
        pair(str(row), "adherence", ours, gold, baselines={"ragas_faithfulness": theirs})
        for row, (ours, gold, theirs) in enumerate(rows)
    ]

    content = agreed(pairs, baselines=True)

    ragas = content["baselines"]["ragas_faithfulness"]["adherence"]
    assert (ragas["n"], ragas["auroc"], ragas["judge_auroc"]) == (3, 1.0, 0.75)
    assert content["scores"]["adherence"]["auroc"] == 0.5


@pytest.mark.parametrize(
    ("name", "column", "by"),
    [
        ("context_utilization", "gpt35_utilization", By(formulas="gpt-labeling")),
        (
            "context_relevance",
            "gpt3_context_relevance",
            By(formulas="gpt-labeling", relevance_baseline=20),
        ),
    ],
)
def test_columns_of_another_formula_are_left_out_with_a_note(
    evaluation: Make, name: str, column: str, by: By
) -> None:
    """The published |U|/T is not a rival of |U|/|R|."""
    score = evaluation("a", {name: 0.5}, by=by)

    content = agreed([Pair(score, score, baselines={column: 0.5})], baselines=True)

    assert content["baselines"].keys() == {"constant"}
    assert column in content["note"]


# Humans


def test_a_humans_numbers_are_correlated_on_their_own_scale() -> None:
    """Stars from 1 to 5 have correlations, but no RMSE against [0, 1]."""
    figures = agree_with_numbers({"geval:x": [0.1, None, 0.5, 0.9]}, [1, 5, 3, None])

    content = figures["geval:x"].to_json()
    assert content == {"n": 2, "pearson": 1.0, "spearman": 1.0, "kendall": 1.0, "ci95": {}}


def test_human_numbers_of_pairs_are_in_the_result(evaluation: Make) -> None:
    """Whether an RMSE makes sense is asked of all rows, not of each data set."""
    pairs = [
        Pair(evaluation("a", {"x": 0.1}), evaluation("a"), dataset="low", human=1),
        Pair(evaluation("b", {"x": 0.9}), evaluation("b"), dataset="high", human=5),
        Pair(evaluation("c", {"x": None}), evaluation("c"), human=2),
    ]

    content = agreed(pairs)

    assert content["human"]["x"]["n"] == 2
    assert content["human"]["x"]["kendall"] == 1.0
    assert "rmse" not in content["by_dataset"]["low"]["human"]["x"]


def test_human_numbers_are_not_compared_with_several_judges(evaluation: Make) -> None:
    """The rule against mixing holds without gold scores too."""
    other = evaluation("b", {"x": 0.5}, by=By(judge="other"))
    pairs = [
        Pair(evaluation("a", {"x": 0.5}), evaluation("a"), human=1),
        Pair(other, evaluation("b"), human=2),
    ]

    with pytest.raises(ConfigurationError, match="`judge`"):
        agree(pairs)


@pytest.mark.parametrize(
    ("scores", "numbers", "field"),
    [([0.5], [1, 2], "x"), ([float("nan")], [1], "x"), ([0.5], [float("inf")], "numbers")],
)
def test_bad_columns_are_refused_by_name(
    scores: list[float], numbers: list[float], field: str
) -> None:
    """Neither a missing row nor NaN slips into a figure."""
    with pytest.raises(ConfigurationError, match=f"`{field}`"):
        agree_with_numbers({"x": scores}, numbers)


def test_files_go_from_match_to_agreement(evaluation: Make) -> None:
    """What `match` returns is what `agree` takes, with its counts."""
    predicted = [evaluation("a", {"completeness": 0.5}), evaluation("lost")]
    gold = [Gold(evaluation("a", {"completeness": 0.7}), dataset="one", human=0.5)]

    content = agreed(match(predicted, gold))

    assert (content["n"], content["unmatched"], content["unmatched_predicted"]) == (1, 1, 1)
    assert content["by_dataset"]["one"]["human"]["completeness"]["rmse"] == 0
