"""What a user gives to be called inside of the app's call: plain functions, told apart here."""

from __future__ import annotations

import inspect

from rag_eval_integrations.errors import ConfigurationError


def is_async(function: object) -> bool:
    """Whether what it returns would have to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 -- the method itself is asked for
    )


def check_hooks(**hooks: object) -> None:
    """Refuse hooks that cannot be called as they are; None is no hook.

    Raises:
        ConfigurationError: one cannot be called, or would have to be awaited; names it.
    """
    for name, hook in hooks.items():
        if hook is None:
            continue
        if not callable(hook):
            raise ConfigurationError(name, hook, "should be a plain function")
        if is_async(hook):
            raise ConfigurationError(
                name, hook, "is async; should be a plain function, it runs inside of the app's call"
            )
