"""Scores recorded labels without a judge: LABELLED rows, RAGBench rows, and EVALS files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_eval_integrations.dataset.rows import row_from
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.evaluator import nothing_to_judge, score_labelling
from rag_eval_integrations.labels import reconcile
from rag_eval_integrations.metrics import LabelMetric
from rag_eval_integrations.records import (
    Document,
    Evaluation,
    Labelling,
    Labels,
    RagCall,
    SentencizedCall,
    from_object,
)
from rag_eval_integrations.sentences import RECORDED, Splitter, document_number, sentencize


@dataclass(frozen=True)
class Labelled:
    """One labelled row: what it takes to score it, and what is published beside it."""

    call: SentencizedCall
    labelling: Labelling
    """Labels as they were written, not reconciled."""
    evaluation: Evaluation | None = None
    """The row itself, when it comes from an EVALS file."""
    published: Mapping[str, float | None] = field(default_factory=dict)
    """RAGBench's score and predictor columns."""


def labelled_from(content: dict[str, Any], splitter: Splitter) -> Labelled:
    """Read a parsed line of LABELLED.jsonl, of RAGBench, or of EVALS.jsonl.

    Raises:
        InputError: names the field; also when the row holds no labels.
    """
    if "scores" in content and "judge" in content:
        return _from_evaluation(from_object(Evaluation, content))
    row = row_from(content)
    if row.labels is None or row.labeller is None:
        raise InputError("is missing: the row has no recorded labels", field="labels")
    labelling = Labelling(labels=row.labels, judge=row.labeller)
    return Labelled(sentencize(row.call, splitter), labelling, published=row.published)


def _from_evaluation(evaluation: Evaluation) -> Labelled:
    numbers = [document_number(s.key) or 0 for s in evaluation.sentences.documents]
    count = max([len(evaluation.document_ids), *(number + 1 for number in numbers)], default=0)
    texts: list[list[str]] = [[] for _ in range(count)]
    for number, sentence in zip(numbers, evaluation.sentences.documents, strict=True):
        texts[number].append(sentence.text)
    # An EVALS row holds the sentences, not the documents: their texts are near enough, since only
    # their number matters from here on. The row's own identity is kept.
    call = RagCall(
        question=evaluation.question,
        documents=tuple(Document(text=" ".join(sentences)) for sentences in texts),
        response=evaluation.response,
        id=evaluation.id,
        reference=evaluation.reference,
        metadata=evaluation.metadata,
        capture=evaluation.capture,
    )
    first = next(iter(evaluation.scores.values()), None)
    by = first.by if first else None
    warnings = dict.fromkeys(w for s in evaluation.scores.values() for w in s.warnings)
    labelling = Labelling(
        labels=evaluation.labels,
        judge=evaluation.judge,
        usage=evaluation.usage,
        windows=(by.windows if by and by.windows else 1),
        warnings=tuple(warnings),
        flags=tuple(flag for flag in evaluation.flags if flag == "lexical_estimate"),
        prompt_version=by.prompt_version if by else None,
        unscored=first.unscored if first and evaluation.labels is None else None,
        reason=first.reason if first and evaluation.labels is None else None,
    )
    splitter = (by.splitter if by else None) or RECORDED
    sentencized = SentencizedCall(call=call, sentences=evaluation.sentences, splitter=splitter)
    return Labelled(sentencized, labelling, evaluation)


def score_labelled(
    labelled: Labelled, metrics: Sequence[LabelMetric], *, raw_keys: bool = False
) -> Evaluation:
    """Score one labelled row.

    Args:
        labelled: the row.
        metrics: what to score.
        raw_keys: count the key lists as they were recorded, with repeats and keys of sentences
            that do not exist, as RAGBench's published columns do (100 % of rows to 1e-9; cleaned
            keys differ on .5 % of them, by at most .17).
    """
    written = labelled.labelling.labels
    if written is None:
        # An evaluation that had no labels has none now; an error stays the error it was.
        return _unlabelled(labelled, metrics)
    labels: Labels = reconcile(written, labelled.call)
    if raw_keys:
        labels = labels.model_copy(
            update={
                "all_relevant_sentence_keys": written.all_relevant_sentence_keys,
                "all_utilized_sentence_keys": written.all_utilized_sentence_keys,
                "unsupported_response_sentence_keys": written.unsupported_response_sentence_keys,
            }
        )
    labelling = labelled.labelling.model_copy(update={"labels": labels})
    nothing = nothing_to_judge(labelled.call)
    if nothing is not None:
        code, reason = nothing
        labelling = labelling.model_copy(
            update={"labels": None, "unscored": code, "reason": reason}
        )
    scored = score_labelling(labelled.call, labelling, metrics)
    return _with_identity(scored, labelled.evaluation) if labelled.evaluation else scored


def _unlabelled(labelled: Labelled, metrics: Sequence[LabelMetric]) -> Evaluation:
    recorded = labelled.evaluation
    assert recorded is not None
    if recorded.error is not None:
        return recorded
    scored = score_labelling(labelled.call, labelled.labelling, metrics)
    return _with_identity(scored, recorded)


def _with_identity(scored: Evaluation, recorded: Evaluation) -> Evaluation:
    same = {"row_key": recorded.row_key, "document_ids": recorded.document_ids}
    return scored.model_copy(update=same)
