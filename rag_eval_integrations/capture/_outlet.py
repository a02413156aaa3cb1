"""The way from a capturing object to its target, and the counts that the object reports."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from rag_eval_integrations.capture._delivery import Target, TargetDelivery

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Attachment, TargetOrEvaluator
    from rag_eval_integrations.evaluations import Evaluations
    from rag_eval_integrations.records import Evaluation

_EVALUATING = {"rag_eval_integrations.background", "rag_eval_integrations.evaluator"}


class Outlet:
    """Delivers calls to the user's `target`; a `RagEvaluator` is run in the background.

    Args:
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`.
        logger: the framework's logger, for failures.
        on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.

    Raises:
        ConfigurationError: `target` cannot be called, or `on_evaluation` is given with another
            target than a `RagEvaluator`.
    """

    def __init__(
        self,
        target: TargetOrEvaluator,
        logger: logging.Logger,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        self._given = target
        self._attachment = _attachment(target, on_evaluation)
        to = target if self._attachment is None else self._attachment.target
        self.target = cast("Target", to)
        """The callable that takes the calls; `TargetDelivery` checks it."""
        later = None if self._attachment is None else self._attachment.later
        self.delivery = TargetDelivery(self.target, logger, later=later)
        """Calls the target; failures are logged and counted, and never reach the app."""

    @property
    def evaluations(self) -> Evaluations:
        """The latest evaluations of the target; empty for a plain callable."""
        if self._attachment is not None:
            return self._attachment.evaluations
        from rag_eval_integrations.evaluations import Evaluations  # noqa: PLC0415 -- as below

        return Evaluations()

    def __repr__(self) -> str:
        """Show the target, what came of it, and the failures."""
        to = getattr(self._given, "__qualname__", None) or repr(self._given)
        kept = 0 if self._attachment is None else self._attachment.kept
        count = f"{kept} evaluation{'s' if kept > 1 else ''}, " if kept else ""
        return f"{to}, {count}{self.delivery.failed} failed"

    def flush(self, timeout: float) -> bool:
        """Wait until the delivered calls are evaluated; return whether that was in time."""
        return True if self._attachment is None else self._attachment.flush(timeout)


class HasOutlet(Protocol):
    """An object with an outlet, its own or that of one of its parts."""

    @property
    def _outlet(self) -> Outlet: ...


class Captures:
    """Counts and evaluations of an object that captures; a mixin for handlers and wrappers.

    It has neither fields nor a constructor, so that pydantic models can inherit it as well.
    """

    @property
    def failed(self: HasOutlet) -> int:
        """Number of failures of the target, the hooks and the capture itself."""
        return self._outlet.delivery.failed

    @property
    def evaluations(self: HasOutlet) -> Evaluations:
        """The latest 100 evaluations, oldest first: a snapshot, for any thread.

        With a `BackgroundEvaluator` as target, the ones that it keeps, of all that it is given;
        empty for a plain callable.
        """
        return self._outlet.evaluations

    def flush(self: HasOutlet, timeout: float = 30.0) -> bool:
        """Wait until the calls captured so far are evaluated.

        Blocks the calling thread; in async code call it with `asyncio.to_thread`.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether all of them were evaluated in time; True at once for a plain callable.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        return self._outlet.flush(timeout)


def _attachment(
    target: TargetOrEvaluator, on_evaluation: Callable[[Evaluation], object] | None
) -> Attachment | None:
    """Return the attachment of a target; None for a plain callable.

    Evaluation costs more to import than all of capture. Whoever makes an evaluator has imported
    it; if it is not imported, the target cannot be an evaluator.
    """
    if on_evaluation is None and not sys.modules.keys() & _EVALUATING:
        return None
    from rag_eval_integrations.background.attachment import Attachment  # noqa: PLC0415

    return Attachment(target, on_evaluation)
