"""Stage 4, the base classes of metrics.

`LabelMetric` scores a judge's labels, `ModelMetric` asks a model, `CallMetric` needs neither.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By, Labelling, RagCall, Score, SentencizedCall, Usage
from rag_eval_integrations.records.labels import UnscoredCode

if TYPE_CHECKING:
    from rag_eval_integrations.models import Model, ModelBase

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")


Judged = Literal["response", "reference"]
"""The text of a call whose sentences a judge labels against the documents."""


class Metric(ABC):
    """The part that all kinds share; one object may score any number of calls concurrently.

    Inherit `LabelMetric`, `ModelMetric` or `CallMetric`, not this class.

    The evaluator's fingerprint is computed from the `repr` of its metrics and their `version`:
    together they name everything that decides the scores besides the call and the judge. A frozen
    dataclass has such a `repr`; with Python's default one, which holds a memory address, state a
    `version`.
    """

    names: tuple[str, ...]
    """Names of the scores that it returns, in order; the same for every call."""
    version: str | None = None
    """Version of whatever decides the scores and is not in the `repr`; None if there is nothing."""

    @property
    def identity(self) -> str | None:
        """The text that stands for the metric in a fingerprint.

        None if nothing does: its `repr` is another one in every process, and it has no `version`.
        """
        text = repr(self)
        if _ADDRESS.search(text) is None:
            return text if self.version is None else f"{text}@{self.version}"
        kind = type(self)
        return self.version and f"{kind.__module__}.{kind.__qualname__}@{self.version}"

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Return every score of the metric without a value, all for the same reason."""
        return tuple(
            Score(name=name, status="unscored", unscored=code, reason=reason, by=by)
            for name in self.names
        )


class LabelMetric(Metric):
    """A metric that scores a labelled call, without I/O."""

    judged: Judged = "response"
    """The text that the judge labels for it: the call's `response`; or its `reference`, in place of
    the response, which is one more judgement per call, shared by all metrics that ask for it."""

    @abstractmethod
    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call with its keyed sentences. For a metric of the reference, its response is
                the reference.
            labelling: the judge's labels; None in it, with a code and a reason, if there are none.
            by: provenance for the scores.

        Returns:
            One score per name in `names`.
        """

    def _without_labels(
        self,
        labelling: Labelling,
        by: By,
        code: UnscoredCode = "judge_output_invalid",
        reason: str = "the judge gave no labels",
    ) -> tuple[Score, ...]:
        """Return every score without a value, for the judge's reason or else for this one."""
        scores = self.unscored(labelling.unscored or code, labelling.reason or reason, by)
        # Why there are no labels may stand there: a schema that the endpoint ignored.
        return tuple(score.model_copy(update={"warnings": labelling.warnings}) for score in scores)


class Measured(NamedTuple):
    """The scores of a metric that asks a model, and the usage of its requests."""

    scores: tuple[Score, ...]
    usage: Usage = Usage()


class ModelMetric(Metric):
    """A metric that asks a model about a call."""

    judge: Model | None = None
    """The metric's own model; None to use the evaluator's."""
    most_requests: int | None = None
    """Requests per call at most, retries not counted; None if that is not known."""
    takes_any_judge: bool = False
    """Whether `measure` takes a judge as well, which it is given where that has no model; and a
    call with the sentences that the evaluator has split it into."""

    @abstractmethod
    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call to score.
            judge: the model to ask.

        Returns:
            One score per name in `names`, and the usage of the requests.

        Raises:
            JudgeError: the model does not answer; the evaluator turns this into error scores.
        """


class CallMetric(Metric):
    """A metric that scores a call by itself: no judge labels it, no model is asked, no I/O."""

    @abstractmethod
    def score(self, call: RagCall, by: By) -> tuple[Score, ...]:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call, not split into sentences.
            by: provenance for the scores, which names no judge.

        Returns:
            One score per name in `names`.
        """


_KINDS = (LabelMetric, ModelMetric, CallMetric)


def checked_metrics(
    metrics: Iterable[Metric | str], named: Callable[[str], Metric]
) -> tuple[Metric, ...]:
    """Return the metrics of an evaluator after checking what can be checked before any call.

    Args:
        metrics: metrics, or names.
        named: makes the metric of a name.

    Raises:
        ConfigurationError: there are none, one is not a metric, or the names of the scores are not
            a tuple of distinct, non-empty strings.
    """
    given: object = metrics
    if isinstance(given, str):  # not letter by letter
        raise ConfigurationError("metrics", given, f"use a list, as in [{given!r}]")
    if not isinstance(given, Iterable):
        raise ConfigurationError("metrics", given, "use a list, as in [Trace()]")
    checked = tuple(named(each) if isinstance(each, str) else each for each in metrics)
    if not checked:
        raise ConfigurationError("metrics", checked, "give at least one metric")
    for metric in checked:
        kinds = [kind.__name__ for kind in _KINDS if isinstance(metric, kind)]
        if not kinds:
            raise ConfigurationError("metrics", metric, _not_a_metric(metric))
        if len(kinds) > 1:
            why = f"inherits both {kinds[0]} and {kinds[1]}; make it two metrics"
            raise ConfigurationError("metrics", metric, why)
        if isinstance(metric, LabelMetric) and metric.judged not in get_args(Judged):
            why = f"its `judged` should be one of {', '.join(get_args(Judged))}"
            raise ConfigurationError("metrics", metric, why)
        if not _are_names(getattr(metric, "names", None)):
            raise ConfigurationError(
                "metrics", metric, "its `names` should be a tuple of distinct, non-empty strings"
            )
    names = [name for metric in checked for name in metric.names]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigurationError("metrics", repeated[:3], "two metrics give a score of this name")
    return checked


def _are_names(names: object) -> bool:
    """Tell whether a metric's names are a tuple of different texts."""
    return (
        isinstance(names, tuple)
        and bool(names)
        and all(isinstance(name, str) and name for name in names)
        and len(set(names)) == len(names)
    )


def _not_a_metric(thing: object) -> str:
    """Say why an object is not a metric, and what to pass instead."""
    if isinstance(thing, type):
        return "is a class; pass an object of it"
    kind = type(thing).__name__
    if hasattr(thing, "measure"):
        return f"has `measure`: let {kind} inherit rag_eval_integrations.metrics.ModelMetric"
    if hasattr(thing, "score"):
        return f"has `score`: let {kind} inherit rag_eval_integrations.metrics.LabelMetric"
    return (
        "is not a metric; inherit rag_eval_integrations.metrics.LabelMetric, ModelMetric or "
        "CallMetric"
    )


def _not_scores(given: object) -> str | None:
    """Say what a metric returned instead of scores; None for scores."""
    if not isinstance(given, Sequence):
        return type(given).__name__
    kinds = [type(item).__name__ for item in given if not isinstance(item, Score)]
    return f"a sequence with {kinds[0]}" if kinds else None


def as_promised(metric: Metric, scores: Sequence[Score]) -> tuple[Score, ...]:
    """Return the scores that a metric gave for a call after checking that they are its `names`.

    Raises:
        ConfigurationError: a score is missing, was not promised, is given twice, or is something
            else than a `Score`.
    """
    odd = _not_scores(scores)
    if odd is not None:
        raise ConfigurationError("metrics", metric, f"gave {odd} instead of a sequence of scores")
    given = tuple([score.name for score in scores])
    if given == metric.names:
        return tuple(scores)
    if sorted(given) != sorted(metric.names):
        names, gave = ", ".join(metric.names), ", ".join(given) or "none"
        raise ConfigurationError("metrics", metric, f"promises the scores {names}, gave {gave}")
    return tuple(sorted(scores, key=lambda score: metric.names.index(score.name)))
