"""Files with a row per call, CSV and Parquet, in flat memory; with the data frame's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import BinaryIO

from rag_eval_integrations.errors import MissingDependencyError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._cells import csv_pieces
from rag_eval_integrations.report._figures import Column, row_of

_GROUP = 4096
"""Rows of a group of a Parquet file: as many are held in memory."""


def csv_of(evaluations: Iterable[Evaluation], columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield the pieces of a CSV file; a missing value is an empty cell.

    Cells are visible on one line, and none is read as a formula.
    """
    return csv_pieces(list(columns), (row_of(one, columns) for one in evaluations))


def check_parquet() -> None:
    """Check that Parquet can be written, before anything is read.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415 -- large; only whoever writes it needs it
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "parquet") from error


def write_parquet(
    evaluations: Iterable[Evaluation], columns: Mapping[str, Column], out: BinaryIO
) -> None:
    """Write a Parquet file; a missing value is null, and texts are as they are.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import parquet as pq  # noqa: PLC0415

    kinds = {"float64": pa.float64(), "int64": pa.int64(), None: pa.string()}
    schema = pa.schema([(name, kinds[column.dtype]) for name, column in columns.items()])
    rows = (row_of(one, columns) for one in evaluations)
    with pq.ParquetWriter(out, schema, compression="zstd") as file:
        while group := list(islice(rows, _GROUP)):
            cells = zip(*group, strict=True)
            arrays = [pa.array(held, kind) for held, kind in zip(cells, schema.types, strict=True)]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))
