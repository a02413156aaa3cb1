"""A sink that posts scores to the spans of Arize Phoenix."""

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

if TYPE_CHECKING:
    from phoenix.client import Client

_NOT_FOUND, _INVALID = 404, 422


def phoenix_client() -> Any:
    """Make the tool's client, with the address and keys of the environment.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return client_library("phoenix.client", "arize-phoenix-client", "phoenix").Client()


class PhoenixSink(TraceSink):
    """Posts every score as an annotation of the span of its call in Phoenix.

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. Annotations are sent
    synchronously, after the spans that wait in this process: Phoenix would lose one whose span it
    does not know. A span that is not there yet is tried again. An annotation that is sent twice is
    one, by its identifier.

    Args:
        client: a `phoenix.client.Client`; by default one that reads `PHOENIX_COLLECTOR_ENDPOINT`
            and `PHOENIX_API_KEY`.
        metadata: names of fields of the call's metadata that go along in the annotation's.
        texts: True to send reasons, which may quote questions, documents and responses; otherwise
            the explanation names the keys of sentences.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
        MissingDependencyError: without a `client`, the extra `phoenix` is not installed.
    """

    tool = "Phoenix"
    sources = ("openinference", "otel", "openllmetry")
    group = 100

    def __init__(
        self,
        client: Client | None = None,
        *,
        metadata: Sequence[str] = (),
        texts: bool = False,
    ) -> None:
        super().__init__(metadata, texts)
        self._client: Client = phoenix_client() if client is None else client

    def _prepare(self) -> None:
        """Have the app's tracer export its spans first; nothing without one of the SDK."""
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 -- comes with the client
        from opentelemetry.trace import get_tracer_provider  # noqa: PLC0415

        provider = get_tracer_provider()
        if isinstance(provider, TracerProvider):
            provider.force_flush()

    def _send(self, group: Sequence[Traced]) -> None:
        """Send the annotations of a group, all or none: none if the service misses a span."""
        annotations: list[Any] = [
            self._annotation(traced, score)
            for traced in group
            for score in traced.evaluation.scores.values()
        ]
        self._client.spans.log_span_annotations(span_annotations=annotations, sync=True)

    def _refused(self, error: Exception) -> bool:
        """Return whether Phoenix refused these annotations alone, so that others may be taken.

        That is a status of 404 or 422, or a group of which some were not taken.
        """
        return super()._refused(error) or _status(error) in (_NOT_FOUND, _INVALID)

    def _annotation(self, traced: Traced, score: Score) -> dict[str, Any]:
        """Convert a score to Phoenix's annotation.

        Parts of its result that are None are left out.
        """
        result = {
            "score": score.value,
            "label": label_of(score),
            "explanation": self._comment(score) or None,
        }
        return {
            "span_id": traced.span_id,
            "name": score.name,
            "annotator_kind": "LLM" if score.by.model else "CODE",
            "identifier": str(score_id(traced.evaluation, score.name)),
            "result": {name: value for name, value in result.items() if value is not None},
            "metadata": self._facts(score, traced.evaluation),
        }


def _status(error: Exception) -> int | None:
    """Return the HTTP status of an error; None without one."""
    from httpx import HTTPStatusError  # noqa: PLC0415 -- comes with the client

    return error.response.status_code if isinstance(error, HTTPStatusError) else None
