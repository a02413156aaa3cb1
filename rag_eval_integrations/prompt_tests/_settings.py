"""How models under test are asked, and what form their outputs should have: from the prompt's file.

A prompt's `model.parameters` (Prompty), `model.options` (Prompty 2) or `modelParameters` (GitHub
Models), its response format, its tools and its images are sent to models that take them.

It declares the schema of its outputs as `outputs:`, or as the JSON Schema of its response format.
Of JSON Schema, `type`, `properties`, `required`, `additionalProperties: false`, `items`, `enum` and
`const` are checked, without a request; other keywords are named, and not checked.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from rag_eval_integrations import _target
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.models.completion import CompletionRequest, Message, ModelBase
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import MetricResult, Result

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
    """By name; `seed` is the first repetition's."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Targets of the prompt's Markdown images, as written, with their URLs; the target `{{name}}`
    has no URL before a test is inserted."""
    notes: tuple[str, ...] = ()
    """Sentences about settings that no model gets."""

    def of_run(self, run: int) -> dict[str, JsonValue]:
        """Return the parameters of a repetition, from 0: each has its own seed.

        The seed is increased by the number of the repetition; without a seed none is added.
        """
        seed = self.parameters.get("seed")
        own: dict[str, JsonValue] = {"seed": seed + run} if isinstance(seed, int) and run else {}
        return {**self.parameters, **own}


def settings_of(prompt: PromptUnderTest, given: Mapping[str, JsonValue] | None = None) -> Settings:
    """Return the settings of a prompt's requests: its file's, and those given.

    Names are written as in OpenAI's chat API. Settings, tools and images that are not sent are left
    out, with a sentence each in the `notes` of what is returned.

    Args:
        prompt: the prompt under test.
        given: settings by name, which replace the prompt's; None as a value removes one.

    Raises:
        ConfigurationError: for a value that cannot be sent; names the setting.
    """
    notes: list[str] = []
    asked = _sendable({**_settings_of_file(prompt), **_with_api_names(given or {})}, prompt, notes)
    return Settings(asked, _image_urls(prompt, notes), tuple(notes))


def _settings_of_file(prompt: PromptUnderTest) -> dict[str, JsonValue]:
    """Return the settings in a prompt's file, under the names of OpenAI's chat API.

    Empty ones are left out. Later ones replace earlier: `modelParameters`, the model's
    `parameters`, its `options`. Tools of the head itself come before the model's.

    Raises:
        ConfigurationError: for a response format or a JSON Schema that cannot be read.
    """
    head = prompt.head
    model = head.get("model")
    blocks = [head.get("modelParameters"), head.get("model_parameters")]
    if isinstance(model, dict):
        blocks += [model.get("parameters"), model.get("options")]
    settings: dict[str, JsonValue] = {}
    for block in blocks:
        settings |= _with_api_names(block)
    settings |= _with_api_names(settings.pop("additional_properties", None))  # of Prompty 2
    form = head.get("responseFormat", head.get("response_format", settings.get("response_format")))
    if form == "json_schema" or "jsonSchema" in head:
        form = _schema_format(head.get("jsonSchema"), prompt.source)
    settings |= {
        "response_format": _response_format(form),
        "tools": head.get("tools") or settings.get("tools"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _with_api_names(block: JsonValue | Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return settings under the names of OpenAI's chat API: `maxTokens` is `max_tokens`.

    Empty for anything but a mapping.
    """
    if not isinstance(block, Mapping):
        return {}
    snake_case = {_CAPITAL.sub(r"_\1", str(name)).lower(): value for name, value in block.items()}
    return {_NAMES.get(name, name): value for name, value in snake_case.items()}


def _schema_format(given: JsonValue, source: str) -> JsonValue:
    """Return the response format of a GitHub prompt's `jsonSchema`, text or an object.

    A schema alone gets the name `output`.

    Raises:
        ConfigurationError: for anything but a JSON object.
    """
    try:
        schema = loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise ConfigurationError("jsonSchema", source, "should be a JSON Schema")
    described = schema if isinstance(schema.get("schema"), dict) else {"schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "output", **described}}


class _KnownSettings(BaseModel):
    """Settings whose values are known, so that a mistake is found before any request."""

    model_config = ConfigDict(strict=True)

    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: str | list[str] | None = None


def _sendable(
    given: Mapping[str, JsonValue], prompt: PromptUnderTest, notes: list[str]
) -> dict[str, JsonValue]:
    """Return the settings that can be sent, checked; add a note for each of the others.

    A setting that is None is dropped without a note.

    Raises:
        ConfigurationError: for a value that cannot be sent, and for `model` and `messages`.
    """
    sent: dict[str, JsonValue] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in _FIXED:
            raise ConfigurationError(name, value, "is not a setting of a request")
        if name in _NOT_SETTINGS:
            notes.append(f"{prompt.name}: `{name}` is not sent: {_NOT_SETTINGS[name]}")
            continue
        if name == "tools":
            value = _function_tools(value, prompt, notes)
        elif name == "response_format":
            value = _response_format(value)
        if value is not None:
            sent[name] = value
    try:
        _KnownSettings.model_validate(sent)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise ConfigurationError(field, sent[field], first["msg"].removeprefix("Input ")) from error
    return sent


def _response_format(given: JsonValue) -> JsonValue:
    """Return a response format in OpenAI's form; None for text.

    Raises:
        ConfigurationError: for an unknown format, or `json_schema` without a schema.
    """
    kind = given.get("type") if isinstance(given, dict) else given
    if given is None or kind == "text":
        return None
    if kind not in ("json_object", "json_schema"):
        why = "should be text, json_object or an object with a JSON Schema"
        raise ConfigurationError("response_format", given, why)
    if kind == "json_schema" and not isinstance(given, dict):
        raise ConfigurationError("response_format", given, "needs a JSON Schema beside it")
    return given if isinstance(given, dict) else {"type": kind}


def _function_tools(given: JsonValue, prompt: PromptUnderTest, notes: list[str]) -> JsonValue:
    """Return the tools that are functions, in OpenAI's form; None if there is none.

    Other tools, which no chat request can hold, are named in the notes.
    """
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


def _image_urls(prompt: PromptUnderTest, notes: list[str]) -> dict[str, str]:
    """Return the URL of each image in the prompt; add a note for one that cannot be sent.

    The URL is empty for an image whose target is an input. A file is a `data:` URL.
    """
    images: dict[str, str] = {}
    for _, target in _IMAGE.findall(prompt.text):
        url = target if _URL.match(target) else _data_url(prompt.folder, target)
        if _PLACE.fullmatch(target):
            images[target] = ""
        elif url is None:
            notes.append(f"{prompt.name}: the image {target} cannot be sent; it stays text")
        else:
            images[target] = url
    return images


def _data_url(folder: Path | None, name: str) -> str | None:
    """Return an image of the prompt's folder as a `data:` URL; None for anything else.

    None also for a file outside of the folder, of more than 5 MB, or without the suffix of a PNG,
    JPEG, GIF or WebP image.
    """
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

    Messages of other roles, and all messages if there is no image to move, are returned unchanged.
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
        _with_attachments(message, urls) if message.role == "user" else message
        for message in messages
    )


def _with_attachments(message: Message, urls: Mapping[str, str]) -> Message:
    """Return a message with its images attached; their descriptions stay in its text.

    An image is attached once, however often the text shows it.
    """
    content, images = message.content, []
    for target, url in urls.items():
        image = re.compile(rf"!\[([^\]\n]{{0,500}})\]\(\s*{re.escape(target)}\s*\)")
        content, count = image.subn(r"\1", content)
        images += [url] * bool(count)
    return message.model_copy(update={"content": content, "images": tuple(images)})


# --- What a model takes


def settings_not_sent(model: ModelBase, settings: Settings) -> tuple[str, ...]:
    """Return the names of the settings that a model does not send, without asking it.

    Images are named `images`. The seed is never named.
    """
    images = ("image",) if settings.images else ()
    own = {name: value for name, value in settings.parameters.items() if name != "seed"}
    request = CompletionRequest(
        messages=(Message(role="user", content="", images=images),), parameters=own
    )
    return model.not_sent(request)


# --- The schema of outputs


METRIC = "output schema"
CHECK = "check"
"""What stands in place of a judge's name: nobody was asked."""

_CHECKED = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
}
_WORDS = {
    "$schema",
    "$id",
    "title",
    "description",
    "default",
    "examples",
    "sample",
    "name",
    "kind",
    "strict",
    "nullable",
    "deprecated",
    "$comment",
}
_TYPES = ("null", "boolean", "string", "integer", "number", "array", "object")
_ALIASES = {
    "float": "number",
    "int": "integer",
    "bool": "boolean",
    "list": "array",
    "str": "string",
    "dict": "object",
}


@dataclass(frozen=True)
class OutputSchema:
    """A schema that outputs have to fit."""

    schema: dict[str, JsonValue]
    not_checked: tuple[str, ...]
    """Keywords that are not checked, each once."""

    def problems(self, output: str) -> list[str]:
        """List where an output does not fit, at most ten places; empty if it fits.

        An output that is not JSON is one problem.
        """
        try:
            value = loads(output.strip())
        except (ValueError, RecursionError):
            begins = output.strip()[:3]
            fenced = " (it stands in a code fence)" if begins == "```" else ""
            return [f"the output is not JSON{fenced}"]
        return list(islice(_schema_problems(value, self.schema, "the output"), 10))


def output_schema(prompt: PromptUnderTest) -> OutputSchema | None:
    """Return the schema of a prompt's outputs; None if it declares none, or only text.

    `outputs` in the prompt's file goes before the response format. A response format without a
    schema asks for an object.

    Raises:
        ConfigurationError: for a response format or a JSON Schema that cannot be read.
    """
    declared = _declared_schema(prompt.head.get("outputs"))
    form = _settings_of_file(prompt).get("response_format")
    if declared is None and form is not None:
        inner = _object_or_empty(_object_or_empty(form).get("json_schema")).get("schema")
        declared = _object_or_empty(inner) or {"type": "object"}
    if declared is None or (form is None and _declares_text(declared)):
        return None
    return OutputSchema(declared, tuple(dict.fromkeys(_unchecked_keywords(declared))))


def _declared_schema(given: JsonValue) -> dict[str, JsonValue] | None:
    """Return the JSON Schema that a file's `outputs` declare; None for anything else.

    They are a JSON Schema, `{name: {type, …}}`, or `[{name, kind, …}]` of Prompty 2.

    None also if no output is declared. Outputs in the last two forms are required
    unless they say `required: false`.
    """
    if isinstance(given, list):
        given = {
            str(item["name"]): item for item in given if isinstance(item, dict) and item.get("name")
        }
    if not isinstance(given, dict) or not given:
        return None
    if isinstance(given.get("properties"), dict) or isinstance(given.get("type"), str):
        return given
    parts: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for name, part in given.items():
        # Of Prompty: `kind` is the type, and `required` says if the output has to be there.
        declared: dict[str, JsonValue] = dict(part) if isinstance(part, dict) else {"type": part}
        if declared.get("required") is not False:
            required.append(name)
        if not isinstance(declared.get("required"), list):
            declared.pop("required", None)
        if isinstance(kind := declared.get("kind"), str):
            declared.setdefault("type", kind)
        parts[name] = declared
    return {"type": "object", "properties": parts, "required": required}


def _declares_text(schema: dict[str, JsonValue]) -> bool:
    """Return whether a schema declares a text, alone or as the only output."""
    if schema.get("type") == "string":
        return True
    parts = [_object_or_empty(part) for part in _object_or_empty(schema.get("properties")).values()]
    return len(parts) == 1 and parts[0].get("type") == "string" and "enum" not in parts[0]


def _unchecked_keywords(schema: JsonValue) -> Iterator[str]:
    """Yield the keywords of a schema that are not checked, at any depth; some more than once."""
    if isinstance(schema, dict):
        yield from (name for name in schema if name not in _CHECKED | _WORDS)
        for part in (*_object_or_empty(schema.get("properties")).values(), schema.get("items")):
            yield from _unchecked_keywords(part)


def _object_or_empty(value: JsonValue) -> dict[str, JsonValue]:
    """Return an object unchanged; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: JsonValue) -> list[JsonValue]:
    """Return a list unchanged; an empty one for anything else."""
    return value if isinstance(value, list) else []


def _schema_problems(value: JsonValue, schema: JsonValue, where: str) -> Iterator[str]:
    """Yield where a value does not fit a JSON Schema; anything fits what is not a schema.

    After a wrong type, nothing inside the value is checked. A type that is not one of JSON Schema
    is not checked.
    """
    if not isinstance(schema, dict):
        return
    given, allowed = schema.get("type"), schema.get("enum")
    types = [str(name) for name in _list_or_empty(given) or [given] if name is not None]
    known = {_ALIASES.get(name, name) for name in types}
    known |= {"null"} if known and schema.get("nullable") is True else set()
    kinds = _json_types(value)
    if known and known <= set(_TYPES) and not known & set(kinds):
        yield f"{where} is {kinds[0]}, not {' or '.join(sorted(known, key=_TYPES.index))}"
        return
    if isinstance(allowed, list) and not any(_equal_json(value, item) for item in allowed):
        yield f"{where} is {_excerpt(value)}, which is not one of {_excerpt(allowed)}"
    if "const" in schema and not _equal_json(value, schema["const"]):
        yield f"{where} is {_excerpt(value)}, not {_excerpt(schema['const'])}"
    if isinstance(value, dict):
        declared = _object_or_empty(schema.get("properties"))
        for name in map(str, _list_or_empty(schema.get("required"))):
            if name not in value:
                yield f"{where} has no `{one_line(name, 60)}`"
        for name, item in value.items():
            inside = f"`{one_line(name, 60)}`"
            if name in declared:
                yield from _schema_problems(item, declared[name], f"{inside} of {where}")
            elif schema.get("additionalProperties") is False:
                yield f"{where} has {inside}, which is not declared"
    for number, item in enumerate(_list_or_empty(value), start=1):
        yield from _schema_problems(item, schema.get("items"), f"item {number} of {where}")


def _json_types(value: JsonValue) -> list[str]:
    """Return the JSON types that a value has, the narrowest first.

    A number without a fraction is an integer; true and false are not numbers.
    """
    if isinstance(value, bool):
        return ["boolean"]
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return ["integer", "number"] if whole else ["number"]
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return [kinds[type(value)]]


def _equal_json(value: JsonValue, other: JsonValue) -> bool:
    """Return whether JSON values are equal; true is not 1, at any depth."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_equal_json, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_equal_json(value[n], other[n]) for n in value)
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _excerpt(value: JsonValue) -> str:
    """Return a value as JSON on one line, cut at 80 characters."""
    return one_line(json.dumps(value, ensure_ascii=False), 80)


def with_schema(result: Result, schema: OutputSchema | None) -> Result:
    """Return a result with the check of its output by a schema among its metrics.

    Without a schema, and for a failed output, the result is returned unchanged.
    """
    if schema is None or result.error is not None:
        return result
    problems = schema.problems(result.output)
    check = MetricResult(
        metric=METRIC, judge=CHECK, outcome="err" if problems else "ok", content="; ".join(problems)
    )
    others = [metric for metric in result.metrics if metric.key != check.key]
    return result.model_copy(update={"metrics": (*others, check)})
