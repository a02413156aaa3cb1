"""The header of a document is evidence to the embedded judge, and has no key."""

from __future__ import annotations

from typing import Any

from rag_eval_integrations import Document, Evaluation, RagCall, RagEvaluator

EVALUATOR = RagEvaluator()
KETTLE = "The kettle boils its water in four minutes. Descale it with vinegar every three months."
TOASTER = "The toaster has two slots. Empty the crumb tray once a week."
TITLES = ("Title: kettle.pdf (2023 edition, page 0)", "Title: toaster.pdf (2021 edition, page 3)")
QUESTION = "How long does the kettle take to boil?"
ANSWER = (
    "According to the 2023 edition of kettle.pdf, page 0, the kettle boils water in four minutes."
)
REPORT = ("title: Annual report\npublished: 12 May 2022", "Sales rose by four percent.")


def evaluated(question: str, documents: list[Document], answer: str) -> Evaluation:
    return EVALUATOR.evaluate_sync(RagCall(question, documents, answer))


def headed(*headers: str | None) -> list[Document]:
    texts = (KETTLE, TOASTER)
    return [Document(text, header=header) for text, header in zip(texts, headers, strict=True)]


def test_a_sentence_that_rests_on_a_header_is_supported() -> None:
    """As if the header stood in the text; without it, title and edition are in no document."""
    inside = [
        Document(f"{title}\n\n{text}")
        for title, text in zip(TITLES, (KETTLE, TOASTER), strict=True)
    ]
    parts = {"none": headed(None, None), "header": headed(*TITLES), "inside": inside}
    evaluations = {name: evaluated(QUESTION, parts[name], ANSWER) for name in parts}
    labels: dict[str, Any] = {name: each.labels for name, each in evaluations.items()}

    adherence = {name: each.scores["adherence"].value for name, each in evaluations.items()}
    assert adherence == {"none": 0, "header": 1, "inside": 1}
    said = {name: each.supported_probabilities for name, each in labels.items()}
    assert said["header"] == said["inside"]


def test_a_header_has_no_key() -> None:
    """Sentences and keys are those of the call without it, and only explanations name it."""
    evaluation = evaluated(QUESTION, headed(*TITLES), ANSWER)
    labels: Any = evaluation.labels
    entry = labels.entry("a")

    assert evaluation.sentences == evaluated(QUESTION, headed(None, None), ANSWER).sentences
    assert [*labels.relevant_probabilities] == ["0a", "0b", "1a", "1b"]
    assert [*labels.utilized_probabilities] == ["0a", "0b", "1a", "1b"]
    assert entry.supporting_sentence_keys == ("0a",)
    assert "of its word weight is in the header of document 0, 0a; " in entry.explanation


def test_a_header_tells_what_its_document_is_about() -> None:
    """A question whose subject stands only there has a relevant sentence."""
    header, text = REPORT
    documents = [[Document(text, header=head)] for head in (None, header)]
    evaluations = [evaluated("What does the annual report say?", own, text) for own in documents]

    assert [each.scores["context_relevance"].value for each in evaluations] == [0, 1]


def test_another_detail_than_in_the_header_is_a_contradiction() -> None:
    """It is named like one of a sentence; the header's own detail passes."""
    header, text = REPORT
    documents = [Document(text, header=header)]
    answers = [f"The annual report was published on {day} May 2022." for day in (12, 13)]
    true, false = (evaluated("When was the report published?", documents, each) for each in answers)

    assert (true.scores["adherence"].value, false.scores["adherence"].value) == (1, 0)
    assert "13, where the document says 12" in (false.scores["adherence"].reason or "")


def test_an_endless_header_is_read_to_a_limit() -> None:
    """Of two megabytes, the first two thousand characters."""
    words = "The crane of the harbour stands still since the flood. "
    answers = ["The crane stands still since the flood.", "Ines Moreau wrote the report on cranes."]
    header = f"{words * 40_000}\nInes Moreau wrote the report on cranes."
    scores = [
        evaluated(QUESTION, headed(header, None), answer).scores["adherence"].value
        for answer in answers
    ]

    assert scores == [1, 0]
