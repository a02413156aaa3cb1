"""The one look of all tables on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(title: str, *columns: str) -> Table:
    """Table without boxes, which costs the fewest columns; columns that end in `>` are numbers."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # costs 0.1 s
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        name = column.removesuffix(">")
        table.add_column(name, justify="right" if name != column else "left", no_wrap=True)
    return table
