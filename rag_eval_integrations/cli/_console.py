"""The console for tables on stdout, and the width that they need."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement

from rag_eval_integrations._visible import hanging, visible
from rag_eval_integrations.cli._terminal import discard_stdout, escape_unencodable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_WIDTH = 120
"""Columns of output to a file or pipe, which have no width of their own."""
_UNBOUNDED = 10_000
"""Width, in columns, at which a table is measured, so that no cell is folded."""


class _EscapingConsole(Console):
    """Console that escapes control characters in everything that is printed."""

    def print(self, *objects: object, **options: Any) -> None:
        """Print objects, with the further lines of a text indented."""
        escaped = [hanging(item) if isinstance(item, str) else item for item in objects]
        super().print(*escaped, **options)

    def on_broken_pipe(self) -> None:
        """Drop further output when its reader has gone (`| head`); the command goes on."""
        self.quiet = True
        discard_stdout()

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a text with its control characters escaped."""
        return super().render_str(visible(text), **options)


def stdout(*, to_stderr: bool = False) -> Console:
    """Make the console for tables, in which a text cannot act, add colours or forge lines.

    From then on, both streams replace what their encoding lacks. The width is fixed unless the
    stream is a terminal or `COLUMNS` is set.

    Args:
        to_stderr: print to stderr, because stdout holds rows.
    """
    escape_unencodable()
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return _EscapingConsole(
        markup=False, highlight=False, emoji=False, width=width, stderr=to_stderr
    )


def width_of(table: Table, console: Console) -> int:
    """Return the columns that a table needs so that no cell is folded or cut."""
    return Measurement.get(console, console.options.update(width=_UNBOUNDED), table).maximum
