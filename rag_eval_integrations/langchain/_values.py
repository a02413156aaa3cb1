"""Stage 1 for LangChain: read question, earlier turns and answer from messages, inputs, outputs.

The values are untyped and read by attribute. Nothing is guessed: a value of an unknown shape has no
question or no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from rag_eval_integrations._answer import fields_of, is_no_answer, names_answer
from rag_eval_integrations.capture._calls import json_object
from rag_eval_integrations.records import Turn

# --- Messages, in any of the shapes that LangChain accepts


HUMAN = frozenset({"human", "user", "HumanMessageChunk"})
AI = frozenset({"ai", "assistant", "AIMessageChunk"})
_IMAGES = ("image_url", "url", "base64", "data", "source")
LISTS = (list, tuple)  # `list | tuple` is built anew for every check, four times as slow

_ROLES: dict[str, Literal["user", "assistant", "system", "tool"]] = {
    **dict.fromkeys(HUMAN, "user"),
    **dict.fromkeys(AI, "assistant"),
    **dict.fromkeys(("system", "developer", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("tool", "function", "ToolMessageChunk"), "tool"),
}


class MessageText(NamedTuple):
    """A message's role and text, whatever its shape was."""

    role: str
    text: str


def message_of(item: object) -> MessageText | None:
    """Read a message object, a `("human", text)` pair or a `{"role", "content"}` dict.

    Returns:
        The message; None for anything else, or without text content.
    """
    role: object
    if isinstance(item, tuple):
        if len(item) != 2:
            return None
        role, content = item
    elif isinstance(item, dict):
        role, content = item.get("role", item.get("type")), item.get("content")
    else:
        role, content = getattr(item, "type", None), getattr(item, "content", None)
        if role == "chat":  # LangChain's message with a custom role
            role = getattr(item, "role", None)
    if not isinstance(role, str):
        return None
    text = content_text(content)
    return None if text is None else MessageText(role, text)


def content_text(content: object) -> str | None:
    """Join the texts of a message's content; other blocks, such as images, are left out.

    None for a value that is neither a text nor a list of blocks.
    """
    if isinstance(content, str):
        return builtin_str(content)
    if not isinstance(content, list):
        return None
    texts = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts)


def builtin_str(text: str) -> str:
    """Convert a subclass of `str`, such as LangChain's, to `str`: its pickles need LangChain."""
    return text if type(text) is str else str.__str__(text)


def last_text(items: Sequence[object], roles: frozenset[str]) -> str | None:
    """Return the text of the last message with one of these roles; None when there is none."""
    for item in reversed(items):
        message = message_of(item)
        if message is not None and message.role in roles:
            return message.text
    return None


def last_answer(items: Sequence[object]) -> str | None:
    """Return the text of the last AI message; None when there is none, or it only calls tools.

    If a tool's message is the last one (`return_direct`), its text is the answer. AI messages alone
    are several answers, and give None.
    """
    messages = [message_of(item) for item in items]
    if len(items) > 1 and all(message is not None and message.role in AI for message in messages):
        return None
    last = messages[-1] if messages else None
    if last is not None and _ROLES.get(last.role) == "tool":
        return last.text
    by_models = (i for i, message in enumerate(messages) if message and message.role in AI)
    return next((answer_of(items[i]) for i in reversed([*by_models])), None)


def turns_of(items: object) -> tuple[Turn, ...]:
    """Read earlier turns from messages, or from `(question, answer)` pairs.

    Messages without text (a model's tool calls) and with unknown roles are left out.
    """
    if not isinstance(items, LISTS):
        return ()
    turns: list[Turn] = []
    for item in items:
        message = message_of(item)
        if message is None:
            continue
        role = _ROLES.get(message.role)
        if role is not None:
            if message.text:
                turns.append(Turn(role=role, content=message.text))
        elif isinstance(item, tuple):
            turns += (
                Turn(role="user", content=builtin_str(item[0])),
                Turn(role="assistant", content=message.text),
            )
    return tuple(turns)


def turns_before_last_question(messages: Sequence[object]) -> tuple[Turn, ...]:
    """Read the turns before the last human message."""
    for i in range(len(messages) - 1, -1, -1):
        message = message_of(messages[i])
        if message is not None and message.role in HUMAN:
            return turns_of(messages[:i]) if i else ()
    return ()


def prompt_texts(started: object) -> tuple[str, ...]:
    """Return the texts of a model's request: its prompts, or the text of every message."""
    texts: list[str] = []
    for part in started if isinstance(started, list) else ():
        if isinstance(part, str):
            texts.append(part)
            continue
        for item in part if isinstance(part, list) else ():
            content = getattr(item, "content", None)
            if isinstance(content, str):
                texts.append(content)
            elif content is not None:
                texts.extend(_texts_within(content))
            elif (message := message_of(item)) is not None:
                texts.append(message.text)
    return tuple(texts)


def images_in(started: object) -> list[str]:
    """Return the images in a model's request: their URLs or base64."""
    images: list[str] = []
    for part in started if isinstance(started, list) else ():
        for item in part if isinstance(part, list) else ():
            content = getattr(item, "content", None)
            for block in content if isinstance(content, list) else ():
                for key in _IMAGES if isinstance(block, dict) else ():
                    inside = block.get(key)
                    parts = inside.values() if isinstance(inside, dict) else (inside,)
                    images += [value for value in parts if isinstance(value, str)]
    return images


def _texts_within(content: object, depth: int = 0) -> Iterator[str]:
    """Yield all texts of content blocks, including attached documents and search results."""
    if isinstance(content, str):
        yield content
    elif depth <= 4:
        if isinstance(content, list):
            for block in content:
                yield from _texts_within(block, depth + 1)
        elif isinstance(content, Mapping):
            for key in ("text", "content", "source", "document"):
                yield from _texts_within(content.get(key), depth + 1)
            if content.get("type") == "text":  # the source of an attached document
                yield from _texts_within(content.get("data"), depth + 1)


def tool_arguments(result: object) -> object:
    """Return the arguments of the only tool that an `LLMResult`'s message calls; else None."""
    for generations in getattr(result, "generations", None) or ():
        for generation in generations:
            calls = getattr(getattr(generation, "message", None), "tool_calls", None)
            if isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0], dict):
                return calls[0].get("args")
            return None
    return None


def generated_text(result: object) -> str | None:
    """Return the text of the first generation of an `LLMResult`; None when there is none."""
    for generations in getattr(result, "generations", None) or ():
        for generation in generations:
            text = getattr(generation, "text", None)
            return builtin_str(text) if isinstance(text, str) else None
    return None


# --- Inputs and outputs of a call's root


_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "user_question")
_QUESTION = re.compile(
    "^((user|customer|original|initial|current)_)?(question|query|message|request|prompt)$", re.I
)
_ANSWER_KEYS = ("answer", "result", "response", "output", "output_text", "text", "generation")
_NOT_FINAL = re.compile("context|doc|source|prompt|input", re.IGNORECASE)
_HISTORY_KEYS = ("chat_history", "history", "chat_messages", "previous_messages")
_MAX_DEPTH = 3

# Streams start with these inputs; the true ones come with the end (measured on 1.7 and 1.8).
_STREAM_START = {"input": ""}


def starts_stream(inputs: object) -> bool:
    """Return whether the inputs are the placeholder with which `stream` and `astream` start."""
    return type(inputs) is dict and inputs == _STREAM_START


def question_of(inputs: object, depth: int = 0) -> str:
    """Find the user's question in a root's inputs; empty when there is none.

    The inputs may be a string, a message, a list whose last human message is the question, an
    object with one of the usual keys or attributes, or a graph's `Command` with an update of the
    state. A key such as `original_query` goes before messages that end with an answer.
    """
    if isinstance(inputs, str):
        return builtin_str(inputs)
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
        question = question_of(_field(inputs, key), depth + 1)
        if question:
            return question
    messages = _field(inputs, "messages")
    if isinstance(messages, LISTS) and messages and isinstance(messages[-1], str):
        return builtin_str(
            messages[-1]
        )  # LangChain reads a bare string among messages as the user's
    asked = question_of(messages, depth + 1)
    return asked if asked and not _ends_with_answer(messages) else _named_question(inputs) or asked


def _named_question(inputs: object) -> str:
    """Return the first text whose key names what the user asks; empty when there is none."""
    named = (value for name, value in fields_of(inputs).items() if _QUESTION.search(str(name)))
    return next((builtin_str(value) for value in named if isinstance(value, str) and value), "")


def _ends_with_answer(messages: object) -> bool:
    """Return whether the last message is an answer, so that the question stands elsewhere."""
    last = message_of(messages[-1]) if isinstance(messages, LISTS) and messages else None
    return last is not None and last.role in AI


def question_in_state(state: object, depth: int = 0) -> str:
    """Find the user's question in a root's outputs; empty unless they are a state that holds it."""
    if isinstance(state, (str, *LISTS)) or message_of(state) is not None:
        return ""
    return question_of(state, depth)


def history_of(inputs: object) -> tuple[Turn, ...]:
    """Find the earlier turns in a root's inputs; empty when none can be identified.

    Messages before the last question, or a history under a usual name.
    """
    if inputs is None or isinstance(inputs, str):
        return ()
    if isinstance(inputs, LISTS):
        return turns_before_last_question(inputs)
    if turns := named_history(inputs):
        return turns
    messages = _field(inputs, "messages")
    if not isinstance(messages, LISTS):
        return ()
    if _ends_with_answer(messages) and question_of(inputs) != question_of(messages):
        return turns_of(messages)
    return turns_before_last_question(messages)


def named_history(inputs: object) -> tuple[Turn, ...]:
    """Read the earlier turns under one of their usual keys; empty when there are none."""
    for key in _HISTORY_KEYS:
        if turns := turns_of(_field(inputs, key)):
            return turns
    return ()


def answer_of(outputs: object, depth: int = 0) -> str | None:
    """Find the answer in a root's outputs; None when none can be identified.

    The outputs may be a string, a message, a list whose last AI message is the answer, or an
    object with one of the usual keys or attributes. Keys that begin with `final_` go first. A
    `structured_response` comes after the usual keys; a pydantic object in which no answer is found
    is written as JSON. Then comes the only value whose key names an answer (`answer_text`), by
    itself or inside of another value. A message that only calls tools gives None.
    """
    if isinstance(outputs, str):
        return builtin_str(outputs)
    if outputs is None or depth > _MAX_DEPTH:
        return None
    message = message_of(outputs)
    if message is not None and (message.role in _ROLES or not isinstance(outputs, tuple)):
        return None if not message.text and _field(outputs, "tool_calls") else message.text
    if isinstance(outputs, LISTS):
        return last_answer(outputs)
    for key, value in outputs.items() if isinstance(outputs, dict) else ():
        if str(key).lower().startswith("final_") and not _NOT_FINAL.search(str(key)):
            answer = answer_of(value, depth + 1)
            if answer and not is_no_answer(str(key), answer):
                return answer
    for key in _ANSWER_KEYS:
        answer = answer_of(_field(outputs, key), depth + 1)
        if answer is not None:
            return answer
    structured = _field(outputs, "structured_response")  # an agent's answer in a given format
    if structured is not None:
        return answer_of(structured, depth + 1) or _as_json(structured)
    messages = _field(outputs, "messages")
    answer = last_answer(messages) if isinstance(messages, LISTS) else None
    return _named_answer(outputs, depth) if answer is None else answer


def _named_answer(outputs: object, depth: int) -> str | None:
    """Return the only text under keys that name an answer, else the only one in values with such.

    None for several.
    """
    fields = fields_of(outputs)
    under = [value for name, value in fields.items() if names_answer(name)]
    inside = [value for value in fields.values() if any(map(names_answer, _names_in(value)))]
    for values in (under, inside):
        texts = {text for value in values if (text := answer_of(value, depth + 1))}
        if texts:
            return texts.pop() if len(texts) == 1 else None
    return None


def _names_in(value: object) -> Iterable[object]:
    """Return the names of the fields of a value that is neither a text nor a message."""
    return () if isinstance(value, str) or message_of(value) is not None else fields_of(value)


def structured_answer(outputs: object, arguments: object) -> str | None:
    """Return a structured answer as JSON; None for anything else.

    Args:
        outputs: a pydantic object, or the result of `with_structured_output(…, include_raw=True)`;
            or a dict that equals the arguments of the model's tool, or has them as a value.
        arguments: the arguments with which the last model called its tool.
    """
    if type(outputs) is dict and "raw" in outputs and "parsed" in outputs:
        outputs = outputs["parsed"]
    if hasattr(type(outputs), "__pydantic_fields__") and message_of(outputs) is None:
        return answer_of(outputs) or _as_json(outputs)
    if type(outputs) is dict and type(arguments) is dict and arguments:
        for value in (outputs, *outputs.values()):
            if _as_dict(value) == arguments:
                return answer_of(value) or json.dumps(json_object(arguments), ensure_ascii=False)
    return None


def _as_dict(value: object) -> object:
    """Return a dict, or a pydantic object as a dict; None for anything else."""
    if type(value) is dict:
        return value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else None


def is_command(value: object) -> bool:
    """Return whether it is a graph's `Command`, by its attributes: LangGraph stays optional."""
    return hasattr(value, "resume") and hasattr(value, "goto") and hasattr(value, "update")


def _as_json(value: object) -> str | None:
    """Return a pydantic object as JSON; None for anything else."""
    dump = getattr(value, "model_dump_json", None)
    text = dump() if callable(dump) else None
    return text if isinstance(text, str) else None


def _field(value: object, key: str) -> object:
    """Return an item of a dict, or an attribute of an object; None where it is missing."""
    return value.get(key) if isinstance(value, dict) else getattr(value, key, None)
