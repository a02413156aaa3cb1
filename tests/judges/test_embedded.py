"""EmbeddedJudge: bounds, determinism, consistent labels, languages it does not cover."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
from typing import Any

import pytest
from by_hand import keyed
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import RagEvaluator, diagnose
from rag_eval_integrations.judges import Judge
from rag_eval_integrations.judges.embedded import EmbeddedJudge
from rag_eval_integrations.judges.embedded._model import load_model
from rag_eval_integrations.judges.embedded.judge import WARNING, label_call
from rag_eval_integrations.records import RagCall, Turn

from .conftest import embedded_labels

DOCUMENTS = [
    ["The Eiffel Tower is in Paris.", "It was finished in 1889.", "It is 330 metres tall."],
    ["Bananas are rich in potassium.", "They grow in warm countries."],
]
QUESTION = "When was the Eiffel Tower finished?"

PINNED_RELEVANT = {"0a": 0.650918, "0b": 0.249474, "0c": 0.02026, "1a": 0.583298, "1b": 0.035304}
PINNED_UTILIZED = {"0a": 0.567054, "0b": 0.124594, "0c": 0.003896, "1a": 0.728548, "1b": 0.01016}
PINNED_SUPPORTED = {"a": 0.633935, "b": 0.816526}
PINNED_ESTIMATES = {
    "context_relevance": (0.307851, 0.208604),
    "context_utilization@ragbench": (0.28685, 0.198077),
    "context_utilization@gpt-labeling": (0.775484, 0.275361),
    "completeness": (0.780407, 0.266584),
    "adherence": (0.76, 0.427083),
}
PINNED_ALONE = {"0a": 0.615954, "0b": 0.376473, "0c": 0.19543, "1a": 0.057342, "1b": 0.057342}


call_of = functools.partial(keyed, question=QUESTION)


def check_consistency(labels: Any) -> None:
    supported, relevant = labels.supported_probabilities, labels.relevant_probabilities
    for probabilities in (supported, relevant, labels.utilized_probabilities):
        assert all(0 <= p <= 1 for p in probabilities.values())
    unsupported = [e for e in labels.sentence_support_information if not e.fully_supported]
    keys = tuple(entry.response_sentence_key for entry in unsupported)
    assert labels.unsupported_response_sentence_keys == keys
    assert labels.overall_supported is (not unsupported)
    if supported:
        adherent = labels.estimates["adherence"][0] >= load_model().thresholds["adherent"]
        assert bool(unsupported) is not adherent
        if unsupported:
            least = min(supported.values())
            assert least in {supported[entry.response_sentence_key] for entry in unsupported}
    entries = {entry.response_sentence_key for entry in labels.sentence_support_information}
    assert len(entries) == len(supported)
    for entry in labels.sentence_support_information:
        assert entry.explanation.startswith("Lexical estimate")
        assert len(entry.supporting_sentence_keys) <= 4
        assert set(entry.supporting_sentence_keys) <= set(relevant)


async def test_a_call_gets_labels_probabilities_and_estimates() -> None:
    """The judge is a Judge; what the response copies is used, relevant and supported."""
    judge = EmbeddedJudge()
    call = call_of(DOCUMENTS, ["The Eiffel Tower in Paris was finished in 1889."])

    labelling = await judge.label(call)

    assert isinstance(judge, Judge)
    assert repr(judge) == "EmbeddedJudge()"
    assert (labelling.judge.name, labelling.judge.version) == ("embedded", judge.version)
    assert labelling.usage.requests == 0
    labels: Any = labelling.labels
    check_consistency(labels)
    for found in (labels.relevant_probabilities, labels.utilized_probabilities):
        assert min(found["0a"], found["0b"]) > max(found["1a"], found["1b"])
    assert set(labels.sentence_support_information[0].supporting_sentence_keys) == {"0a", "0b"}


async def test_every_labelling_says_that_it_is_a_lexical_estimate() -> None:
    """The warning and the flag stand on scored and on unscored labellings."""
    for response in (["It was finished in 1889."], ["Der Turm wurde ja nicht in Paris gebaut."]):
        labelling = await EmbeddedJudge().label(call_of(DOCUMENTS, response))

        assert labelling.warnings == (WARNING,)
        assert labelling.flags == ("lexical_estimate",)


def test_a_reason_says_what_probability_was_needed() -> None:
    """An even chance is not enough, and 0.74 alone would seem to speak for the response."""
    call = RagCall(QUESTION, [" ".join(part) for part in DOCUMENTS], "Bring an umbrella to Rome.")
    score = RagEvaluator().evaluate_sync(call).scores["adherence"]

    assert score.value == 0
    assert (score.reason or "").endswith(f" {score.probability:.2f}; needs 0.77.")


def test_explanations_name_sentences_and_missing_words() -> None:
    """The reader sees which sentences matched and which words were not found."""
    labels = embedded_labels(call_of(DOCUMENTS, ["The Eiffel Tower is in Paris near Lyon."]))

    explanation = labels.sentence_support_information[0].explanation
    for shown, said in (
        ("0a", explanation), ('"Lyon"', explanation), ("0a (", labels.relevance_explanation),
        ("a (", labels.overall_supported_explanation),
    ):  # fmt: skip
        assert shown in said


@pytest.mark.parametrize("text", ["。", '"""""', "…", "__", "🙂 ✓"])
def test_documents_without_a_readable_word_are_unscored(text: str) -> None:
    """Nothing in them supports anything, so adherence is not 1; one that can be read is enough."""
    unreadable, readable = (
        RagEvaluator().evaluate_sync(RagCall("How do I get there?", [text, other], "ferry"))
        for other in (text, "A ferry.")
    )

    assert {score.unscored for score in unreadable.scores.values()} == {"no_context"}
    assert "no document has a letter or digit" in str(unreadable.scores["adherence"].reason)
    assert readable.scores["adherence"].value == 1.0


def test_document_order_is_no_trouble() -> None:
    """Documents in another order: the same sentences stay the relevant ones."""
    response = ["The Eiffel Tower in Paris was finished in 1889."]
    forwards, backwards = (
        embedded_labels(call_of(documents, response)).relevant_probabilities
        for documents in (DOCUMENTS, DOCUMENTS[::-1])
    )

    for first, second in (("0a", "1a"), ("0b", "1b"), ("1a", "0a")):
        assert forwards[first] == pytest.approx(backwards[second], abs=0.1)


def test_labels_do_not_depend_on_the_process() -> None:
    """Bit for bit the same under another hash seed, and neither numpy nor nltk is loaded."""
    program = """
import json, sys
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import SentencizedCall
call = SentencizedCall.model_validate_json(sys.stdin.read())
labels = label_call(call).labels
heavy = {"numpy", "sklearn", "nltk", "openai", "langchain_core", "llama_index"}
print(json.dumps([labels.model_dump(mode="json"), sorted(heavy & set(sys.modules))]))
"""
    call = call_of(DOCUMENTS, ["The tower in Paris, finished 1889, is 330 metres tall and blue."])
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    command, given = [sys.executable, "-c", program], call.model_dump_json()
    printed = subprocess.check_output(command, input=given, text=True, env=environment)

    assert json.loads(printed) == [embedded_labels(call).model_dump(mode="json"), []]


def test_probabilities_are_the_same_everywhere() -> None:
    """Pinned to the last decimal: no platform, Python version or hash seed may change one.

    A new version of the model changes them; then `EmbeddedJudge.version` has to change as well.
    """
    response = ["The tower in Paris was finished in 1899.", "Bananas contain no potassium."]
    labels = embedded_labels(call_of(DOCUMENTS, response))

    assert load_model().version == "12"
    assert labels.relevant_probabilities == PINNED_RELEVANT
    assert labels.utilized_probabilities == PINNED_UTILIZED
    assert labels.supported_probabilities == PINNED_SUPPORTED
    assert labels.estimates == PINNED_ESTIMATES
    alone = embedded_labels(call_of(DOCUMENTS, []))
    assert alone.relevant_probabilities == PINNED_ALONE
    assert alone.estimates == {"context_relevance": (0.260508, 0.220077)}


async def test_one_judge_serves_many_tasks() -> None:
    """Concurrent calls, also big ones that go to a thread, give what single calls give."""
    judge = EmbeddedJudge()
    big = call_of([[f"Sentence {i} tells of thing {i % 7}." for i in range(4_000)]], ["Thing 3."])
    small = call_of(DOCUMENTS, ["It was finished in 1889."])

    labellings = await asyncio.gather(*(judge.label(call) for call in [small, big] * 3))

    assert labellings == [label_call(call) for call in [small, big]] * 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("documents", "sentences"), [(10_000, 3), (40, 1_000)])
def test_huge_calls_finish(documents: int, sentences: int) -> None:
    """Thousands of sentences, all with a common word, are labelled."""
    items = [f"Item {i} of the list costs {i % 97} euros in {i % 13}." for i in range(documents)]
    answers = [f"The item {i} costs {i % 89} euros in a shop." for i in range(sentences)]
    labels = embedded_labels(call_of([items], answers))

    assert len(labels.sentence_support_information) == sentences


@pytest.mark.timeout(120)
def test_one_endless_word_is_no_trouble() -> None:
    """A hundred thousand characters without a space, of letters, digits, marks: no long search."""
    for unit in ("a", "1", "1,", "not ", "( ", "é'"):
        labels = embedded_labels(call_of([[unit * 100_000 + "a"]], ["It is not " + unit * 30_000]))

        assert len(labels.sentence_support_information) == 1


ANY_TEXT = st.text(max_size=60) | st.text(alphabet="aé1,.'’ \u0000ß漢ﬁİ\u200b", max_size=60)


@given(
    st.lists(st.lists(ANY_TEXT, max_size=4), max_size=3), st.lists(ANY_TEXT, max_size=4), ANY_TEXT
)
def test_any_text_gets_labels_in_range(
    documents: list[list[str]], response: list[str], question: str
) -> None:
    """Whatever the characters: unscored with a reason, or finite labels that agree."""
    labelling = label_call(call_of(documents, response, question=question))

    labels: Any = labelling.labels
    if labels is None:
        assert labelling.unscored in ("judge_incapable", "no_context")
        return
    check_consistency(labels)
    for mean, error in labels.estimates.values():
        assert 0 <= mean <= 1
        assert 0 <= error < 1


TOURS = Turn(role="user", content="Do you have guided tours of the harbour?")
YES = Turn(role="assistant", content="Yes, there is a guided tour of the harbour every day.")
HELLO = Turn(role="user", content="Hello")
TOPIC = Turn(role="assistant", content="Welcome! Shall I tell you about the guided tours?")


def of_tours(question: str, history: tuple[Turn, ...]) -> RagCall:
    documents = ["A guided tour of the harbour lasts 45 minutes.", "Bicycles may be rented here."]
    return RagCall(question, documents, "The guided tour lasts 45 minutes.", history=history)


WHEN, TEN = Turn(role="user", content="And when?"), Turn(role="assistant", content="Ten.")


@pytest.mark.parametrize(
    "history",
    [(TOURS, YES), (HELLO, TOPIC), (TOURS, YES, WHEN, TEN)],
    ids=["the last turn", "the assistant's", "the last but one"],
)
async def test_a_follow_up_is_read_with_the_earlier_turns(history: tuple[Turn, ...]) -> None:
    """By itself it has no word of the perfect document, which is not irrelevant for that."""
    question = "How long does that take?"

    alone = await RagEvaluator().evaluate(of_tours(question, ()))
    asked = await RagEvaluator().evaluate(of_tours(question, history))

    before, after = (dict[str, Any](made.scores)["context_relevance"] for made in (alone, asked))
    assert before.estimate.value < after.estimate.value
    assert asked.scores["completeness"].value == 1.0
    assert [diagnosis.pattern for diagnosis in diagnose(asked.scores)] == ["healthy"]


async def test_a_question_that_says_enough_is_read_alone() -> None:
    """What was asked before is then another subject."""
    question = "How long does a guided tour of the old harbour last?"
    before = (Turn(role="user", content="Where may bicycles be rented?"),)

    alone = await RagEvaluator().evaluate(of_tours(question, ()))
    asked = await RagEvaluator().evaluate(of_tours(question, before))

    assert asked.labels == alone.labels
    assert asked.scores == alone.scores


# --- P(relevant): documents, question and response have to belong together


FERRY = [["The ferry to Kos leaves at nine.", "It takes four hours.", "Tickets cost 12 euros."]]
LEAVES = "When does the ferry to Kos leave?"


def relevant_of(question: str, *response: str) -> dict[str, float]:
    labels = embedded_labels(keyed(FERRY, list(response), question=question))
    return labels.relevant_probabilities  # type: ignore[no-any-return]


def test_nothing_is_relevant_to_a_foreign_question() -> None:
    """Also where the response copies the documents, and where there is none."""
    for response in (["The ferry to Kos leaves at nine."], []):
        foreign = relevant_of("What is the capital of France?", *response)

        assert max(foreign.values()) < 0.1
        assert relevant_of(LEAVES, *response)["0a"] > 0.8


def test_a_response_about_nothing_leaves_it_to_the_question() -> None:
    """A refusal, or a response about something else, is not the retriever's fault."""
    alone = relevant_of(LEAVES)
    for response in ("I don't know.", "Dogs bark.", "Yes."):
        assert relevant_of(LEAVES, response) == pytest.approx(alone, abs=0.02)


def test_a_response_of_which_no_word_is_found_is_not_adherent() -> None:
    """Short ones, too; "Yes." has no word to look for, and a refusal claims nothing."""
    for response in ("Paris.", "Midnight.", "Dogs bark.", "Yes.", "I don't know.", "At nine."):
        labels = embedded_labels(keyed(FERRY, [response], question=LEAVES))
        assert labels.overall_supported is (response in ("Yes.", "I don't know.", "At nine."))


@pytest.mark.parametrize("copies", [10, 300])
@pytest.mark.parametrize("one_document", [True, False])
def test_copies_of_an_answer_keep_their_weight(copies: int, one_document: bool) -> None:
    """A sentence that stands on every page is as relevant there as by itself."""
    documents = [FERRY[0] * copies] if one_document else FERRY * copies
    answer = ["The ferry to Kos leaves at nine."]
    labels = embedded_labels(keyed(documents, answer, question=LEAVES))

    for found in (labels.relevant_probabilities, labels.utilized_probabilities):
        assert found["0a"] > 0.6
    assert len(labels.all_relevant_sentence_keys) >= copies
