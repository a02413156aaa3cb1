"""Models: what answers messages. A judge or a metric asks one.

`OpenAIModel` (any OpenAI-compatible endpoint), `CallableModel` (any async function) and the
frameworks' own models (`langchain.LangChainModel`, `llama_index.LlamaIndexModel`) are `Model`s.
`ThrottledModel` (limits, retries) and `CachedModel` (a file of answers) wrap one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.models.caching import CachedModel
    from rag_eval_integrations.models.callable import CallableModel
    from rag_eval_integrations.models.completion import Model, ModelBase, with_retries
    from rag_eval_integrations.models.openai import OpenAIModel
    from rag_eval_integrations.models.throttling import ThrottledModel

__all__ = [
    "CachedModel",
    "CallableModel",
    "Model",
    "ModelBase",
    "OpenAIModel",
    "ThrottledModel",
    "with_retries",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "CachedModel": "caching",
        "CallableModel": "callable",
        "Model": "completion",
        "ModelBase": "completion",
        "OpenAIModel": "openai",
        "ThrottledModel": "throttling",
        "with_retries": "completion",
    },
)
