"""Every pattern of the library, and what hostile texts repeat to make it slow.

Patterns are found by walking the package, and texts grow out of what each pattern repeats: its own
matches, near-misses, white space, quotes and openers.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import rag_eval_integrations
from rag_eval_integrations.judges.suspicion import patterns

METHODS = ("match", "fullmatch", "search", "finditer", "sub", "subn", "findall", "split")


@cache
def sources() -> dict[str, str]:
    root = Path(rag_eval_integrations.__path__[0])
    return {
        ".".join(path.relative_to(root.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in root.rglob("*.py")
    }


def inside(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, tuple | list | frozenset | set) and depth < 3:
        for part in value:
            yield from inside(part, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        for part in value.values():
            yield from inside(part, depth + 1)


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield all modules by name but those of an extra that is not installed."""
    for info in pkgutil.walk_packages(rag_eval_integrations.__path__, "rag_eval_integrations."):
        with suppress(ImportError):
            yield info.name, importlib.import_module(info.name)


def of_modules() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Yield the module, the name and each pattern that modules hold."""
    for home, module in modules():
        for name, value in vars(module).items():
            if f"{name} = " in sources().get(home, "") or not isinstance(value, re.Pattern):
                for pattern in inside(value):
                    yield home, name, pattern


def of_calls() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Yield patterns written within calls, as in `re.sub("x", …)`."""
    for module, source in sources().items():
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                yield module, f"re.{node.func.attr}", re.compile(node.args[0].value)


def of_signs() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Yield the patterns of suspicion, which are compiled when a text needs them."""
    for written in patterns():
        for pattern in written.expressions():
            yield "judges.suspicion", "pattern", pattern


def all_patterns() -> dict[tuple[str, int], tuple[str, str, re.Pattern[str]]]:
    by_pattern: dict[tuple[str, int], tuple[str, str, re.Pattern[str]]] = {}
    for module, name, pattern in (*of_modules(), *of_calls(), *of_signs()):
        by_pattern.setdefault((pattern.pattern, pattern.flags), (module, name, pattern))
    return by_pattern


def used_by(module: str, name: str) -> frozenset[str]:
    """Find how a pattern is used: one that only matches reads from one place of a text."""
    if name.startswith("re."):
        return frozenset([name[3:]]) & set(METHODS) or frozenset(METHODS)
    call = re.compile(rf"(?<![\w]){re.escape(name)}\.({'|'.join(METHODS)})\(")
    importers = [
        source for other, source in sources().items() if other == module or f"    {name}," in source
    ]
    return frozenset(
        match[1] for source in importers for match in call.finditer(source)
    ) or frozenset(METHODS)


class Written:
    """Writes texts that a pattern matches, by its syntax."""

    def __init__(self, pattern: re.Pattern[str], chance: random.Random) -> None:
        self.tree = parser.parse(pattern.pattern, pattern.flags)
        self.chance = chance

    def text(self) -> str:
        return self._of(self.tree, {})

    def _of(self, tree: Any, groups: dict[int, str]) -> str:
        return "".join(self._part(kind, value, groups) for kind, value in tree)

    def _part(self, kind: Any, value: Any, groups: dict[int, str]) -> str:
        if kind is constants.LITERAL:
            return chr(value)
        if kind is constants.NOT_LITERAL:
            return "b" if chr(value) == "a" else "a"
        if kind is constants.ANY:
            return self.chance.choice("a -")
        if kind is constants.IN:
            return self._one_of(value)
        if kind is constants.BRANCH:
            return self._of(self.chance.choice(value[1]), groups)
        if kind is constants.SUBPATTERN:
            text = self._of(value[3], groups)
            groups[value[0] or 0] = text
            return text
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            least, most, repeated = value
            number = self.chance.choice([least, min(most, least + 1), min(most, least + 3)])
            return "".join(self._of(repeated, groups) for _ in range(number))
        if kind is constants.ATOMIC_GROUP:
            return self._of(value, groups)
        return groups.get(value, "") if kind is constants.GROUPREF else ""

    def _one_of(self, items: Any) -> str:
        excluded = items[0][0] is constants.NEGATE
        options = []
        for kind, value in items:
            if kind is constants.LITERAL:
                options.append(chr(value))
            elif kind is constants.RANGE:
                options.append(chr(self.chance.randint(value[0], min(value[1], value[0] + 20))))
            elif kind is constants.CATEGORY:
                options.append(self.chance.choice(CATEGORIES[str(value)]))
        if excluded:
            return next((character for character in "a -1\nxé" if character not in options), "z")
        return self.chance.choice(options)


CATEGORIES = {
    "CATEGORY_DIGIT": "1", "CATEGORY_NOT_DIGIT": "a", "CATEGORY_SPACE": " \n\t",
    "CATEGORY_NOT_SPACE": "a", "CATEGORY_WORD": "a", "CATEGORY_NOT_WORD": " -",
}  # fmt: skip
COMMON = (*"\n \ta1-*\"'<[{(\\`_", "a ", "1,")


def units(pattern: re.Pattern[str], chance: random.Random) -> list[tuple[str, str]]:
    """Return what a hostile text begins with, and what it then repeats."""
    written = [Written(pattern, chance).text() for _ in range(2)]
    near = {
        part for text in written for part in (text, text[:-1], text[: len(text) // 2], text[1:])
    }
    begun = ["", *(text[:cut] for text in written for cut in (len(text) // 2, len(text)))]
    return [(begin, unit) for unit in COMMON for begin in dict.fromkeys(begun)] + [
        ("", unit) for unit in sorted(near) if unit
    ]


def read(pattern: re.Pattern[str], methods: frozenset[str], text: str) -> None:
    if methods - {"match", "fullmatch"}:
        for _ in pattern.finditer(text):
            pass
    if methods & {"match", "fullmatch"}:
        pattern.match(text)
        pattern.fullmatch(text)
