"""A list of turns as a call, and a call as a list of turns: what multi-turn metrics judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, Turn, from_object

Turns = Sequence[Turn | Mapping[str, str]]


def call_of_turns(turns: Turns) -> RagCall:
    """Make a call of a conversation: its last question and answer, the rest as history.

    Args:
        turns: oldest first; turns or `{"role": …, "content": …}`.

    Raises:
        ConfigurationError: for no turns, or something that is no list of turns.
        InputError: for a turn that is none.
    """
    given: object = turns
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or not all(isinstance(turn, Turn | Mapping) for turn in turns):
        raise ConfigurationError(
            "call", turns, "use a RagCall, or a list of turns {'role': …, 'content': …}"
        )
    listed = [turn if isinstance(turn, Turn) else from_object(Turn, dict(turn)) for turn in turns]
    if not listed:
        raise ConfigurationError("turns", list(turns), "give at least one turn")
    response = listed.pop().content if listed[-1].role == "assistant" else None
    question = listed.pop().content if listed and listed[-1].role == "user" else ""
    return RagCall(question=question, documents=(), response=response, history=listed)


def turns_of(call: RagCall) -> tuple[Turn, ...]:
    """Give all turns of a call: its history, its question and its response."""
    last = (("user", call.question), ("assistant", call.response or ""))
    said = [from_object(Turn, {"role": role, "content": text}) for role, text in last if text]
    return (*call.history, *said)
