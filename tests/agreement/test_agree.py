"""A judge against gold, score by score: figures, refusals, data sets, baselines, humans."""

from __future__ import annotations

import random

import pytest

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.agreement import Pair, agree
from rag_eval_integrations.agreement.levels import agree_with_numbers
from rag_eval_integrations.agreement.matching import Matched
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By, Evaluation, Sentence, Sentences

from .conftest import agreed, make_evaluation, make_labels, make_sentences


def random_pairs(n: int) -> list[Pair]:
    """Rows of two data sets, drawn with a seed."""
    chance = random.Random(0).random

    def side(row: int) -> Evaluation:
        scores = {"context_relevance": chance(), "adherence": float(chance() < 0.7)}
        return make_evaluation(str(row), scores, probability=chance())

    return [Pair(side(row), side(row), dataset=f"set {row % 2}") for row in range(n)]


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


def test_a_list_of_sources_is_compared_with_nothing() -> None:
    """A judge that labelled the claim alone agrees with gold that has no more than the claim."""
    answer = "It leaves at nine [1].\n\nSources:\n[1] timetable.pdf"
    predicted = RagEvaluator().evaluate_sync(RagCall("When?", ["It leaves at nine."], answer))
    claims = predicted.sentences.claims
    sentences = Sentences(documents=predicted.sentences.documents, response=claims)
    gold = predicted.model_copy(update={"sentences": sentences})

    keys = agreed([Pair(predicted, gold)])["keys"]

    supported = keys["supported"]
    assert (supported["n"], supported["unlabelled"], supported["f1"]) == (1, 0, 1.0)
    assert keys["supporting"]["n"] == 1


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
    ("name", "column", "baseline"),
    [("context_utilization", "gpt35_utilization", None),
     ("context_relevance", "gpt3_context_relevance", 20)],
)  # fmt: skip
def test_columns_of_another_formula_are_left_out_with_a_note(
    name: str, column: str, baseline: int | None
) -> None:
    """The published |U|/T is not a rival of |U|/|R|."""
    by = By(formulas="gpt-labeling", relevance_baseline=baseline)
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


def rated(name: str, value: float | None, human: int, dataset: str | None = None) -> Pair:
    judged = make_evaluation(name, {"x": value})
    return Pair(judged, make_evaluation(name), dataset=dataset, human=human)


def test_human_numbers_of_pairs_are_in_the_result() -> None:
    """Whether an RMSE makes sense is asked of all rows, not of each data set."""
    content = agreed([rated("a", 0.1, 1, "low"), rated("b", 0.9, 5, "high"), rated("c", None, 2)])

    assert content["human"]["x"]["n"] == 2
    assert content["human"]["x"]["kendall"] == 1.0
    assert "rmse" not in content["by_dataset"]["low"]["human"]["x"]


def test_human_numbers_are_not_compared_with_several_judges() -> None:
    """The rule against mixing holds without gold scores too."""
    other = make_evaluation("b", {"x": 0.5}, by=By(judge="other"))
    with pytest.raises(ConfigurationError, match="`judge`"):
        agree([rated("a", 0.5, 1), Pair(other, make_evaluation("b"), human=2)])


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


# Key by key: which sentences count


def test_supporting_pairs_are_worked_by_hand() -> None:
    """(a,0a) is in both, (b,0c) and (b,1a) in one: F1 2/4; special words are no sentences."""
    both = make_sentences("0a 0b 0c 1a", "a b")
    predicted = make_labels(support={"a": ("0a general", True), "b": ("0c", True)})
    gold = make_labels(support={"a": ("0a", True), "b": ("1a", True), "z": ("0b", True)})
    ours, theirs = (make_evaluation(labels=side, sentences=both) for side in (predicted, gold))

    supporting = agreed([Pair(ours, theirs)])["keys"]["supporting"]

    assert supporting["f1"] == 0.5
    assert supporting["kappa"] == pytest.approx((2 * (1 * 5 - 1 * 1)) / (2 * 6 + 2 * 6))


def test_rows_without_comparable_sentences_are_skipped_and_counted() -> None:
    """No labels on a side, other keys or other texts; relevance needs no equal responses."""
    labels = make_labels("0a", support={"a": ("0a", True)})
    gold = make_evaluation("g", labels=labels, sentences=make_sentences("0a 0b", "a"))
    reworded = Sentences(documents=(Sentence("0a", "Other."), Sentence("0b", "0B")))
    splits = (make_sentences("0a 0b", "a b"), make_sentences("0a"), reworded)
    rows = [make_evaluation(str(n), labels=labels, sentences=of) for n, of in enumerate(splits)]

    content = agreed([Pair(row, gold) for row in [*rows, make_evaluation("none")]])

    assert content["keys_skipped"] == 3
    assert (content["keys"]["relevant"]["n"], content["keys"]["relevant"]["f1"]) == (1, 1)
    assert (content["keys"]["supporting"]["n"], content["keys"]["supporting"]["f1"]) == (0, None)
