"""Terminal output of all commands: results on stdout, messages on stderr, escaped."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from rag_eval_integrations._visible import hanging, visible


def print_stderr(text: str) -> None:
    """Print one message to stderr; its further lines are indented.

    A stderr that cannot be written, such as a log on a full disk, ends no run: the exit code still
    says what happened.
    """
    with suppress(OSError):
        print(hanging(text), file=sys.stderr)  # noqa: T201  # the program's own output


def print_stdout(text: str) -> None:
    """Print one result to stdout, on one line of whatever width; its further lines are indented."""
    write_stdout(f"{hanging(text)}\n")


def write_stdout(text: str) -> None:
    """Write a report in a file format to stdout, as it is but for characters that act."""
    encodable()
    try:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
    except BrokenPipeError:
        without_stdout()


def without_stdout() -> None:
    """Send stdout, whose reader has gone, nowhere, so that nothing fails when Python ends."""
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


def encodable() -> None:
    """Escape what the encoding of stdout lacks, as stderr does, instead of failing."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
