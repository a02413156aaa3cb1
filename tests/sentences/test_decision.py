"""Punkt's decision, held to NLTK's own."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval_integrations.sentences import punkt
from rag_eval_integrations.sentences.punkt import Parameters

if TYPE_CHECKING:
    from nltk.tokenize.punkt import (  # type: ignore[import-untyped]  # nltk has no stubs
        PunktSentenceTokenizer,
    )

SMALL = Parameters(
    abbreviations=frozenset({"dr", "e.g", "etc", "st", "u.s", "a", "3"}),
    starters=frozenset({"the", "so"}),
    contexts={"the": 46, "rare": 4, "name": 36, "begins": 16, "small": 64, "x": 2, "##number##": 8},
)


def oracle(parameters: Parameters) -> PunktSentenceTokenizer:
    """NLTK over the same parameters."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    theirs = PunktParameters()
    theirs.abbrev_types = set(parameters.abbreviations)
    theirs.sent_starters = set(parameters.starters)
    theirs.ortho_context = defaultdict(int, parameters.contexts)
    return PunktSentenceTokenizer(theirs)


@cache
def small_oracle() -> PunktSentenceTokenizer:
    return oracle(SMALL)


@cache
def english_oracle() -> PunktSentenceTokenizer:
    return oracle(ENGLISH)


WORDS = st.one_of(
    st.sampled_from(
        ["dr", "Dr", "e.g", "etc", "U.S", "u.s", "St", "Louis", "the", "The", "So", "rare", "Rare",
         "Name", "name", "Begins", "begins", "Small", "small", "x", "X", "J", "a", "A", "Mai",
         "co-dr", "pre-etc", "-dr", "dr-", "well-known", "É", "é", "ß", "İ", "Ǆ", "ǅ", "ΟΔΟΣ", "中",
         "3", "3.5", "-3", ",5", "1,000", "1-2", "3rd", "٣", "..", "...", "--", "---", ".", "@", "a@b",
         "#1", "`x", "&c", "_", "a_b", ",", "x,", "%", "$5", "(the", "[3", "{x", "?", "!", "]", ":"]
    ),
    st.from_regex(r"[(\[{]?[.,@#&`%+A-Za-z0-9éÉßαΩ中_-]{0,6}", fullmatch=True),
    # Without what NLTK 3.9 and 3.10 disagree about: see `test_a_fraction_is_no_initial`.
    st.text(
        st.characters(
            codec="utf-8", exclude_categories=["Cc", "Cf", "Cn", "Cs", "Zs", "Zl", "Zp", "No", "Mn", "Mc", "Me", "Pc", "So"],
            exclude_characters="\"'“”‘’«»",
        ),
        max_size=5,
    ),
)  # fmt: skip


@given(WORDS, WORDS)
def test_it_decides_as_nltk_does(word: str, following: str) -> None:
    """Over small parameters that every rule of the algorithm has a case in."""
    text = f"{word}. {following}"

    assert SMALL.has_break(text) == small_oracle().text_contains_sentbreak(text)


ENGLISH = punkt._english(punkt._shipped())


@given(
    st.sampled_from(sorted(ENGLISH.abbreviations)) | WORDS,
    st.sampled_from(sorted(ENGLISH.contexts)) | WORDS,
)
@example("0]0", "a")  # a bracket parts words
def test_it_decides_as_nltk_does_over_the_shipped_parameters(word: str, following: str) -> None:
    """Abbreviations and known words of English, small, capitalised and in capitals."""
    for first in (word, word.title(), word.upper()):
        for second in (following, following.title(), following.upper(), f"{following}."):
            text = f"{first}. {second}"
            assert ENGLISH.has_break(text) == english_oracle().text_contains_sentbreak(text)


def test_a_mark_ends_and_the_end_of_a_text_does_not() -> None:
    """A question mark without a word ends; where nothing follows, nothing does."""
    assert SMALL.has_break("? x")
    assert not SMALL.has_break("cat.")


def test_a_fraction_is_no_initial() -> None:
    """The one thing NLTK's releases differ in: lone characters that only one of them has as letters.

    3.10 asks `regex`: circled letters and combining marks are letters, "½" is none. 3.9 asks `re`:
    the other way round. Neither are letters here.
    """
    for character in "½²①Ⓐ\u0301\u203f":
        assert SMALL.has_break(f"{character}. name")
