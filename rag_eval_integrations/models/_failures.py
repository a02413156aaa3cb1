"""Tell failures that may pass from those that will not, whichever client raised them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError


def may_pass(status: int) -> bool:
    """Whether the same request may be answered later."""
    return status in (408, 409, 425, 429) or 500 <= status < 600


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the endpoint asks to wait; None when it does not say or is not understood.

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
    """Say what a framework's exception means for asking again.

    Frameworks wrap many vendors' clients: those that speak HTTP carry `status_code` (OpenAI,
    Anthropic, Mistral, Groq), connection failures and timeouts are told by their types.
    """
    why = f"{who}: {type(error).__name__}: {str(error)[:300]}"
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        if not may_pass(status):
            return JudgeRejectedError(why, status=status)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return JudgeUnavailableError(why, status=status, retry_after=retry_after(headers))
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names or "Connect" in names:  # the built-in ones, and every client's own
        return JudgeUnavailableError(why)
    return JudgeError(why)
