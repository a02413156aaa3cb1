"""Stage 1, LangChain's values: question, answer, prompt and documents out of what events carry.

Events carry bare `Any`. It is read here and only here, by attribute and not by class, so that no
module of LangChain needs to be imported and every version's classes fit. Nothing is guessed: a
value of an unknown shape gives "no question", "no answer" or "no documents".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_eval_integrations._observe import Seen, finite, json_object

_QUESTION_KEYS = (
    "question",
    "query",
    "input",
    "user_input",
    "user_query",
    "user_question",
    "messages",
)
_ANSWER_KEYS = ("answer", "result", "response", "output", "output_text", "text", "generation")
_SCORE_KEYS = ("relevance_score", "score")  # where rerankers and stores put theirs
_HUMAN = {"human", "user", "HumanMessageChunk"}
_AI = {"ai", "assistant", "AIMessageChunk"}
_MAX_DEPTH = 3
_LISTS = (list, tuple)  # `list | tuple` is built anew at every check, four times as slow

# The inputs with which streams start; the true ones come with the end (measured on 1.7 and 1.8).
_STREAM_START = {"input": ""}


def starts_stream(inputs: object) -> bool:
    """Whether a run's start inputs are the stand-in of `stream` and `astream`."""
    return type(inputs) is dict and inputs == _STREAM_START


def question_of(inputs: object, depth: int = 0) -> str:
    """Find the user's question in a root's inputs; empty when there is none.

    A string, a message, the last human message of a list, or one of the usual keys or attributes.
    """
    if isinstance(inputs, str):
        return inputs
    if inputs is None or depth > _MAX_DEPTH:
        return ""
    message = _message(inputs)
    if message is not None:
        return message.text if message.role in _HUMAN else ""
    if isinstance(inputs, _LISTS):
        return _last_text(inputs, _HUMAN) or ""
    for key in _QUESTION_KEYS:
        found = question_of(_field(inputs, key), depth + 1)
        if found:
            return found
    return ""


def answer_of(outputs: object, depth: int = 0) -> str | None:
    """Find the answer in a root's outputs; None when there is none that can be told.

    A string, a message, the last AI message of a list, or one of the usual keys or attributes.
    """
    if isinstance(outputs, str):
        return outputs
    if outputs is None or depth > _MAX_DEPTH:
        return None
    message = _message(outputs)
    if message is not None:
        return message.text
    if isinstance(outputs, _LISTS):
        return _last_text(outputs, _AI)
    for key in _ANSWER_KEYS:
        found = answer_of(_field(outputs, key), depth + 1)
        if found is not None:
            return found
    messages = _field(outputs, "messages")
    return _last_text(messages, _AI) if isinstance(messages, _LISTS) else None


def prompt_texts(started: object) -> tuple[str, ...]:
    """Take the texts a model is started with: its prompts, or every message's text."""
    texts: list[str] = []
    for part in started if isinstance(started, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, list):
            texts.extend(found.text for item in part if (found := _message(item)) is not None)
    return tuple(texts)


def generated_text(result: object) -> str | None:
    """Take the first generation's text out of an `LLMResult`; None when there is none."""
    for generations in getattr(result, "generations", None) or ():
        for generation in generations:
            text = getattr(generation, "text", None)
            return text if isinstance(text, str) else None
    return None


def documents_of(value: object, depth: int = 0) -> Sequence[object]:
    """Find LangChain documents, or `(document, score)` pairs, in an event's value.

    A list of documents, of `(document, score)` pairs, or a dict that holds such lists. A single
    document is no retrieval: maps over documents pass them one by one.
    """
    if isinstance(value, dict):
        found: Sequence[object] = ()
        for part in value.values() if depth < _MAX_DEPTH else ():
            if type(part) is not str and (more := documents_of(part, depth + 1)):
                found = [*found, *more] if found else more
        return found
    if isinstance(value, _LISTS) and value and _is_document(value[0]):
        kind = type(value[0])
        return [item for item in value if (type(item) is kind is not tuple) or _is_document(item)]
    return ()


def snapshot(document: object, score: object) -> Seen:
    """Copy a LangChain document as it is now; `score` is what stood beside it, if anything."""
    raw = getattr(document, "metadata", None)
    metadata = json_object(raw) if raw else {}
    value = finite(score)
    for key in _SCORE_KEYS:
        if value is None and key in metadata:
            value = finite(metadata[key])
    name = getattr(document, "id", None)
    return Seen(text_of_document(document), None if name is None else str(name), metadata, value)


def text_of_document(document: object) -> str:
    """Read a document's text: the host's own string, not a copy."""
    text: str = document.page_content  # type: ignore[attr-defined]  # see `_is_document`
    return text


def _is_document(item: object) -> bool:
    if isinstance(item, tuple):
        return len(item) == 2 and not isinstance(item[0], tuple) and _is_document(item[0])
    return isinstance(getattr(item, "page_content", None), str)


def _field(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else getattr(value, key, None)


class _Message(NamedTuple):
    role: str
    text: str


def _message(item: object) -> _Message | None:
    """Read a message object, a `("human", text)` pair or a `{"role", "content"}` dict."""
    role: object
    if isinstance(item, tuple):
        if len(item) != 2:
            return None
        role, content = item
    elif isinstance(item, dict):
        role, content = item.get("role", item.get("type")), item.get("content")
    else:
        role, content = getattr(item, "type", None), getattr(item, "content", None)
    if not isinstance(role, str):
        return None
    text = _content_text(content)
    return None if text is None else _Message(role, text)


def _content_text(content: object) -> str | None:
    """Join the text of a message's content; blocks that are no text (images …) are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts)


def _last_text(items: Sequence[object], roles: set[str]) -> str | None:
    for item in reversed(items):
        message = _message(item)
        if message is not None and message.role in roles:
            return message.text
    return None
