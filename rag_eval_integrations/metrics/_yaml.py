"""The one reader of YAML, for files that may come from anybody.

A short text can take minutes to load, and a scalar such as `!!bool maybe` fails inside the library
with whatever its code happens to raise. Here every text is bounded before it is read, holds JSON's
types only, and fails with its line.

PyYAML has two parsers. The one in C, which its wheels contain, takes less than a second per
megabyte; the one in Python takes up to ten, and so reads less. They differ about a few odd texts,
and in the words of errors. A short text is therefore judged by the parser in Python wherever both
may differ, so that it gives the same result on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MOST_CHARACTERS = 5_000_000
_MOST_CHARACTERS_WITHOUT_C, _MOST_VALUES_WITHOUT_C = 200_000, 20_000
_SHORT = 10_000  # characters; the parser in Python takes a tenth of a second at most
# The parsers differ about tabs, tags, byte order marks, unusual line breaks, directives, and
# comments that follow "|" directly.
_ODD = re.compile(
    "[\t\x85\u2028\u2029\ufeff]|^%|(?:^|[\\s,?:{\\[-])!|[|>][-+0-9]{0,2}#", re.MULTILINE
)
# JSON writes a character beyond U+FFFF as two escapes, which the parser in C refuses.
_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*+)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


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
    """Read a text; dates stay as they are written.

    A text may have 5 million characters; 200,000 characters and 20,000 values where PyYAML was
    built without its parser in C.

    Raises:
        YamlTextError: the text is not YAML; is too long, too deep, or has too many values or
            aliases; repeats a key; or holds a value that JSON does not have.
    """
    import yaml  # noqa: PLC0415  # 20 ms, and only where a file is read

    return _read(text, in_c=bool(yaml.__with_libyaml__))


def _read(text: str, *, in_c: bool) -> YamlText:
    import yaml  # noqa: PLC0415

    most = _MOST_CHARACTERS if in_c else _MOST_CHARACTERS_WITHOUT_C
    if len(text) > most:
        raise YamlTextError(f"more than {most:,} characters of YAML", 1)
    if broken := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, broken.start()) + 1
        raise YamlTextError(f"not YAML: the character {ord(broken[0]):#x} is not allowed", line)
    if not in_c or (len(text) <= _SHORT and _ODD.search(text)):
        return _built(text, yaml.SafeLoader(text), _MOST_VALUES_WITHOUT_C)
    try:
        plain, restored = _with_stand_ins(text)
        return _built(text, yaml.CSafeLoader(plain), _MOST_CHARACTERS * 2, restored)
    except YamlTextError:
        if len(text) > _SHORT:
            raise
    return _built(text, yaml.SafeLoader(text), _MOST_VALUES_WITHOUT_C)


def _built(
    text: str, parser: Any, most_values: int, restored: Callable[[Any], str] | None = None
) -> YamlText:
    import yaml  # noqa: PLC0415

    from rag_eval_integrations.metrics._yaml_loader import Builder  # noqa: PLC0415  # imports yaml

    try:
        value, lines = Builder(parser, most_values, restored).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = error.problem or error.context or "broken"
        raise YamlTextError(f"not YAML: {why}", 1 if mark is None else mark.line + 1) from error
    except (yaml.YAMLError, ArithmeticError, LookupError, ValueError) as error:
        # "\UFFFFFFFF" fails inside the parser in Python, which knows its line.
        raise YamlTextError(f"not YAML: {error}", getattr(parser, "line", 0) + 1) from error
    return YamlText(value, {key: line + 1 for key, line in lines.items()})


def _with_stand_ins(text: str) -> tuple[str, Callable[[Any], str] | None]:
    """Put private characters in the place of pairs of escapes, since they are the same anywhere.

    Returns:
        The text, and the function that gives the true text of a scalar: the character where the
        escapes have a meaning, and the escapes themselves elsewhere. None if there is no pair.
    """
    if not _PAIR.search(text):
        return text, None
    sign = next((chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text), None)
    if sign is None:
        return text, None
    stand_in = re.compile(f"{sign}(....)(....){sign}")

    def restored(event: Any) -> str:
        if event.style == '"':
            return stand_in.sub(lambda pair: _character(pair[1], pair[2]), event.value)
        return stand_in.sub(r"\\u\1\\u\2", event.value)

    return _PAIR.sub(rf"\g<1>{sign}\2\3{sign}", text), restored


def _character(high: str, low: str) -> str:
    return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
