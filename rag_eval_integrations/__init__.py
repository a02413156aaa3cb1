"""RAG evaluation that attaches to LangChain and LlamaIndex apps.

    capture ─▶ RagCall ─▶ sentences ─▶ SentencizedCall ─▶ judge ─▶ Labels ─▶ metrics ─▶ Score
    ─▶ Evaluation ─▶ sinks / report

`RagEvaluator().evaluate_sync(call)` runs the flow for one call, `evaluate_calls` for many. Host
objects are in `rag_eval_integrations.langchain` and `rag_eval_integrations.llama_index`.

Importing this package loads none of its parts: names are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval_integrations.background import BackgroundEvaluator
    from rag_eval_integrations.capture import capture_call, record_call
    from rag_eval_integrations.dataset import evaluate_calls
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.judges import (
        CachingJudge,
        CallableJudge,
        EmbeddedJudge,
        OpenAIJudge,
        judge_from,
    )
    from rag_eval_integrations.labels import CascadeJudge
    from rag_eval_integrations.metrics import GEval, PromptyMetric, Trace, diagnose
    from rag_eval_integrations.records import (
        Capture,
        Document,
        Evaluation,
        Labels,
        RagCall,
        Score,
    )

__version__ = "0.1.0"

__all__ = [
    "BackgroundEvaluator",
    "CachingJudge",
    "CallableJudge",
    "Capture",
    "CascadeJudge",
    "Document",
    "EmbeddedJudge",
    "Evaluation",
    "GEval",
    "Labels",
    "OpenAIJudge",
    "PromptyMetric",
    "RagCall",
    "RagEvaluator",
    "Score",
    "Trace",
    "capture_call",
    "diagnose",
    "evaluate_calls",
    "judge_from",
    "record_call",
]

_HOMES = {
    "BackgroundEvaluator": "background",
    "CachingJudge": "judges",
    "CallableJudge": "judges",
    "Capture": "records",
    "CascadeJudge": "labels",
    "Document": "records",
    "EmbeddedJudge": "judges",
    "Evaluation": "records",
    "GEval": "metrics",
    "Labels": "records",
    "OpenAIJudge": "judges",
    "PromptyMetric": "metrics",
    "RagCall": "records",
    "RagEvaluator": "evaluator",
    "Score": "records",
    "Trace": "metrics",
    "capture_call": "capture",
    "diagnose": "metrics",
    "evaluate_calls": "dataset",
    "judge_from": "judges",
    "record_call": "capture",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
