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
    rows = [_parsed(text) for text in texts]
    try:
        return _table(texts, rows, names)
    except (pa.ArrowException, OverflowError, TypeError):  # an edited line has other types
        rows = [row if _is_evaluation(text) else {} for text, row in zip(texts, rows, strict=True)]
        return _table(texts, rows, names)


def _table(texts: list[str], rows: list[dict[str, Any]], names: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    usages = [_object(row.get("usage")) for row in rows]
    scores = [_object(row.get("scores")) for row in rows]
    columns: dict[str, tuple[list[Any], Any]] = {
        "row_key": ([row.get("row_key") for row in rows], pa.string()),
        "id": ([row.get("id") for row in rows], pa.string()),
        "failed": ([row.get("error") is not None if row else None for row in rows], pa.bool_()),
    }
    for name in ("requests", "prompt_tokens", "completion_tokens"):  # 0 is left out of a line
        counts = [one.get(name, 0) if row else None for row, one in zip(rows, usages, strict=True)]
        columns[name] = (counts, pa.int64())
    columns["cost_usd"] = ([usage.get("cost_usd") for usage in usages], pa.float64())
    for name in dict.fromkeys([*names, *(name for one in scores for name in one)]):
        values = [_object(one.get(name)).get("value") for one in scores]
        columns[score_column(name)] = (values, pa.float64())
    columns[LINE] = (texts, pa.string())
    return pa.table({name: pa.array(*column) for name, column in columns.items()})


def _parsed(line: str) -> dict[str, Any]:
    try:
        return parse_object(line)
    except InputError:  # an edited line, which readers of EVALS tell
        return {}


def _is_evaluation(line: str) -> bool:
    try:
        from_line(Evaluation, line)
    except (ArithmeticError, RecursionError, ValueError, SchemaError):
        return False
    return True


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
