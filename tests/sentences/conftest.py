"""Sentences as texts, and what all splitters and the block pass keep to."""

from __future__ import annotations

from collections.abc import Iterable

from rag_eval_integrations.sentences._sentencize import Splitter


def split(text: str, splitter: Splitter) -> list[str]:
    return [text[start:end] for start, end in splitter.spans(text)]


def assert_whole(text: str, spans: Iterable[tuple[int, int]]) -> None:
    """Spans are in order, trimmed, not empty, and leave only white space between them."""
    before = 0
    for start, end in spans:
        assert before <= start < end
        assert text[start:end] == text[start:end].strip()
        assert text[before:start].strip() == ""
        before = end
    assert text[before:].strip() == ""
