"""LlamaIndex evaluators, each for one score of a `RagEvaluator`; tables of their results.

Views on the same evaluator, or with the same judge, share the judge's labels: `BatchEvalRunner`
with five of them makes one request per item.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.evaluation.base import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import MetadataMode
from pydantic import Field

from rag_eval_integrations import _loop
from rag_eval_integrations._shared_evaluator import (
    PromptyView,
    ScoreView,
    model_evaluator,
    shared_trace,
    thresholds_by_name,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.judge import AnyJudge
from rag_eval_integrations.llama_index._answers import (
    Answer,
    UnreadableError,
    aanswer_from,
    answer_from,
    document_of,
)
from rag_eval_integrations.metrics import ModelMetric
from rag_eval_integrations.metrics.retrieval import LABEL_RETRIEVAL_SCORES
from rag_eval_integrations.records import Capture, Evaluation, RagCall

# --- Tables of `BatchEvalRunner`'s results, in which an unscored item does not count as zero


@dataclass(frozen=True)
class MetricRow:
    """The results of one evaluator over all items."""

    metric: str
    """Name of the evaluator."""
    n: int
    """Number of items."""
    scored: int
    """Number of items with a score."""
    mean: float | None
    """Mean over the scored items; None when there are none."""
    passed: int | None
    """Number of items that passed; None when the evaluator gave no verdicts."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Reason for a missing score → number of items."""


def results_table(results: Mapping[str, Sequence[EvaluationResult]]) -> list[MetricRow]:
    """Summarise the results of each evaluator; `pandas.DataFrame(rows)` makes a data frame.

    Args:
        results: evaluator name → results of any LlamaIndex evaluator, as `BatchEvalRunner` returns
            them.

    Returns:
        One row per evaluator, in order.
    """
    return [_row(name, items) for name, items in results.items()]


def _row(name: str, items: Sequence[EvaluationResult]) -> MetricRow:
    """Return the row of a metric: counts, mean and reasons."""
    scores = [item.score for item in items if item.score is not None]
    verdicts = [item.passing for item in items if item.passing is not None]
    reasons = Counter(_reason(item) for item in items if item.score is None)
    return MetricRow(
        metric=name,
        n=len(items),
        scored=len(scores),
        mean=sum(scores) / len(scores) if scores else None,
        passed=sum(verdicts) if verdicts else None,
        unscored=dict(reasons.most_common()),
    )


def _reason(item: EvaluationResult) -> str:
    """Return the code of the reason why an item has no score."""
    # The reasons of this library begin with a code; the words after it differ between items.
    return (item.invalid_reason or "no score").partition(":")[0]


# --- The evaluator


_RETRIEVAL = Capture(framework="llama_index", documents_from="retriever")
"""Marks a question with contexts and without a response: only the retrieval is scored."""

_UNSEEN = Capture(framework="llama_index")
"""Marks a question of which nobody said what was retrieved."""

_OF_RETRIEVAL = ("context_relevance", *LABEL_RETRIEVAL_SCORES)
"""The scores that labels give without a response."""


class RagEvaluationResult(EvaluationResult):
    """LlamaIndex's result, with the evaluation on which it is based."""

    evaluation: Evaluation | None = Field(default=None, exclude=True, repr=False)
    """Labels, evidence, usage and flags; None when nothing could be evaluated. Not part of dumps.
    """


class ScoreEvaluator(ScoreView, BaseEvaluator):
    """A LlamaIndex evaluator for one score of a `RagEvaluator`.

    `evaluate` and `evaluate_response` also work while a loop is running. A call that cannot be
    scored does not raise: the result has `invalid_result` and `invalid_reason`, and neither a
    score nor a verdict. A stream that has not been read yet is read to its end and put back, so
    that the app still gets every token.

    Args:
        rag_evaluator: evaluates the calls; any number of evaluators can share it.
        name: name of the score, one of `rag_evaluator.names`.
        threshold: smallest score that passes, in [0, 1]; by default the metric's own, else 1.0 for
            adherence (every sentence is supported), else no verdict (`passing` is None).
        metadata_mode: form in which the judge gets a source node; by default with the metadata
            that models are shown. Contexts that are strings are used as they are.

    Raises:
        ConfigurationError: the evaluator does not have this score, or the threshold is outside
            [0, 1].
    """

    def __init__(
        self,
        rag_evaluator: RagEvaluator,
        name: str,
        *,
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        if name not in rag_evaluator.names:
            given = ", ".join(rag_evaluator.names)
            why = f"is not a score of the evaluator; use one of {given}"
            raise ConfigurationError("metric", name, why)
        super().__init__(rag_evaluator, (name,), threshold)
        self.name = name
        self._mode = metadata_mode

    # --- LlamaIndex's interface -------------------------------------------------------------------

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate texts, from sync code; see `aevaluate`."""
        try:
            return _loop.run(self.aevaluate(query, response, contexts, **kwargs))
        except Exception as error:  # noqa: BLE001 -- reported in the result
            return _invalid(query, response, contexts, error)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate texts.

        Args:
            query: the question.
            response: the answer; without one only scores of the retrieval can be made:
                `context_relevance`, and those of `Retrieval`, `LabelRetrieval`, `ContextRecall`.
            contexts: the documents: strings or nodes.
            **kwargs: `reference`, the expected answer, for metrics that compare with one;
                `relevant_ids`, ids of the relevant nodes, for `Retrieval`;
                `sleep_time_in_seconds`, seconds to wait before. Other names are for other
                evaluators of the same batch, and are ignored.
        """
        try:
            await asyncio.sleep(kwargs.get("sleep_time_in_seconds") or 0)
            given = [document_of(item, self._mode) for item in _listed(contexts)]
            alone = response is None and self.name in _OF_RETRIEVAL
            call = RagCall(
                question=query or "",
                documents=given,
                response=response,
                reference=kwargs.get("reference"),
                capture=_UNSEEN if contexts is None else _RETRIEVAL if alone else None,
                relevant_ids=kwargs.get("relevant_ids"),
            )
            return await self._result(call, query)
        except Exception as error:  # noqa: BLE001 -- reported in the result
            return _invalid(query, response, contexts, error)

    def evaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Evaluate a response, from sync code; see `aevaluate_response`."""
        try:
            answer = answer_from(response, self._mode)
            return _loop.run(self._evaluate_answer(query, response, answer, kwargs))
        except Exception as error:  # noqa: BLE001 -- reported in the result
            return _invalid(query, None, None, error)

    async def aevaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Evaluate a response of a query engine, a chat engine or an agent, streaming or not.

        Args:
            query: the question.
            response: the response; its source nodes are the documents.
            **kwargs: as for `aevaluate`.
        """
        try:
            answer = await aanswer_from(response, self._mode)
            return await self._evaluate_answer(query, response, answer, kwargs)
        except Exception as error:  # noqa: BLE001 -- reported in the result
            return _invalid(query, None, None, error)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Refuse other prompts."""
        if prompts_dict:
            why = "the prompts cannot be changed: every score records their version"
            raise ConfigurationError("prompts_dict", sorted(prompts_dict), why)

    # --- the score --------------------------------------------------------------------------------

    async def _evaluate_answer(
        self, query: str | None, response: object, answer: Answer, kwargs: Mapping[str, Any]
    ) -> EvaluationResult:
        """Evaluate an answer as a call."""
        await asyncio.sleep(kwargs.get("sleep_time_in_seconds") or 0)
        seen = answer.documents or hasattr(response, "source_nodes")
        call = RagCall(
            question=query or "",
            documents=answer.documents,
            response=answer.text,
            reference=kwargs.get("reference"),
            relevant_ids=kwargs.get("relevant_ids"),
            capture=None if seen else _UNSEEN,
        )
        return await self._result(call, query)

    async def _result(self, call: RagCall, query: str | None) -> EvaluationResult:
        """Evaluate a call; return the score as LlamaIndex's result, invalid without a value."""
        evaluation, (score,) = await self._evaluated(call)
        known = score.value is not None
        words = score.reason or (f"{self.name} is {score.value:g}" if known else score.status)
        return RagEvaluationResult(
            query=query,
            contexts=[document.shown for document in call.documents],
            # An empty text for no response: a retry engine raises for None instead of retrying.
            response=call.response or "",
            passing=score.passed,
            feedback=words,
            score=score.value,
            invalid_result=not known,
            invalid_reason=None if known else f"{score.unscored or score.status}: {words}",
            evaluation=evaluation,
        )


# --- Input that cannot be evaluated -------------------------------------------------------------


def _listed(contexts: object) -> Sequence[Any]:
    """Return contexts as a list; refuse a text."""
    if contexts is None:
        return ()
    if isinstance(contexts, Sequence) and not isinstance(contexts, str | bytes):
        return contexts
    raise TypeError(f"contexts should be a list of strings, not {type(contexts).__name__}")


def _invalid(
    query: object, response: object, contexts: object, error: Exception
) -> EvaluationResult:
    """Return an invalid result with the reason, and the input as far as its fields accept it."""
    words = str(error) or repr(error)
    reason = words if isinstance(error, UnreadableError) else f"{type(error).__name__}: {words}"
    texts = contexts if isinstance(contexts, list | tuple) else ()
    return RagEvaluationResult(
        query=query if isinstance(query, str) else None,
        response=response if isinstance(response, str) else "",
        contexts=[text for text in texts if isinstance(text, str)],
        feedback=reason,
        invalid_result=True,
        invalid_reason=reason,
    )


# --- Evaluators of TRACe, of a metric that asks a model, of a metric file


class TraceEvaluator(ScoreEvaluator):
    """An evaluator for one of the TRACe scores of a response, from the judge's labels.

    Evaluators with the same judge share its labels, whatever their scores.

    Args:
        judge: a judge as `RagEvaluator` takes it, or a LlamaIndex `LLM`; or a `RagEvaluator` to
            share, with its formulas and splitter.
        metric: `adherence`, `context_relevance`, `context_utilization`, `completeness`,
            `supported_fraction` or `trace_average`.
        threshold: smallest score that passes, in [0, 1]. By default 1.0 for adherence (every
            sentence is supported), and no verdict for the others.
        metadata_mode: as for `ScoreEvaluator`.

    Raises:
        ConfigurationError: the judge or the metric is not known, or the threshold is outside
            [0, 1].
    """

    def __init__(
        self,
        judge: AnyJudge | RagEvaluator = "embedded",
        *,
        metric: str = "adherence",
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        # Held here, so that other objects with the same judge find it.
        self._shared = shared_trace(judge, metric)
        super().__init__(
            self._shared.evaluator, metric, threshold=threshold, metadata_mode=metadata_mode
        )


class ModelEvaluator(ScoreEvaluator):
    """Base class of the evaluators whose metric asks a model."""

    def __init__(
        self,
        metric: ModelMetric,
        judge: AnyJudge = "embedded",
        *,
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        evaluator = model_evaluator(metric, judge)
        super().__init__(
            evaluator, metric.names[0], threshold=threshold, metadata_mode=metadata_mode
        )


class GEvalEvaluator(ModelEvaluator):
    """An evaluator for a metric that asks a model, such as `GEval`.

    For several metrics, or metrics together with TRACe, use `as_evaluators`.

    Args:
        metric: the metric; the score is the first of its names.
        judge: the model to ask; not needed if the metric has its own.
        threshold: smallest score that passes, in [0, 1]; by default the metric's own.
        metadata_mode: as for `ScoreEvaluator`.

    Raises:
        ConfigurationError: `metric` does not ask a model, the judge is not known or cannot answer
            the metric's requests, or the threshold is outside [0, 1].
    """


def as_evaluators(
    rag_evaluator: RagEvaluator,
    *,
    thresholds: Mapping[str, float] | None = None,
    metadata_mode: MetadataMode = MetadataMode.LLM,
) -> dict[str, BaseEvaluator]:
    """Make one evaluator for each score of a `RagEvaluator`, for `BatchEvalRunner`.

    Args:
        rag_evaluator: evaluates the calls; each item is labelled once for all evaluators.
        thresholds: score name → smallest value that passes, in [0, 1]; by default as for
            `ScoreEvaluator`.
        metadata_mode: as for `ScoreEvaluator`.

    Returns:
        Score name → evaluator.

    Raises:
        ConfigurationError: `rag_evaluator` is not a `RagEvaluator`, lacks a score of `thresholds`,
            or a threshold is outside [0, 1].
    """
    given = thresholds_by_name(rag_evaluator, thresholds)
    return {
        name: ScoreEvaluator(rag_evaluator, name, threshold=threshold, metadata_mode=metadata_mode)
        for name, threshold in given.items()
    }


class PromptyEvaluator(PromptyView, ModelEvaluator):
    """An evaluator for a `NAME.metric.prompty` file, which asks a model about each response.

    Args:
        prompt: path of the file, or the file already read.
        judge: the model to ask: `openai:MODEL`, any `Model`, or a LlamaIndex `LLM`.
        variables: values of the file's variables that are not part of a response, such as `rules`.
        threshold: smallest score that passes, in [0, 1]; by default there is no verdict.

    Raises:
        ConfigurationError: the file is not a metric prompt, or the judge does not answer messages.
        OSError: the file cannot be read.
    """
