"""Names whose words no document puts together: found, and only where the documents have others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded._companions import strangers
from rag_eval_integrations.judges.embedded._contradictions import contradictions
from rag_eval_integrations.judges.embedded._overlap import overlap
from rag_eval_integrations.judges.embedded._reading import Reader

HALL = [
    "In 1931 Ada Vantin opened the concert hall of Merrow.",
    "Its first conductor was Ivo Tomasi.",
    "Later the Merrow Bank bought the building.",
]


def found(response: str, documents: list[str] = HALL, question: str = "Who?") -> list[str]:
    o = overlap(question, [[text] for text in documents], [response])
    return [str(one) for one in strangers(o, 0, response, Reader(o, documents, question=question))]


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ("The concert hall of Merrow was opened by Ada Tomasi.", "name Tomasi (documents: Vantin)"),
        ("The concert hall of Merrow was opened by Ivo Vantin.", "name Vantin (documents: Tomasi)"),
        ("Ivo Vantin opened the concert hall of Merrow.", "name Vantin (documents: Tomasi)"),
        ("The building was later bought by the Tomasi Bank.", "name Tomasi (documents: Merrow)"),
    ],
)
def test_a_word_of_a_name_that_stands_beside_another_is_named(response: str, said: str) -> None:
    """The sentence need not have the document's order; the documents' word is told."""
    assert found(response) == [said]


@pytest.mark.parametrize(
    "response",
    [
        "The concert hall of Merrow was opened by Ada Vantin.",
        "The building was later bought by the Merrow Bank.",
        "Ada Vantin, Tomasi and the bank are named.",  # a mark stands between
    ],
)
def test_names_as_documents_have_them_are_no_strangers(response: str) -> None:
    """Neither what stands there, nor words that a mark separates."""
    assert found(response) == []


def test_a_name_may_leave_out_a_word() -> None:
    """A document's "Ada Maria Vantin" is Ada Vantin."""
    documents = ["In 1931 Ada Maria Vantin opened the concert hall of Merrow."]

    assert found("The concert hall of Merrow was opened by Ada Vantin in 1931.", documents) == []


def test_a_word_that_is_also_written_small_is_no_name() -> None:
    """The "Hall" of a heading may be any hall."""
    said = "The concert hall of Merrow was opened by Ada Tomasi."

    assert found(said, [HALL[0], "They met Tomasi."]) == ["name Tomasi (documents: Vantin)"]
    assert found(said, [HALL[0], "They met Tomasi.", "The tomasi is a dance."]) == []


def test_a_sentence_that_copies_little_is_left_alone() -> None:
    """Where most words are in no document, nothing is known of the place of a name."""
    said = "Nobody believed that Ada Tomasi painted eleven portraits of quarrelling violinists."

    assert found(said) == []


NAMES = st.sampled_from(["Ada", "Vantin", "Ivo", "Tomasi", "Merrow", "Bank", "hall", ",", "opened"])


def test_the_judge_says_it() -> None:
    """It is one of the contradictions of a response."""
    said = "The building was later bought by the Tomasi Bank."
    o = overlap("Who?", [[text] for text in HALL], [said])

    assert [str(one) for one in contradictions(o, [said], HALL)[0]] == [
        "name Tomasi (documents: Merrow)"
    ]


@given(st.lists(NAMES, min_size=1, max_size=8), st.lists(NAMES, min_size=1, max_size=8))
def test_no_sentence_of_a_document_is_contradicted(one: list[str], other: list[str]) -> None:
    """Whatever the other sentences say."""
    texts = [" ".join(one), " ".join(other)]

    assert found(texts[0], texts) == []
