"""Differences of texts by words, and of lists of retrieved documents."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import call

from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._compare_html import MOST_CHARACTERS, document_changes, word_diff


def marked(before: str, after: str) -> str:
    """The difference as one line."""
    marks = {"same": "{}", "gone": "[-{}-]", "added": "[+{}+]"}
    return "".join(marks[kind].format(text) for kind, text in word_diff(before, after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("The ferry is old.", "The ferry is new.", "The ferry is [-old-][+new+]."),
        ("One. Two. Three.", "One. Three.", "One. [-Two. -]Three."),
        ("It leaves at 9.", "It leaves at 9. Really!", "It leaves at 9. [+Really!+]"),
        ("an old grey ferry", "a new train", "[-an old grey ferry-][+a new train+]"),
        ("船は九時に出る。青い。", "船は九時に出る。赤い。", "船は九時に出る。[-青い-][+赤い+]。"),
    ],
)
def test_words_that_changed_are_marked(before: str, after: str, expected: str) -> None:
    """White space never counts as a change; unchanged sentences stay whole."""
    assert marked(before, after) == expected


texts = st.lists(
    st.sampled_from(["a", "b", "ferry", "é", "😀", ".", "! ", "\n", "  ", " ", "\u3002", "x1", "-"])
).map("".join)


@given(st.text(max_size=60) | texts, st.text(max_size=60) | texts)
def test_the_pieces_make_up_both_texts(before: str, after: str) -> None:
    """The second exactly, the first up to white space; neighbours are of different kinds."""
    pieces = word_diff(before, after)

    assert "".join(text for kind, text in pieces if kind != "gone") == after
    old = "".join(text for kind, text in pieces if kind != "added")
    assert "".join(old.split()) == "".join(before.split())
    kinds = [piece.kind for piece in pieces]
    assert all(kind != following for kind, following in itertools.pairwise(kinds))
    assert all(piece.text for piece in pieces)


@pytest.mark.parametrize(("before", "after"), [("a b ", "b a "), (" ", "\n"), ("a. ", "b. ")])
def test_a_hostile_text_is_cut(before: str, after: str) -> None:
    """Only its beginning is compared."""
    pieces = word_diff(before * 60_000, after * 60_000)

    whole = (after * 60_000)[:MOST_CHARACTERS]
    assert "".join(text for kind, text in pieces if kind != "gone") == whole


@pytest.mark.parametrize(("words", "whole"), [(200, False), (900, True)])
def test_what_can_be_aligned_in_too_many_ways_is_replaced_as_a_whole(
    words: int, whole: bool
) -> None:
    """`difflib` takes all pairs of equal words, perhaps once for each word."""
    generator = random.Random(1)
    before, after = (" ".join(generator.choices("abcdefghij", k=words)) for _ in "ab")

    kinds = [piece.kind for piece in word_diff(f"start {before}", f"start {after}")]

    assert (len(kinds) <= 4 and kinds[:3] == ["same", "gone", "added"]) == whole


# --- Documents


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("1 One. 2 Two. 3 Three.", "2 Two! 1 One. 4 Four.", "edited10 moved01 added-2 gone2-"),
        ("- One. - Same. - Same.", "- Same. - One.", "moved10 moved01 gone2-"),
        ("- One. - Same. - Same.", "- One. - Same. - Same.", "same00 same11 same22"),
    ],
)
def test_documents_are_matched_by_unique_ids_or_else_by_text(
    before: str, after: str, kinds: str
) -> None:
    """Added, gone, moved to another place, and edited under the same id; repeats in order."""

    def retrieved(words: str) -> Evaluation:
        ids, texts = words.split()[::2], words.split()[1::2]
        return call("q", {}, documents=texts, document_ids=[None if i == "-" else i for i in ids])

    found = document_changes(retrieved(before), retrieved(after))

    places = [(one.number_before, one.number_after) for one in found]
    shown = ("".join("-" if place is None else str(place) for place in both) for both in places)
    assert [f"{one.kind}{of}" for one, of in zip(found, shown, strict=True)] == kinds.split()
