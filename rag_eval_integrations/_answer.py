"""Tell the answer among the texts of a result: by their names, else as what a model wrote last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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


def answer_among(texts: Iterable[tuple[str, str]], written: Sequence[str]) -> str | None:
    """Return the only text with a name of an answer; else the one that a model wrote last.

    That is the text that equals what the latest model wrote, else the only one that holds the text
    of the last model. None where there is none.

    Args:
        texts: name and text of the values among which the answer is.
        written: what models wrote, the last one at the end.
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
    for wrote in reversed(written):
        if wrote.strip() in values:
            return values[wrote.strip()]
    last = written[-1].strip() if written else ""
    around = [text for text in values.values() if last in text] if len(last) >= _TELLING else []
    return around[0] if len(around) == 1 else None
