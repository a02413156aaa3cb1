"""The one reader of YAML, for files that may come from anybody.

A short text can take minutes to load, and a scalar such as `!!bool maybe` fails inside the library
with whatever its code happens to raise. Here every text is bounded before it is read, holds JSON's
types only, and fails with its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MOST_CHARACTERS = 200_000


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

    Raises:
        YamlTextError: the text is not YAML; is too long, too deep, or has too many values or
            aliases; repeats a key; or holds a value that JSON does not have.
    """
    import yaml  # noqa: PLC0415  # 20 ms, and only where a file is read

    from rag_eval_integrations.metrics._yaml_loader import Loader  # noqa: PLC0415  # imports yaml

    if len(text) > _MOST_CHARACTERS:
        raise YamlTextError(f"more than {_MOST_CHARACTERS:,} characters of YAML", 1)
    loader = None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = error.problem or error.context or "broken"
        raise YamlTextError(f"not YAML: {why}", 1 if mark is None else mark.line + 1) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        why = f"the character {error.character:#x} is not allowed"
        raise YamlTextError(f"not YAML: {why}", line) from error
    except (yaml.YAMLError, RecursionError, ArithmeticError, LookupError, ValueError) as error:
        line = 1 if loader is None else loader.line + 1
        raise YamlTextError(f"not YAML: {error}", line) from error
    keys = node.value if isinstance(node, yaml.MappingNode) else []
    return YamlText(value, {str(key.value): key.start_mark.line + 1 for key, _ in keys})
