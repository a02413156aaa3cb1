"""Builders of real records: an evaluation by a judge, and one from gold labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_eval_integrations import Evaluation, Labels, Score
from rag_eval_integrations.agreement import Matched, Pair, agree
from rag_eval_integrations.records import By, JudgeInfo, Sentence, Sentences, SentenceSupport


def _score(name: str, value: float | None, probability: float | None, by: By, method: str) -> Score:
    if value is None:
        return Score(name=name, status="unscored", unscored="refusal", by=by)
    return Score(
        name=name, status="scored", value=value, probability=probability, by=by, method=method
    )


def make_evaluation(
    identity: str = "x",
    scores: Mapping[str, float | None] | None = None,
    *,
    row_key: str | None = None,
    response: str | None = "Yes.",
    probability: float | None = None,
    labels: Labels | None = None,
    sentences: Sentences | None = None,
    by: By | None = None,
    method: str = "labels",
    model: str | None = None,
) -> Evaluation:
    made = By(judge="j", formulas="ragbench") if by is None else by
    return Evaluation(
        id=identity,
        row_key=f"key of {identity}" if row_key is None else row_key,
        question="?",
        response=response,
        scores={
            name: _score(name, value, probability if name == "adherence" else None, made, method)
            for name, value in (scores or {}).items()
        },
        labels=labels,
        sentences=sentences or Sentences(),
        judge=JudgeInfo(name="j", model=model),
    )


def make_sentences(documents: str, response: str = "") -> Sentences:
    """Sentences whose text is their key in capitals; keys separated by spaces."""
    return Sentences(
        documents=tuple(Sentence(key, key.upper()) for key in documents.split()),
        response=tuple(Sentence(key, key.upper()) for key in response.split()),
    )


def make_labels(
    relevant: str = "",
    utilized: str = "",
    support: Mapping[str, tuple[str, bool | None]] | None = None,
    **probabilities: Mapping[str, float],
) -> Labels:
    chances: Any = {name: dict(values) for name, values in probabilities.items()}
    return Labels(
        all_relevant_sentence_keys=tuple(relevant.split()),
        all_utilized_sentence_keys=tuple(utilized.split()),
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                supporting_sentence_keys=tuple(keys.split()),
                fully_supported=full,
            )
            for key, (keys, full) in (support or {}).items()
        ),
        **chances,
    )


def agreed(matched: Matched | Sequence[Pair], **options: Any) -> Any:
    """The JSON of `agree`, in which tests look deeper than its type goes."""
    return agree(matched, **options).to_json()
