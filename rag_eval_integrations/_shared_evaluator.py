"""The base of the evaluator objects of LangChain and LlamaIndex: evaluators, scores, thresholds."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.judge import AnyJudge, AnyModel
from rag_eval_integrations.metrics import TRACE_SCORES, ModelMetric
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric
from rag_eval_integrations.records import Evaluation, RagCall, Score


@dataclass(frozen=True, eq=False)
class SharedEvaluator:
    """A judge and the evaluator that asks it.

    It keeps the judge alive: another object cannot get the `id` that it is found by.
    """

    judge: object
    evaluator: RagEvaluator


_shared: WeakValueDictionary[str | int, SharedEvaluator] = WeakValueDictionary()
_lock = threading.Lock()


def shared_evaluator(judge: AnyJudge | RagEvaluator) -> SharedEvaluator:
    """Return the evaluator of a judge; make it when no evaluator object holds one.

    Five evaluator objects made with one judge ask it once per call, whichever scores they return.

    Args:
        judge: the name of a judge, shared by everyone who uses the name; or any object, shared by
            identity, of which a `RagEvaluator` is its own evaluator.

    Returns:
        The judge and its evaluator; shared for as long as somebody holds the result.

    Raises:
        ConfigurationError: the judge is not known.
    """
    key = judge if isinstance(judge, str) else id(judge)
    with _lock:
        shared = _shared.get(key)
        if shared is None:
            evaluator = judge if isinstance(judge, RagEvaluator) else RagEvaluator(judge)
            shared = _shared[key] = SharedEvaluator(judge, evaluator)
        return shared


def shared_trace(judge: AnyJudge | RagEvaluator, metric: str | None) -> SharedEvaluator:
    """Return the evaluator of a judge, for a TRACe score; None stands for all of them.

    Raises:
        ConfigurationError: the judge or the metric is not known.
    """
    if metric is not None and metric not in TRACE_SCORES:
        why = f"is not a TRACe score; use one of {', '.join(TRACE_SCORES)}"
        raise ConfigurationError("metric", metric, why)
    return shared_evaluator(judge)


def model_evaluator(metric: ModelMetric, judge: AnyJudge | None) -> RagEvaluator:
    """Make an evaluator for one metric that asks a model; None where the metric has its own.

    Raises:
        ConfigurationError: `metric` does not ask a model, or the judge cannot answer its requests.
    """
    if not isinstance(metric, ModelMetric):
        raise ConfigurationError("metric", metric, "should be a `ModelMetric`")
    return RagEvaluator("embedded" if judge is None else judge, [metric])


# --- The base of the evaluator objects


class ScoreView:
    """Scores of a `RagEvaluator`, and the threshold with which they pass."""

    def __init__(
        self, evaluator: RagEvaluator, names: Sequence[str], threshold: float | None
    ) -> None:
        self.rag_evaluator = evaluator
        """The evaluator of which this is a view."""
        self.names = tuple(names)
        """The scores that it returns."""
        self.threshold = checked_threshold(threshold)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.names))}, {self.rag_evaluator!r})"

    async def _evaluated(self, call: RagCall) -> tuple[Evaluation, list[Score]]:
        """Evaluate a call; return its scores as well, each with the threshold that applies.

        The view's own goes before the metric's, and that before the default of the score. The list
        has the view's scores alone, in the order of its names; the evaluation's stay as they are.
        """
        evaluation = await self.rag_evaluator.evaluate(call, only=self.names)
        scores = []
        for score in map(evaluation.scores.__getitem__, self.names):
            # The view's own threshold takes precedence over the metric's, and that over ours.
            threshold = score.threshold if self.threshold is None else self.threshold
            if threshold is None:
                threshold = _DEFAULT_THRESHOLDS.get(score.name)
            same = threshold == score.threshold
            scores.append(score if same else score.model_copy(update={"threshold": threshold}))
        return evaluation, scores


class PromptyView:
    """Makes the metric of a `NAME.metric.prompty` file, for each framework's `PromptyEvaluator`."""

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: AnyModel,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        metric = PromptyMetric(prompt, variables=variables, judge=judge, threshold=threshold)
        # The framework's `ModelEvaluator` comes next.
        super().__init__(metric, threshold=threshold)  # type: ignore[call-arg]


# --- Thresholds of the views on an evaluator


_DEFAULT_THRESHOLDS = {"adherence": 1.0}
"""Adherence is 1.0 or 0.0, so a verdict needs no choice: every sentence is supported, or not."""


def checked_threshold(threshold: float | None) -> float | None:
    """Return a view's threshold.

    Raises:
        ConfigurationError: it is not a number in [0, 1].
    """
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 <= threshold <= 1):
        raise ConfigurationError("threshold", threshold, "use a number in [0, 1]")
    return threshold


def thresholds_by_name(
    rag_evaluator: RagEvaluator, thresholds: Mapping[str, float] | None
) -> dict[str, float | None]:
    """Return the given threshold of every score of an evaluator; None without one.

    Raises:
        ConfigurationError: `rag_evaluator` is not a `RagEvaluator`, or lacks a score of
            `thresholds`.
    """
    if not isinstance(rag_evaluator, RagEvaluator):
        raise ConfigurationError(
            "rag_evaluator", rag_evaluator, "should be a RagEvaluator, as in RagEvaluator()"
        )
    given = dict(thresholds or {})
    unknown = sorted(given.keys() - set(rag_evaluator.names))
    if unknown:
        raise ConfigurationError("thresholds", unknown, "the evaluator does not have these scores")
    return {name: given.get(name) for name in rag_evaluator.names}
