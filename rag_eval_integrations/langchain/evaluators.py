"""Evaluator objects for LangSmith and openevals: views on one `RagEvaluator`.

run tree | values ─▶ RagCall ─▶ RagEvaluator (one judge request per call) ─▶ {key, score, comment}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Unpack

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
from rag_eval_integrations.langchain._given import Values, call_from
from rag_eval_integrations.metrics import TRACE_SCORES, ModelMetric
from rag_eval_integrations.records import Evaluation, RagCall, Score
from rag_eval_integrations.sinks import LangSmithSink as LangSmithFeedback
from rag_eval_integrations.sinks._traced import comment_of, facts_of

if TYPE_CHECKING:
    from uuid import UUID

    from langsmith.evaluation import EvaluationResult, EvaluationResults

__all__ = [
    "GEvalEvaluator",
    "LangSmithFeedback",
    "MetricEvaluator",
    "PromptyEvaluator",
    "TraceEvaluator",
    "as_evaluators",
]


class MetricEvaluator(ScoreView):
    """A view on scores of a `RagEvaluator`, callable as an evaluator of LangSmith or openevals.

    It can be called in three forms:

        langsmith.evaluate(app, data=…, evaluators=[evaluator])     # (run, example)
        evaluator(inputs=…, outputs=…, context=…)                   # openevals
        evaluator(question=…, documents=…, response=…)              # or evaluator(call)

    One score gives `{"key", "score", "comment", "metadata"}`; several give `{"results": [those]}`,
    which is LangSmith's `EvaluationResults`. `score` is in [0, 1], 1 is best; without a value it is
    None, never 0, and `comment` says why. `metadata` holds those of `status`, `unscored`, `passed`,
    `threshold`, `method`, `judge`, `model` and `flags` that are known.

    All views on one `RagEvaluator` share its judge requests: a call is labelled once, whatever the
    number of views. A view can be called with or without a running loop, which it blocks; in async
    code use `await evaluator.acall(…)`, which is also an evaluator for `langsmith.aevaluate`.

    Args:
        evaluator: evaluates the calls.
        names: the scores to return, in order; by default all. A single name gives the single form.
        threshold: smallest value that passes, in [0, 1], for each of the scores; by default the
            metric's own, else 1.0 for adherence (every sentence is supported), else no verdict.

    Raises:
        ConfigurationError: `evaluator` is not a `RagEvaluator` or lacks a score of `names`,
            `names` is empty, or the threshold is outside [0, 1].
    """

    def __init__(
        self,
        evaluator: RagEvaluator,
        names: str | Collection[str] | None = None,
        *,
        threshold: float | None = None,
    ) -> None:
        if not isinstance(evaluator, RagEvaluator):
            raise ConfigurationError(
                "evaluator", evaluator, "should be a RagEvaluator, as in RagEvaluator()"
            )
        wanted = evaluator.names if names is None else [names] if isinstance(names, str) else names
        for name in wanted:
            if name not in evaluator.names:
                known = ", ".join(evaluator.names)
                raise ConfigurationError("names", name, f"is not a score; use one of {known}")
        if not wanted:
            raise ConfigurationError("names", names, "use at least one name")
        super().__init__(evaluator, tuple(wanted), threshold)
        # LangSmith uses it as the name of the evaluator's own run.
        self.__name__ = self.names[0] if len(self.names) == 1 else "rag_eval"

    def __call__(
        self, run: object = None, example: object = None, **values: Unpack[Values]
    ) -> dict[str, Any]:
        """Evaluate a LangSmith run, a `RagCall`, or values given by name (see `Values`).

        Args:
            run: the run or the call.
            example: the LangSmith example of the run.
            **values: values by name, which take precedence over those of the run.

        Raises:
            ConfigurationError: there is nothing to evaluate, or it cannot be read.
            ReentryError: called inside an evaluation; await `acall` there.
        """
        return _loop.run(self._feedback(call_from(run, example, values)))

    async def acall(
        self, run: object = None, example: object = None, **values: Unpack[Values]
    ) -> dict[str, Any]:
        """Evaluate as `__call__` does, from async code."""
        return await self._feedback(call_from(run, example, values))

    async def _feedback(self, call: RagCall) -> dict[str, Any]:
        """Evaluate a call; return LangSmith's feedback."""
        evaluation, scores = await self._evaluated(call)
        results = [feedback_of(score, evaluation) for score in scores]
        return results[0] if len(results) == 1 else {"results": results}

    # --- LangSmith's RunEvaluator -------------------------------------------------------------

    @property
    def feedback_keys(self) -> list[str]:
        """The keys of the feedback."""
        return list(self.names)

    def evaluate_run(
        self, run: Any, example: Any = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult | EvaluationResults:
        """Evaluate a run as LangSmith's `RunEvaluator` does, for `EvaluatorCallbackHandler`."""
        return _as_langsmith(self(run, example), evaluator_run_id)

    async def aevaluate_run(
        self, run: Any, example: Any = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult | EvaluationResults:
        """Evaluate a run as `evaluate_run` does, from async code."""
        return _as_langsmith(await self.acall(run, example), evaluator_run_id)


def as_evaluators(
    rag_evaluator: RagEvaluator, *, thresholds: Mapping[str, float] | None = None
) -> dict[str, MetricEvaluator]:
    """Make one evaluator object for each score of a `RagEvaluator`.

    They share its judge requests. For one object with all scores use `MetricEvaluator`.

    Args:
        rag_evaluator: evaluates the calls.
        thresholds: score name → smallest value that passes, in [0, 1]; by default as for
            `MetricEvaluator`.

    Returns:
        Score name → evaluator object.

    Raises:
        ConfigurationError: `rag_evaluator` is not a `RagEvaluator`, lacks a score of `thresholds`,
            or a threshold is outside [0, 1].
    """
    given = thresholds_by_name(rag_evaluator, thresholds)
    return {
        name: MetricEvaluator(rag_evaluator, name, threshold=threshold)
        for name, threshold in given.items()
    }


def feedback_of(score: Score, evaluation: Evaluation) -> dict[str, Any]:
    """Convert a score to openevals/LangSmith feedback: `key`, `score`, `comment`, `metadata`."""
    return {
        "key": score.name,
        "score": score.value,
        "comment": comment_of(score),
        "metadata": facts_of(score, evaluation),
    }


def _as_langsmith(
    result: dict[str, Any], evaluator_run_id: UUID | None
) -> EvaluationResult | EvaluationResults:
    """Return feedback as LangSmith's result objects."""
    from langsmith.evaluation import EvaluationResult  # noqa: PLC0415  # only LangSmith's users

    results = [
        EvaluationResult(**feedback, source_run_id=evaluator_run_id)
        for feedback in result.get("results", [result])
    ]
    return {"results": results} if "results" in result else results[0]


# --- Evaluator objects of TRACe, of a metric that asks a model, of a metric file


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
