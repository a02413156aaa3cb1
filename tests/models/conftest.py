"""Endpoints on 127.0.0.1, each with a model that asks it; and what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from loopback import Behaviour, LoopbackServer, Reply

from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel

USER = (Message(role="user", content="Is it so?"),)
QUESTION = CompletionRequest(messages=USER)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
Served = tuple[LoopbackServer, OpenAIModel]
Serve = Callable[..., Served]


def responding(replies: Any) -> Any:
    """A reply for every request, a list of replies to the first ones, or a function."""
    if isinstance(replies, list):
        left = iter(replies)
        return lambda _: next(left, None)
    return (lambda _: replies) if isinstance(replies, Reply) else replies


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts endpoints that end with the test; gives each with a model of these settings."""
    with ExitStack() as running:

        def start(replies: Any = None, settings: Any = None, **behaviour: Any) -> Served:
            server = LoopbackServer(Behaviour(**behaviour), responding(replies))
            url = running.enter_context(server).base_url
            return server, OpenAIModel("m", **{"base_url": url, **(settings or {})})

        yield start
