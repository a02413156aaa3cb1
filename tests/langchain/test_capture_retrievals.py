"""Roots that only retrieve, whatever models wrote on the way; documents in unusual containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from .apps import QUESTION, Store, graph, scripted
from .conftest import ANSWER, Captured, Sections, joined, model, run, sections

ASKED = {"question": QUESTION}
QUESTION_OF: Any = RunnableLambda(lambda given: given["question"])


class State(TypedDict, total=False):
    question: str
    search_query: str
    documents: list[Any]
    found: Any
    grade: str
    answer: str


def writes(text: str, template: str = "Write a search query for: {question}") -> Runnable[Any, str]:
    return ChatPromptTemplate.from_template(template) | model(text) | StrOutputParser()


def kept_by(*verdicts: str) -> Callable[[list[Document]], list[Document]]:
    grader = scripted(*verdicts)

    def keep(retrieved: list[Document]) -> list[Document]:
        prompts = [f"Relevant? {document.page_content}" for document in retrieved]
        kept = [grader.invoke(prompt).text == "yes" for prompt in prompts]
        return [*compress(retrieved, kept)]

    return keep


def rewrite(state: State) -> State:
    return {"search_query": model("kettle speed").invoke(state["question"]).text}


def retrieve(state: State) -> State:
    return {"documents": Sections().invoke(state["search_query"])}


def search(state: State) -> State:
    return {"documents": Store().similarity_search(state["search_query"])}


def grade(state: State) -> State:
    return {"documents": kept_by("yes", "no", "yes")(state["documents"]), "grade": "yes"}


def hyde() -> Runnable[Any, Any]:
    passage = writes("A kettle boils within about four minutes.", "Write a passage on {question}")
    retrieved = RunnableLambda(lambda given: given["hypothetical"]) | Sections()
    return RunnablePassthrough.assign(hypothetical=passage).assign(docs=retrieved)


def found_in_a_dict(retrieved: list[Document]) -> dict[str, Any]:
    return {"question": QUESTION, "found": retrieved, "n": 3}


def found_with_a_verdict(retrieved: list[Document]) -> dict[str, Any]:
    return {"found": retrieved, "ok": model("Yes.").invoke("Good?").text}


def texts(retrieved: list[Document]) -> list[str]:
    return [document.page_content for document in retrieved]


ALL = ["a", "b", "c"]
SHAPES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a query rewriter": (lambda: writes("kettle speed") | Sections(), ALL),
    "HyDE": (hyde, ALL),
    "a grader": (lambda: QUESTION_OF | Sections() | kept_by("yes", "no"), ["a", "c"]),
    "a grader that keeps none": (lambda: QUESTION_OF | Sections() | kept_by("no"), []),
    "one document": (lambda: writes("q") | Sections() | (lambda retrieved: retrieved[1]), ["b"]),
    "with scores": (lambda: writes("q") | (lambda q: Store().similarity_search_with_score(q)), ALL),
    "texts": (lambda: writes("q") | Sections() | texts, ALL),
    "texts joined": (lambda: writes("q") | Sections() | joined, ALL),
    "in a dict": (lambda: writes("speed") | Sections() | found_in_a_dict, ALL),
    "a verdict in a dict": (lambda: writes("speed") | Sections() | found_with_a_verdict, ALL),
    "a graph": (lambda: graph(State, rewrite=rewrite, retrieve=retrieve), ALL),
    "a graph on a store": (lambda: graph(State, rewrite=rewrite, search=search), ALL),
    "a graph with grades": (
        lambda: graph(State, rewrite=rewrite, retrieve=retrieve, check=grade),
        ["a", "c"],
    ),
}


class TestOnlyRetrieves:
    @pytest.mark.parametrize("way", ["stream", "ainvoke"])
    @pytest.mark.parametrize("shape", SHAPES)
    async def test_has_no_answer(self, captured: Captured, shape: str, way: str) -> None:
        """The documents that came out are the call's, and nobody answered."""
        make, expected = SHAPES[shape]
        await run(make(), ASKED, way, captured.config)

        assert captured.how.status == "ok"
        assert (captured.only.response, captured.ids) == (None, expected)
        assert captured.how.documents_from in ("retriever", "dataflow")
        if captured.how.retrievers:
            assert captured.left_out == [name for name in ALL if name not in expected]

    @pytest.mark.parametrize("key", ["reply", "question_answer"])
    def test_answer_under_an_unusual_key(self, captured: Captured, key: str) -> None:
        """A text that is no query, beside documents, is still the answer that a model wrote."""
        chain = RunnablePassthrough.assign(docs=lambda given: Sections().invoke(given["question"]))
        reply: Any = (lambda given: joined(given["docs"])) | model() | StrOutputParser()
        chain.assign(**{key: reply}).invoke(ASKED, captured.config)

        assert captured.only.response == ANSWER

    def test_faq(self, captured: Captured) -> None:
        """The text of one document is the answer of an app without a model."""
        chain = Sections() | RunnableLambda(lambda retrieved: retrieved[0].page_content)
        chain.invoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER


@dataclass
class Hit:
    """A hit of an app's own search."""

    document: Document
    score: float


CONTAINERS: dict[str, Callable[[], Any]] = {
    "by id": lambda: {one.id: one for one in sections()},
    "one by id": lambda: {"a": sections()[0]},
    "entries": lambda: [{"doc": one, "score": 0.25} for one in sections()],
    "entries by id": lambda: {one.id: {"doc": one, "score": 0.25} for one in sections()},
    "hits": lambda: [Hit(one, 0.25) for one in sections()],
    "lists by source": lambda: {"x": sections()[:1], "y": sections()[1:]},
}


class TestContainers:
    @pytest.mark.parametrize("name", CONTAINERS)
    def test_of_a_graphs_state(self, captured: Captured, name: str) -> None:
        """Documents that a node found by itself are seen in the state, with their scores."""

        def find(state: State) -> State:
            return {"found": CONTAINERS[name]()}

        def write(state: State) -> State:
            shown = sections()[:1] if name == "one by id" else sections()
            return {"answer": model().invoke(f"Use {joined(shown)}").text}

        graph(State, find=find, write=write).invoke(ASKED, captured.config)

        assert captured.found == (["a"] if name == "one by id" else ALL, "prompt", [])
        if name in ("entries", "entries by id", "hits"):
            assert [document.score for document in captured.only.documents] == [0.25] * 3


class TestMapRerank:
    EXAMPLE = "Example: This document does not answer the question\nScore: 0\n\n"

    @pytest.mark.parametrize("best", [0, 1])
    @pytest.mark.parametrize("how", ["one by one", "batch"])
    def test_shows_one_document(self, captured: Captured, best: int, how: str) -> None:
        """Words of an example that another model happens to write do not feed the writer."""
        no, yes = "This document does not answer the question\nScore: 0", f"{ANSWER}\nScore: 100"

        def write(retrieved: list[Document]) -> str:
            prompts = [f"{self.EXAMPLE}{page.page_content}\n{QUESTION}" for page in retrieved[:2]]
            models = [model(yes if i == best else no) for i in range(2)]
            rate = RunnableLambda(lambda i: models[i].invoke(prompts[i]).text)
            ratings = rate.batch([0, 1]) if how == "batch" else [*map(rate.func, (0, 1))]
            return str(max(ratings, key=lambda text: int(text.split("Score: ")[1])).split("\n")[0])

        (Sections() | RunnableLambda(write)).invoke(QUESTION, captured.config)

        assert (captured.responses, captured.ids) == ([ANSWER], ["ab"[best]])
