"""Data sets: read calls from a file, evaluate them with bounded concurrency, write them in order.

stream    `evaluate_calls`: calls ─▶ evaluations, also in several processes
calls     `read_calls`: files, frames, data sets and lists ─▶ calls, bad rows included
_input    files of JSON lines, other JSON, CSV and Parquet ─▶ their rows, bad ones included
_labels_file  answers of people ─▶ rows of gold
_evals    files of EVALS ─▶ evaluations; _sources: frames, data sets and lists ─▶ their rows
_names    the names of fields in other tools; _paths: where they are
_proposals    the map to try for names that are not known
files     `EvaluationFile`: evaluations ─▶ an EVALS file, also as Parquet
rows      a row ─▶ a call with its recorded labels; scores of recorded labels
_asking   questions ─▶ an app ─▶ calls ─▶ evaluations
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.dataset.calls import read_calls
from rag_eval_integrations.dataset.files import EvaluationFile
from rag_eval_integrations.dataset.rows import (
    Labelled,
    labelled_from,
    score_labelled,
)
from rag_eval_integrations.dataset.stream import evaluate_calls

__all__ = [
    "EvaluationFile",
    "Labelled",
    "Line",
    "evaluate_calls",
    "labelled_from",
    "read_calls",
    "score_labelled",
]

publish(__name__, __all__)
