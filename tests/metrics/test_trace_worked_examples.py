"""TRACe under the GPT-labelling formulas (docs/method.md), against figures worked out by hand."""

from __future__ import annotations

import pytest
from by_hand import keyed, labels_of, scored

from rag_eval_integrations.judges import reconcile
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.records import Labels

NESTS = {
    "relevance_explanation": "Hives, trees and paper nests are told.",
    "all_relevant_sentence_keys": ["0a", "0b", "1a"],
    "overall_supported_explanation": "Both homes are told.",
    "overall_supported": True,
    "sentence_support_information": [
        {
            "response_sentence_key": "a",
            "explanation": "Hives and paper nests are there.",
            "supporting_sentence_keys": ["0a", "1a"],
            "fully_supported": True,
        },
        {
            "response_sentence_key": "b",
            "explanation": "One summer is told, building again is not.",
            "supporting_sentence_keys": ["1b"],
            "fully_supported": False,
        },
    ],
    "all_utilized_sentence_keys": ["0a", "1a", "1b"],
}

WINTER = {
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

NESTS_DOCUMENTS = [
    ["Bees live in hives.", "Some live in hollow trees."],
    ["Wasps build paper nests.", "A nest lasts one summer."],
]
NESTS_RESPONSE = ["Bees live in hives, wasps in paper nests.", "Each summer they build it again."]

WINTER_DOCUMENTS = [
    [
        "A colony stays awake all winter.",
        "It eats the honey that it stored.",
        "Drones are driven out in autumn.",
    ],
    ["The bees hang together in a cluster.", "It's warmest in the middle."],
    ["Bumble bee queens sleep in the ground.", "Their workers die in October."],
]
WINTER_RESPONSE = [
    "A colony stays awake and eats its stored honey.",
    "The bees hang together in a cluster.",
    "It's as hot as an oven in the middle.",
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
    """Three of three response sentences are fully supported: 1.0."""
    labels = labels_of(
        [], [], {"a": (["0a"], True), "b": (["1b"], True), "c": (["2a", "2b"], True)}
    )
    assert formulas.adherence(labels, ["a", "b", "c"]) == 1.0


def test_adherence_is_zero_when_one_sentence_is_not_supported() -> None:
    """One invented sentence among three gives 0.0, and is named with its text."""
    call = keyed(
        [["x"], ["x", "y"], ["x", "y"]],
        [
            "A colony stays awake all winter.",
            "It heats the hive with burning wax.",
            "The bees hang together in a cluster.",
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
            "text": "It heats the hive with burning wax.",
            "support": "none",
            "supporting_sentence_keys": [],
            "explanation": "",
        }
    ]
    assert "It heats the hive with burning wax." in (score.reason or "")


def test_three_relevant_three_used_two_of_them_both() -> None:
    """0.15, 1.0, 0.67 and 0 with the baseline 20; b is supported in part only."""
    call = keyed(NESTS_DOCUMENTS, NESTS_RESPONSE)

    scores = scored(Trace(relevance_baseline=20), call, Labels.model_validate(NESTS))

    assert scores["context_relevance"].value == 0.15
    assert scores["context_utilization"].value == 1.0
    assert scores["completeness"].value == pytest.approx(2 / 3)
    assert scores["adherence"].value == 0.0
    assert scores["adherence"].by.relevance_baseline == 20


def test_four_relevant_and_all_of_them_used() -> None:
    """0.20, 1.0, 1.0 and 0.0 with the baseline 20; average 0.55."""
    call = keyed(WINTER_DOCUMENTS, WINTER_RESPONSE)

    scores = scored(Trace(relevance_baseline=20), call, Labels.model_validate(WINTER))

    assert scores["context_relevance"].value == 0.20
    assert scores["context_utilization"].value == 1.0
    assert scores["completeness"].value == 1.0
    assert scores["adherence"].value == 0.0
    assert scores["trace_average"].value == pytest.approx(0.55)
    assert scores["supported_fraction"].value == pytest.approx(2 / 3)
    assert scores["adherence"].evidence is not None
    assert scores["adherence"].evidence["unsupported"][0]["support"] == "partial"  # type: ignore[index,call-overload]


def test_relevance_without_a_baseline_divides_by_all_sentences() -> None:
    """The same call has 7 document sentences: 4/7 by default."""
    call = keyed(WINTER_DOCUMENTS, WINTER_RESPONSE)

    score = scored(Trace(), call, Labels.model_validate(WINTER))["context_relevance"]

    assert score.value == pytest.approx(4 / 7)
    assert score.evidence is not None
    assert score.evidence["documents_without_relevant"] == [2]


def test_an_overall_verdict_against_a_sentences_is_a_recorded_conflict() -> None:
    """`overall_supported` says true while b is not: recorded, and A stays 0."""
    call = keyed(NESTS_DOCUMENTS, NESTS_RESPONSE)

    labels = reconcile(Labels.model_validate(NESTS), call)

    assert labels.overall_conflict is True
    assert labels.support("a") == "full"
    assert labels.support("b") == "partial"
