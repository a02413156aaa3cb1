"""Cutting sentences into words: three ways that agree, and a memory that stays small."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded import _language as language
from rag_eval_integrations.judges.embedded import _words as words_module
from rag_eval_integrations.judges.embedded._words import WORD, raw_words, stem, words

UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
ASCII = st.text(st.characters(max_codepoint=127), max_size=40)
DENSE = st.text(alphabet="aZ19_'.,- \n’é²", max_size=20)


@given(ASCII | DENSE | st.text(max_size=30))
def test_words_are_those_of_the_pattern(text: str) -> None:
    """The short cuts for ASCII text find what the pattern finds, once characters are composed."""
    assert raw_words(text) == WORD.findall(unicodedata.normalize("NFKC", text).translate(UNSEEN))


@given(ASCII | DENSE)
def test_the_language_check_sees_the_same_words(text: str) -> None:
    """Its own short cut for ASCII text finds what its pattern finds."""
    small = text.lower()
    if small.isascii():
        assert language._ASCII_WORD.findall(small) == language._WORD.findall(small)


def test_names_are_capitals_that_do_not_open_the_sentence() -> None:
    """The opening word counts only where it stands again; words without weight never do."""
    assert words("Paris is The capital").names == frozenset()
    assert words("Paris is in Paris, Texas.").names == {"paris", "texa"}
    assert words("Élan of Évian, Ünal").names == {"évian", "ünal"}


def test_stems_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory begins anew when it is full, and the stems stay the same."""
    monkeypatch.setattr(words_module, "_CACHED_WORDS", 10)
    names = [f"running{letter}ing" for letter in "bcdfghjklmnpqrstvwxz"]

    first = list(map(stem, names))

    assert len(words_module._STEMS) <= 10
    assert list(map(stem, names)) == first


def test_the_same_words_are_the_same_however_they_are_written() -> None:
    """Composed or not, with ligatures, hidden hyphens, narrow spaces, zeros that say nothing."""
    pairs = [
        ("café in Zürich", "cafe\u0301 in Zu\u0308rich"),
        ("efficient", "e\ufb03cient"),
        ("cooperate", "co\u00adop\u200berate"),
        ("12 000", "12\u202f000"),
        ("on the 3rd", "on the 03"),
        ("it costs 1299.00", "it costs 1,299"),
    ]

    assert [words(one).content for one, _ in pairs] == [words(other).content for _, other in pairs]


def test_zeros_that_say_something_stay() -> None:
    """100, 0 and 10.5 are what they are."""
    assert words("100 0 10.5 2001 50th").content == ("100", "0", "10.5", "2001", "50", "th")
