"""Which calls the embedded judge leaves unscored: text that is clearly not English."""

from __future__ import annotations

import itertools
import json
import zlib
from pathlib import Path
from statistics import mean

import pytest
from by_hand import keyed

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.judges.embedded._language import SAMPLED_CHARACTERS, foreign, not_covered
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import RagCall

from .conftest import rows_of

FOREIGN = [
    ("Die Hauptstadt von Frankreich ist Paris.", "German"),
    ("Quelle est la capitale de la France ?", "French"),
    ("La capital de Francia es París.", "Spanish"),
    ("La capitale della Francia è Parigi.", "Italian"),
    ("A capital da França é Paris.", "Portuguese"),
    ("De hoofdstad van Nederland is niet Den Haag maar Amsterdam.", "Dutch"),
    ("Stolicą Francji jest Paryż, a nie Lyon.", "Polish"),
    ("Huvudstaden i Frankrike är Paris och det är en stor stad.", "Swedish"),
    ("Ankara büyük bir şehir ve Türkiye için çok önemli.", "Turkish"),
    ("巴黎是法国的首都。", "Chinese or Japanese"),
    ("東京は日本の首都です。", "Chinese or Japanese"),
    ("서울은 대한민국의 수도이다.", "Korean"),
    ("Столица Франции - Париж.", "Cyrillic"),
    ("Η Αθήνα είναι η πρωτεύουσα.", "Greek"),
    ("باريس هي عاصمة فرنسا", "Arabic"),
    ("पेरिस फ्रांस की राजधानी है।", "Devanagari"),
    ("ひらがなのぶんしょう", "Japanese"),
    ("ｶﾀｶﾅﾉﾌﾞﾝｼｮｳ", "Japanese"),
    ("ᚠᚢᚦᚨᚱᚲᚷ", "not English"),
    ("Ｄａｓ ｗｉｒｄ ｎｉｃｈｔ ｇｕｔ", "German"),
]
NOT_FOREIGN = [
    "", "42", "12.5 %, 13.1 %, 2024-01-02", "Paris", "Yes.", "α + β = γ²",
    "Who wrote Les Misérables?", "Leonardo da Vinci painted the Mona Lisa.",
    "Ludwig van Beethoven and Juan de la Cruz met.", "La Casa de Papel de Alex Pina",
    "Der Spiegel is a magazine.", "The word 水 means water and 山 means mountain.",
    "Press MENU > Settings > Wi-Fi > Advanced > Reset.", "w1 w2 w3 w4", "1w 2w 3w 4o", "w1 w2 w3 é4 e5 o6",
    "Ｔｈｅ ｆｅｒｒｙ ｉｓ ｌａｔｅ",
]  # fmt: skip


@pytest.mark.parametrize(("text", "language"), FOREIGN)
def test_a_sentence_in_another_language_is_seen(text: str, language: str) -> None:
    """One sentence is enough, by script or by function words; letters of full width are letters."""
    assert foreign(text) == language


@pytest.mark.parametrize("text", NOT_FOREIGN)
def test_names_numbers_and_short_text_have_the_benefit_of_the_doubt(text: str) -> None:
    """One foreign name, formula or title makes no text foreign."""
    assert foreign(text) is None


SHORT = json.loads(Path(__file__).with_name("language_cases.json").read_text("utf-8"))


@pytest.mark.parametrize("remainder", [0, 1], ids=["looked-at", "kept-aside"])
async def test_short_calls_are_scored_in_english_only(remainder: int) -> None:
    """At least .9 of those in another language are unscored, and .85 of English ones scored.

    The calls are ours; half of them, by their checksum, may be looked at while rules are changed.
    """
    evaluator = RagEvaluator()
    unscored: dict[str, list[bool]] = {}
    for kind, calls in SHORT.items():
        for question, documents, response in calls:
            if zlib.crc32((question + response).encode()) % 2 == remainder:
                evaluation = await evaluator.evaluate(RagCall(question, documents, response))
                found = {score.unscored for score in evaluation.scores.values()}
                assert found <= {None, "judge_incapable"}
                unscored.setdefault(kind, []).append(found == {"judge_incapable"})

    assert len(unscored["foreign"]) >= 30
    assert mean(unscored["foreign"]) >= 0.9
    assert mean(unscored["english"]) <= 0.15


@pytest.mark.parametrize(
    ("question", "response", "code"),
    [
        ("Price?", "12 euros.", None),
        ("Price?", "10 µg.", None),
        ("Wie viel?", "It is.", "judge_incapable"),
        ("When?", "Sie fährt um neun ab.", "judge_incapable"),
        ("Когда?", "9:00", "judge_incapable"),
    ],
)
async def test_the_answer_or_the_question_alone_is_in_another_language(
    question: str, response: str, code: str | None
) -> None:
    """Over English documents; a title that a document has is no other language, nor is a unit."""
    documents = ["The ferry leaves at nine.", "A ticket is 12 euros.", "Wie viel? is a game."]

    evaluation = await RagEvaluator().evaluate(RagCall(question, documents, response))

    assert {score.unscored for score in evaluation.scores.values()} == {code}


@pytest.mark.parametrize("part", ["question", "response", "documents"])
def test_each_part_counts(part: str) -> None:
    """English words cannot be compared with German ones, whichever side they are on."""
    english = "The capital of France is Paris, and it has two million inhabitants."
    german = "Die Hauptstadt von Frankreich ist Paris und sie hat zwei Millionen Einwohner."
    texts = {"question": english, "response": english, "documents": english, part: german}

    found = not_covered(texts["question"], texts["response"], [texts["documents"]])

    assert found == f"the {part} (looks German)"


def test_the_labelling_says_what_to_use_instead() -> None:
    """Unscored, not guessed: no labels, the code, and a reason with the way out."""
    call = keyed([["巴黎是法国的首都。"]], ["在法国。"], question="巴黎在哪里？")

    labelling = label_call(call)

    assert (labelling.labels, labelling.unscored) == (None, "judge_incapable")
    assert "English" in (labelling.reason or "")
    assert "OpenAIModel" in (labelling.reason or "")


def test_no_english_row_is_refused(ragbench: list[Path]) -> None:
    """None of the development data's rows, which are all English, is left unscored."""
    rows = itertools.chain.from_iterable(map(rows_of, ragbench))

    assert {not_covered(r["question"], r["response"], r["documents"]) for r in rows} == {None}


FILLER = "Reset"  # a word of no language, as far as function words tell


@pytest.mark.parametrize(
    ("enough", "language", "too_little"),
    [
        ("das wird nicht gut", "German", "das wird nicht"),
        ("Akku Netzteil wird nicht", "German", "Akku Netzteil Kabel nicht"),
        ("wird nicht" + f" {FILLER}" * 23, "German", "wird nicht" + f" {FILLER}" * 24),
        ("the wird nicht eine oder auch", "German", "the wird nicht eine oder"),
        ("the of wird nicht eine oder" + f" {FILLER}" * 5, "German", "the of wird nicht eine" + f" {FILLER}" * 6),
        ("Привет", "Cyrillic", "Париж"),
        ("Привет abcdefgh", "Cyrillic", "Привет abcdefghi"),
        ("Столица Франции - Париж, αβγ", "Cyrillic", ""),
    ],
    ids=["words", "function words", "8 % of the words", "a fifth English", "twice the English words",
         "letters", "40 % of the letters", "the commonest script"],
)  # fmt: skip
def test_the_limits_of_the_doubt(enough: str, language: str, too_little: str) -> None:
    """Each limit holds on both of its sides."""
    assert (foreign(enough), foreign(too_little)) == (language, None)


def test_only_the_beginning_of_a_text_is_looked_at() -> None:
    """What comes after the sampled characters does not count, however much it is."""
    beginning = f"{FILLER} " * (SAMPLED_CHARACTERS // 6)

    assert len(beginning) == SAMPLED_CHARACTERS
    assert foreign(beginning + "das wird nicht gut " * 50) is None
    assert foreign(beginning[:-60] + "das wird nicht gut oder auch eine " * 50) == "German"


def test_one_long_document_does_not_hide_the_others() -> None:
    """Of each document only a part is looked at, so that some are."""
    documents = [f"{FILLER} " * 200, *["das wird nicht gut oder auch eine Frage " * 5] * 2]

    assert not_covered("", "", documents) == "the documents (looks German)"


def test_short_parts_are_looked_at_together() -> None:
    """Too short one by one; where question and response are long they speak for themselves."""
    response, documents = "wird es nicht", [FILLER]
    question = ("Internationalization " * 15)[: SAMPLED_CHARACTERS // 2 - len(response)]

    assert not_covered("Wie ist das", "ja", documents) == "the question (looks not English)"
    assert not_covered(question, response, documents) == "the call (looks German)"
    assert not_covered(question + "s", response, documents) is None
    assert not_covered("Reset", "Reset", [FILLER]) is None


def test_a_foreign_title_makes_no_call_foreign() -> None:
    """A few words with an English function word, or a short response, say nothing by themselves."""
    english = "The play was written in the seventeenth century, and it is about a prince."
    for question, response, documents, part in (
        ("Who wrote La vida es sueño?", "Calderón", [english], None),
        ("Which film is it?", "La piel que habito", [english], None),
        ("Which film is it?", "Es una película.", [english], "the response (looks not English)"),
        ("Which film is it?", "Es una película.", [english, "Una película"], None),
        ("Wie ist das nicht", "It is so.", [english], "the question (looks not English)"),
        ("", "das wird nicht gut oder auch eine", [english], None),
        ("", "das wird nicht gut oder auch eine Frage", [english], "the response (looks German)"),
    ):
        assert not_covered(question, response, documents) == part


@pytest.mark.parametrize(
    "text",
    ["Miranda v. Arizona 384 US 436, Gideon v. Wainwright 372 US 335, Mapp v. Ohio, Roe v. Wade",
     "J. W. Z. Smith, W. Z. Jones, Z. W. Miller, W. Z. Brown"],
)  # fmt: skip
def test_one_sign_again_and_again_is_no_language(text: str) -> None:
    """A case name's "v." is a Czech word and initials are Polish ones; two signs are needed."""
    assert (foreign(text), not_covered("Which case was it?", text, [text])) == (None, None)


def test_a_passage_in_another_language_among_english_ones() -> None:
    """Judged where as many documents are English; refused where most are not."""
    english = "The ferry to Kos leaves at nine, and it takes four hours to the island."
    spanish = "El barco a la isla sale por la mañana y el viaje no es muy largo para los turistas. "
    asked = ("When does the ferry to Kos leave?", "It leaves at nine, as it says in the timetable.")
    of_three = [spanish * 3] * 3

    for fine in ([*of_three, english, english, english], [spanish * 3, "Kos", english]):
        assert not_covered(*asked, fine) is None
    for refused in ([*of_three, english], [spanish * 3]):
        assert not_covered(*asked, refused) == "the documents (looks Spanish)"
