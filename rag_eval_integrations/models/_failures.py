"""Tell temporary failures from permanent ones, whichever client raised them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError


def may_pass(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in (408, 409, 425, 429) or 500 <= status < 600


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that the endpoint asks to wait; None if absent or not understood.

    `retry-after-ms` first, then `retry-after` in seconds (fractions are common) or as an HTTP
    date. Never negative.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def judge_error(error: Exception, who: str) -> JudgeError:
    """Convert a framework's exception into one that says whether a retry may help.

    Frameworks wrap the clients of many vendors. HTTP errors have a `status_code` (OpenAI,
    Anthropic, Mistral, Groq); connection failures and timeouts are recognised by their types.
    """
    why = f"{who}: {type(error).__name__}: {str(error)[:300]}"
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        if not may_pass(status):
            return JudgeRejectedError(why, status=status)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return JudgeUnavailableError(why, status=status, retry_after=retry_after(headers))
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names or "Connect" in names:  # built-in or a client's own
        return JudgeUnavailableError(why)
    return JudgeError(why)
