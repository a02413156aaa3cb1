"""Stage 1 for LlamaIndex's chat engines: read the earlier turns, follow the streams they write.

A chat engine writes its stream in a thread or task of its own, whether or not anybody reads it, and
sends events with the text. A query's stream is read by the app instead: see `_stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_eval_integrations.llama_index._values import text_of
from rag_eval_integrations.records import CaptureStatus


def earlier_messages(arguments: Mapping[str, Any], engine: object) -> list[Any] | None:
    """Return the messages with which a chat method starts: those passed to it, or the engine's own.

    None when they are in a memory that is more than a plain store (a database, a summary): reading
    it would slow down the app's call.
    """
    given = arguments.get("chat_history")
    if given:
        return list(given)  # a copy, since the engine writes into this list
    memory = getattr(engine, "_memory", None)
    store = getattr(getattr(memory, "chat_store", None), "store", None)
    if not isinstance(store, Mapping):
        return None
    # An empty list replaces the content of the memory.
    return (
        [] if given is not None else list(store.get(getattr(memory, "chat_store_key", None)) or ())
    )


def template_messages(synthesizer: object) -> list[Any]:
    """Return the messages of which a chat engine made its synthesizer's template; else none.

    They are the conversation, also if the model is sent one text, with the question's place last.
    """
    template = getattr(synthesizer, "__dict__", {}).get("_text_qa_template")
    messages = getattr(template, "message_templates", None)
    if not isinstance(messages, list):
        return []
    # Where a model has no system role, the nodes' place looks like a turn of the user.
    return [message for message in messages if "{context_str}" not in (text_of(message) or "")]


def fills_itself(result: object) -> bool:
    """Return whether a thread or task of the chat engine writes the result's stream."""
    own = getattr(result, "__dict__", {})
    return "queue" in own and bool(own.get("is_writing_to_memory"))


class Writing:
    """The text that a chat engine has written into one stream so far."""

    def __init__(self, response: object) -> None:
        self.response = response
        self.status: CaptureStatus | None = None
        """How the writing ended; None while it goes on."""
        self._deltas: list[str] = []

    def add(self, delta: object) -> None:
        """Append a piece of text."""
        if isinstance(delta, str):
            self._deltas.append(delta)

    def end(self, status: CaptureStatus) -> None:
        """Record how the writing ended; only the first end counts."""
        self.status = self.status or status

    @property
    def text(self) -> str | None:
        """The whole text; the part so far if the stream was cut off; None if it failed."""
        text = "".join(self._deltas)
        if self.status == "ok":
            return text
        return (text or None) if self.status == "aborted" else None
