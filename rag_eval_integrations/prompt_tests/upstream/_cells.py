"""Readers for cells of PromptPex's rows, whose types differ between versions and files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records._json import shown

Row = Mapping[str, Any]


def text(row: Row, name: str) -> str:
    """Read a text; empty if the cell is missing."""
    value = row.get(name)
    return "" if value is None else value if isinstance(value, str) else str(value)


def flag(row: Row, name: str) -> bool | None:
    """Read a Boolean; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def whole(row: Row, name: str) -> int | None:
    """Read a whole number; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, str):
        value = value.strip()
        return int(value) if value.lstrip("-").isdigit() and len(value) < 10 else None
    if isinstance(value, bool):
        return None
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else None


def number(row: Row, name: str) -> float | None:
    """Read a finite number; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def rows_of(content: object, what: str) -> list[dict[str, Any]]:
    """Check that content is a list of objects, and return it.

    Args:
        content: JSON from a file.
        what: the file's name, for error messages.

    Raises:
        InputError: for anything else; names the row.
    """
    if not isinstance(content, list):
        raise InputError(f"{what} should be a list of objects, not {shown(content)}")
    for position, row in enumerate(content):
        if not isinstance(row, dict):
            raise InputError(f"should be an object, not {shown(row)}", field=f"{what}[{position}]")
    return content
