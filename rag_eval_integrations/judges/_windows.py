"""Windows: the parts of a call that does not fit into one request, and their labels joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rag_eval_integrations.records import Labels, Sentence, SentenceSupport

_OVERHEAD = 4
"""Characters on the line of a sentence besides its key and text."""


class Window(NamedTuple):
    """The sentences of one request."""

    documents: tuple[Sentence, ...]
    response: tuple[Sentence, ...]

    def halves(self) -> tuple[Window, Window] | None:
        """Split the longer side in two; None when both have fewer than two sentences."""
        if max(len(self.documents), len(self.response)) < 2:
            return None
        if len(self.documents) >= len(self.response):
            middle = len(self.documents) // 2
            return (
                Window(self.documents[:middle], self.response),
                Window(self.documents[middle:], self.response),
            )
        middle = len(self.response) // 2
        return (
            Window(self.documents, self.response[:middle]),
            Window(self.documents, self.response[middle:]),
        )


def windows(
    documents: Sequence[Sentence], response: Sequence[Sentence], characters: int
) -> list[Window]:
    """Cut a call into windows of at most `characters`, each with at least one sentence.

    The response takes at most a third of a window, so that documents are not cut too finely.
    """
    if _size(documents) + _size(response) <= characters:
        return [Window(tuple(documents), tuple(response))]
    return [
        Window(part, run)
        for run in _runs(response, characters // 3)
        for part in _runs(documents, max(1, characters - _size(run)))
    ]


def _size(sentences: Sequence[Sentence]) -> int:
    return sum(len(s.key) + len(s.text) + _OVERHEAD for s in sentences)


def _runs(sentences: Sequence[Sentence], characters: int) -> list[tuple[Sentence, ...]]:
    runs: list[tuple[Sentence, ...]] = []
    run: list[Sentence] = []
    size = 0
    for sentence in sentences:
        length = _size([sentence])
        if run and size + length > characters:
            runs.append(tuple(run))
            run, size = [], 0
        run.append(sentence)
        size += length
    return [*runs, tuple(run)] if run or not runs else runs


def join(parts: Sequence[Labels]) -> Labels:
    """Join the labels of windows into the labels of the call."""
    if len(parts) == 1:
        return parts[0]
    entries: dict[str, SentenceSupport] = {}
    for part in parts:
        for entry in part.sentence_support_information:
            known = entries.get(entry.response_sentence_key)
            entries[entry.response_sentence_key] = entry if known is None else _best(known, entry)
    return Labels(
        relevance_explanation=_text(part.relevance_explanation for part in parts),
        all_relevant_sentence_keys=_keys(part.all_relevant_sentence_keys for part in parts),
        overall_supported_explanation=_text(p.overall_supported_explanation for p in parts),
        sentence_support_information=tuple(entries.values()),
        all_utilized_sentence_keys=_keys(part.all_utilized_sentence_keys for part in parts),
        unknown_keys=_keys(part.unknown_keys for part in parts),
        special_keys=_keys(part.special_keys for part in parts),
        duplicate_keys=_keys(part.duplicate_keys for part in parts),
    )


def _best(first: SentenceSupport, second: SentenceSupport) -> SentenceSupport:
    keys = tuple(dict.fromkeys((*first.supporting_sentence_keys, *second.supporting_sentence_keys)))
    full = [entry for entry in (first, second) if entry.fully_supported]
    chosen = full[0] if full else max(first, second, key=lambda e: len(e.supporting_sentence_keys))
    return chosen.model_copy(
        update={
            "supporting_sentence_keys": chosen.supporting_sentence_keys if full else keys,
            "fully_supported": bool(full),
        }
    )


def _keys(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for keys in lists for key in keys))


def _text(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))
