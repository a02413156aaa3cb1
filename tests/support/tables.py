"""Rows as the bytes of a CSV or Parquet file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest


def as_csv(rows: list[dict[str, Any]], cell: Callable[[object], str] = json.dumps) -> bytes:
    """Rows with the same fields; lists are written as JSON or in another notation."""
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(rows[0])
    for row in rows:
        table.writerow(cell(value) if isinstance(value, list) else value for value in row.values())
    return out.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()
