"""What `evaluate_dataset` is given: examples of any make, read into one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations._observe import json_object, json_value
from rag_eval_integrations.dataset.asking import Question
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain.evaluators.given import reference_in
from rag_eval_integrations.langchain.extract import question_of
from rag_eval_integrations.records import RagCall

_EXPECTED = ("reference", "reference_outputs", "outputs", "reference_answer", "expected_output")


@dataclass(frozen=True)
class Example(Question):
    """One example: what the chain is asked, and what is known about it.

    Without an id of the user's, `label` is the first 16 hex digits of a digest of input and
    reference.
    """

    given: object = None
    """The chain's input."""


def example_from(
    item: object, place: str, make_input: Callable[[Any], object] | None = None
) -> Example:
    """Read an example: a string, a dict, a `RagCall`, or LangSmith's `Example`.

    Args:
        item: the example.
        place: where it stands, for the message.
        make_input: makes the chain's input of it; by default its `inputs`, else its `question`.

    Raises:
        ConfigurationError: it has neither; names the place.
    """
    fields = _fields(item, place)
    given = fields.get("inputs", fields.get("question")) if make_input is None else make_input(item)
    expected = (fields[name] for name in _EXPECTED if fields.get(name) is not None)
    reference = next(map(reference_in, expected), None)
    asked = fields.get("question")
    metadata = fields.get("metadata")
    label = fields.get("id")
    return Example(
        given=given,
        text=asked if isinstance(asked, str) else question_of(given),
        reference=reference,
        label=_digest(given, reference) if label in (None, "") else str(label),
        metadata=json_object(metadata) if isinstance(metadata, Mapping) else {},
    )


def _fields(item: object, place: str) -> Mapping[str, Any]:
    if isinstance(item, str):
        return {"question": item}
    if isinstance(item, RagCall):
        names = ("question", "reference", "id", "metadata")
        return {name: getattr(item, name) for name in names}
    if isinstance(item, Mapping):
        fields = item
    else:
        names = ("inputs", "outputs", "id", "metadata")
        fields = {name: getattr(item, name) for name in names if hasattr(item, name)}
    if "inputs" not in fields and not isinstance(fields.get("question"), str):
        raise ConfigurationError(place, item, "should have `inputs` (passed on) or a `question`")
    return fields


def _digest(given: object, reference: str | None) -> str:
    text = json.dumps([json_value(given), reference], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
