"""What stands in no document is not supported, however much of the rest is."""

from __future__ import annotations

import pytest

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import RagCall

DOCUMENTS = ["The Eiffel Tower is in Paris. It was finished in 1889.", "It is 330 metres tall."]


def supported(response: str, question: str = "When was it finished?") -> list[bool | None]:
    labels = RagEvaluator().evaluate_sync(RagCall(question, DOCUMENTS, response)).labels
    assert labels is not None
    return [one.fully_supported for one in labels.sentence_support_information]


@pytest.mark.parametrize(
    "response",
    ["The tower in Paris was finished in 1899.", "The tower in Paris cost 7,800,000 francs."],
)
def test_a_figure_that_is_nowhere_is_not_supported(response: str) -> None:
    """Also where no single detail of a document stands in its place."""
    assert supported(response) == [False]


@pytest.mark.parametrize(
    "response",
    [
        "It is 330 metres tall (1083 ft).",
        "The tower was finished in 1889.",
        "It is 330 m tall.",
    ],
)
def test_conversions_and_figures_of_the_documents_are_supported(response: str) -> None:
    """A number in parentheses mostly says the one before it again."""
    assert supported(response) == [True]


def test_a_figure_of_the_question_is_not_new() -> None:
    """The user said it."""
    assert supported("In 2024 it is 330 metres tall.", "How tall is it in 2024?") == [True]


def test_a_sentence_without_a_known_word_is_not_supported() -> None:
    """Beside one that is; the words that introduce others are no statement."""
    assert supported("It was finished in 1889. They eat honey.") == [True, False]
    assert supported("Key points:\n\nIt was finished in 1889.") == [True, True]
