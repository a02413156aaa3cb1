"""Which framework an object comes from, told without importing any."""

from __future__ import annotations


def framework_of(value: object) -> str | None:
    """Name the framework that an object's class comes from: `langchain`, `llama_index` or None."""
    for kind in type(value).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("langchain_core", "llama_index"):
            return root.removesuffix("_core")
    return None
