"""Where captured calls go, and what became of them: the same for every object that captures."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from rag_eval_integrations.capture._delivery import Target, TargetDelivery

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Attachment, TargetOrEvaluator
    from rag_eval_integrations.records import Evaluation

_EVALUATING = {"rag_eval_integrations.background", "rag_eval_integrations.evaluator"}


class Outlet:
    """Delivers calls to what the user gave as `target`; a `RagEvaluator` gets a background.

    Args:
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`.
        logger: the host's, for what goes wrong.
        on_evaluation: called with every evaluation; only with a `RagEvaluator`.

    Raises:
        ConfigurationError: for `on_evaluation` with another target, or one that cannot be called.
    """

    def __init__(
        self,
        target: TargetOrEvaluator,
        logger: logging.Logger,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        self._attachment = _attachment(target, on_evaluation)
        to = target if self._attachment is None else self._attachment.target
        self.target = cast("Target", to)
        """What is called in the end; `TargetDelivery` checks that it can be."""
        self.delivery = TargetDelivery(self.target, logger)
        """Calls it; whatever goes wrong is logged and counted, and never seen by the app."""

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations of a `RagEvaluator`; of another target none."""
        return () if self._attachment is None else self._attachment.evaluations

    def flush(self, timeout: float) -> bool:
        """Wait until what was delivered is evaluated; whether that was in time."""
        return True if self._attachment is None else self._attachment.flush(timeout)


class HasOutlet(Protocol):
    """An object with an outlet, its own or that of a part."""

    @property
    def _outlet(self) -> Outlet: ...


class Captures:
    """What every object that captures says about its calls; mixed into the hosts' own classes.

    Without fields or a constructor, so that a pydantic model can take it as well.
    """

    @property
    def failed(self: HasOutlet) -> int:
        """How often the target, a hook, or the capture itself, failed."""
        return self._outlet.delivery.failed

    @property
    def evaluations(self: HasOutlet) -> tuple[Evaluation, ...]:
        """The latest 1,000 evaluations, oldest first, of a `RagEvaluator` as target; else none."""
        return self._outlet.evaluations

    def flush(self: HasOutlet, timeout: float = 30.0) -> bool:
        """Wait until the calls captured so far are evaluated; not to be called on the app's loop.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether it was all done in time; True at once where the target is a plain callable.

        Raises:
            ReentryError: in an evaluation or a sink, which would wait for itself.
        """
        return self._outlet.flush(timeout)


def _attachment(
    target: TargetOrEvaluator, on_evaluation: Callable[[Evaluation], object] | None
) -> Attachment | None:
    """Run an evaluator in the background; None for a plain callable.

    What evaluates costs more to import than all of capture. It is loaded by whoever makes an
    evaluator; where nobody has, the target is none.
    """
    if on_evaluation is None and not sys.modules.keys() & _EVALUATING:
        return None
    from rag_eval_integrations.background.attachment import Attachment  # noqa: PLC0415

    return Attachment(target, on_evaluation)
