"""OpenAIModel and the models around it keep the contract of every model, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rag_eval_integrations.models import CachedModel, Model, ThrottledModel
from rag_eval_integrations.testing import ModelContract, ScriptedModel

from .conftest import Serve


class _OverHttp(ModelContract):
    @pytest.fixture(autouse=True)
    def _servers(self, serve: Serve, tmp_path: Path) -> Iterator[None]:
        self.serve, self.folder = serve, tmp_path
        with ExitStack() as self.opened:
            yield


class TestOpenAI(_OverHttp):
    """The endpoint itself."""

    def model(self, reply: str) -> Model:
        return self.serve(content=reply)[1]


class TestCaching(_OverHttp):
    """With a file of answers around that; a second answer would cost no request."""

    def model(self, reply: str) -> Model:
        asked = ThrottledModel(self.serve(content=reply)[1])
        return self.opened.enter_context(CachedModel(asked, self.folder / "cache.db"))


class TestScripted(ModelContract):
    """The scripted model of `testing` keeps it too."""

    def model(self, reply: str) -> Model:
        return ScriptedModel(lambda request: reply)
