"""The pure parts: Retry-After, dialects of errors, strict schemas, exceptions of other clients."""

from __future__ import annotations

import copy
import json
import socket
import ssl
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval_integrations.errors import JudgeError, JudgeUnavailableError
from rag_eval_integrations.models._failures import judge_error, retry_after
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai._bodies import Defaults, Sent, body_of, strict_schema
from rag_eval_integrations.models.openai._capabilities import (
    _MOST,
    Capabilities,
    Lesson,
    _endpoints,
    endpoint_of,
)
from rag_eval_integrations.models.openai._failures import failure_of, lesson_of

# --- Retry-After ---------------------------------------------------------------------------


@given(st.text(max_size=40))
def test_any_header_is_survived(value: str) -> None:
    """A wait is a number that is not negative, or None."""
    for name in ("retry-after", "retry-after-ms"):
        wait = retry_after({name: value})
        assert wait is None or wait >= 0


def test_an_unreadable_ms_header_leaves_the_other() -> None:
    """And infinity is not a wait."""
    assert retry_after({"retry-after-ms": "x", "retry-after": "2"}) == 2
    assert retry_after({"retry-after": "inf"}) is None
    assert retry_after({"retry-after": "Sun, 99 Nov 1994 08:49:37 GMT"}) is None
    assert retry_after({"retry-after": "Sun Nov  6 08:49:37 1994"}) == 0


# --- Errors in dialects --------------------------------------------------------------------

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


def everything(can: Capabilities | None = None) -> Sent:
    messages = (Message(role="system", content="s"), Message(role="user", content="u"))
    asked = CompletionRequest(
        messages=messages, json_schema=SCHEMA, top_logprobs=20, n=9, temperature=3, seed=1,
        max_tokens=5000,
    )  # fmt: skip
    return body_of("m", asked, Defaults(), can or Capabilities())


def learned(message: str, param: str | None = None, can: Capabilities | None = None) -> Any:
    text = json.dumps({"error": {"message": message, "param": param}})
    lesson = lesson_of(failure_of(400, {}, text), everything(can))
    return None if lesson is None else (lesson.parameter, lesson.limit)


TOOL = Capabilities(structured_by="tool")


def test_what_a_refusal_teaches() -> None:
    """Real endpoints' words: what is named first, its limit where there is one."""
    lessons: list[tuple[Any, ...]] = [
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature", None, ("temperature", None)),
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", None, None, ("max_tokens", None)),
        ("max_tokens is too large: 5000. This model supports at most 4096 completion tokens.", "max_tokens", None, ("max_tokens", 4096)),
        ("`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model", None, None, ("max_tokens", 4096)),
        ("max_tokens: 5000 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307", None, None, ("max_tokens", 4096)),
        ("You are not allowed to request logprobs from this model", None, None, ("logprobs", None)),
        ("Requested sample logprobs of 20, which is greater than max allowed: 5", None, None, ("top_logprobs", 5)),
        ("Invalid 'top_logprobs': integer above maximum value. Expected a value <= 5, but got 20 instead.", "top_logprobs", None, ("top_logprobs", 5)),
        ("top_logprobs must be in the range [0, 5]", None, None, ("top_logprobs", 5)),
        ("Only one completion: 'n' is not supported", None, None, ("n", None)),
        ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', None, None, ("seed", None)),
        ("Invalid schema for response_format 'answer'", "response_format", None, ("json_schema", None)),
        ("x", "response_format.json_schema.schema", None, ("json_schema", None)),
        ("model does not support tools", None, TOOL, ("tool", None)),
        ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "messages[0].role", None, ("system", None)),
        ("Conversation roles must alternate user/assistant/user/assistant/...", None, None, ("system", None)),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", None, None, ("system", None)),
        # Nothing that was sent, the prompt itself, or a temperature above the limit.
        ("temperature: range: 0..1", None, None, None),
        ("temperature must be between 0.0 and 2.0", None, None, None),
        ("It has a temperature value of 3 but the supported range is from 0 (inclusive) to 2.0001 (exclusive).", None, None, None),
        ("Unsupported parameter: 'top_p'", "top_p", None, None),
        ("This model's maximum context length is 4096 tokens, your max_tokens is 5000", None, None, None),
        ("the temperature outside", "messages[1].content", None, None),
        ("Bad request", None, None, None),
    ]  # fmt: skip

    assert [(*given, learned(*given)) for *given, _ in lessons] == lessons


@pytest.mark.parametrize(
    "body",
    [
        [{"error": {"message": "no seed", "status": "INVALID_ARGUMENT"}}],
        {"object": "error", "message": "no seed", "param": None, "code": 400},
        {"error": "no seed"},
        {"detail": "no seed"},
        {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": "temperature"}]},
        {"detail": [{"loc": ["body", "seed"], "msg": "temperature"}]},
    ],
)
def test_every_dialect_is_read(body: object) -> None:
    """The name is found, the parameter learned; what is echoed is not searched."""
    lesson: Any = lesson_of(failure_of(422, {}, json.dumps(body)), everything())

    assert lesson.parameter == "seed"


@given(st.text(), st.sampled_from([400, 403, 422, 429, 500]))
@example("5", 400)
@example('{"error": 5}', 400)
def test_any_error_body_is_survived(text: str, status: int) -> None:
    """And an error of ours can be made of it, of bounded length."""
    failure = failure_of(status, {}, text)
    lesson_of(failure, everything())

    assert len(str(failure.error("m"))) < 400


# --- Strict schemas ------------------------------------------------------------------------


def test_a_schema_is_made_strict_in_a_copy() -> None:
    """Closed, all required, no defaults, at every depth; the caller's is left as it was."""
    part: Any = {"type": "object", "properties": {"x": {"type": "string", "default": "a"}}}
    fields: Any = {
        "items": {"type": "array", "items": part}, "either": {"anyOf": [part, {"type": "null"}]},
        "named": {"$ref": "#/$defs/p"}, "any": True,
    }  # fmt: skip
    schema = {"type": "object", "properties": fields, "required": ["named"], "$defs": {"p": part}}
    before = copy.deepcopy(schema)

    strict: Any = strict_schema(schema)

    end = {"additionalProperties": False, "required": ["x"]}
    closed = {"type": "object", "properties": {"x": {"type": "string"}}, **end}
    assert schema == before
    assert strict["required"] == ["items", "either", "named", "any"]
    assert strict["additionalProperties"] is False
    made = strict["properties"]
    parts = [made["items"]["items"], made["either"]["anyOf"][0], strict["$defs"]["p"]]
    assert parts == [closed] * 3
    assert strict_schema(strict) == strict


def test_an_open_object_has_no_strict_form() -> None:
    """It is sent as it is and not as strict: closing it would change what it describes."""
    open_ones: list[dict[str, Any]] = [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"x": {}}, "additionalProperties": True},
    ]

    assert [strict_schema(schema) for schema in open_ones] == [None] * 3


@pytest.mark.parametrize(
    ("can", "role", "fields", "roles"),
    [
        # where the system role is refused and there is no user message to put instructions into
        (Capabilities(refused={"system": "no"}), "system", {}, ["user"]),
        # a schema stands in a message of its own where there are no instructions, ahead of the user's
        (Capabilities(structured_by="text"), "user", {"json_schema": SCHEMA}, ["system", "user"]),
        # no alternatives ask for the tokens alone: some servers take a `top_logprobs` of 0 for an error
        (Capabilities(), "user", {"top_logprobs": 0}, ["user"]),
    ],
)
def test_what_is_sent_of_a_single_message(
    can: Capabilities, role: Literal["system", "user"], fields: dict[str, Any], roles: list[str]
) -> None:
    """Nothing of it is lost, and nothing is sent that an endpoint refuses."""
    asked = CompletionRequest(messages=(Message(role=role, content="x"),), **fields)
    body = body_of("m", asked, Defaults(), can).body

    assert [message["role"] for message in body["messages"]] == roles
    assert body["messages"][-1]["content"] == "x"
    assert body.get("logprobs", False) is ("top_logprobs" in fields)
    assert "top_logprobs" not in body


# --- The record ----------------------------------------------------------------------------


def test_lessons_are_idempotent() -> None:
    """Two requests that were refused the same thing go one step down and not two."""
    start = Capabilities()
    lesson = Lesson("json_schema", "no")

    once = start.after(lesson)

    assert once.structured_by == "json_object"
    assert once.after(lesson) is once
    low = start.after(Lesson("n", "no", 4))
    assert low.after(Lesson("n", "no", 8)) is low
    assert low.after(Lesson("n", "no", 2)).limits == {"n": 2}


def test_records_are_bounded() -> None:
    """The oldest record is forgotten."""
    for number in range(_MOST + 10):
        endpoint_of("http://bound", str(number))

    assert len(_endpoints) <= _MOST


# --- Exceptions of frameworks' clients: whether a retry may help, and whether anyone was there


class ConnectError(Exception):
    """Named as in `httpx`."""


class APIConnectionError(Exception):
    """Named as in vendors' clients, which raise it for all that brings no reply."""


class APITimeoutError(APIConnectionError):
    """Named likewise."""


def raised(outer: Exception, *causes: BaseException) -> Exception:
    """An exception that is raised from others."""
    last: BaseException = outer
    for cause in causes:
        last.__cause__ = cause
        last = cause
    return outer


@pytest.mark.parametrize(
    ("error", "connected"),
    [
        (raised(APIConnectionError(), ConnectError(), ConnectionRefusedError(111, "x")), False),
        (raised(APIConnectionError(), OSError("all"), ExceptionGroup("two addresses", [
            ConnectionRefusedError(111, "x"), OSError(101, "y")])), False),
        (raised(APIConnectionError(), socket.gaierror(-2, "unknown")), False),
        (raised(APIConnectionError(), ssl.SSLCertVerificationError(1, "self-signed")), False),
        (raised(APIConnectionError(), ConnectError("no route")), False),
        (raised(APIConnectionError(), ConnectionResetError(104, "x")), True),
        (raised(APITimeoutError(), ConnectionRefusedError(111, "x")), True),
        (ConnectionRefusedError(111, "x"), False),
        (TimeoutError(), True),
    ],
)  # fmt: skip
def test_a_connection_that_was_never_made_is_known(error: Exception, connected: bool) -> None:
    """By the socket's exception behind the client's own; it says nothing of what was lost later."""
    failure = judge_error(error, "m")

    assert isinstance(failure, JudgeUnavailableError)
    assert failure.connected == connected


def test_a_circle_of_causes_ends() -> None:
    """Exceptions may refer to each other."""
    first, second = APIConnectionError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first

    assert isinstance(judge_error(first, "m"), JudgeUnavailableError)
    assert type(judge_error(second, "m")) is JudgeError
