"""OpenAIJudge and what wraps it keep the contract of every completer, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations.judges import CachingJudge, Completer, OpenAIJudge, ThrottledJudge
from rag_eval_integrations.testing import CompleterContract, ScriptedJudge


class _OverHttp(CompleterContract):
    @pytest.fixture(autouse=True)
    def _servers(self, tmp_path: Path) -> Iterator[None]:
        self.opened: list[LoopbackServer] = []
        self.caches: list[CachingJudge] = []
        self.folder = tmp_path
        yield
        for cache in self.caches:
            cache.close()
        for server in self.opened:
            server.__exit__(None, None, None)

    def openai(self, reply: str) -> OpenAIJudge:
        server = LoopbackServer(Behaviour(content=reply)).__enter__()
        self.opened.append(server)
        return OpenAIJudge("m", base_url=server.base_url)


class TestOpenAI(_OverHttp):
    """The endpoint itself."""

    def completer(self, reply: str) -> Completer:
        return self.openai(reply)


class TestThrottled(_OverHttp):
    """With limits and retries around it."""

    def completer(self, reply: str) -> Completer:
        return ThrottledJudge(self.openai(reply))


class TestCaching(_OverHttp):
    """With a file of answers around that; a second answer would cost no request."""

    def completer(self, reply: str) -> Completer:
        cached = CachingJudge(ThrottledJudge(self.openai(reply)), self.folder / "cache.db")
        self.caches.append(cached)
        return cached


class TestScripted(CompleterContract):
    """The scripted judge of `testing` keeps it too."""

    def completer(self, reply: str) -> Completer:
        return ScriptedJudge(lambda request: reply)
