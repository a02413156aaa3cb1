"""One ChatOpenAI, awaited by the app on its loop and asked by the judge, side by side.

langchain-openai shares one HTTP client process-wide; awaiting it on a second loop is what gives
hangs and "Event loop is closed".
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import openai
import pytest
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations import _loop
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.langchain import LangChainModel
from rag_eval_integrations.testing import labels_reply, small_call

from .conftest import chat_model

REPLY = labels_reply(["0a", "0b", "1a"], ["a", "b"])


class OwnModels:
    """Makes models with clients of their own: without one they would share the app's."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.clients: list[openai.DefaultAsyncHttpxClient] = []

    def __call__(self) -> Any:
        self.clients.append(openai.DefaultAsyncHttpxClient())
        return chat_model(self.base_url, http_async_client=self.clients[-1])

    async def close(self) -> None:
        for client in self.clients:
            await client.aclose()


def judged(evaluator: RagEvaluator, number: int) -> str | None:
    call = small_call().call.model_copy(update={"question": f"question {number}"})
    evaluation = evaluator.evaluate_sync(call)
    return None if evaluation.error is None else evaluation.error.message


@pytest.mark.parametrize("made", [False, True], ids=["the app's model", "a made model"])
def test_app_and_judge_side_by_side(made: bool) -> None:
    """Twelve of each: the app awaits on its loop what the judge asks from ours; none fails."""
    errors: list[str | None] = []

    async def app(model: Any) -> list[str]:
        answers = []
        for turn in range(2):
            batch = [model.ainvoke(f"question {turn} {number}") for number in range(6)]
            answers += [str(message.text) for message in await asyncio.gather(*batch)]
        await model.root_async_client.close()
        return answers

    with LoopbackServer(Behaviour(content=REPLY, latency=0.005)) as server:
        model = chat_model(server.base_url)
        own = OwnModels(server.base_url)
        judge = LangChainModel(make_model=own) if made else LangChainModel(model)
        evaluator = type("Own", (RagEvaluator,), {"_remembers": 0})(judge)

        numbered = (judged(evaluator, number) for number in range(12))
        thread = threading.Thread(target=errors.extend, args=(numbered,))
        thread.start()
        answers = asyncio.run(app(model))
        thread.join(60)
        # Whoever owns a client closes it: the app its own, sync and async; the made ones their loop.
        model.root_client.close()
        _loop.run(own.close())

    assert answers == [REPLY] * 12
    assert errors == [None] * 12
