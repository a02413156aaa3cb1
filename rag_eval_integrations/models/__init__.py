"""Models: objects that answer messages. Judges and metrics ask them.

`OpenAIModel` (any OpenAI-compatible endpoint), `CallableModel` (any async function) and the
frameworks' own models (`langchain.LangChainModel`, `llama_index.LlamaIndexModel`) are `Model`s.
`ThrottledModel` (limits, retries) and `CachedModel` (a file of answers) wrap a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.models.caching import CachedModel
    from rag_eval_integrations.models.callable import CallableModel
    from rag_eval_integrations.models.completion import (
        Choice,
        Completion,
        CompletionRequest,
        Message,
        Model,
        ModelBase,
        Token,
    )
    from rag_eval_integrations.models.openai import OpenAIModel
    from rag_eval_integrations.models.throttling import ThrottledModel

__all__ = [
    "CachedModel",
    "CallableModel",
    "Choice",
    "Completion",
    "CompletionRequest",
    "Message",
    "Model",
    "ModelBase",
    "OpenAIModel",
    "ThrottledModel",
    "Token",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "caching": ["CachedModel"],
        "callable": ["CallableModel"],
        "completion": [
            "Choice",
            "Completion",
            "CompletionRequest",
            "Message",
            "Model",
            "ModelBase",
            "Token",
        ],
        "openai": ["OpenAIModel"],
        "throttling": ["ThrottledModel"],
    },
)
