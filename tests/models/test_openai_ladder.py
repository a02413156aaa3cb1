"""Refused parameters are learned once and left out; ignored ones are told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loopback import Behaviour, LoopbackServer, Reply

from rag_eval_integrations.errors import JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
MESSAGES = (Message(role="system", content="Judge."), Message(role="user", content="Is it so?"))
NUMBERS: dict[str, Any] = {
    "top_logprobs": 20, "n": 2, "temperature": 0.5, "seed": 7, "max_tokens": 9,
}  # fmt: skip
ALL = CompletionRequest(messages=MESSAGES, json_schema=SCHEMA, **NUMBERS)

Serve = Callable[..., LoopbackServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts endpoints that end with the test."""
    running: list[LoopbackServer] = []

    def start(respond: Any = None, **behaviour: Any) -> LoopbackServer:
        server = LoopbackServer(Behaviour(**behaviour), respond)
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__()


def judge_of(server: LoopbackServer, **changes: Any) -> OpenAIModel:
    return OpenAIModel("m", base_url=server.base_url, **changes)


def asked(**changes: Any) -> CompletionRequest:
    return CompletionRequest(messages=MESSAGES, **changes)


async def test_everything_that_is_asked_for_is_sent(serve: Serve) -> None:
    """An endpoint that takes it all gets it all, in one request, without a warning."""
    server = serve()

    completion = await judge_of(server).complete(ALL)

    body = server.requests[0]
    strict = {**SCHEMA, "additionalProperties": False, "required": ["ok"]}
    assert body == {
        "model": "m",
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": strict, "strict": True},
        },
        "logprobs": True,
        **NUMBERS,
    }
    assert completion.parsed == {"ok": True}
    assert len(completion.choices) == 2
    assert completion.tokens is not None
    assert "".join(token.text for token in completion.tokens) == completion.text
    assert len(completion.tokens[0].top) == 20
    assert completion.warnings == ()
    usage = completion.usage
    assert (usage.requests, usage.prompt_tokens, usage.cost_usd) == (1, 4, None)
    assert server.base_url.endswith(server.paths[0].removesuffix("/chat/completions"))


async def test_nothing_that_is_not_asked_for_is_sent(serve: Serve) -> None:
    """No temperature, no seed, no n: reasoning models refuse even the defaults."""
    server = serve(content="fine")

    completion = await judge_of(server).complete(asked())

    assert set(server.requests[0]) == {"model", "messages"}
    given = (completion.text, completion.model, completion.finish_reason)
    assert given == ("fine", "m", "stop")


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
    server = serve(refuse=refuse, refuse_in=refuse_in)
    model = judge_of(server)

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
    server = serve(refuse=("json_schema",))

    await judge_of(server).complete(asked(json_schema=SCHEMA))

    system, user = server.requests[-1]["messages"]
    assert system["content"].startswith("Judge.\n\n")
    assert "JSON" in system["content"]
    assert '"properties":{"ok"' in system["content"]
    assert user["content"] == "Is it so?"


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        *((name, {name}) for name in ("temperature", "n", "top_logprobs")),
        ("logprobs", {"logprobs", "top_logprobs"}),
    ],
)
@pytest.mark.parametrize("refuse_in", ["param", "message", "detail"])
async def test_a_refused_parameter_is_dropped_once(
    serve: Serve, name: str, gone: set[str], refuse_in: str
) -> None:
    """Two requests for the first question, one for the next, and a warning on both."""
    server = serve(refuse=(name,), refuse_in=refuse_in)
    model = judge_of(server)

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
    server = serve(refuse=("max_tokens",))

    completion = await judge_of(server).complete(asked(max_tokens=9))

    assert server.requests[1]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[1]
    assert completion.warnings == ()


@pytest.mark.parametrize("refuse_in", ["param", "message"])
async def test_a_refused_system_role_moves_into_the_user_message(
    serve: Serve, refuse_in: str
) -> None:
    """Instructions stay first, and nothing of them is lost."""
    server = serve(refuse=("system",), refuse_in=refuse_in)

    completion = await judge_of(server).complete(asked())

    assert server.requests[-1]["messages"] == [{"role": "user", "content": "Judge.\n\nIs it so?"}]
    assert any("system" in warning for warning in completion.warnings)


@pytest.mark.parametrize(("name", "limit"), [("top_logprobs", 5), ("n", 1), ("max_tokens", 4)])
async def test_a_limit_is_kept_to(serve: Serve, name: str, limit: int) -> None:
    """Azure takes 5 log-probabilities of 20, Gemini 8 answers: as many as it takes are asked for."""
    server = serve(limits={name: limit})
    model = judge_of(server)

    completion = await model.complete(ALL)
    await model.complete(ALL)

    assert len(server.requests) == 3
    assert server.requests[1][name] == limit
    assert model.capabilities.limits == {name: limit}
    assert any(f"`{name}` was lowered" in warning for warning in completion.warnings)


async def test_everything_refused_at_once(serve: Serve) -> None:
    """One request for each thing refused; at the end the bare question gets its answer."""
    names = ("temperature", "seed", "n", "logprobs", "max_tokens", "max_completion_tokens")
    server = serve(refuse=(*names, "system", "response_format", "tools"))
    model = judge_of(server)

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
    server = serve(refuse=("temperature",), refuse_status=status, refuse_in=refuse_in)
    model = judge_of(server)

    completion = await model.complete(ALL)

    assert len(server.requests) == 2
    assert list(model.capabilities.refused) == ["temperature"]
    assert completion.parsed == {"ok": True}


@pytest.mark.parametrize("status", [401, 408, 429])
async def test_key_money_time_and_load_teach_nothing(serve: Serve, status: int) -> None:
    """A 429 that happens to name a parameter does not take it away."""
    server = serve(refuse=("temperature",), refuse_status=status)
    model = judge_of(server)

    with pytest.raises((JudgeRejectedError, JudgeUnavailableError)):
        await model.complete(ALL)

    assert len(server.requests) == 1
    assert model.capabilities.refused == {}


async def test_an_endpoint_that_refuses_what_was_left_out_is_left(serve: Serve) -> None:
    """The complaint stays the same although nothing is left to drop."""
    server = serve(refuse=("temperature",))
    model = judge_of(server, extra_body={"temperature": 3})

    with pytest.raises(JudgeRejectedError, match="temperature"):
        await model.complete(ALL)

    assert len(server.requests) == 2


async def test_an_endpoint_of_endless_complaints_is_left(serve: Serve) -> None:
    """Ever smaller limits, one a reply: there is an end."""
    left = iter(range(1000, 0, -1))

    def respond(_: object) -> Reply:
        error = {"message": f"max_tokens: at most {next(left)}", "param": "max_tokens"}
        return Reply.json({"error": error}, 400)

    server = serve(respond)

    with pytest.raises(JudgeRejectedError, match="16 forms"):
        await judge_of(server).complete(asked(max_tokens=2000))

    assert len(server.requests) == 16


async def test_absent_is_not_refused(serve: Serve) -> None:
    """Accepted and ignored: recorded as such, warned of, and asked for again the next time."""
    server = serve(ignore=("logprobs", "n", "json_schema"))
    model = judge_of(server)

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
    server = serve(refuse=("temperature",))
    await judge_of(server).complete(ALL)

    known = await judge_of(server).complete(ALL)
    other = await OpenAIModel("other", base_url=server.base_url).complete(ALL)

    assert known.usage.requests == 1
    assert other.usage.requests == 2


async def test_first_requests_together_do_not_all_learn(serve: Serve) -> None:
    """32 at once, 5 refusals: 32 find out the first, and then one at a time tries the rest."""
    refuse = ("temperature", "seed", "n", "logprobs", "json_schema")
    server = serve(refuse=refuse, latency=0.02)
    model = judge_of(server)

    completions = await asyncio.gather(*[model.complete(ALL) for _ in range(32)])

    assert {completion.text for completion in completions} == {'{"ok": true}'}
    assert len({completion.warnings for completion in completions}) == 1
    refused = len(server.requests) - 32
    assert refused <= 32 + len(refuse)
    assert sum(completion.usage.requests for completion in completions) == len(server.requests)
