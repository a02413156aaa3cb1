r"""Tests as models write them in CSV, with the trouble they make. Pure.

Models put a space before the quote, escape quotes with `\`, leave commas unquoted, add fences and
prose. Of 4,732 recorded rows in 172 files 1.5 % have a wrong number of columns. What cannot be
told is dropped and named, never guessed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_eval_integrations.prompt_tests.cleaning import is_refusal, unfenced

_HEADER = re.compile(r"^\W*(?:rule[ _]?id|rule)\W*,\W*test", re.IGNORECASE)
_ROW = re.compile(r'^\s*"?\d{1,3}"?\s*,\s*"?\d{1,3}"?\s*,\s*\S')
_HEADERLESS = ("ruleid", "testid", "testinput", "expectedoutput", "reasoning")
_CELL = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<other>\d*|\[[^\]\n]*\]))[ \t]*(?=,|\s*\Z)\s*?(?=,|\Z)',
)
_NAMES = {
    "ruleid": "ruleid", "rule": "ruleid", "rulenumber": "ruleid",
    "testid": "testid", "test": "testid", "testnumber": "testid",
    "expectedoutput": "expectedoutput", "expected": "expectedoutput", "output": "expectedoutput",
    "reasoning": "reasoning", "reason": "reasoning", "explanation": "reasoning",
    "testinput": "testinput", "input": "testinput", "testcase": "testinput",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """What was read."""

    rows: list[dict[str, str]] = field(default_factory=list)
    """By column name; `ruleid, testid, testinput, expectedoutput, reasoning` in these spellings."""
    columns: tuple[str, ...] = ()
    lost: list[str] = field(default_factory=list)
    """What was left out and why, one a row."""


def read_tests_csv(text: str, inputs: Sequence[str] = ()) -> Table:
    """Read a table of tests.

    Args:
        text: a model's reply, or a file.
        inputs: names of the prompt's inputs, which are columns too.
    """
    if is_refusal(text):
        return Table(lost=[f"the reply is a refusal: {' '.join(text.split())[:80]}"])
    lines = unfenced(text.removeprefix("\ufeff")).splitlines()
    start, headed = _begin(lines)
    if start is None:
        return Table(lost=["no header and no rows with rule, test and input"] if lines else [])
    records = _records("\n".join(lines[start:]).replace('\\"', '""'))
    own = {one.lower(): one for one in inputs}
    columns = _columns(records.pop(0).cells, own) if headed else _HEADERLESS
    table = Table(columns=columns)
    for record in records:
        if not any(cell.strip() for cell in record.cells):
            continue
        row = _fitted(record, columns)
        if row is not None:
            table.rows.append(row)
        elif not record.raw.lstrip().startswith("```"):
            why = f"{len(record.cells)} cells instead of {len(columns)}"
            table.lost.append(f"line {start + record.line}: {why}")
    return table


@dataclass(frozen=True)
class _Record:
    line: int
    cells: list[str]
    raw: str


def _begin(lines: list[str]) -> tuple[int | None, bool]:
    """Find the header; else, where rows come without one, the first row."""
    for number, line in enumerate(lines):
        if _HEADER.match(line):
            return number, True
    rows = [number for number, line in enumerate(lines) if _ROW.match(line)]
    return (rows[0], False) if rows else (None, False)


def _records(source: str) -> list[_Record]:
    csv.field_size_limit(max(csv.field_size_limit(), 10_000_000))
    lines = source.splitlines()
    reader = csv.reader(io.StringIO(source, newline=""), skipinitialspace=True)
    found: list[_Record] = []
    begins = 0
    try:
        for cells in reader:
            raw = "\n".join(lines[begins : reader.line_num])
            found.append(_Record(begins + 1, cells, raw))
            begins = reader.line_num
    except csv.Error:  # a NUL in old Pythons, a cell beyond the limit
        found.append(_Record(begins + 1, ["?"], ""))
    return found


def _columns(names: list[str], own: dict[str, str]) -> tuple[str, ...]:
    columns: list[str] = []
    for name in names:
        bare = name.strip().strip("\"'`*").strip()
        known = _NAMES.get(re.sub(r"[\W_]", "", bare.lower()), bare)
        if bare.lower() in own and known not in ("ruleid", "testid"):
            known = own[bare.lower()]
        columns.append("ruletext" if known in columns and known == "ruleid" else known)
    return tuple(columns)


def _fitted(record: _Record, columns: tuple[str, ...]) -> dict[str, str] | None:
    """Match cells to columns; None where it is not clear which cell is which."""
    cells = [cell.strip() for cell in record.cells]
    while len(cells) > len(columns) and not cells[-1]:
        cells.pop()  # a comma at the end of the line
    if len(cells) > len(columns):
        split = _split_by_hand(record.raw)
        if split is None:
            return None
        cells = split
        if len(cells) > len(columns) and columns[-1] == "reasoning":
            # All cells are quoted or numbers, so none was torn by a comma of its own: these are
            # more cells than columns, and what is over stands with the prose at the end.
            last = len(columns) - 1
            cells = [*cells[:last], " ".join(cells[last:])]
    if len(cells) != len(columns):
        return None
    return dict(zip(columns, cells, strict=True))


def _split_by_hand(raw: str) -> list[str] | None:
    """Split a row into quoted cells, numbers, and lists that a model left unquoted.

    None where there is anything else, whose commas could belong to it or part cells.
    """
    cells: list[str] = []
    position = 0
    while True:
        match = _CELL.match(raw, position)
        if match is None:
            return None
        quoted, other = match["quoted"], match["other"]
        cells.append(quoted.replace('""', '"').strip() if quoted is not None else other.strip())
        position = match.end()
        if position >= len(raw):
            return cells
        position += 1  # the comma
