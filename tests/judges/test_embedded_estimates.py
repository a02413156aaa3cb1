"""Estimates of scores: expectations by hand, and errors that gold keeps to."""

from __future__ import annotations

from string import ascii_lowercase

import pytest
from by_hand import keyed
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.judges.embedded._features import call_features
from rag_eval_integrations.judges.embedded._model import load_model, score_estimates
from rag_eval_integrations.judges.embedded.judge import _labelled
from rag_eval_integrations.records import Labels


def test_no_documents_no_estimates() -> None:
    """There is nothing to expect; the formulas say what the scores are."""
    model = load_model()

    assert score_estimates(model, call_features("Who?", [], ["He."]), [], []) == {}
    assert score_estimates(model, call_features("Who?", [], []), [], []) == {}


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_estimates_are_in_range(relevant: list[float]) -> None:
    """Every mean is in [0, 1], every error less than 1."""
    model = load_model()
    documents = [["The ferry leaves at nine.", "It is blue."], ["Bananas are yellow."]]
    for response in (["At nine.", "Ask the crew."], []):
        features = call_features("When does the ferry leave?", documents, response)
        found = score_estimates(model, features, relevant, relevant[::-1])

        assert len(found) == (4 if response else 1)
        for mean, error in found.values():
            assert 0 <= mean <= 1
            assert error is not None
            assert 0 <= error < 1


def test_a_retrieval_alone_is_judged_by_the_question() -> None:
    """What shares the question's words is relevant; nothing is used; only relevance is estimated."""
    documents = ["The ferry to Kos leaves at nine.", "Bananas are rich in potassium."]
    labels = labels_of("When does the ferry to Kos leave?", [[text] for text in documents], [])

    relevant = labels.relevant_probabilities or {}
    assert relevant["0a"] > 2 * relevant["1a"]
    assert labels.utilized_probabilities == {"0a": 0.0, "1a": 0.0}
    assert labels.all_utilized_sentence_keys == ()
    assert set(labels.estimates or {}) == {"context_relevance"}


def labels_of(question: str, documents: list[list[str]], response: list[str]) -> Labels:
    labels = label_call(keyed(documents, response, question=question)).labels
    assert labels is not None
    return labels


@pytest.mark.parametrize(
    ("probabilities", "labelled"),
    [
        ([0.75, 0.2, 0.2, 0.2, 0.2], "a"),  # one over the threshold, 1.55 expected
        ([0.3, 0.3, 0.3], ""),  # none over it, .9 expected
        ([0.3, 0.34, 0.3, 0.3], "b"),  # none over it, 1.24 expected
        ([0.65, 0.62, 0.1], "ab"),
        ([0.14] * 10, ""),  # unlikely, each of them
        ([], ""),
    ],
)
def test_labels_are_the_likeliest_sentences(probabilities: list[float], labelled: str) -> None:
    """As many as half of those over the threshold and half of the expected number; in order."""
    keys = list(ascii_lowercase[: len(probabilities)])

    assert _labelled(keys, probabilities, 0.35) == tuple(labelled)
