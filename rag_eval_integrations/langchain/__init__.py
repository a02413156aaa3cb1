"""LangChain: capture of RAG calls from the callbacks that every runnable fires."""

from __future__ import annotations

from importlib.util import find_spec

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("langchain_core") is None:
    raise MissingDependencyError("langchain-core", "langchain")

from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler

__all__ = ["RagEvalCallbackHandler"]
