"""LangChain: capture of RAG calls from the callbacks that every runnable fires."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_eval_integrations.errors import MissingDependencyError

if find_spec("langchain_core") is None:
    raise MissingDependencyError("langchain-core", "langchain")

from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler

if TYPE_CHECKING:
    from rag_eval_integrations.langchain.judge import ChatModelJudge

__all__ = ["ChatModelJudge", "RagEvalCallbackHandler"]


def __getattr__(name: str) -> object:
    # Capture must not load what only a judge needs: langchain_core's models.
    if name == "ChatModelJudge":
        from rag_eval_integrations.langchain.judge import ChatModelJudge  # noqa: PLC0415

        return ChatModelJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
