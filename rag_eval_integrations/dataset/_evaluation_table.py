"""Evaluations as a table: a row per call with what queries ask for, and its line of EVALS.

Parquet written by `rag-eval run` and the data sets of `ray.evaluate_dataset` have these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

from rag_eval_integrations.errors import MissingDependencyError
from rag_eval_integrations.records import parse_object

LINE = "evaluation"
"""The column that holds the line of EVALS."""
COLUMNS = (
    "row_key", "id", "failed", "requests", "prompt_tokens", "completion_tokens", "cost_usd", LINE,
)  # fmt: skip
"""The columns beside those of the scores."""
_GROUP = 512
"""Rows of a group of a Parquet file: as many are held in memory."""


def check_pyarrow() -> None:
    """Check that there is what reads and writes Parquet.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415 -- large; only whoever has Parquet needs it
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "parquet") from error


def score_column(name: str) -> str:
    """Return the column of a score: its name, or `score:NAME` where another column has it."""
    return f"score:{name}" if name in COLUMNS else name


def table_of(lines: Iterable[str], names: Sequence[str] = ()) -> Any:
    """Make the table of some evaluations.

    Args:
        lines: lines of EVALS.
        names: names of scores that have a column even if none of the evaluations has them; other
            scores follow, in the order in which they appear.

    Returns:
        A `pyarrow.Table`; a score without a value is null.
    """
    import pyarrow as pa  # noqa: PLC0415 -- as above

    texts = list(lines)
    rows, scores = [], []
    for text in texts:  # a parsed row goes at once, or collecting it costs more than the parsing
        row = parse_object(text)
        usage = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0, **row.get("usage", {})}
        failed = row.get("error") is not None
        rows.append({"row_key": row["row_key"], "id": row["id"], "failed": failed, **usage})
        scores.append({name: score.get("value") for name, score in row["scores"].items()})
    kinds = {
        "row_key": pa.string(), "id": pa.string(), "failed": pa.bool_(), "requests": pa.int64(),
        "prompt_tokens": pa.int64(), "completion_tokens": pa.int64(), "cost_usd": pa.float64(),
    }  # fmt: skip
    arrays = {name: pa.array([row.get(name) for row in rows], kinds[name]) for name in kinds}
    for name in dict.fromkeys([*names, *(name for values in scores for name in values)]):
        arrays[score_column(name)] = pa.array([values.get(name) for values in scores], pa.float64())
    return pa.table(arrays | {LINE: pa.array(texts, pa.string())})


def write_parquet(lines: Callable[[], Iterator[bytes]], out: BinaryIO) -> None:
    """Write evaluations as a Parquet file, in memory of their columns without the lines.

    Args:
        lines: gives the lines of EVALS; called twice, because the columns are those of all rows.
        out: the file.
    """
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import parquet as pq  # noqa: PLC0415

    tables = [table_of(group).drop_columns([LINE]) for group in _groups(lines())]
    cells = pa.concat_tables(tables, promote_options="default")
    schema = cells.schema.append(pa.field(LINE, pa.string()))
    with pq.ParquetWriter(
        out, schema, compression="zstd", use_dictionary=False, write_statistics=cells.column_names
    ) as file:
        start = 0
        for group in _groups(lines()):
            columns = cells.slice(start, len(group)).columns
            file.write_table(pa.table([*columns, pa.array(group, pa.string())], schema=schema))
            start += len(group)


def _groups(lines: Iterator[bytes]) -> Iterator[list[str]]:
    texts = (line.decode("ascii") for line in lines)
    while group := list(islice(texts, _GROUP)):
        yield group
