"""The JSON Schema of a line of EVALS.jsonl, made from the records; ships as evals.schema.json.

    python -m rag_eval_integrations.records._evals_schema

writes the file anew after a change of the records; a test holds it equal to them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_eval_integrations.records.score import EVALS_SCHEMA, Evaluation

PATH = Path(__file__).with_name("evals.schema.json")


def evals_schema() -> dict[str, Any]:
    """Describe a line: what `Evaluation` reads, changed where the line differs from its fields."""
    schema = _without_prose(Evaluation.model_json_schema())
    kinds, fields = schema["$defs"], schema.pop("properties")
    names = list(fields)
    # What the scores share stands before them.
    before = {name: fields[name] for name in names[: names.index("scores")]}
    warnings = {"type": "array", "items": {"type": "string"}}
    shared = {"by": {"$ref": "#/$defs/By"}, "warnings": warnings}
    schema["properties"] = {"schema": {"const": EVALS_SCHEMA}} | before | shared | fields
    schema["required"].insert(0, "schema")
    for name in ("Labels", "SentenceSupport"):  # a reply may have more fields, a line has not
        kinds[name]["additionalProperties"] = False
    kinds["Sentence"]["minItems"] = 4
    score = kinds["Score"]
    del score["properties"]["name"]  # the key in `scores`
    score["required"].remove("name")
    score["properties"]["passed"] = {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    for name in shared:
        del score["properties"][name]["default"]  # the row's
    score["allOf"] = [_only_if("scored", "value"), _only_if("unscored", "unscored")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of EVALS.jsonl",
        "description": "docs/evals.md describes the fields. A field that is missing has its "
        "default; `by` and `warnings` of the row hold for every score.",
        **schema,
    }


def _only_if(status: str, name: str) -> dict[str, Any]:
    return {
        "if": {"properties": {"status": {"const": status}}},
        "then": {"required": [name], "properties": {name: {"not": {"type": "null"}}}},
        "else": {"properties": {name: {"type": "null"}}},
    }


def _without_prose(schema: Any) -> Any:
    """Drop titles and descriptions, which repeat names and docstrings."""
    if isinstance(schema, list):
        return [_without_prose(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_prose(part)
        for name, part in schema.items()
        if not (name in ("title", "description") and isinstance(part, str))
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(evals_schema(), indent=1) + "\n", encoding="ascii")
