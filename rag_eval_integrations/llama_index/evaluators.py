"""LlamaIndex evaluators for one metric each: TRACe, G-Eval, or a metric file.

Each is a view on a `RagEvaluator` and gives one score. Views on the same evaluator, or with the
same judge, share the judge's labels: `BatchEvalRunner` with five of them makes one request per
item.
"""

from __future__ import annotations

from collections.abc import Mapping

from llama_index.core.evaluation.base import BaseEvaluator
from llama_index.core.schema import MetadataMode

from rag_eval_integrations._shared_evaluator import (
    PromptyView,
    model_evaluator,
    shared_trace,
    thresholds_by_name,
)
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.judge import AnyJudge
from rag_eval_integrations.llama_index.score_evaluator import ScoreEvaluator
from rag_eval_integrations.metrics import ModelMetric


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
