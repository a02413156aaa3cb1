"""Sentences that say the documents do not tell: statements about the context."""

from __future__ import annotations

import pytest

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.embedded._features import says_documents_do_not_tell
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
        "The article does not provide details on his death.",
        "The height is not mentioned in the given text.",
        "2. Unable to answer this based on the given passages, whoever asks.",
        "I don't know.",
        "I'm sorry, but I can't answer that question.",
        "Sorry, I can't help with that.",
        "I do not have enough information to answer this question.",
        "The context is silent on this point.",
        "N/A",
        "No answer.",
        "The question cannot be answered.",
    ],
)
def test_these_refuse_or_say_that_the_documents_do_not_tell(sentence: str) -> None:
    """In the words that models use for it; nothing is claimed."""
    assert says_documents_do_not_tell(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "This material does not contain asbestos.",
        "The text message was not found on his phone.",
        "The manual transmission does not include cruise control.",
        "The article of clothing is not included in the price.",
        "According to the information, the admiral did not find enough gold in the sunken "
        "cathedral of Geneva.",
        "In the document the king did not give up.",
        "The documents show that the king did not mention his son.",
        "The documents mention John, who did not answer.",
        "It was never mentioned in the context of war.",
        "No information was lost in the passage of time.",
        "The documents do not provide the price, which is 12 euros in summer.",
        "I don't know, the answer is 12 euros.",
        "I cannot help feeling that Paris is the capital.",
        "No answer is correct except Paris.",
        "Not available in Germany.",
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


@pytest.mark.parametrize(
    "response", ["The documents do not say which insurers pay.", "I don't know."]
)
async def test_a_refusing_answer_is_a_statement_about_the_context(response: str) -> None:
    """It is scored and adherent, though none of its words are in the documents."""
    documents = ["The rain gauge empties itself when its bucket tips."]
    call = RagCall("Which insurers pay for hail damage?", documents, response)

    evaluation = await RagEvaluator().evaluate(call)

    assert evaluation.scores["adherence"].value == 1.0
    assert evaluation.labels is not None
    assert "do not tell" in evaluation.labels.sentence_support_information[0].explanation


@pytest.mark.parametrize(
    "response", ["No, it is not available.", "No, it is silent.", "The answer is no."]
)
async def test_an_answer_of_no_is_no_refusal(response: str) -> None:
    """It claims something, which the documents have to support."""
    call = RagCall("Is it loud and available?", ["It is loud, and available in blue."], response)

    labels = (await RagEvaluator().evaluate(call)).labels

    assert labels is not None
    assert "do not tell" not in labels.sentence_support_information[0].explanation


def test_a_sentence_of_four_hundred_characters_may_still_be_one() -> None:
    """A longer one says more than that nothing is said."""
    said = "The manual does not say so"
    filled = said + " indeed" * 53 + "." * (400 - len(said) - 7 * 53)

    assert len(filled) == 400
    assert says_documents_do_not_tell(filled)
    assert not says_documents_do_not_tell(filled + ".")
