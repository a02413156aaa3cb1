"""EmbeddedJudge: bounds, determinism, consistent labels, languages it does not cover."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys

import pytest
from by_hand import keyed
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import RagEvaluator, diagnose
from rag_eval_integrations.judges import Judge
from rag_eval_integrations.judges.embedded import EmbeddedJudge, label_call
from rag_eval_integrations.judges.embedded._model import load_model
from rag_eval_integrations.judges.embedded.judge import WARNING
from rag_eval_integrations.records import Labels, RagCall, SentencizedCall, Turn

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


def call_of(
    documents: list[list[str]], response: list[str], question: str = QUESTION
) -> SentencizedCall:
    return keyed(documents, response, question=question)


def labels_of(call: SentencizedCall) -> Labels:
    labelling = label_call(call)
    assert labelling.labels is not None
    return labelling.labels


def check_consistency(labels: Labels) -> None:
    supported, relevant = labels.supported_probabilities, labels.relevant_probabilities
    assert supported is not None
    assert relevant is not None
    assert labels.utilized_probabilities is not None
    assert labels.estimates is not None
    for probabilities in (supported, relevant, labels.utilized_probabilities):
        assert all(0 <= p <= 1 for p in probabilities.values())
    unsupported = [e for e in labels.sentence_support_information if not e.fully_supported]
    assert labels.unsupported_response_sentence_keys == tuple(
        entry.response_sentence_key for entry in unsupported
    )
    assert labels.overall_supported is (not unsupported)
    if supported:
        adherent = labels.estimates["adherence"][0] >= load_model().thresholds["adherent"]
        assert bool(unsupported) is not adherent
        if unsupported:
            least = min(supported.values())
            assert least in {supported[entry.response_sentence_key] for entry in unsupported}
    assert len({e.response_sentence_key for e in labels.sentence_support_information}) == (
        len(supported)
    )
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
    labels = labelling.labels
    assert labels is not None
    check_consistency(labels)
    for found in (labels.relevant_probabilities or {}, labels.utilized_probabilities or {}):
        assert min(found["0a"], found["0b"]) > max(found["1a"], found["1b"])
    assert set(labels.sentence_support_information[0].supporting_sentence_keys) == {"0a", "0b"}


async def test_every_labelling_says_that_it_is_a_lexical_estimate() -> None:
    """The warning and the flag stand on scored and on unscored labellings."""
    for response in (["It was finished in 1889."], ["Der Turm wurde ja nicht in Paris gebaut."]):
        labelling = await EmbeddedJudge().label(call_of(DOCUMENTS, response))

        assert labelling.warnings == (WARNING,)
        assert labelling.flags == ("lexical_estimate",)


def test_invented_details_lower_support() -> None:
    """A sentence of words that no document holds is less supported than a copied one."""
    copied = labels_of(call_of(DOCUMENTS, ["It was finished in 1889."]))
    invented = labels_of(call_of(DOCUMENTS, ["Gustave built it for Napoleon in 1792 with steel."]))

    assert copied.supported_probabilities is not None
    assert invented.supported_probabilities is not None
    assert copied.supported_probabilities["a"] > invented.supported_probabilities["a"]
    assert invented.overall_supported is False


def test_a_reason_says_what_probability_was_needed() -> None:
    """An even chance is not enough, and 0.74 alone would seem to speak for the response."""
    call = RagCall(QUESTION, [" ".join(part) for part in DOCUMENTS], "Bring an umbrella to Rome.")
    score = RagEvaluator().evaluate_sync(call).scores["adherence"]

    assert score.value == 0
    assert (score.reason or "").endswith(f" {score.probability:.2f}; needs 0.77.")


def test_explanations_name_sentences_and_missing_words() -> None:
    """The reader sees which sentences matched and which words were not found."""
    labels = labels_of(call_of(DOCUMENTS, ["The Eiffel Tower is in Paris near Lyon."]))

    explanation = labels.sentence_support_information[0].explanation
    assert "0a" in explanation
    assert '"Lyon"' in explanation
    assert "0a (" in labels.relevance_explanation
    assert "a (" in labels.overall_supported_explanation


@pytest.mark.parametrize(
    ("documents", "response"),
    [
        ([], ["It was finished in 1889."]),
        ([[], []], ["Yes."]),
        (DOCUMENTS, []),
        ([], []),
        ([["Paris"]], ["Paris"]),
        ([["Paris"], ["—"]], ["?!"]),
        ([["the of and"]], ["it is"]),
    ],
)
def test_thin_calls_are_labelled(documents: list[list[str]], response: list[str]) -> None:
    """No documents, no response, one word, an answer of none: labels, in range, no exception."""
    labels = labels_of(call_of(documents, response))

    check_consistency(labels)
    assert len(labels.sentence_support_information) == len(response)


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
        labels_of(call_of(documents, response)).relevant_probabilities or {}
        for documents in (DOCUMENTS, DOCUMENTS[::-1])
    )

    for first, second in (("0a", "1a"), ("0b", "1b"), ("1a", "0a")):
        assert forwards[first] == pytest.approx(backwards[second], abs=0.1)


def test_labels_do_not_depend_on_the_process() -> None:
    """Bit for bit the same under another hash seed, and neither numpy nor nltk is loaded."""
    program = """
import json, sys
from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.records import SentencizedCall
call = SentencizedCall.model_validate_json(sys.stdin.read())
labels = label_call(call).labels
heavy = {"numpy", "sklearn", "nltk", "openai", "langchain_core", "llama_index"}
print(json.dumps([labels.model_dump(mode="json"), sorted(heavy & set(sys.modules))]))
"""
    call = call_of(DOCUMENTS, ["The tower in Paris, finished 1889, is 330 metres tall and blue."])
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=call.model_dump_json(),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )

    labels, heavy = json.loads(done.stdout)
    assert heavy == []
    assert labels == labels_of(call).model_dump(mode="json")


def test_probabilities_are_the_same_everywhere() -> None:
    """Pinned to the last decimal: no platform, Python version or hash seed may change one.

    A new version of the model changes them; then `EmbeddedJudge.version` has to change as well.
    """
    response = ["The tower in Paris was finished in 1899.", "Bananas contain no potassium."]
    labels = labels_of(call_of(DOCUMENTS, response))

    assert load_model().version == "9"
    assert labels.relevant_probabilities == PINNED_RELEVANT
    assert labels.utilized_probabilities == PINNED_UTILIZED
    assert labels.supported_probabilities == PINNED_SUPPORTED
    assert labels.estimates == PINNED_ESTIMATES
    alone = labels_of(call_of(DOCUMENTS, []))
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
    labels = labels_of(call_of([items], answers))

    assert len(labels.sentence_support_information) == sentences


@pytest.mark.timeout(120)
def test_one_endless_word_is_no_trouble() -> None:
    """A hundred thousand characters without a space, of letters, digits, marks: no long search."""
    for unit in ("a", "1", "1,", "not ", "( ", "é'"):
        labels = labels_of(call_of([[unit * 100_000 + "a"]], ["It is not " + unit * 30_000]))

        assert len(labels.sentence_support_information) == 1


ANY_TEXT = st.text(max_size=60) | st.text(alphabet="aé1,.'’ \u0000ß漢ﬁİ\u200b", max_size=60)


@given(
    st.lists(st.lists(ANY_TEXT, max_size=4), max_size=3),
    st.lists(ANY_TEXT, max_size=4),
    ANY_TEXT,
)
def test_any_text_gets_labels_in_range(
    documents: list[list[str]], response: list[str], question: str
) -> None:
    """Whatever the characters: unscored with a reason, or finite labels that agree."""
    labelling = label_call(call_of(documents, response, question))

    if labelling.labels is None:
        assert labelling.unscored in ("judge_incapable", "no_context")
        return
    check_consistency(labelling.labels)
    assert labelling.labels.estimates is not None
    for mean, error in labelling.labels.estimates.values():
        assert 0 <= mean <= 1
        assert error is not None
        assert math.isfinite(error)


TOURS = Turn(role="user", content="Do you have guided tours of the harbour?")
YES = Turn(role="assistant", content="Yes, there is a guided tour of the harbour every day.")
HELLO = Turn(role="user", content="Hello")
TOPIC = Turn(role="assistant", content="Welcome! Shall I tell you about the guided tours?")


def of_tours(question: str, history: tuple[Turn, ...]) -> RagCall:
    documents = ["A guided tour of the harbour lasts 45 minutes.", "Bicycles may be rented here."]
    return RagCall(question, documents, "The guided tour lasts 45 minutes.", history=history)


@pytest.mark.parametrize(
    "history",
    [
        (TOURS, YES),
        (HELLO, TOPIC),
        (
            TOURS,
            YES,
            Turn(role="user", content="And when?"),
            Turn(role="assistant", content="Ten."),
        ),
    ],
    ids=["the last turn", "the assistant's", "the last but one"],
)
async def test_a_follow_up_is_read_with_the_earlier_turns(history: tuple[Turn, ...]) -> None:
    """By itself it has no word of the perfect document, which is not irrelevant for that."""
    question = "How long does that take?"

    alone = await RagEvaluator().evaluate(of_tours(question, ()))
    asked = await RagEvaluator().evaluate(of_tours(question, history))

    before, after = (made.scores["context_relevance"].estimate for made in (alone, asked))
    assert before is not None
    assert after is not None
    assert before.value < after.value
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
