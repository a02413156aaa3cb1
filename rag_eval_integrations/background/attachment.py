"""Turn a handler's `target`, callable or evaluator, into one callable that takes its calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from rag_eval_integrations.background.runner import BackgroundEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.sinks import CallbackSink

TargetOrEvaluator = Callable[[RagCall], object] | RagEvaluator

_MOST_KEPT = 1_000


class Attachment:
    """The plain target of a callable, a `BackgroundEvaluator` or a `RagEvaluator`.

    A `RagEvaluator` is run by its own `BackgroundEvaluator`; the latest 1,000 evaluations are kept,
    so that three lines of code attach an evaluator and show scores. Any other target handles its
    evaluations itself, and none are kept here.

    Args:
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`.
        on_evaluation: called with every evaluation, in order, from a thread of its own; only with
            a `RagEvaluator` as target.

    Raises:
        ConfigurationError: `on_evaluation` is given with another target than a `RagEvaluator`, or
            cannot be called.
    """

    def __init__(
        self, target: TargetOrEvaluator, on_evaluation: Callable[[Evaluation], object] | None = None
    ) -> None:
        self._kept: deque[Evaluation] = deque(maxlen=_MOST_KEPT)
        self._background: BackgroundEvaluator | None = None
        self.target: Callable[[RagCall], object]
        # A subclass of the user's may look at the calls that it is given.
        self.identifies = isinstance(target, RagEvaluator) or type(target) is BackgroundEvaluator
        """Whether the target makes the default id of the calls itself, off the request path."""
        if isinstance(target, RagEvaluator):
            told = None if on_evaluation is None else CallbackSink(on_evaluation)
            self._background = BackgroundEvaluator(target, [_Keeper(self._kept, told)])
            self.target = self._background
            return
        if on_evaluation is not None:
            raise ConfigurationError(
                "on_evaluation",
                on_evaluation,
                "needs a RagEvaluator as target; pass sinks to a BackgroundEvaluator instead",
            )
        if isinstance(target, BackgroundEvaluator):
            self._background = target
        self.target = target

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations, oldest first; at most 1,000."""
        return tuple(self._kept.copy())

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the calls so far are evaluated and the evaluations delivered.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether all of that was done in time; True at once for a plain callable.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        return True if self._background is None else self._background.flush(timeout)


class _Keeper:
    """Keeps the latest evaluations, then calls the user's function, which can look them up."""

    def __init__(self, kept: deque[Evaluation], then: CallbackSink | None) -> None:
        self._kept = kept
        self._then = then

    def write(self, batch: Sequence[Evaluation]) -> None:
        self._kept.extend(batch)
        if self._then is not None:
            self._then.write(batch)
