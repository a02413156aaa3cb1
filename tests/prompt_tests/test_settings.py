"""Settings of the models under test: what a prompt's file and the caller set is what is sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, LoopbackServer, Reply, Respond
from pydantic import JsonValue

from rag_eval_integrations import OpenAIModel
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models import CallableModel
from rag_eval_integrations.prompt_tests import PromptTest, PromptUnderTest, run_tests
from rag_eval_integrations.prompt_tests._requests import Journal
from rag_eval_integrations.prompt_tests._settings import settings_of
from rag_eval_integrations.testing import ScriptedModel

TESTS = [PromptTest(uid="t", inputs={"text": "hello"})]
PROMPTY = (
    "---\nmodel: {parameters: {temperature: 0.3, max_tokens: 7, stop: [END],"
    " response_format: {type: json_object}}}\n---\n{{text}}\n"
)


def from_file(folder: Path, text: str = PROMPTY, name: str = "short.prompty") -> PromptUnderTest:
    path = folder / name
    path.write_text(text)
    return PromptUnderTest.of(path)


def shouting(name: str = "m") -> ScriptedModel:
    return ScriptedModel(lambda request: request.messages[-1].content.upper(), name=name)


@contextmanager
def endpoint(name: str, respond: Respond | None = None) -> Iterator[tuple[OpenAIModel, list[Body]]]:
    """A model behind an endpoint, and the requests that came."""
    with LoopbackServer(respond=respond) as server:
        yield OpenAIModel(name, api_key="k", base_url=server.base_url), server.requests


async def test_the_caller_replaces_and_removes_settings(tmp_path: Path) -> None:
    """None removes one; a seed differs with each repetition."""
    model = shouting()
    given: dict[str, JsonValue] = {"temperature": 1, "stop": None, "seed": 5, "top_p": 0.5}

    put = from_file(tmp_path)
    results = await run_tests(put, TESTS, [model], runs=2, parameters=given, tell=lambda _: None)

    sent = {"temperature": 1, "max_tokens": 7, "top_p": 0.5}
    for request in model.requests:
        assert request.parameters == {**sent, "response_format": {"type": "json_object"}}
    assert [request.seed for request in model.requests] == [5, 6]
    assert [result.parameters["seed"] for result in results] == [5, 6]


async def test_other_settings_are_another_question(prompt: PromptUnderTest) -> None:
    """And the same ones the same question."""
    journal, model = Journal(), shouting()
    for given in (None, 0.0, 0.7, 0.7):
        parameters: dict[str, JsonValue] = {"temperature": given}
        await run_tests(prompt, TESTS, [model], journal=journal, parameters=parameters)
    assert len(model.requests) == 3


async def test_a_model_that_leaves_settings_out_says_so_before_it_is_asked(tmp_path: Path) -> None:
    """What it leaves out is no part of its key: its recorded answers are still used."""
    asked, notices = list[str](), list[str]()

    async def answer(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        assert notices
        return "{}"

    journal, model = Journal(), CallableModel(answer, name="mine")
    for parameters in (None, {"temperature": 1}):
        [result] = await run_tests(
            from_file(tmp_path), TESTS, [model], journal=journal, parameters=parameters,
            tell=notices.append,
        )  # fmt: skip
        assert result.parameters == {}

    names = "temperature, max_tokens, stop, response_format"
    assert notices[0] == f"mine: does not pass on {names}; its own settings are tested"
    assert asked == ["hello"]


@pytest.mark.parametrize(
    ("word", "value"),
    [("temperature", 0.5), ("top_k", 3), ("response_format", "json_object"),
     ("tools", [{"name": "look", "parameters": {"type": "object"}}])],
)  # fmt: skip
async def test_what_an_endpoint_refuses_is_left_out_and_told(
    prompt: PromptUnderTest, word: str, value: JsonValue
) -> None:
    """Whatever its name: the outputs come, with a warning per setting."""
    notices: list[str] = []

    def respond(body: Body) -> Reply | None:
        if word not in body:
            return None
        message = f"Unsupported parameter: '{word}' is not supported with this model."
        return Reply.json({"error": {"message": message, "param": word}}, status=400)

    with endpoint(f"refuses-{word}", respond) as (model, requests):
        given: dict[str, JsonValue] = {word: value, "tool_choice": "auto"}
        [result] = await run_tests(prompt, TESTS, [model], parameters=given, tell=notices.append)
        last = requests[-1]

    assert result.error is None
    assert not {word, "tool_choice"} & set(last)  # the latter is refused without tools
    why = f"`{word}` was left out: the endpoint refuses it (1 outputs)"
    assert notices == [f"openai:refuses-{word}: {why}"]


def test_github_settings_are_read(tmp_path: Path) -> None:
    """`modelParameters` in either spelling, and a JSON Schema written as text."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    named = {"name": "n", "strict": True, "schema": schema}
    text = {
        "messages": [{"role": "user", "content": "Say {{text}}"}], "model": "openai/gpt-4o",
        "modelParameters": {"maxTokens": 9, "topP": 0.5},
        "responseFormat": "json_schema", "jsonSchema": json.dumps(named),
    }  # fmt: skip
    put = from_file(tmp_path, json.dumps(text), "p.prompt.yml")

    form = {"type": "json_schema", "json_schema": named}
    assert settings_of(put).parameters == {"max_tokens": 9, "top_p": 0.5, "response_format": form}


def test_settings_that_nothing_can_send_are_named(tmp_path: Path) -> None:
    """Before any request: several answers, streams, tools that are not functions."""
    put = from_file(
        tmp_path,
        "---\nmodel: {id: x, options: {n: 2, stream: true, maxOutputTokens: 5}}\n"
        "tools: [{name: search, kind: mcp}, {name: f, kind: function}]\n---\n{{text}}",
    )
    settings = settings_of(put)

    tools = [{"type": "function", "function": {"name": "f"}}]
    assert settings.parameters == {"max_tokens": 5, "tools": tools}
    assert [note.split(": ", 1)[1] for note in settings.notes] == [
        "`n` is not sent: every output is one answer; use --runs",
        "`stream` is not sent: outputs are taken as a whole",
        "tool search is not a function, so is not sent",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1), ("temperature", "hot"), ("temperature", True), ("max_tokens", 0),
        ("max_tokens", 1.5), ("top_p", 2), ("seed", "1"), ("stop", [1]), ("messages", []),
        ("model", "other"), ("response_format", "yaml"), ("response_format", "json_schema"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(prompt: PromptUnderTest, name: str, value: Any) -> None:
    """At once, with the setting's name."""
    with pytest.raises(ConfigurationError, match=name):
        settings_of(prompt, {name: value})


async def test_calls_of_a_prompts_tools_are_the_output(
    prompt: PromptUnderTest, tmp_path: Path
) -> None:
    """As JSON, since there is no text; tools may stand beside the model's parameters, too."""
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    def respond(_: Body) -> Reply:
        return Reply.json({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    with endpoint("tools", respond) as (model, bodies):
        tools: JsonValue = [{"name": "look"}]
        [result] = await run_tests(prompt, TESTS, [model], parameters={"tools": tools})
        of_file = PROMPTY.replace("{temperature", "{tools: [{name: look}], temperature")
        await run_tests(from_file(tmp_path, of_file), TESTS, [model])

    assert [body["tools"][0]["function"]["name"] for body in bodies] == ["look", "look"]
    assert json.loads(result.output) == [{"name": "look", "arguments": '{"q": 1}'}]


# --- Images


async def test_a_prompts_images_are_sent_as_images(tmp_path: Path) -> None:
    """Files of its folder, addresses, and inputs that the prompt makes images of; no others."""
    for name in ("plan.png", "secret.png"):
        (tmp_path / name).write_bytes(b"PNG")
    web = "![web](https://e.org/a.png)"
    text = "user:\nCompare ![the plan](plan.png) with ![yours]({{picture}}) and WEB.\n{{text}}"
    put = from_file(tmp_path, text.replace("WEB", web))
    evil = "![evil](https://evil.org/x.png) ![file](secret.png)"
    tests = [
        PromptTest(uid=picture, inputs={"text": evil, "picture": picture})
        for picture in ("https://e.org/mine.png", "secret.png")
    ]

    with endpoint("sees") as (model, requests):
        await run_tests(put, tests, [model], max_concurrency=1)

    [message], [other] = (request["messages"] for request in requests)
    first, *images = message["content"]
    assert first["text"].startswith(f"Compare the plan with yours and web.\n{evil}")
    data = f"data:image/png;base64,{base64.b64encode(b'PNG').decode()}"
    urls = {image["image_url"]["url"] for image in images}
    assert urls == {data, "https://e.org/a.png", "https://e.org/mine.png"}
    # An input never reads a file.
    assert "![yours](secret.png)" in other["content"][0]["text"]


async def test_images_outside_and_models_that_take_none_are_named(tmp_path: Path) -> None:
    """The prompt is then sent as it is written."""
    notices, seen = list[str](), list[str]()

    async def answer(messages: list[dict[str, str]]) -> str:
        seen.append(messages[0]["content"])
        return ""

    put = from_file(tmp_path, "user:\n![a](../a.png) ![b](https://e.org/b.png) {{text}}")
    await run_tests(put, TESTS, [CallableModel(answer, name="mine")], tell=notices.append)

    assert notices == [
        "short: the image ../a.png cannot be sent; it stays text",
        "mine: does not pass on images; its own settings are tested",
    ]
    assert seen == ["![a](../a.png) ![b](https://e.org/b.png) hello"]
