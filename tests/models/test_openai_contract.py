"""OpenAIModel and the models around it keep the contract of every model, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations.models import CachedModel, Model, OpenAIModel, ThrottledModel
from rag_eval_integrations.testing import ModelContract, ScriptedModel


class _OverHttp(ModelContract):
    @pytest.fixture(autouse=True)
    def _servers(self, tmp_path: Path) -> Iterator[None]:
        self.opened: list[LoopbackServer] = []
        self.caches: list[CachedModel] = []
        self.folder = tmp_path
        yield
        for cache in self.caches:
            cache.close()
        for server in self.opened:
            server.__exit__(None, None, None)

    def openai(self, reply: str) -> OpenAIModel:
        server = LoopbackServer(Behaviour(content=reply)).__enter__()
        self.opened.append(server)
        return OpenAIModel("m", base_url=server.base_url)


class TestOpenAI(_OverHttp):
    """The endpoint itself."""

    def model(self, reply: str) -> Model:
        return self.openai(reply)


class TestCaching(_OverHttp):
    """With a file of answers around that; a second answer would cost no request."""

    def model(self, reply: str) -> Model:
        cached = CachedModel(ThrottledModel(self.openai(reply)), self.folder / "cache.db")
        self.caches.append(cached)
        return cached


class TestScripted(ModelContract):
    """The scripted model of `testing` keeps it too."""

    def model(self, reply: str) -> Model:
        return ScriptedModel(lambda request: reply)
