"""Notify background evaluators when their process forks or ends."""

from __future__ import annotations

import atexit
import os
from typing import Protocol
from weakref import WeakSet


class ProcessObserver(Protocol):
    """An object that reacts to a fork and to the end of the process."""

    def after_fork(self) -> None:
        """Start anew in the child, which has the parent's objects but none of its threads."""
        ...

    def at_exit(self) -> None:
        """Log what is lost."""
        ...


_observers: WeakSet[ProcessObserver] = WeakSet()


def register(observer: ProcessObserver) -> None:
    """Notify an object of forks and of the process's end, for as long as the object lives."""
    _observers.add(observer)


def _after_fork() -> None:
    for observer in list(_observers):
        observer.after_fork()


def _at_exit() -> None:
    for observer in list(_observers):
        observer.at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
