"""TRACe beyond the seed's examples: empty cases, both formula sets, evidence, properties."""

from __future__ import annotations

import pytest
from by_hand import keyed, labels_of, scored
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.records import By, JudgeInfo, Labelling

CALL = keyed([["One.", "Two."], ["Three."]], ["A.", "B."])
ALL = {"a": (["0a"], True), "b": (["0b"], True)}


@pytest.mark.parametrize(
    ("relevant", "utilized", "seed", "ragbench"),
    [
        ([], [], (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
        ([], ["0a"], (0.0, 0.0, 0.0), (0.0, 1 / 3, 1.0)),
        (["0a"], [], (1 / 3, 0.0, 0.0), (1 / 3, 0.0, 0.0)),
        (["0a"], ["0a"], (1 / 3, 1.0, 1.0), (1 / 3, 1 / 3, 1.0)),
    ],
)
def test_empty_cases(
    relevant: list[str],
    utilized: list[str],
    seed: tuple[float, ...],
    ragbench: tuple[float, ...],
) -> None:
    """R, U empty or not: what each formula set gives (R, U, C)."""
    labels = labels_of(relevant, utilized, ALL)
    names = ("context_relevance", "context_utilization", "completeness")

    for formula_set, expected in (("seed", seed), ("ragbench", ragbench)):
        scores = scored(Trace(formula_set), CALL, labels)  # type: ignore[arg-type]

        assert [scores[name].value for name in names] == pytest.approx(list(expected))


def test_nothing_retrieved_is_zero_in_the_pure_formulas() -> None:
    """T = 0: nothing can be relevant or used; nothing was left out."""
    assert formulas.context_relevance(0, 0) == 0.0
    assert formulas.context_utilization(0, 0, 0, "ragbench") == 0.0
    assert formulas.completeness(0, 0, 0) == 1.0


def test_no_response_sentence_is_adherent() -> None:
    """Seed 004: a response without sentences has nothing unsupported."""
    assert formulas.adherence(labels_of([], [], {}), []) == 1.0
    assert formulas.supported_fraction([]) == 1.0


def test_utilization_never_exceeds_one() -> None:
    """More utilized than relevant keys (406 RAGBench rows) are clamped under the seed."""
    assert formulas.context_utilization(1, 3, 3) == 1.0


def test_an_unlabelled_sentence_leaves_adherence_unscored() -> None:
    """All labelled sentences are supported, one has no entry: it cannot be known."""
    scores = scored(Trace(), CALL, labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))

    assert scores["adherence"].status == "unscored"
    assert scores["adherence"].unscored == "unlabelled_sentences"
    assert scores["supported_fraction"].unscored == "unlabelled_sentences"
    assert scores["trace_average"].unscored == "unlabelled_sentences"
    assert scores["context_relevance"].status == "scored"
    assert "b" in (scores["adherence"].reason or "")


def test_an_unsupported_sentence_decides_whatever_is_unlabelled() -> None:
    """One labelled sentence is unsupported: A = 0, even with another unlabelled."""
    scores = scored(Trace(), CALL, labels_of(["0a"], ["0a"], {"a": ([], False)}))

    assert scores["adherence"].value == 0.0


def test_recorded_unsupported_keys_decide_under_ragbench() -> None:
    """RAGBench's own column is `unsupported_response_sentence_keys == []` (100 % of rows)."""
    supported = labels_of(["0a"], ["0a"], ALL, unsupported_response_sentence_keys=["b"])
    unsupported = labels_of(
        ["0a"],
        ["0a"],
        {"a": ([], False), "b": (["0a"], True)},
        unsupported_response_sentence_keys=[],
    )

    assert scored(Trace("ragbench"), CALL, supported)["adherence"].value == 0.0
    assert scored(Trace("ragbench"), CALL, unsupported)["adherence"].value == 1.0
    assert scored(Trace("seed"), CALL, unsupported)["adherence"].value == 0.0


def test_probabilities_make_expected_scores_and_labels_stay_hard() -> None:
    """R, U, C are expectations over probabilities; A is 0/1 with its probability beside."""
    labels = labels_of(
        ["0a"],
        ["0a"],
        ALL,
        relevant_probabilities={"0a": 0.9, "0b": 0.4, "1a": 0.2},
        utilized_probabilities={"0a": 0.8, "0b": 0.1, "1a": 0.3},
        supported_probabilities={"a": 0.9, "b": 0.5},
    )

    soft = scored(Trace("ragbench"), CALL, labels)
    hard = scored(Trace("ragbench", hard=True), CALL, labels)

    assert soft["context_relevance"].value == pytest.approx(1.5 / 3)
    assert soft["context_relevance"].method == "expected"
    assert soft["context_relevance"].std_error == pytest.approx((0.09 + 0.24 + 0.16) ** 0.5 / 3)
    assert soft["context_utilization"].value == pytest.approx(1.2 / 3)
    assert soft["completeness"].value == pytest.approx((0.8 + 0.1 + 0.2) / 1.5)
    assert soft["adherence"].value == 1.0
    assert soft["adherence"].probability == pytest.approx(0.45)
    assert hard["context_relevance"].value == pytest.approx(1 / 3)
    assert hard["context_relevance"].method == "labels"
    assert hard["adherence"].probability is None


def test_a_calibrated_estimate_comes_first() -> None:
    """`estimates` of a judge beat expectations; for adherence it is the probability only."""
    labels = labels_of(
        ["0a"],
        ["0a"],
        ALL,
        estimates={"completeness": (0.25, 0.1), "adherence": (0.3, 0.05)},
    )

    scores = scored(Trace(), CALL, labels)

    assert scores["completeness"].value == 0.25
    assert scores["completeness"].method == "calibrated"
    assert scores["completeness"].std_error == 0.1
    assert scores["adherence"].value == 1.0
    assert scores["adherence"].probability == 0.3


def test_a_judge_without_labels_leaves_every_score_unscored_with_its_reason() -> None:
    """No labels: six unscored scores, none zero."""
    labelling = Labelling(
        labels=None, judge=JudgeInfo(name="x"), unscored="refusal", reason="would not"
    )

    scores = Trace().score(CALL, labelling, By())

    assert [score.name for score in scores] == list(TRACE_SCORES)
    assert {(s.status, s.value, s.unscored, s.reason) for s in scores} == {
        ("unscored", None, "refusal", "would not")
    }


def test_thresholds_give_a_verdict() -> None:
    """`passed` compares with the threshold and is None without one."""
    scores = scored(
        Trace(thresholds={"adherence": 1.0, "completeness": 0.9}),
        CALL,
        labels_of(["0a", "0b"], ["0a"], ALL),
    )

    assert scores["adherence"].passed is True
    assert scores["completeness"].passed is False
    assert scores["context_relevance"].passed is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"formulas": "paper"}, "formulas"),
        ({"relevance_baseline": 0}, "relevance_baseline"),
        ({"formulas": "ragbench", "relevance_baseline": 20}, "relevance_baseline"),
        ({"thresholds": {"relevance": 0.5}}, "thresholds"),
        ({"thresholds": {"adherence": 2}}, "thresholds['adherence']"),
    ],
)
def test_mistakes_raise_at_construction(arguments: dict[str, object], field: str) -> None:
    """A wrong setting raises where it is made and names the field."""
    with pytest.raises(ConfigurationError) as caught:
        Trace(**arguments)  # type: ignore[arg-type]

    assert caught.value.field == field


KEYS = [f"{number}{letter}" for number in range(3) for letter in "abcd"]
BIG = keyed([["w", "x", "y", "z"]] * 3, ["A.", "B."])
subsets = st.lists(st.sampled_from(KEYS), unique=True)


@given(relevant=subsets, utilized=subsets)
def test_completeness_is_at_most_utilization(relevant: list[str], utilized: list[str]) -> None:
    """With R not empty, C ≤ U under the seed's formulas, and both sets stay in [0, 1]."""
    labels = labels_of(relevant, utilized, ALL)

    seed = scored(Trace(), BIG, labels)
    ragbench = scored(Trace("ragbench"), BIG, labels)

    if relevant:
        assert seed["completeness"].value is not None
        assert seed["context_utilization"].value is not None
        assert seed["completeness"].value <= seed["context_utilization"].value + 1e-12
    for scores in (seed, ragbench):
        assert all(score.value is None or 0 <= score.value <= 1 for score in scores.values())


@given(order=st.permutations(KEYS[:6]))
def test_the_order_of_keys_does_not_matter(order: list[str]) -> None:
    """Scores depend on which keys are labelled, not on their order."""
    plain = scored(Trace(), BIG, labels_of(KEYS[:6], KEYS[3:8], ALL))
    mixed = scored(Trace(), BIG, labels_of(order, KEYS[3:8][::-1], ALL))

    assert {n: s.value for n, s in plain.items()} == {n: s.value for n, s in mixed.items()}
