"""The whole flow in one method: RagCall → sentences → labels → scores → Evaluation."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from functools import cached_property

from rag_eval_integrations import _loop
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Completer, Labeller, judge_from, with_retries
from rag_eval_integrations.judges.single_flight import SingleFlight
from rag_eval_integrations.labels import reconcile, speaks_to_a_judge
from rag_eval_integrations.metrics import Metric, Trace
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
)
from rag_eval_integrations.records.evaluation import Stage
from rag_eval_integrations.sentences import Splitter, sentencize

logger = logging.getLogger(__name__)

_BIG_CALL = 50_000
"""Characters from which splitting leaves the loop for a thread: about 10 ms of work."""


class RagEvaluator:
    """Evaluates RAG calls: splits, asks the judge once, scores.

    One object may serve any number of calls at once, from any thread or loop. Calls with the same
    content share one judge request (single flight), so that several views on one evaluator cost
    what one costs.

    Args:
        judge: a judge's name (`embedded`), any `Labeller`, or a model (`Completer`), which is asked
            with the labelling prompt, through `ThrottledJudge` unless it is in one already.
        metrics: what to score; default `[Trace()]`.
        splitter: how to split; default `Punkt()`, English.
        max_remembered: how many labellings are kept for further views on the same call; 0 shares
            only what is in flight.

    Raises:
        ConfigurationError: for an unknown judge, no metrics, or two metrics with one score name.
    """

    def __init__(
        self,
        judge: str | Labeller | Completer = "embedded",
        metrics: Sequence[Metric] | None = None,
        *,
        splitter: Splitter | None = None,
        max_remembered: int = 256,
    ) -> None:
        found = judge_from(judge)
        self.judge: Labeller = found if isinstance(found, Labeller) else _asked_to_label(found)
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
        self._labellings = SingleFlight[Labelling](max_remembered)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all scores, in order."""
        return tuple(name for metric in self.metrics for name in metric.names)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of judge, metrics and splitter: what decides the scores besides the call."""
        judge = self.judge
        parts = [judge.name, str(getattr(judge, "version", "")), self.splitter.name]
        text = "\n".join([*parts, *map(repr, self.metrics)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def evaluate(self, call: RagCall) -> Evaluation:
        """Evaluate one call; what goes wrong is in the evaluation, nothing is raised.

        A call without response, documents or question is unscored without asking the judge.
        """
        stage: Stage = "sentences"
        sentencized = SentencizedCall(call=call, sentences=Sentences(), splitter=self.splitter.name)
        try:
            if len(call.response or "") + sum(len(d.text) for d in call.documents) < _BIG_CALL:
                sentencized = sentencize(call, self.splitter)
            else:
                import asyncio  # noqa: PLC0415  # 40 ms that a light import does not pay

                sentencized = await asyncio.to_thread(sentencize, call, self.splitter)
            nothing = nothing_to_judge(sentencized)
            if nothing is not None:
                return self._without_labels(sentencized, *nothing)
            stage = "judge"
            labelling = await self._labelling(sentencized)
            stage = "metrics"
            return score_labelling(sentencized, labelling, self.metrics, self.fingerprint)
        except Exception as error:  # the boundary: failure is data from here on
            logger.debug("call %s: %s failed", call.id, stage, exc_info=True)
            return self._failed(sentencized, stage, error)

    def evaluate_sync(self, call: RagCall) -> Evaluation:
        """Evaluate one call from code that is not async; also inside a notebook."""
        return _loop.run(self.evaluate(call))

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
        return labelling.model_copy(update={"labels": reconcile(labelling.labels, call)})

    def _without_labels(self, call: SentencizedCall, code: UnscoredCode, reason: str) -> Evaluation:
        return score_labelling(call, self._unasked(code, reason), self.metrics, self.fingerprint)

    def _failed(self, call: SentencizedCall, stage: Stage, error: Exception) -> Evaluation:
        message = str(error) or repr(error)
        labelling = self._unasked(None, message)
        by = _by(call, labelling)
        scores = [
            Score(name=name, status="error", reason=f"{type(error).__name__}: {message}", by=by)
            for name in self.names
        ]
        failure = EvaluationError(type=type(error).__name__, message=message, stage=stage)
        return _evaluation(call, scores, labelling, self.fingerprint, failure)

    def _unasked(self, code: UnscoredCode | None, reason: str) -> Labelling:
        info = JudgeInfo(name=self.judge.name, version=getattr(self.judge, "version", None))
        return Labelling(labels=None, judge=info, usage=Usage(), unscored=code, reason=reason)


def _asked_to_label(completer: Completer) -> Labeller:
    from rag_eval_integrations.labels import LLMLabeller  # noqa: PLC0415  # only for a model

    return LLMLabeller(with_retries(completer))


def _default_splitter() -> Splitter:
    from rag_eval_integrations.sentences import Punkt  # noqa: PLC0415  # 30 ms of patterns

    return Punkt()


def score_labelling(
    call: SentencizedCall,
    labelling: Labelling,
    metrics: Sequence[Metric],
    fingerprint: str | None = None,
) -> Evaluation:
    """Score a labelling, whoever made it: the last step of the flow, without a judge.

    Args:
        call: the call with its sentences.
        labelling: reconciled labels, or why there are none.
        metrics: what to score.
        fingerprint: of the evaluator, where one made the labelling.
    """
    by = _by(call, labelling)
    scores = [score for metric in metrics for score in metric.score(call, labelling, by)]
    return _evaluation(call, scores, labelling, fingerprint)


def nothing_to_judge(call: SentencizedCall) -> tuple[UnscoredCode, str] | None:
    """Say why a call cannot be judged at all: the code and the words; None when it can."""
    if not call.response:
        what = "has no response" if call.call.response is None else "has an empty response"
        return "empty_response", f"the call {what}"
    if not call.documents:
        what = "no documents" if not call.call.documents else "only empty documents"
        return "no_context", f"the call has {what}"
    if not call.call.question.strip():
        return "no_question", "the call has no question"
    return None


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
    scores: Sequence[Score],
    labelling: Labelling,
    fingerprint: str | None,
    error: EvaluationError | None = None,
) -> Evaluation:
    source = call.call
    return Evaluation(
        id=source.id, row_key=source.row_key, question=source.question, response=source.response,
        reference=source.reference, metadata=source.metadata, capture=source.capture,
        scores={score.name: score for score in scores}, labels=labelling.labels,
        sentences=call.sentences, document_ids=tuple(d.id for d in source.documents),
        judge=labelling.judge, fingerprint=fingerprint, usage=labelling.usage,
        flags=labelling.flags + _flags(call, labelling), error=error,
    )  # fmt: skip
