"""A sink that posts scores to the traces of MLflow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rag_eval_integrations.records import Score
from rag_eval_integrations.sinks._traced import (
    Traced,
    TraceSink,
    attribute_value,
    client_library,
    label_of,
    score_id,
)

_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_MOST_TRIED = 10_000
_MISSING = "RESOURCE_DOES_NOT_EXIST"


def mlflow_client() -> Any:
    """Return the tool's client, a module, which reads its address in the environment.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return client_library("mlflow", "mlflow-tracing", "mlflow")


class MLflowSink(TraceSink):
    """Posts every score as feedback on the trace of its call in MLflow.

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. It posts to the
    tracking server of the process (`mlflow.set_tracking_uri`), one request per score, after the
    traces that wait in this process. A score without a value is feedback with an error, whose code
    says why. Feedback has an id of its own: after a failure it is looked for before it is posted
    again, and updated if it is there.

    MLflow's client would repeat a failed request for minutes. So the sink sets
    `MLFLOW_HTTP_REQUEST_MAX_RETRIES` to 2 for the process, unless it is set.

    Args:
        metadata: names of fields of the call's metadata that go along in the feedback's.
        texts: True to send reasons, which may quote questions, documents and responses; otherwise
            the rationale names the keys of sentences.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
        MissingDependencyError: the extra `mlflow` is not installed.
    """

    tool = "MLflow"
    sources = ("mlflow",)

    def __init__(self, *, metadata: Sequence[str] = (), texts: bool = False) -> None:
        super().__init__(metadata, texts)
        self._mlflow = mlflow_client()
        self._entities = client_library("mlflow.entities", "mlflow-tracing", "mlflow")
        os.environ.setdefault(_RETRIES, "2")
        self._tried: set[str] = set()
        """Ids of feedback whose request failed, which may be there nevertheless."""

    def _prepare(self) -> None:
        """Have MLflow write the traces first."""
        self._mlflow.flush_trace_async_logging()

    def _refused(self, error: Exception) -> bool:
        """Return whether this call's trace alone is missing, so that others may be taken."""
        missing = isinstance(error, self._mlflow.MlflowException) and error.error_code == _MISSING
        return missing or super()._refused(error)

    def _send(self, group: Sequence[Traced]) -> None:
        """Log the scores of a group, one after another.

        The first failure ends it; scores logged before that stay.
        """
        for traced in group:
            for score in traced.evaluation.scores.values():
                self._post(str(traced.trace_id), self._feedback(traced, score))

    def _post(self, trace_id: str, feedback: Any) -> None:
        """Log feedback, or update it if MLflow has it already.

        Looks for it where an earlier request failed, and after a failure.

        Raises:
            MlflowException: it could not be logged, and is not there.
        """
        key = feedback.assessment_id
        if key in self._tried and self._update_existing(trace_id, feedback):
            return
        try:
            self._mlflow.log_assessment(trace_id, feedback)
        except self._mlflow.MlflowException:
            if len(self._tried) < _MOST_TRIED:
                self._tried.add(key)
            if not self._update_existing(trace_id, feedback):
                raise
        self._tried.discard(key)

    def _update_existing(self, trace_id: str, feedback: Any) -> bool:
        """Update feedback that MLflow has already; return whether it has it.

        Raises:
            MlflowException: for any other failure than that it is missing.
        """
        key = feedback.assessment_id
        try:
            self._mlflow.get_assessment(trace_id, key)
        except self._mlflow.MlflowException as error:
            if error.error_code != _MISSING:
                raise
            return False
        self._mlflow.update_assessment(trace_id, key, feedback)
        self._tried.discard(key)
        return True

    def _feedback(self, traced: Traced, score: Score) -> Any:
        """Convert a score to MLflow's feedback; without a value, its error has the code of why."""
        error = None
        if score.value is None:
            error = self._entities.AssessmentError(
                error_code=label_of(score), error_message=self._comment(score)
            )
        facts = self._facts(score, traced.evaluation)
        kind = "LLM_JUDGE" if score.by.model else "CODE"
        feedback = self._entities.Feedback(
            name=score.name,
            value=score.value,
            error=error,
            rationale=self._comment(score) or None,
            source=self._entities.AssessmentSource(
                source_type=kind, source_id=score.by.judge or traced.evaluation.judge.name
            ),
            metadata={
                name: str(attribute_value(fact)) for name, fact in facts.items() if fact is not None
            },
            span_id=traced.span_id,
        )
        feedback.assessment_id = f"a-{score_id(traced.evaluation, score.name).hex}"
        return feedback
