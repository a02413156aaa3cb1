"""Punkt of other languages: NLTK's data, NLTK's decision, and our blocks and scripts around it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import fresh_python

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.sentences import Punkt, punkt

from .conftest import assert_whole, split

LANGUAGES = ("german", "french", "spanish", "portuguese")


@pytest.fixture(scope="module", autouse=True)
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tables in llama-index-core's wheel, in the one folder that NLTK is told to look in.

    They are copied because installers link files to their cache, and NLTK 3.10 reads no file that
    has a second link.
    """
    import nltk.data  # type: ignore[import-untyped]  # nltk has no stubs

    core = Path(find_spec("llama_index.core").origin)  # type: ignore[union-attr, arg-type]
    shipped = core.parent / "_static" / "nltk_cache" / "tokenizers" / "punkt_tab"
    folder = tmp_path_factory.mktemp("nltk_data")
    for language in LANGUAGES:
        shutil.copytree(shipped / language, folder / "tokenizers" / "punkt_tab" / language)
    before = list(nltk.data.path)
    nltk.data.path[:] = [str(folder)]
    yield
    nltk.data.path[:] = before


FILES = {
    "abbrev_types.txt": "hr\nnr\n",
    "sent_starters.txt": "der\n",
    "collocations.tab": "str\tchen\n",
    "ortho_context.tab": "der\t46\nhaus\t4\n",
}


def install(root: Path, language: str, files: dict[str, str]) -> None:
    """Write a language's data into a data folder, as NLTK's downloader does."""
    folder = root / "tokenizers" / "punkt_tab" / language
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("german", ["Am 3. Mai kam Dr. Meier.", "Er ging."]),
        ("german", ["J. S. Bach lebte im 18. Jahrhundert.", "Das Brot usw. ist von heute."]),
        ("german", ["„Warum?“ fragte sie.", "Niemand weiß es."]),
        ("french", ["M. Dupont est parti.", "Voir p. 12.", "Est-ce vrai ?", "« Non ! »", "Oui."]),
        ("spanish", ["El Sr. López llegó.", "¿Por qué?", "No sé.", "¡Hola!", "Dijo Ana."]),
        ("portuguese", ["O Sr. Silva chegou.", "O Dr. Costa mora na Av. Paulista.", "É longe."]),
    ],
)
def test_sentences_marked_by_hand(language: str, expected: list[str]) -> None:
    """Abbreviations, initials, ordinals and quotes of each language, as a person reads them."""
    assert expected == split(" ".join(expected), Punkt(language))


def test_blocks_and_other_scripts_are_found_under_every_language() -> None:
    """Only the decision about a full stop is NLTK's."""
    lines = ["# Dr. Meier. Leben", "- Am 3. Mai kam er.", "| 1. a | b. C |", "```\nA. B. C.\n```"]

    sentences = split("\n".join([*lines, "真的吗？今天天气很好。"]), Punkt("german"))
    assert sentences == [*lines, "真的吗？", "今天天气很好。"]


GERMAN_TEXTS = st.one_of(
    st.text(st.characters()),  # lone surrogates too
    st.text(" \n\r\t\x0c\x85\u2028\u200b\ufeff.?!…\"')„“«»(|>-#`*1aBäß。\x00\ud800½", max_size=60),
    st.lists(
        st.sampled_from(["Dr.", "z. B.", "3.", "Mai", "usw.", "J.", "er", "Er", "...", "Haus."])
    ).map(" ".join),
)


@given(GERMAN_TEXTS)
def test_every_character_lies_in_exactly_one_sentence(text: str) -> None:
    """Spans are in order, trimmed, not empty, and leave only white space between them."""
    assert_whole(text, Punkt("german").spans(text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_nltk_decides_or_would_have(language: str) -> None:
    """Words that NLTK is not asked about are those after which it always ends the sentence."""
    from nltk.tokenize.punkt import PunktTokenizer  # type: ignore[import-untyped]

    theirs, model = PunktTokenizer(language), punkt._model(language)
    known = sorted(theirs._params.ortho_context)
    special = sorted(model.special)
    words = [*special, "3", "3.5", "J", "", *known]
    draw = random.Random(language)
    asked = 0

    for _ in range(300):
        word, following = draw.choice(words), draw.choice(known)
        word = draw.choice([word, word.title(), draw.choice(special)])
        following = draw.choice([following, following.title()])
        asked += word.lower() in model.special
        expected = theirs.text_contains_sentbreak(f"{word}. {following}")
        assert model.ends_after(word, following, small=False) == expected, (word, following)
    assert 60 < asked < 240


def test_the_users_own_data_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A language that NLTK does not know by itself, in a folder that the app added."""
    install(tmp_path, "platt", FILES)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    splitter = Punkt("platt")

    assert splitter.name == "punkt-platt(nltk)@2"
    assert split("Hr. Meier kam. Er ging.", splitter) == ["Hr. Meier kam.", "Er ging."]
    cited = ["Hr. Meier kam. [1]", "Er ging.²", "Es war so. (Quelle: fahrplan.pdf)"]
    assert split(" ".join(cited), splitter) == cited
    sentences = ["Die Str. chen ist es.", "Der Hr.", "Der kam."]
    assert split(" ".join(sentences), splitter) == sentences


@pytest.mark.parametrize("language", ["klingon", "../german", "ger\x00man"])
def test_a_language_without_data_is_an_error_at_construction(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the field, the value, the folders that NLTK looked in, and the command."""
    monkeypatch.setattr("nltk.data.path", [str(tmp_path), "/nowhere"])

    with pytest.raises(ConfigurationError) as raised:
        Punkt(language=language)

    assert raised.value.field == "language"
    assert raised.value.value == language
    assert "run: python -m nltk.downloader punkt_tab" in str(raised.value)
    if "\x00" not in language:  # which NLTK refuses before it looks anywhere
        assert f"It looked in: {tmp_path}, /nowhere." in str(raised.value)


@pytest.mark.parametrize("missing", [True, False])
def test_broken_data_is_an_error_at_construction(
    missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the middle of an evaluation; it says how to get the data anew.

    A file is missing, or a figure is not one.
    """
    files = {**FILES, "ortho_context.tab": "haus\tmany\n"}
    install(tmp_path, "broken", dict([*FILES.items()][:-1]) if missing else files)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])

    why = r"`language` = 'broken'.*nltk\.downloader punkt_tab"
    with pytest.raises(ConfigurationError, match=why):
        Punkt(language="broken")


def test_without_nltk_english_works_and_others_name_the_extra() -> None:
    """In a process where NLTK cannot be imported."""
    code = (
        "import sys; sys.modules['nltk'] = None\n"
        "from rag_eval_integrations.errors import MissingDependencyError\n"
        "from rag_eval_integrations.sentences import Punkt\n"
        "assert Punkt().spans('Dr. Fox left. He ran.') == [(0, 13), (14, 21)]\n"
        "for attempt in range(2):\n"
        "    try: Punkt(language='german')\n"
        "    except MissingDependencyError as error: print(error)"
    )

    done = fresh_python(code, check=True)

    said = "nltk is not installed; run: pip install 'rag-eval-integrations[nltk]'"
    assert done.stdout.splitlines() == [said, said]
