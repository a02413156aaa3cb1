"""The end of the flow: one call's scores with all they rest on. Evaluation."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from rag_eval_integrations.records._base import JsonObject, Record
from rag_eval_integrations.records.call import Capture, Sentences
from rag_eval_integrations.records.labels import JudgeInfo, Labels, Usage
from rag_eval_integrations.records.score import Score

Stage = Literal["app", "sentences", "judge", "metrics"]
"""`app`: the call itself failed while it was run to be evaluated."""


class EvaluationError(Record):
    """What went wrong where, when a call could not be evaluated."""

    type: str
    """Name of the exception's class."""
    message: str
    stage: Stage


class Evaluation(Record):
    """One evaluated call: a line of EVALS.jsonl."""

    id: str
    row_key: str
    """Identity of the call (`RagCall.row_key`)."""
    question: str
    response: str | None
    reference: str | None = None
    metadata: JsonObject = Field(default_factory=dict)
    capture: Capture | None = None
    scores: dict[str, Score]
    """By score name, in the order of the metrics."""
    labels: Labels | None
    """None when the judge was not asked, or gave none."""
    sentences: Sentences
    document_ids: tuple[str | None, ...] = ()
    """One a document, in order; None for a document without an id."""
    judge: JudgeInfo
    fingerprint: str | None = None
    """Digest of everything that decides the scores besides the call: judge, metrics, splitter.
    An evaluation with the same `row_key` and fingerprint need not be made again."""
    usage: Usage = Usage()
    flags: tuple[str, ...] = ()
    """What a reader should know before trusting the scores, such as `lexical_estimate`."""
    error: EvaluationError | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_scores(cls, content: Any) -> Any:
        # A score's JSON has no name of its own: the key beside it is the name.
        if isinstance(content, dict) and isinstance(content.get("scores"), dict):
            named = {
                name: {**score, "name": name} if isinstance(score, dict) else score
                for name, score in content["scores"].items()
            }
            return {**content, "scores": named}
        return content
