"""Lists of sources at the end of an answer are no claims; what only looks like one is."""

from __future__ import annotations

from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.records import RagCall, Sentences, SentencizedCall
from rag_eval_integrations.sentences import Punkt, sentencize

SPLITTER = Punkt()
QUESTION = "When does the ferry leave?"


def keyed(response: str, question: str = QUESTION) -> SentencizedCall:
    return sentencize(RagCall(question, ["The ferry leaves at nine."], response), SPLITTER)


def claims(response: str, question: str = QUESTION) -> list[str]:
    return [sentence.text for sentence in keyed(response, question).response]


@pytest.mark.parametrize(
    "sources",
    [
        "\n\nSources:\n[1] timetable.pdf\n[2] boats.pdf",
        "\n\n**Sources:**\n- [1] Ferry timetable 2024\n- [2] Boats of the lake",
        "\n\n### References\n1. Ferry timetable\n2. Boats of the lake",
        "\n\nReferences\n----------\n* Ferry timetable",
        "\n---\nSources\n1. timetable.pdf\n\n2. boats.pdf",
        "\nSOURCES: timetable.pdf, boats.pdf",
        "\nSOURCES: 28-pl, 30-pl",
        "\nSOURCES:",
        " Sources: timetable.pdf, boats.pdf",
        " Sources: [1], [2]",
        " Sources:\n[1] timetable.pdf\n[2] boats.pdf",
        "\r\n\r\nSources:\r\n[1] timetable.pdf\r\n",
        "\nSource: Ferry timetable 2024, page 3",
        "\n\n1. https://ferry.example/timetable\n2. https://boats.example/",
        "\n\n[1]: https://ferry.example/timetable\n[2]: https://boats.example/",
        "\n\n[1] Ferry timetable – https://ferry.example/timetable",
        "\n\n[^1]: timetable.pdf, p. 3",
        "\n\nReferences:\n[1] Smith, J. (2001). The history of ferries. Journal of Boats, 3(2), 1–10.",
        "\nLearn more: [1] en.wikipedia.org/wiki/Ferry",
        "\n\nSources:\n* [Timetable](https://ferry.example/timetable)",
        "\n\nQuellen:\n[1] fahrplan.pdf",
        "\n参考文献：\n[1] timetable.pdf",
    ],
)
def test_a_list_of_sources_is_not_a_claim(sources: str) -> None:
    """Its sentences keep their keys, and are not judged."""
    answer = "The ferry leaves at nine. It carries forty passengers [1]."

    call = keyed(answer + sources)

    assert [s.text for s in call.response] == [
        "The ferry leaves at nine.",
        "It carries forty passengers [1].",
    ]
    listed = call.sentences.response[2:]
    assert "".join("".join(s.text.split()) for s in listed) == "".join(sources.split())
    assert call.sentences.not_claims == tuple(s.key for s in listed) != ()


@pytest.mark.parametrize(
    "answer",
    [
        "Sources of vitamin C: oranges, lemons",
        "Eat fruit. Sources of vitamin C: oranges.com, lemons.com",
        "Eat fruit. Sources: oranges, lemons",
        "Eat fruit.\nSources:\n- oranges\n- lemons",
        "Eat fruit.\nSources:\n1. Oranges\n2. Lemons",
        "It leaves at nine.\nSources:\nThe king painted it gold in 1850.",
        "It leaves at nine.\nSources: https://a.example says that the king painted it in 1850.",
        "It leaves at nine.\nSources: the king painted it gold.",
        "It was blocked.\nSource: 10.0.0.5\nDestination: 10.0.0.7",
        "It is booked.\nReference: ABC-123",
        "You can book here:\n1. https://a.example\n2. https://b.example",
        "You can book online.\nhttps://ferry.example/book",
        "It has steps [1].\n1. Press the button\n2. Wait",
        "1. https://a.example\n2. https://b.example",
        "It has two colours.\n[1] Red\n[2] Blue",
        "It leaves at nine [1].\n[1] The king painted it gold in 1850.",
        "Open sources: https://a.example",
        "The sources are unclear. References to kings are rare.",
    ],
)
def test_what_only_looks_like_a_list_of_sources_is_judged(answer: str) -> None:
    """An answer that lists fruit, steps or links is the answer, and sentences are claims."""
    call = keyed(answer)

    assert call.sentences.not_claims == ()
    assert call.response is call.sentences.response


def test_claims_around_and_within_a_list_are_judged() -> None:
    """A sentence behind a source on its line, one in the list, and one below it."""
    assert claims("At nine.\nSOURCES: timetable.pdf. It carries forty passengers.") == [
        "At nine.",
        "It carries forty passengers.",
    ]
    assert claims("At nine [1].\nSource: a.pdf\n\nIt is red.\nSource: b.pdf") == [
        "At nine [1].",
        "It is red.",
    ]
    assert claims(
        "At nine [1].\n\nSources:\n[1] timetable.pdf\n[2] The king painted it gold in 1850.\n\n"
        "Let me know if I can help!"
    ) == ["At nine [1].", "[2] The king painted it gold in 1850.", "Let me know if I can help!"]


def test_a_list_in_front_of_all_claims_is_judged() -> None:
    """Whoever begins with sources may answer with them."""
    assert claims("Sources: timetable.pdf\nThe ferry leaves at nine.") == [
        "Sources: timetable.pdf",
        "The ferry leaves at nine.",
    ]


@pytest.mark.parametrize(
    ("question", "answer", "judged"),
    [
        ("List the references.", "References:\n[1] Smith 2001\n[2] Jones 2002", 3),
        ("Which sources say so?", "Two do.\nSources:\n[1] a.pdf\n[2] b.pdf", 4),
        ("Which documents say so?", "Sources:\n[1] a.pdf", 2),
        ("Which documents do I need?", "A passport.\nSources:\n[1] a.pdf", 1),
        ("What is the source of the Nile?", "Lake Victoria.\nSources:\n[1] nile.pdf", 1),
        (QUESTION, "Sources:\n[1] a.pdf\n[2] b.pdf", 0),
    ],
)
def test_the_question_may_ask_for_the_list(question: str, answer: str, judged: int) -> None:
    """Then it is the answer; without a claim in front, also where files or links are asked for."""
    assert len(claims(answer, question)) == judged


def test_recorded_sentences_stay_as_they_are() -> None:
    """Neither split nor read again; those that are not claims are recorded with them."""
    call = RagCall(QUESTION, ["It leaves."], "At nine. [1]\nSources: a.pdf")
    split = sentencize(call, SPLITTER).sentences
    recorded = [split, Sentences(documents=split.documents, response=split.response)]

    again = [sentencize(call.model_copy(update={"sentences": s}), SPLITTER) for s in recorded]

    assert [one.sentences for one in again] == recorded
    assert [len(one.response) for one in again] == [1, 2]


class Lines:
    """A user's splitter: every paragraph is a sentence."""

    name = "paragraphs@1"

    def spans(self, text: str) -> list[tuple[int, int]]:
        spans, start = [], 0
        for part in text.split("\n\n"):
            if part.strip():
                spans.append((start, start + len(part)))
            start += len(part) + 2
        return spans


def test_the_sentences_of_a_users_splitter_are_read_and_not_changed() -> None:
    """A paragraph is no claim if all of it is a list; a marker stays where the splitter left it."""
    text = "It leaves. [1] It is red.\n\n[2]\n\nSources:\n[1] a.pdf\n[2] b.pdf"
    call = sentencize(RagCall(QUESTION, ["d"], text), Lines())

    assert [s.text for s in call.response] == ["It leaves. [1] It is red.", "[2]"]
    assert [s.text for s in call.sentences.response] == text.split("\n\n")


LINES = st.sampled_from(
    ["Sources:", "## References", "SOURCES: a.pdf", "Source: x", "[1] a.pdf", "1. https://a.example",
     "- oranges", "It is so.", "It is so [1]. Sources: b.pdf", "[2] It is red and big.", "---", "", " "]
)  # fmt: skip


@given(
    st.lists(LINES, max_size=12).map("\n".join) | st.text(ascii_letters + "[1]: .\n-", max_size=80)
)
def test_keys_are_of_the_response_and_a_claim_stands_in_front(answer: str) -> None:
    """In order, each once; either a claim is first, or nothing is one."""
    call = keyed(answer)
    keys = [sentence.key for sentence in call.sentences.response]
    left_out = call.sentences.not_claims

    assert list(left_out) == [key for key in keys if key in set(left_out)]
    assert [s.key for s in call.response] == [key for key in keys if key not in set(left_out)]
    assert not left_out or left_out == tuple(keys) or keys[0] not in left_out


@pytest.mark.parametrize(
    "line",
    ["Sources:\n", "[1] a.pdf\n", "Sources: a.b-", "1. a-a-", "[1] a.", "SOURCES: a, "],
)
def test_hostile_answers_come_to_an_end(line: str) -> None:
    """Each takes a fraction of a second; with anything quadratic the suite would stand still."""
    call = keyed("It is so.\n" + line * (400_000 // len(line)))

    assert call.response
