"""Windows of a long call, and how their labels are joined."""

from __future__ import annotations

import itertools

from by_hand import labels_of
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.llm import Window, join, windows
from rag_eval_integrations.records import Sentence

ALONG = 7
"""Characters that a sentence takes beside its text: a key of three, and four around it."""


def sentences(side: str, *lengths: int) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(f"{side}{number:02d}"[:3], "x" * length) for number, length in enumerate(lengths)
    )


def size(*of: tuple[Sentence, ...]) -> int:
    return sum(len(sentence.text) + ALONG for run in of for sentence in run)


lengths = st.lists(st.integers(0, 40), max_size=12)


@given(documents=lengths, response=lengths, characters=st.integers(1, 400))
def test_every_pair_of_sentences_is_seen_together_once(
    documents: list[int], response: list[int], characters: int
) -> None:
    """In order, nothing left out, and within the size wherever a sentence is."""
    left, right = sentences("d", *documents), sentences("r", *response)

    parts = windows(left, right, characters)

    shown = [pair for part in parts for pair in itertools.product(part.documents, part.response)]
    assert sorted(shown) == sorted(itertools.product(left, right))
    if not left or not right:
        assert [s for part in parts for s in (*part.documents, *part.response)] == [*left, *right]
    for part in parts:
        run = part.response
        assert size(part.documents, run) <= characters or len(part.documents) <= 1
        assert size(run) <= max(characters // 3, 1) or len(run) <= 1 or len(parts) == 1


def test_what_fits_exactly_is_one_window() -> None:
    """However long the response is in it; a character less, and it is cut."""
    left, right = sentences("d", 10, 10), sentences("r", 30, 30, 30)

    assert windows(left, right, size(left, right)) == [Window(left, right)]
    assert len(windows(left, right, size(left, right) - 1)) > 1


def test_the_best_window_of_a_sentence_counts() -> None:
    """Full support keeps its own keys; support in parts is that of all windows together."""
    in_one = {"a": (["0a"], False), "b": (["0a"], True), "c": (["0a", "0b"], False)}
    in_two = {"a": (["1a"], True), "b": (["1a"], False), "c": (["1a"], False)}

    joined = join([labels_of(["0a"], ["0a"], in_one), labels_of(["1a", "0a"], ["1a"], in_two)])

    assert [
        (e.response_sentence_key, e.supporting_sentence_keys, e.fully_supported)
        for e in joined.sentence_support_information
    ] == [("a", ("1a",), True), ("b", ("0a",), True), ("c", ("0a", "0b", "1a"), False)]
    assert joined.all_relevant_sentence_keys == ("0a", "1a")
    assert joined.all_utilized_sentence_keys == ("0a", "1a")


def test_what_windows_say_is_joined_once() -> None:
    """Explanations one after another, empty and repeated ones left out; oddities are kept."""
    parts = [
        labels_of(
            [], [], {}, relevance_explanation=said, overall_supported_explanation=said.upper(),
            unknown_keys=[f"9{said or 'x'}"], special_keys=["general"], duplicate_keys=["0a"],
        )
        for said in ("one", "", "two", "one")
    ]  # fmt: skip

    joined = join(parts)

    assert joined.relevance_explanation == "one two"
    assert joined.overall_supported_explanation == "ONE TWO"
    assert joined.unknown_keys == ("9one", "9x", "9two")
    assert (joined.special_keys, joined.duplicate_keys) == (("general",), ("0a",))
    assert join(parts[:1]) is parts[0]
