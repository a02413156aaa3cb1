"""Evaluations as rows of RAGBench, so that others' code can compare our labels with theirs."""

from __future__ import annotations

import json
from typing import Any

from rag_eval_integrations.dataset.rows import labelled_from_evaluation, score_labelled
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, Labels, Sentence
from rag_eval_integrations.sentences import document_number

_SCORES = {
    "relevance_score": "context_relevance",
    "utilization_score": "context_utilization",
    "completeness_score": "completeness",
}
_NAMED = ("generation_model_name", "dataset_name")


def ragbench_row(evaluation: Evaluation) -> dict[str, Any] | None:
    """Make the row of an evaluation, with the columns that RAGBench publishes.

    The scores are by RAGBench's formulas, whatever the evaluation's own are: they are functions of
    the labels. Document texts are their sentences, joined by a space. A row reads back with the
    same labels (`rag-eval score`, `agreement`).

    Returns:
        The row; None for an evaluation without labels.
    """
    labels = evaluation.labels
    if labels is None:
        return None
    labelled = labelled_from_evaluation(evaluation)
    call = labelled.call.call
    scores = score_labelled(labelled, [Trace("ragbench")], flags=False).scores
    by_document: list[list[list[str]]] = [[] for _ in call.documents]
    for sentence in evaluation.sentences.documents:
        by_document[document_number(sentence.key) or 0].append(_pair(sentence))
    adherence = scores["adherence"].value
    row: dict[str, Any] = {
        "id": evaluation.id,
        "question": evaluation.question,
        "documents": [document.text for document in call.documents],
        "response": evaluation.response,
        **{name: _text(evaluation.metadata.get(name)) for name in _NAMED},
        "annotating_model_name": evaluation.judge.model or evaluation.judge.name,
        "documents_sentences": by_document,
        "response_sentences": [_pair(sentence) for sentence in evaluation.sentences.response],
        "sentence_support_information": [
            support.model_dump(mode="json") for support in labels.sentence_support_information
        ],
        "unsupported_response_sentence_keys": _unsupported(evaluation, labels),
        "adherence_score": None if adherence is None else adherence == 1,
        "overall_supported": labels.overall_supported,
        "overall_supported_explanation": labels.overall_supported_explanation,
        "relevance_explanation": labels.relevance_explanation,
        "all_relevant_sentence_keys": list(labels.all_relevant_sentence_keys),
        "all_utilized_sentence_keys": list(labels.all_utilized_sentence_keys),
        **{column: scores[name].value for column, name in _SCORES.items()},
    }
    if evaluation.reference is not None:
        row["reference"] = evaluation.reference
    return row


def ragbench_line(evaluation: Evaluation) -> str | None:
    """Write the row of an evaluation as a line of JSON, ASCII only; None without labels."""
    row = ragbench_row(evaluation)
    return None if row is None else json.dumps(row) + "\n"


def _unsupported(evaluation: Evaluation, labels: Labels) -> list[str]:
    recorded = labels.unsupported_response_sentence_keys
    if recorded is not None:
        return list(recorded)
    keys = (sentence.key for sentence in evaluation.sentences.response)
    return [key for key in keys if labels.support(key) in ("none", "partial")]


def _pair(sentence: Sentence) -> list[str]:
    return [sentence.key, sentence.text]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
