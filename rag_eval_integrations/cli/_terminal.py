"""Terminal of all commands: results on stdout, messages on stderr, escaped; what Ctrl-C ends."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from rag_eval_integrations._visible import counted, hanging, visible


def print_stderr(text: str) -> None:
    """Print one message to stderr; its further lines are indented.

    A stderr that cannot be written, such as a log on a full disk, ends no run: the exit code still
    says what happened.
    """
    with suppress(OSError):
        print(_wrapped(hanging(text), sys.stderr), file=sys.stderr)  # noqa: T201  # our own output


def stderr_printer(source: object) -> Callable[[str], None]:
    """Return a function that prints messages about a file to stderr, its name in front."""
    return lambda words: print_stderr(f"{source}: {words}")


def print_stdout(text: str) -> None:
    """Print one result to stdout; its further lines are indented."""
    write_stdout(f"{_wrapped(hanging(text), sys.stdout)}\n")


def account() -> str:
    """Return the name of the user's account; empty for one without a name."""
    import getpass  # noqa: PLC0415 -- two commands ask

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _wrapped(text: str, stream: TextIO) -> str:
    """Wrap a text at the width of a terminal; in a file or pipe a line stays a line."""
    width = shutil.get_terminal_size().columns
    if len(text) <= width or not stream.isatty():
        return text
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    """Fold a line between words, unless it is a command, which is to be copied."""
    content = line.lstrip()
    if content.startswith("rag-eval "):
        return line
    indent = " " * (len(line) - len(content) + 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def write_stdout(text: str) -> None:
    """Write a text to stdout, with control characters escaped."""
    escape_unencodable()
    try:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Redirect stdout to the null device when its reader has gone, so that nothing fails later."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def open_standard_streams() -> None:
    """Open the standard streams that are closed (`>&-`) on the null device.

    Otherwise Python has None for them, and the next file that is opened gets their number: OUT
    could be stdout, and hold whatever is printed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest free number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the end


def escape_unencodable() -> None:
    """Have stdout escape characters that its encoding lacks, as stderr does."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


# --- Ctrl-C, SIGTERM and SIGHUP: say what is kept and how to go on; exit with 130, 143 or 129


INTERRUPTED = 128 + signal.SIGINT
"""Exit codes are 128 and the number of the signal, as shells report it."""
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


_AGAIN = 5.0
"""Seconds after which a signal that comes again is no more of the same, but a wish that was lost:
Python ignores what is raised within a finaliser. Closing files takes less."""


class Signals:
    """Handler of the signals that end a command, with the exit code."""

    def __init__(self) -> None:
        self.code = INTERRUPTED
        self._last: float | None = None

    @property
    def ended(self) -> bool:
        """Whether a signal has come."""
        return self._last is not None

    def end(self, number: int, frame: FrameType | None) -> None:
        """End the command as Ctrl-C does, so that it closes its files and says what is kept.

        A second signal within seconds is ignored: it would interrupt just that.
        """
        now = time.monotonic()
        if self._last is not None and now < self._last + _AGAIN:
            return
        self._last = now
        self.code = 128 + number
        raise KeyboardInterrupt


@contextmanager
def signals_as_ctrl_c() -> Iterator[Signals]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, unless ignored or another thread runs the command."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signals.end)
    try:
        yield signals
    finally:
        # Once it has ended the command, a second one would only keep Python from removing its
        # temporary files.
        after = signal.SIG_IGN if signals.ended else signal.SIG_DFL
        for number in ours:
            signal.signal(number, after)


@contextmanager
def kept(says: Callable[[], str], *, add: str = "", drop: str = "") -> Iterator[None]:
    """If a command ends early, print what is kept and the command line that continues.

    That is on Ctrl-C, SIGTERM or SIGHUP, and where a file cannot be written any more.

    Args:
        says: returns what is kept; empty if nothing is, and there is nothing to go on from.
        add: option that the command line needs to go on.
        drop: option that it must not have then.
    """
    try:
        yield
    except (KeyboardInterrupt, OSError) as end:  # such as a full disk; its message follows
        interrupted = isinstance(end, KeyboardInterrupt)
        if interrupted:
            _await_cancelled()
            end.args = ("what is kept is told",)
        words = ""
        with suppress(OSError):  # the folder is gone, for example: why the command ends is told
            words = says()
        if interrupted and sys.stderr.isatty():
            print_stderr("")  # after the ^C that the terminal shows
        if words:
            failed = f"FAILED: {words} Once that is mended, go on with:"
            print_stderr(f"Interrupted. {words} Go on with:" if interrupted else failed)
            command = [word for word in sys.argv[1:] if word != drop]
            command += [add] if add and add not in command else []
            print_stderr(f"  {shlex.join(['rag-eval', *command])}")
        elif interrupted:
            print_stderr("Interrupted before anything was done; nothing is kept.")
        raise


def kept_words(count: int, singular: str, plural: str, path: Path | None) -> str:
    """Say how many records are kept in which file."""
    return f"{counted(count, f'{singular} is', f'{plural} are')} kept in {path}."


def _await_cancelled() -> None:
    """Wait until cancelled work has stopped writing."""
    from asyncio import sleep  # noqa: PLC0415  # costs 40 ms

    from rag_eval_integrations import _loop  # noqa: PLC0415

    _loop.run(sleep(0))


def end_now(code: int) -> NoReturn:
    """End the process now, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, RuntimeError):  # a signal may come amid a write, which is on its way
            stream.flush()
    os._exit(code)
