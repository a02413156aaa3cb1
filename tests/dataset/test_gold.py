"""Gold rows are scored by the formulas alone, and get the scores of a full evaluation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_rows import made_rows

from rag_eval_integrations import Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset.rows import score_gold
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sentences import Punkt

TRACES = [Trace(), Trace("ragbench"), Trace(relevance_baseline=7)]
ROWS = made_rows(40)
EVALS: dict[str, Any] = json.loads(
    score_labelled(labelled_from(ROWS[0], Punkt()), [Trace()]).model_dump_json()
)
KEYS = ["0a", "0b", "1a", "a", "b", "0a.", "0A", "general", "0zz", "b through d", ""]


def numbers(evaluation: Evaluation) -> object:
    scores = {
        name: (score.status, score.value, score.probability, score.estimate, score.by)
        for name, score in evaluation.scores.items()
    }
    return evaluation.id, evaluation.row_key, evaluation.response, evaluation.judge, scores


def assert_same(content: dict[str, Any], trace: Trace) -> None:
    labelled = labelled_from(content, Punkt())
    gold, full = score_gold(labelled, trace), score_labelled(labelled, [trace])

    raw = score_labelled(labelled, [trace], raw_keys=trace.formulas == "ragbench")
    assert gold.labels == full.labels
    assert numbers(gold) == numbers(raw)
    if gold.labels is not None:
        assert gold.scores["context_relevance"].reason is None
        assert gold.flags == ()


@pytest.mark.parametrize("trace", TRACES)
def test_rows_have_the_scores_of_a_full_evaluation(trace: Trace) -> None:
    """With every set of formulas; under `ragbench` the lists count as they were recorded."""
    for row in ROWS:
        assert_same(row, trace)


lists = st.lists(st.sampled_from(KEYS), max_size=4)
sides = st.lists(st.sampled_from(KEYS), max_size=4, unique=True)


@settings(max_examples=150, deadline=None)
@given(
    labels=st.fixed_dictionaries(
        {
            "all_relevant_sentence_keys": lists,
            "all_utilized_sentence_keys": lists,
            "sentence_support_information": st.lists(
                st.fixed_dictionaries(
                    {
                        "response_sentence_key": st.sampled_from(KEYS),
                        "supporting_sentence_keys": lists,
                        "fully_supported": st.sampled_from([True, True, False, None]),
                    }
                ),
                max_size=3,
            ),
        },
        optional={
            "unsupported_response_sentence_keys": lists,
            "relevant_probabilities": st.dictionaries(st.sampled_from(KEYS), st.just(0.5)),
            "estimates": st.just({"adherence": [0.5, None]}),
        },
    ),
    documents=sides,
    response=sides,
    changed=st.dictionaries(
        st.sampled_from(["response", "question", "error", "labels"]),
        st.sampled_from(["", " ", "x", None]),
        max_size=1,
    ),
    trace=st.sampled_from(TRACES),
)
def test_any_labels_are_scored_as_in_a_full_evaluation(
    labels: dict[str, Any],
    documents: list[str],
    response: list[str],
    changed: dict[str, Any],
    trace: Trace,
) -> None:
    """Repairs, empty cases, probabilities, and rows with nothing to judge."""
    texts = {
        "documents": [[key, "One.", 0, 4] for key in documents],
        "response": [[key, "Two.", 0, 4] for key in response],
    }
    content = {**EVALS, "labels": labels, "sentences": texts, **changed}
    try:
        labelled_from(content, Punkt())
    except InputError:
        return

    assert_same(content, trace)
