"""Stage 1 for evaluators: rebuild the captured call from a LangSmith run with its child runs.

The tree is replayed to a `RagEvalCallbackHandler` event by event, so that a run that is evaluated
afterwards gives the same record as live capture, by the same rules for the documents that the model
saw. Runs come from memory (with real documents, and messages as LangChain serialises them) or from
LangSmith's server (everything as JSON).
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextvars import Context
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall

_MAX_DEPTH = 16  # levels of values; the depth of the tree of runs is not limited


def captured_in(run: Any) -> RagCall | None:
    """Rebuild the call from a run tree; None when it holds neither a retriever nor a document.

    A run of a bare retriever gives a call without a response.
    """
    calls: list[RagCall] = []
    handler = RagEvalCallbackHandler(calls.append)
    if getattr(run, "run_type", None) == "retriever":
        # A handler does not deliver a bare retriever, but whoever evaluates its run wants a call.
        run = SimpleNamespace(**_about(run), child_runs=[run], outputs=None)
    # In an empty context: the replay is part of neither the reader's call nor a judge's.
    Context().run(_replay, handler, run, None)
    if not calls:
        return None
    call = calls[-1]
    began, ended = _moment(run, "start_time"), _moment(run, "end_time")
    latency = None if began is None or ended is None else (ended - began).total_seconds()
    about = {"run_id": str(run.id), "latency_s": latency and max(0.0, latency)}
    capture = call.capture and call.capture.model_copy(update=about)
    return call.model_copy(update={"capture": capture, "started_at": began})


def _moment(run: Any, name: str) -> datetime | None:
    """Read a time; LangSmith's times are in UTC, also without a time zone."""
    value = getattr(run, name, None)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _about(run: Any) -> dict[str, Any]:
    """Return the fields of a run, before its object changes."""
    names = ("id", "name", "inputs", "error", "tags", "extra", "start_time", "end_time")
    return {name: getattr(run, name, None) for name in names}


def _replay(handler: RagEvalCallbackHandler, run: Any, parent: UUID | None) -> None:
    """Replay a run: its start, its children in the order of their starts, its end."""
    run_id = uuid4()
    extra = _fields(run, "extra")
    about: dict[str, Any] = {
        "run_id": run_id,
        "parent_run_id": parent,
        "tags": _listed(getattr(run, "tags", None)),
        "metadata": metadata if isinstance(metadata := extra.get("metadata"), dict) else None,
        "name": getattr(run, "name", None),
    }
    inputs, outputs = _fields(run, "inputs"), _fields(run, "outputs")
    error = _error(getattr(run, "error", None))
    kind = getattr(run, "run_type", "chain")
    if kind == "retriever":
        handler.on_retriever_start({}, str(inputs.get("query", "")), **about)
    elif kind == "llm" and "prompts" in inputs:
        handler.on_llm_start({}, _listed(inputs["prompts"]), **about)
    elif kind == "llm":
        handler.on_chat_model_start({}, _batches(inputs.get("messages")), **about)
    elif kind == "tool":
        handler.on_tool_start({}, str(_only(inputs, "input")), **about)
    else:
        handler.on_chain_start({}, _only(inputs, "input"), **about)

    for child in sorted(getattr(run, "child_runs", None) or (), key=_order):
        _replay(handler, child, run_id)

    if kind == "retriever":
        documents = outputs.get("documents", [])
        _end(handler.on_retriever_end, handler.on_retriever_error, documents, error, run_id)
    elif kind == "llm":
        result = SimpleNamespace(generations=list(_generations(outputs)))
        _end(handler.on_llm_end, handler.on_llm_error, result, error, run_id)
    elif kind == "tool":
        result = _only(outputs, "output")
        _end(handler.on_tool_end, handler.on_tool_error, result, error, run_id)
    else:
        result = _only(outputs, "output")
        _end(handler.on_chain_end, handler.on_chain_error, result, error, run_id)


def _end(
    ended: Any, failed: Any, outputs: object, error: BaseException | None, run_id: UUID
) -> None:
    """Tell the handler that a run has ended or failed."""
    if error is None:
        ended(outputs, run_id=run_id)
    else:
        failed(error, run_id=run_id)


def _order(run: Any) -> str:
    """Return the key that sorts runs by their beginning."""
    return str(getattr(run, "dotted_order", None) or "")


# --- Values, as LangSmith stores them --------------------------------------------------------


def _fields(run: Any, name: str) -> dict[str, Any]:
    """Return inputs or outputs of a run, with LangChain's objects revived."""
    value = getattr(run, name, None)
    return {} if not isinstance(value, Mapping) else {k: _revived(v) for k, v in value.items()}


def _only(fields: dict[str, Any], name: str) -> Any:
    """Return the value out of the dict that LangSmith puts around a value that is not a dict."""
    return (fields[name] if list(fields) == [name] else fields) if fields else None


def _revived(value: Any, depth: int = 0) -> Any:
    """Turn JSON back into values: documents become objects, messages plain dicts.

    What is nested too deeply becomes None.
    """
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        fields = value.get("kwargs") if value.get("type") == "constructor" else value
        if not isinstance(fields, Mapping):
            return value
        revived = {key: _revived(item, depth + 1) for key, item in fields.items()}
        if isinstance(fields.get("page_content"), str):
            return SimpleNamespace(**{"id": None, "metadata": {}, **revived})
        return revived
    if type(value) in (list, tuple):
        return type(value)(_revived(item, depth + 1) for item in value)
    return value


def _batches(messages: object) -> list[list[Any]]:
    """Return messages as a list of batches."""
    listed = _listed(messages)
    return listed if all(isinstance(batch, list) for batch in listed) else [listed]


def _generations(outputs: dict[str, Any]) -> Iterator[list[SimpleNamespace]]:
    """Yield the generations of a model's run."""
    for batch in _listed(outputs.get("generations")):
        generations = [generation for generation in _listed(batch) if isinstance(generation, dict)]
        yield [SimpleNamespace(text=generation.get("text")) for generation in generations]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- Errors, which LangSmith stores as text: a few classes decide the status of the call -------


class GraphBubbleUp(Exception):
    """LangGraph's base class of exceptions that steer the graph and are not failures."""


class GraphInterrupt(GraphBubbleUp):
    """The graph waits for its user."""


class ParentCommand(GraphBubbleUp):
    """The run continues in another graph."""


_ERRORS: dict[str, type[BaseException]] = {
    "CancelledError": CancelledError,
    "GeneratorExit": GeneratorExit,
    "GraphBubbleUp": GraphBubbleUp,
    "GraphInterrupt": GraphInterrupt,
    "ParentCommand": ParentCommand,
}


def _error(text: object) -> BaseException | None:
    """Make an exception of the text of a run's error."""
    if not text:
        return None
    name = str(text).partition("(")[0]
    return _ERRORS.get(name, RuntimeError)(str(text))
