"""Evaluator objects for one metric each: TRACe, G-Eval, or a metric file."""

from __future__ import annotations

from rag_eval_integrations._shared_evaluator import PromptyView, model_evaluator, shared_trace
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.judge import AnyJudge
from rag_eval_integrations.langchain.evaluators.base import MetricEvaluator
from rag_eval_integrations.metrics import TRACE_SCORES, ModelMetric


class TraceEvaluator(MetricEvaluator):
    """An evaluator object for TRACe: all of its scores, or a single one.

    Objects with the same judge share one `RagEvaluator`: four of them, one for each metric, make
    one judge request per call.

    Args:
        judge: name of a judge, a judge, a model, or a LangChain chat model; or a `RagEvaluator` to
            share.
        metric: name of the score to return; by default all scores are returned.
        threshold: smallest value that passes, in [0, 1]. By default 1.0 for adherence (every
            sentence is supported), and no verdict for the others.

    Raises:
        ConfigurationError: the judge or the metric is not known, or the threshold is outside
            [0, 1].
    """

    def __init__(
        self,
        judge: AnyJudge | RagEvaluator = "embedded",
        *,
        metric: str | None = None,
        threshold: float | None = None,
    ) -> None:
        # Held here, so that other objects with the same judge find it.
        self._shared = shared_trace(judge, metric)
        names = TRACE_SCORES if metric is None else metric
        super().__init__(self._shared.evaluator, names, threshold=threshold)


class ModelEvaluator(MetricEvaluator):
    """Base class of the evaluator objects whose metric asks a model."""

    def __init__(
        self,
        metric: ModelMetric,
        judge: AnyJudge | None = None,
        *,
        threshold: float | None = None,
    ) -> None:
        super().__init__(model_evaluator(metric, judge), threshold=threshold)


class GEvalEvaluator(ModelEvaluator):
    """An evaluator object for a metric that asks a model, such as `GEval`.

    Args:
        metric: the metric.
        judge: the model to ask; not needed if the metric has its own.
        threshold: smallest value that passes, in [0, 1]; by default the metric's own.

    Raises:
        ConfigurationError: `metric` does not ask a model, or the judge is not known or cannot
            answer the metric's requests.
    """


class PromptyEvaluator(PromptyView, ModelEvaluator):
    """An evaluator object for a `NAME.metric.prompty` file, which asks a model about each call.

    Args:
        prompt: path of the file, or the file already read.
        judge: the model to ask: `openai:MODEL`, any `Model`, or a LangChain chat model.
        variables: values of the file's variables that are not part of a call, such as `rules`.
        threshold: smallest value that passes, in [0, 1]; by default there is no
            verdict.

    Raises:
        ConfigurationError: the file is not a metric prompt, or the judge does not answer messages.
        OSError: the file cannot be read.
    """
