"""Citation markers behind a sentence belong to it; nothing else that looks like one does."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.sentences import Punkt
from rag_eval_integrations.sentences._markers import joined, without_markers

from .conftest import assert_whole, split

SPLITTER = Punkt()

MARKERS = [
    "[1]", "[1, 3]", "[1,3]", "[1–3]", "[1][2]", "[1] [2]", "[12].", "[^2]", "[^note]", "[[1]]",
    "[1](https://ferry.example/a)", "¹", "¹²", "²,³", "【1】", "【4:0†source】", "<sup>1</sup>",
    "(Source: timetable.pdf)", "(Sources: timetable.pdf; boats.pdf)", "(source: Port Authority, p. 3)",
    "[Source: Smith et al. Timetable]", "(Quelle: fahrplan.pdf)", "(timetable.pdf)",
    "(see timetable.pdf)", "(boats.pdf, p. 3)", "[doc1]", "[Document 2, 3]", "(https://ferry.example/a)",
]  # fmt: skip


@pytest.mark.parametrize("gap", ["", " "], ids=["attached", "apart"])
@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_behind_a_full_stop_belongs_to_the_sentence_in_front(
    marker: str, gap: str
) -> None:
    """Attached to the full stop or behind a space, inside a text and at its end."""
    expected = [
        f"The ferry leaves at nine.{gap}{marker}",
        f"A king painted it in 1850.{gap}{marker}",
    ]

    assert split(" ".join(expected), SPLITTER) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["It leaves at 9 p.m. [1]", "A king painted it. [2]"],
        ["He works in the U.S. [1]", "The company grew."],
        ["Is it so? [1]", "Yes! [2]", "“It is.” [3]", "“It was.”¹", "End."],
        ["At 9.30. [1]", "It is v1.2. [2]", "Then v2."],
        ["it leaves at nine. [1]", "it carries forty. [2]"],
        ["- One. [1]", "- Two. [2]"],
    ],
    ids=lambda sentences: sentences[0],
)
def test_the_words_around_a_marker_decide(expected: list[str]) -> None:
    """As they do without it, also behind abbreviations."""
    joint = "\n" if expected[0].startswith("-") else " "
    assert split(joint.join(expected), SPLITTER) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["Use array[1].", "Then read b[2]."],
        ["He wrote it [sic].", "Then he left."],
        ["See (Source: timetable.pdf) for more.", "It is so."],
        ["e.g. [1] and so on.", "Mr. [2] Smith left."],
        ["[1] A footnote begins.", "It goes on."],
        ["It is known.", "[3] shows that ferries are slow."],
        ["It is known.", "[sic] is Latin."],
        ["It was in 2019.", "(It was cold.)", "We left."],
    ],
    ids=lambda sentences: sentences[0],
)
def test_what_only_looks_like_a_marker_stays(expected: list[str]) -> None:
    """Indexes, a marker that is the subject of its sentence, and remarks in brackets."""
    assert split(" ".join(expected), SPLITTER) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["It leaves at nine.\n[1]", "It carries forty.\n(Source: boats.pdf)"],
        ["It leaves at nine.\n\n[1]\n[2]"],
        ["It leaves at nine.", "[1] timetable.pdf", "[2] boats.pdf"],
        ["It leaves at nine. [1]", "[2] boats.pdf"],
        ["The timetable", "[1]", "The boats"],
        ["[1]\nThe ferry leaves.", "It carries forty."],
    ],
    ids=lambda sentences: sentences[0],
)
def test_a_marker_on_a_line_of_its_own(expected: list[str]) -> None:
    """It is joined behind a full stop; one that a source follows begins the next line."""
    assert split("\n".join(expected), SPLITTER) == expected


PIECES = st.sampled_from(
    [*MARKERS, "Nine", "nine", "U.S", "1850", "好", ".", "?", "。", "…", " ", "\n", "\n\n", "[", "(",
     ")", "]", "【", "a", "- ", "“", "”", "x.pdf", "Source: "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join) | st.text("[]()【】¹²^1,. \nAa", max_size=60))
def test_joining_loses_nothing_and_is_done_once(text: str) -> None:
    """Every character lies in exactly one sentence, and joining again changes nothing."""
    spans = SPLITTER.spans(text)

    assert_whole(text, spans)
    assert list(joined(text, spans)) == spans


@given(st.lists(PIECES, max_size=30).map("".join), st.data())
def test_the_sentences_of_any_splitter_can_be_joined(text: str, data: st.DataObject) -> None:
    """Also of one that cuts through words and markers."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    cuts = data.draw(st.lists(st.sampled_from(words), unique=True).map(sorted)) if words else []
    stops = [*[start for start, _ in cuts if start != words[0][0]], len(text)]
    begins = [0, *stops[:-1]]
    parts = [(a, b) for a, b in zip(begins, stops, strict=True) if text[a:b].strip()]
    spans = [(b - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in parts]

    once = list(joined(text, spans))

    assert_whole(text, once)
    assert list(joined(text, once)) == once
    assert len(once) <= len(spans)


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("The ferry leaves at nine. (Source: timetable.pdf)", "The ferry leaves at nine."),
        ("The ferry leaves at nine [1, 3].", "The ferry leaves at nine ."),
        ("The ferry¹ leaves at nine.²", "The ferry leaves at nine."),
        ("It has 30 km² and 10⁶ trees.", "It has 30 km² and 10⁶ trees."),
        ("[1]", "[1]"),
        ("It leaves at nine (Passage 1).", "It leaves at nine (Passage 1)."),
        ("It [sic] leaves at nine (or ten).", "It [sic] leaves at nine (or ten)."),
    ],
)
def test_a_claim_is_read_without_its_markers(sentence: str, claim: str) -> None:
    """Exponents stay, and so does a sentence of markers alone."""
    assert " ".join(without_markers(sentence).split()) == claim


def claims_of(data: Path) -> list[tuple[str, list[str]]]:
    """Return answers of ExpertQA, each with its claims, without white space."""
    path = data / "answers" / "expertqa.jsonl.gz"
    if not path.exists():
        pytest.skip("needs ExpertQA in ../shared/data/answers")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows: list[Any] = [json.loads(line) for line in lines]
    return [
        (row["answer"], ["".join(claim["claim_string"].split()) for claim in row["claims"]])
        for row in rows
    ]


def test_no_claim_of_expertqa_is_cut_at_its_marker(data: Path) -> None:
    """Of 1,464 claims that experts judged, 1,217 have markers."""
    cut, seen, marked = [], 0, 0
    for answer, claims in claims_of(data):
        text, begins, place = "".join(answer.split()), set(), 0
        for sentence in split(answer, SPLITTER):
            begins.add(place)
            place += len("".join(sentence.split()))
        place = 0
        for claim in claims:
            place = text.find(claim, place) if claim in text[place:] else text.index(claim)
            markers = list(re.finditer(r"\[\d+(?:,\d+)*\]", claim))
            seen, marked = seen + 1, marked + bool(markers)
            if any(begins & {*range(place + m.start(), place + m.end())} for m in markers):
                cut.append(claim)
            place += len(claim)

    assert (cut, seen, marked) == ([], 1464, 1217)
