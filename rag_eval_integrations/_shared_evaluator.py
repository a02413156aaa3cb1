"""The part that the evaluator objects of LangChain and LlamaIndex share: evaluators, thresholds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from weakref import WeakValueDictionary

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Score


class SharedEvaluator:
    """A judge and the evaluator that asks it.

    It keeps the judge alive: another object cannot get the `id` that it is found by.
    """

    def __init__(self, judge: object, evaluator: RagEvaluator) -> None:
        self.judge = judge
        self.evaluator = evaluator


_shared: WeakValueDictionary[str | int, SharedEvaluator] = WeakValueDictionary()
_lock = threading.Lock()


def shared_evaluator(judge: object, make: Callable[[], RagEvaluator]) -> SharedEvaluator:
    """Return the evaluator of a judge; make it when no evaluator object holds one.

    Five evaluator objects made with one judge ask it once per call, whichever scores they return.

    Args:
        judge: the name of a judge, shared by everyone who uses the name, or any object, shared by
            identity.
        make: makes the evaluator when there is none.

    Returns:
        The judge and its evaluator; shared for as long as somebody holds the result.

    Raises:
        ConfigurationError: whatever `make` raises.
    """
    key = judge if isinstance(judge, str) else id(judge)
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedEvaluator(judge, make())
        return found


# --- Thresholds of the views on an evaluator


_DEFAULT_THRESHOLDS = {"adherence": 1.0}
"""Adherence is 1.0 or 0.0, so a verdict needs no choice: every sentence is supported, or not."""


def threshold_of(score: Score, given: float | None) -> float | None:
    """Return the smallest value with which a score passes; None gives no verdict.

    Args:
        score: the score.
        given: the view's own threshold, which takes precedence over the metric's; None without one.
    """
    if given is not None:
        return given
    if score.threshold is not None:
        return score.threshold
    return _DEFAULT_THRESHOLDS.get(score.name)


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
        raise ConfigurationError("rag_evaluator", rag_evaluator, "should be a RagEvaluator")
    given = dict(thresholds or {})
    unknown = sorted(given.keys() - set(rag_evaluator.names))
    if unknown:
        raise ConfigurationError("thresholds", unknown, "the evaluator does not have these scores")
    return {name: given.get(name) for name in rag_evaluator.names}
