"""Failures on the way become one of our exceptions, or an answer that says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from loopback import Behaviour, LoopbackServer, Reply

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.records import from_line, to_line

from .conftest import QUESTION, SCHEMA, USER, Serve


async def ask(
    behaviour: Behaviour | None = None, respond: Any = None, seconds: float = 60.0, **changes: Any
) -> Completion:
    with LoopbackServer(behaviour, respond) as server:
        model = OpenAIModel("m", base_url=server.base_url, timeout=seconds)
        try:
            return await model.complete(CompletionRequest(messages=USER, **changes))
        finally:
            assert len(server.requests) == 1  # nothing is retried here
            await model.aclose()


def message(content: object, **fields: Any) -> Any:
    """A server that replies with this message."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content, **fields}}
    return lambda _: Reply.json({"choices": [choice]})


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        *((status, JudgeUnavailableError, f"m at 127.0.0.1:[0-9]+ replied {status}")
          for status in (408, 429, 500, 529)),
        *((status, JudgeRejectedError, f"scripted {status}") for status in (400, 401, 404)),
    ],
)  # fmt: skip
async def test_a_status_says_whether_it_may_pass(
    status: int, kind: type[Exception], words: str
) -> None:
    """With the status for the layer that retries, and the endpoint's own words."""
    with pytest.raises(kind, match=words) as caught:
        await ask(Behaviour(statuses=(status,)))

    assert getattr(caught.value, "status", None) == status
    assert getattr(caught.value, "retry_after", None) is None


async def test_an_empty_purse_is_rejected() -> None:
    """OpenAI says it with a 429, but no waiting helps."""
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}

    with pytest.raises(JudgeRejectedError, match="quota"):
        await ask(respond=lambda _: Reply.json({"error": error}, 429))


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0.5"}, 0.5, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25, 0.25),
        ({"retry-after": "{date+20}"}, 17, 20),
        ({"retry-after": "{date-20}"}, 0, 0),
    ],
)
async def test_the_wait_that_is_asked_for_is_passed_on(
    headers: dict[str, str], least: float, most: float
) -> None:
    """Seconds, milliseconds, dates; a date that has passed means no wait."""
    with pytest.raises(JudgeUnavailableError) as caught:
        await ask(Behaviour(statuses=(429,), headers=headers))

    wait: Any = caught.value.retry_after
    assert least <= wait <= most


@pytest.mark.parametrize(
    "body", [b"", b"<html>busy</html>", b"[]", b'{"choices": []}', b'{"choices": [1]}', b"\xff\xfe\x00"]
)  # fmt: skip
async def test_a_200_without_an_answer_is_unavailable(body: bytes) -> None:
    """Never a JSONDecodeError, never an empty answer."""
    with pytest.raises(JudgeUnavailableError, match="replied 200"):
        await ask(respond=lambda _: Reply(body=body))


@pytest.mark.parametrize("fault", ["truncate", "cut"])
async def test_a_body_that_ends_early_is_unavailable(fault: str) -> None:
    """Whether the connection says so or not."""
    with pytest.raises(JudgeUnavailableError):
        await ask(Behaviour(faults={fault: 1.0}))


@pytest.mark.parametrize("inside", ["reply", "choice"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [(429, JudgeUnavailableError), (502, JudgeUnavailableError), (400, JudgeRejectedError)],
)
async def test_an_error_inside_of_a_200_is_named(
    code: int, kind: type[JudgeError], inside: str
) -> None:
    """OpenRouter passes its upstream's errors on like this; a refusal is no outage there, too."""
    reply: Any = {"error": {"message": "upstream is\nbusy", "code": code}}
    if inside == "choice":
        reply = {"choices": [{**reply, "message": {"content": "It br"}, "finish_reason": "error"}]}

    with pytest.raises(kind, match="upstream is busy") as caught:
        await ask(respond=lambda _: Reply.json(reply))

    assert getattr(caught.value, "status", None) == code


@pytest.mark.parametrize("reply", [Reply(delay=30), Reply(body=b"{" + b" " * 999, drip=0.05)])
async def test_no_answer_in_time_is_unavailable(reply: Reply) -> None:
    """The limit holds for the whole answer, a byte now and then included; waiting may help."""
    with pytest.raises(JudgeUnavailableError, match=r"within 0\.2 s|no reply") as caught:
        await ask(respond=lambda _: reply, seconds=0.2)

    assert caught.value.connected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        *(({"finish_reason": reason}, reason) for reason in ("stop", "length", "content_filter")),
        *(({"finish_reason": reason}, "stop") for reason in ("tool_calls", "eos")),
        ({"finish_reason": "whatever"}, "unknown"),
        ({"refusal": "I cannot help with that."}, "refusal"),
        # a 400 of Azure's, which must neither fail nor teach
        ({"blocked": True}, "content_filter"),
    ],
)
async def test_why_an_answer_ended(how: dict[str, Any], expected: str) -> None:
    """In our words; what is not known is unknown, and a refusal's words are not the text."""
    completion = await ask(Behaviour(**how), json_schema=SCHEMA, temperature=1.0)

    assert completion.finish_reason == expected
    assert completion.choices[0].refusal == how.get("refusal")
    assert bool(completion.text) == ("finish_reason" in how)
    assert (completion.usage.requests, completion.warnings) == (1, ())


async def test_reasoning_is_cut_off_with_its_tokens() -> None:
    """Neither a draft verdict nor its log-probabilities reach a metric."""
    behaviour = Behaviour(reasoning='<think>Maybe {"ok": false} ?</think> ', content='{"ok": true}')

    completion = await ask(behaviour, top_logprobs=1)

    spelled = "".join(token.text for token in completion.tokens or ())
    assert completion.text == '{"ok": true}'
    assert spelled.endswith(" true}")
    assert "false" not in spelled


@pytest.mark.parametrize(
    ("content", "fields", "text", "warnings"),
    [
        # An answer that is missing is not looked for in the reasoning.
        (None, {"reasoning": '{"ok": true}', "reasoning_content": '{"ok": true}'}, "", ()),
        ('<think>{"ok": true}', {}, "", ("the reply is only reasoning that does not end",)),
        # JSON can escape half a surrogate pair; a record cannot hold it.
        ("a\ud800b", {}, "a?b", ()),
        # Magistral's thinking parts are reasoning.
        ([{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}, 5], {}, "yes", ()),
    ],
)
async def test_the_text_of_a_message(
    content: object, fields: dict[str, str], text: str, warnings: tuple[str, ...]
) -> None:
    """Without reasoning, in text that can be written, whatever form the content has."""
    completion = await ask(respond=message(content, **fields))

    assert (completion.text, completion.warnings) == (text, warnings)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ([{"function": {"arguments": '{"ok": 1}'}}], '{"ok": 1}'),
        ([{"function": {"arguments": {"ok": 1}}}], '{"ok": 1}'),
        *((call, "plain") for call in (
            [{"function": {"arguments": 5}}], [{"function": None}], [None], [], None)),
    ],
)  # fmt: skip
async def test_tool_arguments_in_any_shape(serve: Serve, call: object, text: str) -> None:
    """A string by the book, an object from some gateways; else the content is the answer."""
    called = message("plain", tool_calls=call)(None)
    _, model = serve([None, None, called], refuse=("response_format",))

    assert (await model.complete(CompletionRequest(messages=USER, json_schema=SCHEMA))).text == text


def logprobs(*tokens: object, text: str = "ab") -> Any:
    choice = {"message": {"content": text}, "logprobs": {"content": list(tokens)}}
    return lambda _: Reply.json({"choices": [choice]})


async def test_placeholder_logprobs_are_passed_on() -> None:
    """-9999 and equal values are the metric's to interpret; minus infinity is written as -9999."""
    respond = logprobs({"token": "a", "logprob": -9999.0}, {"token": "b", "logprob": float("-inf")})

    completion = await ask(respond=respond, top_logprobs=5)

    assert [token.logprob for token in completion.tokens or ()] == [-9999.0, -9999.0]
    assert completion.warnings == ()


@pytest.mark.parametrize(
    "token",
    [5, {"token": "a"}, *({"token": "a", "logprob": p} for p in (None, float("nan"), True))],
)
async def test_logprobs_of_another_shape_are_none(token: object) -> None:
    """DashScope's, for example: said, and not guessed at."""
    completion = await ask(respond=logprobs(token), top_logprobs=5)

    assert completion.tokens is None
    assert "not of the shape" in completion.warnings[0]


@pytest.mark.parametrize(
    ("spelled", "kept", "warnings"),
    [
        (["<think>", "hm", "</think>", "a", "b"], ["a", "b"], ()),  # SGLang's list
        (["a", "b", "<eos>"], ["a", "b", "<eos>"], ()),
        # passed on, since a token may be half a character
        (["x"], ["x"], ("the tokens with log-probabilities do not spell the answer",)),
    ],
)
async def test_tokens_are_lined_up_with_the_answer(
    spelled: list[str], kept: list[str], warnings: tuple[str, ...]
) -> None:
    """Those of reasoning that the server cut off are left out; alternatives of no shape are."""
    top = [5, {"token": "b", "logprob": -2}, {"token": "c"}]
    tokens = [{"token": text, "logprob": -1, "top_logprobs": top} for text in spelled]

    completion = await ask(respond=logprobs(*tokens), top_logprobs=5)

    assert [token.text for token in completion.tokens or ()] == kept
    assert {token.top for token in completion.tokens or ()} == {(("b", -2.0),)}
    assert completion.warnings == warnings


async def test_answers_stand_in_the_order_of_their_index() -> None:
    """Servers may send them as they finish."""
    choices = [{"index": i, "message": {"content": str(i)}} for i in (2, 0, 1)]

    completion = await ask(respond=lambda _: Reply.json({"choices": choices}), n=3)

    assert [choice.text for choice in completion.choices] == ["0", "1", "2"]


async def test_cancelling_closes_the_request(serve: Serve) -> None:
    """A cancelled question stays cancelled and leaves the model usable."""
    server, model = serve(latency=0.3)
    task = asyncio.ensure_future(model.complete(QUESTION))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.behave(latency=0.0)

    assert (await model.complete(QUESTION)).text == '{"ok": true}'


@pytest.mark.parametrize(
    "field",
    [
        '"usage": {"prompt_tokens": %s, "completion_tokens": 3}',
        '"usage": {"prompt_tokens": 7, "completion_tokens": true, "details": [%s]}',
        '"usage": %s',
        '"model": %s',
    ],
)
@pytest.mark.parametrize("digits", [400, 5_000])
async def test_a_huge_number_beside_an_answer_loses_nothing(field: str, digits: int) -> None:
    """The answer is kept, and its usage can be added up and written."""
    choice = '{"index": 0, "finish_reason": "stop", "message": {"content": "yes"}}'
    body = '{"choices": [%s], %s}' % (choice, field % ("9" * digits))  # noqa: UP031  # braces

    completion = await ask(None, lambda _: Reply(body=body.encode("ascii")))

    assert completion.text == "yes"
    assert completion.usage.prompt_tokens <= 7
    assert completion.usage.completion_tokens in (0, 3)
    assert from_line(Completion, to_line(completion)) == completion


@pytest.mark.parametrize("place", ["1.5", '{"a": 1}', "9" * 5_000])
async def test_an_odd_error_body_is_an_error_reply(place: str) -> None:
    """Refused by the endpoint, not by a bug of ours."""
    body = f'{{"detail": [{{"loc": {place}, "msg": "bad"}}]}}'.encode("ascii")

    with pytest.raises(JudgeRejectedError, match="replied 422"):
        await ask(None, lambda _: Reply(status=422, body=body))
