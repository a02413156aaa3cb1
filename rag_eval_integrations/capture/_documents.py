"""Copy the documents that an app gives, or keeps as texts and plain objects: one rule for all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from numbers import Real
from typing import Any

from rag_eval_integrations._answer import fields_of
from rag_eval_integrations._prompt_search import is_begun
from rag_eval_integrations.capture._calls import Snapshot, finite, json_object, json_value
from rag_eval_integrations.capture._delivery import UnusableError, text
from rag_eval_integrations.records._json import NAMES

_TEXTS = ("text", "page_content", "content", "passage", "chunk", "snippet", "body")
_NAMES = ("id", "node_id", "id_", "chunk_id", "doc_id", "document_id", "source_id", "_id")
_SCORES = ("score", "relevance_score", "rerank_score", "similarity")
_ABOUT = (
    "title",
    "document_title",
    "source",
    "filename",
    "url",
    "page",
)  # what stands beside the text


def documents_seen(
    given: object, own: Callable[[Any], Snapshot | None] | None = None
) -> list[Snapshot]:
    """Make snapshots of the documents in a list, or in a mapping.

    A mapping holds a list under a known name, or is a document itself.

    Args:
        given: the list or mapping; its documents are of any class, texts, or pairs with a score.
        own: copies a document of a framework in its own way; None for any other.

    Raises:
        UnusableError: it is something else, or holds something else.
    """
    if isinstance(given, Mapping):
        inside = next(
            (given[key] for key in NAMES["documents"] if given.get(key) is not None), None
        )
        if inside is not None and not isinstance(inside, str):
            return documents_seen(inside, own)
        given = [given if inside is None else inside]
    # These are iterable, but their characters are not documents.
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UnusableError(f"should be a list of documents, not {type(given).__name__}")
    return [(own and own(item)) or document_seen(item) for item in given]


def document_seen(item: Any, score: object = None) -> Snapshot:
    """Make the snapshot of a document of any class, by its attributes or keys.

    A text is a document, too, and so is a pair with a score.

    Raises:
        UnusableError: it has no text.
    """
    if isinstance(item, str):
        return Snapshot(text(item), None, {}, finite(score))
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Real | None):
        return document_seen(item[0], item[1])
    is_dict = type(item) is dict or isinstance(item, Mapping)  # the second takes 1 µs
    get: Callable[[str], Any] = item.get if is_dict else lambda name: getattr(item, name, None)
    content = None if is_dict else get("get_content")
    # LlamaIndex's method before `text`, which raises for a node that is not a text.
    texts = (content(),) if callable(content) else map(get, _TEXTS)
    body = next((text for text in texts if isinstance(text, str)), None)
    if body is None:
        raise UnusableError(f"{type(item).__name__} is not a document: it has no text")
    name = next((name for name in map(get, _NAMES) if name is not None), None)
    header, metadata = get("header"), get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        metadata = {"metadata": json_value(metadata)}
    about = {key: about for key in _ABOUT if (about := get(key)) is not None}
    metadata = {**about, **(metadata or {})}
    scores = [score, *map(get, _SCORES), *map((metadata or {}).get, _SCORES[:2])]
    return Snapshot(
        text(body),
        None if name is None else str(name),
        json_object(metadata) if metadata else {},
        next((number for number in map(finite, scores) if number is not None), None),
        text(header) if isinstance(header, str) else None,
    )


# --- Lists of texts and plain objects that nobody calls documents, but a model was shown


_LEAST = 16  # characters from which a text does not stand in a prompt by chance
_MOST = 1_000  # entries of a list
_MAX_DEPTH = 3
_NO_DOCUMENTS = re.compile(
    "history|messages|chat|quer|question|example|instruction|rule|step|tool|block|log|error|draft"
    "|answer|response",
    re.IGNORECASE,
)
_DOCUMENTS = re.compile("doc|context|passage|chunk|snippet|retriev|evidence", re.IGNORECASE)

Exchange = Sequence[tuple[str, str]]
"""What models were shown and what they wrote, in order."""


def shown_lists(
    value: object,
    exchange: Exchange,
    others: Collection[str],
    known: Collection[str] = (),
    name: str = "",
    depth: int = 0,
) -> Iterator[list[Snapshot]]:
    """Yield the lists in a state or a result from which a model was shown at least one document.

    Where no model was seen, the lists under a name such as `retrieved_docs`.

    Args:
        value: the state, or a part of it.
        exchange: what models were shown and wrote.
        others: the question and the earlier turns, which are not documents.
        known: texts of documents of which neither copies nor parts are wanted; beside these, a
            list of nothing but texts may be derived from them, and does not count.
        name: key under which the value stands.
        depth: levels above this value; below the third level nothing is read.
    """
    if isinstance(value, list | tuple):
        derived = known and isinstance(next(iter(value), None), str)
        documents = [] if derived or _NO_DOCUMENTS.search(name) else _documents_in(value)
        documents = [
            seen
            for seen in documents
            if seen.text.strip() not in others and not _is_known(seen.text, known)
        ]
        in_a_prompt = any(_is_shown(seen.text.strip(), exchange) for seen in documents)
        if in_a_prompt or (documents and not exchange and _DOCUMENTS.search(name)):
            yield documents
    elif depth < _MAX_DEPTH:
        for key, part in fields_of(value).items():
            if not isinstance(part, str):
                yield from shown_lists(part, exchange, others, known, str(key), depth + 1)


def _is_known(text: str, known: Iterable[str]) -> bool:
    """Return whether a text is part of a known text, or contains one."""
    return any(text in other or other in text for other in known)


def as_json(result: object) -> object:
    """Parse a tool's text as JSON, into a dict; return a value that is not a text as it is."""
    if not isinstance(result, str):
        return result
    with suppress(ValueError):
        return {"": json.loads(result)} if result[:1] in ("[", "{") else None
    return None


def _documents_in(value: Sequence[Any]) -> list[Snapshot]:
    """Read a list's entries as documents; none if they are messages or anything else."""
    try:
        documents = (
            []
            if any(map(_is_message, value[:1]))
            else [document_seen(item) for item in islice(value, _MOST)]
        )
    except UnusableError:
        return []
    return [seen for seen in documents if len(seen.text.strip()) >= _LEAST]


def _is_message(item: object) -> bool:
    """Return whether an entry of a list is a message of a conversation."""
    if isinstance(item, tuple):
        return len(item) == 2 and isinstance(item[1], str)
    return fields_of(item).keys() >= {"role"} or fields_of(item).keys() >= {"type", "content"}


def _is_shown(text: str, exchange: Exchange) -> bool:
    """Return whether a model was shown a text, or its beginning, before a model wrote it."""
    for prompt, wrote in exchange:
        if is_begun(text, prompt):
            return True
        if wrote and text in wrote:
            return False
    return False
