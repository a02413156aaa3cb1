"""Files whose rows may be EVALS: lines, Parquet, and folders of Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._input import Format, Line, Numbered
from rag_eval_integrations.dataset._labels_file import is_whole, whole_rows
from rag_eval_integrations.dataset._names import KNOWN
from rag_eval_integrations.dataset._paths import folded
from rag_eval_integrations.dataset.rows import labelled_from, score_labelled
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, from_line
from rag_eval_integrations.records._json import from_object
from rag_eval_integrations.records.score import EVALS_SCHEMA
from rag_eval_integrations.sentences import Punkt


@contextmanager
def opened_rows(
    path: str | os.PathLike[str],
    parse: Callable[[bytes], Any] = _input.row_object,
    *,
    known: Iterable[str] = (),
    evaluations: bool = False,
) -> Iterator[tuple[Format, Numbered]]:
    """Open a file of any format, or a folder of Parquet files in the order of their names.

    Args:
        path: the file or folder; of Parquet with a column `evaluation`, this is read.
        parse: reads a line of JSON.
        known: further names of fields, by which the head of a table is known.
        evaluations: refuse Parquet without this column.

    Yields:
        The format, and the rows.

    Raises:
        ConfigurationError, OSError: as for `_input.open_lines`; a folder without Parquet.
        MissingDependencyError: it is Parquet, and pyarrow is not installed.
    """
    place = Path(os.fspath(path))
    if not place.is_dir():
        with _input.open_lines(path) as stream:
            form = _input.format_of(place.name, stream, known)
            yield (
                form,
                _input.rows_of(
                    stream, form, _input.LONGEST_ROW, _input.logger.info, parse, evaluations
                ),
            )
        return
    parts = _input.parts_of(place)
    if not parts:
        why = "is a folder, not a file of rows, and holds no Parquet"
        raise ConfigurationError("path", str(place), why)
    yield "parquet", _input.parquet_rows(parts, parse, evaluations)


def read_evaluations(path: str | os.PathLike[str]) -> Iterator[Line[Evaluation]]:
    """Read EVALS: lines, a Parquet file or a folder of Parquet; errors as for `opened_rows`.

    Calls that people have labelled whole are scored by their labels.
    """
    with opened_rows(path, evaluations=True) as (form, rows):
        yield from _input.lines_from(whole_rows(rows), evaluation_from, _input.unit_of(form), path)


def evaluation_from(content: dict[str, Any]) -> Evaluation:
    """Read a parsed row of EVALS, or score a person's labels of a whole call.

    Raises:
        InputError: a field is missing or wrong, or the row is a call.
    """
    if is_whole(content):
        return score_labelled(labelled_from(content, Punkt()), [Trace()])
    if "scores" not in content and not KNOWN.isdisjoint(map(folded, content)):
        why = "a call, not an evaluation: `rag-eval run CALLS -o EVALS` makes evaluations of calls"
        raise InputError(f"{why}, and `rag-eval score` of labelled rows")
    return from_object(Evaluation, content)


def evaluations_at(path: str | os.PathLike[str], numbers: Collection[int]) -> Numbered:
    """Yield the evaluations in some rows of EVALS, each with its row number."""
    with opened_rows(path, bytes, evaluations=True) as (_, rows):
        wanted = ((number, row) for number, row in rows if number in numbers)
        for number, row in islice(wanted, len(numbers)):
            if isinstance(row, bytes) and b'"who"' in row:  # perhaps people's labels
                row = _input.row_object(row)
            is_read = isinstance(row, dict)
            yield number, evaluation_from(row) if is_read else from_line(Evaluation, row)


_ROW = f'{{"schema":{EVALS_SCHEMA},'.encode("ascii")
"""The beginning of every row."""


def is_torn(line: bytes) -> bool:
    """Tell whether a line is the unfinished row of a killed run."""
    return not line.endswith(b"\n") and (line.startswith(_ROW) or _ROW.startswith(line))
