"""Notify objects when their process forks or ends: the only place that registers such hooks.

A forked child (gunicorn prefork, multiprocessing) has copies of the parent's objects and none of
its threads: a lock, a loop or a request in flight that is waited for there never comes back.
"""

from __future__ import annotations

import atexit
import os
import threading
from weakref import WeakSet


class ProcessObserver:
    """An object that reacts to a fork or to the end of the process, once it is registered."""

    def before_fork(self) -> None:
        """Get ready for a fork, in the parent."""

    def after_fork_in_parent(self) -> None:
        """Go on after a fork, in the parent."""

    def after_fork(self) -> None:
        """Start anew in the child."""

    def at_exit(self) -> None:
        """React to the end of the process."""


_observers: WeakSet[ProcessObserver] = WeakSet()
# Held during a fork, so that none is registered between the calls before and after it. Re-entrant,
# because a garbage collection while it is held may finalise anything.
_lock = threading.RLock()
_forking: list[ProcessObserver] = []


def register(observer: ProcessObserver) -> None:
    """Notify an object for as long as it lives."""
    with _lock:
        _observers.add(observer)


def _before() -> None:
    _lock.acquire()
    _forking.extend(_observers)
    for observer in _forking:
        observer.before_fork()


def _after_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    while _forking:
        _forking.pop().after_fork()
    _lock.release()


def _at_exit() -> None:
    with _lock:
        observers = list(_observers)
    for observer in observers:
        observer.at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
atexit.register(_at_exit)
