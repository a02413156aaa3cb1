"""LlamaIndex: capture of RAG calls, evaluators, wrappers, an offline runner, and LLMs as judges.

    RagEvalHandler              observes the process: every RAG call becomes a `RagCall`
    suppress_capture            for what is asked inside, and is no user's question
    EvaluatedQueryEngine, EvaluatedRetriever           the same for one engine or retriever
    TraceEvaluator, GEvalEvaluator, PromptyEvaluator, as_evaluators, results_table
                                evaluator objects for `BatchEvalRunner` and retry engines
    evaluate_query_engine, aevaluate_query_engine      ask questions, evaluate the answers
    LLMJudge                    any LlamaIndex LLM as a judge
    as_model_under_test, as_prompt                     for `rag_eval_integrations.prompt_tests`

Names are resolved when they are first used: the handler must not load what only the others need
(`llama_index.core`, 5 s).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("llama_index_instrumentation") is None:
    raise MissingDependencyError("llama-index-core", "llama-index")

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index.dataset import (
        aevaluate_query_engine,
        evaluate_query_engine,
    )
    from rag_eval_integrations.llama_index.evaluated_query_engine import EvaluatedQueryEngine
    from rag_eval_integrations.llama_index.evaluated_retriever import EvaluatedRetriever
    from rag_eval_integrations.llama_index.evaluating import suppress_capture
    from rag_eval_integrations.llama_index.evaluators import (
        GEvalEvaluator,
        TraceEvaluator,
        as_evaluators,
    )
    from rag_eval_integrations.llama_index.handler import RagEvalHandler
    from rag_eval_integrations.llama_index.judge import LLMJudge
    from rag_eval_integrations.llama_index.prompty_evaluator import PromptyEvaluator
    from rag_eval_integrations.llama_index.results import MetricRow, results_table
    from rag_eval_integrations.llama_index.score_evaluator import (
        RagEvaluationResult,
        ScoreEvaluator,
    )
    from rag_eval_integrations.llama_index.under_test import as_model_under_test, as_prompt

__all__ = [
    "EvaluatedQueryEngine",
    "EvaluatedRetriever",
    "GEvalEvaluator",
    "LLMJudge",
    "MetricRow",
    "PromptyEvaluator",
    "RagEvalHandler",
    "RagEvaluationResult",
    "ScoreEvaluator",
    "TraceEvaluator",
    "aevaluate_query_engine",
    "as_evaluators",
    "as_model_under_test",
    "as_prompt",
    "evaluate_query_engine",
    "results_table",
    "suppress_capture",
]

_HOMES = {
    "EvaluatedQueryEngine": "evaluated_query_engine",
    "EvaluatedRetriever": "evaluated_retriever",
    "GEvalEvaluator": "evaluators",
    "LLMJudge": "judge",
    "MetricRow": "results",
    "PromptyEvaluator": "prompty_evaluator",
    "RagEvalHandler": "handler",
    "RagEvaluationResult": "score_evaluator",
    "ScoreEvaluator": "score_evaluator",
    "TraceEvaluator": "evaluators",
    "aevaluate_query_engine": "dataset",
    "as_evaluators": "evaluators",
    "as_model_under_test": "under_test",
    "as_prompt": "under_test",
    "evaluate_query_engine": "dataset",
    "results_table": "results",
    "suppress_capture": "evaluating",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
