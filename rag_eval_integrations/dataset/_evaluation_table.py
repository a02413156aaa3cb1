"""Evaluations as a table: a row per call with what queries ask for, and its line of EVALS.

Parquet written by `rag-eval run` and the data sets of `ray.evaluate_dataset` have these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rag_eval_integrations.errors import InputError, MissingDependencyError, SchemaError
from rag_eval_integrations.records import Evaluation, from_line, parse_object

LINE = "evaluation"
"""The column that holds the line of EVALS."""
COLUMNS = (
    "row_key", "id", "failed", "requests", "prompt_tokens", "completion_tokens", "cost_usd", LINE,
)  # fmt: skip
"""The columns beside those of the scores."""


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
        lines: lines of EVALS. One that is not an evaluation has its text, and nulls.
        names: names of scores that have a column even if none of the evaluations has them; other
            scores follow, in the order in which they appear.

    Returns:
        A `pyarrow.Table`; a score without a value is null.
    """
    import pyarrow as pa  # noqa: PLC0415 -- as above

    texts = list(lines)
    rows = [_cells(text) for text in texts]
    try:
        return _table(texts, rows, names)
    except (pa.ArrowException, OverflowError, TypeError):  # an edited line has other types
        rows = [
            row if _is_evaluation(text) else ({}, {}) for text, row in zip(texts, rows, strict=True)
        ]
        return _table(texts, rows, names)


_Cells = tuple[dict[str, Any], dict[str, Any]]
"""Of a row: the columns that all evaluations have, and the values of its scores."""


def _table(texts: list[str], rows: list[_Cells], names: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    kinds = {
        "row_key": pa.string(), "id": pa.string(), "failed": pa.bool_(), "requests": pa.int64(),
        "prompt_tokens": pa.int64(), "completion_tokens": pa.int64(), "cost_usd": pa.float64(),
    }  # fmt: skip
    arrays = {
        name: pa.array([cells.get(name) for cells, _ in rows], kind) for name, kind in kinds.items()
    }
    for name in dict.fromkeys([*names, *(name for _, values in rows for name in values)]):
        held = [values.get(name) for _, values in rows]
        arrays[score_column(name)] = pa.array(held, pa.float64())
    return pa.table(arrays | {LINE: pa.array(texts, pa.string())})


def _cells(line: str) -> _Cells:
    """Take a line's cells: the rest goes at once, or collecting it costs more than the parsing."""
    try:
        row = parse_object(line)
    except InputError:  # an edited line, which readers of EVALS tell
        return {}, {}
    usage = _object(row.get("usage"))
    cells = {
        "row_key": row.get("row_key"), "id": row.get("id"), "failed": row.get("error") is not None,
        "cost_usd": usage.get("cost_usd"),
    }  # fmt: skip
    for name in ("requests", "prompt_tokens", "completion_tokens"):
        cells[name] = usage.get(name, 0)  # which a line leaves out
    scores = _object(row.get("scores"))
    return cells, {name: _object(score).get("value") for name, score in scores.items()}


def _is_evaluation(line: str) -> bool:
    try:
        from_line(Evaluation, line)
    except (ArithmeticError, RecursionError, ValueError, SchemaError):
        return False
    return True


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
