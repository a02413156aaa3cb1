"""The front matter of a prompt file, and the sections of its text. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from rag_eval_integrations.metrics._yaml import YamlText, YamlTextError, read_yaml_text
from rag_eval_integrations.metrics.prompty._sandbox import Texts


class FrontMatterError(ValueError):
    """Front matter that cannot be used; `line` says where."""

    def __init__(self, why: str, line: int | None) -> None:
        super().__init__(why)
        self.line = line
        """Line of the file, from 1; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Input:
    """A declared variable of a prompt."""

    name: str
    type: str = "string"
    description: str = ""
    default: JsonValue = None
    """Value to use when none is given; None for no default."""


def split_front_matter(text: str) -> tuple[str | None, str, int]:
    """Split a file into its YAML (None without front matter), its body, and the body's first line.

    Raises:
        FrontMatterError: the front matter is not closed.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None, text, 1
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]), number + 2
    raise FrontMatterError("the front matter begins with --- and has no closing ---", 1)


def read_yaml(text: str, first_line: int = 1) -> YamlText:
    """Read YAML as JSON values, with the lines of its outermost keys; dates stay text.

    Args:
        text: the YAML.
        first_line: line of the file at which the text begins, from 1.

    Raises:
        FrontMatterError: the text is not YAML, or exceeds the bounds of `read_yaml_text`.
    """
    try:
        read = read_yaml_text(text)
    except YamlTextError as error:
        raise FrontMatterError(str(error), error.line + first_line - 1) from error
    lines = {key: line + first_line - 1 for key, line in read.lines.items()}
    return YamlText(json.loads(json.dumps(read.value)), lines)  # keys become text


def inputs_of(declared: object, line: int | None = None) -> dict[str, Input]:
    """Read `inputs` in any of its three forms; without `inputs` there are none.

    `line` is the line of the file that errors name.

    The forms are `{name: {type, description, default}}` (`kind` also stands for `type`),
    `{name: default}` and `[{name, kind, …}]`.

    Raises:
        FrontMatterError: `inputs` has another form, or an input has no name.
    """
    if declared is None:
        return {}
    if isinstance(declared, list):
        named: dict[str, object] = {}
        for item in declared:
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise FrontMatterError("`inputs` has an item without a `name`", line)
            named[item["name"]] = {key: value for key, value in item.items() if key != "name"}
        declared = named
    if not isinstance(declared, dict):
        raise FrontMatterError("`inputs` should map names to their types", line)
    return {str(name): _input(str(name), value) for name, value in declared.items()}


def _input(name: str, value: object) -> Input:
    """Read an input's declaration, or its sample value."""
    if not isinstance(value, Mapping):
        return Input(name, _TYPES.get(type(value), "string"), default=cast(JsonValue, value))
    kind = value.get("type", value.get("kind"))
    description = str(value.get("description") or "")
    kind = kind if isinstance(kind, str) else "string"
    return Input(name, kind, description, value.get("default"))


_TYPES = {bool: "boolean", int: "number", float: "number", list: "array"}


# --- Sections of a metric file: `<OUTPUT>{{output}}</OUTPUT>`, which no inserted value can close


_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,100})[^<>]{0,500}>")


def section_names(template: str) -> frozenset[str]:
    """Find the names of the tags that enclose an inserted variable, alone or within other text."""
    opened: dict[str, int] = {}
    enclosing = set()
    for tag in _TAG.finditer(template):
        closes, name = tag.groups()
        if not closes:
            opened[name] = tag.end()
        elif name in opened and "{{" in template[opened.pop(name) : tag.start()]:
            enclosing.add(name)
    return frozenset(enclosing)


def kept_inside(
    values: Mapping[str, object], names: frozenset[str]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Escape the sections' own tags inside values: their `<` becomes `&lt;`.

    Otherwise an output that holds `</OUTPUT>` and then praises itself would be read as text outside
    of its section.

    Args:
        values: the values to insert, by variable.
        names: names of the tags of the template's sections.

    Returns:
        The values, and the names of the variables whose values were changed.
    """
    if not names:
        return dict(values), ()
    tags = re.compile(
        rf"<(?=\s*+(?:/\s*+)?(?:{'|'.join(map(re.escape, sorted(names)))})\b)", re.IGNORECASE
    )
    escaped = {name: _escaped(value, tags) for name, value in values.items()}
    return escaped, tuple(name for name, value in values.items() if escaped[name] != value)


def _escaped(value: object, tags: re.Pattern[str]) -> object:
    """Escape the tags of the prompt in every text of a value."""
    if isinstance(value, str):
        return tags.sub("&lt;", value)
    if isinstance(value, Texts):
        return Texts(tags.sub("&lt;", text) for text in value)
    if isinstance(value, list):
        return [_escaped(item, tags) for item in value]
    if isinstance(value, dict):
        return {key: _escaped(item, tags) for key, item in value.items()}
    return value
