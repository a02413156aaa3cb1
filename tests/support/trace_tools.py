"""Trace tools on 127.0.0.1 that answer their own clients as the services do, and keep what they got.

Each is a class of one service; `kept` maps the identity by which the service replaces a score to
the score as it was received.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import uuid4

Answer = tuple[int, object]


class Service(ThreadingHTTPServer):
    """A service on a thread of this process.

    `lose` is the number of posts whose answer is lost after they have been kept; `status` is
    answered to all posts while it is not 0, and they are not kept; `unknown` are spans or traces that
    it does not have.
    """

    daemon_threads = True
    posts: ClassVar[str]
    """Beginning of the paths at which scores are posted."""
    name_in = "name"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept: dict[tuple[str, ...], dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.unknown: set[str] = set()
        self.lose = 0
        self.status = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def scores(self) -> list[dict[str, Any]]:
        """All that is kept."""
        return list(self.kept.values())

    def of(self, name: str) -> dict[str, Any]:
        """The one score of a name."""
        (score,) = [score for score in self.scores if self.name_of(score) == name]
        return score

    def name_of(self, score: dict[str, Any]) -> str:
        return str(score[self.name_in])

    def answer(self, method: str, path: str, body: Any) -> Answer:
        """Answer a request that is not lost."""
        raise NotImplementedError

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""


class _Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        server = self.server
        is_json = "json" in self.headers.get("content-type", "") and content
        with server.lock:
            server.requests.append((self.command, self.path))
            scores = self.command == "POST" and self.path.startswith(server.posts)
            given = json.loads(content) if is_json else content
            answer: Answer = (server.status, {"error": "not now"})
            if not (scores and server.status):
                answer = server.answer(self.command, self.path, given)
            if scores and server.lose:
                server.lose -= 1
                self.close_connection = True
                return
        status, body = answer
        reply = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_PATCH = _serve

    def log_message(self, *args: object) -> None:
        """Not to stderr."""


class LangfuseService(Service):
    """Replaces a score of the same id, name and date."""

    posts = "/api/public/scores"

    def answer(self, method: str, path: str, body: Any) -> Answer:
        for score in body:
            key = (score["id"], score["name"], score.get("timestamp", "today")[:10])
            self.kept[key] = score
        return 202, {"accepted": len(body), "ids": [{"id": score["id"]} for score in body]}


class PhoenixService(Service):
    """Replaces an annotation of the same span, name and identifier; takes none of unknown spans."""

    posts = "/v1/span_annotations"

    def answer(self, method: str, path: str, body: Any) -> Answer:
        assert path.endswith("?sync=true"), "otherwise it would be accepted in silence and lost"
        if missing := {annotation["span_id"] for annotation in body["data"]} & self.unknown:
            return 404, f"Spans with IDs {', '.join(missing)} do not exist."
        for given in body["data"]:
            self.kept[given["span_id"], given["name"], given["identifier"]] = given
        return 200, {"data": [{"id": str(number)} for number in range(len(body["data"]))]}


class MLflowService(Service):
    """Refuses an assessment of an id that is there with 500, as its database does."""

    posts = "/api/3.0/mlflow/traces/"
    name_in = "assessment_name"

    def answer(self, method: str, path: str, body: Any) -> Answer:
        match = re.fullmatch(r"/api/3.0/mlflow/traces/([^/]+)/assessments/?([^?]*).*", path)
        if match is None:
            return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path}
        trace, name = match[1], match[2]
        if trace in self.unknown:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no trace {trace}"}
        if method == "POST":
            assessment = body["assessment"]
            key = assessment["assessment_id"]
            if (key,) in self.kept:
                return 500, {"error_code": "INTERNAL_ERROR", "message": "UNIQUE constraint failed"}
            self.kept[key,] = assessment
            return 200, {"assessment": assessment}
        if (name,) not in self.kept:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no {name}"}
        if method == "PATCH":
            self.kept[name,] |= {k: v for k, v in body["assessment"].items() if k == "feedback"}
        return 200, {"assessment": self.kept[name,]}


class LangSmithService(Service):
    """Replaces feedback of the same id."""

    posts = "/feedback"
    name_in = "key"

    def __init__(self) -> None:
        super().__init__()
        self.project = uuid4()
        self.multipart = 0

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path.startswith("/sessions"):
            project = {
                "id": str(self.project), "name": "kettles", "start_time": "2026-01-01T00:00:00Z",
                "tenant_id": str(uuid4()), "reference_dataset_id": None,
            }  # fmt: skip
            return 200, [project]
        if path == "/feedback":
            self.kept[body["id"],] = body
        elif path.endswith("/multipart"):
            self.multipart += 1
        return 200, {"version": "0.12.0"}


class OtlpService(Service):
    """Decodes log records and metrics of OTLP over HTTP."""

    posts = "/v1/logs"

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []
        self.metrics: dict[str, Any] = {}

    def answer(self, method: str, path: str, body: Any) -> Answer:
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics

        if path == "/v1/logs":
            for resource in logs.ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    self.records += scope.log_records
        elif path == "/v1/metrics":
            for group in metrics.ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for named in group.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in named.metrics}
        return 200, b""


@contextmanager
def running(service: Service) -> Iterator[Service]:
    """Serve until the end of the block."""
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        thread.join()
        service.server_close()
