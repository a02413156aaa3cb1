"""Differences of texts by words, and of lists of retrieved documents."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import call

from rag_eval_integrations.report._word_diff import (
    _MOST_MATCHES,
    MOST_CHARACTERS,
    DocumentChange,
    _few,
    document_changes,
    word_diff,
)


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
        ("", "new", "[+new+]"),
        ("old", "", "[-old-]"),
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b " * 50_000, "b a " * 50_000),
        (" " * 200_000, "\n" * 200_000),
        ("a. " * 60_000, "b. " * 60_000),
    ],
)
def test_a_hostile_text_is_cut(before: str, after: str) -> None:
    """Only its beginning is compared."""
    pieces = word_diff(before, after)

    assert "".join(text for kind, text in pieces if kind != "gone") == after[:MOST_CHARACTERS]


def test_what_can_be_aligned_in_too_many_ways_is_replaced_as_a_whole() -> None:
    """`difflib` takes all pairs of equal words, perhaps once for each word."""
    generator = random.Random(1)
    few = [generator.choice("abcdefghij") for _ in range(900)]
    other = [generator.choice("abcdefghij") for _ in range(900)]
    assert not _few(few, other)
    assert _few([f"w{n}" for n in range(1_000)], [f"w{n}" for n in range(1_000)])
    assert not _few(["w"] * 1_001, ["v"])
    assert _MOST_MATCHES == 200 * 100
    assert _few(["w"] * 200, ["w"] * 100)

    pieces = word_diff("start " + " ".join(few), "start " + " ".join(other))

    assert [piece.kind for piece in pieces][:3] == ["same", "gone", "added"]
    assert len(pieces) <= 4


# --- Documents


def kinds(found: list[DocumentChange]) -> list[tuple[str, int | None, int | None]]:
    """What happened to each document, with its numbers."""
    return [(one.kind, one.number_before, one.number_after) for one in found]


def test_documents_are_matched_by_unique_ids() -> None:
    """Added, gone, moved to another place, and edited under the same id."""
    before = call("q", {}, documents=["One.", "Two.", "Three."], document_ids=["1", "2", "3"])
    after = call("q", {}, documents=["Two!", "One.", "Four."], document_ids=["2", "1", "4"])

    found = document_changes(before, after)

    assert kinds(found) == [
        ("edited", 1, 0),
        ("moved", 0, 1),
        ("added", None, 2),
        ("gone", 2, None),
    ]
    assert (found[0].before, found[0].after, found[0].id) == ("Two.", "Two!", "2")


def test_documents_without_ids_are_matched_by_text() -> None:
    """One after the other where texts repeat."""
    before = call("q", {}, documents=["One.", "Same.", "Same."])
    after = call("q", {}, documents=["Same.", "One."])

    assert kinds(document_changes(before, after)) == [
        ("moved", 1, 0),
        ("moved", 0, 1),
        ("gone", 2, None),
    ]
    assert {one.kind for one in document_changes(before, before)} == {"same"}
