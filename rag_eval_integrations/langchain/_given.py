"""Stage 1 for evaluators: make a `RagCall` from a run, a LangSmith example, or values by name.

Nothing is guessed: a dict is searched for the names in common use. A part that is not
found is left empty, and the scores say so.

A run is read as a trace of LangSmith is, with or without its child runs: from memory (with real
documents, and messages as LangChain serialises them) or from LangSmith's server (all of it JSON).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from rag_eval_integrations.capture._delivery import UnusableError
from rag_eval_integrations.capture._documents import documents_seen
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
from rag_eval_integrations.records import Capture, Document, RagCall
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.traces._calls import call_of
from rag_eval_integrations.traces._langsmith import spans_of
from rag_eval_integrations.traces._values import fields_of

_TEXTS = ("question", "response", "reference")


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
        if name in _TEXTS and value is not None and not isinstance(value, str):
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
    return _call_from_values(values) if run is None else _call_from_run(run, example, values)


def _call_from_values(values: Values) -> RagCall:
    """Make a call from an evaluator's named arguments."""
    asked_alone = "outputs" not in values and "response" not in values
    documents = _documents_given(values)
    return RagCall(
        question=_question_given(values),
        documents=documents or (),
        response=_response_given(values),
        reference=_reference_given(values),
        relevant_ids=_relevant_given(values),
        history=history_of(values.get("inputs")),
        capture=_capture_for(documents, asked_alone),
    )


def _capture_for(documents: object, asked_alone: bool) -> Capture | None:
    """Return the mark of a call without documents, or with documents and no answer; else None."""
    if documents is None:  # nobody said what was retrieved
        return Capture(framework="plain")
    # A call without an answer, where none is missing: a retrieval, to be judged as one.
    return Capture(framework="plain", documents_from="dataflow") if asked_alone else None


def _call_from_run(run: Any, example: Any, values: Values) -> RagCall:
    """Make a call from a traced run and its example; values given by name take precedence."""
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
        call = call.model_copy(update={"capture": _capture_for(documents, False)})
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
        return _documents_from(values["documents"], "documents")
    given = values.get("context")
    if given is not None:
        return _documents_from([given] if isinstance(given, str) else given, "context")
    documents = documents_in(values.get("outputs"), "outputs")
    documents = documents_in(values.get("inputs"), "inputs") if documents is None else documents
    return _documents_of_tools(values.get("outputs")) if documents is None else documents


def _documents_of_tools(outputs: object) -> tuple[Document, ...] | None:
    """Find the documents that tools returned since the last question, else the tools' texts."""
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else outputs
    documents: list[object] = []
    for item in messages if isinstance(messages, LISTS) else ():
        message = message_of(item)
        if message is not None and message.role in HUMAN:
            documents = []
        elif message is not None and message.role == "tool":
            is_dict = isinstance(item, dict)
            artifact = item.get("artifact") if is_dict else getattr(item, "artifact", None)
            documents += documents_of(artifact) or filter(None, [message.text])
    return _documents_from(documents, "outputs['messages']") if documents else None


def reference_in(outputs: object) -> str | None:
    """Find the expected answer in an example's outputs; None when none can be identified."""
    names = NAMES["reference"] if isinstance(outputs, Mapping) else ()
    references = (outputs.get(name) for name in names)  # type: ignore[attr-defined]  # a mapping
    return next((text for text in references if isinstance(text, str)), None) or answer_of(outputs)


def documents_in(given: object, field: str) -> tuple[Document, ...] | None:
    """Find the documents in a dict; None when it has none of the known names.

    Args:
        given: the dict; anything else has no documents.
        field: name of the argument, for the error message.

    Raises:
        ConfigurationError: the value of a key is not a list of documents.
    """
    for key in NAMES["documents"] if isinstance(given, Mapping) else ():
        value = given.get(key)  # type: ignore[attr-defined]  # a mapping, see the line above
        if value is not None:
            value = [value] if isinstance(value, str) else value
            return _documents_from(value, f"{field}[{key!r}]")
    return None


def _documents_from(given: object, field: str) -> tuple[Document, ...]:
    """Read a user's list of documents, or a mapping that holds one."""
    try:
        return tuple([seen.document() for seen in documents_seen(given)])
    except UnusableError as error:
        raise ConfigurationError(field, given, str(error)) from None


# --- The captured call of a LangSmith run with its child runs


def captured_in(run: Any) -> RagCall | None:
    """Rebuild the call from a run tree; None when it holds neither a retriever nor a document.

    A run of a bare retriever gives a call without a response.
    """
    spans = list(spans_of(run if isinstance(run, Mapping) else fields_of(run) or {}))
    if spans[0].kind == "retriever":
        spans = [replace(spans[0], id="", kind="other"), replace(spans[0], parent="")]
    call = call_of(spans)
    return None if isinstance(call, str) else call
