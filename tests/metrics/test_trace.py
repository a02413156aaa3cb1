"""TRACe beyond the worked examples: empty cases, both formula sets, evidence, properties."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import keyed, labels_of, scored
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.metrics.trace.formulas import Formulas
from rag_eval_integrations.records import (
    By,
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Score,
    ScoreEstimate,
)

CALL = keyed([["One.", "Two."], ["Three."]], ["A.", "B."])
ALL = {"a": (["0a"], True), "b": (["0b"], True)}


@pytest.mark.parametrize(
    ("relevant", "utilized", "by_labelling", "ragbench"),
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
    by_labelling: tuple[float, ...],
    ragbench: tuple[float, ...],
) -> None:
    """R, U empty or not: what each formula set gives (R, U, C)."""
    labels = labels_of(relevant, utilized, ALL)
    names = ("context_relevance", "context_utilization", "completeness")

    for formula_set, expected in (("gpt-labeling", by_labelling), ("ragbench", ragbench)):
        scores = scored(Trace(formula_set), CALL, labels)  # type: ignore[arg-type]

        assert [scores[name].value for name in names] == pytest.approx(list(expected))


def test_nothing_retrieved_is_zero_in_the_pure_formulas() -> None:
    """T = 0: nothing can be relevant or used; nothing was left out."""
    assert formulas.context_relevance(0, 0) == 0.0
    assert formulas.context_utilization(0, 0, 0, "ragbench") == 0.0
    assert formulas.completeness(0, 0, 0) == 1.0


def test_no_response_sentence_is_adherent() -> None:
    """A response without sentences has nothing unsupported."""
    assert formulas.adherence(labels_of([], [], {}), []) == 1.0
    assert formulas.supported_fraction([]) == 1.0


def test_utilization_never_exceeds_one() -> None:
    """More utilized than relevant keys (406 RAGBench rows) are clamped by default."""
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
    assert scored(Trace("gpt-labeling"), CALL, unsupported)["adherence"].value == 0.0


def estimate(score: Score) -> tuple[float, float | None, str] | None:
    found = score.estimate
    return None if found is None else (found.value, found.std_error, found.method)


def test_probabilities_are_an_estimate_beside_the_value_of_the_labels() -> None:
    """Values count labels; estimates of R, U, C are expectations, that of A is its probability."""
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

    error = (0.09 + 0.24 + 0.16) ** 0.5 / 3
    assert estimate(soft["context_relevance"]) == (
        pytest.approx(1.5 / 3), pytest.approx(error), "expected",
    )  # fmt: skip
    error = (0.16 + 0.09 + 0.21) ** 0.5 / 3
    assert estimate(soft["context_utilization"]) == (
        pytest.approx(1.2 / 3), pytest.approx(error), "expected",
    )  # fmt: skip
    assert estimate(soft["completeness"]) == (pytest.approx(1.1 / 1.5), None, "expected")
    assert estimate(soft["adherence"]) == (pytest.approx(0.45), None, "expected")
    assert soft["adherence"].probability == pytest.approx(0.45)
    assert {name: score.value for name, score in soft.items()} == {
        name: score.value for name, score in hard.items()
    }
    assert soft["context_relevance"].value == pytest.approx(1 / 3)
    assert {score.method for score in soft.values()} == {"labels", "mean"}
    assert {estimate(score) for score in hard.values()} == {None}
    assert hard["adherence"].probability is None


@pytest.mark.parametrize(
    ("relevant", "utilized", "of_relevant", "complete", "said"),
    [
        ([], [], 0.0, 1.0, "No document sentence is relevant, so there was nothing to cover."),
        ([], ["0b"], 0.0, 0.0, "No document sentence is relevant, but the response used 1 (0b)."),
        (["0a"], [], 0.0, 0.0, "0 of 1 relevant sentence was used; relevant but unused: 0a."),
        (["0a"], ["0b"], 1.0, 0.0, "0 of 1 relevant sentence was used; relevant but unused: 0a."),
    ],
)
def test_empty_cases_follow_the_formulas_alone(
    relevant: list[str], utilized: list[str], of_relevant: float, complete: float, said: str
) -> None:
    """Nothing relevant or nothing used: no regression stands beside what the formulas give."""
    labels = labels_of(
        relevant, utilized, ALL,
        estimates={"completeness": (0.49, 0.1), "context_utilization": (0.88, 0.2)},
    )  # fmt: skip

    scores = scored(Trace(), CALL, labels)

    found = scores["completeness"]
    assert (scores["context_utilization"].value, found.value) == (of_relevant, complete)
    assert (found.estimate is None) == (not relevant or not utilized)
    assert (found.reason or "").startswith(said)
    assert ("Estimated" in (found.reason or "")) == (found.estimate is not None)


def test_a_calibrated_estimate_comes_first() -> None:
    """`estimates` of a judge beat expectations, and never are the value."""
    labels = labels_of(
        ["0a"],
        ["0a"],
        ALL,
        estimates={"completeness": (0.25, 0.1), "adherence": (0.3, 0.05)},
        relevant_probabilities={"0a": 0.9, "0b": 0.4, "1a": 0.2},
        utilized_probabilities={"0a": 0.8, "0b": 0.1, "1a": 0.3},
    )

    scores = scored(Trace(), CALL, labels)

    assert scores["completeness"].value == 1.0
    assert estimate(scores["completeness"]) == (0.25, 0.1, "calibrated")
    assert (scores["completeness"].reason or "").endswith(
        "was used. Estimated from the judge's probabilities: 0.25 ± 0.10."
    )
    assert scores["adherence"].value == 1.0
    assert scores["adherence"].probability == 0.3
    assert estimate(scores["adherence"]) == (0.3, 0.05, "calibrated")


def test_an_estimate_may_be_of_one_set_of_formulas() -> None:
    """A name with `@` and a set is taken by that set's formulas, before a name without one."""
    both = {
        "context_utilization@gpt-labeling": (0.8, 0.3),
        "context_utilization@ragbench": (0.2, 0.1),
    }
    one = {"context_utilization@gpt-labeling": (0.8, 0.3), "context_utilization": (0.4, None)}

    def utilization(by: Formulas, estimates: dict[str, Any]) -> tuple[float | None, ...]:
        labels = labels_of(["0a"], ["0a"], ALL, estimates=estimates)
        score = scored(Trace(by), CALL, labels)["context_utilization"]
        found = estimate(score)
        assert found is not None
        assert found[2] == "calibrated"
        return found[:2]

    assert utilization("gpt-labeling", both) == (0.8, 0.3)
    assert utilization("ragbench", both) == (0.2, 0.1)
    assert utilization("gpt-labeling", one) == (0.8, 0.3)
    assert utilization("ragbench", one) == (0.4, None)


def test_an_estimated_share_goes_by_the_baseline() -> None:
    """The judge estimates R / T; of 3 sentences, divided by 2 or by 30, it is R / baseline."""
    labels = labels_of(["0a"], ["0a"], ALL, estimates={"context_relevance": (0.4, 0.1)})

    found = {
        baseline: scored(Trace(relevance_baseline=baseline), CALL, labels)["context_relevance"]
        for baseline in (None, 2, 30, 1)
    }

    assert {at: estimate(score) for at, score in found.items()} == {
        None: (0.4, 0.1, "calibrated"),
        2: (pytest.approx(0.6), pytest.approx(0.15), "calibrated"),
        30: (pytest.approx(0.04), pytest.approx(0.01), "calibrated"),
        1: (1.0, pytest.approx(0.3), "calibrated"),
    }


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
    """With R not empty, C ≤ U under the default formulas, and both sets stay in [0, 1]."""
    labels = labels_of(relevant, utilized, ALL)

    default = scored(Trace(), BIG, labels)
    ragbench = scored(Trace("ragbench"), BIG, labels)

    if relevant:
        assert default["completeness"].value is not None
        assert default["context_utilization"].value is not None
        assert default["completeness"].value <= default["context_utilization"].value + 1e-12
    for scores in (default, ragbench):
        assert all(score.value is None or 0 <= score.value <= 1 for score in scores.values())


@given(order=st.permutations(KEYS[:6]))
def test_the_order_of_keys_does_not_matter(order: list[str]) -> None:
    """Scores depend on which keys are labelled, not on their order."""
    plain = scored(Trace(), BIG, labels_of(KEYS[:6], KEYS[3:8], ALL))
    mixed = scored(Trace(), BIG, labels_of(order, KEYS[3:8][::-1], ALL))

    assert {n: s.value for n, s in plain.items()} == {n: s.value for n, s in mixed.items()}


def test_reasons_say_in_words_what_was_counted() -> None:
    """How many of how many, which, what was left, and the expectation where there is one."""
    labels = labels_of(["0a", "1a"], ["0a", "0b"], {"a": (["0a"], True), "b": ([], False)})
    soft = labels.model_copy(
        update={
            "relevant_probabilities": {"0a": 0.9, "0b": 0.4, "1a": 0.7},
            "utilized_probabilities": {"0a": 0.8, "0b": 0.6, "1a": 0.2},
            "supported_probabilities": {"a": 0.5, "b": 0.5},
        }
    )

    hard_said = {name: score.reason for name, score in scored(Trace(), CALL, labels).items()}
    soft_said = {name: score.reason for name, score in scored(Trace(), CALL, soft).items()}

    assert hard_said == {
        "context_relevance": "2 of 3 document sentences are relevant to the question (0a, 1a).",
        "context_utilization": "The response used 2 sentences (0a, 0b); 2 are relevant; relevant "
        "but unused: 1a.",
        "completeness": "1 of 2 relevant sentences was used; relevant but unused: 1a.",
        "adherence": "1 of 2 response sentences is not fully supported: b (none): “B.”",
        "supported_fraction": "1 of 2 response sentences fully supported, 0 partially.",
        "trace_average": "Mean of context_relevance 0.67, context_utilization 1.00, completeness "
        "0.50, adherence 0.00.",
    }
    assert soft_said["context_relevance"] == (
        "2 of 3 document sentences are relevant to the question (0a, 1a). Estimated from the "
        "judge's probabilities: 0.67 ± 0.24."
    )
    assert soft_said["context_utilization"] == (
        "The response used 2 sentences (0a, 0b); 2 are relevant; relevant but unused: 1a. "
        "Estimated from the judge's probabilities: 0.80."
    )
    assert soft_said["completeness"] == (
        "1 of 2 relevant sentences was used; relevant but unused: 1a. Estimated from the judge's "
        "probabilities: 0.70."
    )
    assert (soft_said["adherence"] or "").endswith(" Probability that all are supported: 0.25.")


def test_a_high_probability_does_not_speak_against_a_low_score() -> None:
    """Where labels ask for more than a probability gives, the reason says so."""
    support = {"a": (["0a"], True), "b": ([], False)}
    probable = labels_of(["0a"], ["0a"], support, supported_probabilities={"a": 0.9, "b": 0.8})

    score = scored(Trace(), CALL, probable)["adherence"]

    assert score.value == 0
    assert (score.probability or 0) >= 0.5
    assert (score.reason or "").endswith(", below what this judge asks for.")


def test_reasons_of_nothing_and_of_everything() -> None:
    """No empty brackets, nothing unused that was used, and the documents that hold nothing."""
    nothing = scored(Trace(), CALL, labels_of([], [], ALL))
    everything = scored(Trace(), CALL, labels_of(["0a", "0b"], ["0a", "0b"], ALL))
    recorded = labels_of(["0a"], ["0a"], ALL, unsupported_response_sentence_keys=["b"])

    assert nothing["context_relevance"].reason == (
        "0 of 3 document sentences are relevant to the question."
    )
    assert nothing["context_utilization"].reason == "The response used 0 sentences; 0 are relevant."
    assert nothing["completeness"].reason == (
        "No document sentence is relevant, so there was nothing to cover."
    )
    assert everything["context_relevance"].reason == (
        "2 of 3 document sentences are relevant to the question (0a, 0b); nothing relevant in "
        "document 1."
    )
    assert everything["completeness"].reason == "2 of 2 relevant sentences were used."
    assert everything["adherence"].reason == (
        "All 2 response sentences are fully supported by the documents."
    )
    assert scored(Trace("ragbench"), CALL, recorded)["adherence"].reason == (
        "Recorded as unsupported: b."
    )


def test_reasons_of_one() -> None:
    """One sentence is, was, and has no plural; of documents without any twelve are named."""
    call = keyed([["One."]], ["A."])
    for supported, said in ((True, "The one response sentence is fully supported by the"),
                            (False, "1 of 1 response sentence is not fully supported: a")):  # fmt: skip
        labels = labels_of(["0a"], ["0a"], {"a": ([], supported)})
        one = {name: score.reason or "" for name, score in scored(Trace(), call, labels).items()}

        assert one["context_relevance"] == (
            "1 of 1 document sentence is relevant to the question (0a)."
        )
        assert one["context_utilization"] == ("The response used 1 sentence (0a); 1 is relevant.")
        assert one["completeness"] == "1 of 1 relevant sentence was used."
        assert one["adherence"].startswith(said)

    for count, rest in ((13, ""), (14, ", …")):
        many = keyed([["One."]] * count, ["A."])
        reason = scored(Trace(), many, labels_of(["0a"], [], {}))["context_relevance"].reason or ""
        shown = ", ".join(map(str, range(1, 13)))
        assert reason.endswith(f"; nothing relevant in documents {shown}{rest}.")


def test_what_speaks_against_adherence_goes_by_the_formulas() -> None:
    """`ragbench` goes by the record alone, the default by the sentences: so do reason, evidence."""
    rows = {
        "listed": labels_of(["0a"], ["0a"], ALL, unsupported_response_sentence_keys=["b"]),
        "not listed": labels_of(
            ["0a"], ["0a"], ALL | {"b": ([], False)}, unsupported_response_sentence_keys=[]
        ),
    }
    found = {}
    for name, labels in rows.items():
        for by in ("ragbench", "gpt-labeling"):
            score = scored(Trace(by), CALL, labels)["adherence"]
            against = (score.evidence or {})["unsupported"]
            keys = [entry["key"] for entry in against]  # type: ignore[index,union-attr,call-overload]
            found[name, by] = (score.value, keys, (score.reason or "")[:26])

    assert found == {
        ("listed", "ragbench"): (0.0, ["b"], "Recorded as unsupported: b"),
        ("listed", "gpt-labeling"): (1.0, [], "All 2 response sentences a"),
        ("not listed", "ragbench"): (1.0, [], "No response sentence is re"),
        ("not listed", "gpt-labeling"): (0.0, ["b"], "1 of 2 response sentences "),
    }


@pytest.mark.parametrize("count", [12, 13])
def test_a_reason_names_twelve_at_most_and_quotes_in_short(count: int) -> None:
    """A person reads it; the evidence beside it holds all."""
    text = "w" * 150 + " \n" + "x" * (9 if count == 12 else 10)
    call = keyed([["S."] * count], [text] * count)
    keys = [sentence.key for sentence in call.documents]
    labels = labels_of(keys, [], {sentence.key: ([], False) for sentence in call.response})

    scores = scored(Trace(), call, labels)
    relevance, adherence = scores["context_relevance"], scores["adherence"]

    more = count > 12
    shown = ", ".join(keys[:12]) + (", …" if more else "")
    assert f"question ({shown})." in (relevance.reason or "")
    assert (relevance.evidence or {})["relevant_keys"] == keys
    quoted = "w" * 150 + " " + ("x" * 8 + "…" if more else "x" * 9)
    assert (adherence.reason or "").count(f"(none): “{quoted}”") == 12
    assert (adherence.reason or "").endswith("; …" if more else "”")
    assert len((adherence.evidence or {})["unsupported"]) == count  # type: ignore[arg-type]


def test_errors_and_thresholds_stand_on_every_score_that_has_them() -> None:
    """Of utilization under `ragbench`, of a calibrated adherence, and beside what has no value."""
    labels = labels_of(
        ["0a"], ["0a"], {"a": (["0a"], True)},
        relevant_probabilities={"0a": 0.9, "0b": 0.4, "1a": 0.2},
        utilized_probabilities={"0a": 0.8, "0b": 0.1, "1a": 0.3},
    )  # fmt: skip
    calibrated = labels_of(["0a"], ["0a"], ALL, estimates={"adherence": (0.3, 0.05)})

    def error(trace: Trace, name: str, of: Labels = labels) -> float | None:
        found = scored(trace, CALL, of)[name].estimate
        assert found is not None
        return found.std_error

    soft = scored(Trace("ragbench", thresholds={"adherence": 0.5}), CALL, labels)

    both = (0.16 + 0.09 + 0.21) ** 0.5 / 3
    assert error(Trace("ragbench"), "context_utilization") == pytest.approx(both)
    assert error(Trace(), "context_utilization") is None
    assert error(Trace(relevance_baseline=2), "context_relevance") == pytest.approx(
        (0.09 + 0.24 + 0.16) ** 0.5 / 2
    )
    assert soft["adherence"].unscored == "unlabelled_sentences"
    assert (soft["adherence"].threshold, soft["adherence"].passed) == (0.5, None)
    assert error(Trace(), "adherence", calibrated) == 0.05


@pytest.mark.parametrize(
    ("relevant", "utilized"),
    [
        (None, {"0a": 0.5, "0b": 0.5, "1a": 0.5}),
        ({"0a": 0.5, "0b": 0.5, "1a": 0.5}, None),
        ({"0a": 0.5, "0b": 0.5}, {"0a": 0.5, "0b": 0.5, "1a": 0.5}),
        ({"0a": 0.5, "0b": 0.5, "1a": 0.5}, {"0a": 0.5, "0b": 0.5}),
    ],
)
def test_without_both_probabilities_of_every_sentence_the_labels_count(
    relevant: dict[str, float] | None, utilized: dict[str, float] | None
) -> None:
    """An expectation over some sentences would be no expectation of the whole."""
    labels = labels_of(
        ["0a"], ["0a"], ALL, relevant_probabilities=relevant, utilized_probabilities=utilized
    )

    scores = scored(Trace(), CALL, labels)

    assert {scores[name].method for name in TRACE_SCORES[:3]} == {"labels"}
    assert scores["context_relevance"].value == pytest.approx(1 / 3)
    assert {scores[name].estimate for name in TRACE_SCORES[:3]} == {None}


@pytest.mark.parametrize("by", ["gpt-labeling", "ragbench"])
def test_a_contradiction_is_named_in_the_reason(by: Formulas) -> None:
    """Under both sets of formulas, in the evidence too, and without a probability of words."""
    labels = labels_of(
        ["0a"], ["0a"], {"a": (["0a"], False), "b": (["0b"], True)},
        unsupported_response_sentence_keys=["a"],
        contradictions={"a": ("number 60 (documents: 30)",)},
        supported_probabilities={"a": 0.8, "b": 0.9},
    )  # fmt: skip

    adherence = scored(Trace(by), CALL, labels)["adherence"]

    assert (adherence.reason or "").endswith(" Contradicted in a: number 60 (documents: 30).")
    assert (adherence.evidence or {})["unsupported"] == [
        {
            "key": "a",
            "text": "A.",
            "support": "partial",
            "supporting_sentence_keys": ["0a"],
            "explanation": "",
            "contradictions": ["number 60 (documents: 30)"],
        }
    ]


def test_one_response_sentence_is_counted_in_the_singular() -> None:
    """The reason of a response of one sentence reads as a person would write it."""
    labels = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})

    score = scored(Trace(), keyed([["One."]], ["A."]), labels)["supported_fraction"]

    assert score.reason == "1 of 1 response sentence fully supported, 0 partially."


def test_scores_made_without_validation_are_the_validated_ones() -> None:
    """Every field, those that count as given, and the JSON equal those of the constructors."""
    call = RagCall(question="How high is it?", documents=["It is 9 m high."], response="It is 9 m.")
    made = (
        RagEvaluator(metrics=[Trace(thresholds={"adherence": 0.5})])
        .evaluate_sync(call)
        .scores.values()
    )
    assert any(score.estimate for score in made)
    for score in made:
        given = {name: getattr(score, name) for name in score.model_fields_set}
        if score.estimate is not None:
            given["estimate"] = ScoreEstimate(**dict(score.estimate))
        again = Score(**given)

        assert score == again
        assert score.model_fields_set == again.model_fields_set
        assert list(vars(score)) == list(Score.model_fields)
        assert score.model_dump_json() == again.model_dump_json()
