"""Read an error reply: a lesson about the endpoint, a bad reply, or one of our exceptions.

Pure. A refusal is known by its words, whatever its status: servers answer an unknown value with a
500 too. But a reply about quota, keys or load says nothing about the endpoint's capabilities, and
a 5xx teaches only if it names a parameter that was sent and says that it is not accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models._failures import may_pass, readable, retry_after
from rag_eval_integrations.models.openai._bodies import Sent
from rag_eval_integrations.models.openai._capabilities import Lesson

_TEACHING = (400, 403, 422)
"""Refusals of the request: a parameter's name is enough."""
_NEVER_TEACHING = (401, 402, 408, 409, 413, 425, 429)
"""About the key, money, time, size or load, also where they name `max_tokens`."""
# A 429 with one of these codes is permanent.
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
_BLOCKED = ("content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation")
_BAD_REPLY = ("json_validate_failed", "tool_use_failed")
"""Codes of Groq's 400s about the model's answer."""
_LONGEST = 300  # characters kept of an endpoint's message


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error reply, read from any dialect."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    retry_after: float | None = None

    @property
    def blocked(self) -> bool:
        """Whether a content filter stopped the prompt, which Azure reports as a 400."""
        return self.status == 400 and self.code in _BLOCKED

    @property
    def bad_reply(self) -> bool:
        """Whether the server could not use its own model's output: no outage, and no refusal.

        Known by the code, or for a 500 by the words, unless they speak of a server behind it.
        """
        if self.status == 500:
            return bool(_OWN_OUTPUT.search(self.message)) and not _UPSTREAM.search(self.message)
        return self.code in _BAD_REPLY

    def error(self, who: str, hint: str = "") -> JudgeError:
        """Make the exception, with `hint` at its end.

        `JudgeUnavailableError` for a status that may pass, unless the quota is spent;
        `JudgeRejectedError` for any other.
        """
        why = f"{who} replied {self.status}: {self.message}{hint}"
        if may_pass(self.status) and self.code not in _OUT_OF_MONEY:
            return JudgeUnavailableError(why, status=self.status, retry_after=self.retry_after)
        return JudgeRejectedError(why, status=self.status)


# llama.cpp: "The model produced output that does not match the expected … format", "Failed to parse
# input at pos 7: …", "Unexpected empty grammar stack after accepting piece".
_OWN_OUTPUT = re.compile(
    r"does(?: not|n't) match the (?:expected|requested|required)\b"
    r"|\b(?:failed|unable|could not|couldn't|cannot|error)\b.{0,20}\bpars(?:e|ing)\b.{0,30}"
    r"\b(?:input at pos|(?:model|tool|llm|assistant|generated|its own)\b.{0,20}"
    r"\b(?:output|response|reply|answer|call|text))"
    r"|\bgrammar stack\b"
    r"|\b(?:model|assistant|generated|generation)\b.{0,20}\b(?:output|response|answer|text|json)\b"
    r".{0,40}\b(?:invalid|malformed|not valid|not be parsed|failed to parse)",
    re.IGNORECASE | re.DOTALL,
)
_UPSTREAM = re.compile(r"\bupstream\b|\bgateway\b|\bprovider\b|\bproxy\b", re.IGNORECASE)


def failure_of(status: int, headers: Mapping[str, str], text: str) -> ErrorReply:
    """Read an error reply.

    Dialects: OpenAI `{"error": {…}}`, Gemini the same in a list, older vLLM `{"message", "param"}`,
    FastAPI `{"detail": [{"loc", "msg"}]}`, the same printed into a message (llama-cpp-python),
    Ollama `{"error": "…"}`, proxies HTML. The message has 300 characters at most, and is `(no
    message)` when there is none.
    """
    error = _error_in(text)
    message = error.get("message")
    inner = error.get("innererror")
    code = inner.get("code") if isinstance(inner, dict) else None
    words = message if isinstance(message, str) else text
    param = _text(error.get("param"))
    printed = _validation_in(words) if param is None else None
    if printed is not None:
        param, words = printed
    return ErrorReply(
        status=status,
        message=readable(words, _LONGEST) or "(no message)",
        param=param,
        code=_text(code if code in _BLOCKED else error.get("code")),
        retry_after=retry_after(headers),
    )


def _error_in(text: str) -> dict[str, Any]:
    """Read the error object of any dialect; empty when there is none, or no JSON."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(content, list) and content:
        content = content[0]
    if not isinstance(content, dict):
        return {}
    error = content.get("error", content)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    detail = error.get("detail")
    if isinstance(detail, str):
        return {"message": detail, **error}
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        place = detail[0].get("loc")
        names = _names(place if isinstance(place, list) else [])
        # The rest of a detail repeats the request, prompts included: it is not searched.
        param = names[0] if names else None
        return {"message": f"{'.'.join(names)}: {detail[0].get('msg')}", "param": param}
    return error


def _names(place: list[Any]) -> list[str]:
    """Return the names of fields in a path, without the leading `body`."""
    return [part for part in place if isinstance(part, str) and part != "body"]


# A validation error as Python prints it: a list of errors, one line per error, pydantic's report.
_LISTED = re.compile(r"""['"]loc['"]\s*:\s*[(\[]([^)\]]{1,200})[)\]]""")
_MESSAGE = re.compile(r"""['"]msg['"]\s*:\s*("(?:[^"\\]|\\.){1,500}"|'(?:[^'\\]|\\.){1,500}')""")
_DOTTED = re.compile(r"\bbody((?:\s*(?:\.|->)\s*\w+){1,8})\W{0,8}([^\n]{0,300})")
_REPORTED = re.compile(
    r"\bvalidation errors? for [^\n]{1,80}\n\s*([\w.\[\]-]{1,200})\n\s+([^\n]{1,300}?)\s*\[type="
)
_SEARCHED = 20_000  # characters; the rest of such a message repeats the request


def _validation_in(message: str) -> tuple[str, str] | None:
    """Find the first error of a printed validation error: its parameter, and its words alone.

    The rest repeats the request, prompts included, and is dropped. None when the message is
    something else.
    """
    text = message[:_SEARCHED]
    listed = _LISTED.search(text)
    if listed is not None:
        names = _names(re.findall(r"""['"]([^'"]+)['"]""", listed[1]))
        reason = _MESSAGE.search(text, listed.end()) or _MESSAGE.search(text)
        words = reason[1][1:-1] if reason else "is not valid"
    elif (dotted := _DOTTED.search(text)) is not None:
        names, words = re.findall(r"\w+", dotted[1]), dotted[2]
    elif (reported := _REPORTED.search(text)) is not None:
        names, words = reported[1].split("."), reported[2]
    else:
        return None
    return (names[0], f"{'.'.join(names)}: {words}") if names else None


def _text(value: object) -> str | None:
    """Return a value as a text of at most 200 characters; None when it is None or empty."""
    return str(value)[:200] if value not in (None, "") else None


# --- The parameter that a refusal names

_STRUCTURED = r"response_format|json_schema|json_object|json mode|structured[ _]outputs?|schema"
_WORDS = {
    "temperature": r"\btemperature\b",
    "seed": r"\bseed\b",
    "n": r"['\"`]n['\"`]|\bn (?:must|should|is|>|<)|\bparameter n\b"
    r"|multiple (?:choices|completions)",
    "top_logprobs": r"\btop_logprobs\b",
    "logprobs": r"\blog_?probs?\b|\blog[ -]probabilit",
    "max_tokens": r"\bmax_tokens\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
    "response_format": rf"\b(?:{_STRUCTURED})\b|\bguided\b|\bgrammar\b",
    "tools": r"\btools?\b|\btool_choice\b|\bfunctions?\b|\bschema\b",
    # Templates without a system turn complain about the order of the roles instead.
    "system": r"\bsystem (?:role|message|prompt|instruction)|\brole\W{1,3}system\b|'system'"
    r"|\bmessages\[\d+\]\.role\b|roles must alternate|instruction is not enabled",
}
_PATTERNS = {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS.items()}
_LIMIT = re.compile(
    r"(?:<=?|≤|at most|max(?:imum)?\b|less than or equal to|no more than|up to|between [\d.]+ and"
    r"|range\D{0,9}\d(?:\.\.| \(\w+\) to)|\[[\d.]+,|limit|\d > (?=\d+, which is the max))"
    r"[^\d.]{0,24}?(\d+)",
    re.IGNORECASE,
)
# Such a message names max_tokens and numbers, but the prompt is too long.
_TOO_LONG = re.compile(
    r"(?<!less than the `)context[ _](?:length|window|size)|prompt is too long", re.IGNORECASE
)
# An outage may name a parameter in passing: these words say that it is not accepted.
_REFUSES = re.compile(
    r"\b(?:not|n't|never) (?:be )?(?:\w+ly )?(?:supported|allowed|permitted|implemented|enabled|"
    r"available|accepted|recogni[sz]ed|valid)\b|\bunsupported\b|\bunrecogni[sz]ed\b"
    r"|\bdo(?:es)?(?: not|n't) (?:support|accept|allow)\b"
    r"|\bunexpected (?:keyword|argument|param|field)"
    r"|\bunknown (?:param|argument|field|name)|\binvalid (?:value|param|argument|field|schema)"
    r"|\bextra inputs\b|\b(?:input|value|it|\w+['\"`]?) (?:should|must) be\b|\bonly supports?\b"
    r"|\bgrammar\b.{0,40}\b(?:pars|compil|init|invalid)|\b(?:pars|compil|init)\w*\b.{0,40}\bgrammar\b",
    re.IGNORECASE,
)
_LIMITED = ("top_logprobs", "n", "max_tokens", "max_completion_tokens")


def lesson_of(failure: ErrorReply, sent: Sent) -> Lesson | None:
    """Return the lesson of a failure; None when it names no parameter that was sent.

    None as well for a reply about the key, money, time, size or load, for a prompt that is too
    long, for a bad reply, for a temperature above the limit that the message names, and for a 5xx
    whose words do not say that something is not accepted. For a refused schema, the lesson names
    the way in which JSON was asked for. A lesson has a limit where the message names a lower value.
    """
    if failure.status in _NEVER_TEACHING or failure.bad_reply:
        return None
    if _TOO_LONG.search(f"{failure.code} {failure.message}"):
        return None
    present = set(sent.body)
    if any(message["role"] == "system" for message in sent.body["messages"]):
        present.add("system")
    name = _named_param(failure.param or "", present)
    if name is None and not (failure.param or "").startswith("messages"):
        name = _first_named(failure.message, present) or _caller_setting(failure, sent)
        if failure.status not in _TEACHING and not _REFUSES.search(failure.message):
            return None
    if name is None:
        return None
    if name == "temperature" and _limit_in(failure.message, sent.body[name]) is not None:
        return None  # too high a value; others are taken
    if name in sent.parameters and sent.structured_by is None:
        limit = _limit_in(failure.message, sent.body[name]) if name in _LIMITED else None
        return Lesson(name, failure.message, limit)
    if name in ("response_format", "tools"):
        # Only a parameter sent for a schema can be dropped; a caller's extra_body stays.
        step = sent.structured_by
        return Lesson(step, failure.message) if step not in (None, "text") else None
    if name == "logprobs" and "top_logprobs" in present:
        # vLLM writes "logprobs of 20 … max allowed: 5" about `top_logprobs`.
        limit = _limit_in(failure.message, sent.body["top_logprobs"])
        if limit is not None:
            return Lesson("top_logprobs", failure.message, limit)
    limit = _limit_in(failure.message, sent.body[name]) if name in _LIMITED else None
    return Lesson(name, failure.message, limit)


def _named_param(param: str, present: set[str]) -> str | None:
    """Resolve the `param` field, which may be a path such as `messages[0].role`.

    None when it names nothing that was sent and is known here.
    """
    head = re.split(r"[.\[]", param, maxsplit=1)[0]
    if head == "messages":
        return "system" if param.endswith("role") and "system" in present else None
    alias = {"tool_choice": "tools", "json_schema": "response_format"}.get(head, head)
    return alias if alias in present and alias in _PATTERNS else None


def _caller_setting(failure: ErrorReply, sent: Sent) -> str | None:
    """Find the setting of the caller that a refusal names, whatever its name is.

    None when it names none; of several, the first by name.
    """
    words = {*re.split(r"[.\[]", failure.param or "")[:1], *re.findall(r"\w+", failure.message)}
    return next((name for name in sorted(sent.parameters) if name in words), None)


def _first_named(message: str, present: set[str]) -> str | None:
    """Return the first parameter that a message names; others may list what is accepted."""
    named = [
        (match.start(), name)
        for name, pattern in _PATTERNS.items()
        if name in present and (match := pattern.search(message))
    ]
    return min(named)[1] if named else None


def _limit_in(message: str, sent: float) -> int | None:
    """Return the largest value below the sent one that a message names as a limit.

    None if it names none; 0 and numbers of ten digits or more do not count.
    """
    limits = [int(match) for match in _LIMIT.findall(message) if len(match) < 10]
    return max((limit for limit in limits if 0 < limit < sent), default=None)
