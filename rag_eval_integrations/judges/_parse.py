"""Read a model's reply as labels, or raise the reason why that is not possible."""

from __future__ import annotations

from typing import Any

from rag_eval_integrations.errors import InputError, JudgeOutputError
from rag_eval_integrations.models._reading import mended, objects_in
from rag_eval_integrations.records import Labels, SentenceSupport, from_object

_LISTS = (
    "all_relevant_sentence_keys",
    "sentence_support_information",
    "all_utilized_sentence_keys",
)


class NullListError(JudgeOutputError):
    """A reply in which a list is null or missing: nothing was said, which is not "none"."""


def parse_labels(text: str) -> Labels:
    """Read a reply as labels, not yet checked against the sentences.

    Raises:
        NullListError: a list is null or missing. In recorded labels, null stands for no keys; a
            reply is asked for once more instead.
        JudgeOutputError: no JSON object, one that is cut off, or one that does not hold labels.
    """
    content = parse_object(text)
    absent = [name for name in _LISTS if content.get(name) is None]
    if len(absent) == len(_LISTS):
        raise JudgeOutputError("the judge's JSON does not hold labels", text)
    if absent:
        raise NullListError(f"the judge's `{absent[0]}` is null or missing", text)
    # A field of this name in a reply is the model's own, in whatever form.
    return _validated({**content, "contradictions": {}}, text)


def parse_support(text: str) -> tuple[SentenceSupport, ...]:
    """Read the reply to the request for missing response sentences.

    Raises:
        JudgeOutputError: no JSON object, or one that does not hold entries.
    """
    content: dict[str, Any] = {
        "all_relevant_sentence_keys": [],
        "all_utilized_sentence_keys": [],
        "sentence_support_information": parse_object(text).get("sentence_support_information"),
    }
    return _validated(content, text).sentence_support_information


def _validated(content: dict[str, Any], text: str) -> Labels:
    try:
        return from_object(Labels, content)
    except InputError as error:
        raise JudgeOutputError(f"the judge's JSON does not hold labels: {error}", text) from error


def parse_object(text: str) -> dict[str, Any]:
    """Read the last JSON object of a reply, despite fences, prose around it and small mistakes.

    The last, because a model that quotes an object from the documents does so before its answer. An
    object that does not parse is taken for the answer: none before or inside it is returned. The
    messages of the errors are part of prompts (G-Eval's repair request).

    Raises:
        JudgeOutputError: when there is no complete object.
    """
    value: Any = None
    for each in objects_in(text):
        value = each.value
        if value is None:
            value = mended(text, each.start)
            break
    if not isinstance(value, dict):
        raise JudgeOutputError("the judge's reply holds no JSON object", text)
    return value
