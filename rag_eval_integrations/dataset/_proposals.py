"""Proposals: which field of a row probably holds the question, the documents or the response.

A field is proposed where its name fits and, read as it would be by that name, it holds texts: not
numbers, ids, names of files, addresses or the JSON of an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from rag_eval_integrations.dataset._paths import ABSENT, LONGEST_NAME, folded, path_to, value_at
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.traces._values import (
    documents_from,
    items_in,
    messages_in,
    object_in,
    said_from,
)

UNSURE = "NAME"
"""Stands for the name of a field where none can be proposed."""

_MOST = 100
"""Fields of a row that are looked at."""
_DEEPEST = 4
"""Dots of a name that is proposed."""
_LIKE = 0.8
"""Likeness, from 0 to 1, of a name that is taken for a spelling of another."""

_LEAF = re.compile("(?:page)?contents?|texts?|value|body|string|snippet|passage|chunk")
"""Names that say no more than the name above them."""
_HOLDER = re.compile(f"{_LEAF.pattern}|results|hits|items|matches|list|data|nodes?|document")
"""These, and names between that of documents and their texts."""
_ENDING = re.compile("(?:texts?|contents?|string|str|list)\\Z")
_TEXT_KEY = re.compile("text|content|snippet|passage|chunk")
_NOT: Mapping[str, re.Pattern[str]] = {
    "question": re.compile("preview|system|template|instruction|tool|sql|rewrit|search|example"),
    "documents": re.compile("preview|gold|expected|negative|positive|distract"),
    "response": re.compile(
        "preview|gold|expected|reference|truth|ideal|correct|target|tool|search|retriev|context"
    ),
}
"""Parts of names by which a field is something else."""

_LONGEST_ID = 200
_WORD = re.compile(r"[!-~]*(?:[\d_/\\\\@#=&]|[^\W_][.:-][^\W_])[!-~]*", re.ASCII)
"""A number, id, date, address or name of a file."""
_FILE = re.compile(
    r"[^\n]{1,100}\.(?:pdf|docx?|txt|md|html?|csv|json|pptx?|xlsx?|png|jpe?g)\Z", re.I
)
_JSON = re.compile(r"""\s*(?:[{\[]\s*["'{\[]|["'].*["']\s*\Z)""", re.S)


def proposals(row: Mapping[str, Any], missing: Sequence[str]) -> list[tuple[str, str]]:
    """Propose a field of the row for each that is missing; `NAME` where none is sure.

    For documents also several: numbered columns.
    """
    fields = dict(islice(_fields_in(row), _MOST))
    pairs: list[tuple[str, str]] = []
    for ours in missing:
        names = _best_names(ours, fields) or (_only_texts(row) if ours == "documents" else [])
        pairs += [(ours, name) for name in names or [UNSURE]]
        fields = {name: value for name, value in fields.items() if name not in names}
    return pairs


def holds(ours: str, value: object) -> bool:
    """Tell whether a value can be read as texts for a field of a call."""
    try:
        if ours != "documents":
            text = said_from(value, "")
            return text is not None and _is_prose(text)
        texts = documents_from(value, "")
    except InputError:
        return False
    texts = [text.get("text") if isinstance(text, dict) else text for text in texts]
    # What is not a text is an object of a framework, which is a document.
    return bool(texts) and all(_is_prose(t) for t in texts if isinstance(t, str))


def are_ids(documents: Sequence[object]) -> bool:
    """Tell whether documents are texts that are ids or names of files, all of them."""
    return bool(documents) and all(isinstance(text, str) and _is_id(text) for text in documents)


def holds_documents(name: str) -> bool:
    """Tell whether a list of objects under a name is one of documents, and not of rows.

    The name, or its part after the last dot, need only contain or begin one that is known.
    """
    known = [folded(each) for each in NAMES["documents"]]
    parts = {folded(name), folded(name.rpartition(".")[2])} - {""}
    return any(each in part or each.startswith(part) for each in known for part in parts)


def _is_id(word: str) -> bool:
    """Tell whether a text is a number, id, date, address or name of a file."""
    return len(word) <= _LONGEST_ID and bool(_WORD.fullmatch(word))


def _is_prose(text: str) -> bool:
    """Tell whether a text is prose: neither JSON nor a file's name, nor all numbers and ids."""
    if _JSON.match(text) or _FILE.fullmatch(text.strip()):
        return False
    words = islice((word.strip(",;") for word in text.split()), _MOST)
    return any(char.isalpha() for char in text) and not all(map(_is_id, words))


def _fields_in(row: Mapping[str, Any], inside: Any = None, before: str = "") -> Iterator[Any]:
    """Yield the dotted names of fields and their values, those inside of objects too.

    Names inside of objects, and of a list's first object, are dotted.
    """
    for name, value in (row if inside is None else inside).items():
        dotted = f"{before}{name}"
        path = path_to(row, dotted) if 0 < len(dotted) < LONGEST_NAME else None
        if path is None:
            continue
        try:
            given = value_at(row, path, dotted)
        except InputError:
            continue
        if given is not ABSENT:
            yield dotted, given
        if dotted.count(".") < _DEEPEST:
            below = object_in((items_in(value) or [value])[0])
            yield from _fields_in(row, below, f"{dotted}.")


def _best_names(ours: str, fields: Mapping[str, Any]) -> list[str]:
    """Return the name that fits a field best and holds what it should; empty if unsure.

    The upper of two that fit as well, and neither where they are as deep. Of documents, all
    columns that differ by a number.
    """
    ranks = {dotted: (_name_rank(ours, dotted), -dotted.count(".")) for dotted in fields}
    fitting = {
        dotted: rank for dotted, rank in ranks.items() if rank[0] and holds(ours, fields[dotted])
    }
    best = [dotted for dotted in fitting if fitting[dotted] == max(fitting.values())]
    if ours == "documents" and len({re.sub(r"\d+", "", dotted) for dotted in best}) == 1:
        return best
    return best[:1] if all(fields[dotted] == fields[best[0]] for dotted in best) else []


def _name_rank(ours: str, dotted: str) -> int:
    """Rate how well a name fits a field, from 0 to 4."""
    parts = [folded(part) for part in dotted.split(".") if part]
    if ours == "documents" and "metadata" in parts[:-1]:
        return 0
    between = _HOLDER if ours == "documents" else _LEAF
    while len(parts) > 1 and (not parts[-1] or between.fullmatch(parts[-1])):
        parts.pop()
    name = re.sub(r"\d+", "", parts[-1]) if parts else ""
    if not name or _NOT[ours].search(folded(dotted)) or name in map(folded, NAMES["reference"]):
        return 0
    known = [folded(each) for each in NAMES[ours] if each != "messages"]
    forms = {name, name.removesuffix("s"), f"{name}s"}
    forms |= {_ENDING.sub(plural, name) for plural in ("", "s")} if _ENDING.search(name) else set()
    if not forms.isdisjoint(known):
        return 4
    if any(form.endswith(each) for form in forms for each in known):
        return 3
    if "." not in dotted and any(each.startswith(name) for each in known[:3]):
        return 2
    close = (each for each in known if abs(len(each) - len(name)) <= 2)
    return any(SequenceMatcher(None, name, each).ratio() >= _LIKE for each in close)


def _only_texts(row: Mapping[str, Any]) -> list[str]:
    """Return the dotted name of the texts in the row's only list of objects that has any."""
    names = []
    for name, value in row.items():
        first = object_in((items_in(value) or [None])[0])
        keys = [key for key in first if _TEXT_KEY.search(folded(str(key)))]
        keys.sort(key=lambda key: not _LEAF.fullmatch(folded(str(key))))
        is_other = messages_in(value) or any(
            _name_rank(ours, str(name)) for ours in ("question", "response")
        )
        if keys and not is_other and folded(str(name)) not in map(folded, NAMES["reference"]):
            names += [f"{name}.{keys[0]}"]
    path = path_to(row, names[0]) if len(names) == 1 else None
    try:
        return names if path and holds("documents", value_at(row, path, names[0])) else []
    except InputError:
        return []
