"""The default splitter: its promises, its data, and sentences marked by hand."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import fresh_python

from rag_eval_integrations.sentences import Punkt, Splitter, punkt

from .conftest import assert_whole, split

SPLITTER: Splitter = Punkt()


MARKED = [
    ["Dr. Smith met Mrs. Fox and Prof. Green.", "They talked."],
    ["Use fruit, e.g. apples, i.e. the usual.", "Done."],
    ["He joined the U.S. Army in 1990.", "He left."],
    ["He works in the U.S.", "The company grew."],
    ["See Fig. 3 for details.", "It shows Eq. 5 and pp. 3–7 of Vol. II."],
    ["Jones et al. (2019) found it.", "Smith et al. agree."],
    ["It is No. 5 on the list.", "Is it?", "No.", "It is not."],
    ["At 5 p.m.", "The train left at 6 a.m. from there."],
    ["Take 3.5 mg daily.", "Then stop."],
    ["J. K. Rowling wrote it.", "J.R.R. Tolkien did not."],
    ["Vitamin C.", "It helps.", "Grades A, B, and C.", "These are it."],
    ["See x.com/a?c=1 for more.", "Or http://a.b/c?d=e!", "Bye!"],
    ["Wait...", "What?", "Well... it works...", "Maybe."],
    ["Why the “Fight . . . back” sign?", "Nobody knows."],
    ["He left.”", "She stayed.", "(It rains.)", "We go."],
    ["“Why?” she asked.", '"Stop!" he said.', 'He said "Stop!"', "Then he left."],
    ["What?!", "No way.", "Really?!!", "Yes."],
    ["Bread, pears, etc.", "The rest.", "Apples, etc., are fine."],
    ["Parts (bolts, nuts, etc.) are sold.", "Bake for 30 min.", "Remove it."],
    ["Jan. 5 was cold.", "Sen. Smith met Gen. Lee in St. Louis."],
    ["It spread by Ae. aegypti.", "Roe v. Wade was decided c. 1973."],
    ["**Note.**", "This is bold.", "It is so.[3]", "Then it was.[4,5]", "End."],
    ["Is it ready?!", "Great! 🎉"],
    ["Yahoo! is a company.", "so what?", "who cares?", "ok"],
    ["Why is it so (Miller, “Is it?” (2017))?", "Unclear."],
    ["He lives on the Canada–U.S. border.", "She does not."],
    ["هل هذا سؤال؟", "نعم"],
    ["یہ جملہ ہے۔", "دوسرا"],
    ["Ով։", "Այո"],
    ["A\x00b.", "It is so.\u200b", "Then\u00a0it was.", "End."],
]


@pytest.mark.parametrize("expected", MARKED, ids=lambda sentences: sentences[0])
def test_sentences_marked_by_hand(expected: list[str]) -> None:
    """Abbreviations, initials, figures, quotes and ellipses are read as a person reads them."""
    assert expected == split(" ".join(expected), SPLITTER)


@pytest.mark.parametrize(
    "expected",
    [
        ["今天很好。", "真的吗？", "是！", "好"], ["你好。", "“我是。”", "他说。"],
        ["今日は晴れです．", "円周率は3．14です．", "終"], ["「行く。」", "次です。", "終"],
        ["「行く。」と言った。", "次"], ["यह वाक्य है।", "दूसरा॥", "तीसरा"], ["ဒါ။", "နောက်"],
    ],
)  # fmt: skip
def test_scripts_without_spaces_are_split_at_their_own_marks(expected: list[str]) -> None:
    """No white space is needed, and closing quotes stay with the sentence that ends."""
    assert expected == split("".join(expected), SPLITTER)


@pytest.mark.parametrize("text", ["3．14", "12։30", "x.com/a?c=1", "3.5 mg", "好…好", "?a"])
def test_nothing_ends_inside_numbers_and_addresses(text: str) -> None:
    """Nor at a mark that asks for white space where there is none."""
    assert split(text, SPLITTER) == [text]


@pytest.mark.parametrize(
    "expected",
    [
        ["# Title. Here", "One. Two."],
        ["| 1. a | b. C |", "| 2. d | e. F |"],
        ["```\nA. B. C.\n```", "It ran."],
        ["- One.", "- Two."],
        ["1. Press it.", "2. Wait."],
        ["Overview of the\nGreat Lakes.", "Next."],
    ],
    ids=lambda sentences: sentences[0],
)
def test_blocks_are_neither_glued_nor_shredded(expected: list[str]) -> None:
    """A heading, a row and a fenced block are one sentence each, without a full stop too."""
    sentences = [sentence for block in expected for sentence in split(block, SPLITTER)]

    assert sentences == split("\n".join(expected), SPLITTER)
    assert expected[0] == sentences[0]


def test_a_list_item_may_hold_several_sentences() -> None:
    """Its marker belongs to the first of them, and is no sentence by itself."""
    several = ["1. Press it.", "It starts.", "2. Wait."]
    assert split("1. Press it. It starts.\n2. Wait.", SPLITTER) == several
    assert split("1. Press it. 2. Wait.", SPLITTER) == ["1. Press it.", "2. Wait."]


MARKS = " \n\r\t\x0c\x85\u2028\u00a0\u200b\u200f\ufeff.?!…\"')”“(|>-#`*1aB好。؟\x00\ud800"


@given(st.text(st.characters()) | st.text(MARKS, max_size=60))  # lone surrogates too
def test_every_character_lies_in_exactly_one_sentence(text: str) -> None:
    """Spans are in order, trimmed, not empty, and leave only white space between them."""
    assert_whole(text, SPLITTER.spans(text))
    assert SPLITTER.spans(text) == Punkt().spans(text)


def test_many_threads_get_the_same_sentences() -> None:
    """One splitter may be shared."""
    text = "Dr. A. B. Smith et al. (2019) met at 5 p.m. in St. Louis. They left, etc. It was. " * 20
    with ThreadPoolExecutor(8) as pool:
        spans = [*pool.map(lambda _: SPLITTER.spans(text), range(40))]
    assert spans == [Punkt().spans(text)] * 40


@pytest.mark.parametrize(
    "text",
    [
        "? " * 25_000, ". " * 30_000, "word " * 100_000, "x" * 500_000, "a. ) " * 20_000,
        "。」" * 40_000, "a.[" + "1" * 200_000, "x" + "\n" * 50_000, ">\n" * 20_000,
        "```\n~~~\n" * 10_000, "|-" * 200_000 + "x", "word word\n" * 20_000, f"{'word ' * 5_000}\n" * 3,
    ],
    ids=["marks", "spaced dots", "one line", "one word", "closing", "wide", "reference", "newlines",
         "quotes", "fences", "bars", "lines", "wide lines"],
)  # fmt: skip
def test_hostile_texts_come_to_an_end(text: str) -> None:
    """Each takes a fraction of a second; with anything quadratic the suite would stand still."""
    spans = SPLITTER.spans(text)

    assert spans[0][0] == len(text) - len(text.lstrip())
    assert spans[-1][1] == len(text.rstrip())


def test_the_name_says_language_data_and_version() -> None:
    """It is stamped on records, and two languages never share one."""
    assert Punkt().name == "punkt-en@2"
    assert len({Punkt(), Punkt("english"), pickle.loads(pickle.dumps(SPLITTER))}) == 1


def test_the_shipped_data_names_its_version_and_sources() -> None:
    """The version in the file is the one in the name; licences are recorded; the file is small."""
    path = Path(punkt.__file__).with_name("punkt_english.json")
    shipped = json.loads(path.read_text(encoding="utf-8"))

    assert f"punkt-en@{shipped['version']}" == Punkt().name
    licences = {source["name"]: source["licence"] for source in shipped["derived_from"]}
    assert licences == {"RAGBench": "CC-BY-4.0", "RAGTruth": "MIT"}
    assert path.stat().st_size < 200_000


def test_splitting_does_not_import_nltk() -> None:
    """It costs seconds and 100,000 objects; abbreviations, numbers and initials need none of it."""
    code = (
        "import sys; from rag_eval_integrations.sentences.punkt import Punkt\n"
        "text = 'Dr. A. B. Fox paid 5. He left at 6 p.m. in the U.S. Army... So did I, etc. It was.'\n"
        "assert len(Punkt().spans(text)) > 2\n"
        "assert not {'nltk', 'llama_index'} & set(sys.modules)"
    )

    fresh_python(code, check=True)
