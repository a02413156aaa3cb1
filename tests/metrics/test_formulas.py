"""TRACe against every number that seed 004 works out."""

from __future__ import annotations

import pytest
from by_hand import keyed, labels_of, scored

from rag_eval_integrations.judges import reconcile
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.records import Labels

STEP_2 = {
    "relevance_explanation": "Document discusses ML basics...",
    "all_relevant_sentence_keys": ["0a", "0b", "1a"],
    "overall_supported_explanation": "Response is grounded...",
    "overall_supported": True,
    "sentence_support_information": [
        {
            "response_sentence_key": "a",
            "explanation": "Matches document sentences...",
            "supporting_sentence_keys": ["0a", "1a"],
            "fully_supported": True,
        },
        {
            "response_sentence_key": "b",
            "explanation": "Partially supported...",
            "supporting_sentence_keys": ["1b"],
            "fully_supported": False,
        },
    ],
    "all_utilized_sentence_keys": ["0a", "1a", "1b"],
}

COMPLETE = {
    "all_relevant_sentence_keys": ["0a", "0b", "1a", "1b"],
    "all_utilized_sentence_keys": ["0a", "0b", "1a", "1b"],
    "sentence_support_information": [
        {
            "response_sentence_key": "a",
            "supporting_sentence_keys": ["0a", "0b"],
            "fully_supported": True,
        },
        {
            "response_sentence_key": "b",
            "supporting_sentence_keys": ["1a"],
            "fully_supported": True,
        },
        {
            "response_sentence_key": "c",
            "supporting_sentence_keys": ["1b"],
            "fully_supported": False,
        },
    ],
}

DOCUMENTS = [
    ["Machine learning is AI.", "It learns from data."],
    ["Neural networks are models.", "They mimic brains."],
]
RESPONSE = ["Machine learning uses neural networks.", "They learn patterns."]

COMPLETE_DOCUMENTS = [
    [
        "Machine learning is a subset of AI.",
        "It learns patterns from data.",
        "Algorithms improve through experience.",
    ],
    ["Deep learning uses neural networks.", "It's popular in computer vision."],
    ["Supervised learning needs labeled data.", "Unsupervised learning finds patterns."],
]
COMPLETE_RESPONSE = [
    "Machine learning is a field of AI that learns from data.",
    "Deep learning uses neural networks.",
    "It's powerful for image recognition.",
]


def test_relevance_is_twelve_of_thirty() -> None:
    """12 relevant of 30 retrieved sentences are 0.40."""
    assert formulas.context_relevance(12, 30) == 0.40


def test_utilization_is_eight_of_twelve() -> None:
    """8 utilized of 12 relevant sentences are 0.67."""
    assert formulas.context_utilization(12, 8, 30) == pytest.approx(8 / 12)


def test_completeness_is_four_of_seven_and_names_what_is_missing() -> None:
    """{0a 0b 1a 1c 2a 2b 3a} relevant, {0a 0b 1c 2a} used: 4/7, missing 1a, 2b, 3a."""
    call = keyed([["x", "y", "z"]] * 4, ["A."])
    labels = labels_of(
        ["0a", "0b", "1a", "1c", "2a", "2b", "3a"],
        ["0a", "0b", "1c", "2a"],
        {"a": (["0a"], True)},
    )

    score = scored(Trace(), call, labels)["completeness"]

    assert score.value == pytest.approx(4 / 7)
    assert score.evidence is not None
    assert score.evidence["relevant_unused_keys"] == ["1a", "2b", "3a"]
    assert "1a, 2b, 3a" in (score.reason or "")


def test_adherence_is_one_when_all_sentences_are_supported() -> None:
    """Seed 004, adherence example 1: three supported sentences give 1.0."""
    labels = labels_of(
        [], [], {"a": (["0a"], True), "b": (["1b"], True), "c": (["2a", "2b"], True)}
    )
    assert formulas.adherence(labels, ["a", "b", "c"]) == 1.0


def test_adherence_is_zero_when_one_sentence_is_not_supported() -> None:
    """Seed 004, adherence example 2: one hallucination among three gives 0.0 and is named."""
    call = keyed(
        [["x"], ["x", "y"], ["x", "y"]],
        [
            "Machine learning is a subset of AI.",
            "It requires quantum computers.",
            "Common applications include image recognition.",
        ],
    )
    labels = labels_of(
        ["0a"], ["0a"], {"a": (["0a"], True), "b": ([], False), "c": (["2a", "2b"], True)}
    )

    score = scored(Trace(), call, labels)["adherence"]

    assert score.value == 0.0
    assert score.evidence is not None
    assert score.evidence["unsupported"] == [
        {
            "key": "b",
            "text": "It requires quantum computers.",
            "support": "none",
            "supporting_sentence_keys": [],
            "explanation": "",
        }
    ]
    assert "It requires quantum computers." in (score.reason or "")


def test_step_three() -> None:
    """Seed 004, step 3: 0.15, 1.0, 0.67 and 0 with the baseline 20."""
    call = keyed(DOCUMENTS, RESPONSE)

    scores = scored(Trace(relevance_baseline=20), call, Labels.model_validate(STEP_2))

    assert scores["context_relevance"].value == 0.15
    assert scores["context_utilization"].value == 1.0
    assert scores["completeness"].value == pytest.approx(2 / 3)
    assert scores["adherence"].value == 0.0
    assert scores["adherence"].by.relevance_baseline == 20


def test_complete_example() -> None:
    """Seed 004, complete example: 0.20, 1.0, 1.0, 0.0, average 0.55."""
    call = keyed(COMPLETE_DOCUMENTS, COMPLETE_RESPONSE)

    scores = scored(Trace(relevance_baseline=20), call, Labels.model_validate(COMPLETE))

    assert scores["context_relevance"].value == 0.20
    assert scores["context_utilization"].value == 1.0
    assert scores["completeness"].value == 1.0
    assert scores["adherence"].value == 0.0
    assert scores["trace_average"].value == pytest.approx(0.55)
    assert scores["supported_fraction"].value == pytest.approx(2 / 3)
    assert scores["adherence"].evidence is not None
    assert scores["adherence"].evidence["unsupported"][0]["support"] == "partial"  # type: ignore[index,call-overload]


def test_relevance_without_a_baseline_divides_by_all_sentences() -> None:
    """The complete example has 7 sentences: 4/7 by default."""
    call = keyed(COMPLETE_DOCUMENTS, COMPLETE_RESPONSE)

    score = scored(Trace(), call, Labels.model_validate(COMPLETE))["context_relevance"]

    assert score.value == pytest.approx(4 / 7)
    assert score.evidence is not None
    assert score.evidence["documents_without_relevant"] == [2]


def test_the_overall_verdict_of_step_two_is_a_recorded_conflict() -> None:
    """`overall_supported` says true while b is not: recorded, and A stays 0."""
    call = keyed(DOCUMENTS, RESPONSE)

    labels = reconcile(Labels.model_validate(STEP_2), call)

    assert labels.overall_conflict is True
    assert labels.support("a") == "full"
    assert labels.support("b") == "partial"
