"""Citations that an app gives beside its answer, in the ways of LangChain's guides."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser, XMLOutputParser
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from pydantic import BaseModel

from rag_eval_integrations import RagEvaluator

from .apps import QUESTION, scripted
from .conftest import Captured, Sections

FIRST, SECOND = "The kettle boils in four minutes.", "The base turns all the way round."
SAID = f"{FIRST} {SECOND}"
QUOTES = [{"source_id": 0, "quote": "four minutes"}, {"source_id": 2, "quote": "turns"}]
XML = (
    f"<cited_answer><answer>{SAID}</answer><citations><citation><source_id>0</source_id>"
    "<quote>four minutes</quote></citation><citation><source_id>2</source_id><quote>turns</quote>"
    "</citation></citations></cited_answer>"
)


class CitedAnswer(BaseModel):
    """An answer from the given sources, and the sources that it uses."""

    answer: str
    citations: list[int]


class Quote(BaseModel):
    source_id: int
    quote: str


class QuotedAnswer(BaseModel):
    """The same with quotations."""

    answer: str
    citations: list[Quote]


def numbered(state: dict[str, Any]) -> str:
    """Number the sources from 0, as the guides do."""
    documents: list[Document] = state["context"]
    texts = [f"Source ID: {n}\nArticle: {d.page_content}" for n, d in enumerate(documents)]
    return "\n\n".join(texts)


def ask(
    captured: Captured, message: AIMessage, parser: Runnable[Any, Any], **metadata: Any
) -> None:
    """Ask a chain that returns documents and answer."""
    answer = RunnableLambda(numbered) | scripted(message) | parser
    found = RunnableLambda(lambda state: state["input"]) | Sections()
    chain: Any = RunnablePassthrough.assign(context=found).assign(answer=answer)
    chain.invoke({"input": QUESTION}, {**captured.config, "metadata": metadata})


def called(kind: type[BaseModel], citations: Any) -> tuple[AIMessage, Runnable[Any, Any]]:
    """Return a model's call of a tool, and what makes the tool's object of it."""
    arguments = {"answer": SAID, "citations": citations}
    message = AIMessage("", tool_calls=[{"name": kind.__name__, "args": arguments, "id": "1"}])
    return message, RunnableLambda(lambda m: kind(**m.tool_calls[0]["args"]))


@pytest.mark.parametrize(
    ("message", "parser"),
    [
        called(CitedAnswer, [0, 2]),
        called(QuotedAnswer, QUOTES),
        (AIMessage(XML), XMLOutputParser()),
    ],
    ids=["ids", "ids and quotes", "XML"],
)
def test_sources_of_a_whole_answer(
    captured: Captured, message: AIMessage, parser: Runnable[Any, Any]
) -> None:
    """They stand behind every sentence of the answer."""
    ask(captured, message, parser)
    scores = RagEvaluator(metrics=["citations"]).evaluate_sync(captured.only).scores

    assert captured.only.response == SAID
    evidence: Any = scores["citation_precision"].evidence
    assert [(c["documents"], c["state"]) for c in evidence["citations"]] == [
        ([0], "right"),
        ([2], "right"),
    ]
    assert [score.value for score in scores.values()] == [1, 1, 1]


def test_xml_as_a_text(captured: Captured) -> None:
    """The tags are markers in the text that the user got."""
    ask(captured, AIMessage(XML), StrOutputParser())
    scores = RagEvaluator(metrics=["citations"]).evaluate_sync(captured.only).scores

    evidence: Any = scores["citation_precision"].evidence
    assert [c["documents"] for c in evidence["citations"]] == [[0], [2]]


def test_annotations_of_content_blocks(captured: Captured) -> None:
    """Each stands behind the sentence at whose end it is; one that names no document dangles."""
    blocks = [
        {"type": "text", "text": f"{FIRST} ", "annotations": [
            {"type": "citation", "title": "a", "start_index": 0, "end_index": len(FIRST)},
        ]},
        {"type": "text", "text": SECOND, "annotations": [
            {"type": "citation", "title": "b"}, {"type": "citation", "url": "https://x.example"},
            {"type": "non_standard_annotation", "value": {}},
        ]},
    ]  # fmt: skip
    ask(captured, AIMessage(blocks), RunnablePassthrough())  # type: ignore[arg-type]
    evaluation = RagEvaluator(metrics=["citations"]).evaluate_sync(captured.only)

    evidence: Any = evaluation.scores["citation_precision"].evidence
    assert [(c["key"], c["documents"], c["state"]) for c in evidence["citations"]] == [
        ("a", [0], "right"),
        ("b", [1], "wrong"),
        ("b", [], "dangling"),
    ]
    assert evaluation.scores["citation_precision"].value == 1 / 3


def test_citations_of_the_apps_own_stay(captured: Captured) -> None:
    """What the app says in its metadata is not replaced."""
    message, parser = called(CitedAnswer, [0, 2])
    ask(captured, message, parser, citations=["b"])

    assert captured.only.capture is not None
    assert captured.only.capture.metadata["citations"] == ["b"]
    scores = RagEvaluator(metrics=["citations"]).evaluate_sync(captured.only).scores
    assert scores["citation_precision"].reason == (
        "Estimate: 0 of 1 citations name a document that supports their sentence; "
        "[b] in the whole answer wrong."
    )
