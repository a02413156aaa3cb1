"""Sentences that say the documents do not tell: statements about the context."""

from __future__ import annotations

import pytest

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.embedded.absence import says_documents_do_not_tell
from rag_eval_integrations.records import RagCall


@pytest.mark.parametrize(
    "sentence",
    [
        "The manual does not say which insurance companies compensate owners.",
        "I am sorry, but the documents do not mention it.",
        "The provided context doesn't contain information about prices.",
        "There is no information about the author in the given passages.",
        "It cannot be determined from the documents.",
        "I was unable to find an answer in the provided text.",
        "Based on the context, the height is not specified.",
    ],
)
def test_these_say_that_the_documents_do_not_tell(sentence: str) -> None:
    """In the words that models use for it."""
    assert says_documents_do_not_tell(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The ferry leaves at nine.",
        "The ferry does not leave on Sundays.",
        "The documents say that the ferry leaves at nine.",
        "The context does not mention it, but the tower is 300 metres high.",
        "The manual does not say so. " + "It goes on and on about other things. " * 20,
        "",
    ],
)
def test_these_say_something_else(sentence: str) -> None:
    """Negations of facts, and sentences that turn round to claim something."""
    assert not says_documents_do_not_tell(sentence)


async def test_a_refusing_answer_is_a_statement_about_the_context() -> None:
    """It is scored and adherent, though none of its words are in the documents."""
    call = RagCall(
        question="Which insurers pay for hail damage?",
        documents=["The rain gauge empties itself when its bucket tips."],
        response="The documents do not say which insurers pay.",
    )

    evaluation = await RagEvaluator().evaluate(call)

    assert evaluation.scores["adherence"].value == 1.0
    assert evaluation.labels is not None
    entry = evaluation.labels.entry("a")
    assert entry is not None
    assert "do not tell" in entry.explanation


def test_a_sentence_of_four_hundred_characters_may_still_be_one() -> None:
    """A longer one says more than that nothing is said."""
    said = "The manual does not say so"
    filled = said + " indeed" * 53 + "." * (400 - len(said) - 7 * 53)

    assert len(filled) == 400
    assert says_documents_do_not_tell(filled)
    assert not says_documents_do_not_tell(filled + ".")
