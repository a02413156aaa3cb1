"""LangChain: capture of RAG calls, evaluator objects, and any chat model as a judge.

Three ways to capture: `RagEvalCallbackHandler` as a callback; `evaluated(chain, target)`, which
behaves as the chain itself; `EvaluatedRetriever`. Evaluator objects for LangSmith and openevals are
views on one `RagEvaluator`: `TraceEvaluator`, `GEvalEvaluator`, `as_evaluators`. `evaluate_dataset`
runs a chain over examples; nothing leaves the machine.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("langchain_core") is None:
    raise MissingDependencyError("langchain-core", "langchain")

from rag_eval_integrations._lazy import lazy, publish
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler

if TYPE_CHECKING:
    from rag_eval_integrations.langchain.dataset import aevaluate_dataset, evaluate_dataset
    from rag_eval_integrations.langchain.evaluators import (
        GEvalEvaluator,
        LangSmithFeedback,
        MetricEvaluator,
        TraceEvaluator,
        as_evaluators,
    )
    from rag_eval_integrations.langchain.evaluators.metrics import PromptyEvaluator
    from rag_eval_integrations.langchain.model import LangChainModel
    from rag_eval_integrations.langchain.under_test import as_model_under_test, as_prompt
    from rag_eval_integrations.langchain.wrappers import (
        EvaluatedRetriever,
        EvaluatedRunnable,
        evaluated,
    )

__all__ = [
    "EvaluatedRetriever",
    "EvaluatedRunnable",
    "GEvalEvaluator",
    "LangChainModel",
    "LangSmithFeedback",
    "MetricEvaluator",
    "PromptyEvaluator",
    "RagEvalCallbackHandler",
    "TraceEvaluator",
    "aevaluate_dataset",
    "as_evaluators",
    "as_model_under_test",
    "as_prompt",
    "evaluate_dataset",
    "evaluated",
]

# Capture by callback must not load what only the others need: a second of LangChain's imports.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "LangChainModel": "model",
        "EvaluatedRetriever": "wrappers",
        "EvaluatedRunnable": "wrappers",
        "GEvalEvaluator": "evaluators",
        "LangSmithFeedback": "evaluators",
        "MetricEvaluator": "evaluators",
        "PromptyEvaluator": "evaluators.metrics",
        "TraceEvaluator": "evaluators",
        "aevaluate_dataset": "dataset",
        "as_evaluators": "evaluators",
        "as_model_under_test": "under_test",
        "as_prompt": "under_test",
        "evaluate_dataset": "dataset",
        "evaluated": "wrappers",
    },
)

publish(__name__, __all__)
