"""What an app writes in front of a text from its metadata is the document's header."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from .conftest import Captured, Sections, model

QUESTION = "What does the Kettle manual say?"
TEXTS = ["Press the red button to start it.", "The lid opens with one hand, and closes itself."]
PLAIN: Any = ChatPromptTemplate.from_messages([("system", "Use:\n\n{context}"), ("human", "{q}")])


def pages() -> list[Document]:
    about = {"source": "docs/kettle.pdf", "title": "Kettle manual", "year": 2023, "lang": "en"}
    return [
        Document(text, metadata={**about, "page_label": page, "tags": ["a"], "draft": None})
        for text, page in zip(TEXTS, ("3", 12), strict=True)
    ]


def headers(
    captured: Captured, template: str, prompt: Any = PLAIN, between: str = "\n\n"
) -> list[str | None]:
    """The headers of two pages that a chain shows its model in a form of its own."""

    def show(found: list[Document]) -> str:
        filled = [
            template.format(text=each.page_content, all=each.metadata, **each.metadata)
            for each in found
        ]
        return between.join(filled)

    context = Sections(found=pages()) | RunnableLambda(show)
    inputs: Any = {"context": context, "q": RunnablePassthrough()}
    (inputs | prompt | model()).invoke(QUESTION, captured.config)
    assert [document.text for document in captured.only.documents] == TEXTS
    assert captured.how.documents_from == "prompt"
    return [document.header for document in captured.only.documents]


@pytest.mark.parametrize(
    ("template", "header"),
    [
        (
            "Title: {title} (2023 edition, page 1)\n{text}",
            "Title: Kettle manual (2023 edition, page 1)",
        ),
        ("Source: {all}\nContent: {text}", None),
        ("[{title}] {text}", "[Kettle manual]"),
        ("# kettle.pdf\n\n{text}", "# kettle.pdf"),
        (
            '<document source="{source}">\n{text}\n</document>',
            '<document source="docs/kettle.pdf">',
        ),
        ('{{"title": "{title}", "text": "{text}"}}', '{"title": "Kettle manual", "text": "'),
        ("No. 1\n{title}\n--\nSays:\n{text}", "Kettle manual\n--\nSays:"),
    ],
)
def test_names_metadata(captured: Captured, template: str, header: str | None) -> None:
    """A line with a value that tells where the text comes from, and what follows it up to the text."""
    expected = [header, header]
    if header is None:
        expected = [f"Source: {page.metadata}\nContent:" for page in pages()]

    assert headers(captured, template) == expected


@pytest.mark.parametrize(
    "template",
    [
        "page_label: {page_label}\n{text}",
        "(Page label {page_label})\n{text}",
        "**Page label:** {page_label} | {text}",
    ],
)
def test_a_number_or_short_value_has_its_name(captured: Captured, template: str) -> None:
    """By itself it may be anything, and so may a number that is longer."""
    in_front = template.partition("\n")[0].partition(" | ")[0]
    expected = [in_front.format(page_label=page) for page in (3, 12)]

    assert [str(header).removesuffix(" |") for header in headers(captured, template)] == expected


@pytest.mark.parametrize(
    "template",
    [
        "{text}",
        "Document {page_label}\n{text}",
        "{year}\n{text}",
        "page_label: {page_label}1\n{text}",
        "When open:\n{text}",
        "{title}\n1\n2\n3\n{text}",
        "{title}" + " " * 290 + "and so on:\n{text}",
        "{text}\n(source: {source})",
        "{text}\n\n(source: {source}, page label {page_label})",
    ],
    ids=["nothing", "number", "year", "longer", "short", "fourth line", "far", "behind", "apart"],
)
def test_is_nothing_else(captured: Captured, template: str) -> None:
    """Numbers alone, what is further away, and what stands behind the text before are no header."""
    assert headers(captured, template) == [None, None]


@pytest.mark.parametrize(
    ("template", "between", "header"),
    [
        ("[{source}] {text}", "\n", "[docs/kettle.pdf]"),
        ("[{source}] {text}", "\n---\n", "[docs/kettle.pdf]"),
        ("Source: {source}\n{text}", "\n* * *\n", "Source: docs/kettle.pdf"),
        (
            '{{"url": "{source}", "text": "{text}", "score": 0.5}}',
            ", ",
            '{"url": "docs/kettle.pdf", "text": "',
        ),
        ("D(id='x', metadata={all}, text='{text}')", ", ", "{all}, text='"),
        ("{text} [{source}]", "\n", None),
        ("{text}\nSource: {source}", "\n---\n", None),
    ],
)
def test_neighbours_of_one_source(
    captured: Captured, template: str, between: str, header: str | None
) -> None:
    """A line behind a separator, the text's own line or entry says nothing of the text before."""
    expected = [header and header.replace("{all}", str(page.metadata)) for page in pages()]

    assert headers(captured, template, between=between) == expected


@pytest.mark.parametrize(
    "messages",
    [
        [("human", "{q}\n{context}")],
        [("system", "You know the Kettle manual."), ("human", "{context}\n{q}")],
    ],
    ids=["question", "another message"],
)
def test_is_of_the_same_message(captured: Captured, messages: Any) -> None:
    """The question is no header, nor is the end of the message before."""
    assert headers(captured, "{text}", ChatPromptTemplate.from_messages(messages)) == [None, None]
