"""Calls from the traces that other tools hold: spans of a tool → one `RagCall` per trace."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.traces.reading import read_traces

__all__ = ["read_traces"]
publish(__name__, __all__)
