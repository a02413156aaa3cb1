"""Keys of sentences, past 26 and past 702."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import RagCall
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.sentences._sentencize import letters, position


@pytest.mark.parametrize(
    ("index", "text"),
    [(0, "a"), (25, "z"), (26, "aa"), (27, "ab"), (51, "az"), (52, "ba"), (549, "ud"), (701, "zz"), (702, "aaa"), (18277, "zzz"), (18278, "aaaa")],
)  # fmt: skip
def test_letters_count_like_spreadsheet_columns(index: int, text: str) -> None:
    """A … z aa … zz aaa; RAGBench's longest document ends at `0ud`."""
    assert letters(index) == text
    assert position(text) == index


@given(index=st.integers(0, 10**9))
def test_letters_and_position_are_inverse(index: int) -> None:
    """Any index comes back."""
    assert position(letters(index)) == index


def test_keys_count_on_in_long_texts() -> None:
    """Past the keys that are made ahead, past zz and past zzz."""
    call = RagCall(question="", documents=["", "a\n" * 18_300], response="b\n" * 800)

    split = sentencize(call, Punkt())

    assert [one.key for one in split.documents] == [f"1{letters(at)}" for at in range(18_300)]
    assert [one.key for one in split.response] == [letters(at) for at in range(800)]


@pytest.mark.parametrize("text", ["", "a1", "é"])
def test_what_is_no_key_and_no_index_is_refused(text: str) -> None:
    """Only the letters a to z; counting starts at 0."""
    with pytest.raises(ValueError, match="does not consist of the letters"):
        position(text)
    with pytest.raises(ValueError, match="use a number from 0"):
        letters(-1)
