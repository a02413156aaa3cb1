"""The records that flow: RagCall → SentencizedCall → Labelling → Score → Evaluation.

All are frozen pydantic models that survive JSON unchanged, hold no NaN, and name the field when
they refuse a value. One line of a file is `to_line(record)`; `from_line` reads it back.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.records._json import (
    from_line,
    to_line,
)
from rag_eval_integrations.records.call import (
    Capture,
    Document,
    RagCall,
    Sentence,
    Sentences,
    SentencizedCall,
    Turn,
)
from rag_eval_integrations.records.labels import (
    JudgeInfo,
    Labelling,
    Labels,
    SentenceSupport,
    Usage,
)
from rag_eval_integrations.records.mean import Means
from rag_eval_integrations.records.run import Run
from rag_eval_integrations.records.score import (
    By,
    Evaluation,
    EvaluationError,
    Score,
)

__all__ = [
    "By",
    "Capture",
    "Document",
    "Evaluation",
    "EvaluationError",
    "JudgeInfo",
    "Labelling",
    "Labels",
    "Means",
    "RagCall",
    "Run",
    "Score",
    "Sentence",
    "SentenceSupport",
    "Sentences",
    "SentencizedCall",
    "Turn",
    "Usage",
    "from_line",
    "to_line",
]

publish(__name__, __all__)
