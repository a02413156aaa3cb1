"""A server in front of a server: passes every request on, and remembers what went through."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Exchange:
    """One request and the status of its reply."""

    body: dict[str, Any]
    status: int
    reply: bytes


class PassThrough:
    """Listens on a free port of 127.0.0.1 until it is closed.

    Args:
        target: URL of the server behind, without a path.
    """

    def __init__(self, target: str) -> None:
        self.exchanges: list[Exchange] = []
        exchanges = self.exchanges

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                headers = {"content-type": "application/json"}
                headers["authorization"] = self.headers.get("authorization", "")
                request = urllib.request.Request(target + self.path, content, headers)
                try:
                    with _DIRECT.open(request, timeout=300) as reply:
                        status, body = reply.status, reply.read()
                except urllib.error.HTTPError as error:
                    status, body = error.code, error.read()
                exchanges.append(Exchange(json.loads(content), status, body))
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What a client is pointed at."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
