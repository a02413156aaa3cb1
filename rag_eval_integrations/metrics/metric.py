"""What a metric is to the evaluator: it scores labels, or it asks a model about a call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from rag_eval_integrations.records import (
    By,
    Labelling,
    RagCall,
    Score,
    SentencizedCall,
    UnscoredCode,
    Usage,
)

if TYPE_CHECKING:
    from rag_eval_integrations.models import Model, ModelBase


class Metric(Protocol):
    """What both kinds have; one object may serve any number of calls at once.

    `repr` of a metric names everything that decides its scores besides the call and the judge: the
    evaluator's fingerprint is made of it.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores it gives, in order; the same for every call."""
        ...

    @property
    def needs(self) -> Literal["labels", "completion"]:
        """What it is made from: which of the two protocols below it keeps."""
        ...

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Give every score without a value, for the same reason."""
        ...


class LabelMetric(Metric, Protocol):
    """Scores a labelled call (`needs` is `labels`); pure."""

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call; what cannot be scored is unscored with its reason."""
        ...


class Measured(NamedTuple):
    """What a metric that asks a model found, and what it cost."""

    scores: tuple[Score, ...]
    usage: Usage = Usage()


class CompletionMetric(Metric, Protocol):
    """Asks a model about a call (`needs` is `completion`)."""

    @property
    def judge(self) -> Model | None:
        """Its own model; None to ask the evaluator's."""
        ...

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call; what cannot be scored is unscored with its reason.

        Raises:
            JudgeError: the model does not answer; the evaluator makes error scores of it.
        """
        ...
