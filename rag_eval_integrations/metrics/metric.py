"""Stage 4, the metric protocols: `LabelMetric` scores labels, `CompletionMetric` asks a model."""

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
    """The part that both kinds share; one object may score any number of calls concurrently.

    The `repr` of a metric names everything that decides its scores besides the call and the judge,
    since the evaluator's fingerprint is computed from it.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores that it returns, in order; the same for every call."""
        ...

    @property
    def needs(self) -> Literal["labels", "completion"]:
        """Input of the metric, which says which of the two protocols below it implements."""
        ...

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Return every score of the metric without a value, all for the same reason."""
        ...


class LabelMetric(Metric, Protocol):
    """A metric that scores a labelled call (`needs` is `labels`), without I/O."""

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call; a score that has no value states the reason."""
        ...


class Measured(NamedTuple):
    """The scores of a metric that asks a model, and the usage of its requests."""

    scores: tuple[Score, ...]
    usage: Usage = Usage()


class CompletionMetric(Metric, Protocol):
    """A metric that asks a model about a call (`needs` is `completion`)."""

    @property
    def judge(self) -> Model | None:
        """The metric's own model; None to use the evaluator's."""
        ...

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call to score.
            judge: the model to ask.

        Raises:
            JudgeError: the model does not answer; the evaluator turns this into error scores.
        """
        ...
