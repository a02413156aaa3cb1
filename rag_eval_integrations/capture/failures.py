"""What goes wrong while a plain app is captured: counted and logged, never raised."""

from __future__ import annotations

import logging

from rag_eval_integrations._observe import Delivery

_LOGGER = logging.getLogger("rag_eval_integrations.capture")


_FAILURES = Delivery(lambda call: None, _LOGGER)


def capture_failures() -> int:
    """How often a target, or this module itself, failed since the process began.

    The first failure of a kind (place, target and exception type) is logged with its traceback.
    """
    return _FAILURES.failed


class CountedDelivery(Delivery):
    """Delivers for one `capture_call`; a target that is down logs no traceback a call."""

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure; log the first of its kind with its traceback."""
        if where == "the target":
            where = f"the target {getattr(self._target, '__qualname__', type(self._target))}"
        _FAILURES.failure(where, error)
