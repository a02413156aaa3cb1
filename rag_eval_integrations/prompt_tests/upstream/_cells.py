"""Readers for cells of PromptPex's rows, whose types differ between versions and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import whole_text
from rag_eval_integrations.records._json import input_error, is_finite, shown

Row = Mapping[str, Any]


_WHOLE = re.compile(r"-?[0-9]{1,9}")
_MOST = 10**9


def text(row: Row, name: str) -> str:
    """Read a text; empty if the cell is missing."""
    value = row.get(name)
    return "" if value is None else whole_text(value if isinstance(value, str) else _shown(value))


def _shown(value: object) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # 5,000 digits; 1,000 lists in lists
        return f"<{type(value).__name__} that cannot be shown>"


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
        return int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < _MOST else None  # NaN and infinity are not below either


def number(row: Row, name: str) -> float | None:
    """Read a finite number; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if is_finite(value) else None


def why_not(error: Exception) -> str:
    """Say why a row is not usable; names the field where it is known."""
    if isinstance(error, ValidationError):
        return str(input_error(error))
    return f"is not usable: {type(error).__name__}: {words_of(error)}"


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
