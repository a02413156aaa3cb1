"""Key by key: which sentences count, and the figures over them; see also `test_own_rows`."""

from __future__ import annotations

import pytest

from rag_eval_integrations.agreement import Pair
from rag_eval_integrations.records import Sentence, Sentences

from .conftest import agreed, make_evaluation, make_labels, make_sentences


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
