"""A sink that emits scores as events and metrics of OpenTelemetry. All names stand here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from rag_eval_integrations.records import Evaluation, Score
from rag_eval_integrations.sinks._traced import (
    Traced,
    TraceSink,
    attribute_value,
    chosen_metadata,
    client_library,
    identity_of,
    label_of,
)

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider, Observation

# The semantic conventions for generative AI; all of them are in development there.
EVENT = "gen_ai.evaluation.result"
NAME = "gen_ai.evaluation.name"
VALUE = "gen_ai.evaluation.score.value"
LABEL = "gen_ai.evaluation.score.label"
EXPLANATION = "gen_ai.evaluation.explanation"
ERROR_TYPE = "error.type"
RECORD_ID = "log.record.uid"
# Proposed there (semantic-conventions-genai, pull request 359 and issue 79).
EVALUATOR = "gen_ai.evaluation.evaluator.name"
EVALUATOR_VERSION = "gen_ai.evaluation.evaluator.version"
# Our own.
CALL = "rag_eval.call.id"
UNSCORED = "rag_eval.unscored"
REASON = "rag_eval.reason"
SCOPE = "rag_eval_integrations"
SCORES_METRIC = "rag_eval.score"
UNSCORED_METRIC = "rag_eval.unscored"
ERRORS_METRIC = "rag_eval.errors"
NOT_JUDGED_METRIC = "rag_eval.not_judged"

_OTHER = "_OTHER"
"""The conventions' word for an error of no known type."""
_BOUNDS = [tenth / 10 for tenth in range(11)]


class OpenTelemetrySink(TraceSink):
    """Emits every score as an event `gen_ai.evaluation.result` on the span of its call.

    A sink for `BackgroundEvaluator`, which calls it from a thread of its own. An event is a log
    record whose context is the captured span; without a span it stands alone. It holds the
    score's name, value, label and explanation, the judge's name, the evaluator's fingerprint as its
    version, and `error.type` for an error. The metrics are a histogram of the scores
    (`rag_eval.score`), and counters of scores without a value (`rag_eval.unscored`, by code), of
    errors (`rag_eval.errors`), and of calls that were not judged (`rag_eval.not_judged`, by
    reason).

    Exporters, batches and resources are those of the app's providers.

    Args:
        logger_provider: makes the logger of the events; by default the global one.
        meter_provider: makes the meter; by default the global one.
        metadata: names of fields of the call's metadata that go along as attributes of the event.
        texts: True to send reasons, which may quote questions, documents and responses; otherwise
            the explanation names the keys of sentences.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
        MissingDependencyError: the extra `otel` is not installed.
    """

    tool = "OpenTelemetry"
    sources = ("otel", "openinference", "openllmetry", "langfuse")
    without = "its events stand alone"

    def __init__(
        self,
        *,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        metadata: Sequence[str] = (),
        texts: bool = False,
    ) -> None:
        super().__init__(metadata, texts)
        self._logs, self._traces, metrics = (
            client_library(f"opentelemetry.{name}", "opentelemetry-api", "otel")
            for name in ("_logs", "trace", "metrics")
        )
        self._logger = self._logs.get_logger(SCOPE, logger_provider=logger_provider)
        self._meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._observation: type[Observation] = metrics.Observation
        self._scores = self._meter.create_histogram(
            SCORES_METRIC,
            unit="1",
            description="Scores of RAG calls, from 0 to 1.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._unscored = self._meter.create_counter(
            UNSCORED_METRIC, description="Scores without a value, by the code of why."
        )
        self._errors = self._meter.create_counter(ERRORS_METRIC, description="Failed scores.")
        self._watched: list[WeakMethod[Callable[[], Mapping[str, int]]]] = []

    def watch_not_judged(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Report the calls that are not judged, by reason; the background evaluator calls it.

        Several functions are summed up. They are held weakly: one whose object is gone is left out.
        """
        if not self._watched:
            self._meter.create_observable_counter(
                NOT_JUDGED_METRIC,
                [self._not_judged],
                description="Calls that were not judged, by reason.",
            )
        self._watched.append(WeakMethod(counts))

    def _not_judged(self, options: object) -> Iterable[Observation]:
        """Observe the calls that were not judged, by reason."""
        total: dict[str, int] = {}
        for watched in self._watched:
            if (counts := watched()) is not None:
                for reason, number in counts().items():
                    total[reason] = total.get(reason, 0) + number
        return [self._observation(number, {REASON: reason}) for reason, number in total.items()]

    def traced(self, evaluation: Evaluation) -> Traced | None:
        """Return an evaluation with its span, or without one: then its events stand alone.

        Never None.
        """
        return super().traced(evaluation) or Traced(evaluation, None, None)

    def _send(self, group: Sequence[Traced]) -> None:
        """Emit an event and record a metric per score."""
        for traced in group:
            evaluation = traced.evaluation
            context, ended = self._context(traced), _end_of(evaluation)
            shared = {
                name: attribute_value(v)
                for name, v in chosen_metadata(evaluation, self._metadata).items()
            }
            if context is None:  # each attribute takes the SDK a microsecond
                shared[CALL] = evaluation.id
            if evaluation.fingerprint is not None:
                shared[EVALUATOR_VERSION] = evaluation.fingerprint
            own = hashlib.blake2b(identity_of(evaluation).encode(), digest_size=16).hexdigest()
            for score in evaluation.scores.values():
                shared[RECORD_ID] = f"{own}/{score.name}"
                self._emit(score, evaluation, shared, context, ended)
                self._record(score, evaluation, context)

    def _emit(
        self,
        score: Score,
        evaluation: Evaluation,
        shared: Mapping[str, Any],
        context: Context | None,
        ended: int,
    ) -> None:
        """Emit the event of a score.

        Its severity is WARN for an error and for a score below its threshold, else INFO.
        """
        attributes = {
            **shared,
            NAME: score.name,
            EVALUATOR: score.by.judge or evaluation.judge.name,
        }
        if score.value is not None:
            attributes[VALUE] = score.value
        if (label := label_of(score)) is not None:
            attributes[LABEL] = label
        if explanation := self._comment(score):
            attributes[EXPLANATION] = explanation
        if score.status == "error":
            attributes[ERROR_TYPE] = _error_type(evaluation)
        bad = score.status == "error" or score.passed is False
        severity = self._logs.SeverityNumber
        self._logger.emit(
            self._logs.LogRecord(
                timestamp=ended,
                context=context,
                severity_number=severity.WARN if bad else severity.INFO,
                attributes=attributes,
                event_name=EVENT,
            )
        )

    def _record(self, score: Score, evaluation: Evaluation, context: Context | None) -> None:
        """Record the metric of a score: its value, or a count of errors or of unscored ones."""
        if score.value is not None:
            self._scores.record(score.value, {NAME: score.name}, context)
        elif score.status == "error":
            self._errors.add(1, {NAME: score.name, ERROR_TYPE: _error_type(evaluation)}, context)
        else:
            self._unscored.add(1, {NAME: score.name, UNSCORED: str(score.unscored)}, context)

    def _context(self, traced: Traced) -> Context | None:
        """Return the context of the call's span; None without one."""
        if traced.trace_id is None or traced.span_id is None:
            return None
        traces = self._traces
        span = traces.SpanContext(
            int(traced.trace_id, 16),
            int(traced.span_id, 16),
            is_remote=True,
            trace_flags=traces.TraceFlags(traces.TraceFlags.SAMPLED),
        )
        context: Context = traces.set_span_in_context(traces.NonRecordingSpan(span))
        return context


def _end_of(evaluation: Evaluation) -> int:
    """Return the end of the call in nanoseconds since 1970; now if that is not known."""
    began, capture = evaluation.started_at, evaluation.capture
    if began is None or capture is None:
        return time.time_ns()
    return int((began.timestamp() + (capture.latency_s or 0.0)) * 1e9)


def _error_type(evaluation: Evaluation) -> str:
    """Return the type of an evaluation's error; `_OTHER` if it is not known."""
    return _OTHER if evaluation.error is None else evaluation.error.type
