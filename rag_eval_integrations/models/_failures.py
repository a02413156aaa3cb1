"""Tell temporary failures from permanent ones, whichever client raised them."""

from __future__ import annotations

import math
import re
import socket
import ssl
import time
import unicodedata
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError


def may_pass(status: int) -> bool:
    """Whether the same request may succeed later: 408, 409, 425, 429 and every 5xx."""
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
        moment = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


_MOST_READ = 20_000
"""Characters of a message that are looked at."""
# The source line of a frame stands below it, further in.
_FRAME = re.compile(
    r"""^([ \t]*)File "[^"\n]*", line \d+[^\n]*(?:\n\1[ \t][^\n]*)*\n?""", re.MULTILINE
)
_IN_LINE = re.compile(r"""File ["'][^"'\n]*["'], line \d+(?:, in [\w.<>]+)?""")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):?")
# What is not closed reaches to the end: looking for the end of each in vain takes quadratic time.
_MARKUP = re.compile(
    r"<(?:style|script)\b.*?(?:</(?:style|script)>|\Z)|<[^<>]{1,300}>", re.DOTALL | re.I
)
# Not part of a URL, and not an API's own path, which says what was asked for.
_PATH = re.compile(
    r"""(?<![\w.:/<])/(?!v\d|api\b|openai\b|chat\b|completions\b)(?:[\w.@+~ -]{0,80}[\w.@+~-]/)+"""
    r"""(?=[\w.@+~-]|\b|$)|\b[A-Za-z]:\\(?:[^\\/:*?"<>|\r\n]{1,80}\\)+"""
)


def readable(text: str, most: int = 300) -> str:
    """Write an endpoint's message as one line for a person.

    Stack frames, markup, directories of the server's machine, and control or invisible characters
    are left out. Only the first 20,000 characters are read. A longer line than `most` ends in an
    ellipsis; the result may be empty.

    Args:
        text: the message, of any length.
        most: most characters of the line.
    """
    text = text[:_MOST_READ]
    if text.lstrip()[:1] == "<":
        text = _MARKUP.sub(" ", text)
    text = _IN_LINE.sub(" ", _FRAME.sub("", _TRACEBACK.sub(" ", text)))
    text = _PATH.sub("…/", text)
    kept = (
        " " if (kind := unicodedata.category(letter)) == "Cc" else "" if kind in _HIDDEN else letter
        for letter in text
    )
    line = " ".join("".join(kept).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


_HIDDEN = ("Cf", "Cs", "Co", "Cn")


_NO_CONNECTION = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, the outermost first, each once.

    The socket's exception stands behind the client's own. Of a group, only the first is followed.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        inner = cause.__cause__ or cause.__context__
        # A name with several addresses fails once for each.
        cause = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner


def _connected(error: BaseException) -> bool:
    """Whether a connection was made, by the causes of a failure.

    False for a refused connection, an unknown host, an untrusted certificate and a `ConnectError`.
    """
    return not any(
        isinstance(cause, _NO_CONNECTION) or type(cause).__name__ == "ConnectError"
        for cause in causes_of(error)
    )


def judge_error(error: Exception, who: str) -> JudgeError:
    """Convert a framework's exception into one that says whether a retry may help.

    Frameworks wrap the clients of many vendors. HTTP errors have a `status_code` (OpenAI,
    Anthropic, Mistral, Groq); connection failures and timeouts are recognised by their types.

    A status that may pass gives a `JudgeUnavailableError` with the wait that the endpoint asks for,
    any other status a `JudgeRejectedError`. Without a status, a timeout or connection failure gives
    a `JudgeUnavailableError`, and anything else a plain `JudgeError`, which is not retried.
    """
    why = f"{who}: {type(error).__name__}: {readable(str(error))}"
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        if not may_pass(status):
            return JudgeRejectedError(why, status=status)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return JudgeUnavailableError(why, status=status, retry_after=retry_after(headers))
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names or "Connect" in names:  # built-in or a client's own
        return JudgeUnavailableError(why, connected="Timeout" in names or _connected(error))
    return JudgeError(why)
