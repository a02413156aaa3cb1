"""The part of a call that G-Eval shows to the model: parameters select sections of a `RagCall`.

A conversation, given as a list of turns, becomes a `RagCall` first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, Turn, UnscoredCode, from_object

PARAMS = ("question", "response", "reference", "documents", "history", "conversation")
"""Names of parameters; `metadata.FIELD` names a field of the call's metadata."""

_OTHER_NAMES = {
    "input": "question",
    "actual_output": "response",
    "expected_output": "reference",
    "context": "documents",
    "retrieval_context": "documents",
    "turns": "conversation",
}
_TITLES = {
    "question": "Question",
    "response": "Response",
    "reference": "Expected Response",
    "documents": "Documents",
    "history": "Earlier Turns",
    "conversation": "Conversation",
}
_MISSING: dict[str, tuple[UnscoredCode, str]] = {
    "question": ("no_question", "the call has no question"),
    "response": ("empty_response", "the call has no response"),
    "documents": ("no_context", "the call has no documents with text"),
}


@dataclass(frozen=True, slots=True)
class Section:
    """One fenced part of the prompt's material: a parameter of a call, one document or one turn."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MissingParam:
    """The first parameter that a call lacks, and the reason code of its score."""

    code: UnscoredCode
    why: str


def checked_params(params: object) -> tuple[str, ...]:
    """Check the names of parameters, and translate DeepEval's names to ours.

    Raises:
        ConfigurationError: no parameter is named, or one is unknown or named twice.
    """
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise ConfigurationError("params", params, "use a tuple of names, as in ('response',)")
    if not params:
        raise ConfigurationError("params", params, "name at least one parameter")
    checked = []
    for given in params:
        name = given.value if isinstance(given, Enum) else given  # DeepEval's are members
        known = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
        if known not in PARAMS and not re.fullmatch(r"metadata\.[^\s.].{0,99}", known):
            names = ", ".join(PARAMS)
            why = f"is not a parameter; use {names} or metadata.FIELD"
            raise ConfigurationError("params", name, why)
        if known in checked:
            raise ConfigurationError("params", name, "is named twice")
        checked.append(known)
    return tuple(checked)


def title(param: str) -> str:
    """Return the title of a parameter in a prompt."""
    return _TITLES.get(param) or param.removeprefix("metadata.").replace("_", " ").title()


def titles(params: Sequence[str]) -> str:
    """List the titles of parameters: `Question, Documents and Response`."""
    *first, last = [title(param) for param in params]
    return f"{', '.join(first)} and {last}" if first else last


def sections_of(call: RagCall, params: Sequence[str]) -> tuple[Section, ...] | MissingParam:
    """Return the sections of a call that the parameters select, or the first missing parameter."""
    sections: list[Section] = []
    for param in params:
        filled = [section for section in _sections(call, param) if section.text.strip()]
        if not filled:
            code, why = _MISSING.get(param, ("missing_param", f"the call has no {param}"))
            return MissingParam(code, f"{why}, which this metric needs (params: {param})")
        sections += filled
    return tuple(sections)


def _sections(call: RagCall, param: str) -> list[Section]:
    """Return the sections of a parameter in the prompt: one, or one per document or turn."""
    name = title(param)
    if param == "documents":
        # Numbered like sentence keys: an empty document keeps its number.
        return [
            Section(f"Document {i}", document.shown) for i, document in enumerate(call.documents)
        ]
    if param in ("history", "conversation"):
        turns = turns_of(call) if param == "conversation" else call.history
        return [Section(f"Turn {i}, {turn.role}", turn.content) for i, turn in enumerate(turns)]
    if param.startswith("metadata."):
        value = call.metadata.get(param.removeprefix("metadata."))
        known = value is None or isinstance(value, str)
        return [Section(name, str(value or "") if known else json.dumps(value, ensure_ascii=False))]
    return [Section(name, getattr(call, param) or "")]


# --- Conversations: a list of turns as a call, and a call as a list of turns


Conversation = Sequence[Turn | Mapping[str, str]]


def call_of_turns(turns: Conversation) -> RagCall:
    """Make a call of a conversation: its last question and answer, with the rest as history.

    Args:
        turns: the turns, oldest first, each a `Turn` or `{"role": …, "content": …}`.

    Raises:
        ConfigurationError: the argument is not a list of turns, or is empty.
        InputError: an item is not a valid turn.
    """
    given: object = turns
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or not all(isinstance(turn, Turn | Mapping) for turn in turns):
        why = "use a RagCall, or a list of turns {'role': …, 'content': …}"
        raise ConfigurationError("call", turns, why)
    listed = [turn if isinstance(turn, Turn) else from_object(Turn, dict(turn)) for turn in turns]
    if not listed:
        raise ConfigurationError("turns", list(turns), "give at least one turn")
    response = listed.pop().content if listed[-1].role == "assistant" else None
    question = listed.pop().content if listed and listed[-1].role == "user" else ""
    return RagCall(question=question, documents=(), response=response, history=listed)


def turns_of(call: RagCall) -> tuple[Turn, ...]:
    """Return all turns of a call: its history, its question and its response."""
    last = (("user", call.question), ("assistant", call.response or ""))
    turns = [from_object(Turn, {"role": role, "content": text}) for role, text in last if text]
    return (*call.history, *turns)
