"""From labels to an `Evaluation`: the last steps of the flow, behind the judge.

    Labelling ─▶ score, by `LabelMetric` ─▶ Evaluation
    what a `ModelMetric` measures, by its model ─▲

A metric that fails leaves the others their scores: `Outcome` is what one metric gave for one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from rag_eval_integrations._contain import EscapedError, contained, words_of
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError, JudgeError, JudgeOutputError
from rag_eval_integrations.judges.suspicion import Suspicion
from rag_eval_integrations.metrics import CallMetric, LabelMetric, Measured, Metric, ModelMetric
from rag_eval_integrations.metrics.metric import as_promised
from rag_eval_integrations.metrics.trace.formulas import NOTHING_RETRIEVED
from rag_eval_integrations.models import ModelBase
from rag_eval_integrations.records import (
    By,
    Evaluation,
    EvaluationError,
    JudgeInfo,
    Labelling,
    RagCall,
    Score,
    Sentences,
    SentencizedCall,
    Usage,
)
from rag_eval_integrations.records._json import Record, from_object, json_copy
from rag_eval_integrations.records.labels import UnscoredCode
from rag_eval_integrations.records.score import Scores, Stage

logger = logger_of(__name__)

R = TypeVar("R", bound=Record)


class JudgeFailure(EvaluationError):
    """The failure of a judge or model, with the usage of its requests."""

    usage: Usage


Outcome = Measured | EvaluationError
"""The result of one metric for one call."""


def score_labelling(
    call: SentencizedCall,
    labelling: Labelling,
    metrics: Sequence[LabelMetric | CallMetric],
    fingerprint: str | None = None,
    speaks: Suspicion | None = None,
) -> Evaluation:
    """Score existing labels: the last step of the flow, without a judge.

    Args:
        call: the call with its sentences.
        labelling: reconciled labels, or the reason why there are none.
        metrics: what to score.
        fingerprint: fingerprint of the evaluator that made the labelling; None without one.
        speaks: what looks for `suspected_injection`; None to leave it out.

    Raises:
        ConfigurationError: a metric needs labels of another text than the response.
    """
    of_labels = [metric for metric in metrics if isinstance(metric, LabelMetric)]
    for metric in of_labels:
        if metric.judged != "response":
            why = f"needs labels of the {metric.judged}, and these are of the response"
            raise ConfigurationError("metrics", metric, why)
    outcomes = scored(call, labelling, of_labels)
    outcomes |= scored_alone(call.call, [m for m in metrics if isinstance(m, CallMetric)])
    return evaluation_of(call, labelling, metrics, outcomes, fingerprint, speaks=speaks)


def scored(
    call: SentencizedCall, labelling: Labelling, metrics: Sequence[LabelMetric]
) -> dict[tuple[str, ...], Outcome]:
    """Score the labels by each metric; one that fails leaves the others their scores."""
    by = by_of(call, labelling)
    return {
        metric.names: outcome_of(call.call, metric, partial(metric.score, call, labelling, by))
        for metric in metrics
    }


def scored_alone(call: RagCall, metrics: Sequence[CallMetric]) -> dict[tuple[str, ...], Outcome]:
    """Score a call by each metric that needs no labels."""
    return {
        metric.names: outcome_of(call, metric, partial(metric.score, call, By()))
        for metric in metrics
    }


def outcome_of(call: RagCall, metric: Metric, make: Callable[[], Sequence[Score]]) -> Outcome:
    """Run a metric; an exception of its code becomes an `EvaluationError`."""
    try:
        with contained:
            return Measured(given_by(metric, make()))
    except Exception as error:  # noqa: BLE001 -- the boundary
        return failure_of(call, "metrics", error)


_OWN = __name__.partition(".")[0]


def is_own(part: object) -> bool:
    """Tell whether a judge or metric is the library's own, whose records need no check."""
    return type(part).__module__.partition(".")[0] == _OWN


def sound(record: R) -> R:
    """Check a record that a user's code made: `model_copy` and `model_construct` check nothing.

    Raises:
        InputError: a field has a value that a file could not hold, such as NaN.
    """
    return from_object(type(record), _content(record))


def _content(value: object) -> object:
    """Return a record's fields as plain values, also those that its own JSON leaves out."""
    if isinstance(value, Record):  # its own JSON may leave fields out
        fields = type(value).model_fields
        return {name: _content(v) for name, v in vars(value).items() if name in fields}
    if isinstance(value, tuple | list):
        return [_content(part) for part in value]
    if isinstance(value, dict):
        return {key: _content(part) for key, part in value.items()}
    return value


async def measured_by(metric: ModelMetric, call: SentencizedCall, model: Any) -> Measured:
    """Have a metric ask a model about a call, and check what the metric returned.

    A reply that cannot be read makes the scores unscored.
    """
    try:
        with suppress_capture(), contained:
            given = _with_sentences(call) if metric.takes_any_judge else call.call
            measured: object = await metric.measure(given, model)
    except JudgeOutputError as error:  # a bad reply is not a model that does not answer
        by = _by_of_model(model, call)
        scores = metric.unscored("judge_output_invalid", words_of(error), by)
        usage = Usage() if error.usage is None else error.usage
        return Measured(given_by(metric, scores), usage)
    if not isinstance(measured, Measured) or not isinstance(measured.usage, Usage):
        kind = type(measured).__name__
        raise JudgeError(f"the metric returned {kind} instead of a Measured with its Usage")
    usage = measured.usage if is_own(metric) else sound(measured.usage)
    return Measured(given_by(metric, measured.scores), usage)


def _with_sentences(call: SentencizedCall) -> RagCall:
    """Return the call as if its sentences had been recorded with it."""
    return call.call.model_copy(update={"sentences": call.sentences})


def _by_of_model(model: ModelBase, call: SentencizedCall) -> By:
    """Return the provenance of scores for which a metric asks a model."""
    return By(judge=model.name, judge_version=model.version, splitter=call.splitter, windows=1)


def given_by(metric: Metric, scores: Sequence[Score]) -> tuple[Score, ...]:
    """Return a metric's scores, after checking that they are sound and its own.

    Raises:
        ConfigurationError: see `as_promised`.
        InputError: see `sound`.
    """
    given = as_promised(metric, scores)
    return given if is_own(metric) else tuple(map(sound, given))


def nothing_to_judge(call: SentencizedCall) -> tuple[UnscoredCode, str] | None:
    """Return why a call cannot be judged, as a code and a reason; None when it can.

    A captured retrieval alone needs no response.
    """
    if not call.response and not _is_retrieval_alone(call.call):
        response = "no response" if call.call.response is None else "an empty response"
        if call.sentences.not_claims:
            response = "a response that is a list of sources and nothing else"
        return "empty_response", f"the call has {response}"
    if not call.documents:
        documents = "no documents" if not call.call.documents else "only empty documents"
        why = NOTHING_RETRIEVED if call.call.earlier else f"the call has {documents}"
        return "no_context", why
    if not call.call.question.strip():
        return "no_question", "the call has no question"
    return None


def about_reference(call: SentencizedCall, reference: SentencizedCall) -> SentencizedCall:
    """Return a call whose response is the reference, for a judge to label.

    Documents of earlier turns are left out: recall is the retriever's.

    Args:
        call: the call with its sentences. Those of its documents keep their keys.
        reference: the reference, split as the response of a call.
    """
    documents = call.of_this_turn().documents
    sentences = Sentences(documents=documents, response=reference.response)
    # Documents that are left out make it another call than one with this response.
    recorded = call.call.sentences is not None or call.call.earlier
    asked = {
        "response": call.call.reference,
        "reference": None,
        "alternatives": (),
        "sentences": sentences if recorded else None,
        # A retriever that was captured alone has no response that a judge could do without.
        "capture": None,
    }
    # Made anew, not copied: a copy would keep the key of the row.
    fields = {name: getattr(call.call, name) for name in RagCall.model_fields}
    judged = RagCall(**{**fields, **asked})
    return SentencizedCall(call=judged, sentences=sentences, splitter=call.splitter)


def _is_retrieval_alone(call: RagCall) -> bool:
    """Tell whether a retriever was captured alone, without any answer."""
    capture = call.capture
    if call.response is not None or capture is None or capture.status != "ok":
        return False
    return bool(call.documents) or capture.documents_from != "none"


def by_of(call: SentencizedCall, labelling: Labelling) -> By:
    """Return the provenance of scores of a labelling, as far as it is known without a metric."""
    judge = labelling.judge
    return By(
        judge=judge.name,
        model=judge.model,
        judge_version=judge.version,
        prompt_version=labelling.prompt_version,
        splitter=call.splitter,
        windows=labelling.windows,
    )


def _flags(
    call: SentencizedCall, labelling: Labelling, speaks: Suspicion | None
) -> tuple[str, ...]:
    """List the flags of a call: capture status, suspected injection, faults of its labels."""
    flags = []
    capture, labels = call.call.capture, labelling.labels
    if capture is not None and capture.status != "ok":
        flags.append(f"capture_{capture.status}")
    if speaks is not None and speaks(call.call):
        flags.append("suspected_injection")
    if labels is not None:
        flags += [
            name
            for name in ("unknown_keys", "missing_keys", "overall_conflict")
            if getattr(labels, name)
        ]
    return tuple(flags)


def names_of(metrics: Sequence[Metric]) -> list[tuple[str, ...]]:
    """Return the names of each metric's scores."""
    return [metric.names for metric in metrics]


def maker_of(
    metric: Metric,
    call: SentencizedCall,
    labelling: Labelling,
    models: Mapping[tuple[str, ...], ModelBase],
) -> By:
    """Return the provenance of a metric's scores that have no value."""
    model = models.get(metric.names)
    if isinstance(metric, CallMetric):
        return By()
    if model is None:
        return by_of(call, labelling)
    return _by_of_model(model, call)


def evaluation_of(
    call: SentencizedCall,
    labelling: Labelling,
    metrics: Sequence[Metric],
    outcomes: Mapping[tuple[str, ...], Outcome],
    fingerprint: str | None,
    models: Mapping[tuple[str, ...], ModelBase] = {},
    reference: tuple[SentencizedCall, Labelling] | None = None,
    speaks: Suspicion | None = None,
) -> Evaluation:
    """Make the evaluation of a call from its labelling and the outcomes of its metrics.

    Args:
        call: the call with its sentences.
        labelling: what the judge said of it.
        metrics: the metrics, in the order of their scores.
        outcomes: what each of them gave, by its names.
        fingerprint: of the evaluator; None without one.
        models: the models that metrics asked.
        reference: the call about the reference, and what the judge said of it; None if no metric
            wanted to know.
        speaks: what looks for `suspected_injection`; None to leave it out.
    """
    source, usage = call.call, labelling.usage
    flags = labelling.flags + _flags(call, labelling, speaks)
    if reference is not None:
        from rag_eval_integrations.judges.cascade import is_of_cascade  # noqa: PLC0415  # imports models

        about, labelled = reference
        usage += labelled.usage
        # Which judge of a cascade labelled is told of the response, if it was labelled.
        reference_flags = (
            flag for flag in labelled.flags if not (is_of_cascade(flag) and labelling.flags)
        )
        flags = tuple(dict.fromkeys((*flags, *reference_flags, *_flags(about, labelled, speaks))))
    scores: dict[str, Score] = {}
    for metric in metrics:
        outcome = outcomes[metric.names]
        if isinstance(outcome, Measured):
            scores |= zip(metric.names, outcome.scores, strict=True)
            usage += outcome.usage
            continue
        reason = f"{outcome.type}: {outcome.message}"
        by = maker_of(metric, call, labelling, models)
        for name in metric.names:
            scores[name] = Score(name=name, status="error", reason=reason, by=by)
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, EvaluationError)]
    # Metrics that read the same labels fail by the same failure.
    for failed in {
        id(error): error for error in errors if isinstance(error, JudgeFailure)
    }.values():
        usage += failed.usage
    metadata = {}
    try:
        metadata = json_copy(source.metadata)
    except Exception as error:  # noqa: BLE001 -- changed since the call was made, and not JSON now
        errors.append(failure_of(source, "metrics", error))
    headers = tuple(d.header or None for d in source.documents)
    first = errors[0] if errors else None
    if isinstance(first, JudgeFailure):
        first = EvaluationError(type=first.type, message=first.message, stage=first.stage)
    # Validated, it takes three times as long (16 against 5 µs); all parts are valid records.
    return Evaluation.model_construct(
        id=source.id,
        row_key=source.row_key,
        question=source.question,
        response=source.response,
        reference=source.reference,
        history=source.history,
        metadata=metadata,
        capture=source.capture,
        started_at=source.started_at,
        app=source.app,
        scores=Scores(scores),
        labels=labelling.labels,
        sentences=call.sentences,
        document_ids=tuple(d.id for d in source.documents),
        document_headers=headers if any(headers) else (),
        earlier=source.earlier,
        alternatives=source.alternatives,
        relevant_ids=source.relevant_ids,
        judge=labelling.judge,
        fingerprint=fingerprint,
        usage=usage,
        flags=flags,
        error=first,
    )


NO_CALL = RagCall(question="", documents=(), response=None)


def failed_evaluation(
    call: RagCall, metrics: Sequence[Metric], failure: EvaluationError
) -> Evaluation:
    """Make the evaluation of a failed call without asking judge, splitter or metric."""
    reason = f"{failure.type}: {failure.message}"
    names = [name for metric in metrics for name in metric.names]
    scores = {name: Score(name=name, status="error", reason=reason) for name in names}
    return Evaluation(
        id=call.id,
        row_key=call.row_key,
        question=call.question,
        response=call.response,
        scores=scores,
        labels=None,
        sentences=Sentences(),
        judge=JudgeInfo(name="unknown"),
        error=failure,
    )


def failure_of(
    call: RagCall, stage: Stage, error: BaseException, *, asked: bool = True
) -> EvaluationError:
    """Describe a failure; never raises, whatever was raised.

    It has the usage of its requests unless another call asked for it.
    """
    if isinstance(error, EscapedError):
        error = error.original
    logger.debug("call %s: %s failed", call.id, stage, exc_info=error)
    described = EvaluationError(type=type(error).__name__, message=words_of(error), stage=stage)
    if not isinstance(error, JudgeError) or error.usage is None or not asked:
        return described
    return JudgeFailure(**described.model_dump(), usage=error.usage)
