"""The loader behind `read_yaml_text`: JSON's types, bounds, and errors that know their place."""

from __future__ import annotations

import math
import re
from typing import Any

from yaml import SafeLoader
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent, CollectionStartEvent
from yaml.nodes import ScalarNode

_MOST_VALUES = 20_000
"""Reading takes up to 40 µs per value. A value counts as often as aliases repeat it: a kilobyte of
aliases of aliases would become gigabytes."""
_MOST_ALIASES = 20
_MOST_REPEATED = 800_000
_DEEPEST = 64
"""Reading time grows with the square of the depth: 53 s for 20,000 unclosed brackets."""
_LONGEST_LITERAL = 100
"""Limit on a number, which may be hundreds of digits, or 1:1:1:…, which counts in sixties."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"


_TYPES = frozenset(["null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge"])


class Loader(SafeLoader):
    """PyYAML's safe loader, with bounds that are checked while nodes are composed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.aliases = self.composed = 0
        self.sizes: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        is_alias = self.check_event(AliasEvent)
        deeper = self.check_event(CollectionStartEvent)
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        self.aliases += is_alias
        self.depth += deeper
        self.composed += 1
        if self.depth > _DEEPEST:
            raise ComposerError(None, None, f"nested more than {_DEEPEST} levels deep", mark)
        if self.aliases > _MOST_ALIASES:
            raise ComposerError(None, None, f"more than {_MOST_ALIASES} aliases", mark)
        node = super().compose_node(parent, index)
        self.depth -= deeper
        if is_alias and id(node) not in self.sizes:
            raise ComposerError(None, None, "a value that holds itself", mark)
        values, characters = self._counted(node)
        if max(values, self.composed) > _MOST_VALUES:
            raise ComposerError(None, None, f"more than {_MOST_VALUES:,} values", mark)
        if characters > _MOST_REPEATED:
            raise ComposerError(None, None, "aliases repeat too much text", mark)
        return node

    def _counted(self, node: Any) -> tuple[int, int]:
        """Count the values and characters of a node, those of aliases as often as they are."""
        if id(node) not in self.sizes:
            inner = node.value if isinstance(node.value, list) else []
            parts = [p for one in inner for p in (one if isinstance(one, tuple) else (one,))]
            sizes = [self.sizes[id(part)] for part in parts]
            own = len(node.value) if isinstance(node, ScalarNode) else 0
            self.sizes[id(node)] = (
                1 + sum(values for values, _ in sizes),
                own + sum(characters for _, characters in sizes),
            )
        return self.sizes[id(node)]

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if node.tag == _TAG + "value":
            node.tag = _TAG + "str"  # a plain `=`
        short = node.tag.removeprefix(_TAG)
        if short not in _TYPES:
            why = f"the tag {node.tag[:60]!r} cannot be used"
            raise ConstructorError(None, None, why, node.start_mark)
        if short != "str" and isinstance(node.value, str) and len(node.value) > _LONGEST_LITERAL:
            why = f"a literal of more than {_LONGEST_LITERAL} characters"
            raise ConstructorError(None, None, why, node.start_mark)
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{node.value[:40]!r} is not of the type {short}"
            raise ConstructorError(None, None, why, node.start_mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise ConstructorError(None, None, "not a finite number", node.start_mark)
        if isinstance(value, str) and _SURROGATE.search(value):
            # JSON writes a character beyond U+FFFF as two escapes; together they are one character.
            units = value.encode("utf-16", "surrogatepass")
            try:
                value = units.decode("utf-16")
            except UnicodeDecodeError as error:
                why = "half of a character"
                raise ConstructorError(None, None, why, node.start_mark) from error
        return value

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, ScalarNode) and key.tag != _TAG + "merge":
                if key.value in seen:  # in JSON, 1 and "1" are the same key
                    why = f"the key {key.value[:40]!r} for the second time"
                    raise ComposerError(None, None, why, key.start_mark)
                seen.add(key.value)
        return node

    def as_written(self, node: Any) -> Any:
        self.construct_yaml_timestamp(node)  # refuses what is not one
        return node.value


Loader.add_constructor(_TAG + "timestamp", Loader.as_written)
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != _TAG + "timestamp"]
    for first, known in SafeLoader.yaml_implicit_resolvers.items()
}  # without it, `name: 2024-01-31` would not be a text
