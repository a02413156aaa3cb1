"""Which calls the embedded judge leaves unscored: text that is clearly not English."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.judges.embedded.language import foreign, not_covered
from rag_eval_integrations.records import RagCall, Sentence, Sentences, SentencizedCall

FOREIGN = {
    "German": "Die Hauptstadt von Frankreich ist Paris.",
    "German question": "Wie lade ich den Akku meines Telefons auf?",
    "French": "Quelle est la capitale de la France ?",
    "Spanish": "La capital de Francia es París.",
    "Italian": "La capitale della Francia è Parigi.",
    "Portuguese": "A capital da França é Paris.",
    "Dutch": "De hoofdstad van Nederland is niet Den Haag maar Amsterdam.",
    "Polish": "Stolicą Francji jest Paryż, a nie Lyon.",
    "Swedish": "Huvudstaden i Frankrike är Paris och det är en stor stad.",
    "Turkish": "Ankara büyük bir şehir ve Türkiye için çok önemli.",
    "Chinese": "巴黎是法国的首都。",
    "Japanese": "東京は日本の首都です。",
    "Korean": "서울은 대한민국의 수도이다.",
    "Russian": "Столица Франции - Париж.",
    "Greek": "Η Αθήνα είναι η πρωτεύουσα.",
    "Arabic": "باريس هي عاصمة فرنسا",
    "Hindi": "पेरिस फ्रांस की राजधानी है।",
}
NOT_FOREIGN = [
    "",
    "42",
    "12.5 %, 13.1 %, 2024-01-02",
    "Paris",
    "Yes.",
    "Who wrote Les Misérables?",
    "Leonardo da Vinci painted the Mona Lisa.",
    "Ludwig van Beethoven and Juan de la Cruz met.",
    "La Casa de Papel de Alex Pina",
    "Der Spiegel is a magazine.",
    "α + β = γ²",
    "The word 水 means water and 山 means mountain.",
    "Press MENU > Settings > Wi-Fi > Advanced > Reset.",
]


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_sentence_in_another_language_is_seen(text: str) -> None:
    """One sentence is enough, by script or by function words."""
    assert foreign(text) is not None


@pytest.mark.parametrize("text", NOT_FOREIGN)
def test_names_numbers_and_short_text_have_the_benefit_of_the_doubt(text: str) -> None:
    """One foreign name, formula or title makes no text foreign."""
    assert foreign(text) is None


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
    call = SentencizedCall(
        call=RagCall(
            question="巴黎在哪里？", documents=["巴黎是法国的首都。"], response="在法国。"
        ),
        sentences=Sentences(
            documents=(Sentence("0a", "巴黎是法国的首都。"),), response=(Sentence("a", "在法国。"),)
        ),
        splitter="by hand",
    )

    labelling = label_call(call)

    assert labelling.labels is None
    assert labelling.unscored == "judge_incapable"
    assert labelling.reason is not None
    assert "English" in labelling.reason
    assert "OpenAIJudge" in labelling.reason


def test_no_english_row_is_refused(ragbench: list[Path]) -> None:
    """None of the development data's rows, which are all English, is left unscored."""
    refused = []
    for path in ragbench:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                found = not_covered(row["question"], row["response"], row["documents"])
                if found is not None:
                    refused.append((row["id"], found))

    assert refused == []
