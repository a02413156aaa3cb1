"""Key by key: which sentences count, and the figures over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_integrations.agreement import Pair
from rag_eval_integrations.records import Labels, Sentence, Sentences

from .conftest import Make, agreed


@pytest.fixture
def keys(evaluation: Make, sentences: Callable[..., Sentences]) -> Callable[..., Any]:
    """The key figures of rows: (predicted labels, gold labels) over the same sentences."""

    def compute(
        *rows: tuple[Labels, Labels], documents: str = "0a 0b 0c 1a", response: str = "a b"
    ) -> Any:
        both = sentences(documents, response)
        pairs = [
            Pair(
                evaluation(str(row), labels=predicted, sentences=both),
                evaluation(str(row), labels=gold, sentences=both),
            )
            for row, (predicted, gold) in enumerate(rows)
        ]
        return agreed(pairs)["keys"]

    return compute


def test_supporting_pairs_are_worked_by_hand(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """(a,0a) is in both, (b,0c) and (b,1a) in one: F1 2/4; special words are no sentences."""
    predicted = labels(support={"a": ("0a general", True), "b": ("0c", True)})
    gold = labels(support={"a": ("0a", True), "b": ("1a", True), "z": ("0b", True)})

    supporting = keys((predicted, gold))["supporting"]

    assert supporting["f1"] == 0.5
    assert supporting["kappa"] == pytest.approx((2 * (1 * 5 - 1 * 1)) / (2 * 6 + 2 * 6))


def test_unlabelled_sentences_are_counted_not_condemned(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """A sentence without a verdict on either side is left out, and said."""
    predicted = labels(support={"a": ("", False), "b": ("", None)})
    gold = labels(support={"a": ("", False)})

    unsupported = keys((predicted, gold))["unsupported"]

    assert (unsupported["f1"], unsupported["unlabelled"]) == (1, 1)


def test_rows_without_comparable_sentences_are_skipped_and_counted(
    evaluation: Make, sentences: Callable[..., Sentences], labels: Callable[..., Labels]
) -> None:
    """No labels on a side, other keys or other texts: `keys_skipped`."""
    full = {"labels": labels("0a"), "sentences": sentences("0a 0b")}
    other_keys = {"labels": labels("0a"), "sentences": sentences("0a")}
    reworded = Sentences(documents=(Sentence("0a", "Other."), Sentence("0b", "0B")))
    other_texts = {"labels": labels("0a"), "sentences": reworded}
    gold = evaluation("g", **full)
    pairs = [
        Pair(evaluation(str(row), **ours), gold)
        for row, ours in enumerate([full, other_keys, other_texts, {}])
    ]

    content = agreed(pairs)

    assert content["keys_skipped"] == 3
    assert (content["keys"]["relevant"]["n"], content["keys"]["relevant"]["f1"]) == (1, 1)


def test_a_response_split_otherwise_leaves_the_document_keys(
    evaluation: Make, sentences: Callable[..., Sentences], labels: Callable[..., Labels]
) -> None:
    """Support needs the same response sentences; relevance does not."""
    message = labels("0a", support={"a": ("0a", True)})
    pairs = [
        Pair(
            evaluation("a", labels=message, sentences=sentences("0a 0b", "a")),
            evaluation("a", labels=message, sentences=sentences("0a 0b", "a b")),
        )
    ]

    content = agreed(pairs)["keys"]

    assert content["relevant"]["n"] == 1
    assert (content["supporting"]["n"], content["supporting"]["f1"]) == (0, None)
    assert content["unsupported"]["n"] == 0
