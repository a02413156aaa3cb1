"""RAG evaluation that attaches to LangChain and LlamaIndex apps.

    capture ─▶ RagCall ─▶ sentences ─▶ SentencizedCall ─▶ judge ─▶ Labels ─▶ metrics ─▶ Score
    ─▶ Evaluation ─▶ sinks / report

`RagEvaluator().evaluate_sync(call)` runs the flow for one call, `evaluate_calls` for many. A judge
labels the sentences of a call; a model answers messages, and is asked for labels where it is passed
as judge. Handlers, wrappers and evaluator objects for the two frameworks are in
`rag_eval_integrations.langchain` and `rag_eval_integrations.llama_index`.

Importing this package loads none of its parts: names are resolved when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.background import BackgroundEvaluator
    from rag_eval_integrations.capture import capture_call, record_call
    from rag_eval_integrations.dataset import evaluate_calls
    from rag_eval_integrations.evaluations import Evaluations
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.judges import CascadeJudge, EmbeddedJudge, judge_from
    from rag_eval_integrations.metrics import GEval, PromptyMetric, Trace, diagnose
    from rag_eval_integrations.models import CachedModel, CallableModel, OpenAIModel
    from rag_eval_integrations.records import (
        Capture,
        Document,
        Evaluation,
        Labels,
        RagCall,
        Score,
    )
    from rag_eval_integrations.store import Spool

__version__ = "0.1.0"

__all__ = [
    "BackgroundEvaluator",
    "CachedModel",
    "CallableModel",
    "Capture",
    "CascadeJudge",
    "Document",
    "EmbeddedJudge",
    "Evaluation",
    "Evaluations",
    "GEval",
    "Labels",
    "OpenAIModel",
    "PromptyMetric",
    "RagCall",
    "RagEvaluator",
    "Score",
    "Spool",
    "Trace",
    "capture_call",
    "diagnose",
    "evaluate_calls",
    "judge_from",
    "record_call",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "background": ["BackgroundEvaluator"],
        "capture": ["capture_call", "record_call"],
        "dataset": ["evaluate_calls"],
        "evaluations": ["Evaluations"],
        "evaluator": ["RagEvaluator"],
        "judges": ["CascadeJudge", "EmbeddedJudge", "judge_from"],
        "metrics": ["GEval", "PromptyMetric", "Trace", "diagnose"],
        "models": ["CachedModel", "CallableModel", "OpenAIModel"],
        "records": ["Capture", "Document", "Evaluation", "Labels", "RagCall", "Score"],
        "store": ["Spool"],
    },
)
