"""The schema of a prompt's outputs, checked without a request. Pure.

A prompt declares it as `outputs:`, or as the JSON Schema of its response format. Of JSON Schema,
`type`, `properties`, `required`, `additionalProperties: false`, `items`, `enum` and `const` are
checked; other keywords are named, and not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.prompt_tests._settings import response_format
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import MetricResult, Result

METRIC = "output schema"
CHECK = "check"
"""What stands in place of a judge's name: nobody was asked."""

_CHECKED = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const",
}  # fmt: skip
_WORDS = {
    "$schema", "$id", "title", "description", "default", "examples", "sample", "name", "kind",
    "strict", "nullable", "deprecated", "$comment",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,), "null": (type(None),),
}  # fmt: skip
_ALIASES = {"float": "number", "int": "integer", "bool": "boolean", "list": "array",
            "str": "string", "dict": "object"}  # fmt: skip
_DEEPEST = 50


@dataclass(frozen=True)
class OutputSchema:
    """A schema that outputs have to fit."""

    schema: dict[str, JsonValue]
    not_checked: tuple[str, ...]
    """Keywords that are not checked, each once."""

    def problems(self, output: str) -> list[str]:
        """List where an output does not fit, at most ten places; empty if it fits."""
        try:
            value = loads(output.strip())
        except (ValueError, RecursionError):
            begins = output.strip()[:3]
            fenced = " (it stands in a code fence)" if begins == "```" else ""
            return [f"the output is not JSON{fenced}"]
        found = _problems(value, self.schema, "the output", 0)
        return [problem for problem, _ in zip(found, range(10), strict=False)]


def output_schema(prompt: PromptUnderTest) -> OutputSchema | None:
    """Find the schema of a prompt's outputs; None if it declares none, or only text."""
    declared = _declared(prompt.head.get("outputs"))
    form = response_format(prompt)
    described = form.get("json_schema") if isinstance(form, dict) else None
    if declared is None and isinstance(described, dict):
        inner = described.get("schema")
        declared = inner if isinstance(inner, dict) else None
    if declared is None and isinstance(form, dict):
        declared = {"type": "object"}
    if declared is None or (form is None and _is_text(declared)):
        return None
    return OutputSchema(declared, tuple(dict.fromkeys(_unknown(declared, 0))))


def _declared(given: JsonValue) -> dict[str, JsonValue] | None:
    """Read `outputs`: a JSON Schema, `{name: {type, …}}`, or `[{name, kind, …}]` of Prompty 2."""
    if isinstance(given, list):
        given = {
            str(item["name"]): item for item in given if isinstance(item, dict) and item.get("name")
        }
    if not isinstance(given, dict) or not given:
        return None
    if isinstance(given.get("properties"), dict) or isinstance(given.get("type"), str):
        return given
    properties: dict[str, dict[str, JsonValue]] = {
        name: part if isinstance(part, dict) else {"type": part} for name, part in given.items()
    }
    required: list[JsonValue] = [
        name for name, part in properties.items() if part.get("required") is not False
    ]
    parts: dict[str, JsonValue] = {name: _property(part) for name, part in properties.items()}
    return {"type": "object", "properties": parts, "required": required}


def _property(declared: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Read an output of Prompty: `kind` is its type, and `required` says if it has to be there."""
    found = {name: value for name, value in declared.items() if name != "required"}
    if isinstance(declared.get("required"), list):
        found["required"] = declared["required"]
    if "type" not in found and isinstance(found.get("kind"), str):
        found["type"] = found["kind"]
    return found


def _is_text(schema: Mapping[str, JsonValue]) -> bool:
    """Whether it declares a text, alone or as the only output, which is not JSON."""
    if schema.get("type") == "string":
        return True
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return False
    [only] = properties.values()
    return isinstance(only, dict) and only.get("type") == "string" and "enum" not in only


def _unknown(schema: JsonValue, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    yield from (name for name in schema if name not in _CHECKED | _WORDS)
    named = schema.get("properties")
    for part in named.values() if isinstance(named, dict) else ():
        yield from _unknown(part, depth + 1)
    yield from _unknown(schema.get("items"), depth + 1)


def _problems(value: JsonValue, schema: JsonValue, where: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    known = [_ALIASES.get(str(name), str(name)) for name in names]
    if schema.get("nullable") is True:
        known.append("null")
    usable = known and all(name in _TYPES for name in known)
    if usable and not any(_is_a(value, name) for name in known):
        yield f"{where} is {_kind(value)}, not {' or '.join(known)}"
        return
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_equal(value, item) for item in allowed):
        yield f"{where} is {_shown(value)}, which is not one of {_shown(allowed)}"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{where} is {_shown(value)}, not {_shown(schema['const'])}"
    if isinstance(value, dict):
        yield from _of_object(value, schema, where, depth)
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield from _problems(item, schema.get("items"), f"item {number} of {where}", depth + 1)


def _of_object(
    value: dict[str, JsonValue], schema: dict[str, JsonValue], where: str, depth: int
) -> Iterator[str]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{where} has no `{one_line(str(name), 60)}`"
    for name, item in value.items():
        if name in properties:
            inside = f"`{one_line(name, 60)}` of {where}"
            yield from _problems(item, properties[name], inside, depth + 1)
        elif schema.get("additionalProperties") is False:
            yield f"{where} has `{one_line(name, 60)}`, which is not declared"


def _is_a(value: JsonValue, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _equal(value: JsonValue, other: JsonValue) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _kind(value: JsonValue) -> str:
    order = ("null", "boolean", "string", "integer", "number", "array", "object")
    return next(name for name in order if _is_a(value, name))


def _shown(value: JsonValue) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 80)


def with_schema(result: Result, schema: OutputSchema | None) -> Result:
    """Add the check of the output to a result's metrics, in place of an earlier one."""
    if schema is None or result.error is not None:
        return result
    problems = schema.problems(result.output)
    found = MetricResult(
        metric=METRIC, judge=CHECK, outcome="err" if problems else "ok", content="; ".join(problems)
    )
    others = [metric for metric in result.metrics if metric.key != found.key]
    return result.model_copy(update={"metrics": (*others, found)})
