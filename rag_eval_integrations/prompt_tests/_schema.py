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
_TYPES = ("null", "boolean", "string", "integer", "number", "array", "object")
_ALIASES = {"float": "number", "int": "integer", "bool": "boolean", "list": "array",
            "str": "string", "dict": "object"}  # fmt: skip


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
        problems = _problems(value, self.schema, "the output")
        return [problem for problem, _ in zip(problems, range(10), strict=False)]


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
    return OutputSchema(declared, tuple(dict.fromkeys(_unknown(declared))))


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


def _is_text(schema: Mapping[str, JsonValue]) -> bool:
    """Whether it declares a text, alone or as the only output, which is not JSON."""
    if schema.get("type") == "string":
        return True
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return False
    [only] = properties.values()
    return isinstance(only, dict) and only.get("type") == "string" and "enum" not in only


def _unknown(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (name for name in schema if name not in _CHECKED | _WORDS)
        named = schema.get("properties")
        for part in [*(named.values() if isinstance(named, dict) else ()), schema.get("items")]:
            yield from _unknown(part)


def _problems(value: JsonValue, schema: JsonValue, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    given = schema.get("type")
    types = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    known = [_ALIASES.get(str(name), str(name)) for name in types]
    known += ["null"] * (schema.get("nullable") is True)
    kinds = _kinds(value)
    if known and set(known) <= set(_TYPES) and not set(known) & set(kinds):
        yield f"{where} is {kinds[0]}, not {' or '.join(known)}"
        return
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_equal(value, item) for item in allowed):
        yield f"{where} is {_shown(value)}, which is not one of {_shown(allowed)}"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{where} is {_shown(value)}, not {_shown(schema['const'])}"
    properties, required = schema.get("properties"), schema.get("required")
    declared = properties if isinstance(properties, dict) else {}
    if isinstance(value, dict):
        for name in required if isinstance(required, list) else ():
            if name not in value:
                yield f"{where} has no `{one_line(str(name), 60)}`"
        for name, item in value.items():
            inside = f"`{one_line(name, 60)}`"
            if name in declared:
                yield from _problems(item, declared[name], f"{inside} of {where}")
            elif schema.get("additionalProperties") is False:
                yield f"{where} has {inside}, which is not declared"
    for number, item in enumerate(value if isinstance(value, list) else (), start=1):
        yield from _problems(item, schema.get("items"), f"item {number} of {where}")


def _kinds(value: JsonValue) -> list[str]:
    """Name the types that a value has, the narrowest first."""
    if isinstance(value, bool):
        return ["boolean"]
    if isinstance(value, int | float):
        return ["integer", "number"] if float(value).is_integer() else ["number"]
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return [kinds[type(value)]]


def _equal(value: JsonValue, other: JsonValue) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _shown(value: JsonValue) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 80)


def with_schema(result: Result, schema: OutputSchema | None) -> Result:
    """Add the check of the output to a result's metrics, in place of an earlier declared."""
    if schema is None or result.error is not None:
        return result
    problems = schema.problems(result.output)
    check = MetricResult(
        metric=METRIC, judge=CHECK, outcome="err" if problems else "ok", content="; ".join(problems)
    )
    others = [metric for metric in result.metrics if metric.key != check.key]
    return result.model_copy(update={"metrics": (*others, check)})
