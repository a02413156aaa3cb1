"""LlamaIndex: capture RAG calls, evaluate responses and query engines, use any LLM as a judge.

    RagEvalHandler              observes the process: every RAG call becomes a `RagCall`
    EvaluationEvent, dispatch_evaluation        the scores, as an event of LlamaIndex
    suppress_capture            marks queries that are not a user's question
    EvaluatedQueryEngine, EvaluatedRetriever           capture one engine or one retriever
    TraceEvaluator, GEvalEvaluator, PromptyEvaluator, as_evaluators, results_table
                                evaluator objects for `BatchEvalRunner` and retry engines
    evaluate_query_engine, aevaluate_query_engine      ask questions, evaluate the answers
    LlamaIndexModel                                    any LlamaIndex LLM as a judge's model
    as_model_under_test, as_prompt                     for `rag_eval_integrations.prompt_tests`

Names are resolved on first use, so that the handler does not load the imports of the other names
(`llama_index.core`, 5 s).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("llama_index_instrumentation") is None:
    raise MissingDependencyError("llama-index-core", "llama-index")

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index._recorder import suppress_capture
    from rag_eval_integrations.llama_index.dataset import (
        aevaluate_query_engine,
        evaluate_query_engine,
    )
    from rag_eval_integrations.llama_index.evaluators import (
        GEvalEvaluator,
        PromptyEvaluator,
        TraceEvaluator,
        as_evaluators,
        results_table,
    )
    from rag_eval_integrations.llama_index.handler import (
        EvaluationEvent,
        RagEvalHandler,
        dispatch_evaluation,
    )
    from rag_eval_integrations.llama_index.model import (
        LlamaIndexModel,
        as_model_under_test,
        as_prompt,
    )
    from rag_eval_integrations.llama_index.wrappers import EvaluatedQueryEngine, EvaluatedRetriever

__all__ = [
    "EvaluatedQueryEngine",
    "EvaluatedRetriever",
    "EvaluationEvent",
    "GEvalEvaluator",
    "LlamaIndexModel",
    "PromptyEvaluator",
    "RagEvalHandler",
    "TraceEvaluator",
    "aevaluate_query_engine",
    "as_evaluators",
    "as_model_under_test",
    "as_prompt",
    "dispatch_evaluation",
    "evaluate_query_engine",
    "results_table",
    "suppress_capture",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "_recorder": ["suppress_capture"],
        "dataset": ["aevaluate_query_engine", "evaluate_query_engine"],
        "evaluators": [
            "GEvalEvaluator",
            "PromptyEvaluator",
            "TraceEvaluator",
            "as_evaluators",
            "results_table",
        ],
        "handler": ["EvaluationEvent", "RagEvalHandler", "dispatch_evaluation"],
        "model": ["LlamaIndexModel", "as_model_under_test", "as_prompt"],
        "wrappers": ["EvaluatedQueryEngine", "EvaluatedRetriever"],
    },
)
