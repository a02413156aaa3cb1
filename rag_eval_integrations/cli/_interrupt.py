"""Ctrl-C and SIGTERM: say what is kept and how to go on, and exit with 130 or 143."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes: 128 and the number of the signal, as shells report it."""


class Signals:
    """The exit code of a command that a signal ended."""

    def __init__(self) -> None:
        self.code = INTERRUPTED

    def terminate(self, number: int, frame: FrameType | None) -> None:
        """End the command as Ctrl-C does, so that it closes its files and says what is kept."""
        self.code = TERMINATED
        raise KeyboardInterrupt


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[Signals]:
    """Treat SIGTERM like Ctrl-C, unless it is ignored or another thread runs the command."""
    signals = Signals()
    before = signal.getsignal(signal.SIGTERM)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.SIG_DFL:
        yield signals
        return
    signal.signal(signal.SIGTERM, signals.terminate)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def kept(says: Callable[[], str], *, add: str = "", drop: str = "") -> Iterator[None]:
    """On Ctrl-C or SIGTERM, print what is kept and the command line that goes on from there.

    Args:
        says: returns what is kept; empty if nothing is, and there is nothing to go on from.
        add: option that the command line needs to go on.
        drop: option that it must not have then.
    """
    try:
        yield
    except KeyboardInterrupt:
        from rag_eval_integrations.cli._terminal import print_stderr  # noqa: PLC0415  # 0.1 s

        _settle()
        words = says()
        if sys.stderr.isatty():
            print_stderr("")  # after the ^C that the terminal shows
        if words:
            command = [word for word in sys.argv[1:] if word != drop]
            command += [add] if add and add not in command else []
            print_stderr(f"Interrupted. {words} Go on with:")
            print_stderr(f"  {shlex.join(['rag-eval', *command])}")
        else:
            print_stderr("Interrupted before anything was done; nothing is kept.")
        raise


def kept_words(count: int, one: str, many: str, path: Path | None) -> str:
    """Say how many records are kept in which file."""
    return f"{count} {one if count == 1 else many} {'is' if count == 1 else 'are'} kept in {path}."


def _settle() -> None:
    """Wait until the work that was cancelled has stopped writing."""
    from asyncio import sleep  # noqa: PLC0415  # costs 40 ms

    from rag_eval_integrations import _loop  # noqa: PLC0415

    _loop.run(sleep(0))
