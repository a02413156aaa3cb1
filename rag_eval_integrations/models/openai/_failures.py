"""Read an error reply: a lesson about the endpoint, a blocked prompt, or one of our exceptions.

Pure. Only 400, 403 and 422 give lessons, and only if they name a parameter that was sent: a 429 or
a 500 says nothing about the endpoint's capabilities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models._failures import may_pass, retry_after
from rag_eval_integrations.models.openai._capabilities import Lesson
from rag_eval_integrations.models.openai._request import Sent

_TEACHING = (400, 403, 422)
# A 429 with one of these codes is permanent.
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
_BLOCKED = ("content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation")
_LONGEST = 300  # characters kept of an endpoint's message


@dataclass(frozen=True, slots=True)
class Failure:
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

    def error(self, who: str) -> JudgeError:
        """Make the exception."""
        why = f"{who} replied {self.status}: {self.message}"
        if may_pass(self.status) and self.code not in _OUT_OF_MONEY:
            return JudgeUnavailableError(why, status=self.status, retry_after=self.retry_after)
        return JudgeRejectedError(why, status=self.status)


def failure_of(status: int, headers: Mapping[str, str], text: str) -> Failure:
    """Read an error reply.

    Dialects: OpenAI `{"error": {…}}`, Gemini the same in a list, older vLLM `{"message", "param"}`,
    FastAPI `{"detail": [{"loc", "msg"}]}`, Ollama `{"error": "…"}`, proxies HTML.
    """
    error = _error_in(text)
    message = error.get("message")
    inner = error.get("innererror")
    code = inner.get("code") if isinstance(inner, dict) else None
    return Failure(
        status=status,
        message=_short(message if isinstance(message, str) else text) or "(no message)",
        param=_text(error.get("param")),
        code=_text(code if code in _BLOCKED else error.get("code")),
        retry_after=retry_after(headers),
    )


def _error_in(text: str) -> dict[str, Any]:
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
        names = [part for part in place if isinstance(part, str)] if isinstance(place, list) else []
        names = [name for name in names if name != "body"]
        # The rest of a detail repeats the request, prompts included: it is not searched.
        param = names[0] if names else None
        return {"message": f"{'.'.join(names)}: {detail[0].get('msg')}", "param": param}
    return error


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


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
    r"(?:<=?|≤|at most|max(?:imum)?\b|less than or equal to|no more than|up to"
    r"|between \d+ and|\[\d+,|limit)[^\d.]{0,24}?(\d+)",
    re.IGNORECASE,
)
# Such a message names max_tokens and numbers, but the prompt is too long.
_TOO_LONG = re.compile(r"context[ _](?:length|window|size)|prompt is too long", re.IGNORECASE)
_LIMITED = ("top_logprobs", "n", "max_tokens", "max_completion_tokens")


def lesson_of(failure: Failure, sent: Sent) -> Lesson | None:
    """Return the lesson of a failure; None when it names no parameter that was sent."""
    if failure.status not in _TEACHING or _TOO_LONG.search(f"{failure.code} {failure.message}"):
        return None
    present = set(sent.body)
    if any(message["role"] == "system" for message in sent.body["messages"]):
        present.add("system")
    name = _named(failure.param or "", present)
    if name is None and not (failure.param or "").startswith("messages"):
        name = _first_named(failure.message, present)
    if name is None:
        return None
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


def _named(param: str, present: set[str]) -> str | None:
    """Resolve the `param` field, which may be a path such as `messages[0].role`."""
    head = re.split(r"[.\[]", param, maxsplit=1)[0]
    if head == "messages":
        return "system" if param.endswith("role") and "system" in present else None
    alias = {"tool_choice": "tools", "json_schema": "response_format"}.get(head, head)
    return alias if alias in present and alias in _PATTERNS else None


def _first_named(message: str, present: set[str]) -> str | None:
    """Return the first parameter that a message names; others may list what is accepted."""
    found = [
        (match.start(), name)
        for name, pattern in _PATTERNS.items()
        if name in present and (match := pattern.search(message))
    ]
    return min(found)[1] if found else None


def _limit_in(message: str, sent: int) -> int | None:
    limits = [int(match) for match in _LIMIT.findall(message) if len(match) < 10]
    return max((limit for limit in limits if 0 < limit < sent), default=None)
