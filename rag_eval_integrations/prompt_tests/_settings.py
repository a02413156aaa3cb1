"""Settings of the models under test: from the prompt's file, and from the caller.

A prompt's `model.parameters` (Prompty), `model.options` (Prompty 2) or `modelParameters` (GitHub
Models), its response format, its tools and its images are sent to models that take them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.models.completion import CompletionRequest, Message, ModelBase
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest

# --- Parameters, in the words of OpenAI's chat API


_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
}
_NOT_SETTINGS = {
    "n": "every output is one answer; use --runs",
    "stream": "outputs are taken as a whole",
    "stream_options": "outputs are taken as a whole",
    "logprobs": "nothing reads them",
    "top_logprobs": "nothing reads them",
}
_FIXED = ("messages", "model")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True)
class Settings:
    """The settings of a prompt's requests."""

    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    """By name; `seed` is that of the first repetition."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Targets of the prompt's Markdown images, as written, with their URLs; the target `{{name}}`
    has no URL before a test is inserted."""
    notes: tuple[str, ...] = ()
    """Sentences about settings that no model gets."""

    def of_run(self, run: int) -> dict[str, JsonValue]:
        """Return the parameters of a repetition, from 0: each has its own seed."""
        seed = self.parameters.get("seed")
        own: dict[str, JsonValue] = {"seed": seed + run} if isinstance(seed, int) and run else {}
        return {**self.parameters, **own}


def settings_of(prompt: PromptUnderTest, given: Mapping[str, JsonValue] | None = None) -> Settings:
    """Collect the settings of a prompt's requests.

    Args:
        prompt: the prompt under test.
        given: settings by name, which replace the prompt's; None as a value removes one.

    Raises:
        ConfigurationError: for a value that cannot be sent; names the setting.
    """
    notes: list[str] = []
    asked = _checked({**_of_head(prompt), **_named(given or {})}, prompt, notes)
    return Settings(asked, _images(prompt, notes), tuple(notes))


def response_format(prompt: PromptUnderTest) -> JsonValue:
    """Return the response format of a prompt's file in OpenAI's form; None for text.

    Raises:
        ConfigurationError: for another format, or a JSON Schema that is not one.
    """
    return _format(_of_head(prompt).get("response_format"))


def _of_head(prompt: PromptUnderTest) -> dict[str, JsonValue]:
    head = prompt.head
    model = head.get("model")
    settings: dict[str, JsonValue] = {}
    blocks = [head.get("modelParameters"), head.get("model_parameters")]
    if isinstance(model, dict):
        blocks += [model.get("parameters"), model.get("options")]
    for block in blocks:
        if isinstance(block, dict):
            settings |= _named(block)
    more = settings.pop("additional_properties", None)  # of Prompty 2
    settings |= _named(more) if isinstance(more, dict) else {}
    form = head.get("responseFormat", head.get("response_format"))
    if form is not None:
        settings["response_format"] = form
    if settings.get("response_format") == "json_schema" or "jsonSchema" in head:
        settings["response_format"] = _schema_format(head.get("jsonSchema"), prompt)
    if head.get("tools"):
        settings["tools"] = head["tools"]
    return {name: value for name, value in settings.items() if value is not None}


def _named(block: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Write names as OpenAI's chat API does: `maxTokens` is `max_tokens`."""
    written = {_CAPITAL.sub(r"_\1", str(name)).lower(): value for name, value in block.items()}
    return {_NAMES.get(name, name): value for name, value in written.items()}


def _schema_format(given: JsonValue, prompt: PromptUnderTest) -> JsonValue:
    """Return the response format of a GitHub prompt's `jsonSchema`, text or an object."""
    schema: Any = given
    if isinstance(schema, str):
        try:
            schema = loads(schema)
        except (ValueError, RecursionError):
            schema = None
    if not isinstance(schema, dict):
        raise ConfigurationError("jsonSchema", prompt.source, "should be a JSON Schema")
    described = schema if isinstance(schema.get("schema"), dict) else {"schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "output", **described}}


class _Known(BaseModel):
    """Settings whose values are known, so that a mistake is found before any request."""

    model_config = ConfigDict(strict=True)

    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: str | list[str] | None = None


def _checked(
    given: Mapping[str, JsonValue], prompt: PromptUnderTest, notes: list[str]
) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {}
    for name, value in given.items():
        if name in _FIXED and value is not None:
            raise ConfigurationError(name, value, "is not a setting of a request")
        if name in _NOT_SETTINGS and value is not None:
            notes.append(f"{prompt.name}: `{name}` is not sent: {_NOT_SETTINGS[name]}")
            continue
        if name == "tools":
            value = _tools(value, prompt, notes)
        elif name == "response_format":
            value = _format(value)
        if value is not None:
            kept[name] = value
    try:
        _Known.model_validate(kept)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise ConfigurationError(field, kept[field], first["msg"].removeprefix("Input ")) from error
    return kept


def _format(given: JsonValue) -> JsonValue:
    kind = given.get("type") if isinstance(given, dict) else given
    if given is None:
        return None
    if kind not in ("text", "json_object", "json_schema"):
        why = "should be text, json_object or an object with a JSON Schema"
        raise ConfigurationError("response_format", given, why)
    if kind == "text":
        return None
    if kind == "json_schema" and not isinstance(given, dict):
        raise ConfigurationError("response_format", given, "needs a JSON Schema beside it")
    return given if isinstance(given, dict) else {"type": kind}


def _tools(given: JsonValue, prompt: PromptUnderTest, notes: list[str]) -> JsonValue:
    """Return functions in OpenAI's form; name the others, which no chat request can hold."""
    functions: list[JsonValue] = []
    tools = given if isinstance(given, list) else [] if given is None else [given]
    for number, tool in enumerate(tools, start=1):
        tool = tool if isinstance(tool, dict) else {}
        if tool.get("type") == "function" and isinstance(tool.get("function"), dict):
            functions.append(tool)
        elif tool.get("kind", tool.get("type", "function")) == "function" and tool.get("name"):
            names = [name for name in ("name", "description", "parameters") if name in tool]
            functions.append({"type": "function", "function": {name: tool[name] for name in names}})
        else:
            name = tool.get("name") or number
            notes.append(f"{prompt.name}: tool {name} is not a function, so is not sent")
    return functions or None


# --- Images of the prompt's own text


_IMAGE = re.compile(r"!\[([^\]\n]{0,500})\]\(\s*([^()\s]{1,500}|\{\{[^{}\n]{1,100}\}\})\s*\)")
_PLACE = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
_MOST_BYTES = 5_000_000
_URL = re.compile(r"https?://|data:image/", re.IGNORECASE)


def _images(prompt: PromptUnderTest, notes: list[str]) -> dict[str, str]:
    images: dict[str, str] = {}
    for _, target in _IMAGE.findall(prompt.text):
        url = target if _URL.match(target) else _file_url(prompt.folder, target)
        if _PLACE.fullmatch(target):
            images[target] = ""
        elif url is None:
            notes.append(f"{prompt.name}: the image {target} cannot be sent; it stays text")
        else:
            images[target] = url
    return images


def _file_url(folder: Path | None, name: str) -> str | None:
    """Read an image of the prompt's folder as a `data:` URL; None for anything else."""
    kind = _KINDS.get(Path(name).suffix.lower())
    if folder is None or kind is None:
        return None
    path = (folder / name).resolve()
    inside = path.is_relative_to(folder.resolve()) and path.is_file()
    if not inside or path.stat().st_size > _MOST_BYTES:
        return None
    content = base64.b64encode(_target.read_whole(path, "image")).decode("ascii")
    return f"data:image/{kind};base64,{content}"


def with_images(
    messages: Iterable[Message], settings: Settings, values: Mapping[str, object]
) -> tuple[Message, ...]:
    """Move the prompt's images out of the text of the user's messages.

    Only the prompt's own images are moved: an image that a test's input names stays text, unless
    the prompt itself makes an image of this input. A file is never read for it.
    """
    urls: dict[str, str] = {}
    for target, url in settings.images.items():
        place = _PLACE.fullmatch(target)
        if place is None:
            urls[target] = url
        elif _URL.match(value := str(values.get(place[1], ""))):
            urls[value] = value
    if not urls:
        return tuple(messages)
    return tuple(
        _moved(message, urls) if message.role == "user" else message for message in messages
    )


def _moved(message: Message, urls: Mapping[str, str]) -> Message:
    content, images = message.content, []
    for target, url in urls.items():
        written = re.compile(rf"!\[([^\]\n]{{0,500}})\]\(\s*{re.escape(target)}\s*\)")
        content, count = written.subn(r"\1", content)
        images += [url] * bool(count)
    return message.model_copy(update={"content": content, "images": tuple(images)})


# --- What a model takes


def not_taken(model: ModelBase, settings: Settings) -> tuple[str, ...]:
    """Name the settings that a model leaves out, before it is asked anything."""
    images = ("image",) if settings.images else ()
    own = {name: value for name, value in settings.parameters.items() if name != "seed"}
    request = CompletionRequest(
        messages=(Message(role="user", content="", images=images),), parameters=own
    )
    return model.not_sent(request)
