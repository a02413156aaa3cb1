"""TRACe (docs/method.md): figures by hand, empty cases, both formula sets, evidence, properties."""

from __future__ import annotations

import re
from typing import Any

import pytest
from by_hand import keyed, labels_of, scored

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.metrics.trace.formulas import Formulas
from rag_eval_integrations.records import Labels, Score, SentencizedCall

CALL = keyed([["One.", "Two."], ["Three."]], ["A.", "B."])
ALL = {"a": (["0a"], True), "b": (["0b"], True)}
PROBABILITIES = {
    "relevant_probabilities": {"0a": 0.9, "0b": 0.4, "1a": 0.2},
    "utilized_probabilities": {"0a": 0.8, "0b": 0.1, "1a": 0.3},
}


def reasons(labels: Labels, call: SentencizedCall = CALL) -> dict[str, str | None]:
    return {name: score.reason for name, score in scored(Trace(), call, labels).items()}


def evidence(score: Score, name: str) -> Any:
    return (score.evidence or {})[name]


# --- Worked examples


def test_completeness_is_four_of_seven_and_names_what_is_missing() -> None:
    """{0a 0b 1a 1c 2a 2b 3a} relevant, {0a 0b 1c 2a} used: 4/7, missing 1a, 2b, 3a."""
    call = keyed([["x", "y", "z"]] * 4, ["A."])
    relevant = ["0a", "0b", "1a", "1c", "2a", "2b", "3a"]
    labels = labels_of(relevant, ["0a", "0b", "1c", "2a"], {"a": (["0a"], True)})

    score = scored(Trace(), call, labels)["completeness"]

    assert score.value == pytest.approx(4 / 7)
    assert evidence(score, "relevant_unused_keys") == ["1a", "2b", "3a"]
    assert "1a, 2b, 3a" in (score.reason or "")


def test_adherence_is_zero_when_one_sentence_is_not_supported() -> None:
    """One invented sentence among three gives 0.0, and is named with its text."""
    invented = "It heats the hive with burning wax."
    response = ["A colony stays awake all winter.", invented, "The bees hang together."]
    call = keyed([["x"], ["x", "y"], ["x", "y"]], response)
    support = {"a": (["0a"], True), "b": ([], False), "c": (["2a", "2b"], True)}

    score = scored(Trace(), call, labels_of(["0a"], ["0a"], support))["adherence"]

    assert score.value == 0.0
    none = {"support": "none", "supporting_sentence_keys": [], "explanation": ""}
    assert evidence(score, "unsupported") == [{"key": "b", "text": invented, **none}]
    assert invented in (score.reason or "")


def test_four_relevant_and_all_of_them_used() -> None:
    """0.20, 1.0, 1.0 and 0.0 with the baseline 20; average 0.55; 4/7 of the sentences without it."""
    four = ["0a", "0b", "1a", "1b"]
    support = {"a": (["0a", "0b"], True), "b": (["1a"], True), "c": (["1b"], False)}
    labels = labels_of(four, four, support)
    call = keyed([["x", "y", "z"], ["x", "y"], ["x", "y"]], ["A.", "B.", "C."])

    scores = scored(Trace(relevance_baseline=20), call, labels)
    by_sentences = scored(Trace(), call, labels)["context_relevance"]

    assert {name: score.value for name, score in scores.items()} == pytest.approx(
        dict(zip(TRACE_SCORES, (0.20, 1.0, 1.0, 0.0, 2 / 3, 0.55), strict=True))
    )
    assert evidence(scores["adherence"], "unsupported")[0]["support"] == "partial"
    assert by_sentences.value == pytest.approx(4 / 7)
    assert evidence(by_sentences, "documents_without_relevant") == [2]


# --- Empty cases, both formula sets


@pytest.mark.parametrize(
    ("relevant", "utilized", "by_labelling", "ragbench", "said"),
    [
        ([], [], (0.0, 0.0, 1.0), (0.0, 0.0, 1.0),
         "No document sentence is relevant, so there was nothing to cover."),
        ([], ["0a"], (0.0, 0.0, 0.0), (0.0, 1 / 3, 1.0),
         "No document sentence is relevant, but the response used 1 (0a)."),
        (["0a"], [], (1 / 3, 0.0, 0.0), (1 / 3, 0.0, 0.0),
         "0 of 1 relevant sentence was used; relevant but unused: 0a."),
        (["0a"], ["0a"], (1 / 3, 1.0, 1.0), (1 / 3, 1 / 3, 1.0), "1 of 1 relevant sentence was used."),
    ],
)  # fmt: skip
def test_empty_cases(
    relevant: list[str], utilized: list[str], by_labelling: tuple[float, ...],
    ragbench: tuple[float, ...], said: str,
) -> None:  # fmt: skip
    """R, U empty or not: what each formula set gives (R, U, C); no regression stands beside it."""
    labels = labels_of(relevant, utilized, ALL, estimates={"completeness": (0.49, 0.1)})
    names = ("context_relevance", "context_utilization", "completeness")

    for formula_set, expected in (("gpt-labeling", by_labelling), ("ragbench", ragbench)):
        scores = scored(Trace(formula_set), CALL, labels)  # type: ignore[arg-type]

        assert [scores[name].value for name in names] == pytest.approx(list(expected))
    completeness = scored(Trace(), CALL, labels)["completeness"]
    assert (completeness.estimate is None) == (not relevant or not utilized)
    assert completeness.reason == said


def test_of_nothing_the_formulas_give_what_nothing_speaks_against() -> None:
    """T = 0: nothing is relevant, used or left out; without response sentences all is supported."""
    assert formulas.context_relevance(0, 0) == 0.0
    assert formulas.context_utilization(0, 0, 0, "ragbench") == 0.0
    assert formulas.completeness(0, 0, 0) == 1.0
    assert formulas.adherence(labels_of([], [], {}), []) == 1.0
    assert formulas.supported_fraction([]) == 1.0


def test_an_unlabelled_sentence_leaves_adherence_unscored() -> None:
    """All labelled sentences are supported, one has no entry: it cannot be known; else A = 0."""
    scores = scored(Trace(), CALL, labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))

    for name in ("adherence", "supported_fraction", "trace_average"):
        assert scores[name].unscored == "unlabelled_sentences"
    assert scores["context_relevance"].status == "scored"
    assert "b" in (scores["adherence"].reason or "")
    decided = scored(Trace(), CALL, labels_of(["0a"], ["0a"], {"a": ([], False)}))
    assert decided["adherence"].value == 0.0


def estimate(score: Score) -> tuple[float, float | None, str] | None:
    found = score.estimate
    return None if found is None else (found.value, found.std_error, found.method)


def test_probabilities_are_an_estimate_beside_the_value_of_the_labels() -> None:
    """Values count labels; estimates of R, U, C are expectations, that of A is its probability."""
    supported = {"a": 0.9, "b": 0.5}
    labels = labels_of(["0a"], ["0a"], ALL, **PROBABILITIES, supported_probabilities=supported)

    soft = scored(Trace("ragbench"), CALL, labels)
    hard = scored(Trace("ragbench", hard=True), CALL, labels)

    for name, value, error in (
        ("context_relevance", 1.5 / 3, pytest.approx((0.09 + 0.24 + 0.16) ** 0.5 / 3)),
        ("context_utilization", 1.2 / 3, pytest.approx((0.16 + 0.09 + 0.21) ** 0.5 / 3)),
        ("completeness", 1.1 / 1.5, None),
        ("adherence", 0.45, None),
    ):
        assert estimate(soft[name]) == (pytest.approx(value), error, "expected")
    assert soft["adherence"].probability == pytest.approx(0.45)
    assert [score.value for score in soft.values()] == [score.value for score in hard.values()]
    assert soft["context_relevance"].value == pytest.approx(1 / 3)
    assert {score.method for score in soft.values()} == {"labels", "mean"}
    assert {estimate(score) for score in hard.values()} == {None}
    assert hard["adherence"].probability is None


def test_a_calibrated_estimate_comes_first() -> None:
    """`estimates` of a judge beat expectations, and never are the value; `@` names formulas."""
    ours: dict[str, Any] = {"completeness": (0.25, 0.1), "adherence": (0.3, 0.05)}
    utilization = {
        "context_utilization@gpt-labeling": (0.8, 0.3),
        "context_utilization": (0.4, None),
    }
    estimates = ours | utilization
    labels = labels_of(["0a"], ["0a"], ALL, estimates=estimates, **PROBABILITIES)

    scores = scored(Trace(), CALL, labels)

    for name in ("completeness", "adherence"):
        assert scores[name].value == 1.0
        assert estimate(scores[name]) == (*estimates[name], "calibrated")
    assert scores["completeness"].reason == "1 of 1 relevant sentence was used."
    assert scores["adherence"].probability == 0.3
    assert estimate(scores["context_utilization"]) == (0.8, 0.3, "calibrated")
    ragbench = scored(Trace("ragbench"), CALL, labels)["context_utilization"]
    assert estimate(ragbench) == (0.4, None, "calibrated")


def test_an_estimated_share_goes_by_the_baseline() -> None:
    """The judge estimates R / T; of 3 sentences, divided by 2 or by 30, it is R / baseline."""
    labels = labels_of(["0a"], ["0a"], ALL, estimates={"context_relevance": (0.4, 0.1)})

    for baseline, value, error in ((None, 0.4, 0.1), (2, 0.6, 0.15), (30, 0.04, 0.01), (1, 1, 0.3)):
        score = scored(Trace(relevance_baseline=baseline), CALL, labels)["context_relevance"]
        expected = (pytest.approx(value), pytest.approx(error), "calibrated")
        assert estimate(score) == expected


def test_thresholds_give_a_verdict() -> None:
    """`passed` compares with the threshold, and is None without one or without a value."""
    trace = Trace(thresholds={"adherence": 1.0, "completeness": 0.9})
    scores = scored(trace, CALL, labels_of(["0a", "0b"], ["0a"], ALL))
    unknown = scored(trace, CALL, labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))["adherence"]

    names = ("adherence", "completeness", "context_relevance")
    assert [scores[name].passed for name in names] == [True, False, None]
    assert (unknown.threshold, unknown.passed) == (1.0, None)


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
    with pytest.raises(ConfigurationError, match=re.escape(f"`{field}` = ")):
        Trace(**arguments)  # type: ignore[arg-type]


def test_reasons_say_in_words_what_was_counted() -> None:
    """How many of how many, which, what was left; a reason's only figures are the value's."""
    labels = labels_of(["0a", "1a"], ["0a", "0b"], {"a": (["0a"], True), "b": ([], False)})
    supported = {"supported_probabilities": {"a": 0.9, "b": 0.8}}

    assert reasons(labels) == reasons(labels.model_copy(update={**PROBABILITIES, **supported}))
    assert reasons(labels) == {
        "context_relevance": "2 of 3 document sentences are relevant to the question (0a, 1a).",
        "context_utilization": "The response used 2 sentences (0a, 0b); 2 are relevant; relevant "
        "but unused: 1a.",
        "completeness": "1 of 2 relevant sentences was used; relevant but unused: 1a.",
        "adherence": "1 of 2 response sentences is not fully supported: b (none): “B.”",
        "supported_fraction": "1 of 2 response sentences fully supported, 0 partially.",
        "trace_average": "Mean of context_relevance 0.67, context_utilization 1.00, completeness "
        "0.50, adherence 0.00.",
    }


def test_reasons_of_nothing_and_of_everything() -> None:
    """No empty brackets, nothing unused that was used, documents that hold nothing, no plural of 1."""
    call, labels = keyed([["One."]], ["A."]), labels_of(["0a"], ["0a"], {"a": (["0a"], True)})
    nothing, single = reasons(labels_of([], [], ALL)), reasons(labels, call)
    everything = reasons(labels_of(["0a", "0b"], ["0a", "0b"], ALL))

    for said, reason in (
        (nothing["context_relevance"], "0 of 3 document sentences are relevant to the question."),
        (nothing["context_utilization"], "The response used 0 sentences; 0 are relevant."),
        (single["context_relevance"], "1 of 1 document sentence is relevant to the question (0a)."),
        (single["context_utilization"], "The response used 1 sentence (0a); 1 is relevant."),
        (single["supported_fraction"], "1 of 1 response sentence fully supported, 0 partially."),
        (everything["completeness"], "2 of 2 relevant sentences were used."),
        (everything["adherence"], "All 2 response sentences are fully supported by the documents."),
    ):
        assert said == reason
    last = "(0a, 0b); nothing relevant in document 1."
    assert (everything["context_relevance"] or "").endswith(last)


def test_what_speaks_against_adherence_goes_by_the_formulas() -> None:
    """`ragbench` goes by the record alone, the default by the sentences: so do reason, evidence."""
    listed = labels_of(["0a"], ["0a"], ALL, unsupported_response_sentence_keys=["b"])
    support = ALL | {"b": ([], False)}
    unlisted = labels_of(["0a"], ["0a"], support, unsupported_response_sentence_keys=[])
    rows: list[tuple[Labels, Formulas, float, list[str], str]] = [
        (listed, "ragbench", 0.0, ["b"], "Recorded as unsupported: b"),
        (listed, "gpt-labeling", 1.0, [], "All 2 response sentences a"),
        (unlisted, "ragbench", 1.0, [], "No response sentence is re"),
        (unlisted, "gpt-labeling", 0.0, ["b"], "1 of 2 response sentences "),
    ]
    for labels, by, value, keys, reason in rows:
        score = scored(Trace(by), CALL, labels)["adherence"]
        assert (score.value, (score.reason or "")[:26]) == (value, reason)
        assert [entry["key"] for entry in evidence(score, "unsupported")] == keys


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
    assert evidence(relevance, "relevant_keys") == keys
    quoted = "w" * 150 + " " + ("x" * 8 + "…" if more else "x" * 9)
    assert (adherence.reason or "").count(f"(none): “{quoted}”") == 12
    assert (adherence.reason or "").endswith("; …" if more else "”")
    assert len(evidence(adherence, "unsupported")) == count


def test_without_both_probabilities_of_every_sentence_the_labels_count() -> None:
    """An expectation over some sentences would be no expectation of the whole."""
    some = {**PROBABILITIES, "utilized_probabilities": {"0a": 0.5, "0b": 0.5}}
    labels = labels_of(["0a"], ["0a"], ALL, **some)

    scores = scored(Trace(), CALL, labels)

    shown = {(scores[name].method, scores[name].estimate) for name in TRACE_SCORES[:3]}
    assert shown == {("labels", None)}
    assert scores["context_relevance"].value == pytest.approx(1 / 3)


@pytest.mark.parametrize("by", ["gpt-labeling", "ragbench"])
def test_a_contradiction_is_named_in_the_reason(by: Formulas) -> None:
    """Under both sets of formulas, in the evidence too."""
    labels = labels_of(
        ["0a"], ["0a"], {"a": (["0a"], False), "b": (["0b"], True)},
        unsupported_response_sentence_keys=["a"],
        contradictions={"a": ("number 60 (documents: 30)",)},
        supported_probabilities={"a": 0.8, "b": 0.9},
    )  # fmt: skip

    adherence = scored(Trace(by), CALL, labels)["adherence"]

    assert (adherence.reason or "").endswith(" Contradicted in a: number 60 (documents: 30).")
    [against] = evidence(adherence, "unsupported")
    assert against["contradictions"] == ["number 60 (documents: 30)"]
