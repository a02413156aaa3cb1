"""Forks and the end of the process reach every registered object, each time once."""

from __future__ import annotations

import os
import threading

import pytest
from forked import forked

from rag_eval_integrations import _process


class Recording(_process.ProcessObserver):
    """Records what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        _process.register(self)

    def before_fork(self) -> None:
        self.calls.append("before")

    def after_fork_in_parent(self) -> None:
        self.calls.append("parent")

    def after_fork(self) -> None:
        self.calls.append("child")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
def test_each_side_of_a_fork_is_notified() -> None:
    """Before it, then in the parent or in the child; also while other threads register objects."""
    observer = Recording()
    done = threading.Event()

    def register_more() -> None:
        while not done.is_set():
            Recording()

    thread = threading.Thread(target=register_more)
    thread.start()
    try:
        for _ in range(20):
            observer.calls.clear()
            # The registry can be used in the child.
            child = forked(lambda: (Recording(), *observer.calls)[1:])

            assert child.printed() == "('before', 'child')"
            assert observer.calls == ["before", "parent"]
    finally:
        done.set()
        thread.join(10)
