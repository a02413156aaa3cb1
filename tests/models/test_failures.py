"""Exceptions of frameworks' clients: whether a retry may help, and whether anyone was there."""

from __future__ import annotations

import socket
import ssl

import pytest

from rag_eval_integrations.errors import JudgeError, JudgeUnavailableError
from rag_eval_integrations.models._failures import judge_error


class ConnectError(Exception):
    """Named as in `httpx`."""


class APIConnectionError(Exception):
    """Named as in vendors' clients, which raise it for all that brings no reply."""


class APITimeoutError(APIConnectionError):
    """Named likewise."""


def raised(outer: Exception, *causes: BaseException) -> Exception:
    """An exception that is raised from others."""
    last: BaseException = outer
    for cause in causes:
        last.__cause__ = cause
        last = cause
    return outer


@pytest.mark.parametrize(
    ("error", "connected"),
    [
        (raised(APIConnectionError(), ConnectError(), ConnectionRefusedError(111, "x")), False),
        (raised(APIConnectionError(), OSError("all"), ExceptionGroup("two addresses", [
            ConnectionRefusedError(111, "x"), OSError(101, "y")])), False),
        (raised(APIConnectionError(), socket.gaierror(-2, "unknown")), False),
        (raised(APIConnectionError(), ssl.SSLCertVerificationError(1, "self-signed")), False),
        (raised(APIConnectionError(), ConnectError("no route")), False),
        (raised(APIConnectionError(), ConnectionResetError(104, "x")), True),
        (raised(APITimeoutError(), ConnectionRefusedError(111, "x")), True),
        (ConnectionRefusedError(111, "x"), False),
        (TimeoutError(), True),
    ],
)  # fmt: skip
def test_a_connection_that_was_never_made_is_known(error: Exception, connected: bool) -> None:
    """By the socket's exception behind the client's own; it says nothing of what was lost later."""
    failure = judge_error(error, "m")

    assert isinstance(failure, JudgeUnavailableError)
    assert failure.connected == connected


def test_a_circle_of_causes_ends() -> None:
    """Exceptions may refer to each other."""
    first, second = APIConnectionError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first

    assert isinstance(judge_error(first, "m"), JudgeUnavailableError)
    assert type(judge_error(second, "m")) is JudgeError
