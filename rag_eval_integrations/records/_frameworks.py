"""Objects of LangChain and LlamaIndex, recognised by their class; neither framework is imported.

Who holds such an object has its framework, so that the adapter can be imported by its name then.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

ROOTS = {"langchain_core": "langchain", "llama_index": "llama_index"}
"""Package in which a framework's classes are defined → the framework."""

Kind = tuple[str, str]
"""A framework, and the name of one of its classes."""


def framework_of(value: object) -> str | None:
    """Return the framework of an object's class: `langchain`, `llama_index` or None."""
    return next(
        (ROOTS[root] for kind in type(value).__mro__ if (root := _root(kind)) in ROOTS), None
    )


def adapted(value: object, adapters: Mapping[Kind, str]) -> Any:
    """Make our own object from a framework's; None when the table has none of its classes.

    Args:
        value: any object.
        adapters: class → the function or class that takes such an object, as `MODULE:NAME` in this
            package. Subclasses count.
    """
    for kind in type(value).__mro__:
        adapter = adapters.get((ROOTS.get(_root(kind), ""), kind.__name__))
        if adapter is not None:
            module, _, name = adapter.partition(":")
            return getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)(value)
    return None


_PACKAGE = __name__.partition(".")[0]

_DOCUMENTS: dict[Kind, str] = {
    ("langchain", "Document"): "langchain._documents:document_from",
    ("llama_index", "BaseNode"): "llama_index._answers:document_from",
    ("llama_index", "NodeWithScore"): "llama_index._answers:document_from",
}


def document_from(value: object) -> Any:
    """Make a `Document` from a LangChain document or a LlamaIndex node; None from anything else."""
    return adapted(value, _DOCUMENTS)


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]
