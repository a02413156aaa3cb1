"""Data sets: read calls from a file, evaluate them with bounded concurrency, write them in order.

stream    `evaluate_calls`: calls ─▶ evaluations
calls     `read_calls`: files, frames, data sets and lists ─▶ calls, bad rows included
_input    `read_lines`: a file of rows ─▶ its lines, bad ones included
_formats  JSONL, a JSON array (_json_array), CSV, Parquet ─▶ rows
_reader   rows ─▶ calls; _shapes: names of fields in other tools; _values, _plain: what they hold
files     `EvaluationFile`: evaluations ─▶ an EVALS file
_storage  its lines, plain or gzipped (_zipped); _parquet_parts: a folder of Parquet, as lines again
          by _parquet_lines; _waiting: lines before their turn
rows      a line of a file ─▶ a call with its recorded labels; scores of recorded labels
_asking   questions ─▶ an app ─▶ calls ─▶ evaluations
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.dataset._line import Line
from rag_eval_integrations.dataset.calls import read_calls
from rag_eval_integrations.dataset.files import EvaluationFile
from rag_eval_integrations.dataset.rows import (
    Labelled,
    Row,
    call_from,
    labelled_from,
    row_from,
    score_labelled,
)
from rag_eval_integrations.dataset.stream import EvaluationStream, evaluate_calls

__all__ = [
    "EvaluationFile",
    "EvaluationStream",
    "Labelled",
    "Line",
    "Row",
    "call_from",
    "evaluate_calls",
    "labelled_from",
    "read_calls",
    "read_lines",
    "row_from",
    "score_labelled",
]

publish(__name__, __all__)
