"""What a host's handler hands its calls to, whatever the user gave it as `target`."""

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
    """Makes a plain target of a callable, a `BackgroundEvaluator` or a `RagEvaluator`.

    A `RagEvaluator` is run by a `BackgroundEvaluator` of its own; the latest 1,000 evaluations are
    kept, so that three lines attach an evaluator and show scores. With any other target, where
    evaluations go is the target's business, and none are kept here.

    Args:
        target: what the user gave.
        on_evaluation: called with every evaluation, from one thread of its own, in order; only
            with a `RagEvaluator`.

    Raises:
        ConfigurationError: for `on_evaluation` with another target, or one that cannot be called.
    """

    def __init__(
        self, target: TargetOrEvaluator, on_evaluation: Callable[[Evaluation], object] | None = None
    ) -> None:
        self._kept: deque[Evaluation] = deque(maxlen=_MOST_KEPT)
        self._background: BackgroundEvaluator | None = None
        self.target: Callable[[RagCall], object]
        if isinstance(target, RagEvaluator):
            told = None if on_evaluation is None else CallbackSink(on_evaluation)
            self._background = BackgroundEvaluator(target, [_Keeper(self._kept, told)])
            self.target = self._background
            return
        if on_evaluation is not None:
            raise ConfigurationError(
                "on_evaluation",
                on_evaluation,
                "needs a RagEvaluator as target; give a BackgroundEvaluator its sinks instead",
            )
        if isinstance(target, BackgroundEvaluator):
            self._background = target
        self.target = target

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations, oldest first; at most 1,000."""
        return tuple(self._kept.copy())

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the calls handed over so far are evaluated and delivered.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether it was all done in time; True at once where nothing is evaluated behind the
            app's back.

        Raises:
            ReentryError: in an evaluation or a sink, which would wait for itself.
        """
        return True if self._background is None else self._background.flush(timeout)


class _Keeper:
    """Keeps the latest evaluations, then tells the user's function: it finds them kept."""

    def __init__(self, kept: deque[Evaluation], then: CallbackSink | None) -> None:
        self._kept = kept
        self._then = then

    def write(self, batch: Sequence[Evaluation]) -> None:
        self._kept.extend(batch)
        if self._then is not None:
            self._then.write(batch)
