"""Evaluator objects for whatever takes a LlamaIndex evaluator: views on one `RagEvaluator`.

Each gives one score. Views on the same evaluator, or with the same judge, share the judge's
labels: `BatchEvalRunner` with five of them makes one request an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from llama_index.core.evaluation.base import BaseEvaluator
from llama_index.core.llms import LLM
from llama_index.core.schema import MetadataMode

from rag_eval_integrations._shared_evaluator import shared_evaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Judge
from rag_eval_integrations.llama_index.model import LlamaIndexModel
from rag_eval_integrations.llama_index.score_evaluator import ScoreEvaluator
from rag_eval_integrations.metrics import TRACE_SCORES, CompletionMetric
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric
from rag_eval_integrations.models import Model

AnyJudge = str | Judge | Model | LLM | RagEvaluator
"""Who is asked: what `RagEvaluator` takes, a LlamaIndex `LLM`, or an evaluator to share."""


class TraceEvaluator(ScoreEvaluator):
    """One of the TRACe scores of a response, from the judge's labels.

    Evaluators with the same judge share its labels, whichever scores they give.

    Args:
        judge: as of `RagEvaluator`, or a LlamaIndex `LLM`; a `RagEvaluator` to share one, with
            its formulas and splitter.
        metric: `adherence`, `context_relevance`, `context_utilization`, `completeness`,
            `supported_fraction` or `trace_average`.
        threshold: the score at which a response passes, in [0, 1]. By default 1.0 for adherence
            (every sentence is supported), and no verdict for the others.
        metadata_mode: as of `ScoreEvaluator`.

    Raises:
        ConfigurationError: for an unknown judge or metric, or a wrong threshold.
    """

    def __init__(
        self,
        judge: AnyJudge = "embedded",
        *,
        metric: str = "adherence",
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        if metric not in TRACE_SCORES:
            names = ", ".join(TRACE_SCORES)
            raise ConfigurationError("metric", metric, f"no such TRACe score; use one of {names}")
        if threshold is None and metric == "adherence":
            threshold = 1.0
        self._shared = shared_evaluator(judge, lambda: _evaluator(judge))  # held for others
        super().__init__(
            self._shared.evaluator, metric, threshold=threshold, metadata_mode=metadata_mode
        )


class CompletionEvaluator(ScoreEvaluator):
    """What evaluators have in common whose metric asks a model."""

    def __init__(
        self,
        metric: CompletionMetric,
        judge: str | Judge | Model | LLM = "embedded",
        *,
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        if getattr(metric, "needs", None) != "completion":
            raise ConfigurationError("metric", metric, "should be a metric that asks a model")
        evaluator = RagEvaluator(_model(judge), [metric])
        super().__init__(
            evaluator, metric.names[0], threshold=threshold, metadata_mode=metadata_mode
        )


class GEvalEvaluator(CompletionEvaluator):
    """A metric that asks a model, such as `GEval`; for several, and TRACe, use `as_evaluators`.

    Args:
        metric: what is scored; the first of its names.
        judge: the model, where the metric brings none of its own.
        threshold: the score at which a response passes, in [0, 1]; by default the metric's own.
        metadata_mode: as of `ScoreEvaluator`.

    Raises:
        ConfigurationError: for a metric that asks no model, a judge that is none, or a wrong
            threshold.
    """


def as_evaluators(
    rag_evaluator: RagEvaluator,
    *,
    thresholds: Mapping[str, float] | None = None,
    metadata_mode: MetadataMode = MetadataMode.LLM,
) -> dict[str, BaseEvaluator]:
    """Make an evaluator of every score: what `BatchEvalRunner` takes.

    Args:
        rag_evaluator: what evaluates; each item is labelled once for all of them.
        thresholds: score name → the score at which a response passes.
        metadata_mode: as of `ScoreEvaluator`.

    Raises:
        ConfigurationError: `rag_evaluator` is none, or does not give a score of `thresholds`.
    """
    if not isinstance(rag_evaluator, RagEvaluator):
        raise ConfigurationError("rag_evaluator", rag_evaluator, "should be a RagEvaluator")
    given = dict(thresholds or {})
    unknown = sorted(given.keys() - set(rag_evaluator.names))
    if unknown:
        raise ConfigurationError("thresholds", unknown, "the evaluator gives no such scores")
    return {
        name: TraceEvaluator(
            rag_evaluator, metric=name, threshold=given.get(name), metadata_mode=metadata_mode
        )
        if name in TRACE_SCORES
        else ScoreEvaluator(
            rag_evaluator, name, threshold=given.get(name), metadata_mode=metadata_mode
        )
        for name in rag_evaluator.names
    }


def _evaluator(judge: AnyJudge) -> RagEvaluator:
    return judge if isinstance(judge, RagEvaluator) else RagEvaluator(_model(judge))


def _model(judge: str | Judge | Model | LLM) -> str | Judge | Model:
    return LlamaIndexModel(judge) if isinstance(judge, LLM) else judge


# --- A metric file as a LlamaIndex evaluator


class PromptyEvaluator(CompletionEvaluator):
    """A `NAME.metric.prompty` file, asked of a model about each response.

    Args:
        prompt: the file.
        judge: the model; `openai:MODEL`, any `Model`, or a LlamaIndex `LLM`.
        variables: values of the file's variables that a response does not give, such as `rules`.
        threshold: the score at which a response passes, in [0, 1].

    Raises:
        ConfigurationError: a file that is no prompt, or a judge that does not answer messages.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: Model | LLM | str,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        asked = LlamaIndexModel(judge) if isinstance(judge, LLM) else judge
        metric = PromptyMetric(prompt, variables=variables, judge=asked, threshold=threshold)
        super().__init__(metric, threshold=threshold)
