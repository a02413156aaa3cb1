"""LlamaIndex: capture of RAG calls from the spans and events of its root dispatcher."""

from __future__ import annotations

from importlib.util import find_spec

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("llama_index_instrumentation") is None:
    raise MissingDependencyError("llama-index-core", "llama-index")

from rag_eval_integrations.llama_index.handler import RagEvalHandler

__all__ = ["RagEvalHandler"]
