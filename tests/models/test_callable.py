"""CallableModel: any function from messages to text."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rag_eval_integrations._contain import EscapedError
from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.models import CallableModel, Model
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.testing import ModelContract, labels_reply, small_call

REQUEST = CompletionRequest(messages=(Message(role="user", content="x"),))


class TestContract(ModelContract):
    """The contract that every model keeps."""

    def model(self, reply: str) -> Model:
        return CallableModel(lambda messages: reply)


async def test_the_function_gets_role_and_content() -> None:
    """As every chat API takes them."""
    seen: list[dict[str, str]] = []

    async def answer(messages: list[dict[str, str]]) -> str:
        seen.extend(messages)
        return labels_reply(["0a", "0b", "1a"], ["a", "b"])

    evaluation = await RagEvaluator(CallableModel(answer, name="mine")).evaluate(small_call().call)

    assert [message["role"] for message in seen] == ["system", "user"]
    assert "0a: The ferry leaves at nine." in seen[1]["content"]
    assert evaluation.scores["adherence"].by.judge == "mine"


async def test_several_answers_and_what_is_left_out() -> None:
    """Asked n times, with a list of its own each; log-probabilities are said to be missing."""
    count = 0

    async def answer(messages: list[dict[str, str]]) -> str:
        nonlocal count
        count += 1
        return f"{messages.pop()['content']}{count}"

    request = REQUEST.model_copy(update={"n": 3, "top_logprobs": 5})
    completion = await CallableModel(answer).complete(request)

    assert [choice.text for choice in completion.choices] == ["x1", "x2", "x3"]
    assert completion.usage.requests == 3
    assert "log-probabilities" in completion.warnings[0]


async def test_something_else_than_text_is_refused() -> None:
    """With what it was."""
    with pytest.raises(JudgeOutputError, match="returned dict"):
        await CallableModel(lambda messages: {"a": 1}).complete(REQUEST)  # type: ignore[arg-type]


async def test_plain_functions_and_objects_are_called_as_well() -> None:
    """In a thread, unless they are coroutine functions; what a lambda makes is awaited here."""
    here = threading.get_ident()
    where: list[int] = []

    class Gateway:
        async def __call__(self, messages: list[dict[str, str]]) -> str:
            where.append(threading.get_ident())
            return "object"

    def plain(messages: list[dict[str, str]]) -> str:
        where.append(threading.get_ident())
        return "plain"

    gateway = Gateway()
    models = [CallableModel(gateway), CallableModel(plain), CallableModel(lambda m: gateway(m))]

    answers = [(await model.complete(REQUEST)).choices[0].text for model in models]

    assert answers == ["object", "plain", "object"]
    assert [ident == here for ident in where] == [True, False, True]


def test_mistakes_raise_at_construction() -> None:
    """Naming the argument."""
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("x", {}, "`function` = 'x'"), (dict, {}, "`function` = .*is a class"),
        (ascii, {"name": ""}, "`name` = ''"),
    ]  # fmt: skip
    for function, options, said in wrong:
        with pytest.raises(ConfigurationError, match=said):
            CallableModel(function, **options)


@pytest.mark.parametrize(
    "error",
    [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()],
    ids=lambda error: type(error).__name__,
)
async def test_a_plain_function_may_raise_anything(error: BaseException) -> None:
    """It comes out of the thread as an exception; a `StopIteration` would be waited for for ever."""

    def fail(messages: list[dict[str, str]]) -> str:
        raise error

    with pytest.raises(EscapedError) as caught:
        await asyncio.wait_for(CallableModel(fail).complete(REQUEST), 10)

    assert caught.value.original is error
