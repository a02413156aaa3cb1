"""Turn a handler's `target`, callable or evaluator, into one callable that takes its calls."""

from __future__ import annotations

from collections.abc import Callable

from rag_eval_integrations.background.runner import BackgroundEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.records._ended import EndedCall
from rag_eval_integrations.sinks import CallbackSink

TargetOrEvaluator = Callable[[RagCall], object] | RagEvaluator


class Attachment:
    """The plain target of a callable, a `BackgroundEvaluator` or a `RagEvaluator`.

    A `RagEvaluator` is run by its own `BackgroundEvaluator`, which keeps the latest 100
    evaluations, so that three lines of code attach an evaluator and show scores. A plain callable
    handles its evaluations itself.

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
        self._background: BackgroundEvaluator | None = None
        self.target: Callable[[RagCall], object]
        self.later: Callable[[EndedCall], None] | None = None
        """Takes calls whose records are made off the app's thread; None where the target has to
        get records."""
        if isinstance(target, RagEvaluator):
            told = [] if on_evaluation is None else [CallbackSink(on_evaluation)]
            self._background = BackgroundEvaluator(target, told)
            self.target = self._background
            self.later = self._background.submit_ended
            return
        if on_evaluation is not None:
            raise ConfigurationError(
                "on_evaluation",
                on_evaluation,
                "needs a RagEvaluator as target; pass sinks to a BackgroundEvaluator instead",
            )
        if isinstance(target, BackgroundEvaluator):
            self._background = target
            if type(target) is BackgroundEvaluator:  # a user's subclass may look at the records
                self.later = target.submit_ended
        self.target = target

    @property
    def evaluations(self) -> Evaluations:
        """The latest evaluations of the background evaluator, oldest first; empty without one."""
        return Evaluations() if self._background is None else self._background.evaluations

    @property
    def kept(self) -> int:
        """Number of evaluations that `evaluations` holds."""
        return 0 if self._background is None else self._background.kept

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
