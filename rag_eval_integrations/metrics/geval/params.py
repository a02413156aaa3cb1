"""What of a call a metric shows to the judge: its parameters, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.geval.conversation import turns_of
from rag_eval_integrations.records import RagCall, UnscoredCode

PARAMS = ("question", "response", "reference", "documents", "history", "conversation")
"""Names, beside `metadata.FIELD` for what the app has put there."""

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
    """A parameter of one call, or one document or turn of it, which is fenced off by itself."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A parameter that the call does not have."""

    code: UnscoredCode
    why: str


def checked_params(params: object) -> tuple[str, ...]:
    """Check names of parameters and take deepeval's for ours.

    Raises:
        ConfigurationError: for none, an unknown one, or one that is named twice.
    """
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise ConfigurationError("params", params, "use a tuple of names, as in ('response',)")
    if not params:
        raise ConfigurationError("params", params, "name at least one parameter")
    checked = []
    for name in params:
        known = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
        if known not in PARAMS and not re.fullmatch(r"metadata\.[^\s.].{0,99}", known):
            names = ", ".join(PARAMS)
            raise ConfigurationError(
                "params", name, f"no such parameter; there are {names} and metadata.FIELD"
            )
        if known in checked:
            raise ConfigurationError("params", name, "is named twice")
        checked.append(known)
    return tuple(checked)


def title(param: str) -> str:
    """Name of a parameter in a prompt."""
    return _TITLES.get(param) or param.removeprefix("metadata.").replace("_", " ").title()


def titles(params: Sequence[str]) -> str:
    """List the names: `Question, Documents and Response`."""
    *first, last = [title(param) for param in params]
    return f"{', '.join(first)} and {last}" if first else last


def sections_of(call: RagCall, params: Sequence[str]) -> tuple[Section, ...] | Missing:
    """Take the parameters from a call; the first that is missing where one is."""
    sections: list[Section] = []
    for param in params:
        found = [section for section in _sections(call, param) if section.text.strip()]
        if not found:
            code, why = _MISSING.get(param, ("missing_param", f"the call has no {param}"))
            return Missing(code, f"{why}, which this metric needs (params: {param})")
        sections += found
    return tuple(sections)


def _sections(call: RagCall, param: str) -> list[Section]:
    name = title(param)
    if param == "documents":
        # Numbered as everywhere else: an empty document keeps its number.
        return [
            Section(f"Document {i}", document.text) for i, document in enumerate(call.documents)
        ]
    if param in ("history", "conversation"):
        turns = turns_of(call) if param == "conversation" else call.history
        return [Section(f"Turn {i}, {turn.role}", turn.content) for i, turn in enumerate(turns)]
    if param.startswith("metadata."):
        value = call.metadata.get(param.removeprefix("metadata."))
        known = value is None or isinstance(value, str)
        return [Section(name, str(value or "") if known else json.dumps(value, ensure_ascii=False))]
    return [Section(name, getattr(call, param) or "")]
