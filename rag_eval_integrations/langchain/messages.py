"""Stage 1, LangChain's messages: who said what, out of any of the shapes that a message takes.

Read by attribute and not by class, so that no module of LangChain needs to be imported and every
version's classes fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from rag_eval_integrations.records import Turn

HUMAN = frozenset({"human", "user", "HumanMessageChunk"})
AI = frozenset({"ai", "assistant", "AIMessageChunk"})
LISTS = (list, tuple)  # `list | tuple` is built anew at every check, four times as slow

_ROLES: dict[str, Literal["user", "assistant", "system", "tool"]] = {
    **dict.fromkeys(HUMAN, "user"),
    **dict.fromkeys(AI, "assistant"),
    **dict.fromkeys(("system", "developer", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("tool", "function", "ToolMessageChunk"), "tool"),
}


class Message(NamedTuple):
    """A message, whatever its shape was."""

    role: str
    text: str


def message_of(item: object) -> Message | None:
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
        if role == "chat":  # LangChain's message with a role of the user's own
            role = getattr(item, "role", None)
    if not isinstance(role, str):
        return None
    text = content_text(content)
    return None if text is None else Message(role, text)


def content_text(content: object) -> str | None:
    """Join the text of a message's content; blocks that are no text (images …) are left out."""
    if isinstance(content, str):
        return plain(content)
    if not isinstance(content, list):
        return None
    texts = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts)


def plain(text: str) -> str:
    """Make a `str` of LangChain's subclass of it, whose pickles need LangChain."""
    return text if type(text) is str else str.__str__(text)


def last_text(items: Sequence[object], roles: frozenset[str]) -> str | None:
    """Take the text of the last message of these roles; None when there is none."""
    for item in reversed(items):
        message = message_of(item)
        if message is not None and message.role in roles:
            return message.text
    return None


def last_answer(items: Sequence[object]) -> str | None:
    """Take the text of the last AI message; None when there is none.

    Of a tool's message that ends a conversation (`return_direct`), its text: nobody wrote another.
    Several AI messages and nothing else are several answers.
    """
    messages = [message_of(item) for item in items]
    if len(items) > 1 and all(one is not None and one.role in AI for one in messages):
        return None
    last = messages[-1] if messages else None
    if last is not None and _ROLES.get(last.role) == "tool":
        return last.text
    return last_text(items, AI)


def turns_of(items: object) -> tuple[Turn, ...]:
    """Read earlier turns out of messages, or of `(question, answer)` pairs.

    Messages without text (a model's tool calls) and of unknown roles are left out.
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
                Turn(role="user", content=plain(item[0])),
                Turn(role="assistant", content=message.text),
            )
    return tuple(turns)


def turns_before_last_question(messages: Sequence[object]) -> tuple[Turn, ...]:
    """Read the turns that came before the last human message."""
    for i in range(len(messages) - 1, -1, -1):
        message = message_of(messages[i])
        if message is not None and message.role in HUMAN:
            return turns_of(messages[:i]) if i else ()
    return ()


def prompt_texts(started: object) -> tuple[str, ...]:
    """Take the texts a model is started with: its prompts, or every message's text."""
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


def _texts_within(content: object, depth: int = 0) -> Iterator[str]:
    """All texts of content blocks, those of attached documents and search results as well."""
    if isinstance(content, str):
        yield content
    elif depth <= 4:
        if isinstance(content, list):
            for block in content:
                yield from _texts_within(block, depth + 1)
        elif isinstance(content, Mapping):
            for key in ("text", "content", "source", "document"):
                yield from _texts_within(content.get(key), depth + 1)
            if content.get("type") == "text":  # a document's source
                yield from _texts_within(content.get("data"), depth + 1)


def tool_arguments(result: object) -> object:
    """Take the arguments of the only tool that an `LLMResult`'s message calls; else None."""
    for generations in getattr(result, "generations", None) or ():
        for generation in generations:
            calls = getattr(getattr(generation, "message", None), "tool_calls", None)
            if isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0], dict):
                return calls[0].get("args")
            return None
    return None


def generated_text(result: object) -> str | None:
    """Take the first generation's text out of an `LLMResult`; None when there is none."""
    for generations in getattr(result, "generations", None) or ():
        for generation in generations:
            text = getattr(generation, "text", None)
            return plain(text) if isinstance(text, str) else None
    return None
