"""LangChainModel: any LangChain chat model, off the app's loop and never captured."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag_eval_integrations.errors import ConfigurationError, JudgeError, JudgeUnavailableError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.langchain import LangChainModel
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.testing import ModelContract, labels_reply

from .conftest import Captured, Sections

ASKED = CompletionRequest(messages=(Message(role="user", content="x"),))
REPLY = labels_reply(["0a", "0b", "1a"], ["a", "b"])


class Chat(BaseChatModel):
    """Answers what it is told, and remembers how it was called and in which threads."""

    reply: Any = REPLY
    model_name: str = "small-1"
    ways: list[tuple[str, str]] = []  # noqa: RUF012  # pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _answer(self, way: str) -> ChatResult:
        self.ways.append((way, threading.current_thread().name[:14]))
        if isinstance(self.reply, Exception):
            raise self.reply
        message = self.reply if isinstance(self.reply, AIMessage) else AIMessage(self.reply)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer("sync")

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer("async")


class TestContract(ModelContract):
    """The contract that every model keeps, here where a model is made on each loop."""

    def model(self, reply: str) -> Model:
        return LangChainModel(make_model=lambda: Chat(reply=reply))


async def test_the_users_model_is_called_in_threads_and_a_made_one_on_the_loop() -> None:
    """A client of the app's loop must not be awaited on another one."""
    model, made = Chat(), Chat()

    await LangChainModel(model).complete(ASKED)
    await LangChainModel(make_model=lambda: made).complete(ASKED)

    assert model.ways == [("sync", "rag-eval-model")]
    assert made.ways == [("async", threading.current_thread().name)]


async def test_a_model_is_made_once_a_loop() -> None:
    """And another one on another loop."""
    make = Mock(side_effect=Chat)
    judge = LangChainModel(make_model=make)
    await judge.complete(ASKED)
    await judge.complete(ASKED)
    await asyncio.to_thread(asyncio.run, judge.complete(ASKED))

    assert make.call_count == 2


@pytest.mark.parametrize(
    ("name", "word"),
    [("finish_reason", "length"), ("done_reason", "length"), ("stopReason", "max_tokens")],
)
async def test_usage_model_refusal_and_reasoning_are_read(name: str, word: str) -> None:
    """From where LangChain keeps them, under each vendor's name."""
    message = AIMessage(
        content="<think>hm</think>{}",
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        response_metadata={name: word, "model_name": "small-1-2026"},
        additional_kwargs={"refusal": "no"},
    )

    completion = await LangChainModel(Chat(reply=message)).complete(ASKED)

    assert (completion.text, completion.model) == ("{}", "small-1-2026")
    assert (completion.finish_reason, completion.choices[0].refusal) == ("length", "no")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (7, 3)


class _StatusError(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("from the vendor")
        self.status_code = status_code


class _ConnectError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_StatusError(429), "JudgeUnavailableError"),
        (_StatusError(503), "JudgeUnavailableError"),
        (_StatusError(401), "JudgeRejectedError"),
        (_ConnectError(), "JudgeUnavailableError"),
        (TimeoutError(), "JudgeUnavailableError"),
        (ValueError("x"), "JudgeError"),
    ],
)
async def test_failures_say_whether_asking_again_may_help(error: Exception, kind: str) -> None:
    """Whatever vendor's client is inside."""
    with pytest.raises(JudgeError) as caught:
        await LangChainModel(Chat(reply=error)).complete(ASKED)

    assert type(caught.value).__name__ == kind


async def test_a_model_without_any_answer_fails_as_a_judge() -> None:
    """A moderation layer may return no generation at all; the settings are not to blame for it."""
    sent = []

    class Silent(Chat):
        seed: int | None = None

        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            sent.append(kwargs.get("seed"))
            return ChatResult(generations=[])

    model = LangChainModel(Silent())
    for _ in range(2):
        with pytest.raises(JudgeError, match="gave no answer"):
            await model.complete(ASKED.model_copy(update={"seed": 7}))
    assert sent == [7, 7]


async def test_the_models_own_timeout_is_not_told_as_ours() -> None:
    """The time that it waited is not the 120 s that it may take here."""
    with pytest.raises(JudgeUnavailableError, match="TimeoutError: of the socket"):
        await LangChainModel(Chat(reply=TimeoutError("of the socket"))).complete(ASKED)


async def test_no_answer_in_time() -> None:
    """A model that hangs is given up."""
    event = threading.Event()

    class Hanging(Chat):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            event.wait(10)
            return self._answer("sync")

    with pytest.raises(JudgeUnavailableError, match=r"no answer in 0\.05 s"):
        await LangChainModel(Hanging(), timeout=0.05).complete(ASKED)
    event.set()


async def test_the_judges_calls_are_never_captured_as_rag_calls(captured: Captured) -> None:
    """Also when the evaluation runs inside of the chain that is captured, with the same model."""
    model = Chat(reply=labels_reply(["0a"], ["a"]))
    evaluator = RagEvaluator(LangChainModel(model))
    inner = RagCall(question="q", documents=["Inner."], response="Inner.")

    async def answer(given: dict[str, Any]) -> str:
        await evaluator.evaluate(inner)
        return "The ferry leaves at nine."

    chain = {"context": Sections(), "question": RunnablePassthrough()} | RunnableLambda(answer)
    await chain.ainvoke("When?", captured.config)

    (call,) = captured.calls
    assert (call.question, call.response) == ("When?", "The ferry leaves at nine.")
    assert len(model.ways) == 1


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("model", {}),
        ("model", {"model": Chat(), "make_model": Chat}),
        ("model", {"model": "gpt"}),
        ("timeout", {"model": Chat(), "timeout": 0}),
    ],
)
def test_mistakes_raise_at_construction(field: str, arguments: Any) -> None:
    """Naming the argument."""
    with pytest.raises(ConfigurationError) as raised:
        LangChainModel(**arguments)

    assert raised.value.field == field
