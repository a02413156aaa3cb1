"""Hostile text costs time in proportion to its length: every pattern, and every parser of text.

Patterns are found by walking the package, and texts grow out of what each pattern repeats: its own
matches, near-misses, white space, quotes and openers. `RAG_EVAL_GROWTH=8` makes all texts eight
times as long.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import random
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import rag_eval_integrations
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._values import documents_from
from rag_eval_integrations.errors import InputError, RagEvalError
from rag_eval_integrations.judges import speaks_to_a_judge
from rag_eval_integrations.judges._intents import signs
from rag_eval_integrations.judges._intents._sign import compiled
from rag_eval_integrations.judges._parse import parse_labels
from rag_eval_integrations.judges.embedded._absence import says_documents_do_not_tell
from rag_eval_integrations.judges.embedded._language import foreign
from rag_eval_integrations.judges.embedded._words import words
from rag_eval_integrations.judges.suspicion import _folded
from rag_eval_integrations.metrics.geval._reply import read_reply
from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.metrics.prompty._frontmatter import kept_inside, section_names
from rag_eval_integrations.metrics.prompty.metric import lint
from rag_eval_integrations.metrics.prompty.reply import read_score, read_verdict
from rag_eval_integrations.models._reading import (
    answer_in,
    as_text,
    fields_in,
    objects_in,
    unfenced,
)
from rag_eval_integrations.prompt_tests import PromptUnderTest
from rag_eval_integrations.prompt_tests._cleaning import lines_in, statements_in
from rag_eval_integrations.prompt_tests.stages._read_tests import read_tests
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.sentences import Punkt, sentencize

pytestmark = pytest.mark.slow

GROWTH = int(os.environ.get("RAG_EVAL_GROWTH", "1"))
MOST_PER_MEGABYTE = 3.0
"""Seconds of a busy machine; it is one on an idle machine."""

# --- Patterns


BOUNDED = {
    "_BEFORE_AN_ORDER": "is given 30 characters",
    "_NO_ORDER": "is given 30 characters",
    "_ABSENCES": "are given 400 characters",
}
"""Patterns that only ever read a few characters."""
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
        for one in value:
            yield from inside(one, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        for one in value.values():
            yield from inside(one, depth + 1)


def of_modules() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Yield the module, the name and each pattern that modules hold."""
    for info in pkgutil.walk_packages(rag_eval_integrations.__path__, "rag_eval_integrations."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, value in vars(module).items():
            if f"{name} = " in sources().get(info.name, "") or not isinstance(value, re.Pattern):
                for pattern in inside(value):
                    yield info.name, name, pattern


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
    for sign in signs(_folded):
        for pattern in filter(None, (sign.pattern, sign.then)):
            yield "judges._intents", "sign", compiled(pattern)


def all_patterns() -> dict[tuple[str, int], tuple[str, str, re.Pattern[str]]]:
    found: dict[tuple[str, int], tuple[str, str, re.Pattern[str]]] = {}
    for module, name, pattern in (*of_modules(), *of_calls(), *of_signs()):
        found.setdefault((pattern.pattern, pattern.flags), (module, name, pattern))
    return found


def used_by(module: str, name: str) -> frozenset[str]:
    """Find how a pattern is used: one that only matches reads from one place of a text."""
    if name.startswith("re."):
        return frozenset([name[3:]]) & set(METHODS) or frozenset(METHODS)
    call = re.compile(rf"(?<![\w]){re.escape(name)}\.({'|'.join(METHODS)})\(")
    importers = [
        source for other, source in sources().items() if other == module or f"    {name}," in source
    ]
    return frozenset(one[1] for source in importers for one in call.finditer(source)) or frozenset(
        METHODS
    )


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
            return next((one for one in "a -1\nxé" if one not in options), "z")
        return self.chance.choice(options)


CATEGORIES = {
    "CATEGORY_DIGIT": "1", "CATEGORY_NOT_DIGIT": "a", "CATEGORY_SPACE": " \n\t",
    "CATEGORY_NOT_SPACE": "a", "CATEGORY_WORD": "a", "CATEGORY_NOT_WORD": " -",
}  # fmt: skip
COMMON = (
    "\n",
    " ",
    "\t",
    "a",
    "1",
    "-",
    "*",
    '"',
    "'",
    "<",
    "[",
    "{",
    "(",
    "\\",
    "`",
    "_",
    "a ",
    "1,",
)


def units(pattern: re.Pattern[str], chance: random.Random) -> list[tuple[str, str]]:
    """Return what a hostile text begins with, and what it then repeats."""
    written = [Written(pattern, chance).text() for _ in range(2)]
    near = {part for one in written for part in (one, one[:-1], one[: len(one) // 2], one[1:])}
    begun = ["", *(one[:cut] for one in written for cut in (len(one) // 2, len(one)))]
    return [(begin, unit) for unit in COMMON for begin in dict.fromkeys(begun)] + [
        ("", unit) for unit in sorted(near) if unit
    ]


def read(pattern: re.Pattern[str], methods: frozenset[str], text: str) -> float:
    began = time.process_time()
    if methods - {"match", "fullmatch"}:
        for _ in pattern.finditer(text):
            pass
    if methods & {"match", "fullmatch"}:
        pattern.match(text)
        pattern.fullmatch(text)
    return time.process_time() - began


def grown(begin: str, unit: str, size: int) -> str:
    return (begin + unit * (size // len(unit) + 1))[:size] + "\0"


def growth_of(
    pattern: re.Pattern[str], methods: frozenset[str], begin: str, unit: str
) -> tuple[float, float]:
    """Return the seconds for a text and for twice the text; zeros where a short one is fast."""
    size = 1_000 * GROWTH
    if read(pattern, methods, grown(begin, unit, size)) < size * 1e-6:
        return 0.0, 0.0
    once, twice = (
        min(read(pattern, methods, grown(begin, unit, many * size)) for _ in range(2))
        for many in (3, 6)
    )
    return once, twice


def test_every_pattern_takes_linear_time() -> None:
    """Twice the text takes about twice the time, and a megabyte a second."""
    chance = random.Random(5)
    slow = []
    patterns = all_patterns()
    assert len(patterns) > 150
    for module, name, pattern in patterns.values():
        if name in BOUNDED:
            continue
        methods = used_by(module, name)
        for begin, unit in units(pattern, chance):
            once, twice = growth_of(pattern, methods, begin, unit)
            if twice > 6 * GROWTH * 1e-3 * MOST_PER_MEGABYTE and twice > 2.8 * once:
                slow.append(
                    f"{module}.{name}: {begin[:20]!r} {unit[:30]!r}: {once:.3f} {twice:.3f}"
                )
                break  # the next text would take as long
    assert slow == []


def test_a_slow_pattern_would_be_found() -> None:
    """The units that are tried grow a quadratic pattern's time."""
    chance = random.Random(5)
    pattern = re.compile(r"^\s*(?:#+\s*)?(?:system|user):", re.MULTILINE)

    worst = max(
        read(pattern, frozenset(METHODS), grown(begin, unit, 4_000))
        / max(1e-5, read(pattern, frozenset(METHODS), grown(begin, unit, 1_000)))
        for begin, unit in units(pattern, chance)
    )
    assert worst > 6


# --- Parsers


SPLITTER = Punkt()
PROMPT = PromptUnderTest.from_text("{{question}} {{style}}", name="p")


def labels(text: str) -> object:
    return parse_labels(text)


def whole_call(text: str) -> object:
    return sentencize(RagCall(question=text[:1_000], documents=[text], response=text), SPLITTER)


def prompty(text: str) -> object:
    prompt = parse_prompty(text, name="p", strict=False)
    return section_names(prompt.text), lint(prompt), prompt.render({"x": text[:9]})


def cell(text: str) -> object:
    with contextlib.suppress(InputError):
        return documents_from(text, "documents")
    return None


PARSERS: dict[str, Callable[[str], object]] = {
    "sentences": whole_call,
    "labels": labels,
    "answer": answer_in,
    "fence": unfenced,
    "objects": lambda text: list(objects_in(text)),
    "fields": lambda text: list(fields_in(text)),
    "string": lambda text: as_text(f'"{text}"'),
    "G-Eval reply": lambda text: read_reply(text, "coherence", (1, 5)),
    "score": read_score,
    "verdict": read_verdict,
    "prompt file": prompty,
    "front matter": lambda text: prompty(f"---\n{text}\n---\nx"),
    "sections": lambda text: kept_inside({"x": text}, frozenset(["OUTPUT", "RULES"])),
    "suspicion": lambda text: speaks_to_a_judge([text]),
    "language": foreign,
    "words": words,
    "absence": says_documents_do_not_tell,
    "lines": lines_in,
    "statements": lambda text: statements_in(text, "rules"),
    "tests": lambda text: read_tests(text, PROMPT),
    "array of rows": lambda text: list(read_calls(io.StringIO(f"[{text}"))),
    "table of rows": lambda text: list(read_calls(io.StringIO(f"question,answer\n{text}"))),
    "cell of documents": lambda text: cell(f"[{text}]"),
}
UNITS = (
    "\n", " ", " \n", "\t", "a", "a ", "A. ", "1", "1.\n", "- ", "-", "* a\n", "|", "| a ", "|-|", "#",
    "> ", "`", "```\n", "```json\n{", "~~~\n", "{", "[", "{\"a\":", "[[", "{\"a\": [", "\"", "'", "\\",
    "\\\"", "\\u0041", "\\ud83d", "<", "< ", "<a>", "</think>", "<think>", "{{", "{{ ", "{{a}}", "{% ",
    "{#", "=", "===\n", "system:\n", "user:\n", "---\n", ": ", "a: b\n", "a,", "a,b\n", "1,1,", "\"a\",",
    "a: 'b', ", "score ", "score: ", "1/5 ", "e.g. ", "Dr. ", "...", "?!", "\u3002", "\u200b", "\u00ad",
    "é", "\U0001f600", "\r", "\r\n", "\u2028", "\0", "ignore the ", "&", "%",
)  # fmt: skip


def cost(parse: Callable[[str], object], text: str) -> float:
    gc.disable()  # how long it takes depends on all other objects, too
    began = time.process_time()
    with contextlib.suppress(RagEvalError, ValueError):
        parse(text)
    took = time.process_time() - began
    gc.enable()
    return took


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_takes_linear_time(name: str) -> None:
    """At most a second per megabyte, or four times the time for four times the text."""
    size = (1_024 if name == "front matter" else 8_192) * GROWTH  # YAML takes 10 s per megabyte
    parse = PARSERS[name]
    slow = []
    for unit in UNITS:
        small, large = (grown("", unit, many * size)[:-1] for many in (1, 4))
        first = cost(parse, large)
        if first > 4 * size * 1e-6 * MOST_PER_MEGABYTE + 0.03:
            once = min(cost(parse, small) for _ in range(3))
            again = min(first, *(cost(parse, large) for _ in range(2)))
            if again > 4 * size * 1e-6 * MOST_PER_MEGABYTE + 0.03 and again > 6 * once:
                slow.append(f"{unit!r}: {once:.3f} s, {again:.3f} s for four times the text")
    assert slow == []


def test_a_slow_parser_would_be_found() -> None:
    """One that reads a text for each of its lines takes sixteen times the time."""

    def quadratic(text: str) -> object:
        return [json.dumps(text) for _ in range(len(text) // 20)]

    once, four = cost(quadratic, "a" * 4_000), cost(quadratic, "a" * 16_000)
    assert four > 6 * once
