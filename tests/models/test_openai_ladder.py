"""Refused parameters are learned once and left out; ignored ones are told apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from loopback import Reply

from rag_eval_integrations.errors import JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel

from .conftest import SCHEMA, Serve

MESSAGES = (Message(role="system", content="Judge."), Message(role="user", content="Is it so?"))
NUMBERS: Any = {"top_logprobs": 20, "n": 2, "temperature": 0.5, "seed": 7, "max_tokens": 9}
ALL = CompletionRequest(messages=MESSAGES, json_schema=SCHEMA, **NUMBERS)


def asked(**changes: Any) -> CompletionRequest:
    return CompletionRequest(messages=MESSAGES, **changes)


async def test_everything_that_is_asked_for_is_sent(serve: Serve) -> None:
    """An endpoint that takes it all gets it all, in one request, without a warning."""
    server, model = serve()

    completion = await model.complete(ALL)

    strict = {**SCHEMA, "additionalProperties": False, "required": ["ok"]}
    asked_for = {"name": "answer", "schema": strict, "strict": True}
    assert server.requests[0] == {
        "model": "m", "logprobs": True, **NUMBERS,
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "response_format": {"type": "json_schema", "json_schema": asked_for},
    }  # fmt: skip
    assert completion.parsed == {"ok": True}
    assert len(completion.choices) == 2
    tokens = completion.tokens or ()
    assert "".join(token.text for token in tokens) == completion.text
    assert len(tokens[0].top) == 20
    assert completion.warnings == ()
    usage = completion.usage
    assert (usage.requests, usage.prompt_tokens, usage.cost_usd) == (1, 4, None)
    assert server.base_url.endswith(server.paths[0].removesuffix("/chat/completions"))


async def test_nothing_that_is_not_asked_for_is_sent(serve: Serve) -> None:
    """No temperature, no seed, no n: reasoning models refuse even the defaults."""
    server, model = serve(content="fine")

    completion = await model.complete(asked())

    assert set(server.requests[0]) == {"model", "messages"}
    assert (completion.text, completion.model, completion.finish_reason) == ("fine", "m", "stop")


@pytest.mark.parametrize(
    ("refuse", "by", "shape"),
    [
        ((), "json_schema", {"response_format"}),
        (("json_schema",), "json_object", {"response_format"}),
        (("json_schema", "json_object"), "tool", {"tools", "tool_choice"}),
        (("response_format",), "tool", {"tools", "tool_choice"}),
        (("response_format", "tools"), "text", set()),
        (("response_format", "tool_choice"), "text", set()),
    ],
)
@pytest.mark.parametrize("refuse_in", ["param", "message", "detail"])
async def test_each_step_of_the_schema_ladder(
    serve: Serve, refuse: tuple[str, ...], by: str, shape: set[str], refuse_in: str
) -> None:
    """json_schema, json_object, a forced tool, text: each refusal goes one step down, for good."""
    server, model = serve(refuse=refuse, refuse_in=refuse_in)

    first = await model.complete(asked(json_schema=SCHEMA))
    tried = len(server.requests)
    second = await model.complete(asked(json_schema=SCHEMA))

    assert model.capabilities.structured_by == by
    assert len(server.requests) == tried + 1
    assert set(server.requests[-1]) == {"model", "messages"} | shape
    assert first.parsed == second.parsed == {"ok": True}
    assert first.usage.requests == tried
    assert second.usage.requests == 1
    assert first.warnings == second.warnings
    why = f"JSON was asked for by {by}: the endpoint refuses better ways"
    assert first.warnings == ((why,) if refuse else ())


async def test_below_json_schema_the_schema_stands_with_the_instructions(serve: Serve) -> None:
    """OpenAI refuses json_object without the word JSON; texts under test come after."""
    server, model = serve(refuse=("json_schema",))

    await model.complete(asked(json_schema=SCHEMA))

    system, user = (message["content"] for message in server.requests[-1]["messages"])
    assert (system[:8], user) == ("Judge.\n\n", "Is it so?")
    assert "JSON" in system
    assert '"properties":{"ok"' in system


@pytest.mark.parametrize("name", ["temperature", "n", "top_logprobs", "logprobs"])
@pytest.mark.parametrize("refuse_in", ["param", "message", "detail"])
async def test_a_refused_parameter_is_dropped_once(serve: Serve, name: str, refuse_in: str) -> None:
    """Two requests for the first question, one for the next, and a warning on both."""
    gone = {name, "top_logprobs"} if name == "logprobs" else {name}
    server, model = serve(refuse=(name,), refuse_in=refuse_in)

    first = await model.complete(ALL)
    second = await model.complete(ALL)

    assert len(server.requests) == 3
    assert set(server.requests[0]) - set(server.requests[1]) == gone
    assert server.requests[1] == server.requests[2]
    assert f"`{name}` was left out: the endpoint refuses it" in first.warnings
    assert first.warnings == second.warnings
    assert name in model.capabilities.refused
    assert first.usage.requests == 2


async def test_max_tokens_gives_way_to_max_completion_tokens(serve: Serve) -> None:
    """OpenAI's reasoning models know the new name only; the cap is kept, so nothing is warned of."""
    server, model = serve(refuse=("max_tokens",))

    completion = await model.complete(asked(max_tokens=9))

    assert server.requests[1]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[1]
    assert completion.warnings == ()


@pytest.mark.parametrize("refuse_in", ["param", "message"])
async def test_a_refused_system_role_moves_into_the_user_message(
    serve: Serve, refuse_in: str
) -> None:
    """Instructions stay first, and nothing of them is lost."""
    server, model = serve(refuse=("system",), refuse_in=refuse_in)

    completion = await model.complete(asked())

    assert server.requests[-1]["messages"] == [{"role": "user", "content": "Judge.\n\nIs it so?"}]
    assert any("system" in warning for warning in completion.warnings)


@pytest.mark.parametrize(("name", "limit"), [("top_logprobs", 5), ("n", 1), ("max_tokens", 4)])
async def test_a_limit_is_kept_to(serve: Serve, name: str, limit: int) -> None:
    """Azure takes 5 log-probabilities of 20, Gemini 8 answers: as many as it takes are asked for."""
    server, model = serve(limits={name: limit})

    completion = await model.complete(ALL)
    await model.complete(ALL)

    assert len(server.requests) == 3
    assert server.requests[1][name] == limit
    assert model.capabilities.limits == {name: limit}
    assert any(f"`{name}` was lowered" in warning for warning in completion.warnings)


async def test_everything_refused_at_once(serve: Serve) -> None:
    """One request for each thing refused; at the end the bare question gets its answer."""
    names = ("temperature", "seed", "n", "logprobs", "max_tokens", "max_completion_tokens")
    server, model = serve(refuse=(*names, "system", "response_format", "tools"))

    completion = await model.complete(ALL)

    assert completion.parsed == {"ok": True}
    assert set(server.requests[-1]) == {"model", "messages"}
    assert completion.usage.requests == len(server.requests) == 11
    assert (await model.complete(ALL)).usage.requests == 1


@pytest.mark.parametrize(
    ("status", "refuse_in"), [(404, "message"), (422, "detail"), (503, "detail")]
)
async def test_a_refusal_is_known_by_its_words(serve: Serve, status: int, refuse_in: str) -> None:
    """Whatever its status: what is said to be unsupported is left out from then on."""
    server, model = serve(refuse=("temperature",), refuse_status=status, refuse_in=refuse_in)

    completion = await model.complete(ALL)

    assert len(server.requests) == 2
    assert list(model.capabilities.refused) == ["temperature"]
    assert completion.parsed == {"ok": True}


@pytest.mark.parametrize("status", [401, 408, 429])
async def test_key_money_time_and_load_teach_nothing(serve: Serve, status: int) -> None:
    """A 429 that happens to name a parameter does not take it away."""
    server, model = serve(refuse=("temperature",), refuse_status=status)

    with pytest.raises((JudgeRejectedError, JudgeUnavailableError)):
        await model.complete(ALL)

    assert len(server.requests) == 1
    assert model.capabilities.refused == {}


async def test_an_endpoint_that_refuses_what_was_left_out_is_left(serve: Serve) -> None:
    """The complaint stays the same although nothing is left to drop."""
    server, model = serve(refuse=("temperature",), settings={"extra_body": {"temperature": 3}})

    with pytest.raises(JudgeRejectedError, match="temperature"):
        await model.complete(ALL)

    assert len(server.requests) == 2


async def test_an_endpoint_of_endless_complaints_is_left(serve: Serve) -> None:
    """Ever smaller limits, one a reply: there is an end."""
    left = iter(range(1000, 0, -1))

    def respond(_: object) -> Reply:
        error = {"message": f"max_tokens: at most {next(left)}", "param": "max_tokens"}
        return Reply.json({"error": error}, 400)

    server, model = serve(respond)
    with pytest.raises(JudgeRejectedError, match="16 forms"):
        await model.complete(asked(max_tokens=2000))

    assert len(server.requests) == 16


async def test_absent_is_not_refused(serve: Serve) -> None:
    """Accepted and ignored: recorded as such, warned of, and asked for again the next time."""
    server, model = serve(ignore=("logprobs", "n", "json_schema"))

    completion = await model.complete(ALL)
    await model.complete(ALL)

    assert completion.tokens is None
    assert len(server.requests) == 2
    assert server.requests[1] == server.requests[0]
    assert model.capabilities.refused == {}
    absent = ("logprobs", "n", "response_format")
    assert model.capabilities.observed == dict.fromkeys(absent, "absent")
    assert completion.warnings == (
        "2 answers were asked for and 1 given",
        "log-probabilities were asked for and accepted, but not given",
        "JSON was asked for by json_schema and accepted, but not given",
    )


async def test_the_record_is_shared_by_models_of_one_endpoint(serve: Serve) -> None:
    """A second object knows the capabilities that the first one learned; another model has another record."""
    server, model = serve(refuse=("temperature",))
    await model.complete(ALL)

    asked_by = [OpenAIModel(name, base_url=server.base_url) for name in ("m", "other")]

    assert [(await other.complete(ALL)).usage.requests for other in asked_by] == [1, 2]


async def test_first_requests_together_do_not_all_learn(serve: Serve) -> None:
    """32 at once, 5 refusals: 32 find out the first, and then one at a time tries the rest."""
    refuse = ("temperature", "seed", "n", "logprobs", "json_schema")
    server, model = serve(refuse=refuse, latency=0.02)

    completions = await asyncio.gather(*[model.complete(ALL) for _ in range(32)])

    assert {completion.text for completion in completions} == {'{"ok": true}'}
    assert len({completion.warnings for completion in completions}) == 1
    refused = len(server.requests) - 32
    assert refused <= 32 + len(refuse)
    assert sum(completion.usage.requests for completion in completions) == len(server.requests)


async def test_too_high_a_temperature_is_an_error_of_its_request_alone(serve: Serve) -> None:
    """The endpoint's words name the limit; other temperatures are sent as before."""
    server, model = serve(limits={"temperature": 2})

    with pytest.raises(JudgeRejectedError, match="temperature"):
        await model.complete(asked(temperature=3.5))
    await model.complete(asked(temperature=0.5))

    assert server.requests[-1]["temperature"] == 0.5
