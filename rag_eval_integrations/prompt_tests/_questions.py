"""Questions to the generator: what they show of a prompt, and a second try after a bad reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests._replies import SEPARATOR, is_refusal
from rag_eval_integrations.prompt_tests._requests import (
    RecordedModel,
    ask_model,
    dialogue,
    sections,
)
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.records._json import JsonObject

T = TypeVar("T")

TEXT: JsonObject = {"type": "string"}
"""The JSON schema of a text."""


async def ask_generator(
    model: RecordedModel,
    instructions: str,
    parts: dict[str, str],
    read: Callable[[str], T | None],
    *,
    version: str,
    again: str,
    lack: str,
    author: str | None = None,
    schema: JsonObject | None = None,
    name: str = "answer",
    chat: list[Message] | None = None,
) -> T:
    """Ask the generator a question, once more if its reply cannot be read; return what was read.

    A refusal, and outside of a chat a reply that was cut off, is not read. If both replies are
    unusable, they are removed from the journal, so that the next run asks again. A usable reply is
    added to `chat`.

    Args:
        model: the generator.
        instructions: the system message.
        parts: the material by name.
        read: reads a reply; None if it cannot.
        version: version of the prompt and parser.
        again: the message after a reply that cannot be read.
        lack: what such a reply lacks, for the error.
        author: what the prompt's author adds to the instructions.
        schema: JSON schema of the reply; None for text.
        name: name of the schema.
        chat: a chat to begin or to continue, in which a reply that was cut off is read as well;
            None for a question of its own.

    Raises:
        JudgeError: when the model does not answer; `JudgeOutputError` when it twice gives no usable
            reply.
    """
    if author:
        instructions = f"{instructions}\n\nThe author of the prompt adds: {author}"
    messages = chat or [*dialogue(instructions, sections(parts))]
    requests: list[CompletionRequest] = []
    for _ in (1, 2):
        request = CompletionRequest(
            messages=tuple(messages), json_schema=schema, schema_name=name, prompt_version=version
        )
        requests.append(request)
        completion = await ask_model(model, request)
        text, why = completion.text, f" {lack}"
        reply = text or "(nothing)"
        refuses = is_refusal(text) and not SEPARATOR.search(text)  # tests may begin like a refusal
        if completion.choices[0].refusal or refuses:
            why = f" refused: {one_line(text, 100)}"
        elif completion.finish_reason == "length" and chat is None:
            why = "'s reply was cut off"
        elif (content := read(text)) is not None:
            if chat is not None:
                chat[:] = [*messages, Message(role="assistant", content=reply)]
            return content
        cut = Message(role="assistant", content=reply[:4000])
        messages = [*messages, cut, Message(role="user", content=again)]
    for request in requests:
        model.forget(request)
    raise JudgeOutputError(f"the generator{why}", text)


def described_inputs(prompt: PromptUnderTest) -> str:
    """Describe a prompt's inputs, a line each."""
    return "\n".join(
        f"{input_.name} ({input_.type})" + (f": {input_.description}" if input_.description else "")
        for input_ in prompt.inputs.values()
    )


def sample_section(prompt: PromptUnderTest) -> dict[str, str]:
    """Return the section of the author's first five sample inputs; empty if there are none."""
    lines = [json.dumps(sample, ensure_ascii=False) for sample in prompt.samples[:5]]
    return {"samples": "\n".join(lines)} if lines else {}
