"""LlamaIndex: capture of RAG calls from the spans and events of its root dispatcher."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("llama_index_instrumentation") is None:
    raise MissingDependencyError("llama-index-core", "llama-index")

from rag_eval_integrations.llama_index.handler import RagEvalHandler

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index.judge import LLMJudge

__all__ = ["LLMJudge", "RagEvalHandler"]


def __getattr__(name: str) -> object:
    # Capture must not load what only a judge needs: llama_index.core, 3 s.
    if name == "LLMJudge":
        from rag_eval_integrations.llama_index.judge import LLMJudge  # noqa: PLC0415

        return LLMJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
