"""Stage 1 for evaluators: make a `RagCall` from a run, a LangSmith example, or values by name.

Nothing is guessed: a dict is searched for the usual keys. A part that is not found is left empty,
and the scores say so.

A run's tree is replayed to a `RagEvalCallbackHandler` event by event, so that a run that is
evaluated afterwards gives the same record as live capture, by the same rules for the documents that
the model saw. Runs come from memory (with real documents, and messages as LangChain serialises
them) or from LangSmith's server (everything as JSON).
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping
from contextvars import Context
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, TypedDict
from uuid import UUID, uuid4

from rag_eval_integrations.capture._delivery import UnusableError
from rag_eval_integrations.capture._documents import KEYS, documents_seen
from rag_eval_integrations.capture._retrieval import gold_ids
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain._documents import documents_of
from rag_eval_integrations.langchain._values import (
    HUMAN,
    LISTS,
    answer_of,
    history_of,
    message_of,
    question_of,
)
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.records import Capture, Document, RagCall

_REFERENCES = ("reference", "reference_answer", "expected", "expected_output", "ground_truth")
_PLAIN = ("question", "response", "reference")


class Values(TypedDict, total=False):
    """The values that an evaluator accepts by name."""

    inputs: object
    """The app's input: a string, messages, or a dict with `question`, `query`, `input` …"""
    outputs: object
    """The app's output: a string, messages, or a dict with `answer`, `result`, `output` …; it may
    hold the documents as well (`documents`, `context` …, or messages of tools)."""
    context: object
    """The documents: a string, a list, or a dict with `documents` or `context`."""
    reference_outputs: object
    """The expected answer, in the form of `outputs`."""
    question: str
    """The user's question as text."""
    documents: Iterable[object]
    """Strings, documents of this library or of LangChain, dicts with `text`, or pairs of a document
    and a score."""
    response: str | None
    """The answer as text; None for a retrieval without an answer."""
    reference: str | None
    """The expected answer as text."""
    relevant_ids: Iterable[str] | None
    """Ids of the documents that are relevant to the question, for the metric `Retrieval`; by
    default the `relevant_ids` of the expected outputs."""


def call_from(run: object, example: object, values: Values) -> RagCall:
    """Make the call that an evaluator is to judge.

    Args:
        run: a `RagCall`, which is used as it is; a LangSmith run with its child runs; or None.
        example: the LangSmith example of the run, or None.
        values: values given by name, which take precedence over those of the run.

    Raises:
        ConfigurationError: nothing is given, a name is not known, or a document is not one.
    """
    for name, value in values.items():
        if name not in Values.__annotations__:
            known = ", ".join(Values.__annotations__)
            why = f"is not a known name; pass a run, a RagCall, or {known}"
            raise ConfigurationError(name, value, why)
        if name in _PLAIN and value is not None and not isinstance(value, str):
            raise ConfigurationError(name, value, "should be a string")
    if isinstance(run, RagCall):
        if example is not None or values:
            raise ConfigurationError("run", run.id, "is a RagCall; pass nothing else with it")
        return run
    if run is not None and not hasattr(run, "inputs"):
        raise ConfigurationError("run", run, "is not a run; pass values by name: `inputs=…` …")
    if run is None and not values:
        known = ", ".join(Values.__annotations__)
        raise ConfigurationError("run", None, f"pass a run, a RagCall, or values: {known}")
    return _named(values) if run is None else _observed(run, example, values)


def _named(values: Values) -> RagCall:
    """Make a call of an evaluator's named arguments."""
    asked_alone = "outputs" not in values and "response" not in values
    documents = _documents_given(values)
    return RagCall(
        question=_question_given(values),
        documents=documents or (),
        response=_response_given(values),
        reference=_reference_given(values),
        relevant_ids=_relevant_given(values),
        history=history_of(values.get("inputs")),
        capture=_seen_as(documents, asked_alone),
    )


def _seen_as(documents: object, asked_alone: bool) -> Capture | None:
    """Say how the documents of a call are known, where this is not as usual.

    Where no documents were given (None), from nowhere; where no answer was given with them, from
    the data flow. With both, None is returned.
    """
    if documents is None:  # nobody said what was retrieved
        return Capture(framework="plain")
    # A call without an answer, where none is missing: a retrieval, to be judged as one.
    return Capture(framework="plain", documents_from="dataflow") if asked_alone else None


def _observed(run: Any, example: Any, values: Values) -> RagCall:
    """Make a call of a traced run and its example: values that were given go before those."""
    inputs, outputs = getattr(run, "inputs", None), getattr(run, "outputs", None)
    asked = getattr(example, "inputs", None)
    call = captured_in(run) or RagCall(
        question=question_of(inputs), documents=(), response=answer_of(outputs)
    )
    label = getattr(example, "id", None) or getattr(run, "id", None)
    documents = _documents_given(values)
    if documents is None:
        documents = call.documents or documents_in(outputs, "outputs")
    if documents is None and call.capture is None:
        call = call.model_copy(update={"capture": _seen_as(documents, False)})
    fields = {
        "id": str(label) if label else call.id,
        "question": _question_given(values) or call.question or question_of(asked),
        "documents": documents or (),
        "response": _response_given(values) or call.response,
        "reference": _reference_given(values) or reference_in(getattr(example, "outputs", None)),
        "relevant_ids": _relevant_given(values, getattr(example, "outputs", None)),
    }
    return call.model_copy(update=fields)


def _question_given(values: Values) -> str:
    """Find the question among an evaluator's arguments."""
    return values.get("question") or question_of(values.get("inputs"))


def _response_given(values: Values) -> str | None:
    """Find the response among an evaluator's arguments; None without one."""
    return values["response"] if "response" in values else answer_of(values.get("outputs"))


def _reference_given(values: Values) -> str | None:
    """Find the reference among an evaluator's arguments; None without one."""
    return values.get("reference") or reference_in(values.get("reference_outputs"))


def _relevant_given(values: Values, expected: object = None) -> tuple[str, ...] | None:
    """Find the gold ids among an evaluator's arguments; None without any."""
    given: object = values.get("relevant_ids")
    if given is None:
        given = relevant_ids_in(values.get("reference_outputs"))
    return gold_ids(relevant_ids_in(expected) if given is None else given, "relevant_ids")


def relevant_ids_in(outputs: object) -> object:
    """Find the ids of the relevant documents in an example's outputs, unchecked; None without."""
    return outputs.get("relevant_ids") if isinstance(outputs, Mapping) else None


def _documents_given(values: Values) -> tuple[Document, ...] | None:
    """Find the documents among an evaluator's arguments; None without any.

    `documents` and `context` go before what outputs or inputs hold.
    """
    if "documents" in values:
        return _all(values["documents"], "documents")
    given = values.get("context")
    if given is not None:
        return _all([given] if isinstance(given, str) else given, "context")
    documents = documents_in(values.get("outputs"), "outputs")
    documents = documents_in(values.get("inputs"), "inputs") if documents is None else documents
    return _found_by_tools(values.get("outputs")) if documents is None else documents


def _found_by_tools(outputs: object) -> tuple[Document, ...] | None:
    """Find what tools returned to the last question: their documents, else their texts."""
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else outputs
    found: list[object] = []
    for item in messages if isinstance(messages, LISTS) else ():
        message = message_of(item)
        if message is not None and message.role in HUMAN:
            found = []
        elif message is not None and message.role == "tool":
            is_dict = isinstance(item, dict)
            artifact = item.get("artifact") if is_dict else getattr(item, "artifact", None)
            found += documents_of(artifact) or filter(None, [message.text])
    return _all(found, "outputs['messages']") if found else None


def reference_in(outputs: object) -> str | None:
    """Find the expected answer in an example's outputs; None when none can be identified."""
    references = (outputs.get(key) for key in _REFERENCES) if isinstance(outputs, Mapping) else ()
    return next((text for text in references if isinstance(text, str)), None) or answer_of(outputs)


def documents_in(given: object, field: str) -> tuple[Document, ...] | None:
    """Find the documents in a dict; None when it has none of the usual keys.

    Args:
        given: the dict; anything else has no documents.
        field: name of the argument, for the error message.

    Raises:
        ConfigurationError: the value of a key is not a list of documents.
    """
    for key in KEYS if isinstance(given, Mapping) else ():
        value = given.get(key)  # type: ignore[attr-defined]  # a mapping, see the line above
        if value is not None:
            return _all([value] if isinstance(value, str) else value, f"{field}[{key!r}]")
    return None


def _all(given: object, field: str) -> tuple[Document, ...]:
    """Return a list of documents, also from a mapping that holds it."""
    try:
        return tuple([Document(**seen._asdict()) for seen in documents_seen(given)])
    except UnusableError as error:
        raise ConfigurationError(field, given, str(error)) from None


# --- The captured call of a LangSmith run with its child runs


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
