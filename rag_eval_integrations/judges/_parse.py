"""Read a model's reply as labels, or raise the reason why that is not possible."""

from __future__ import annotations

import json
import re
from typing import Any

from rag_eval_integrations.errors import InputError, JudgeOutputError
from rag_eval_integrations.records import Labels, SentenceSupport, from_object

_MOST_TRIES = 200
_MOST_REPAIRED = 20_000  # characters
_MOST_MARKS = 1_500  # quotes, braces and brackets among them
"""A longer broken reply is not repaired: json_repair takes quadratic time, 7 s for 20,000 brackets
and 17 s for 12,000 characters of misplaced quotes."""
_BEGINS = re.compile(r"\{\s*(?:[\"'\n]|\Z)")


def parse_labels(text: str) -> Labels:
    """Read a reply as labels, not yet checked against the sentences.

    Raises:
        JudgeOutputError: no JSON object, one that is cut off, or one without the key lists.
    """
    return _validated(parse_object(text), text)


def parse_support(text: str) -> tuple[SentenceSupport, ...]:
    """Read the reply to the request for missing response sentences.

    Raises:
        JudgeOutputError: no JSON object, or one without entries.
    """
    found = parse_object(text).get("sentence_support_information")
    content: dict[str, Any] = {
        "all_relevant_sentence_keys": [],
        "all_utilized_sentence_keys": [],
        "sentence_support_information": found,
    }
    return _validated(content, text).sentence_support_information


def _validated(content: dict[str, Any], text: str) -> Labels:
    try:
        return from_object(Labels, content)
    except InputError as error:
        raise JudgeOutputError(f"the judge's JSON does not hold labels: {error}", text) from error


def parse_object(text: str) -> dict[str, Any]:
    """Read the JSON object in a reply, despite fences, prose around it and small mistakes.

    An object that is cut off is refused instead of completed: keys missing from a list would
    otherwise count as "not relevant". The messages of the errors are part of prompts (G-Eval's
    repair request): a changed word there changes what models are asked.

    Raises:
        JudgeOutputError: when there is no complete object.
    """
    found, broken = _last_object(text)
    if broken is not None:
        body = _body(text[broken:])
        if not _is_closed(body):
            raise JudgeOutputError("the judge's JSON was cut off", text)
        found = _repaired(body, text)
    if not isinstance(found, dict):
        raise JudgeOutputError("the judge's reply holds no JSON object", text)
    return found


def _last_object(text: str) -> tuple[dict[str, Any] | None, int | None]:
    """Return the last JSON object in a text, or the position of the first one that is broken.

    The last, because a model that quotes an object from the documents does so before its answer. An
    object that does not parse is taken for the answer: none before or inside it is returned.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] | None = None
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_TRIES:
        tries += 1
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if _BEGINS.match(text, position):
                return None, position
            end = position + 1  # a brace in prose
        position = text.find("{", end)
    return found, None


def _body(text: str) -> str:
    """Cut off the text after an object: the end of its fence, prose."""
    body = text.split("```", 1)[0]
    whole = body[: body.rfind("}") + 1]
    return whole if whole and _is_closed(whole) else body.strip()


def _is_closed(body: str) -> bool:
    """Whether every brace and bracket outside of strings is closed."""
    depth = 0
    inside = escaped = False
    for character in body:
        if escaped:
            escaped = False
        elif inside:
            if character == "\\":
                escaped = True
            elif character == '"':
                inside = False
        elif character == '"':
            inside = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
    return depth <= 0 and not inside


def _repaired(body: str, text: str) -> Any:
    from json_repair import loads  # noqa: PLC0415  # only when a reply needs it

    if len(body) > _MOST_REPAIRED or sum(map(body.count, "\"'{}[]")) > _MOST_MARKS:
        raise JudgeOutputError("the judge's JSON is broken, and too long to be repaired", text)
    try:
        return loads(body)
    except (ValueError, RecursionError) as error:
        raise JudgeOutputError("the judge's reply holds no readable JSON", text) from error
