"""The whole flow in one method: RagCall → sentences → labels → scores → Evaluation."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import NamedTuple, cast
from weakref import WeakValueDictionary

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
    trusted,
)
from rag_eval_integrations.records.score import Stage
from rag_eval_integrations.sentences import RECORDED, Splitter, sentencize

logger = logging.getLogger(__name__)

_BIG_CALL = 50_000
"""Characters from which splitting leaves the loop for a thread: about 10 ms of work."""


class _Part(NamedTuple):
    """What one metric, or all that share the labels, made of a call."""

    scores: tuple[Score, ...]
    labelling: Labelling | None = None
    usage: Usage = Usage()
    error: EvaluationError | None = None


class RagEvaluator:
    """Evaluates RAG calls: splits, asks the judge once, scores.

    One object may serve any number of calls at once, from any thread or loop. Calls with the same
    content share one judge request (single flight), so that several views on one evaluator cost
    what one costs. Metrics that ask a model themselves (G-Eval) are asked at the same time; one
    that fails does not take the others' scores with it.

    Args:
        judge: a judge's name (`embedded`), any `Judge`, or a model (`Model`), which is asked
            with the labelling prompt, through `ThrottledModel` unless it is in one already.
        metrics: what to score; default `[Trace()]`.
        splitter: how to split; default `Punkt()`, English.
        max_remembered: how many labellings are kept for further views on the same call; 0 shares
            only what is in flight.

    Raises:
        ConfigurationError: for an unknown judge, no metrics, two metrics with one score name, or a
            metric that asks a model where the judge is none.
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
            # A labeller that asks a model lends it to the metrics that ask one.
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
            raise ConfigurationError("metrics", repeated, "two metrics give scores of this name")
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
        """Names of all scores, in order."""
        return tuple(name for metric in self.metrics for name in metric.names)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of judge, metrics and splitter: what decides the scores besides the call."""
        asked: list[JudgeBase | ModelBase] = [self._judge, *self._models.values()]
        judges = [part for one in asked for part in (one.name, one.version or "")]
        text = "\n".join([*judges[:2], self.splitter.name, *judges[2:], *map(repr, self.metrics)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def evaluate(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call; what goes wrong is in the evaluation, nothing is raised.

        A call without response, documents or question gets no labels, and the judge is not asked
        for any.

        Args:
            call: what was captured.
            only: names of scores; the metrics that give none of them are left out. All by default.
        """
        import asyncio  # noqa: PLC0415  # 40 ms that a light import does not pay

        metrics = [
            metric
            for metric in self.metrics
            if only is None or not set(only).isdisjoint(metric.names)
        ]
        from_labels = [cast("LabelMetric", m) for m in metrics if m.needs == "labels"]
        asking = [cast("CompletionMetric", m) for m in metrics if m.needs == "completion"]
        try:
            sentencized = await self._split(call)
        except Exception as error:  # noqa: BLE001 -- the boundary: failure is data from here on
            sentencized = SentencizedCall(
                call=call, sentences=Sentences(), splitter=self.splitter.name
            )
            failed = self._failed(sentencized, metrics, "sentences", error)
            return _evaluation(sentencized, [failed], self._unasked(None, ""), self.fingerprint)
        labelled = self._labelled(sentencized, from_labels)
        if asking:
            measured = (self._measure(sentencized, metric) for metric in asking)
            first, *others = await asyncio.gather(labelled, *measured)
        else:  # without a task of its own: 60 µs a call
            first, others = await labelled, []
        labelling = first.labelling or self._unasked(None, "")
        by_name = {score.name: score for part in (first, *others) for score in part.scores}
        ordered = tuple(by_name[name] for metric in metrics for name in metric.names)
        parts = [first._replace(scores=ordered), *(one._replace(scores=()) for one in others)]
        return _evaluation(sentencized, parts, labelling, self.fingerprint)

    def evaluate_sync(self, call: RagCall, *, only: Collection[str] | None = None) -> Evaluation:
        """Evaluate one call from code that is not async; also inside a notebook."""
        return _loop.run(self.evaluate(call, only=only))

    async def _split(self, call: RagCall) -> SentencizedCall:
        if len(call.response or "") + sum(len(d.text) for d in call.documents) < _BIG_CALL:
            return sentencize(call, self.splitter)
        import asyncio  # noqa: PLC0415  # as above

        return await asyncio.to_thread(sentencize, call, self.splitter)

    # --- scores from labels ---------------------------------------------------------------------

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
        # Two rows of the same text may bring different recorded sentences; RagCall is hashed by
        # what is judged, so the sentences are part of the key.
        key = (call.call.row_key, call.splitter, call.call.sentences)
        return await self._labellings.get(key, lambda: self._ask(call))

    async def _ask(self, call: SentencizedCall) -> Labelling:
        with suppress_capture():
            labelling = await self.judge.label(call)
        if labelling.labels is None:
            return labelling
        if call.splitter != RECORDED and self._judge.keeps_keys:
            return labelling  # reconciling such labels changes nothing, and takes 0.2 ms
        return labelling.model_copy(update={"labels": reconcile(labelling.labels, call)})

    def _unasked(self, code: UnscoredCode | None, reason: str) -> Labelling:
        info = JudgeInfo(name=self.judge.name, version=self._judge.version)
        return Labelling(labels=None, judge=info, usage=Usage(), unscored=code, reason=reason)

    # --- scores that a model is asked for ---------------------------------------------------------

    def _model_for(self, metric: CompletionMetric) -> ModelBase:
        if metric.judge is not None:
            return with_retries(metric.judge)
        if self._model is None:
            raise ConfigurationError(
                "metrics",
                ", ".join(metric.names),
                f"asks a model, which the judge {self.judge.name} is not; pass a model as the "
                "judge, such as 'openai:gpt-4o-mini', or one for this metric alone (`judge=`)",
            )
        return self._model

    async def _measure(self, call: SentencizedCall, metric: CompletionMetric) -> _Part:
        # Several views on one evaluator (the hosts' evaluator objects) ask once, as for labels.
        # Not by row_key alone: what such a metric reads beside it (metadata) decides as well.
        key = (metric.names, call.call.model_dump_json(exclude={"capture", "started_at"}))
        try:
            measured = await self._measured.get(key, lambda: self._measure_once(call, metric))
        except Exception as error:  # noqa: BLE001 -- the boundary
            return self._failed(call, [metric], "metrics", error, self._models[metric.names])
        return _Part(measured.scores, None, measured.usage)

    async def _measure_once(self, call: SentencizedCall, metric: CompletionMetric) -> Measured:
        with suppress_capture():
            return await metric.measure(call.call, self._models[metric.names])

    # --- failures ---------------------------------------------------------------------------------

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


class SharedEvaluator:
    """A judge and the evaluator that asks it; it holds the judge, so that its `id` stays taken."""

    def __init__(self, judge: object, evaluator: RagEvaluator) -> None:
        self.judge = judge
        self.evaluator = evaluator


_shared: WeakValueDictionary[str | int, SharedEvaluator] = WeakValueDictionary()
_sharing = threading.Lock()


def shared_evaluator(judge: object, make: Callable[[], RagEvaluator]) -> SharedEvaluator:
    """Find the evaluator of a judge that the hosts' evaluator objects share, or make it.

    Five objects made with one judge ask it once a call, whichever scores they give.

    Args:
        judge: a judge's name, shared by everybody who says it, or any object, shared by identity.
        make: makes its evaluator when nobody has one.

    Returns:
        To be held as long as it should be found by others.

    Raises:
        ConfigurationError: whatever `make` raises.
    """
    key = judge if isinstance(judge, str) else id(judge)
    with _sharing:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedEvaluator(judge, make())
        return found


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
    """Score a labelling, whoever made it: the last step of the flow, without a judge.

    Args:
        call: the call with its sentences.
        labelling: reconciled labels, or why there are none.
        metrics: what to score.
        fingerprint: of the evaluator, where one made the labelling.
    """
    part = _Part(_scores(call, labelling, metrics), labelling, labelling.usage)
    return _evaluation(call, [part], labelling, fingerprint)


def _scores(
    call: SentencizedCall, labelling: Labelling, metrics: Sequence[LabelMetric]
) -> tuple[Score, ...]:
    by = _by(call, labelling)
    return tuple([score for metric in metrics for score in metric.score(call, labelling, by)])


def nothing_to_judge(call: SentencizedCall) -> tuple[UnscoredCode, str] | None:
    """Say why a call cannot be judged at all: the code and the words; None when it can."""
    if not call.response and not _is_retrieval_alone(call.call):
        what = "has no response" if call.call.response is None else "has an empty response"
        return "empty_response", f"the call {what}"
    if not call.documents:
        what = "no documents" if not call.call.documents else "only empty documents"
        return "no_context", f"the call has {what}"
    if not call.call.question.strip():
        return "no_question", "the call has no question"
    return None


def _is_retrieval_alone(call: RagCall) -> bool:
    """Whether a retriever was captured by itself: no answer was ever asked for."""
    capture = call.capture
    return call.response is None and capture is not None and capture.status == "ok"


def _by(call: SentencizedCall, labelling: Labelling) -> By:
    judge = labelling.judge
    return trusted(
        By, judge=judge.name, model=judge.model, judge_version=judge.version,
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
    return trusted(
        Evaluation,
        id=source.id, row_key=source.row_key, question=source.question, response=source.response,
        reference=source.reference, metadata=json_copy(source.metadata), capture=source.capture,
        scores={score.name: score for part in parts for score in part.scores},
        labels=labelling.labels, sentences=call.sentences,
        document_ids=tuple(d.id for d in source.documents), judge=labelling.judge,
        fingerprint=fingerprint, usage=usage, flags=labelling.flags + _flags(call, labelling),
        error=next((part.error for part in parts if part.error is not None), None),
    )  # fmt: skip
