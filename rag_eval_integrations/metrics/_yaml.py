"""The one reader of YAML, for files that may come from anybody: JSON's types, bounds, lines.

PyYAML's safe loader, in C where PyYAML was built with libyaml, reads a text twice: as events, which
are looked at, and as nodes, of which values are made. Dates stay text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

_MOST_CHARACTERS = 1_000_000
_MOST_ALIASES = 20
_DEEPEST = 64
"""PyYAML reads recursively."""
_LONGEST_LITERAL = 100
"""Limit on a number, which may be hundreds of digits, or 1:1:1:…, which counts in sixties."""
_TAG = "tag:yaml.org,2002:"
_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
"""JSON writes a character beyond U+FFFF as two escapes, which libyaml refuses."""


class YamlTextError(ValueError):
    """A text that is not usable YAML; `line` says where."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line
        """Line of the text, from 1."""


@dataclass(frozen=True, slots=True)
class YamlText:
    """A text that was read."""

    value: Any
    """Its value, of JSON's types; the keys of mappings may be numbers, booleans or None, too."""
    lines: dict[str, int]
    """The line of each key of the outermost mapping, from 1."""


def read_yaml_text(text: str) -> YamlText:
    """Read a text of at most a million characters; dates stay as they are written.

    Raises:
        YamlTextError: the text is not YAML; is too long, too deep, or has too many aliases; repeats
            a key; or holds a value that JSON does not have.
    """
    if len(text) > _MOST_CHARACTERS:
        raise YamlTextError(f"more than {_MOST_CHARACTERS:,} characters of YAML", 1)
    try:
        return _read(text)
    except YamlTextError:
        joined = _PAIR.sub(_character, text)
        if joined == text:
            raise
    return _read(joined)


def _read(text: str) -> YamlText:
    """Parse YAML that is not too deep; return it with the line of each top-level key."""
    try:
        _check_events(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        place = error.start if isinstance(error, UnicodeEncodeError) else error.position
        why = "not YAML: a character that is not allowed"
        raise YamlTextError(why, text.count("\n", 0, place) + 1) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = error.problem or error.context or "broken"
        line = 1 if mark is None else min(mark.line, text.count("\n")) + 1  # the end is behind it
        raise YamlTextError(f"not YAML: {why}", line) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlTextError(f"not YAML: {error}", 1) from error
    return YamlText(value, {} if node is None else _lines(node))


def _check_events(text: str) -> None:
    """Refuse a text that is too deep, or has too many aliases, before it is built."""
    anchors: list[str | None] = []  # of the values that are open
    aliases = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, CollectionEndEvent):
            anchors.pop()
        elif isinstance(event, CollectionStartEvent):
            anchors.append(event.anchor)
        why = ""
        if isinstance(event, AliasEvent):
            aliases += 1
            why = "a value that holds itself" if event.anchor in anchors else ""
        if len(anchors) > _DEEPEST:
            why = f"nested more than {_DEEPEST} levels deep"
        elif aliases > _MOST_ALIASES:
            why = f"more than {_MOST_ALIASES} aliases"
        if why:
            mark: Any = event.start_mark
            raise ComposerError(None, None, why, mark)


def _lines(node: yaml.Node) -> dict[str, int]:
    """Return the line of each key of the top mapping."""
    keys = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: key.start_mark.line + 1 for key, _ in keys}


def _character(pair: re.Match[str]) -> str:
    """Write a surrogate pair as the escape of its character."""
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08X}"


if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


_JSON_TAGS = {_TAG + name for name in _TYPES}


def _of_null_or_merge(resolvers: list[Any]) -> list[Any]:
    """Keep the resolvers of null and of merge keys."""
    return [known for known in resolvers if known[0].removeprefix(_TAG) in ("null", "merge")]


class _Loader(_Base):
    """PyYAML's safe loader with JSON's types only."""

    yaml_implicit_resolvers: ClassVar = {  # type: ignore[misc]  # a class variable there, too
        first: _of_null_or_merge(every)
        for first, every in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    # The others are those of YAML 1.2, below: `yes` and `10:30` are texts, `010` is ten.
    yaml_constructors: ClassVar = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in _JSON_TAGS
    }

    def construct_scalar(self, node: Any) -> Any:
        """Construct a text; refuse a number that is too long."""
        text = super().construct_scalar(node)
        if node.tag == f"{_TAG}int":  # PyYAML reads one that begins with 0 as octal
            text = re.sub(r"^([-+]?)0+(?=\d)", r"\1", text)
        if len(text) > _LONGEST_LITERAL and node.tag in (f"{_TAG}int", f"{_TAG}float"):
            why = f"a literal of more than {_LONGEST_LITERAL} characters"
            raise ConstructorError(None, None, why, node.start_mark)
        text.encode()  # half of a character cannot
        return text

    def flatten_mapping(self, node: Any) -> None:
        """Refuse a mapping with a repeated key, then apply its merge keys."""
        keys: set[str] = set()
        for key, _ in node.value:
            is_merge = key.tag == f"{_TAG}merge"
            if isinstance(key, yaml.ScalarNode) and not is_merge:
                if key.value in keys:  # in JSON, 1 and "1" are the same key
                    why = f"the key {key.value[:40]!r} for the second time"
                    raise ConstructorError(None, None, why, key.start_mark)
                keys.add(key.value)
        super().flatten_mapping(node)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Construct a value; refuse one that is not of its tag's type, and NaN and infinity."""
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, LookupError, ValueError) as error:
            kind = str(node.tag).removeprefix(_TAG)
            why = f"{str(node.value)[:40]!r} is not of the type {kind}"
            raise ConstructorError(None, None, why, node.start_mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise ConstructorError(None, None, "not a finite number", node.start_mark)
        return value


_FLOAT = r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
for _name, _words, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?\d+", "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
):
    _pattern = re.compile(rf"(?:{_words})\Z", re.ASCII)
    _Loader.add_implicit_resolver(_TAG + _name, _pattern, list(_first))
