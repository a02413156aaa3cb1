"""What an error reply says: refusals, bad replies, outages; and how much of it is kept."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Reply

from rag_eval_integrations import RagCall, RagEvaluator, Trace
from rag_eval_integrations.errors import (
    JudgeError,
    JudgeOutputError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.metrics.geval import GEval
from rag_eval_integrations.models._failures import readable
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.models.throttling import ThrottledModel
from rag_eval_integrations.testing import small_call

from .conftest import SCHEMA, USER, Serve

JSON = CompletionRequest(messages=USER, json_schema=SCHEMA, temperature=0.5, n=2, max_tokens=9)

FASTAPI = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}\n\n"
    '  File "/opt/llm/venv/lib/python3.11/site-packages/llm/server/app.py", line 376, in chat\n'
    "    POST /v1/chat/completions"
)


def error(message: str, status: int) -> Reply:
    return Reply.json({"error": {"message": message, "param": None}}, status)


# --- Refusals under any status -------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        FASTAPI,
        "body.response_format.type: Input should be 'text' or 'json_object'",
        "1 validation error for ChatRequest\nresponse_format.type\n  Input should be 'text' "
        "[type=literal_error, input_value='json_schema', input_type=str]",
        "create_chat() got an unexpected keyword argument 'response_format'",
        "Failed to initialize samplers: failed to parse grammar",
    ],
)
async def test_a_refused_schema_steps_down(serve: Serve, message: str) -> None:
    """By what the endpoint says; the step is remembered, and no path of its disk is."""

    def respond(body: Any) -> Reply | None:
        asked = (body.get("response_format") or {}).get("type")
        return error(message, 500) if asked == "json_schema" else None

    server, model = serve(respond)
    completion = await model.complete(JSON)

    assert len(server.requests) == 2
    assert model.capabilities.structured_by == "json_object"
    assert completion.parsed == {"ok": True}
    assert "/opt" not in repr(model.capabilities)


async def test_a_printed_validation_error_is_cut_to_its_words(serve: Serve) -> None:
    """It repeats the request, prompts included; none of that is kept or searched."""
    text = (
        "1 validation error:\n  {'type': 'int_type', 'loc': ('body', 'seed'), 'msg': 'Input should "
        "be an integer', 'input': 'The temperature is 5. My secret prompt.'}"
    )
    _, model = serve([error(text, 500)], settings={"seed": 3})
    await model.complete(JSON)

    assert model.capabilities.refused == {"seed": "seed: Input should be an integer"}


# --- Bad replies ---------------------------------------------------------------------------------

OWN_OUTPUT = [
    "The model produced output that does not match the expected peg-native format",
    "Failed to parse input at pos 7: <tool_call>{",
    "could not parse the model's output",
]


@pytest.mark.parametrize(
    ("status", "message", "kind", "words", "requests"),
    [
        *((500, message, JudgeOutputError, "replied 500: .*, twice", 2) for message in OWN_OUTPUT),
        (500, "Internal server error", JudgeUnavailableError, "replied 500", 1),
        (502, "The model produced output that does not match the expected format",
         JudgeUnavailableError, "replied 502", 1),
        (500, "CUDA error: out of memory in sampler of logprobs",
         JudgeUnavailableError, "replied 500", 1),
    ],
)  # fmt: skip
async def test_a_500_about_the_models_own_output_is_a_bad_reply_and_an_outage_is_not(
    serve: Serve, status: int, message: str, kind: type[JudgeError], words: str, requests: int
) -> None:
    """The one is asked for once more, the other left to who retries; nothing is learned."""
    server, model = serve(error(message, status))
    with pytest.raises(kind, match=words) as caught:
        await model.complete(JSON)

    assert len(server.requests) == requests
    assert getattr(caught.value, "status", status) == status
    assert model.capabilities.refused == {}


async def test_a_bad_reply_that_does_not_repeat_is_forgotten(serve: Serve) -> None:
    """The second answer counts, and both requests do."""
    completion = await serve([error(OWN_OUTPUT[0], 500)])[1].complete(JSON)

    assert completion.parsed == {"ok": True}
    assert completion.usage.requests == 2


async def test_bad_replies_open_no_circuit_and_are_unscored(serve: Serve) -> None:
    """Five rows in a row: each TRACe score and each G-Eval score says it, none is retried."""
    server, model = serve(error(OWN_OUTPUT[0], 500))
    throttled = type("Own", (ThrottledModel,), {"_max_failures": 2, "_cool_down": 60})(model)
    evaluator = RagEvaluator(throttled, metrics=[Trace(), GEval.coherence()])
    for number in range(5):
        call = small_call().call.model_copy(update={"question": f"{number}?"})
        for score in (await evaluator.evaluate(call)).scores.values():
            assert (score.status, score.unscored) == ("unscored", "judge_output_invalid")
            assert "does not match the expected" in (score.reason or "")

    assert len(server.requests) == 5 * 2 * 2


# --- Accepted, but not given ---------------------------------------------------------------------

IGNORED = "JSON was asked for by json_schema and accepted, but not given"


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
async def test_an_ignored_schema_stands_on_every_unscored_row(
    serve: Serve, finish_reason: str
) -> None:
    """However the answers end: text that never began as JSON was not held to a schema."""
    _, model = serve(content="Well, let me think.", finish_reason=finish_reason)
    for number in range(3):
        call = RagCall(question=f"{number}?", documents=("One.",), response="Two.")
        for score in (await RagEvaluator(model).evaluate(call)).scores.values():
            assert (score.status, score.warnings) == ("unscored", (IGNORED,))

    assert model.capabilities.ignored == ("response_format",)


# --- How much is kept ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 500])
async def test_a_huge_error_is_not_kept(serve: Serve, status: int) -> None:
    """Ten megabytes become a line."""
    _, model = serve(error("x " * 5 * 2**20, status))
    with pytest.raises(JudgeError) as caught:
        await model.complete(JSON)

    assert len(str(caught.value)) <= 500


async def test_a_huge_answer_is_a_bad_reply(serve: Serve) -> None:
    """It is cut at 8 MB, and asked for once more."""
    server, model = serve(Reply.json({"choices": [{"message": {"content": "x" * 10 * 2**20}}]}))
    with pytest.raises(JudgeOutputError, match="more than 8 MB, twice"):
        await model.complete(JSON)

    assert len(server.requests) == 2


async def test_a_traceback_in_an_error_stays_on_the_server(serve: Serve) -> None:
    """Its last line is the message; files, directories and controls are left out."""
    text = (
        'Traceback (most recent call last):\n  File "/home/bob/app/main.py", line 3, in run\n'
        "    load(path)\nValueError: cannot open /home/bob/models/a.gguf\x1b[31m\u202e"
    )
    _, model = serve(error(text, 400))
    with pytest.raises(JudgeRejectedError) as caught:
        await model.complete(JSON)

    assert str(caught.value).endswith("replied 400: ValueError: cannot open …/a.gguf [31m")


@given(st.text(st.characters(), max_size=2000))
def test_a_message_is_one_short_line(text: str) -> None:
    """Whatever it holds: no controls, no invisible characters, at most 300 characters."""
    line = readable(text)

    assert len(line) <= 300
    assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs")]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["/a" * 10**6, "<" * 10**6, 'File "' * 10**6, " \n" * 10**6, "'loc': (" * 10**6]
)  # fmt: skip
def test_reading_a_message_takes_no_time(text: str) -> None:
    """A megabyte of the worst for each pattern is read; what is quadratic would take hours."""
    assert len(readable(text)) <= 300
