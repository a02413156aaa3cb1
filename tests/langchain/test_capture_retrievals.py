"""Roots that only retrieve, whatever models wrote on the way; documents in unusual containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from .apps import QUESTION, Scripted, Store, graph, says
from .conftest import ANSWER, Captured, Sections, joined, model, run, sections

ASKED = {"question": QUESTION}


class State(TypedDict, total=False):
    question: str
    search_query: str
    documents: list[Any]
    found: Any
    grade: str
    answer: str


def writes(text: str, template: str = "Write a search query for: {question}") -> Runnable[Any, str]:
    return ChatPromptTemplate.from_template(template) | model(text) | StrOutputParser()


def kept_by(grader: Scripted) -> Callable[[list[Document]], list[Document]]:
    def keep(retrieved: list[Document]) -> list[Document]:
        return [
            document
            for document in retrieved
            if grader.invoke(f"Relevant? {document.page_content}").text == "yes"
        ]

    return keep


def grader(*said: str) -> Scripted:
    return Scripted(replies=[says(text) for text in said])


def rewrite(state: State) -> State:
    return {"search_query": model("kettle speed").invoke(state["question"]).text}


def retrieve(state: State) -> State:
    return {"documents": Sections().invoke(state["search_query"])}


def search(state: State) -> State:
    return {"documents": Store().similarity_search(state["search_query"])}


def grade(state: State) -> State:
    return {"documents": kept_by(grader("yes", "no", "yes"))(state["documents"]), "grade": "yes"}


def answer(state: State) -> State:
    return {"answer": model().invoke(f"Use {joined(state['documents'])}").text}


def hyde() -> Runnable[Any, Any]:
    passage = writes("A kettle boils within about four minutes.", "Write a passage on {question}")
    retrieved = RunnableLambda(lambda given: given["hypothetical"]) | Sections()
    return RunnablePassthrough.assign(hypothetical=passage) | RunnablePassthrough.assign(
        docs=retrieved
    )


SHAPES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a query rewriter": (lambda: writes("kettle speed") | Sections(), ["a", "b", "c"]),
    "HyDE": (hyde, ["a", "b", "c"]),
    "a grader": (
        lambda: RunnableLambda(lambda d: d["question"]) | Sections() | kept_by(grader("yes", "no")),
        ["a", "c"],
    ),
    "a grader that keeps none": (
        lambda: RunnableLambda(lambda d: d["question"]) | Sections() | kept_by(grader("no")),
        [],
    ),
    "one document": (lambda: writes("q") | Sections() | (lambda retrieved: retrieved[1]), ["b"]),
    "with scores": (
        lambda: writes("q") | RunnableLambda(Store().similarity_search_with_score),
        ["a", "b", "c"],
    ),
    "texts": (
        lambda: (
            writes("q")
            | Sections()
            | (lambda retrieved: [document.page_content for document in retrieved])
        ),
        ["a", "b", "c"],
    ),
    "texts joined": (lambda: writes("q") | Sections() | joined, ["a", "b", "c"]),
    "in a dict": (
        lambda: (
            writes("speed")
            | Sections()
            | (lambda retrieved: {"question": QUESTION, "found": retrieved, "n": 3})
        ),
        ["a", "b", "c"],
    ),
    "a verdict in a dict": (
        lambda: (
            writes("speed")
            | Sections()
            | (lambda retrieved: {"found": retrieved, "ok": grader("Yes.").invoke("Good?").text})
        ),
        ["a", "b", "c"],
    ),
    "a graph": (lambda: graph(State, rewrite=rewrite, retrieve=retrieve), ["a", "b", "c"]),
    "a graph on a store": (lambda: graph(State, rewrite=rewrite, search=search), ["a", "b", "c"]),
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
        app = make()
        await run(app, ASKED, way, captured.config)

        call = captured.only
        assert captured.how.status == "ok"
        assert (call.response, captured.ids) == (None, expected)
        assert captured.how.documents_from in ("retriever", "dataflow")
        if captured.how.retrievers:
            left_out = [name for name in "abc" if name not in expected]
            assert captured.left_out == left_out

    def test_graph_that_answers(self, captured: Captured) -> None:
        """The same graph with a writer has its answer, and the documents of the prompt."""
        app = graph(State, rewrite=rewrite, retrieve=retrieve, check=grade, write=answer)
        app.invoke(ASKED, captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["a", "c"]
        assert captured.how.documents_from == "prompt"

    @pytest.mark.parametrize("key", ["reply", "question_answer"])
    def test_answer_under_an_unusual_key(self, captured: Captured, key: str) -> None:
        """A text that is no query, beside documents, is still the answer that a model wrote."""
        chain = RunnablePassthrough.assign(docs=lambda given: Sections().invoke(given["question"]))
        reply: Runnable[Any, str] = RunnableLambda(
            lambda given: model().invoke(joined(given["docs"])).text
        )
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

        call = captured.only
        assert captured.ids == (["a"] if name == "one by id" else ["a", "b", "c"])
        assert captured.how.documents_from == "prompt"
        if name in ("entries", "entries by id", "hits"):
            assert [document.score for document in call.documents] == [0.25] * 3


class TestMapRerank:
    EXAMPLE = "Example: This document does not answer the question\nScore: 0\n\n"

    @pytest.mark.parametrize("best", [0, 1])
    @pytest.mark.parametrize("how", ["one by one", "batch"])
    def test_shows_one_document(self, captured: Captured, best: int, how: str) -> None:
        """Words of an example that another model happens to write do not feed the writer."""
        no, yes = "This document does not answer the question\nScore: 0", f"{ANSWER}\nScore: 100"

        def write(retrieved: list[Document]) -> str:
            prompts = [
                f"{self.EXAMPLE}{document.page_content}\n{QUESTION}" for document in retrieved[:2]
            ]
            models = [Scripted(replies=[says(yes if i == best else no)]) for i in range(2)]
            if how == "batch":
                chosen = RunnableLambda(lambda i: models[i].invoke(prompts[i]).text)
                told = chosen.batch([0, 1])
            else:
                told = [
                    one.invoke(prompt).text for one, prompt in zip(models, prompts, strict=True)
                ]
            return str(max(told, key=lambda text: int(text.split("Score: ")[1])).split("\n")[0])

        (Sections() | RunnableLambda(write)).invoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["ab"[best]]
