"""What all stages share: one question, one more if the reply is no use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests.asking import Recorded
from rag_eval_integrations.prompt_tests.cleaning import is_refusal
from rag_eval_integrations.records import JsonObject

T = TypeVar("T")


def dialogue(system: str, user: str) -> tuple[Message, ...]:
    """Put instructions and material into the two messages of a question."""
    return Message(role="system", content=system), Message(role="user", content=user)


def with_author(text: str, instructions: str | None) -> str:
    """Add the prompt author's own words about a stage to its instructions."""
    return f"{text}\n\nThe author of the prompt adds: {instructions}" if instructions else text


def strings_schema(field: str) -> JsonObject:
    """Shape of a reply that is a list of texts."""
    return {
        "type": "object",
        "properties": {field: {"type": "array", "items": {"type": "string"}}},
        "required": [field],
        "additionalProperties": False,
    }


async def ask(
    model: Completer,
    messages: tuple[Message, ...],
    parse: Callable[[str], T],
    *,
    version: str,
    again: str,
    schema: JsonObject | None = None,
    temperature: float | None = None,
) -> T:
    """Ask, and once more when the reply is a refusal or not what was asked for.

    Args:
        model: who is asked.
        messages: the question.
        parse: reads a reply; raises `JudgeOutputError` when it cannot.
        version: of prompt and parser.
        again: what to say after a reply that is no use.
        schema: shape of a JSON reply.
        temperature: None leaves it to the model.

    Raises:
        JudgeOutputError: twice no use; says why.
        JudgeError: the model does not answer.
    """
    asked = messages
    requests: list[CompletionRequest] = []
    for attempt in (1, 2):
        request = CompletionRequest(
            messages=asked, json_schema=schema, prompt_version=version, temperature=temperature
        )
        requests.append(request)
        completion = await model.complete(request)
        text = completion.text
        try:
            if completion.choices[0].refusal or is_refusal(text):
                raise JudgeOutputError(f"the generator refused: {_short(text)}", text)
            if completion.finish_reason == "length":
                raise JudgeOutputError("the generator's reply was cut off", text)
            return parse(text)
        except JudgeOutputError:
            if attempt == 2:
                forget(model, requests)
                raise
            asked = (
                *messages,
                Message(role="assistant", content=text[:4000] or "(nothing)"),
                Message(role="user", content=again),
            )
    raise AssertionError  # the second attempt returns or raises


def forget(model: Completer, requests: Iterable[CompletionRequest]) -> None:
    """Take replies of no use out of the record: the next run asks again."""
    if isinstance(model, Recorded):
        for request in requests:
            model.forget(request)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
