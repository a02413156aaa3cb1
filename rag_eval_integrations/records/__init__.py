"""The records that flow: RagCall → SentencizedCall → Labelling → Score → Evaluation.

All are frozen pydantic models that survive JSON unchanged, hold no NaN, and name the field when
they refuse a value. One line of a file is `to_line(record)`; `from_line` reads it back.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.records._json import (
    SCHEMA,
    JsonObject,
    Record,
    Text,
    check_schema,
    from_line,
    from_object,
    json_copy,
    parse_object,
    to_line,
    whole_text,
)
from rag_eval_integrations.records.call import (
    Capture,
    CaptureStatus,
    Document,
    DocumentsFrom,
    RagCall,
    Sentence,
    Sentences,
    SentencizedCall,
    TraceSource,
    Turn,
)
from rag_eval_integrations.records.labels import (
    Estimate,
    JudgeInfo,
    Labelling,
    Labels,
    SentenceSupport,
    Support,
    UnscoredCode,
    Usage,
)
from rag_eval_integrations.records.mean import Made, Means, RunningMean
from rag_eval_integrations.records.run import Run
from rag_eval_integrations.records.score import (
    EVALS_SCHEMA,
    By,
    Evaluation,
    EvaluationError,
    Score,
    ScoreEstimate,
    ScoreStatus,
)

__all__ = [
    "EVALS_SCHEMA",
    "SCHEMA",
    "By",
    "Capture",
    "CaptureStatus",
    "Document",
    "DocumentsFrom",
    "Estimate",
    "Evaluation",
    "EvaluationError",
    "JsonObject",
    "JudgeInfo",
    "Labelling",
    "Labels",
    "Made",
    "Means",
    "RagCall",
    "Record",
    "Run",
    "RunningMean",
    "Score",
    "ScoreEstimate",
    "ScoreStatus",
    "Sentence",
    "SentenceSupport",
    "Sentences",
    "SentencizedCall",
    "Support",
    "Text",
    "TraceSource",
    "Turn",
    "UnscoredCode",
    "Usage",
    "check_schema",
    "from_line",
    "from_object",
    "json_copy",
    "parse_object",
    "to_line",
    "whole_text",
]

publish(__name__, __all__)
