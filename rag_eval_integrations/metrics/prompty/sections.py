"""Sections of a metric file: `<OUTPUT>{{output}}</OUTPUT>`. What is inserted cannot end one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rag_eval_integrations.metrics.prompty.sandbox import Texts

_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,100})[^<>]{0,500}>")


def section_names(template: str) -> frozenset[str]:
    """Find the tags that enclose an inserted variable, alone or amid words."""
    opened: dict[str, int] = {}
    found = set()
    for tag in _TAG.finditer(template):
        closes, name = tag.groups()
        if not closes:
            opened[name] = tag.end()
        elif name in opened and "{{" in template[opened.pop(name) : tag.start()]:
            found.add(name)
    return frozenset(found)


def kept_inside(
    values: Mapping[str, object], names: frozenset[str]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Write `<` of a section's own tags inside of values as `&lt;`.

    An output that holds `</OUTPUT>` and then praises itself would otherwise speak from outside of
    its section.

    Args:
        values: what is to be inserted.
        names: tags of the template's sections.

    Returns:
        The values, and the names of those that were changed.
    """
    if not names:
        return dict(values), ()
    tags = re.compile(
        rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, sorted(names)))})\b)", re.IGNORECASE
    )
    kept = {name: _escaped(value, tags) for name, value in values.items()}
    return kept, tuple(name for name, value in values.items() if kept[name] != value)


def _escaped(value: object, tags: re.Pattern[str]) -> object:
    if isinstance(value, str):
        return tags.sub("&lt;", value)
    if isinstance(value, Texts):
        return Texts(tags.sub("&lt;", text) for text in value)
    if isinstance(value, list):
        return [_escaped(item, tags) for item in value]
    if isinstance(value, dict):
        return {key: _escaped(item, tags) for key, item in value.items()}
    return value
