"""What a metric is to the evaluator."""

from __future__ import annotations

from typing import Protocol

from rag_eval_integrations.records import By, Labelling, Score, SentencizedCall, UnscoredCode


class Metric(Protocol):
    """Scores a labelled call; pure, so one object may serve any number of calls at once."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores it gives, in order; the same for every call."""
        ...

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call; what cannot be scored is unscored with its reason."""
        ...

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Give every score without a value, for the same reason."""
        ...
