"""Many calls at once: read a file, evaluate with bounded concurrency, write the file in order.

`evaluate_calls` is the stream; `read_calls`, `EvaluationFile`, `labelled_from` and
`score_labelled` are what the command line puts around it.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.dataset.files import EvaluationFile, Line, read_calls, read_lines
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
