"""Evaluations made by hand for tests that compare runs: what is said is what is compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from by_hand import labels_of

from rag_eval_integrations.records import By, Evaluation, JudgeInfo, Score, Sentence, Sentences
from rag_eval_integrations.sentences._sentencize import letters

Given = Score | float | str | None
MAKER = By(judge="by hand", judge_version="1", formulas="gpt-labeling")


def call(
    name: str,
    scores: Mapping[str, Given],
    *,
    question: str | None = None,
    response: Sequence[str] = ("It leaves at nine.",),
    supported: bool = True,
    explanation: str = "",
    documents: Sequence[str] = ("The ferry leaves at nine.",),
    document_ids: Sequence[str | None] | None = None,
    by: By = MAKER,
    method: str | None = "labels",
    **more: Any,
) -> Evaluation:
    """One evaluation.

    Args:
        name: its id.
        scores: scores, or their values; a code for an unscored one, None for an error.
        question: by default made of the id.
        response: its sentences, keyed a, b …
        supported: what the judge said of all of them.
        explanation: why.
        documents: one sentence each.
        document_ids: by default none.
        by: maker of all scores.
        method: of all scores.
        more: further fields.
    """
    keyed = tuple(Sentence(letters(place), text) for place, text in enumerate(response))
    labels = labels_of([], [], {key: ([], supported, explanation) for key, *_ in keyed})
    fields: dict[str, Any] = {
        "id": name,
        "row_key": hashlib.sha256(f"{name} {response}".encode()).hexdigest(),
        "question": f"When does {name} leave?" if question is None else question,
        "response": " ".join(response),
        "scores": {key: _score(key, value, by, method) for key, value in scores.items()},
        "labels": labels,
        "sentences": Sentences(
            documents=tuple(Sentence(f"{place}a", text) for place, text in enumerate(documents)),
            response=keyed,
        ),
        "document_ids": (None,) * len(documents) if document_ids is None else document_ids,
        "judge": JudgeInfo(name="by hand"),
    }
    return Evaluation(**{**fields, **more})


def _score(name: str, value: Given, by: By, method: str | None) -> Score:
    if isinstance(value, Score):
        return value
    if isinstance(value, float | int):
        return Score(name=name, status="scored", value=float(value), method=method, by=by)
    if value is None:
        return Score(name=name, status="error", reason="the judge failed", by=by)
    return Score.model_validate(
        {"name": name, "status": "unscored", "unscored": value, "reason": "why", "by": by}
    )


def run(values: Iterable[float | str | None], **more: Any) -> list[Evaluation]:
    """A run of one score, `adherence`, whose calls have the ids q0, q1 and so on."""
    return [call(f"q{place}", {"adherence": value}, **more) for place, value in enumerate(values)]


def write(path: Path, evaluations: Iterable[Evaluation]) -> Path:
    """Write an EVALS file."""
    path.write_text(
        "".join(f"{evaluation.model_dump_json()}\n" for evaluation in evaluations), encoding="ascii"
    )
    return path
