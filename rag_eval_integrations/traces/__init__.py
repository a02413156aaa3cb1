"""Calls from the traces that other tools hold: spans of a tool → one `RagCall` per trace."""
