"""`.prompty` files: front matter and messages by role, with variables to insert.

Messages are split at role lines before values are inserted, so that values stay data: an output
under test with a line `user:` does not begin a new message. (Of PromptPex's 1,183 recorded test
inputs, 50 hold such a line.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pydantic import JsonValue

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics._yaml import YamlText, YamlTextError, read_yaml_text
from rag_eval_integrations.metrics.prompty._sandbox import Texts
from rag_eval_integrations.models.completion import Message

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.prompty._sandbox import CompiledTemplate


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
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != "---":
        return None, text, 1
    for number, line in enumerate(lines[start + 1 :], start=start + 1):
        if line.rstrip() == "---":
            # After blank lines, the YAML begins with the first `---`: its lines are the file's.
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]), number + 2
    raise FrontMatterError("the front matter begins with --- and has no closing ---", start + 1)


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
    """Return the inputs that a file's `inputs` declare, in any of three forms; empty for None.

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
    return {str(name): _declared_input(str(name), value) for name, value in declared.items()}


def _declared_input(name: str, value: object) -> Input:
    """Return the input that a declaration, or a sample value, stands for."""
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
    """Return the names of the tags that enclose an inserted variable, alone or in other text."""
    opened: dict[str, int] = {}
    enclosing = set()
    for tag in _TAG.finditer(template):
        closes, name = tag.groups()
        if not closes:
            opened[name] = tag.end()
        elif name in opened and "{{" in template[opened.pop(name) : tag.start()]:
            enclosing.add(name)
    return frozenset(enclosing)


def escape_section_tags(
    values: Mapping[str, object], names: frozenset[str]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return values in which the sections' own tags are escaped: `<` becomes `&lt;`.

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
    """Return a value with the prompt's tags escaped in every text of it."""
    if isinstance(value, str):
        return tags.sub("&lt;", value)
    if isinstance(value, Texts):
        return Texts(tags.sub("&lt;", text) for text in value)
    if isinstance(value, list):
        return [_escaped(item, tags) for item in value]
    if isinstance(value, dict):
        return {key: _escaped(item, tags) for key, item in value.items()}
    return value


Role = Literal["system", "user", "assistant"]

_ROLE = re.compile(
    r"^[ \t]*(?:#[ \t]*)?(system|user|assistant|developer)[ \t]*:[ \t]*$", re.IGNORECASE
)
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_PLACE = re.compile(r"\{\{[ \t]*+([^\W\d](?>(?:[^{}\s]|[^\S\n]++(?!\}\}))*))[^\S\n]*+\}\}")
"""A variable in text that is not valid Jinja; its name may have several words: `{{your name}}`."""
_ACCIDENT = re.compile(r"\{\{-?\s*+([^\W\d]\w*+(?>(?:[-+*/]\w+)+))\s*+-?\}\}")
"""A name with a hyphen or the like: valid Jinja, but a sum that nobody meant: `{{info-title}}`."""
_MOST_BYTES = 2_000_000
_MOST_MESSAGES = 1_000
_MOST_PARTS = 20_000
"""Compiling takes up to 50 µs per part, such as a name or a filter."""


@dataclass(frozen=True)
class MessageTemplate:
    """One message of a prompt file, not yet rendered."""

    role: Role
    text: str
    line: int
    """Line of the file at which the text begins, from 1."""
    compiled: CompiledTemplate | None
    """The template; None for a text that is not valid Jinja, in which `{{name}}` is replaced
    literally."""

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the message inserts or tests."""
        if self.compiled is None:
            return frozenset(_PLACE.findall(self.text))
        return self.compiled.variables


@dataclass(frozen=True)
class Prompty:
    """A prompt: messages to be rendered with values."""

    name: str
    messages: tuple[MessageTemplate, ...]
    inputs: Mapping[str, Input] = field(default_factory=dict)
    """Variables that the front matter declares, by name."""
    sample: Mapping[str, JsonValue] = field(default_factory=dict)
    """Sample values of variables, from the front matter."""
    tags: tuple[str, ...] = ()
    description: str = ""
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    """Every other key of the front matter, unchanged; `model` has no effect on a metric."""
    source: str = ""
    """The file's path, shown in error messages."""
    warnings: tuple[str, ...] = ()
    """Problems found while reading that did not prevent it."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The lines of the front matter's keys, from 1, shown in error messages."""

    @cached_property
    def text(self) -> str:
        """All messages as one text, without role lines and with variables not yet replaced."""
        return "\n\n".join(message.text for message in self.messages)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the messages insert or test."""
        return frozenset().union(*(message.variables for message in self.messages))

    def missing(self, values: Mapping[str, object]) -> tuple[str, ...]:
        """List the variables that have neither a value nor a default, in alphabetical order.

        A message that inserts a variable with `default`, or asks if it `is defined`, needs none.
        """
        needed = (m.compiled.needed if m.compiled else m.variables for m in self.messages)
        return tuple(
            name
            for name in sorted(frozenset().union(*needed))
            if name not in values and (name not in self.inputs or self.inputs[name].default is None)
        )

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values into each message; declared defaults stand where no value is given.

        Raises:
            ConfigurationError: a variable has no value, or an expression fails; names the message.
        """
        from rag_eval_integrations.metrics.prompty import _sandbox  # noqa: PLC0415 -- Jinja

        defaults = {name: declared.default for name, declared in self.inputs.items()}
        given = {n: value for n, value in defaults.items() if value is not None} | dict(values)
        rendered = []
        for message in self.messages:
            if message.compiled is None:
                content = _replaced_literally(message.text, given)
            else:
                try:
                    content = message.compiled.render(given)
                except _sandbox.PromptTemplateError as error:
                    place = "" if error.line is None else f"line {message.line + error.line - 1}: "
                    why = f"{place}the {message.role} message: {error}"
                    raise ConfigurationError("prompt", self.source, why) from error
            rendered.append(Message(role=message.role, content=content))
        return tuple(rendered)


def load_prompty(path: str | Path, *, strict: bool = True) -> Prompty:
    """Read a `.prompty` or Markdown file.

    Args:
        path: the file, in UTF-8.
        strict: refuse a message that is not valid Jinja; otherwise such a message is kept with a
            warning, and only `{{name}}` is replaced in it.

    Raises:
        ConfigurationError: the file is not a usable prompt; names the file and the line.
        OSError: the file cannot be read.
    """
    path = Path(path)
    content = _target.read_whole(path, "prompt", longest=_MOST_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigurationError("prompt", str(path), f"line {line}: not UTF-8") from error
    return parse_prompty(text, name=prompt_name(path), source=str(path), strict=strict)


def prompt_name(path: Path) -> str:
    """Name a prompt after its file, without `.metric.prompty`, `.prompt.yml` or another suffix."""
    name = path.name
    for suffix in (".metric.prompty", ".prompt.yml", ".prompt.yaml"):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem


def parse_prompty(text: str, *, name: str, source: str = "", strict: bool = True) -> Prompty:
    """Read a prompt from its text.

    Args:
        text: the content of a prompt file.
        name: the prompt's name.
        source: the text's origin, shown in error messages; by default `name`.
        strict: see `load_prompty`.

    Raises:
        ConfigurationError: the text is not a usable prompt; names the line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    source = source or name
    try:
        yaml, body, first = split_front_matter(text)
        read = read_yaml(yaml or "", 2)
        head = {} if read.value is None else read.value
        if not isinstance(head, dict):
            raise FrontMatterError("the front matter should be a mapping of keys to values", 2)
        inputs = inputs_of(head.get("inputs"), read.lines.get("inputs"))
    except FrontMatterError as error:
        place = "" if error.line is None else f"line {error.line}: "
        raise ConfigurationError("prompt", source, f"{place}{error}") from error
    warnings: list[str] = []
    messages = compiled_messages(
        split_roles(body, first), source, strict=strict, warnings=warnings, declared=inputs
    )
    if not messages:
        raise ConfigurationError("prompt", source, "holds no text after its front matter")
    sample, tags = head.get("sample"), head.get("tags")
    known = {"name", "description", "inputs", "sample", "tags"}
    return Prompty(
        name=name,
        messages=messages,
        inputs=inputs,
        sample=sample if isinstance(sample, dict) else {},
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        description=str(head.get("description") or ""),
        extra={str(key): value for key, value in head.items() if key not in known},
        source=source,
        warnings=tuple(warnings),
        lines=read.lines,
    )


def split_roles(body: str, first_line: int = 1) -> list[tuple[Role, str, int]]:
    """Split a template into messages at its role lines.

    Text before the first role line is a system message; it is joined with a `system:` message that
    follows. Messages without text are left out.

    Returns:
        For each message its role, its text and the line of the file at which the text begins.
    """
    parts: list[tuple[Role, list[str], int]] = [("system", [], first_line)]
    for number, line in enumerate(body.split("\n"), start=first_line):
        match = _ROLE.match(line)
        if match is None:
            parts[-1][1].append(line)
        else:
            parts.append((ROLES[match[1].lower()], [], number + 1))
    messages: list[tuple[Role, str, int]] = []
    for role, lines, line_number in parts:
        skipped = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
        text = "\n".join(lines[skipped:]).rstrip()
        if text and role == "system" and [message[0] for message in messages] == ["system"]:
            messages[0] = ("system", f"{messages[0][1]}\n\n{text}", messages[0][2])
        elif text:
            messages.append((role, text, line_number + skipped))
    return messages


def compiled_messages(
    parts: Iterable[tuple[Role, str, int]],
    source: str,
    *,
    strict: bool,
    warnings: list[str],
    declared: Collection[str] = (),
) -> tuple[MessageTemplate, ...]:
    """Compile messages, given as `split_roles` returns them.

    Text that is not valid Jinja is kept as it is, with a warning, unless `strict`. So is text with
    a name such as `{{info-title}}`, a difference to Jinja, unless its parts are `declared` inputs.

    Raises:
        ConfigurationError: a text is not valid Jinja (`strict`), or there are too many messages or
            expressions to compile; names the file and the line.
    """
    # Importing Jinja takes 0.1 s, which an app that only names a metric should not pay.
    from rag_eval_integrations.metrics.prompty import _sandbox  # noqa: PLC0415

    messages: list[MessageTemplate] = []
    size = 0
    names = set(declared)
    for role, text, line in parts:
        # A name that Jinja would calculate with, and no declared inputs.
        accidents = () if strict else _ACCIDENT.finditer(text)
        odd = next((each for each in accidents if set(re.split(r"[-+*/]", each[1])) - names), None)
        compiled = None
        try:
            if odd is not None:
                why = f"{odd[0]} is taken for a name, not for Jinja"
                raise _sandbox.PromptTemplateError(why, text[: odd.start()].count("\n") + 1)
            compiled = _sandbox.CompiledTemplate(text)
        except _sandbox.PromptTemplateError as error:
            place = f"line {line + (error.line or 1) - 1}"
            if strict:
                raise ConfigurationError("prompt", source, f"{place}: {error}") from error
            why = f"not valid Jinja ({error})" if odd is None else str(error)
            why += "; in this message only {{name}} is replaced"
            warnings.append(f"{source}: {place}: {why}")
        messages.append(MessageTemplate(role, text, line, compiled))
        size += 1 if compiled is None else compiled.size
        if size > _MOST_PARTS or len(messages) > _MOST_MESSAGES:
            why = f"more than {_MOST_MESSAGES:,} messages or {_MOST_PARTS:,} parts of templates"
            raise ConfigurationError("prompt", source, f"line {line}: {why}")
    return tuple(messages)


def _replaced_literally(text: str, values: Mapping[str, object]) -> str:
    """Return a text with `{{name}}` replaced by its value, and everything else unchanged."""

    def inserted(match: re.Match[str]) -> str:
        """Return the value of a place as text; an unknown place unchanged."""
        value = values.get(match[1], match[0])
        if isinstance(value, str):
            return value
        return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)

    return _PLACE.sub(inserted, text)
