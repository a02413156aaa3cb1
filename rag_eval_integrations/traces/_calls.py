"""Make one call of the spans of a trace.

The question and the answer are those of the root; where it does not tell them, as of a stream or an
agent, those of the models. The documents are those that the outermost retrievers returned; of
these, the call's are the ones in the prompt of the model that wrote the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rag_eval_integrations._answer import answer_among
from rag_eval_integrations._prompt_search import headers, reached
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Capture, Document, RagCall, Turn
from rag_eval_integrations.records._conversation import with_conversation
from rag_eval_integrations.records._json import NAMES, is_finite
from rag_eval_integrations.records.call import CaptureStatus, DocumentsFrom
from rag_eval_integrations.traces._span import REPR, Span, parsed
from rag_eval_integrations.traces._values import (
    conversation,
    documents_from,
    fields_of,
    json_part,
    messages_in,
    object_in,
    text_from,
    turns_from,
)

_QUESTIONS = (
    *NAMES["question"],
    "message",
    "user_msg",
    "user_message",
    "str_or_query_bundle",
    "query_bundle",
    "text",
    "content",
    "kwargs",
    "args",
    "inputs",
)
_ANSWERS = (*NAMES["response"], "output_text", "generation", "text", "content", "message")
_MASKED = "__REDACTED__"
"""What OpenInference writes in place of a content that is not to be exported."""
_THOUGHT = re.compile(r"\AThought:.*\nAnswer:\s*", re.S)
"""What an agent of the kind ReAct writes in front of its answer."""
_ENDS: dict[str, CaptureStatus] = {
    "CancelledError": "aborted",
    "GeneratorExit": "aborted",
    "GraphBubbleUp": "interrupted",
    "GraphInterrupt": "interrupted",
    "ParentCommand": "ok",
}
"""Errors by which an app is steered or left, as LangSmith writes them."""
_MOST_DEEP = 4
_TELLING = 16  # characters from which a text is not part of another one by chance


def call_of(spans: Iterable[Span]) -> RagCall | str:
    """Make the call of a trace; or say why it has none, in words that follow "a trace".

    Args:
        spans: the spans of one trace, in any order; of two with one id the first counts.
    """
    by_id: dict[str, Span] = {}
    for span in spans:
        by_id.setdefault(span.id, span)
    ordered = sorted(by_id.values(), key=lambda s: math.inf if s.start is None else s.start)
    roots = [span for span in ordered if span.parent not in by_id]
    if not roots:
        return "without a root span"
    if roots[0].kind == "retriever" and len(roots) == 1:
        return "of a retriever alone"
    searches = _outermost_retrievers(roots, ordered) or _passing_spans(ordered)
    if not searches:
        retrieved = any(span.kind == "retriever" for span in ordered)
        return "whose retrievers hold no documents" if retrieved else "without a retriever"
    models = [span for span in ordered if span.kind == "model"]
    question = _question_of(roots, models, searches)
    if not question:
        known = any(span.input is not None or span.text for span in ordered)
        return "without a question" if known else "whose export lacks inputs and outputs"
    if _MASKED in (question, roots[0].output):
        return "with masked content"
    return _call(roots[0], models, searches, ordered, question)


def _call(
    root: Span,
    models: Sequence[Span],
    searches: Sequence[Span],
    ordered: Sequence[Span],
    question: str,
) -> RagCall:
    """Make the call of a trace that has a question and a retriever."""
    answer = None if root.error else _answer_of(root.output, models)
    asked = [model for model in models if model.messages]
    writers = _writers(answer, asked)
    context = _context(_documents(searches, ordered), writers, asked, question)
    names = [span.name.partition(".")[0] for span in searches if span.kind == "retriever"]
    capture = Capture(
        framework="langchain" if root.source == "langsmith" else "plain",
        run_id=root.id if root.source == "langsmith" else None,
        status=_status(root.error),
        documents_from=context.source,
        latency_s=round(max(0.0, root.end - root.start), 6) if root.start and root.end else None,
        tags=tuple(map(str, root.tags)),
        metadata=json_part(with_conversation(root.metadata, root.session)),
        retrievers=tuple(dict.fromkeys(names)),
        not_in_prompt=context.unused,
        traces={root.source: (root.trace, root.id)},
    )
    begun = None if root.start is None else datetime.fromtimestamp(root.start, UTC)
    return RagCall(
        question=question,
        documents=(*context.documents, *context.earlier),
        response=answer,
        id=root.trace,
        history=tuple(_turns(writers[0], question)[0]) if writers else (),
        capture=capture,
        started_at=begun,
        app=root.name.partition(".")[0] or None,
        earlier=tuple(range(len(context.documents), len(context.documents) + len(context.earlier))),
    )


def _status(error: str | None) -> CaptureStatus:
    """Say how a call ended, by the error of its root."""
    if not error:
        return "ok"
    return _ENDS.get(error.partition("(")[0], "error")


# --- Question and answer


def question_in(value: object, depth: int = 0) -> str:
    """Find the question in the input of a span; empty where none can be told."""
    value = parsed(value)
    if isinstance(value, str):
        return "" if REPR.fullmatch(value) else value.strip()
    if messages := _messages(value):
        return next((t["content"] for t in reversed(messages) if t["role"] == "user"), "")
    if isinstance(value, list | tuple) and len(value) == 1:
        return question_in(value[0], depth + 1) if depth < _MOST_DEEP else ""
    if not isinstance(value, Mapping) or depth > _MOST_DEEP:
        return ""
    for name in _QUESTIONS:
        if name in value and (question := question_in(value[name], depth + 1)):
            return question
    texts = [text for text in value.values() if isinstance(text, str)]
    return question_in(texts[0], depth + 1) if len(texts) == len(value) == 1 else ""


def _messages(value: object) -> list[dict[str, str]]:
    """Read messages, or pairs of a role and a text; none of anything else."""
    if isinstance(value, Mapping):
        value = value.get("messages")
    messages: object = messages_in(value) or value
    if isinstance(messages, list | tuple) and messages and not isinstance(messages[0], str):
        try:
            return turns_from(messages, "") or []
        except InputError:
            return []
    return []


def _question_of(roots: Sequence[Span], models: Sequence[Span], searches: Sequence[Span]) -> str:
    """Find the question: the root's, else what a user said to the first model, else a query.

    A user's message that holds a retrieved document is a prompt, not a question.
    """
    for root in roots:
        if root.kind != "embedding" and (question := question_in(root.input)):
            return question
    said = [turn.content for model in models[:1] for turn in model.messages if turn.role == "user"]
    texts = [document.text for span in searches for document in _documents_of(span)]
    if said and not any(text in said[-1] for text in texts if len(text) >= _TELLING):
        return said[-1].strip()
    return next(filter(None, (question_in(span.input) for span in searches)), "")


def answer_in(value: object, model_texts: Sequence[str] = (), depth: int = 0) -> str | None:
    """Find the answer in the output of a span; None where none can be told.

    Args:
        value: the output.
        model_texts: what models wrote, in order.
        depth: of nesting.
    """
    value = parsed(value)
    if value is None or isinstance(value, str):
        return value if value and not REPR.fullmatch(value) else None
    if depth > _MOST_DEEP:
        return None
    if _messages(value):
        try:
            return conversation(messages_in(value), "", answered=True).response
        except InputError:
            return None
    try:
        if (text := text_from(value, "")) is not None:
            return text or None
    except InputError:
        pass
    if isinstance(value, Mapping):
        named = (value[name] for name in _ANSWERS if name in value)
        for field in named:
            if (answer := answer_in(field, model_texts, depth + 1)) is not None:
                return answer
        texts = [(str(name), text) for name, text in value.items() if isinstance(text, str)]
        return answer_among([pair for pair in texts if not REPR.fullmatch(pair[1])], model_texts)
    return None


def _answer_of(output: object, models: Sequence[Span]) -> str | None:
    """Return the root's answer, or else what the last model wrote."""
    model_texts = [model.text for model in models if model.text]
    answer = answer_in(output, model_texts)
    if answer is None and model_texts:
        answer = _THOUGHT.sub("", model_texts[-1])
    return answer


# --- The documents, and what the model was shown


def _outermost_retrievers(roots: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
    """Return the retrievers with documents that are not below another such one, in order."""
    below: dict[str | None, list[Span]] = {}
    for span in spans:
        below.setdefault(span.parent, []).append(span)
    searches, waiting = [], list(roots)
    while waiting:
        span = waiting.pop()
        if span.kind == "retriever" and span.documents is not None:
            searches.append(span)
        else:
            waiting += below.get(span.id, ())
    places = {span.id: number for number, span in enumerate(spans)}
    return sorted(searches, key=lambda span: places[span.id])


def _passing_spans(spans: Sequence[Span]) -> list[Span]:
    """Return the spans that returned documents beside other fields, as a retriever would.

    What tools returned counts as documents, where they are documents or nothing else was exported.
    """
    searches = []
    for span in spans:
        output = parsed(span.output)
        fields = object_in(output)
        named = next((fields[name] for name in NAMES["documents"] if fields.get(name)), None)
        documents = named or _returned_by_tools(output, texts=len(spans) == 1)
        if isinstance(documents, list | tuple) and documents:
            searches.append(replace(span, documents=documents))
    return searches


def _returned_by_tools(output: object, *, texts: bool) -> list[Any]:
    """Return documents that tools returned to the last question; with `texts`, texts as well."""
    documents: list[Any] = []
    for item in messages_in(output):
        fields = fields_of(item) or {}
        fields = fields["data"] if isinstance(fields.get("data"), Mapping) else fields
        (turn,) = turns_from([item], "messages") or [{}]
        if turn["role"] == "user":
            documents = []
        elif turn["role"] == "tool":
            artifact = fields.get("artifact")
            if isinstance(artifact, list) and artifact:
                documents += artifact
            elif texts and turn["content"]:
                documents.append(turn["content"])
    return documents


def _documents_of(span: Span) -> list[Document]:
    """Read the documents of a span, with a score that stands in the metadata."""
    documents = []
    items = documents_from(span.documents or [], "documents")
    for document in RagCall("", items, None).documents:  # which reads frameworks' documents
        score = document.metadata.get("score")
        if document.score is None and isinstance(score, int | float) and is_finite(score):
            document = document.model_copy(update={"score": float(score)})
        documents.append(document)
    return documents


def _documents(searches: Sequence[Span], spans: Sequence[Span]) -> list[Document]:
    """Return what the retrievers returned, each document once, with a reranker's scores.

    Of two with one text, both count where they have ids that differ.
    """
    first: dict[tuple[str, str | None], Document] = {}
    texts: set[str] = set()
    for span in searches:
        for document in _documents_of(span):
            key = document.text, document.id
            if key not in first and not (document.id is None and document.text in texts):
                first[key] = document
                texts.add(document.text)
    for span in spans:
        for document in _documents_of(span) if span.kind == "reranker" else ():
            key = document.text, document.id
            if key in first and document.score is not None:
                first[key] = first[key].model_copy(update={"score": document.score})
    return list(first.values())


def _writers(answer: str | None, asked: Sequence[Span]) -> Sequence[Span]:
    """Return the models that wrote the answer; the last one where this cannot be told."""
    answer = (answer or "").strip()
    texts = [((model.text or "").strip(), model) for model in asked]
    for writers in (
        [model for text, model in texts if text and text == answer][-1:],
        [model for text, model in texts if len(text) >= _TELLING and text in answer],
        [model for text, model in texts if len(answer) >= _TELLING and answer in text][-1:],
    ):
        if writers:
            return writers
    return asked[-1:]


def _turns(model: Span, question: str) -> tuple[list[Turn], list[Turn]]:
    """Split what a model was shown: the turns in front of the question's, and all others."""
    users = [number for number, turn in enumerate(model.messages) if turn.role == "user"]
    asked = [number for number in users if question in model.messages[number].content] or users
    place = asked[-1] if asked else 0
    before = model.messages[:place]
    instructions = [turn for turn in before if turn.role == "system"]
    return [t for t in before if t.role != "system"], [*instructions, *model.messages[place:]]


class _Context(NamedTuple):
    documents: list[Document]
    source: DocumentsFrom
    unused: tuple[Document, ...]
    earlier: list[Document]


def _context(
    documents: list[Document], writers: Sequence[Span], asked: Sequence[Span], question: str
) -> _Context:
    """Tell which documents the writers were shown; where these saw none, which any model was.

    They are not looked for in earlier turns, which may quote them.
    """
    texts = [document.text for document in documents]
    for models in (writers, asked):
        turns = [_turns(model, question) for model in models]
        messages = [turn.content for _, now in turns for turn in now]
        places = reached(texts, "\n".join(messages), question)
        seen = sorted((place.start, number) for number, place in enumerate(places) if place)
        if not seen:
            continue
        in_front = headers(texts, [each.metadata for each in documents], messages, [question])
        prompt_documents = [
            documents[number].model_copy(update={"header": in_front[number]})
            if number in in_front
            else documents[number]
            for _, number in seen
        ]
        unused = tuple([d for d, place in zip(documents, places, strict=True) if place is None])
        results = [turn.content for turn in turns[0][0] if turn.role == "tool"]
        return _Context(
            prompt_documents, "prompt", unused, _earlier_documents(results, prompt_documents)
        )
    return _Context(documents, "retriever", (), [])


def _earlier_documents(results: Sequence[str], documents: Sequence[Document]) -> list[Document]:
    """Return what tools returned in earlier turns, without the text of this turn's documents."""
    older = []
    for result in dict.fromkeys(results):
        for document in documents:
            if len(document.text) >= _TELLING:
                result = result.replace(document.text, "")
        if result.strip():
            older.append(Document(text=result.strip()))
    return older
