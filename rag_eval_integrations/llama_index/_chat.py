"""Stage 1, LlamaIndex's chat engines: their earlier turns, and streams that fill themselves.

A chat engine's stream is written by a thread or task of its own, whether or not anybody reads
it; what it writes comes as events. A query's stream is read by the app instead: see `stream.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_eval_integrations.records import CaptureStatus


def earlier_messages(arguments: Mapping[str, Any], engine: object) -> list[Any] | None:
    """The messages that a chat method starts from: those it is given, or the engine's own.

    None when only a memory knows that has more than a plain store (a database, a summary): it is
    not asked, which would slow the app's call down.
    """
    given = arguments.get("chat_history")
    if given:
        return list(given)  # the engine goes on to write into this very list
    memory = getattr(engine, "_memory", None)
    store = getattr(getattr(memory, "chat_store", None), "store", None)
    if not isinstance(store, Mapping):
        return None
    # An empty list that is given replaces what the memory holds.
    return (
        [] if given is not None else list(store.get(getattr(memory, "chat_store_key", None)) or ())
    )


def fills_itself(result: object) -> bool:
    """Whether a chat's stream is written by a thread or task of the engine."""
    own = getattr(result, "__dict__", {})
    return "queue" in own and bool(own.get("is_writing_to_memory"))


class Writing:
    """What a chat engine has written into one stream so far."""

    def __init__(self, response: object) -> None:
        self.response = response
        self.status: CaptureStatus | None = None
        """Set when the writing has ended."""
        self._deltas: list[str] = []

    def add(self, delta: object) -> None:
        """Take a piece of text."""
        if isinstance(delta, str):
            self._deltas.append(delta)

    def end(self, status: CaptureStatus) -> None:
        """Note how the writing ended; only once."""
        self.status = self.status or status

    @property
    def text(self) -> str | None:
        """All text; the part that came when it was cut off; none of a failed stream."""
        text = "".join(self._deltas)
        if self.status == "ok":
            return text
        return (text or None) if self.status == "aborted" else None
