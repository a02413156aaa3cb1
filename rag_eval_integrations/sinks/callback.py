"""A sink that hands each evaluation to a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation


class CallbackSink:
    """Calls a function with every evaluation.

    Args:
        function: a plain function; it may block, and what it returns is ignored.

    Raises:
        ConfigurationError: when it cannot be called, or is async (nothing would await it).
    """

    def __init__(self, function: Callable[[Evaluation], object]) -> None:
        if not callable(function):
            raise ConfigurationError("function", function, "give a function of one Evaluation")
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 -- the method itself is asked for
        ):
            raise ConfigurationError(
                "function", function, "is async; give a plain one that schedules its own work"
            )
        self._function = function

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Call the function once an evaluation, in order.

        Raises:
            ExceptionGroup: of all that the function raised; one failure does not cost the others
                of the batch their call.
        """
        failures: list[Exception] = []
        for evaluation in batch:
            try:
                self._function(evaluation)
            except Exception as error:  # noqa: BLE001 -- raised below, after the others' turn
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup("the callback failed", failures)
