"""A judge against gold, score by score: figures, refusals, data sets, baselines, humans."""

from __future__ import annotations

import json
import random

import pytest

from rag_eval_integrations.agreement import Matched, Pair, agree, agree_with_numbers
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By

from .conftest import agreed, make_evaluation


def random_pairs(n: int, seed: int = 0) -> list[Pair]:
    """Rows of two data sets with all scores, drawn with a seed."""
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
        ours = make_evaluation(str(row), guess, probability=1 - doubt)
        pairs.append(Pair(ours, make_evaluation(str(row), truth), dataset=f"set {row % 2}"))
    return pairs


def test_the_json_has_the_contracted_shape() -> None:
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


def test_row_order_changes_nothing() -> None:
    """Files in another order give the same figures and intervals to the last digit."""
    pairs = random_pairs(50)
    shuffled = random.Random(5).sample(pairs, len(pairs))

    assert agree(pairs).to_json() == agree(shuffled).to_json()
    with pytest.raises(ConfigurationError, match="`resamples` = -1"):
        agree(pairs, resamples=-1)


def test_of_nothing_there_are_no_figures() -> None:
    """Two files without a common row are n 0, not a crash; so is a score without a value."""
    content = agreed(Matched((), 4, 5))
    assert (content["n"], content["unmatched"]) == (0, 9)
    assert (content["scores"], content["by_dataset"]) == ({}, {})
    assert content["keys"]["relevant"]["f1"] is None

    lost, known = (make_evaluation("a", {"completeness": value}) for value in (None, 0.5))
    content = agreed([Pair(lost, known)], baselines=True)
    completeness = content["scores"]["completeness"]
    assert (completeness["n"], completeness["rmse"]) == (0, None)
    assert content["formulas"] == {}  # none are claimed for it


@pytest.mark.parametrize(
    ("field", "by", "method"),
    [
        ("judge", By(judge="other", formulas="ragbench"), "labels"),
        ("judge_version", By(judge="j", judge_version="2", formulas="ragbench"), "labels"),
        ("formulas", By(judge="j", formulas="gpt-labeling"), "labels"),
        ("relevance_baseline", By(judge="j", formulas="ragbench", relevance_baseline=20), "labels"),
        ("method", By(judge="j", formulas="ragbench"), "expected"),
    ],
)
def test_rows_made_in_several_ways_are_refused(field: str, by: By, method: str) -> None:
    """One figure over two judges, prompts, formulas or estimators says nothing of either."""
    scores = {"context_utilization": 0.5}
    usual = make_evaluation("a", scores)
    other = make_evaluation("b", scores, by=by, method=method)

    with pytest.raises(ConfigurationError, match=f"`{field}`.*predicted rows"):
        agree([Pair(usual, usual), Pair(other, usual)])
    if field in ("formulas", "relevance_baseline"):  # |U|/|R| and |U|/T have one name
        with pytest.raises(ConfigurationError, match=f"`{field}`.*`context_utilization`"):
            agree([Pair(usual, other)])


def test_gold_of_several_annotators_is_compared_and_says_so() -> None:
    """RAGBench's sets have different annotators; their names are in the result."""
    scores = {"completeness": 0.5}
    pairs = [
        Pair(make_evaluation("a", scores), make_evaluation("a", scores, by=by, model=by.model))
        for by in (By(judge="j", model=model, formulas="ragbench") for model in ("m2", "m1"))
    ]

    assert agreed(pairs)["gold_models"] == ["m1", "m2"]


# Baselines


@pytest.mark.parametrize(
    ("name", "column", "by"),
    [
        ("context_utilization", "gpt35_utilization", By(formulas="gpt-labeling")),
        ("context_relevance", "gpt3_context_relevance",
         By(formulas="gpt-labeling", relevance_baseline=20)),
    ],
)  # fmt: skip
def test_columns_of_another_formula_are_left_out_with_a_note(
    name: str, column: str, by: By
) -> None:
    """The published |U|/T is not a rival of |U|/|R|."""
    score = make_evaluation("a", {name: 0.5}, by=by)

    content = agreed([Pair(score, score, baselines={column: 0.5})], baselines=True)

    assert content["baselines"].keys() == {"constant"}
    assert column in content["note"]


# Humans


def test_a_humans_numbers_are_correlated_on_their_own_scale() -> None:
    """Stars from 1 to 5 have correlations, but no RMSE against [0, 1]."""
    figures = agree_with_numbers({"geval:x": [0.1, None, 0.5, 0.9]}, [1, 5, 3, None])

    content = figures["geval:x"].to_json()
    assert content == {"n": 2, "pearson": 1.0, "spearman": 1.0, "kendall": 1.0, "ci95": {}}


def test_human_numbers_of_pairs_are_in_the_result() -> None:
    """Whether an RMSE makes sense is asked of all rows, not of each data set."""
    pairs = [
        Pair(make_evaluation("a", {"x": 0.1}), make_evaluation("a"), dataset="low", human=1),
        Pair(make_evaluation("b", {"x": 0.9}), make_evaluation("b"), dataset="high", human=5),
        Pair(make_evaluation("c", {"x": None}), make_evaluation("c"), human=2),
    ]

    content = agreed(pairs)

    assert content["human"]["x"]["n"] == 2
    assert content["human"]["x"]["kendall"] == 1.0
    assert "rmse" not in content["by_dataset"]["low"]["human"]["x"]


def test_human_numbers_are_not_compared_with_several_judges() -> None:
    """The rule against mixing holds without gold scores too."""
    other = make_evaluation("b", {"x": 0.5}, by=By(judge="other"))
    pairs = [
        Pair(make_evaluation("a", {"x": 0.5}), make_evaluation("a"), human=1),
        Pair(other, make_evaluation("b"), human=2),
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
