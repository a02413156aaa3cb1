"""Listens for a browser: at a port that is free, until Ctrl-C."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from rag_eval_integrations.errors import ConfigurationError, extra

with extra("view", "uvicorn"):
    import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_NEXT = 100
"""Ports that are tried, to name one that is free."""


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        ConfigurationError: the port is taken; names the next free one.
        OSError: there is no such address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = None
    for place in range(port, min(port + _NEXT, 65_536)):
        try:
            listener = socket.create_server((host, place), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            taken = error
            continue
        if taken is None:
            return listener
        listener.close()
        raise ConfigurationError("--port", port, f"is taken; --port {place} is free")
    raise ConfigurationError("--port", port, "is taken, and so are the next ones")


def server(app: ASGIApp, end: Callable[[int], NoReturn] | None = None) -> uvicorn.Server:
    """Make the HTTP server, whose `run` answers until it is ended.

    Args:
        app: what answers.
        end: called with the number of a signal, to end the process at once: a page that is being
            made, which no signal stops, must not delay it. None to wait for it.
    """
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=0,
        ws="none",
    )
    uvicorn_server = uvicorn.Server(config)
    if end is not None:
        uvicorn_server.handle_exit = lambda sig, frame: end(sig)  # type: ignore[method-assign]
    return uvicorn_server
