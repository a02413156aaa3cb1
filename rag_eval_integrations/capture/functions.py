"""From a function's arguments and return value to question, answer and documents."""

from __future__ import annotations

import inspect
import sys
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Mapping,
)
from typing import Any

from rag_eval_integrations.errors import ConfigurationError


def is_kind(kind: Callable[[object], bool], function: Any) -> bool:
    """Whether a function, or an object that can be called, is of a kind of `inspect`."""
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004 -- the method


def first_step(items: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Start an async generator unknown to the loop, which is told of the one around it.

    A loop that shuts down closes all that it knows of at once; the second to close the inner one
    fails with "already running", and the loop logs an error that the app does not have by itself.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return items.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def question_reader(
    question: object, function: Callable[..., object]
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Find the argument that holds the question, once, when the function is decorated."""
    if callable(question):
        ask: Callable[..., object] = question
        return lambda args, kwargs: ask(*args, **kwargs)
    parameters = list(inspect.signature(function).parameters.values())
    names = [parameter.name for parameter in parameters]
    takes_any = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    if question is None:
        own = 1 if names[:1] in (["self"], ["cls"]) else 0
        if own < len(names) - takes_any:
            question = names[own]
    if not isinstance(question, str) or (question not in names and not takes_any):
        why = f"name the parameter of {function!r} that holds the question, or pass a function"
        raise ConfigurationError("question", question, why)
    if question not in names:
        return lambda args, kwargs: kwargs.get(question)
    at = names.index(question)
    default = parameters[at].default
    if default is inspect.Parameter.empty:
        default = None  # the function itself will complain

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[at] if at < len(args) else kwargs.get(question, default)

    return read


def answer_in(result: object) -> object:
    """Find the answer in what a RAG function returned; raises TypeError when it is not clear."""
    if result is None or isinstance(result, str):
        return result
    if isinstance(result, tuple) and len(result) == 2:
        return result[0]
    if isinstance(result, Mapping):
        for key in ("answer", "response"):
            if key in result:
                return result[key]
    raise TypeError(f"no answer can be told from a {type(result).__name__}; pass `response`")


def documents_in(result: object) -> object:
    """Find the documents in what a RAG function returned; None when it returned none."""
    if isinstance(result, tuple) and len(result) == 2:
        return result[1]
    return result.get("documents") if isinstance(result, Mapping) else None
