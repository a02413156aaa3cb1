"""Calls from the traces that other tools hold: spans of a tool → one `RagCall` per trace."""

from rag_eval_integrations.traces._reading import read_traces

__all__ = ["read_traces"]
