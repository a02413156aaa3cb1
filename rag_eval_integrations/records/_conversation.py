"""The conversation that a call is a turn of, as its metadata name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CONVERSATION = ("thread_id", "conversation_id", "session_id")
"""Fields of metadata that name a conversation, in the order that they are looked for."""
_ID = (str, int, float)  # pandas makes floats of whole numbers where one is missing


def conversation_in(
    metadata: Iterable[Mapping[str, Any]], fields: Sequence[str] = CONVERSATION
) -> str | None:
    """Find the name of a conversation in metadata, those in front before others.

    None where no field has an id.
    """
    everywhere = list(metadata)
    values = (each.get(field) for field in fields for each in everywhere)
    return next((str(value) for value in values if isinstance(value, _ID) and value != ""), None)


def with_conversation(metadata: Mapping[str, Any], conversation: str | None) -> dict[str, Any]:
    """Return metadata with the framework's own id of the conversation, if the app names none."""
    if not conversation or conversation_in([metadata]) is not None:
        return dict(metadata)
    return {**metadata, "conversation_id": conversation}
