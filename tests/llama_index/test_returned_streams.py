"""Workflows that return a stream itself: a model's, or a generator of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from .conftest import ANSWER, QUESTION, TOKENS, Captured, Model, Sections


class Streams(Workflow):
    """Retrieves, and returns the stream of a model that is shown what was found."""

    kind = "async"

    @step
    async def say(self, ev: StartEvent) -> StopEvent:
        found = await Sections().aretrieve(ev.query)
        prompt = "\n".join([*(node.text for node in found), ev.query])
        if self.kind == "sync":
            return StopEvent(result=Model().stream_complete(prompt))
        if self.kind == "own":
            return StopEvent(result=tokens(prompt))
        return StopEvent(result=await Model().astream_complete(prompt))


async def tokens(prompt: str) -> AsyncIterator[str]:
    async for part in await Model().astream_complete(prompt):
        yield part.delta or ""


async def ask(kind: str) -> Any:
    workflow = Streams(timeout=20)
    workflow.kind = kind
    return await workflow.run(query=QUESTION)


@pytest.mark.parametrize("kind", ["async", "sync", "own"])
async def test_is_the_response(captured: Captured, kind: str) -> None:
    """The call ends when the app has read the stream, which stays a generator."""
    stream = await ask(kind)
    assert captured.calls == []
    parts = list(stream) if kind == "sync" else [part async for part in stream]

    assert [getattr(part, "delta", part) for part in parts] == TOKENS
    assert captured.ended == (ANSWER, "ok")
    assert captured.found == (["a", "b", "c"], "prompt", [])
    assert captured.only.question == QUESTION


async def test_left_early(captured: Captured) -> None:
    """A stream that the app closes ends its call as aborted, with the text so far."""
    stream = await ask("async")
    async for _ in stream:
        break
    await stream.aclose()

    assert captured.ended == (TOKENS[0], "aborted")
