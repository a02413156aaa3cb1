"""The builder behind `read_yaml_text`: JSON's types, bounds, and errors that know their place.

Values are built while PyYAML's parser gives events, without nodes in between, so that a bound holds
before more is read, and a value of two characters takes about a microsecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

from yaml import SafeLoader, ScalarNode
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

_MOST_ALIASES = 20
_MOST_REPEATED_VALUES = 20_000
"""A value counts as often as aliases repeat it: a kilobyte of aliases of aliases would become
gigabytes."""
_MOST_REPEATED = 800_000  # characters
_DEEPEST = 64
"""PyYAML's own parser reads in a time that grows with the square of the depth: 53 s for 20,000
unclosed brackets."""
_LONGEST_LITERAL = 100
"""Limit on a number, which may be hundreds of digits, or 1:1:1:…, which counts in sixties."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": SafeConstructor.construct_yaml_null,
    "bool": SafeConstructor.construct_yaml_bool,
    "int": SafeConstructor.construct_yaml_int,
    "float": SafeConstructor.construct_yaml_float,
    "timestamp": SafeConstructor.construct_yaml_timestamp,
}
_TYPES = frozenset([*_SCALARS, "str", "seq", "map", "merge"])
# Without timestamps; otherwise `name: 2024-01-31` would not be a text.
_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in known if tag != _TAG + "timestamp"]
    for first, known in SafeLoader.yaml_implicit_resolvers.items()
}

Lines: TypeAlias = "dict[str, int]"


class Parser(Protocol):
    """A parser of PyYAML, in C or in Python."""

    def get_event(self) -> Any:
        """Return the next event."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    value: list[Any] | dict[Any, Any]
    lines: Lines | None
    """Lines of the keys by their text; None for a list."""
    mark: Any
    anchor: str | None
    counted: tuple[int, int]
    """Values and characters that were read before it."""
    key: Any
    """The key that waits for its value, or `_NOTHING`."""
    merged: list[dict[Any, Any]] | None = None
    merged_lines: Lines | None = None


@dataclass(slots=True)
class _Anchored:
    value: Any
    text: str | None
    """A scalar as it is written; None for a list or mapping."""
    values: int
    characters: int


_NOTHING: Any = object()
_MERGE: Any = object()  # the key `<<`


class Builder:
    """Builds the value of one document.

    Args:
        parser: gives the events.
        most_values: limit on the number of values.
        restored: gives the text of a scalar by its event, which may hold stand-ins.
    """

    def __init__(
        self, parser: Parser, most_values: int, restored: Callable[[Any], str] | None
    ) -> None:
        self._parser, self._most_values, self._restored = parser, most_values, restored
        self._constructor = SafeConstructor()
        self._plain: dict[str, Any] = {}  # values of plain scalars by their text
        self._anchors: dict[str, _Anchored | None] = {}  # None while it is being read
        self._kept: dict[int, tuple[Any, Lines]] = {}  # mappings that may be merged, and lines
        self._open: list[_Open] = []
        self._root: tuple[Any, Lines] = (None, {})
        self._values = self._characters = self._aliases = 0
        self._repeated_values = self._repeated = 0

    def document(self) -> tuple[Any, dict[str, int]]:
        """Read the text; return its value, and the lines of the outermost mapping's keys, from 0.

        Raises:
            yaml.YAMLError: the text is not YAML of one document, or exceeds a bound.
        """
        documents = 0
        while True:
            event = self._parser.get_event()
            kind = type(event)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._begin(event, kind is MappingStartEvent)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end()
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > 1:
                    _refuse("but found another document", event.start_mark)
            elif kind is StreamEndEvent:
                return self._root
            else:
                assert kind is DocumentEndEvent or kind is StreamStartEvent

    # --- Scalars

    def _scalar(self, event: Any) -> None:
        text, tag, mark = event.value, event.tag, event.start_mark
        if self._restored is not None:
            text = self._restored(event)
        self._count(1, len(text), mark)
        if tag is None or tag == "!":
            if event.implicit[0]:
                value = self._plain.get(text, _NOTHING)
                if value is _NOTHING:
                    value = self._plain[text] = self._of(_resolved(text), text, mark)
            else:
                value = text if text.isascii() else _whole(text, mark)
        else:
            value = self._of(tag, text, mark)
        if event.anchor is not None:
            self._name(event.anchor, mark, _Anchored(value, text, 1, len(text)))
        self._add(value, text, None, mark)

    def _of(self, tag: str, text: str, mark: Any) -> Any:
        """Return the value of a scalar with a tag."""
        short = _type(tag, mark)
        if short == "str":
            return _whole(text, mark)
        if len(text) > _LONGEST_LITERAL:
            _refuse(f"a literal of more than {_LONGEST_LITERAL} characters", mark)
        if short == "merge":
            return _MERGE
        if short in ("seq", "map"):
            node = "sequence" if short == "seq" else "mapping"
            _refuse(f"expected a {node} node, but found scalar", mark)
        try:
            value = _SCALARS[short](self._constructor, ScalarNode(tag, text))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{text[:40]!r} is not of the type {short}"
            raise ConstructorError(None, None, why, mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            _refuse("not a finite number", mark)
        return text if short == "timestamp" else value

    # --- Lists, mappings and aliases

    def _begin(self, event: Any, is_mapping: bool) -> None:
        mark = event.start_mark
        if len(self._open) == _DEEPEST:
            _refuse(f"nested more than {_DEEPEST} levels deep", mark)
        if event.anchor is not None:
            self._name(event.anchor, mark, None)
        if event.tag is not None and event.tag != "!":
            self._check(event.tag, is_mapping, mark)
        before = self._values, self._characters
        self._count(1, 0, mark)
        value: Any = {} if is_mapping else []
        lines: Lines | None = {} if is_mapping else None
        self._open.append(_Open(value, lines, mark, event.anchor, before, _NOTHING))

    def _check(self, tag: str, is_mapping: bool, mark: Any) -> None:
        short, node = _type(tag, mark), "mapping" if is_mapping else "sequence"
        if short == "merge":
            _refuse_merge(mark)
        if short != ("map" if is_mapping else "seq"):
            expected = {"seq": "sequence", "map": "mapping"}.get(short, "scalar")
            _refuse(f"expected a {expected} node, but found {node}", mark)

    def _end(self) -> None:
        done = self._open.pop()
        value, lines = done.value, done.lines
        if done.merged is not None and isinstance(value, dict):
            own = dict(value)
            value.clear()
            for merged in (*done.merged, own):
                value.update(merged)
            lines = {**(done.merged_lines or {}), **(lines or {})}
        if done.anchor is not None:
            values, characters = done.counted
            self._anchors[done.anchor] = _Anchored(
                value, None, self._values - values, self._characters - characters
            )
        if lines is not None and (done.anchor is not None or len(self._open) <= 2):
            self._kept[id(value)] = value, lines
        self._add(value, None, lines, done.mark)

    def _alias(self, event: Any) -> None:
        mark, name = event.start_mark, event.anchor
        self._aliases += 1
        if self._aliases > _MOST_ALIASES:
            _refuse(f"more than {_MOST_ALIASES} aliases", mark)
        if name not in self._anchors:
            _refuse(f"found undefined alias {name!r}", mark)
        known = self._anchors[name]
        if known is None:
            _refuse("a value that holds itself", mark)
        self._repeated_values += known.values
        if self._repeated_values > _MOST_REPEATED_VALUES:
            _refuse(f"aliases repeat more than {_MOST_REPEATED_VALUES:,} values", mark)
        self._repeated += known.characters
        if self._repeated > _MOST_REPEATED:
            _refuse("aliases repeat too much text", mark)
        self._count(known.values, known.characters, mark)
        self._add(known.value, known.text, None, mark)

    def _name(self, anchor: str, mark: Any, known: _Anchored | None) -> None:
        if anchor in self._anchors:
            _refuse("second occurrence", mark)
        self._anchors[anchor] = known

    def _count(self, values: int, characters: int, mark: Any) -> None:
        self._values += values
        self._characters += characters
        if self._values > self._most_values:
            _refuse(f"more than {self._most_values:,} values", mark)

    # --- Where values belong

    def _add(self, value: Any, text: str | None, lines: Lines | None, mark: Any) -> None:
        """Add a value to the list or mapping that is being read, as a key or as a value."""
        if not self._open:
            if value is _MERGE:
                _refuse_merge(mark)
            self._root = value, lines or {}
            return
        top = self._open[-1]
        known = top.lines
        if known is None:
            if value is _MERGE:
                _refuse_merge(mark)
            top.value.append(value)  # type: ignore[union-attr]
        elif top.key is _NOTHING:
            if text is None:
                _refuse("found unhashable key", mark)
            if value is not _MERGE:
                if text in known:  # in JSON, 1 and "1" are the same key
                    _refuse(f"the key {text[:40]!r} for the second time", mark)
                known[text] = mark.line
            top.key = value
        elif top.key is _MERGE:
            self._merge(top, value, mark)
            top.key = _NOTHING
        else:
            if value is _MERGE:
                _refuse_merge(mark)
            top.value[top.key] = value
            top.key = _NOTHING

    def _merge(self, into: _Open, value: Any, mark: Any) -> None:
        parts = value[::-1] if isinstance(value, list) else [value]
        if into.merged is None:
            into.merged, into.merged_lines = [], {}
        for part in parts:
            if not isinstance(part, dict):
                or_list = "" if isinstance(value, list) else " or list of mappings"
                found = "sequence" if isinstance(part, list) else "scalar"
                _refuse(f"expected a mapping{or_list} for merging, but found {found}", mark)
            into.merged.append(part)
            if id(part) in self._kept and into.merged_lines is not None:
                into.merged_lines.update(self._kept[id(part)][1])


def _resolved(text: str) -> str:
    """Return the tag of a plain scalar."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return _TAG + "str"


def _type(tag: str, mark: Any) -> str:
    short = tag.removeprefix(_TAG)
    if short == "value":
        return "str"  # a plain `=`
    if short not in _TYPES:
        _refuse(f"the tag {tag[:60]!r} cannot be used", mark)
    return short


def _whole(text: str, mark: Any) -> str:
    """Join the halves of characters: JSON writes one beyond U+FFFF as two escapes."""
    if _SURROGATE.search(text):
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise ConstructorError(None, None, "half of a character", mark) from error
    return text


def _refuse_merge(mark: Any) -> NoReturn:
    _refuse(f"could not determine a constructor for the tag {_TAG + 'merge'!r}", mark)


def _refuse(why: str, mark: Any) -> NoReturn:
    raise ComposerError(None, None, why, mark)
