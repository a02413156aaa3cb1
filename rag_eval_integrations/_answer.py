"""Tell the answer among the texts of a result, by name or as what a model wrote last.

And the citations that stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

_NO_ANSWER = re.compile(
    "quer|question|rewrit|rephras|hyde|hypothe|keyword|grade|grading|relevan|route|intent"
    "|title|topic|critique|feedback|reason|rationale|thought|(?:^|[._])plan",
    re.IGNORECASE,
)
_ANSWER = re.compile("answer|response|reply|result|summary|output", re.IGNORECASE)
_NAME = re.compile(r"(?i:answer|response)$|^(?i:answer)(?=_|[A-Z])")
_OF_OTHERS = re.compile(
    "context|doc|source|citation|prompt|input|expected|reference|gold|truth|ideal|previous|initial"
    "|draft|candidate|user|human|tool|raw|hypothe|grade|grading|relevan|score|type",
    re.IGNORECASE,
)
_GRADES = frozenset(
    {"yes", "no", "true", "false", "relevant", "irrelevant", "not relevant", "useful", "not useful"}
)
_MOST = 1_000  # texts that are looked at
_DEEPEST = 5  # levels of a result in which citations are looked for
_MOST_CITED = 200
_SOURCES = (
    "source_id",
    "source",
    "doc_id",
    "document_id",
    "id",
    "url",
    "title",
    "document_title",
)
_TELLING = 16  # characters from which a model's text is not part of another one by chance


def is_no_answer(name: str, text: str = "") -> bool:
    """Return whether a text is a query, a grade or the like, by itself or by its key."""
    if text.strip(" .!\n").lower() in _GRADES:
        return True
    return _NO_ANSWER.search(name) is not None and _ANSWER.search(name) is None


def names_answer(name: object) -> bool:
    """Return whether a key says that the answer stands under it: `final_answer`, `answer_text`."""
    return type(name) is str and bool(_NAME.search(name)) and not _OF_OTHERS.search(name)


def fields_of(value: object) -> Mapping[Any, Any]:
    """Return a mapping itself, or the fields of a dataclass or a pydantic object.

    Those of a workflow's event need not be declared. Any other value has none.
    """
    if isinstance(value, Mapping):
        return value
    kind = type(value)
    names = getattr(kind, "__dataclass_fields__", ())
    if not names and not hasattr(kind, "__pydantic_fields__"):
        return {}
    own = getattr(value, "__dict__", None) or {name: getattr(value, name, None) for name in names}
    free = getattr(value, "_data", None) if not names else None
    return {**own, **free} if isinstance(free, Mapping) else own


def answer_among(texts: Iterable[tuple[str, str]], model_texts: Sequence[str]) -> str | None:
    """Return the only text with a name of an answer; else the one that a model wrote last.

    That is the text that equals what the latest model wrote, else the only one that holds the text
    of the last model. None where there is none.

    Args:
        texts: name and text of the values among which the answer is.
        model_texts: what models wrote, the last one at the end.
    """
    left = [
        (name, text)
        for name, text in islice(texts, _MOST)
        if text.strip() and not is_no_answer(name, text)
    ]
    named = {text for name, text in left if names_answer(name)}
    if len(named) == 1:
        return named.pop()
    values = {text.strip(): text for _, text in left}
    for wrote in reversed(model_texts):
        if wrote.strip() in values:
            return values[wrote.strip()]
    last = model_texts[-1].strip() if model_texts else ""
    around = [text for text in values.values() if last in text] if len(last) >= _TELLING else []
    return around[0] if len(around) == 1 else None


def citations_beside(result: object, answer: str) -> list[dict[str, object]]:
    """Read the citations that a result has beside its answer.

    These are a field `citations`, as in the structured answers of LangChain's guides, and the
    annotations of a message's content blocks.

    Returns:
        Per citation, `source` (number, id, address or title) and, where the result tells it, `end`
        (where in the answer the text ends that it stands behind).
    """
    return list(islice(_citations(result, answer, 0), _MOST_CITED))


def _citations(value: object, answer: str, depth: int) -> Iterator[dict[str, object]]:
    """Yield the citations inside of a result."""
    if isinstance(value, list | tuple):
        last = value[-1:] if value and hasattr(value[-1], "content") else value[:_MOST_CITED]
        for item in last if depth < _DEEPEST else ():
            yield from _citations(item, answer, depth + 1)
        return
    fields = fields_of(value)
    if depth > _DEEPEST or "page_content" in fields:
        return
    if isinstance(fields.get("content"), list):
        for block in getattr(value, "content_blocks", None) or ():
            yield from _annotated(block, answer)
    elif isinstance(fields.get("citations"), list):
        for entry in fields["citations"][:_MOST_CITED]:
            if source := _source_of(entry):
                yield {"source": source[0]}
    else:
        for item in islice(fields.values(), _MOST_CITED):
            yield from _citations(item, answer, depth + 1)


def _annotated(block: Mapping[str, Any], answer: str) -> Iterator[dict[str, object]]:
    """Read the annotations of a block of text."""
    text = block.get("text") or ""
    start = answer.find(text) if text else -1
    for annotation in block.get("annotations") or ():
        source = _source_of(annotation) if annotation.get("type") == "citation" else None
        if source and start >= 0:
            yield {"source": source[0], "end": start + (annotation.get("end_index") or len(text))}


def _source_of(entry: object) -> tuple[int | str] | None:
    """Return the source that a citation names, in a tuple of one; None if it names nothing."""
    if isinstance(entry, int | str):
        return (entry,)
    fields = fields_of(entry)
    inner = fields.get("citation")
    if isinstance(inner, list):  # of XML: one field per item
        fields = {name: each for item in inner for name, each in fields_of(item).items()}
    values = (fields.get(name) for name in _SOURCES)
    return next(((value,) for value in values if isinstance(value, int | str)), None)
