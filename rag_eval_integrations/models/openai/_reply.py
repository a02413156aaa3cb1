"""Read the body of a chat reply as a `Completion`. Pure.

The bytes are read instead of the client's objects: building those takes a fifth of the client's
time, and a body that is not JSON would reach the caller as a bare `JSONDecodeError`.
"""

from __future__ import annotations

import json
from typing import Any

from rag_eval_integrations.errors import JudgeUnavailableError
from rag_eval_integrations.models._failures import may_pass, readable
from rag_eval_integrations.models._reading import answer_in, clean, loads, token_count, tokens_of
from rag_eval_integrations.models.completion import Choice, Completion, finish_reason_of
from rag_eval_integrations.models.openai._request import Sent
from rag_eval_integrations.records import Usage


def completion_of(content: bytes, sent: Sent, requests: int, who: str) -> Completion:
    """Read a reply.

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
        raise _without_answer(reply, who)
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
    """Make the completion of a prompt that a content filter stopped."""
    choice = Choice(text="", finish_reason="content_filter")
    return Completion(choices=(choice,), usage=Usage(requests=requests), warnings=sent.warnings)


def is_without_json(sent: Sent, choice: Choice) -> bool:
    """Whether the endpoint accepted a `response_format` and ignored it, as Anthropic's does.

    Only the beginning of the answer is checked: JSON that is cut off is the model's failure, and
    text that never began as JSON was not held to any, however it ended.
    """
    if sent.structured_by not in ("json_schema", "json_object"):
        return False
    begun = choice.text.lstrip()[:1]
    if choice.finish_reason == "stop":
        return begun != "{"
    return choice.finish_reason in ("length", "unknown") and begun not in ("{", "")


def _object(content: bytes, who: str) -> dict[str, Any]:
    """Read the body as a JSON object, or raise what it is instead."""
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


def _without_answer(reply: dict[str, Any], who: str) -> JudgeUnavailableError:
    """Make the error of a 200 without choices; OpenRouter passes upstream errors that way.

    Its status is the upstream one if that may pass, so that the request is tried again, else 200.
    """
    error = reply.get("error")
    words = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    why = f": {readable(words)}" if isinstance(words, str) else ""
    passes = isinstance(code, int) and may_pass(code)
    return JudgeUnavailableError(
        f"{who} replied 200 without an answer{why}",
        status=code if passes else 200,
        connected=passes,
    )


def _index(item: dict[str, Any]) -> int:
    """Return an answer's place among several."""
    index = item.get("index")
    return index if isinstance(index, int) else 0


def _choice(item: dict[str, Any], sent: Sent, warnings: list[str]) -> Choice:
    """Read one answer, and add what is wrong with it to the warnings."""
    message = item.get("message")
    message = message if isinstance(message, dict) else {}
    written = _written(message, sent)
    answer = answer_in(written)
    if answer.unfinished:
        warnings.append("the reply is only reasoning that does not end")
    refusal = message.get("refusal")
    refusal = clean(refusal) if isinstance(refusal, str) and refusal else None
    finished = finish_reason_of(item.get("finish_reason"))
    return Choice(
        text=answer.text,
        finish_reason="refusal" if refusal is not None else finished,
        tokens=tokens_of(item.get("logprobs"), written, answer.start, answer.text, warnings),
        refusal=refusal,
    )


def _written(message: dict[str, Any], sent: Sent) -> str:
    """Return the answer's text, or the arguments of the required tool call.

    `reasoning` and `reasoning_content` are never read.
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
    """Write the calls of a prompt's own tools as JSON, which is then the answer."""
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
    """Read the numbers of tokens."""
    counts = counts if isinstance(counts, dict) else {}
    return Usage(
        requests=requests,
        prompt_tokens=token_count(counts.get("prompt_tokens")),
        completion_tokens=token_count(counts.get("completion_tokens")),
    )
