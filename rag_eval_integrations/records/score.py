"""Stage 4 of the flow: what it is worth. By, Score."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, computed_field, model_validator

from rag_eval_integrations.records._json import JsonObject, Record
from rag_eval_integrations.records.call import Capture, Sentences
from rag_eval_integrations.records.labels import JudgeInfo, Labels, Probability, UnscoredCode, Usage

ScoreStatus = Literal["scored", "unscored", "error"]


class By(Record):
    """Who made a score; scores made differently are never averaged together."""

    judge: str | None = None
    model: str | None = None
    judge_version: str | None = None
    prompt_version: str | None = None
    formulas: str | None = None
    relevance_baseline: int | None = None
    splitter: str | None = None
    windows: int | None = None


class Score(Record):
    """One score: a value, or unscored with a reason, or an error. Never NaN."""

    name: str = Field(exclude=True)
    """The key under which it stands in `Evaluation.scores`, and therefore not in its JSON."""
    status: ScoreStatus
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """In [0, 1], 1 is best; None unless scored."""
    raw: float | None = None
    """The value on the metric's own `scale`."""
    scale: tuple[float, float] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """`value` at or above it passes; None gives no verdict."""
    reason: str | None = None
    """The score in words, or why there is none."""
    evidence: JsonObject | None = None
    """What the score rests on; the fields depend on the metric."""
    method: str | None = None
    """How the value came about: `labels`, `expected`, `calibrated` …"""
    unscored: UnscoredCode | None = None
    """Why there is no value; None unless `status` is `unscored`."""
    n: Annotated[int, Field(ge=0)] | None = None
    """How many sentences or samples it was computed over."""
    mass: Probability | None = None
    std_error: Annotated[float, Field(ge=0)] | None = None
    distribution: dict[str, Probability] | None = None
    probability: Probability | None = None
    """For a 0/1 score: the judge's probability that it is 1."""
    warnings: tuple[str, ...] = ()
    by: By = By()

    @model_validator(mode="after")
    def _one_of_three_states(self) -> Score:
        if (self.value is not None) != (self.status == "scored"):
            raise ValueError(f"`value` = {self.value!r} with `status` = {self.status!r}")
        if (self.unscored is not None) != (self.status == "unscored"):
            raise ValueError(f"`unscored` = {self.unscored!r} with `status` = {self.status!r}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _drop_computed(cls, content: object) -> object:
        if isinstance(content, dict) and "passed" in content:
            return {key: value for key, value in content.items() if key != "passed"}
        return content

    @computed_field  # type: ignore[prop-decorator]  # the documented pydantic idiom
    @property
    def passed(self) -> bool | None:
        """Whether the value reaches the threshold; None without a value or a threshold."""
        if self.value is None or self.threshold is None:
            return None
        return self.value >= self.threshold


# --- The end of the flow: one call's scores with all they rest on. Evaluation


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
