"""Stems, overlap, features, estimates and refusals, as the embedded judge reads them."""

from __future__ import annotations

import json
import math
from string import ascii_lowercase
from typing import Any

import pytest
from by_hand import keyed

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.embedded import _overlap as overlap_module
from rag_eval_integrations.judges.embedded._features import (
    DOCUMENT_FEATURES,
    RESPONSE_FEATURES,
    call_features,
    says_documents_do_not_tell,
)
from rag_eval_integrations.judges.embedded._model import ADHERENCE_FEATURES, MODEL_FILE, load_model
from rag_eval_integrations.judges.embedded._overlap import overlap
from rag_eval_integrations.judges.embedded._words import stem
from rag_eval_integrations.judges.embedded.judge import _likeliest, explain_support
from rag_eval_integrations.records import RagCall

from .conftest import embedded_labels


def test_forms_of_a_word_have_one_stem() -> None:
    """Plural, tense, adverb, possessive, thousands marks, number words make no two words."""
    one = "tablets batteries charging stopped installed safely Paris's 1,250 classes don’t two"
    other = "tablet battery charged stop install safe Paris 1250 class don't 2"

    assert [*map(stem, one.split())] == [*map(stem, other.split())]
    for word, beginning in (("bus", "bu"), ("1.5", "15"), ("thing", "th")):  # no ending
        assert stem(word) != stem(beginning)


def test_above_the_budget_the_rarest_words_still_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A common word stops making pairs first."""
    documents = [[f"common word{i}" for i in range(50)]]
    monkeypatch.setattr(overlap_module, "PAIR_BUDGET", 10)

    o = overlap("", documents, ["common word7"])

    assert [match.sentence for match in o.matches[0]] == [7]


def test_supporting_sentences_each_add_words() -> None:
    """At most four, the one that adds most first, the earlier of two that add the same."""
    rows = [
        ("red green blue|red green|yellow", "red green blue yellow", ("0a", "0c")),
        ("red green blue|red green|blue", "red green blue pink", ("0a",)),  # adds nothing
        ("red green blue|red green yellow|red green yellow", "red green blue yellow", ("0a", "0b")),
        ("red|green|blue|pink|grey", "red green blue pink grey", ("0a", "0b", "0c", "0d")),
        ("red|one|two", "red green blue pink grey white black", ()),  # less than a fifth
    ]

    for documents, response, supporting in rows:
        labels = embedded_labels(keyed([documents.split("|")], [response], question="q"))
        [entry] = labels.sentence_support_information
        assert (documents, entry.supporting_sentence_keys) == (documents, supporting)


def test_the_model_file_fits_the_features() -> None:
    """Names and order are those of the code; the file is small and says what it is made from."""
    model = load_model()
    of_documents = (model.relevant, model.utilized, model.relevant_alone)

    assert {part.names for part in of_documents} == {DOCUMENT_FEATURES}
    assert model.supported.names == RESPONSE_FEATURES
    assert model.adherent.names == ADHERENCE_FEATURES
    assert model.relevant.bounds == model.utilized.bounds  # both are clipped at once
    assert MODEL_FILE.stat().st_size < 200_000
    assert all(weight > 0 for weight in model.adherent.weights)
    content = json.loads(MODEL_FILE.read_text())
    assert "RAGTruth" in content["data"]
    assert "CC-BY-4.0" in content["licence"]
    assert all(" " not in word for word in (*model.present, *model.new))


def test_weights_add_up_exactly() -> None:
    """The order of words changes no bit: sums of floats differ between Python versions."""
    o = overlap("", [[f"word{i} word{i % 7} word{i % 3}" for i in range(40)]], ["word1 word2"])

    weights = [*o.idf.values(), *(w * w for w in o.idf.values())]
    assert sum(weights) == sum(reversed(weights)) == math.fsum(weights)


def test_explanations_show_five_and_count_the_rest() -> None:
    """Of five all are shown, of more the others are counted."""
    shown = '; in no document: "Red", "green", "blue", "pink", "grey"'
    for response, end in (
        ("Red green blue pink grey.", f"{shown}."),
        ("Red green blue pink grey white black.", f"{shown} and 2 more."),
        ("x" * 41, f'"{"x" * 39}…".'),
    ):
        features = call_features("", [[]], [response])
        assert explain_support(features, 0, response, [], 0.5).endswith(end)


# --- Estimates of scores, and which sentences are labelled


def test_a_retrieval_alone_is_judged_by_the_question() -> None:
    """What shares the question's words is relevant; nothing is used; only relevance is estimated."""
    documents = [["The ferry to Kos leaves at nine."], ["Bananas are rich in potassium."]]
    labels = embedded_labels(keyed(documents, [], question="When does the ferry to Kos leave?"))

    relevant = labels.relevant_probabilities
    assert relevant["0a"] > 2 * relevant["1a"]
    assert labels.utilized_probabilities == {"0a": 0.0, "1a": 0.0}
    assert labels.all_utilized_sentence_keys == ()
    assert set(labels.estimates) == {"context_relevance"}


def test_labels_are_the_likeliest_sentences() -> None:
    """As many as half of those over the threshold and half of the expected number; in order."""
    likely: list[tuple[list[float], str]] = [
        ([0.75, 0.2, 0.2, 0.2, 0.2], "a"),  # one over the threshold, 1.55 expected
        ([0.3, 0.3, 0.3], ""),  # none over it, .9 expected
        ([0.3, 0.34, 0.3, 0.3], "b"),  # none over it, 1.24 expected
        ([0.65, 0.62, 0.1], "ab"),
        ([0.14] * 10, ""),  # unlikely, each of them
        ([], ""),
    ]

    chosen = [
        (ps, "".join(_likeliest([*ascii_lowercase[: len(ps)]], ps, 0.35))) for ps, _ in likely
    ]
    assert chosen == likely


# --- Sentences that say the documents do not tell


SILENT = (
    "The manual does not say which insurance companies compensate owners.",
    "I am sorry, but the documents do not mention it.",
    "The provided context doesn't contain information about prices.",
    "There is no information about the author in the given passages.",
    "It cannot be determined from the documents.",
    "I was unable to find an answer in the provided text.",
    "The article does not provide details on his death.",
    "The height is not mentioned in the given text.",
    "2. Unable to answer this based on the given passages, whoever asks.", "I don't know.",
    "I'm sorry, but I can't answer that question.", "Sorry, I can't help with that.",
    "I do not have enough information to answer this question.",
    "The context is silent on this point.", "N/A", "No answer.", "The question cannot be answered.",
)  # fmt: skip
CLAIMS = (
    "This material does not contain asbestos.", "The text message was not found on his phone.",
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
    "I don't know, the answer is 12 euros.", "I cannot help feeling that Paris is the capital.",
    "No answer is correct except Paris.", "Not available in Germany.",
    "The ferry does not leave on Sundays.", "The documents say that the ferry leaves at nine.",
    "The context does not mention it, but the tower is 300 metres high.", "",
)  # fmt: skip


def test_a_refusal_is_distinguished_from_a_claim() -> None:
    """In the words of models; a negated fact is a claim, and what turns round to claim something."""
    assert [text for text in SILENT if not says_documents_do_not_tell(text)] == []
    assert [text for text in CLAIMS if says_documents_do_not_tell(text)] == []


@pytest.mark.parametrize(
    ("response", "refuses"),
    [
        ("The documents do not say which insurers pay.", True),
        ("I don't know.", True),
        ("No, it is not available.", False),
        ("No, it is silent.", False),
        ("The answer is no.", False),
        ("Based on the documents, the answer is no.", False),
    ],
)
async def test_a_refusing_answer_is_a_statement_about_the_context(
    response: str, refuses: bool
) -> None:
    """It is adherent, though none of its words are in the documents; an answer of no is a claim."""
    call = RagCall("Is it loud and available?", ["It is loud, and available in blue."], response)

    evaluation: Any = await RagEvaluator().evaluate(call)

    said = evaluation.labels.sentence_support_information[0].explanation
    assert ("do not tell" in said) is refuses
    assert not refuses or evaluation.scores["adherence"].value == 1.0


def test_a_sentence_of_four_hundred_characters_may_still_be_one() -> None:
    """A longer one says more than that nothing is said."""
    said = "The manual does not say so"
    filled = said + " indeed" * 53 + "." * (400 - len(said) - 7 * 53)

    assert says_documents_do_not_tell(filled)
    assert not says_documents_do_not_tell(filled + ".")
