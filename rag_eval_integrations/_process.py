"""Notify objects when their process forks or ends: the only place that registers such hooks.

A program that ends goes through two stages. When the main thread is done, threads and executors
still take work: what is pending can be finished (`before_exit`). Executors end then, non-daemon
threads are waited for, and last come the functions of `atexit` (`at_exit`).

A forked child (gunicorn prefork, multiprocessing) has copies of the parent's objects and none of
its threads: a lock, a loop or a request in flight that is waited for there never comes back. Python
tells of its own forks alone. Of one in C (uWSGI's prefork) nobody is told before it, and a child
learns of it by its process id, at the first use of what it must not share (`notice_fork`).
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterable

# Hooks of a fork run in reverse order, and exit callbacks of threads too: those of executors, which
# hold a lock that a thread needs to rest and refuse work after theirs, are registered first.
from concurrent.futures import thread as _  # noqa: F401
from contextlib import suppress
from types import FrameType
from weakref import WeakSet


class ProcessObserver:
    """An object that reacts to a fork or to the end of the process, once it is registered.

    The methods do nothing; subclasses override those that they need.
    """

    def rest(self) -> None:
        """Bring a thread to rest before a fork; no other object holds a lock for it yet."""

    def before_fork(self) -> None:
        """Get ready for a fork of Python's, in the parent."""

    def after_fork_in_parent(self) -> None:
        """Go on after a fork, in the parent."""

    def after_fork(self) -> None:
        """Start anew in the child; other threads of the parent may have held any lock."""

    def before_exit(self, began: float) -> None:
        """Finish what is pending, while threads and executors still take work.

        Only called after `finish_before_exit` or `drain_on_sigterm`. An exception, which a signal's
        handler may raise in here, ends the waiting of all (`hurried`).

        Args:
            began: when the end of the process began, by `time.monotonic`.
        """

    def at_exit(self) -> None:
        """React to the end of the process."""


_observers: WeakSet[ProcessObserver] = WeakSet()
# Held during a fork, so that none is registered between the calls before and after it. Re-entrant,
# because a garbage collection while it is held may finalise anything.
_lock = threading.RLock()
_forking: list[ProcessObserver] = []
_pid = os.getpid()
_noticing: dict[int, threading.RLock] = {}
"""Process id → the lock of a child's first notice, which no other process has held."""


def register(observer: ProcessObserver) -> None:
    """Notify an observer of forks and of the end of the process, for as long as it lives."""
    with _lock:
        _observers.add(observer)


def _before() -> None:
    """Have all observers rest before a fork."""
    _lock.acquire()
    _forking.extend(_observers)
    for observer in _forking:
        observer.rest()
    for observer in _forking:
        observer.before_fork()


def _after_in_parent() -> None:
    """Notify the observers after a fork, in the parent."""
    while _forking:
        _forking.pop().after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    """Notify the observers after a fork, in the child."""
    global _lock, _pid
    _lock = threading.RLock()
    _forking.clear()
    for observer in list(_observers):
        observer.after_fork()
    _pid = os.getpid()


def notice_fork() -> None:
    """Tell all observers if this is the child of a fork that Python did not see.

    Costs a system call; call it before the use of what a child must not share.
    """
    pid = os.getpid()
    if pid != _pid:
        with _noticing.setdefault(pid, threading.RLock()):
            if pid != _pid:
                _after_in_child()


_kept: list[object] = []


def keep(resource: object) -> None:
    """Keep a resource of the parent's in the child, past the end of the interpreter.

    Its own end would wait for the parent's threads and locks.
    """
    _kept.append(resource)
    with suppress(ImportError):  # a Python that was built without libffi
        import ctypes  # noqa: PLC0415  # 10 ms, for a child alone

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))


def _at_exit() -> None:
    """Tell the observers that the interpreter exits."""
    notice_fork()
    with _lock:
        observers = list(_observers)
    for observer in observers:
        observer.at_exit()


# --- The end of the main thread


_finishing = False


def finish_before_exit() -> None:
    """Have `before_exit` of every observer called when the main thread is done, once.

    Where Python lacks its private hook for this, or it is too late, only `at_exit` is called.
    """
    global _finishing
    with _lock:
        if _finishing:
            return
        _finishing = True
    # Private, but `concurrent.futures` rests on it, and `atexit` comes too late: a function that
    # runs in threads, and the look-up of a host, would fail. Without it, `at_exit` does its best.
    register_in_threading = getattr(threading, "_register_atexit", None)
    if register_in_threading is not None:
        try:
            register_in_threading(_before_exit)
        except RuntimeError:  # the main thread is done already
            return


_hurried = False


def hurried() -> bool:
    """Whether a signal has interrupted a wait for the end: nobody waits any more."""
    return _hurried


def _before_exit() -> None:
    """Let the observers finish their work before the interpreter shuts threads down."""
    notice_fork()
    with _lock:
        observers = list(_observers)
    _finish(observers, time.monotonic())
    # Children of `multiprocessing` end by `os._exit`, without the functions of `atexit`.
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        _at_exit()


def _finish(observers: Iterable[ProcessObserver], began: float) -> None:
    """Let observers finish their work; a second Ctrl-C or SIGTERM skips the rest."""
    global _hurried
    for observer in observers:
        if _hurried:
            return
        try:
            observer.before_exit(began)
        except BaseException:  # noqa: BLE001 -- Ctrl-C, or what a handler of the app's raises
            _hurried = True


# --- SIGTERM


_draining: WeakSet[ProcessObserver] = WeakSet()


def drain_on_sigterm(observer: ProcessObserver) -> bool:
    """Give an object time to finish when SIGTERM would end the process at once.

    A handler of the app's stays: its process ends by itself, through `before_exit`. After ours the
    signal ends the process as if there were none.

    Returns:
        Whether SIGTERM is ours now.

    Raises:
        ValueError: outside of the main thread, where no handler can be set.
    """
    import signal  # noqa: PLC0415  # for those who ask for it

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGTERM) is not _on_sigterm:
        return False
    _draining.add(observer)
    return True


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Let the draining observers finish, then end the process by the signal's default."""
    import signal  # noqa: PLC0415

    notice_fork()
    signal.signal(number, _on_second_sigterm)
    observers = list(_draining)
    _finish(observers, time.monotonic())
    signal.signal(number, signal.SIG_DFL)
    for observer in observers:
        observer.at_exit()
    signal.raise_signal(number)


class _SecondSignalError(BaseException):
    """Raised out of a wait for what is pending, after which only the loss is told."""


def _on_second_sigterm(number: int, frame: FrameType | None) -> None:
    """Interrupt the finishing that the first signal began."""
    raise _SecondSignalError


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
atexit.register(_at_exit)
