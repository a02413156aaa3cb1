"""Write a `CompletionRequest` as the body of a chat request; read that of a reply. Pure.

Parameters that the endpoint is known to refuse are left out, each with a warning. Of a reply the
bytes are read instead of the client's objects: building those takes a fifth of the client's time,
and a body that is not JSON would reach the caller as a bare `JSONDecodeError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models._failures import may_pass, readable
from rag_eval_integrations.models._reading import answer_in, clean, loads, token_count, tokens_of
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    finish_reason_of,
)
from rag_eval_integrations.models.openai._capabilities import Capabilities, StructuredBy
from rag_eval_integrations.records import Usage

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

    Parameters that the endpoint refuses are left out and those above its limits lowered, each with
    a warning. `top_logprobs` goes with `logprobs`, and settings about tools with `tools`. The
    fields of `extra_body` replace all others.

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
    """Return the parameters to send: none at its default, since servers may refuse it.

    The request's own settings go before those of the model, and its `parameters` before both.
    `max_tokens` is named as the endpoint wants it.
    """
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
    """Write the messages, the schema among them where the endpoint takes it nowhere else.

    Where the endpoint refuses the role `system`, its messages go into the user's, with a warning.
    """
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

    OpenAI refuses json_object unless the messages contain the word JSON. The schema stands at the
    end of a first system message, or else in a new one.
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
    """Put the system messages at the head of the first user message, or into a new one."""
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
    """Write the fields that ask for JSON by one of the ways; empty for `text`.

    `json_schema` is strict where the schema has a strict form.
    """
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
    """Copy a part of a schema for strict mode; what is not an object stays as it is.

    Raises:
        _OpenObjectError: it has no strict form.
    """
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


# --- The reply's body


def completion_of(content: bytes, sent: Sent, requests: int, who: str) -> Completion:
    """Read a reply as a completion.

    Answers come in the order of their `index`. What was asked for and is missing (answers,
    log-probabilities, JSON) gives a warning.

    Args:
        content: body of a reply with a 2xx status.
        sent: the request, whose warnings are passed on.
        requests: number of HTTP requests made.
        who: name of the endpoint for errors.

    Raises:
        JudgeUnavailableError: the body is cut off, or is not a chat reply (`connected` is False).
    """
    reply = _object(content, who)
    items = reply.get("choices")
    if not isinstance(items, list) or not items or not all(isinstance(i, dict) for i in items):
        raise _no_answer_error(reply, who)
    if all(item.get("error") for item in items):  # the provider broke off
        raise _no_answer_error(items[0], who)
    warnings: list[str] = []
    choices = tuple(_choice(item, sent, warnings) for item in sorted(items, key=_index))
    wanted = sent.body.get("n", 1)
    if len(choices) < wanted:
        warnings.append(f"{wanted} answers were asked for and {len(choices)} given")
    if "logprobs" in sent.body and not any(choice.tokens for choice in choices):
        warnings.append("log-probabilities were asked for and accepted, but not given")
    if is_without_json(sent, choices[0]):
        warnings.append(f"JSON was asked for by {sent.structured_by} and accepted, but not given")
    model = reply.get("model")
    return Completion(
        choices=choices,
        usage=_usage(reply.get("usage"), requests),
        model=clean(model) if isinstance(model, str) else None,
        warnings=(*sent.warnings, *dict.fromkeys(warnings)),
    )


def blocked_completion(sent: Sent, requests: int) -> Completion:
    """Make the completion of a prompt that a content filter stopped: one empty answer."""
    choice = Choice(text="", finish_reason="content_filter")
    return Completion(choices=(choice,), usage=Usage(requests=requests), warnings=sent.warnings)


def is_without_json(sent: Sent, choice: Choice) -> bool:
    """Whether the endpoint accepted a `response_format` and ignored it, as Anthropic's does.

    Only the beginning of the answer is checked: JSON that is cut off is the model's failure, and
    text that never began as JSON was not held to any, however it ended. False where JSON was asked
    for in another way.
    """
    if sent.structured_by not in ("json_schema", "json_object"):
        return False
    begun = choice.text.lstrip()[:1]
    if choice.finish_reason == "stop":
        return begun != "{"
    return choice.finish_reason in ("length", "unknown") and begun not in ("{", "")


def _object(content: bytes, who: str) -> dict[str, Any]:
    """Read the body as a JSON object.

    Raises:
        JudgeUnavailableError: it is not one; `connected` only if it may be one that is cut off.
    """
    try:
        reply = loads(content)
    except (ValueError, RecursionError):
        begun = content.lstrip()[:1]
        page = " (a web page: is base_url right?)" if begun == b"<" else ""
        cut = begun == b"{"
        raise JudgeUnavailableError(
            f"{who} replied 200 with {len(content)} bytes that are not JSON{page}",
            status=None if cut else 200,
            connected=cut,
        ) from None
    if not isinstance(reply, dict):
        why = f"{who} replied 200 with JSON that is not an object"
        raise JudgeUnavailableError(why, status=200, connected=False)
    return reply


def _no_answer_error(reply: dict[str, Any], who: str) -> JudgeError:
    """Make the error of a 200 without choices; OpenRouter passes upstream errors that way.

    Its status is the upstream one if that may pass, so that the request is tried again; a refusal
    of the request is one here, too; else 200.
    """
    error = reply.get("error")
    words = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    why = f": {readable(words)}" if isinstance(words, str) else ""
    told = f"{who} replied 200 without an answer{why}"
    passes = isinstance(code, int) and may_pass(code)
    if isinstance(code, int) and 400 <= code < 500 and not passes:
        return JudgeRejectedError(told, status=code)
    return JudgeUnavailableError(told, status=code if passes else 200, connected=passes)


def _index(item: dict[str, Any]) -> int:
    """Return the index of an answer; 0 where it has none."""
    index = item.get("index")
    return index if isinstance(index, int) else 0


def _choice(item: dict[str, Any], sent: Sent, warnings: list[str]) -> Choice:
    """Read one choice of a reply, without its reasoning; warn of reasoning that does not end.

    A refusal makes `refusal` the finish reason.
    """
    message = item.get("message")
    message = message if isinstance(message, dict) else {}
    reply = _text_of(message, sent)
    answer = answer_in(reply)
    if answer.unfinished:
        warnings.append("the reply is only reasoning that does not end")
    refusal = message.get("refusal")
    refusal = clean(refusal) if isinstance(refusal, str) and refusal else None
    finished = finish_reason_of(item.get("finish_reason"))
    return Choice(
        text=answer.text,
        finish_reason="refusal" if refusal is not None else finished,
        tokens=tokens_of(item.get("logprobs"), reply, answer.start, answer.text, warnings),
        refusal=refusal,
    )


def _text_of(message: dict[str, Any], sent: Sent) -> str:
    """Return the text of a message, or the arguments of the required tool call.

    `reasoning` and `reasoning_content` are never read. Without text, a prompt's own tools give
    their calls as JSON. Empty when there is nothing.
    """
    if sent.structured_by == "tool":
        arguments = _arguments(message)
        if arguments is not None:
            return clean(arguments)
    content = message.get("content")
    if not content and "tools" in sent.parameters:
        return clean(_calls(message))
    if isinstance(content, list):  # Magistral: parts of type `thinking` and `text`
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return clean(content) if isinstance(content, str) else ""


def _calls(message: dict[str, Any]) -> str:
    """Write the calls of a prompt's own tools as a JSON list, which is then the answer.

    Empty without calls.
    """
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    return json.dumps(functions, ensure_ascii=False) if functions else ""


def _arguments(message: dict[str, Any]) -> str | None:
    """Return the arguments of the required tool call as JSON; None without such a call."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls or not isinstance(calls[0], dict):
        return None
    function = calls[0].get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, dict):  # Ollama's own dialect, which some gateways pass on
        return json.dumps(arguments, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else None


def _usage(counts: object, requests: int) -> Usage:
    """Read the numbers of tokens; 0 for those not given."""
    counts = counts if isinstance(counts, dict) else {}
    return Usage(
        requests=requests,
        prompt_tokens=token_count(counts.get("prompt_tokens")),
        completion_tokens=token_count(counts.get("completion_tokens")),
    )
