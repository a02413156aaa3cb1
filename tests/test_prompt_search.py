"""Which documents a prompt holds: chunks with a common header, cut or quoted documents."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import _prompt_search
from rag_eval_integrations._prompt_search import reached

HEADER = "ACME Handbook 2026, chapter on kitchen appliances, confidential. "
CHUNKS = {
    "a": HEADER + "The kettle boils a litre of water in four minutes and switches itself off.",
    "b": HEADER + "The toaster has six levels of browning, and a tray for crumbs slides out.",
    "c": HEADER + "The mixer should not run for longer than two minutes; let it cool down then.",
    "d": HEADER + "The blender crushes ice.",
}


def found(prompt: str, question: str = "How?", texts: dict[str, str] | None = None) -> str:
    """Name the texts that are found; in capitals those that are cut or changed."""
    named = CHUNKS if texts is None else texts
    places = reached(list(named.values()), prompt, question)
    return "".join(
        name if place.whole else name.upper()
        for name, place in zip(named, places, strict=True)
        if place
    )


def cut(names: str, length: int) -> str:
    return "\n".join(CHUNKS[name][:length] for name in names)


class TestCommonHeader:
    @pytest.mark.parametrize(
        ("prompt", "expected"),
        [
            (f"{CHUNKS['a']}\n{CHUNKS['b'][:90]}", "aB"), (cut("ad", 100), "Ad"),
            (cut("abcd", 85), "ABCD"), (f"{HEADER}\n\n{CHUNKS['a']}", "a"),
            (f"{HEADER}\n{HEADER}\n{CHUNKS['b']}", "b"), (cut("ac", 999).lower(), "AC"),
            (cut("bc", 999).replace(HEADER, ""), "BC"),
        ],
    )  # fmt: skip
    def test_longest_agreement_counts(self, prompt: str, expected: str) -> None:
        """Of chunks that begin alike, the one that the prompt goes on with was shown."""
        assert found(prompt) == expected

    @pytest.mark.parametrize("prompt", [HEADER, cut("ac", 66), f"About {HEADER}answer briefly."])
    def test_tells_nothing_by_itself(self, prompt: str) -> None:
        """Where only the header is there, no chunk is."""
        assert found(prompt) == ""

    def test_alone_is_enough(self) -> None:
        """Without others that begin alike, 48 characters tell a cut document."""
        assert found(CHUNKS["a"][:50], texts={"a": CHUNKS["a"], "x": "Something else."}) == "A"

    @pytest.mark.timeout(60)
    def test_of_many_takes_little_time(self) -> None:
        """500 chunks with one header, all of them cut; a search per pair would take minutes."""
        many = {str(i): f"{HEADER}Appliance {i} {'is described here ' * 10}" for i in range(500)}
        places = reached(list(many.values()), "\n".join(t[:200] for t in many.values()), "How?")

        assert sum(place is not None for place in places) == 500


class TestQuoted:
    RESET = 'Hold the "blue" button for eight seconds until the lamp goes out to reset it.'
    POWER = "It runs on two AA batteries for about eighteen months of normal use."

    @pytest.mark.parametrize("length", [100, 60])
    @pytest.mark.parametrize("form", ["{docs}\n\n{question}", "json"])
    def test_by_the_question(self, length: int, form: str) -> None:
        """A document that the question quotes, whole or in part, was not shown for that."""
        question = f"Is this right: {self.RESET[:length]}"
        texts = {"r": self.RESET, "p": self.POWER}
        given = {"docs": self.POWER, "question": question}
        prompt = json.dumps(given) if form == "json" else form.format(**given)

        assert found(prompt, question, texts) == "p"

    def test_and_shown(self) -> None:
        """A quoted document that is shown as well counts, whole or cut."""
        question = f"Is this right: {self.RESET}"
        texts = {"r": self.RESET, "p": self.POWER}

        assert found(f"{self.POWER}\n{self.RESET}\n{question}", question, texts) == "rp"
        assert found(f"{self.POWER}\n{self.RESET[:60]}\n{question}", question, texts) == "Rp"


class TestMany:
    """Looking for thousands of chunks changes nothing of what is found."""

    def test_overlapping(self) -> None:
        """A place is given once, to the longer text."""
        texts = {"x": "opens with one hand", "y": "The lid opens"}

        prompt, *said = "The lid opens with one hand", "opens with one hand", "The lid opens"

        assert found(prompt, texts=texts) == "x"
        assert reached(["opens"], prompt, said[0], said[1:]) == [None]

    WORDS = st.sampled_from(
        ["ab", "abab", "b", "a ", " ", "\n", "é", '"', "a longer text, once ", "a longer text, twice ",
         "which fills more than forty-eight characters, ", "Is this right: "]
    )  # fmt: skip
    TEXTS = st.lists(WORDS, max_size=4).map("".join)

    @given(st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=8), TEXTS, TEXTS, st.booleans())
    def test_as_one_by_one(
        self, texts: list[str], parts: list[str], question: str, earlier: str, mixed: bool
    ) -> None:
        """Texts that are there several times, inside each other, in the question, or begin alike."""
        prompt = "".join([*parts, *(texts if mixed else ()), question])
        found = reached(texts, prompt, question, [earlier])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_prompt_search, "_BY_SEARCHING", 0)  # so that places are looked up
            assert reached(texts, prompt, question, [earlier]) == found

    @pytest.mark.parametrize(
        ("word", "between", "question"),
        [("ab", " ", "ab"), ("abc def ghi jkl mno", "x", "abc def ghi jkl mno")],
    )
    def test_of_many_equal_ones_each_has_its_place(
        self, word: str, between: str, question: str
    ) -> None:
        """They are looked up together: one after the other would begin at the front each time."""
        places = reached([word] * 20_000, f"{word}{between}" * 20_000, question)

        assert len({place.start for place in places if place}) > 19_990


FOLDED = [
    'It says "ready" \u2013 then\npour.\tThe end is "near".',
    'The lid has a "lock".\n  Turn it.',
    'Die T\xfcr "\xf6ffnet" sich.\nGanz leise, f\xfcr alle.',
    "He said: \"It's hot\"\nand it was, wasn't it?",
]


class TestYaml:
    @pytest.mark.parametrize("width", [20, 40, 80])
    @pytest.mark.parametrize("allow_unicode", [True, False])
    def test_folded(self, width: int, allow_unicode: bool) -> None:
        """A text that YAML quotes, escapes and folds is found; another one is not."""
        texts = {name: text for name, text in zip("abcd", FOLDED, strict=True)}
        rows = [{"text": text} for text in FOLDED[:3]]
        prompt = yaml.safe_dump(rows, width=width, allow_unicode=allow_unicode)

        assert found(prompt, texts=texts).upper() == "ABC"
