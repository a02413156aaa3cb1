"""A call becomes keyed sentences, each with the key that a person would give it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, Sentence
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.sentences._sentencize import locate

SPLITTER = Punkt()


def test_documents_are_numbered_and_sentences_lettered() -> None:
    """Letters begin anew in each document; those of the response have no number.

    The document after an empty one does not move up; nothing without text has a sentence.
    """
    documents = ["Bees live in hives. Some live in trees.", "", " \n ", "Wasps build. They sting."]

    made = sentencize(RagCall("q", documents, "In hives. In trees."), SPLITTER)

    assert [s.key for s in made.documents] == ["0a", "0b", "3a", "3b"]
    assert made.response == (Sentence("a", "In hives.", 0, 9), Sentence("b", "In trees.", 10, 19))
    assert made.splitter == "punkt-en@2"
    assert sentencize(RagCall("q", [], None), SPLITTER).response == ()


@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=80), max_size=4), response=st.text(max_size=80))  # fmt: skip
def test_offsets_and_coverage(texts: list[str], response: str) -> None:
    """`text[start:end]` is the sentence, and every visible character is in exactly one."""
    call = RagCall(question="q", documents=texts, response=response)
    made = sentencize(call, SPLITTER)

    held = [document.text for document in call.documents]  # lone surrogates are U+FFFD by now
    for number, text in enumerate([*held, response]):
        prefix = str(number) if number < len(texts) else ""
        sentences = made.documents if prefix else made.response
        own = [s for s in sentences if s.key.rstrip("abcdefghijklmnopqrstuvwxyz") == prefix]
        assert all(text[s.start : s.end] == s.text for s in own)
        assert "".join("".join(s.text.split()) for s in own) == "".join(text.split())


def test_locate_finds_repeated_sentences_one_after_another() -> None:
    """The second of two equal sentences gets the second place."""
    texts = [("0a", "So."), ("0b", "So."), ("0c", "Not there."), ("0d", "End.")]

    assert locate(texts, "So. So. End.") == (
        Sentence("0a", "So.", 0, 3), Sentence("0b", "So.", 4, 7), Sentence("0c", "Not there."),
        Sentence("0d", "End.", 8, 12),
    )  # fmt: skip


class Given:
    """A splitter that says of every text what it was given."""

    name = "given@1"

    def __init__(self, spans: Any) -> None:
        self._spans = spans

    def spans(self, text: str) -> list[tuple[int, int]]:
        return list(self._spans) if text else []


@pytest.mark.parametrize(
    "spans", [[(0, 5), (0, 5)], [(0, 5), (4, 8)], [(3, 3)], [(-1, 2)], [(0, 99)], [("0", "5")]]
)
def test_spans_that_do_not_follow_each_other_are_refused(spans: Any) -> None:
    """Two keys for one text would count its evidence twice."""
    call = RagCall(question="q", documents=["One. Two."], response="")

    with pytest.raises(ConfigurationError, match=r"`splitter` = 'given@1': gave the span \("):
        sentencize(call, Given(spans))


def test_a_remembered_text_is_split_the_same() -> None:
    """The list that was given may be changed; a long text is split without being remembered."""
    for text in ("One is here. Two is there.", "One is here. Two is there. " * 400):
        first = SPLITTER.spans(text)
        kept = list(first)
        first.clear()

        assert SPLITTER.spans(text) == kept != []
