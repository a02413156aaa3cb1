"""LangChain: capture RAG calls, evaluate runs and data sets, use any chat model as a judge.

There are three ways to capture: `RagEvalCallbackHandler` as a callback; `evaluated(chain, target)`,
which behaves like the chain itself; and `EvaluatedRetriever`. `TraceEvaluator`, `GEvalEvaluator`
and `as_evaluators` make evaluator objects for LangSmith and openevals, views on one `RagEvaluator`.
`evaluate_dataset` runs a chain over examples, and sends nothing to LangSmith.
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
        PromptyEvaluator,
        TraceEvaluator,
        as_evaluators,
    )
    from rag_eval_integrations.langchain.model import LangChainModel, as_model_under_test, as_prompt
    from rag_eval_integrations.langchain.wrappers import (
        EvaluatedRetriever,
        evaluated,
    )

__all__ = [
    "EvaluatedRetriever",
    "GEvalEvaluator",
    "LangChainModel",
    "LangSmithFeedback",
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

# Capture by callback must not load the imports of the other names: a second of LangChain.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "dataset": ["aevaluate_dataset", "evaluate_dataset"],
        "evaluators": [
            "GEvalEvaluator",
            "LangSmithFeedback",
            "PromptyEvaluator",
            "TraceEvaluator",
            "as_evaluators",
        ],
        "model": ["LangChainModel", "as_model_under_test", "as_prompt"],
        "wrappers": ["EvaluatedRetriever", "evaluated"],
    },
)

publish(__name__, __all__)
