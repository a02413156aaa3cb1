"""Texts of other people in Markdown and CSV: shown as they are, whatever a reader would make of it.

Markdown:

Plain words stay plain. Anything else becomes a code span, the one place in which neither Markdown
nor GitHub reads anything: emphasis, links, HTML, `@names`, `#numbers`, formulas, emoji. A reader of
the source sees the text without escapes; only a table needs them, for its pipes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from rag_eval_integrations._visible import one_line, visible

Cell = str | int | float | None
Row = Mapping[str, Cell]

# --- Markdown


_LETTERS = r"[0-9A-Za-z\u0080-\U0010ffff]+"
# It begins at the first mark only: a search at each of many would take quadratic time.
_WORD = re.compile(
    rf"""(?<!["'(])["'(]*+(?:\d+\.\d+|{_LETTERS}(?:[',/-]{_LETTERS})*)%?["').,;:!?]*|%"""
)
"""What has no mark that Markdown reads: words with the usual marks around them, and numbers."""
_READ = re.compile(r"\A\d+[.)](?:\s|\Z)|\b[A-Z]+-\d|\b[0-9a-fA-F]{7,40}\b")
"""Words that are read nevertheless: a list's number, and GitHub's links to issues and commits."""
# It begins at the first backslash only, for the same reason.
_PIPE = re.compile(r"((?<!\\)\\+\|)")


def inline(text: str, *, in_table: bool = False, most: int | None = 500) -> str:
    """Write a text on one line so that Markdown shows it as it is; as code where it would not.

    Args:
        text: the text.
        in_table: whether it is a cell of a table, whose pipes have to be escaped.
        most: number of characters from which on it is cut; None for all.
    """
    line = one_line(text, most)
    if all(map(_WORD.fullmatch, line.split())) and not _READ.search(line):
        return line
    if not in_table:
        return _code(line)
    # A backslash before a pipe cannot stand in a code span of a table: it escapes the pipe.
    return "".join(
        "\\" * (2 * len(part) - 1) + "|"
        if _PIPE.fullmatch(part)
        else _code(part).replace("|", "\\|")
        for part in _PIPE.split(line)
        if part
    )


def _code(text: str) -> str:
    """Write a code span, between more backticks than there are in a row in the text."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    # One space on each side is not shown; without it a backtick would belong to the fence.
    ends = {text[0], text[-1]}
    pad = " " if "`" in ends or (ends == {" "} and text.strip(" ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def paragraphs(text: str) -> str:
    """Write every line of a text as a Markdown paragraph that shows it as it is."""
    lines = (inline(line, most=None) for line in text.splitlines() if line.strip())
    return "\n\n".join(lines) + "\n"


def named_rows(table: Sequence[Sequence[str]]) -> list[Row]:
    """Return the rows of a table as mappings, by the headings in its first row."""
    names, *rows = table
    return [dict(zip(names, row, strict=True)) for row in rows]


def markdown_table(rows: Sequence[Row]) -> list[str]:
    """Write rows as the lines of a table, with the names of the first one as headings."""
    if not rows:
        return ["(none)"]
    names = list(rows[0])
    lines = [_markdown_row(names), "|" + " --- |" * len(names)]
    return lines + [_markdown_row(map(row.get, names)) for row in rows]


def _markdown_row(cells: Iterable[Cell]) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(cell: Cell) -> str:
    """Write a cell of a Markdown table: floats with one decimal, None as an empty cell."""
    if cell is None:
        return ""
    return f"{cell:.1f}" if isinstance(cell, float) else inline(str(cell), in_table=True)


# --- CSV


FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Signs that begin a formula, also in full width; white space in front of them does not count."""


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write a table as CSV; no cell or heading is read as a formula by a spreadsheet."""
    return "".join(csv_pieces(names, rows))


def csv_pieces(names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Yield a table as CSV, line by line; see `csv_text`."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    for row in chain([names], rows):
        writer.writerow(map(_csv_cell, row))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _csv_cell(cell: Cell) -> str:
    """Write a cell of a CSV file, on one line and not as a formula."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() else repr(cell)
    if not isinstance(cell, str):
        return str(cell)
    text = visible(cell).replace("\n", "\\n")
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
