"""Stage 1, LangChain's inputs and outputs: question, earlier turns and answer of a call.

Events carry bare `Any`, and are read by attribute, see `messages`. Nothing is guessed: a value of
an unknown shape gives "no question" or "no answer".
"""

from __future__ import annotations

import json

from rag_eval_integrations._observe import json_object
from rag_eval_integrations.langchain.messages import (
    HUMAN,
    LISTS,
    last_answer,
    last_text,
    message_of,
    plain,
    turns_before_last_question,
    turns_of,
)
from rag_eval_integrations.records import Turn

_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "user_question")
_ANSWER_KEYS = ("answer", "result", "response", "output", "output_text", "text", "generation")
_HISTORY_KEYS = ("chat_history", "history", "chat_messages", "previous_messages")
_MAX_DEPTH = 3

# The inputs with which streams start; the true ones come with the end (measured on 1.7 and 1.8).
_STREAM_START = {"input": ""}


def starts_stream(inputs: object) -> bool:
    """Whether a run's start inputs are the stand-in of `stream` and `astream`."""
    return type(inputs) is dict and inputs == _STREAM_START


def question_of(inputs: object, depth: int = 0) -> str:
    """Find the user's question in a root's inputs; empty when there is none.

    A string, a message, the last human message of a list, or one of the usual keys or attributes.
    Of a graph's `Command`, what it puts into the state.
    """
    if isinstance(inputs, str):
        return plain(inputs)
    if inputs is None or depth > _MAX_DEPTH:
        return ""
    message = message_of(inputs)
    if message is not None:
        return message.text if message.role in HUMAN else ""
    if isinstance(inputs, LISTS):
        return last_text(inputs, HUMAN) or ""
    if is_command(inputs):
        return question_in_state(_field(inputs, "update"), depth)
    for key in _QUESTION_KEYS:
        found = question_of(_field(inputs, key), depth + 1)
        if found:
            return found
    messages = _field(inputs, "messages")
    if isinstance(messages, LISTS) and messages and isinstance(messages[-1], str):
        return plain(messages[-1])  # LangChain reads a bare string among messages as the user's
    return question_of(messages, depth + 1)


def question_in_state(state: object, depth: int = 0) -> str:
    """Find the user's question in what a root gave back; empty unless it is a state that says."""
    if isinstance(state, (str, *LISTS)) or message_of(state) is not None:
        return ""
    return question_of(state, depth)


def history_of(inputs: object) -> tuple[Turn, ...]:
    """Find the earlier turns in a root's inputs; empty when there are none that can be told."""
    if inputs is None or isinstance(inputs, str):
        return ()
    if isinstance(inputs, LISTS):
        return turns_before_last_question(inputs)
    if found := named_history(inputs):
        return found
    messages = _field(inputs, "messages")
    return turns_before_last_question(messages) if isinstance(messages, LISTS) else ()


def named_history(inputs: object) -> tuple[Turn, ...]:
    """Read the earlier turns under one of the keys that are usual for them."""
    for key in _HISTORY_KEYS:
        if found := turns_of(_field(inputs, key)):
            return found
    return ()


def answer_of(outputs: object, depth: int = 0) -> str | None:
    """Find the answer in a root's outputs; None when there is none that can be told.

    A string, a message, the last AI message of a list, or one of the usual keys or attributes.
    """
    if isinstance(outputs, str):
        return plain(outputs)
    if outputs is None or depth > _MAX_DEPTH:
        return None
    message = message_of(outputs)
    if message is not None:
        return message.text
    if isinstance(outputs, LISTS):
        return last_answer(outputs)
    for key in _ANSWER_KEYS:
        found = answer_of(_field(outputs, key), depth + 1)
        if found is not None:
            return found
    structured = _field(outputs, "structured_response")  # where an agent puts what it was told to
    if structured is not None:
        return answer_of(structured, depth + 1) or _as_json(structured)
    messages = _field(outputs, "messages")
    return last_answer(messages) if isinstance(messages, LISTS) else None


def values_of(outputs: object) -> list[str]:
    """List the answers that outputs of an unknown shape hold side by side."""
    if isinstance(outputs, dict):
        parts = list(outputs.values())
    else:
        parts = list(outputs) if isinstance(outputs, LISTS) else []
    for part in parts.copy():
        if isinstance(part, LISTS):  # of texts, one from every branch
            parts += [one for one in part if isinstance(one, str) or message_of(one) is not None]
    return [text for part in parts if (text := answer_of(part))]


def structured_answer(outputs: object, arguments: object) -> str | None:
    """Write a structured answer as JSON; None for anything else.

    Args:
        outputs: a pydantic object, or what `with_structured_output(…, include_raw=True)` gives; or
            a dict that is, or has as a value, what the model called its tool with.
        arguments: what the last model called its tool with.
    """
    if type(outputs) is dict and "raw" in outputs and "parsed" in outputs:
        outputs = outputs["parsed"]
    if hasattr(type(outputs), "__pydantic_fields__"):
        return _as_json(outputs)
    if type(outputs) is dict and type(arguments) is dict and arguments:
        for value in (outputs, *outputs.values()):
            if _dumped(value) == arguments:
                return json.dumps(json_object(arguments), ensure_ascii=False)
    return None


def _dumped(value: object) -> object:
    if type(value) is dict:
        return value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else None


def is_command(value: object) -> bool:
    """Whether it is a graph's `Command`; known by its parts, so that LangGraph stays optional."""
    return hasattr(value, "resume") and hasattr(value, "goto") and hasattr(value, "update")


def _as_json(value: object) -> str | None:
    dump = getattr(value, "model_dump_json", None)
    text = dump() if callable(dump) else None
    return text if isinstance(text, str) else None


def _field(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else getattr(value, key, None)
