"""`RagEvaluator`: from a captured call to its `Evaluation` (stages 2 to 4 of the flow).

    RagCall ─▶ split ─▶ label, by the judge ──▶ score, by `LabelMetric` ─▶ Evaluation
                └─────▶ ask a model, by `ModelMetric` ─────────────────────▲

A step that can fail returns an `EvaluationError` instead of its result.

`score_labelling` is the last step alone, for labels that exist already.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property, partial

from rag_eval_integrations import _loop
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from, reconcile, speaks_to_a_judge
from rag_eval_integrations.judges.judge import JudgeBase, judge_base
from rag_eval_integrations.metrics import LabelMetric, Measured, Metric, ModelMetric, Trace
from rag_eval_integrations.metrics.metric import as_promised, checked_metrics
from rag_eval_integrations.models import Model, ModelBase, with_retries
from rag_eval_integrations.models._single_flight import SingleFlight
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
    UnscoredCode,
    Usage,
    json_copy,
)
from rag_eval_integrations.records.score import Stage
from rag_eval_integrations.sentences import RECORDED, Splitter, sentencize

logger = logging.getLogger(__name__)

_BIG_CALL = 50_000
"""Characters above which a call is split in a thread, not on the loop: about 10 ms of work."""


_Outcome = Measured | EvaluationError
"""The result of one metric for one call."""


class RagEvaluator:
    """Evaluates RAG calls: splits a call into sentences, has a judge label them, and scores it.

    One object may evaluate any number of calls at once, from any thread or loop. The judge is asked
    once per call, whatever the number of metrics that read its labels; calls with the same content
    share one judge request, also when they are evaluated at the same time (single flight). Metrics
    that ask a model themselves (G-Eval) run concurrently with the judge; if one fails, the others
    keep their scores.

    Args:
        judge: a judge's name (`embedded`), any `Judge`, or a model (`Model`), which is asked
            with the labelling prompt, through `ThrottledModel` unless it retries already.
        metrics: what to score; default `[Trace()]`.
        splitter: how to split texts into sentences; default `Punkt()`, English.
        max_remembered: how many labellings are kept for calls with the same content, from 0; 0
            shares only requests in flight.

    Raises:
        ConfigurationError: for an unknown judge, no metrics, an object that is not a metric, two
            metrics with the same score name, or a metric that asks a model when the judge has
            none.

    Warns:
        UserWarning: a metric can be told apart from others neither by its `repr` nor by a
            `version`, so that no other process can reuse the evaluations.
    """

    def __init__(
        self,
        judge: str | Judge | Model = "embedded",
        metrics: Sequence[Metric] | None = None,
        *,
        splitter: Splitter | None = None,
        max_remembered: int = 256,
    ) -> None:
        found = judge_from(judge)
        self.judge: Judge
        self._judge: JudgeBase
        self._model: ModelBase | None
        if isinstance(found, Judge):
            # A judge that asks a model shares it with the metrics that need one.
            self.judge = found
            self._judge = judge_base(found)
            self._model = self._judge.model
        else:
            self._model = with_retries(found)
            self.judge = self._judge = _asked_to_label(self._model)
        self.metrics: tuple[Metric, ...] = checked_metrics(
            [Trace()] if metrics is None else metrics
        )
        self.splitter: Splitter = _default_splitter() if splitter is None else splitter
        if max_remembered < 0:
            raise ConfigurationError("max_remembered", max_remembered, "use a number from 0")
        for metric in self.metrics:
            if metric.identity is None:
                warnings.warn(
                    f"{type(metric).__name__} has no `repr` of its own and no `version`: "
                    "evaluations with it cannot be resumed, since its fingerprint is another one "
                    "in every process. Make it a frozen dataclass, or give it a `version`",
                    stacklevel=2,
                )
        self._models = {
            metric.names: self._model_for(metric)
            for metric in self.metrics
            if isinstance(metric, ModelMetric)
        }
        self._labellings = SingleFlight[Labelling](max_remembered)
        self._measured = SingleFlight[Measured](max_remembered)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all scores, in the order of the metrics."""
        return tuple(name for metric in self.metrics for name in metric.names)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of judge, models, metrics and splitter: what decides the scores of a call."""
        asked: list[JudgeBase | ModelBase] = [self._judge, *self._models.values()]
        judges = [part for one in asked for part in (one.name, one.version or "")]
        metrics = [metric.identity or repr(metric) for metric in self.metrics]
        text = "\n".join([*judges[:2], self.splitter.name, *judges[2:], *metrics])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def evaluate(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call; failures are recorded in the evaluation, never raised.

        For a call without a response, documents or a question the judge is not asked, and scores
        that need labels are unscored.

        Args:
            call: the captured call.
            only: names of scores; metrics that produce none of them are skipped. All by default.

        Raises:
            ConfigurationError: the evaluator does not have a score of `only`.
        """
        metrics = self._metrics_for(only)
        split = await self._split(call)
        if isinstance(split, EvaluationError):
            return self.without_result(call, split, only=only)
        of_labels = [metric for metric in metrics if isinstance(metric, LabelMetric)]
        of_models = [metric for metric in metrics if isinstance(metric, ModelMetric)]
        labelled, measured = await self._ask(split, of_labels, of_models)
        if isinstance(labelled, EvaluationError):
            labelling = self._unasked(None, labelled.message)
            outcomes: dict[tuple[str, ...], _Outcome] = dict.fromkeys(_names(of_labels), labelled)
        else:
            labelling = labelled
            outcomes = _scored(split, labelling, of_labels)
        outcomes |= zip(_names(of_models), measured, strict=True)
        return _evaluation(split, labelling, metrics, outcomes, self.fingerprint, self._models)

    def evaluate_sync(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call from synchronous code, notebooks included."""
        return _loop.run(self.evaluate(call, only=only))

    def without_result(
        self,
        call: RagCall,
        why: EvaluationError | tuple[UnscoredCode, str],
        *,
        only: Collection[str] | None = None,
    ) -> Evaluation:
        """Make the evaluation of a call for which neither the judge nor a model was asked.

        Args:
            call: the call.
            why: the failure, or the code and reason for which the scores are unscored.
            only: names of scores, as in `evaluate`.
        """
        metrics = self._metrics_for(only)
        splitter = self.splitter.name if call.sentences is None else RECORDED
        split = SentencizedCall(call=call, sentences=Sentences(), splitter=splitter)
        outcomes: dict[tuple[str, ...], _Outcome]
        if isinstance(why, EvaluationError):
            labelling = self._unasked(None, why.message)
            outcomes = dict.fromkeys(_names(metrics), why)
        else:
            labelling = self._unasked(*why)
            outcomes = {}
            for metric in metrics:
                by = _maker(metric, split, labelling, self._models)
                outcomes[metric.names] = _made(call, metric, partial(metric.unscored, *why, by))
        return _evaluation(split, labelling, metrics, outcomes, self.fingerprint, self._models)

    def _metrics_for(self, only: Collection[str] | None) -> Sequence[Metric]:
        if only is None:
            return self.metrics
        unknown = sorted(set(only) - set(self.names))
        if unknown:
            known = ", ".join(self.names)
            raise ConfigurationError("only", unknown, f"no such scores; use some of {known}")
        return [metric for metric in self.metrics if not set(only).isdisjoint(metric.names)]

    # --- The steps

    async def _split(self, call: RagCall) -> SentencizedCall | EvaluationError:
        try:
            if len(call.response or "") + sum(len(d.text) for d in call.documents) < _BIG_CALL:
                return sentencize(call, self.splitter)
            import asyncio  # noqa: PLC0415  # 40 ms, too much for a light import

            return await asyncio.to_thread(sentencize, call, self.splitter)
        except Exception as error:  # noqa: BLE001 -- the boundary: failure is data from here on
            return _failure(call, "sentences", error)

    async def _ask(
        self,
        call: SentencizedCall,
        of_labels: Sequence[LabelMetric],
        of_models: Sequence[ModelMetric],
    ) -> tuple[Labelling | EvaluationError, Sequence[_Outcome]]:
        """Ask the judge for labels, if a metric reads them, and the metrics' models meanwhile."""
        labelled = self._label(call) if of_labels else self._not_asked()
        if not of_models:  # without a task of its own, which costs 60 µs per call
            return await labelled, ()
        import asyncio  # noqa: PLC0415  # as above

        measured = asyncio.gather(*(self._measure(call, metric) for metric in of_models))
        return await asyncio.gather(labelled, measured)

    # --- Labels

    async def _label(self, call: SentencizedCall) -> Labelling | EvaluationError:
        nothing = nothing_to_judge(call)
        if nothing is not None:
            return self._unasked(*nothing)
        try:
            # Two calls of the same text may have different recorded sentences, which `row_key` does
            # not cover.
            key = (call.call.row_key, call.splitter, call.call.sentences)
            return await self._labellings.get(key, lambda: self._label_once(call))
        except Exception as error:  # noqa: BLE001 -- the boundary
            return _failure(call.call, "judge", error)

    async def _label_once(self, call: SentencizedCall) -> Labelling:
        with suppress_capture():
            labelling = await self.judge.label(call)
        if labelling.labels is None:
            return labelling
        if call.splitter != RECORDED and self._judge.keeps_keys:
            return labelling  # reconciling would change nothing, and takes 0.2 ms
        return labelling.model_copy(update={"labels": reconcile(labelling.labels, call)})

    async def _not_asked(self) -> Labelling:
        return self._unasked(None, "")

    def _unasked(self, code: UnscoredCode | None, reason: str) -> Labelling:
        info = JudgeInfo(name=self.judge.name, version=self._judge.version)
        return Labelling(labels=None, judge=info, usage=Usage(), unscored=code, reason=reason)

    # --- Metrics that ask a model

    def _model_for(self, metric: ModelMetric) -> ModelBase:
        if metric.judge is not None:
            return with_retries(metric.judge)
        if self._model is None:
            raise ConfigurationError(
                "metrics",
                ", ".join(metric.names),
                f"asks a model, and the judge {self.judge.name} has none; pass a model as the "
                "judge, such as 'openai:gpt-4o-mini', or one for this metric alone (`judge=`)",
            )
        return self._model

    async def _measure(self, call: SentencizedCall, metric: ModelMetric) -> _Outcome:
        # Several evaluator objects of a framework ask once, as for labels.
        key = (metric.names, _content_key(call.call))
        try:
            return await self._measured.get(key, lambda: self._measure_once(call, metric))
        except Exception as error:  # noqa: BLE001 -- the boundary
            return _failure(call.call, "metrics", error)

    async def _measure_once(self, call: SentencizedCall, metric: ModelMetric) -> Measured:
        with suppress_capture():
            measured = await metric.measure(call.call, self._models[metric.names])
        return Measured(as_promised(metric, measured.scores), measured.usage)


def _content_key(call: RagCall) -> Hashable:
    # `row_key` is not enough: a metric that asks a model also reads the metadata.
    try:
        return call.model_dump_json(exclude={"capture", "started_at"})
    except Exception:  # noqa: BLE001 -- not JSON, such as metadata that was changed since
        return object()  # equal to no other key: the call shares no request


def _failure(call: RagCall, stage: Stage, error: Exception) -> EvaluationError:
    logger.debug("call %s: %s failed", call.id, stage, exc_info=error)
    message = str(error) or repr(error)
    return EvaluationError(type=type(error).__name__, message=message, stage=stage)


def _asked_to_label(model: ModelBase) -> JudgeBase:
    from rag_eval_integrations.judges import LLMJudge  # noqa: PLC0415  # only for a model

    return LLMJudge(model)


def _default_splitter() -> Splitter:
    from rag_eval_integrations.sentences import Punkt  # noqa: PLC0415  # 30 ms of patterns

    return Punkt()


def score_labelling(
    call: SentencizedCall,
    labelling: Labelling,
    metrics: Sequence[LabelMetric],
    fingerprint: str | None = None,
) -> Evaluation:
    """Score existing labels: the last step of the flow, without a judge.

    Args:
        call: the call with its sentences.
        labelling: reconciled labels, or the reason why there are none.
        metrics: what to score.
        fingerprint: fingerprint of the evaluator that made the labelling; None without one.
    """
    outcomes = _scored(call, labelling, metrics)
    return _evaluation(call, labelling, metrics, outcomes, fingerprint)


def _scored(
    call: SentencizedCall, labelling: Labelling, metrics: Sequence[LabelMetric]
) -> dict[tuple[str, ...], _Outcome]:
    """Score the labels by each metric; one that fails leaves the others their scores."""
    by = _by(call, labelling)
    return {
        metric.names: _made(call.call, metric, partial(metric.score, call, labelling, by))
        for metric in metrics
    }


def _made(call: RagCall, metric: Metric, make: Callable[[], Sequence[Score]]) -> _Outcome:
    try:
        return Measured(as_promised(metric, make()))
    except Exception as error:  # noqa: BLE001 -- the boundary
        return _failure(call, "metrics", error)


def nothing_to_judge(call: SentencizedCall) -> tuple[UnscoredCode, str] | None:
    """Return why a call cannot be judged, as a code and a reason; None when it can."""
    if not call.response and not _is_retrieval_alone(call.call):
        response = "no response" if call.call.response is None else "an empty response"
        return "empty_response", f"the call has {response}"
    if not call.documents:
        documents = "no documents" if not call.call.documents else "only empty documents"
        return "no_context", f"the call has {documents}"
    if not call.call.question.strip():
        return "no_question", "the call has no question"
    return None


def _is_retrieval_alone(call: RagCall) -> bool:
    """Whether a retriever was captured alone, without any answer."""
    capture = call.capture
    return call.response is None and capture is not None and capture.status == "ok"


def _by(call: SentencizedCall, labelling: Labelling) -> By:
    judge = labelling.judge
    return By(
        judge=judge.name, model=judge.model, judge_version=judge.version,
        prompt_version=labelling.prompt_version, splitter=call.splitter, windows=labelling.windows,
    )  # fmt: skip


def _flags(call: SentencizedCall, labelling: Labelling) -> tuple[str, ...]:
    flags = []
    capture, labels = call.call.capture, labelling.labels
    if capture is not None and capture.status != "ok":
        flags.append(f"capture_{capture.status}")
    texts = (call.call.question, call.call.response or "", *(d.text for d in call.call.documents))
    if speaks_to_a_judge(texts):
        flags.append("suspected_injection")
    if labels is not None:
        flags += [
            name
            for name in ("unknown_keys", "missing_keys", "overall_conflict")
            if getattr(labels, name)
        ]
    return tuple(flags)


def _names(metrics: Sequence[Metric]) -> list[tuple[str, ...]]:
    return [metric.names for metric in metrics]


def _maker(
    metric: Metric,
    call: SentencizedCall,
    labelling: Labelling,
    models: Mapping[tuple[str, ...], ModelBase],
) -> By:
    """Return the provenance of a metric's scores that have no value."""
    model = models.get(metric.names)
    if model is None:
        return _by(call, labelling)
    return By(judge=model.name, judge_version=model.version, splitter=call.splitter, windows=1)


def _evaluation(
    call: SentencizedCall,
    labelling: Labelling,
    metrics: Sequence[Metric],
    outcomes: Mapping[tuple[str, ...], _Outcome],
    fingerprint: str | None,
    models: Mapping[tuple[str, ...], ModelBase] = {},
) -> Evaluation:
    source, usage = call.call, labelling.usage
    scores: dict[str, Score] = {}
    for metric in metrics:
        outcome = outcomes[metric.names]
        if isinstance(outcome, Measured):
            scores |= zip(metric.names, outcome.scores, strict=True)
            usage += outcome.usage
            continue
        reason = f"{outcome.type}: {outcome.message}"
        by = _maker(metric, call, labelling, models)
        for name in metric.names:
            scores[name] = Score(name=name, status="error", reason=reason, by=by)
    errors = [one for one in outcomes.values() if isinstance(one, EvaluationError)]
    metadata = {}
    try:
        metadata = json_copy(source.metadata)
    except Exception as error:  # noqa: BLE001 -- changed since the call was made, and not JSON now
        errors.append(_failure(source, "metrics", error))
    # Validated, it takes three times as long (16 against 5 µs); all parts are valid records.
    return Evaluation.model_construct(
        id=source.id, row_key=source.row_key, question=source.question, response=source.response,
        reference=source.reference, metadata=metadata, capture=source.capture, scores=scores,
        labels=labelling.labels, sentences=call.sentences,
        document_ids=tuple(d.id for d in source.documents), judge=labelling.judge,
        fingerprint=fingerprint, usage=usage, flags=labelling.flags + _flags(call, labelling),
        error=errors[0] if errors else None,
    )  # fmt: skip
