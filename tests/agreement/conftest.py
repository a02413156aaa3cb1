"""Builders of real records: an evaluation by a judge, and one from gold labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from by_hand import labels_of

from rag_eval_integrations import Evaluation, Labels, Score
from rag_eval_integrations.agreement import Pair, agree
from rag_eval_integrations.agreement.matching import Matched
from rag_eval_integrations.records import By, JudgeInfo, Sentence, Sentences


def _score(name: str, value: float | None, by: By, **more: Any) -> Score:
    if value is None:
        return Score(name=name, status="unscored", unscored="refusal", by=by)
    return Score(name=name, status="scored", value=value, by=by, **more)


def make_evaluation(
    identity: str = "x", scores: Mapping[str, float | None] | None = None, *, by: By | None = None,
    probability: float | None = None, method: str = "labels", model: str | None = None, **more: Any,
) -> Evaluation:  # fmt: skip
    made = By(judge="j", formulas="ragbench") if by is None else by
    chances = {"adherence": probability}
    valued = {
        name: _score(name, value, made, probability=chances.get(name), method=method)
        for name, value in (scores or {}).items()
    }
    usual: dict[str, Any] = {"row_key": f"key of {identity}", "question": "?", "response": "Yes."}
    usual |= {"labels": None, "sentences": Sentences(), "judge": JudgeInfo(name="j", model=model)}
    return Evaluation(id=identity, scores=valued, **{**usual, **more})


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
    **probabilities: Mapping[str, Any],
) -> Labels:
    entries = {key: (keys.split(), full) for key, (keys, full) in (support or {}).items()}
    return labels_of(relevant.split(), utilized.split(), entries, **probabilities)


def agreed(matched: Matched | Sequence[Pair], **options: Any) -> Any:
    """The JSON of `agree`, in which tests look deeper than its type goes."""
    return agree(matched, **options).to_json()
