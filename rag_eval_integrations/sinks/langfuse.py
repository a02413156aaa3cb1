"""A sink that posts scores to the observations of Langfuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_eval_integrations.records import Score
from rag_eval_integrations.sinks._traced import (
    Traced,
    TraceSink,
    client_library,
    label_of,
    score_id,
)
from rag_eval_integrations.sinks.sink import PartlyWrittenError

if TYPE_CHECKING:
    from langfuse import Langfuse

_ABOUT_THE_SCORES = (400, 413, 422)
"""Statuses of replies which say that the request itself cannot be taken."""


def langfuse_client() -> Any:
    """Make the tool's client, with the address and keys of the environment.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return client_library("langfuse", "langfuse", "langfuse").get_client()


class LangfuseSink(TraceSink):
    """Posts every score to the trace of its call in Langfuse.

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. A score with a value
    is numeric; one without is categorical, and its value is the code of why. Langfuse replaces a
    score of the same id, name and date: a repeat has all three, since the time of a score is when
    its call began.

    Scores are posted at once and not by the client's queue, which drops what it cannot send.

    Args:
        client: a `langfuse.Langfuse`; by default `langfuse.get_client()`, which reads
            `LANGFUSE_PUBLIC_KEY`, `LANGFUSE_SECRET_KEY` and `LANGFUSE_BASE_URL`.
        metadata: names of fields of the call's metadata that go along in the score's metadata.
        texts: True to send reasons, which may quote questions, documents and responses; otherwise
            the comment names the keys of sentences.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
        MissingDependencyError: without a `client`, the extra `langfuse` is not installed.
    """

    tool = "Langfuse"
    sources = ("langfuse", "otel", "openinference", "openllmetry")
    group = 20  # some 200 kB with texts; the service takes 1 MB

    def __init__(
        self,
        client: Langfuse | None = None,
        *,
        metadata: Sequence[str] = (),
        texts: bool = False,
    ) -> None:
        super().__init__(metadata, texts)
        self._client: Langfuse = langfuse_client() if client is None else client

    def _refused(self, error: Exception) -> bool:
        """Return whether Langfuse refused these scores alone, so that others may be taken.

        That is a status of 400, 413 or 422, or scores that Langfuse rejected.
        """
        about_it = getattr(error, "status_code", None) in _ABOUT_THE_SCORES
        return about_it or super()._refused(error)

    def _send(self, group: Sequence[Traced]) -> None:
        """Send the scores of a group in one request, without retries.

        Raises:
            PartlyWrittenError: Langfuse rejected some; it names all evaluations of the group.
        """
        bodies = [
            self._body(each, score) for each in group for score in each.evaluation.scores.values()
        ]
        request: Any = bodies  # the generated model knows fewer values than the service takes
        reply = self._client.api.scores.create(request=request, request_options={"max_retries": 0})
        if rejected := getattr(reply, "rejected", 0):
            why = "; ".join(error.message for error in getattr(reply, "errors", []))
            rejection = ValueError(f"Langfuse rejected {rejected} of {len(bodies)} scores: {why}")
            raise PartlyWrittenError([traced.evaluation for traced in group], rejection)

    def _body(self, traced: Traced, score: Score) -> dict[str, Any]:
        """Return the request body of a score: numeric, or categorical if it has no value.

        What is None is left out.
        """
        numeric = score.value is not None
        began = traced.evaluation.started_at
        body = {
            "id": str(score_id(traced.evaluation, score.name)),
            "traceId": traced.trace_id,
            "observationId": traced.span_id,
            "name": score.name,
            "value": score.value if numeric else label_of(score),
            "dataType": "NUMERIC" if numeric else "CATEGORICAL",
            "comment": self._comment(score) or None,
            "environment": vars(self._client).get("_environment"),  # else it is not the trace's
            "metadata": self._facts(score, traced.evaluation),
            "timestamp": None if began is None else began.isoformat(),
        }
        return {name: value for name, value in body.items() if value is not None}
