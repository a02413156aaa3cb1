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


def test_relevant_keys_are_worked_by_hand(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Of 4 sentences: one right, one too many, one missed: F1 .5, kappa 0."""
    relevant = keys((labels("0a 0b"), labels("0a 0c")))["relevant"]

    assert (relevant["f1"], relevant["precision"], relevant["recall"]) == (0.5, 0.5, 0.5)
    assert relevant["kappa"] == 0.0
    assert "auroc" not in relevant


def test_f1_is_micro_averaged_over_rows(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Sentences are summed before the ratio: 1 + 2 hits, 1 miss give 6/7."""
    rows = (labels("0a"), labels("0a 0b")), (labels("0a 0b"), labels("0a 0b"))

    assert keys(*rows)["relevant"]["f1"] == pytest.approx(6 / 7)


def test_utilized_keys_are_their_own_comparison(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Relevance says nothing of use."""
    content = keys((labels("0a", "1a"), labels("0b", "1a")))

    assert content["relevant"]["f1"] == 0
    assert content["utilized"]["f1"] == 1


def test_keys_of_no_sentence_do_not_count(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Raw gold lists hold unknown keys and words; neither hit nor miss."""
    assert keys((labels("0a"), labels("0a 9z general")))["relevant"]["f1"] == 1


def test_probabilities_rank_the_sentences(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Gold 0a and 0b at .9 and .4, the others at .4 and .1: 3.5 of 4 pairs."""
    chances = {"0a": 0.9, "0b": 0.4, "0c": 0.4, "1a": 0.1}
    predicted = labels("0a", "0a", relevant_probabilities=chances, utilized_probabilities=chances)

    content = keys((predicted, labels("0a 0b", "0a")), (labels("0a"), labels("0a")))

    assert content["relevant"]["auroc"] == 0.875
    assert content["relevant"]["auroc_n"] == 1  # the second row has none
    assert content["relevant"]["n"] == 2
    assert content["utilized"]["auroc"] == 1.0


def test_supporting_pairs_are_worked_by_hand(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """(a,0a) is in both, (b,0c) and (b,1a) in one: F1 2/4; special words are no sentences."""
    predicted = labels(support={"a": ("0a general", True), "b": ("0c", True)})
    gold = labels(support={"a": ("0a", True), "b": ("1a", True), "z": ("0b", True)})

    supporting = keys((predicted, gold))["supporting"]

    assert supporting["f1"] == 0.5
    assert supporting["kappa"] == pytest.approx((2 * (1 * 5 - 1 * 1)) / (2 * 6 + 2 * 6))


def test_unsupported_sentences_are_those_not_fully_supported(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """Partial support is not support; doubt ranks the sentences."""
    predicted = labels(
        support={"a": ("0a", True), "b": ("0b", False)},
        supported_probabilities={"a": 0.8, "b": 0.3},
    )
    gold = labels(support={"a": ("0a", True), "b": ("", False)})

    unsupported = keys((predicted, gold))["unsupported"]

    assert (unsupported["f1"], unsupported["kappa"], unsupported["auroc"]) == (1, 1, 1)


def test_supported_sentences_are_the_other_side(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """F1 is of the other class; AUROC, kappa and what is left out are the same."""
    predicted = labels(
        support={"a": ("0a", True), "b": ("0b", True)},
        supported_probabilities={"a": 0.8, "b": 0.6},
    )
    gold = labels(support={"a": ("0a", True), "b": ("", False)})

    found = keys((predicted, gold))

    supported, unsupported = found["supported"], found["unsupported"]
    assert (supported["precision"], supported["recall"]) == (0.5, 1)
    assert (supported["f1"], unsupported["f1"]) == (pytest.approx(2 / 3), 0)
    for same in ("auroc", "kappa", "n", "unlabelled"):
        assert supported[same] == unsupported[same]
    assert supported["auroc"] == 1


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
    said = labels("0a", support={"a": ("0a", True)})
    pairs = [
        Pair(
            evaluation("a", labels=said, sentences=sentences("0a 0b", "a")),
            evaluation("a", labels=said, sentences=sentences("0a 0b", "a b")),
        )
    ]

    content = agreed(pairs)["keys"]

    assert content["relevant"]["n"] == 1
    assert (content["supporting"]["n"], content["supporting"]["f1"]) == (0, None)
    assert content["unsupported"]["n"] == 0


def test_key_figures_have_intervals(
    keys: Callable[..., Any], labels: Callable[..., Labels]
) -> None:
    """F1, kappa and AUROC are resampled by row."""
    chances = {"0a": 0.9, "0b": 0.6, "0c": 0.4, "1a": 0.1}
    right = labels("0a 0b", relevant_probabilities=chances), labels("0a 0b")
    wrong = labels("0a 0b", relevant_probabilities=chances), labels("0c")

    relevant = keys(*[right, right, wrong] * 8)["relevant"]

    assert relevant["ci95"].keys() == {"f1", "precision", "recall", "kappa", "auroc"}
    for name, (low, high) in relevant["ci95"].items():
        assert low < relevant[name] < high


def test_rows_without_labels_on_one_side_are_skipped(
    evaluation: Make, sentences: Callable[..., Sentences], labels: Callable[..., Labels]
) -> None:
    """Whichever side it is, though the sentences are the same."""
    both = sentences("0a 0b")
    labelled = evaluation("a", labels=labels("0a"), sentences=both)
    unlabelled = evaluation("a", sentences=both)

    for pair in (Pair(labelled, unlabelled), Pair(unlabelled, labelled)):
        assert agreed([pair, Pair(labelled, labelled)])["keys_skipped"] == 1
