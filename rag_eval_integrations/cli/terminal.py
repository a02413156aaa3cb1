"""What the commands print with: results to stdout, complaints to stderr, hostile text plain."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_KEPT = {"\n", "\t"}


_WIDTH = 120
"""Columns where nobody is watching: a file or a pipe has no width of its own."""


def stdout() -> Console:
    """Console for results; no markup, so text under test cannot colour or link itself."""
    from rich.console import Console  # noqa: PLC0415  # costs 0.1 s

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH
    return Console(markup=False, highlight=False, emoji=False, width=width)


def complain(text: str) -> None:
    """Print one line to stderr."""
    print(safe(text), file=sys.stderr)  # noqa: T201  # the command's own voice


def safe(text: str) -> str:
    """Replace what a terminal would obey or choke on: control and bidi characters, surrogates."""
    return "".join(
        character
        if character in _KEPT or unicodedata.category(character) not in {"Cc", "Cf", "Cs"}
        else character.encode("ascii", "backslashreplace").decode()
        if ord(character) > 0xFF
        else f"\\x{ord(character):02x}"
        for character in text
    )
