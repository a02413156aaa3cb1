"""Write a `CompletionRequest` as the body of a chat request. Pure.

Parameters that the endpoint is known to refuse are left out, each with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai._capabilities import Capabilities, StructuredBy

Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Defaults:
    """Settings of a model, used where the request has none."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    # Its values may be secrets.
    extra_body: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """A body, with warnings about how it differs from the request."""

    body: dict[str, Any] = field(repr=False)
    """Fields given as `extra_body` may be secrets, and a traceback may show locals."""
    structured_by: StructuredBy | None
    """The way JSON is asked for; None for free text."""
    warnings: tuple[str, ...]
    parameters: frozenset[str] = frozenset()
    """Names of the request's own `parameters`."""


def body_of(
    model: str,
    asked: CompletionRequest,
    defaults: Defaults,
    can: Capabilities,
) -> Sent:
    """Write the body for an endpoint with the capabilities `can`.

    Args:
        model: the model's name.
        asked: the request.
        defaults: settings where the request has none.
        can: what the endpoint takes.
    """
    warnings: list[str] = []
    by = can.structured_by if asked.json_schema is not None else None
    if by not in (None, "json_schema"):
        warnings.append(f"JSON was asked for by {by}: the endpoint refuses better ways")
    body: dict[str, Any] = {"model": model, "messages": _messages(asked, by, can, warnings)}
    if asked.json_schema is not None and by is not None:
        body.update(_structured(asked.schema_name, asked.json_schema, by))
    for name, value in _parameters(asked, defaults, can).items():
        if name in can.refused:
            warnings.append(f"`{name}` was left out: the endpoint refuses it")
        elif (limit := can.limits.get(name)) is not None and value > limit:
            warnings.append(f"`{name}` was lowered from {value} to the endpoint's limit of {limit}")
            body[name] = limit
        else:
            body[name] = value
    if "logprobs" not in body:
        body.pop("top_logprobs", None)  # refused by OpenAI without `logprobs`
    if "tools" not in body:
        for name in _ABOUT_TOOLS:
            body.pop(name, None)
    body.update(defaults.extra_body)
    return Sent(body, by, tuple(warnings), frozenset(asked.parameters))


_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")


def _parameters(asked: CompletionRequest, defaults: Defaults, can: Capabilities) -> dict[str, Any]:
    """Return the parameters to send: none at its default, since servers may refuse it."""
    parameters: dict[str, Any] = {}
    temperature = defaults.temperature if asked.temperature is None else asked.temperature
    if temperature is not None:
        parameters["temperature"] = temperature
    seed = defaults.seed if asked.seed is None else asked.seed
    if seed is not None:
        parameters["seed"] = seed
    if asked.n > 1:
        parameters["n"] = asked.n
    if asked.top_logprobs is not None:
        parameters["logprobs"] = True
        if asked.top_logprobs:
            parameters["top_logprobs"] = asked.top_logprobs
    cap = asked.max_tokens or defaults.max_tokens
    if cap is not None:
        parameters[can.token_limit or "max_tokens"] = cap
    for name, value in asked.parameters.items():
        parameters[(can.token_limit or name) if name == "max_tokens" else name] = value
    return parameters


def _messages(
    asked: CompletionRequest, by: StructuredBy | None, can: Capabilities, warnings: list[str]
) -> list[dict[str, Any]]:
    """Write the messages, the schema among them where the endpoint takes it nowhere else."""
    messages = list(asked.messages)
    if asked.json_schema is not None and by in ("json_object", "text"):
        messages = _with_schema(messages, asked.json_schema)
    if "system" in can.refused and any(message.role == "system" for message in messages):
        warnings.append("the system message went into the user's: the endpoint refuses the role")
        messages = _without_system(messages)
    return [{"role": message.role, "content": _content(message)} for message in messages]


def _content(message: Message) -> str | list[dict[str, Any]]:
    """Write the content of a message: text, or parts with images."""
    if not message.images:
        return message.content
    images = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    text = [{"type": "text", "text": message.content}] if message.content else []
    return [*text, *images]


def _with_schema(messages: list[Message], schema: Schema) -> list[Message]:
    """Add the schema to the instructions, before any text under test.

    OpenAI refuses json_object unless the messages contain the word JSON.
    """
    words = (
        "Answer with one JSON object and nothing else. It has to fit this JSON Schema:\n"
        + json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    )
    if messages and messages[0].role == "system":
        first = Message(role="system", content=f"{messages[0].content}\n\n{words}")
        return [first, *messages[1:]]
    return [Message(role="system", content=words), *messages]


def _without_system(messages: list[Message]) -> list[Message]:
    """Put the instructions at the head of the first user message."""
    instructions = "\n\n".join(item.content for item in messages if item.role == "system")
    rest = [item for item in messages if item.role != "system"]
    first_user = next((i for i, item in enumerate(rest) if item.role == "user"), None)
    if first_user is None:
        return [Message(role="user", content=instructions), *rest]
    joined = rest[first_user].model_copy(
        update={"content": f"{instructions}\n\n{rest[first_user].content}"}
    )
    return [*rest[:first_user], joined, *rest[first_user + 1 :]]


def _structured(name: str, schema: Schema, by: StructuredBy) -> dict[str, Any]:
    """Write the fields that ask for JSON by one of the ways."""
    if by == "json_schema":
        strict = strict_schema(schema)
        described = {"name": name, "schema": strict or schema, "strict": strict is not None}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    if by == "json_object":
        return {"response_format": {"type": "json_object"}}
    if by == "tool":
        function = {"name": name, "description": "Gives the answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {}


def strict_schema(schema: Schema) -> dict[str, JsonValue] | None:
    """Copy a schema for strict mode: closed objects, all fields required, no defaults.

    None if that would change its meaning: an object with free keys has no strict form.
    """
    try:
        strict = _strict(dict(schema))
    except _OpenObjectError:
        return None
    return strict if isinstance(strict, dict) else None


class _OpenObjectError(Exception):
    """An object whose keys are not known in advance."""


_OF_NAMED = ("properties", "$defs", "definitions")
_OF_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def _strict(schema: JsonValue) -> JsonValue:
    """Copy a part of a schema for strict mode; raise where it has no strict form."""
    if not isinstance(schema, dict):
        return schema
    strict = {key: value for key, value in schema.items() if key != "default"}
    for key in _OF_NAMED:
        named = strict.get(key)
        if isinstance(named, dict):
            strict[key] = {name: _strict(part) for name, part in named.items()}
    for key in _OF_MANY:
        many = strict.get(key)
        if isinstance(many, list):
            strict[key] = [_strict(part) for part in many]
    if "items" in strict:
        strict["items"] = _strict(strict["items"])
    kind = strict.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in strict:
        properties = strict.get("properties")
        if not properties or not isinstance(properties, dict):
            raise _OpenObjectError
        if strict.get("additionalProperties") not in (None, False):
            raise _OpenObjectError
        strict["additionalProperties"] = False
        strict["required"] = list(properties)
    return strict
