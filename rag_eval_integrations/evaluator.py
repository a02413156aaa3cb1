"""`RagEvaluator`: from a captured call to its `Evaluation` (stages 2 to 4 of the flow).

    RagCall ─▶ split ─▶ label, by the judge ──────────▶ score ─▶ Evaluation
                └─────▶ metrics that ask a model ────────────────▲

`score_labelling` is the last step alone, for labels that exist already.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple, cast

from rag_eval_integrations import _loop
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from, reconcile, speaks_to_a_judge
from rag_eval_integrations.judges.judge import JudgeBase, judge_base
from rag_eval_integrations.metrics import (
    CompletionMetric,
    LabelMetric,
    Measured,
    Metric,
    Trace,
)
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


class _Part(NamedTuple):
    """The result of one metric that asks a model, or of all metrics that read the labels."""

    scores: tuple[Score, ...]
    labelling: Labelling | None = None
    usage: Usage = Usage()
    error: EvaluationError | None = None


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
        ConfigurationError: for an unknown judge, no metrics, two metrics with the same score name,
            or a metric that asks a model when the judge has none.
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
        self.metrics: tuple[Metric, ...] = (Trace(),) if metrics is None else tuple(metrics)
        self.splitter: Splitter = _default_splitter() if splitter is None else splitter
        if not self.metrics:
            raise ConfigurationError("metrics", metrics, "give at least one metric")
        names = [name for metric in self.metrics for name in metric.names]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ConfigurationError("metrics", repeated, "two metrics give a score of this name")
        if max_remembered < 0:
            raise ConfigurationError("max_remembered", max_remembered, "use a number from 0")
        self._models = {
            metric.names: self._model_for(cast("CompletionMetric", metric))
            for metric in self.metrics
            if metric.needs == "completion"
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
        text = "\n".join([*judges[:2], self.splitter.name, *judges[2:], *map(repr, self.metrics)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def evaluate(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call; failures are recorded in the evaluation, never raised.

        For a call without a response, documents or a question the judge is not asked, and scores
        that need labels are unscored.

        Args:
            call: the captured call.
            only: names of scores; metrics that produce none of them are skipped. All by default.
        """
        import asyncio  # noqa: PLC0415  # 40 ms, too much for a light import

        metrics = [
            metric
            for metric in self.metrics
            if only is None or not set(only).isdisjoint(metric.names)
        ]
        label_metrics = [cast("LabelMetric", m) for m in metrics if m.needs == "labels"]
        model_metrics = [cast("CompletionMetric", m) for m in metrics if m.needs == "completion"]
        try:
            sentencized = await self._split(call)
        except Exception as error:  # noqa: BLE001 -- the boundary: failure is data from here on
            sentencized = SentencizedCall(
                call=call, sentences=Sentences(), splitter=self.splitter.name
            )
            failed = self._failed(sentencized, metrics, "sentences", error)
            return _evaluation(sentencized, [failed], self._unasked(None, ""), self.fingerprint)
        labelled = self._labelled(sentencized, label_metrics)
        if model_metrics:
            measured = (self._measure(sentencized, metric) for metric in model_metrics)
            first, *others = await asyncio.gather(labelled, *measured)
        else:  # without a task of its own, which costs 60 µs per call
            first, others = await labelled, []
        labelling = first.labelling or self._unasked(None, "")
        by_name = {score.name: score for part in (first, *others) for score in part.scores}
        ordered = tuple(by_name[name] for metric in metrics for name in metric.names)
        parts = [first._replace(scores=ordered), *(one._replace(scores=()) for one in others)]
        return _evaluation(sentencized, parts, labelling, self.fingerprint)

    def evaluate_sync(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call from synchronous code, notebooks included."""
        return _loop.run(self.evaluate(call, only=only))

    async def _split(self, call: RagCall) -> SentencizedCall:
        if len(call.response or "") + sum(len(d.text) for d in call.documents) < _BIG_CALL:
            return sentencize(call, self.splitter)
        import asyncio  # noqa: PLC0415  # as above

        return await asyncio.to_thread(sentencize, call, self.splitter)

    # --- Metrics that read labels

    async def _labelled(self, call: SentencizedCall, metrics: Sequence[LabelMetric]) -> _Part:
        if not metrics:
            return _Part(())
        nothing = nothing_to_judge(call)
        if nothing is not None:
            labelling = self._unasked(*nothing)
            return _Part(_scores(call, labelling, metrics), labelling)
        stage: Stage = "judge"
        try:
            labelling = await self._labelling(call)
            stage = "metrics"
            return _Part(_scores(call, labelling, metrics), labelling, labelling.usage)
        except Exception as error:  # noqa: BLE001 -- the boundary
            return self._failed(call, metrics, stage, error)

    async def _labelling(self, call: SentencizedCall) -> Labelling:
        # Two calls of the same text may have different recorded sentences, which `row_key` does
        # not cover.
        key = (call.call.row_key, call.splitter, call.call.sentences)
        return await self._labellings.get(key, lambda: self._ask(call))

    async def _ask(self, call: SentencizedCall) -> Labelling:
        with suppress_capture():
            labelling = await self.judge.label(call)
        if labelling.labels is None:
            return labelling
        if call.splitter != RECORDED and self._judge.keeps_keys:
            return labelling  # reconciling would change nothing, and takes 0.2 ms
        return labelling.model_copy(update={"labels": reconcile(labelling.labels, call)})

    def _unasked(self, code: UnscoredCode | None, reason: str) -> Labelling:
        info = JudgeInfo(name=self.judge.name, version=self._judge.version)
        return Labelling(labels=None, judge=info, usage=Usage(), unscored=code, reason=reason)

    # --- Metrics that ask a model

    def _model_for(self, metric: CompletionMetric) -> ModelBase:
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

    async def _measure(self, call: SentencizedCall, metric: CompletionMetric) -> _Part:
        # Several evaluator objects of a framework ask once, as for labels. `row_key` is not enough
        # as a key: such a metric also reads the metadata.
        key = (metric.names, call.call.model_dump_json(exclude={"capture", "started_at"}))
        try:
            measured = await self._measured.get(key, lambda: self._measure_once(call, metric))
        except Exception as error:  # noqa: BLE001 -- the boundary
            return self._failed(call, [metric], "metrics", error, self._models[metric.names])
        return _Part(measured.scores, None, measured.usage)

    async def _measure_once(self, call: SentencizedCall, metric: CompletionMetric) -> Measured:
        with suppress_capture():
            return await metric.measure(call.call, self._models[metric.names])

    # --- Failures

    def _failed(
        self,
        call: SentencizedCall,
        metrics: Sequence[Metric],
        stage: Stage,
        error: Exception,
        model: ModelBase | None = None,
    ) -> _Part:
        logger.debug("call %s: %s failed", call.call.id, stage, exc_info=error)
        asked = model or self._judge
        kind, message = type(error).__name__, str(error) or repr(error)
        by = By(
            judge=asked.name,
            judge_version=asked.version,
            splitter=call.splitter,
            windows=1,
        )
        scores = tuple(
            Score(name=name, status="error", reason=f"{kind}: {message}", by=by)
            for metric in metrics
            for name in metric.names
        )
        failure = EvaluationError(type=kind, message=message, stage=stage)
        return _Part(scores, self._unasked(None, message), Usage(), failure)


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
    part = _Part(_scores(call, labelling, metrics), labelling, labelling.usage)
    return _evaluation(call, [part], labelling, fingerprint)


def _scores(
    call: SentencizedCall, labelling: Labelling, metrics: Sequence[LabelMetric]
) -> tuple[Score, ...]:
    by = _by(call, labelling)
    return tuple([score for metric in metrics for score in metric.score(call, labelling, by)])


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


def _evaluation(
    call: SentencizedCall,
    parts: Sequence[_Part],
    labelling: Labelling,
    fingerprint: str | None,
) -> Evaluation:
    source = call.call
    usage, *others = [part.usage for part in parts]
    for other in others:
        usage += other
    # Validated, it takes three times as long (16 against 5 µs); all parts are valid records.
    return Evaluation.model_construct(
        id=source.id, row_key=source.row_key, question=source.question, response=source.response,
        reference=source.reference, metadata=json_copy(source.metadata), capture=source.capture,
        scores={score.name: score for part in parts for score in part.scores},
        labels=labelling.labels, sentences=call.sentences,
        document_ids=tuple(d.id for d in source.documents), judge=labelling.judge,
        fingerprint=fingerprint, usage=usage, flags=labelling.flags + _flags(call, labelling),
        error=next((part.error for part in parts if part.error is not None), None),
    )  # fmt: skip
