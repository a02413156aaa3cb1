"""An OpenAI-compatible chat endpoint on 127.0.0.1 that is as slow, strict or faulty as it is told.

    with LoopbackServer(Behaviour(latency=0.05)) as server:      # a thread of this process
        judge = OpenAIModel("m", base_url=server.base_url)
    with spawned(Behaviour(latency=0.5)) as base_url:            # a process of its own
        ...

Real HTTP/1.1 with keep-alive on an asyncio protocol, so that one core serves more requests than
a client on the other can make. Standard library only: benchmarks import this file by its path.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

Body = dict[str, Any]


@dataclass
class Reply:
    """What is sent back, when, and how much of it."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds until the reply; more than anybody waits is a hang."""
    cut: bool = False
    """Promise the whole body and close the connection halfway."""
    drip: float = 0.0
    """Seconds between single bytes of the body; 0 sends it at once."""

    @classmethod
    def json(cls, content: object, status: int = 200, **changes: Any) -> Reply:
        """Reply with a JSON body."""
        return cls(status=status, body=json.dumps(content).encode(), **changes)


@dataclass
class Behaviour:
    """How the endpoint behaves; every field is a JSON value, so it can go to another process."""

    latency: float = 0.0
    """Seconds until a reply, in the mean."""
    spread: float = 0.0
    """Share of the latency by which a reply may come earlier or later, as a model's replies do."""
    content: str = '{"ok": true}'
    reasoning: str = ""
    """Put before the content, such as `<think>…</think>`."""
    refuse: tuple[str, ...] = ()
    """What gets a 4xx: names of parameters, `system`, `json_schema`, `json_object`."""
    refuse_status: int = 400
    refuse_in: str = "param"
    """Where the refused name stands: `param`, `message`, `detail` (a 422 of FastAPI) or `nowhere`."""
    limits: dict[str, int] = field(default_factory=dict)
    """Largest values accepted, such as `{"top_logprobs": 5}`."""
    ignore: tuple[str, ...] = ()
    """What is accepted and not done: `logprobs`, `n`, `json_schema`."""
    statuses: tuple[int, ...] = ()
    """Statuses of the first replies, in order; afterwards all is well."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of error replies; `{date+N}`, `{date-N}` become HTTP dates."""
    faults: dict[str, float] = field(default_factory=dict)
    """Share of requests that fail: a status, `truncate` (a body that ends early), `cut`, `hang`."""
    hang: float = 30.0
    finish_reason: str = "stop"
    refusal: str | None = None
    blocked: bool = False
    """Reply 400 with the code `content_filter`, as Azure does."""


def tokens_of(text: str) -> list[str]:
    """Cut a text the way the fake tokenizer does: words with the space before them."""
    parts = text.split(" ")
    return [parts[0], *(f" {part}" for part in parts[1:])] if text else []


class Endpoint:
    """Turns requests into replies; knows no sockets."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._statuses = list(behaviour.statuses)
        self._random = random.Random(0)

    def reply(self, body: Body) -> Reply:
        """Answer one request."""
        how = self.behaviour
        if self._statuses and (status := self._statuses.pop(0)) != 200:
            return self._error(status, f"scripted {status}", None)
        fault = self._fault()
        if fault.isdigit():
            return self._error(int(fault), f"random {fault}", None)
        refused = self._refused(body)
        if refused is not None:
            return refused
        late = how.spread * self._random.uniform(-1, 1) if how.spread else 0.0
        reply = Reply(body=self._completion(body), delay=how.latency * (1 + late))
        if fault == "truncate":
            reply.body = reply.body[: len(reply.body) // 2]
        reply.cut = fault == "cut"
        reply.delay += how.hang if fault == "hang" else 0.0
        return reply

    def _fault(self) -> str:
        chance = self._random.random() if self.behaviour.faults else 1.0
        for name, share in self.behaviour.faults.items():
            if chance < share:
                return name
            chance -= share
        return ""

    def _refused(self, body: Body) -> Reply | None:
        how = self.behaviour
        if how.blocked:
            return self._error(400, "The prompt was filtered.", None, code="content_filter")
        for name in sorted(sent_names(body) & set(how.refuse)):
            if how.refuse_in == "detail":
                detail = [{"loc": ["body", name], "msg": "Extra inputs are not permitted"}]
                return Reply.json({"detail": detail}, how.refuse_status)
            known = how.refuse_in == "param"
            words = "Bad request." if how.refuse_in == "nowhere" else _complaint(name)
            where = {"system": "messages[0].role"}.get(name, name)
            return self._error(how.refuse_status, words, where if known else None)
        for name, most in how.limits.items():
            if isinstance(given := body.get(name), int | float) and given > most:
                words = f"Invalid '{name}': expected a value <= {most}, but got {given} instead."
                return self._error(how.refuse_status, words, name)
        return None

    def _error(
        self, status: int, message: str, param: str | None, code: str | None = None
    ) -> Reply:
        headers = dict(self.behaviour.headers)
        for name, value in headers.items():
            if value.startswith("{date"):
                headers[name] = formatdate(time.time() + float(value[5:-1]), usegmt=True)
        error = {"message": message, "type": "error", "param": param, "code": code}
        return Reply.json({"error": error}, status, headers=headers)

    def _completion(self, body: Body) -> bytes:
        how = self.behaviour
        n = 1 if "n" in how.ignore else body.get("n", 1)
        asked = "json_schema" in str(body.get("response_format"))
        answer = "It is fine." if asked and "json_schema" in how.ignore else how.content
        message: Body = {"role": "assistant", "content": how.reasoning + answer, "refusal": None}
        if how.refusal is not None:
            message.update(content=None, refusal=how.refusal)
        elif body.get("tool_choice"):
            function = {"name": body["tools"][0]["function"]["name"], "arguments": answer}
            call = {"id": "call_1", "type": "function", "function": function}
            message.update(content=None, tool_calls=[call])
        choice: Body = {"message": message, "finish_reason": how.finish_reason, "logprobs": None}
        if body.get("logprobs") and "logprobs" not in how.ignore:
            choice["logprobs"] = {"content": self._tokens(message["content"] or "", body)}
        words = sum(len(str(item["content"]).split()) for item in body["messages"])
        made = len(answer.split()) * n
        content: Body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": i, **choice} for i in range(n)],
            "usage": {
                "prompt_tokens": words,
                "completion_tokens": made,
                "total_tokens": words + made,
            },
        }
        return json.dumps(content).encode()

    def _tokens(self, text: str, body: Body) -> list[Body]:
        most = body.get("top_logprobs", 0)

        def scored(token: str, place: int) -> Body:
            return {"token": token, "logprob": -0.25 - place, "bytes": list(token.encode())}

        def top(token: str) -> list[Body]:
            return [scored(str(place) if place else token, place) for place in range(most)]

        return [{**scored(token, 0), "top_logprobs": top(token)} for token in tokens_of(text)]


def sent_names(body: Body) -> set[str]:
    """What a request uses, in the words of `Behaviour.refuse`."""
    names = set(body)
    if any(message["role"] == "system" for message in body["messages"]):
        names.add("system")
    if "response_format" in body:
        names.add(body["response_format"]["type"])
    return names


def _complaint(name: str) -> str:
    if name == "system":
        return "System role not supported"
    return f"Unsupported parameter: '{name}' is not supported with this model."


class _Connection(asyncio.Protocol):
    """One client's connection: requests in, replies out, one after the other."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)
        self._server.connected += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self._buffer[:end].decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines[1:])
            }
            size = end + 4 + int(headers.get("content-length", "0"))
            if len(self._buffer) < size:
                return
            content, self._buffer = self._buffer[end + 4 : size], self._buffer[size:]
            body = json.loads(content or b"{}")
            reply = self._server.receive(lines[0].split(" ")[1], headers, body)
            asyncio.get_running_loop().call_later(reply.delay, self._send, reply)

    def _send(self, reply: Reply) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        head = [f"HTTP/1.1 {reply.status} -", "content-type: application/json"]
        head += [f"content-length: {len(reply.body)}"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        start = "\r\n".join([*head, "", ""]).encode("latin-1")
        if reply.cut:
            self._transport.write(start + reply.body[: len(reply.body) // 2])
            self._transport.close()
        elif reply.drip:
            self._transport.write(start)
            self._drip(reply.body, reply.drip)
        else:
            self._transport.write(start + reply.body)

    def _drip(self, rest: bytes, pause: float) -> None:
        if rest and self._transport is not None:
            self._transport.write(rest[:1])
            asyncio.get_running_loop().call_later(pause, self._drip, rest[1:], pause)


Respond = Callable[[Body], Reply | None]


class _Server:
    def __init__(self, behaviour: Behaviour) -> None:
        self.endpoint = Endpoint(behaviour)
        self.connections: set[_Connection] = set()
        """Those that are open now."""
        self.connected = 0
        """How many were accepted so far."""

    def receive(self, path: str, headers: dict[str, str], body: Body) -> Reply:
        return self.endpoint.reply(body)

    async def serve(self, port: int = 0) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=512)


_numbers = itertools.count(1)


class LoopbackServer(_Server):
    """The endpoint on a thread of this process.

    Args:
        behaviour: how it behaves.
        respond: called with each request's body first; what it returns (if not None) is sent.
    """

    def __init__(self, behaviour: Behaviour | None = None, respond: Respond | None = None) -> None:
        super().__init__(behaviour or Behaviour())
        self.requests: list[Body] = []
        """Bodies of the requests so far, in order of arrival."""
        self.times: list[float] = []
        """Seconds of a clock at which they arrived."""
        self.headers: list[dict[str, str]] = []
        """Their headers, names in lower case."""
        self.paths: list[str] = []
        self._respond = respond
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="loopback", daemon=True
        )
        self._number = next(_numbers)
        self.port = 0

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def base_url(self) -> str:
        """What a client is pointed at.

        No two servers share one: a port may come back, and judges remember what they learned.
        """
        return f"http://127.0.0.1:{self.port}/{self._number}/v1"

    @property
    def open_connections(self) -> int:
        return len(self.connections)

    def receive(self, path: str, headers: dict[str, str], body: Body) -> Reply:
        self.requests.append(body)
        self.times.append(time.monotonic())
        self.headers.append(headers)
        self.paths.append(path)
        own = self._respond(body) if self._respond is not None else None
        return own if own is not None else super().receive(path, headers, body)

    def behave(self, **changes: Any) -> None:
        """Change how it behaves from the next request on."""
        self.endpoint = Endpoint(dataclasses.replace(self.endpoint.behaviour, **changes))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        listener = await self.serve()
        self.port = listener.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        listener.close()
        for connection in list(self.connections):
            connection.close()
        await asyncio.sleep(0)  # lets the transports call connection_lost


@contextmanager
def spawned(behaviour: Behaviour) -> Iterator[str]:
    """Run the endpoint in a process of its own; gives its base URL."""
    file, how = str(Path(__file__).resolve()), json.dumps(dataclasses.asdict(behaviour))
    command = [sys.executable, file, how]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(child.stdout.readline())}/{next(_numbers)}/v1"
        finally:
            child.terminate()


async def _main(behaviour: Behaviour, port: int) -> None:
    listener = await _Server(behaviour).serve(port)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("behaviour", nargs="?", default="{}", help="fields of Behaviour as JSON")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it")
    options = parser.parse_args()
    asyncio.run(_main(Behaviour(**json.loads(options.behaviour)), options.port))
