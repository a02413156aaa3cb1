"""A sink that passes each evaluation to a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation


class CallbackSink:
    """Calls a function with every evaluation.

    Args:
        function: a plain function of one `Evaluation`; it may block, and its return value is
            ignored.

    Raises:
        ConfigurationError: `function` cannot be called, is a class, or is async (nothing would
            await it).
    """

    def __init__(self, function: Callable[[Evaluation], object]) -> None:
        if not callable(function):
            raise ConfigurationError("function", function, "use a function of one Evaluation")
        if isinstance(function, type):
            raise ConfigurationError("function", function, "is a class; pass an object of it")
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 -- the method itself is asked for
        ):
            raise ConfigurationError(
                "function", function, "is async; use a plain function that schedules its own work"
            )
        self._function = function

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Call the function once per evaluation, in order.

        A failure does not keep the function from being called for the rest of the batch.

        Args:
            batch: the evaluations.

        Raises:
            Exception: the function's own exception, when it raised once.
            ExceptionGroup: the function's exceptions, when it raised more than once.
        """
        failures: list[Exception] = []
        for evaluation in batch:
            try:
                self._function(evaluation)
            except Exception as error:  # noqa: BLE001 -- raised below, after the rest of the batch
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup("the callback raised more than once", failures)
