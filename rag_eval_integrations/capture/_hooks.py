"""Run the user's own extractors `question=`, `documents=` and `response=`.

They are the user's code inside the app's call: a failure is counted and logged, and never reaches
the app. Each framework decides what its hooks are given, and what stands where one of them fails.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._delivery import TargetDelivery, check_hooks
from rag_eval_integrations.records import Document

T = TypeVar("T")
E = TypeVar("E")


class Hooks:
    """The user's own extractors; each is optional.

    Args:
        delivery: counts and logs the failures.
        **hooks: the extractors by name; None for those that the user did not give.

    Raises:
        ConfigurationError: a hook cannot be called, or is async; the message names it.
    """

    def __init__(self, delivery: TargetDelivery, **hooks: Callable[..., object] | None) -> None:
        check_hooks(**hooks)
        self._delivery = delivery
        self._hooks = {name: hook for name, hook in hooks.items() if hook is not None}

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def __contains__(self, name: str) -> bool:
        return name in self._hooks

    def run(
        self,
        name: str,
        *given: Any,
        read: Callable[[object], T],
        empty: E,
        failed: list[str] | None = None,
    ) -> T | E | None:
        """Run a hook; what it calls of the frameworks is not captured.

        What it raises is counted.

        Args:
            name: name of the hook.
            *given: its arguments.
            read: checks and converts what it returns.
            empty: what to return if it fails.
            failed: list to which the name of a hook that fails is added.

        Returns:
            What `read` made of the hook's result; None without this hook.
        """
        hook = self._hooks.get(name)
        if hook is None:
            return None
        try:
            with suppress_capture():
                return read(hook(*given))
        except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 -- the app goes on
            if failed is not None:
                failed.append(name)
            self._delivery.failure(f"the `{name}` hook", error)
            return empty


# --- What a hook may return


def text(value: object) -> str:
    """Return a hook's text as a plain `str`.

    Raises:
        TypeError: it is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"should return a string, not {type(value).__name__}")
    return str.__str__(value)


def text_or_none(value: object) -> str | None:
    """Return a hook's text, or None.

    Raises:
        TypeError: it is something else.
    """
    return None if value is None else text(value)


def documents(value: object, own: Callable[[Any], Snapshot]) -> list[Snapshot] | None:
    """Copy a hook's documents, or return None.

    Args:
        value: what the hook returned: strings, `Document`s and the framework's own documents.
        own: copies one of the framework's own.

    Raises:
        TypeError: it is something else, or holds something else.
    """
    if value is None:
        return None
    # These are iterable, but their characters and keys are not documents.
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"should return a list of documents or None, not {type(value).__name__}")
    return [_document(item, own) for item in value]


def _document(item: Any, own: Callable[[Any], Snapshot]) -> Snapshot:
    """Make a snapshot of an item that a hook returned."""
    if isinstance(item, str):
        return Snapshot(text(item), None, {}, None)
    if isinstance(item, Document):
        return Snapshot(item.text, item.id, item.metadata, item.score, item.header)
    return own(item)
