"""Documents that an app changes on their way into the prompt: seen, or left out, or unknown."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from .apps import QUESTION
from .conftest import Captured, Sections, joined, model, rag_chain

PAGES = [
    "<h1>Power</h1>The station runs on two AA batteries, which last for eighteen months.",
    "Reset it.",
    "<h1>Mounting</h1>Mount the sensor two metres above <b>short grass</b>, away from any walls.",
]


def run(captured: Captured, texts: list[str], fmt: Callable[[list[Document]], str]) -> Any:
    found = [Document(text, id=str(i)) for i, text in enumerate(texts)]
    rag_chain(Sections(found=found), fmt=fmt).invoke(QUESTION, captured.config)
    return captured.found


class TestChanged:
    @pytest.mark.parametrize(
        "change",
        [
            lambda text: re.sub("<.*?>", "", text),
            lambda text: text[:40],
            str.upper,
            lambda text: re.sub("<.*?>", " ", text).replace(" ", "\u00a0").rstrip("."),
            lambda text: text[5:],
        ],
        ids=["tags", "cut", "case", "spaces", "head"],
    )
    @pytest.mark.parametrize("searched", [4_000_000, -1], ids=["searched", "looked up"])
    def test_is_not_left_out(
        self, captured: Captured, change: Any, searched: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beside a document that stays as it is, changed ones are not said to be left out."""
        most = "rag_eval_integrations._prompt_search._PIECES_BY_SEARCHING"
        monkeypatch.setattr(most, searched)
        shown = "\n".join([PAGES[1], change(PAGES[0]), change(PAGES[2])])

        assert run(captured, PAGES, lambda _: shown) == (["1", "0", "2"], "dataflow", [])

    def test_left_out_beside_changed(self, captured: Captured) -> None:
        """Of cut documents, one of which nothing is there was left out."""
        texts = [f"{name} of many words: " * 9 for name in ("Lid 0", "Base 1", "Cord 2")]
        shown = "\n".join(text[30:120] for text in texts[:2])

        assert run(captured, texts, lambda _: shown) == (["0", "1"], "dataflow", ["2"])

    def test_other_alphabets(self, captured: Captured) -> None:
        """Letters that are written as several characters are the same letters."""
        texts = [
            "Die Größe der Tür ist genau zwei Meter.",
            "鍋は四分で沸騰し、蓋は片手で開きます。",
        ]
        shown = unicodedata.normalize("NFD", "\n\n".join(texts))

        assert run(captured, texts, lambda _: shown) == (["0", "1"], "dataflow", [])

    def test_many_in_a_long_prompt(self, captured: Captured) -> None:
        """A few changed documents out of hundreds are found as well."""
        parts = range(40)
        texts = ["".join(f"Fact {i} of {n} is {i * n}. " for n in parts) for i in range(200)]

        shown = html.escape("\n".join(texts[i].upper() for i in (150, 7, 33)))

        assert run(captured, texts, lambda _: shown)[:2] == (["150", "7", "33"], "dataflow")

    def test_short_ones_are_not_looked_for_in_words(self, captured: Captured) -> None:
        """A dropped document of one word is not taken for present inside of another word."""
        texts = ["art", "Press start to begin."]

        assert run(captured, texts, lambda _: f"Restart. {texts[1]}") == (["1"], "prompt", ["0"])


@pytest.mark.parametrize(
    ("texts", "fmt", "expected"),
    [
        ([QUESTION, "In four minutes."], joined, (["0", "1"], "dataflow", [])),
        (
            [QUESTION, "<i>In four minutes</i>, as the manual says it.", "Nothing of that at all."],
            lambda retrieved: f"{QUESTION}\nIn four minutes, as the manual says it.",
            (["0", "1"], "dataflow", ["2"]),
        ),
        (
            [QUESTION, "In four minutes."],
            lambda retrieved: joined(retrieved[1:]),
            (["1"], "prompt", ["0"]),
        ),
    ],
    ids=["there twice", "beside changed ones", "there once"],
)
def test_question_as_document(captured: Captured, texts: Any, fmt: Any, expected: Any) -> None:
    """An entry of a FAQ that is the question itself is there where the prompt has it twice."""
    assert run(captured, texts, fmt) == expected


PAGE: Any = Document("It boils fast.", id="p")


class TestSingleDocuments:
    def test_best_one_rewritten(self, captured: Captured) -> None:
        """A lambda that makes one document of many: this one is the context."""
        best = Sections() | RunnableLambda(lambda _: Document("All in one text.", id="best"))

        rag_chain(best, fmt=lambda page: page.page_content).invoke(QUESTION, captured.config)

        assert captured.found == (["best"], "prompt", ["a", "b", "c"])

    def test_in_an_input(self, captured: Captured) -> None:
        """A document that the app gave beside the question is the context."""
        prompt: Any = RunnableLambda(lambda given: f"{given['page'].page_content} {QUESTION}")

        (prompt | model()).invoke({"question": QUESTION, "page": PAGE}, captured.config)

        assert captured.found == (["p"], "prompt", [])

    @pytest.mark.parametrize("bare", [True, False], ids=["bare", "dict"])
    def test_indexing(self, captured: Captured, bare: bool) -> None:
        """One document and no question is no RAG call: so an index is filled."""
        given: Any = RunnableLambda(lambda _: {"page": PAGE, "n": 1})
        chain = given | (lambda state: model().invoke(state["page"].page_content).text)

        chain.invoke(PAGE if bare else {"page": PAGE}, captured.config)

        assert captured.calls == []

    def test_mapped_over(self, captured: Captured) -> None:
        """Where the prompt does not tell, single documents do not narrow the list they are of."""
        shown: Any = RunnableLambda(lambda item: item["page"].page_content[::-1])
        pages: Any = RunnableLambda(lambda retrieved: [{"page": page} for page in retrieved])

        chain = rag_chain(Sections() | pages | shown.map(), fmt=lambda parts: "\n".join(parts))
        chain.invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b", "c"], "dataflow", [])
