"""Evaluator objects by metric: TRACe from any judge, G-Eval from a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from rag_eval_integrations._shared_evaluator import shared_evaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Judge
from rag_eval_integrations.langchain.evaluators.base import MetricEvaluator
from rag_eval_integrations.langchain.model import LangChainModel
from rag_eval_integrations.metrics import CompletionMetric, Trace
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric
from rag_eval_integrations.models import Model

AnyJudge = str | Judge | Model


class TraceEvaluator(MetricEvaluator):
    """TRACe as an evaluator object: all scores of one judge request, or one of them.

    Those made with the same judge share one `RagEvaluator`: four of them, one for each metric,
    ask the judge once a call.

    Args:
        judge: the name of a judge, any labeller or model; or a `RagEvaluator` to be a view on.
        metric: name of the one score to give; by default all are given at once.
        threshold: least value that passes, in [0, 1].

    Raises:
        ConfigurationError: the judge or the metric is unknown, or the threshold is outside.
    """

    def __init__(
        self,
        judge: AnyJudge | RagEvaluator = "embedded",
        *,
        metric: str | None = None,
        threshold: float | None = None,
    ) -> None:
        known = Trace().names
        if metric is not None and metric not in known:
            raise ConfigurationError(
                "metric", metric, f"no such score; use one of {', '.join(known)}"
            )
        if isinstance(judge, RagEvaluator):
            evaluator = judge
        else:
            self._shared = shared_evaluator(judge, lambda: RagEvaluator(judge))  # held for others
            evaluator = self._shared.evaluator
        super().__init__(evaluator, known if metric is None else metric, threshold=threshold)


class CompletionEvaluator(MetricEvaluator):
    """What evaluators have in common whose metric asks a model."""

    def __init__(
        self,
        metric: CompletionMetric,
        judge: AnyJudge | None = None,
        *,
        threshold: float | None = None,
    ) -> None:
        if getattr(metric, "needs", None) != "completion":
            raise ConfigurationError("metric", metric, "should be a metric that asks a model")
        asked: AnyJudge = "embedded" if judge is None else judge
        super().__init__(RagEvaluator(asked, [metric]), threshold=threshold)


class GEvalEvaluator(CompletionEvaluator):
    """A metric that asks a model, such as `GEval`, as an evaluator object.

    Args:
        metric: the metric.
        judge: the model that it asks; may be left out where the metric has its own.
        threshold: least value that passes, in [0, 1].

    Raises:
        ConfigurationError: the judge is unknown, or cannot be asked what the metric asks.
    """


# --- A metric file as an evaluator object of LangSmith and openevals


class PromptyEvaluator(CompletionEvaluator):
    """A `NAME.metric.prompty` file, asked of a model about each call.

    Args:
        prompt: the file.
        judge: the model; `openai:MODEL`, any `Model`, or a LangChain chat model.
        variables: values of the file's variables that a call does not give, such as `rules`.
        threshold: least value that passes, in [0, 1].

    Raises:
        ConfigurationError: a file that is no prompt, or a judge that does not answer messages.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: Model | BaseChatModel | str,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        asked = LangChainModel(judge) if isinstance(judge, BaseChatModel) else judge
        metric = PromptyMetric(prompt, variables=variables, judge=asked, threshold=threshold)
        super().__init__(metric, threshold=threshold)
