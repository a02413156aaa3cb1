"""LangGraph graphs and agents to observe, on a model that answers from a script."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph
from pydantic import PrivateAttr

from .conftest import ANSWER, Sections, sections

QUESTION = "How fast is the kettle?"


class Scripted(BaseChatModel):
    """Gives its replies one after the other and keeps the prompts it was shown."""

    replies: list[AIMessage]
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def shown(self) -> list[list[BaseMessage]]:
        return self._shown

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._shown.append(messages)
        reply = self.replies[(len(self._shown) - 1) % len(self.replies)]
        return ChatResult(generations=[ChatGeneration(message=reply.model_copy(deep=True))])

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def calls_tool(*queries: str, name: str = "search", text: str = "") -> AIMessage:
    """A model's message that asks for a tool, once for every query."""
    calls = [
        {"name": name, "args": {"query": query}, "id": f"{name}-{i}-{query}"}
        for i, query in enumerate(queries)
    ]
    return AIMessage(text, tool_calls=calls)


def says(text: str = ANSWER) -> AIMessage:
    return AIMessage(text)


class State(TypedDict, total=False):
    """State of a graph that retrieves and then generates."""

    question: str
    context: list[Document]
    answer: str


class Gathering(TypedDict, total=False):
    """State of a graph whose branches retrieve side by side."""

    question: str
    context: Annotated[list[Document], operator.add]
    answer: str


def graph(
    schema: Any, *, checkpointer: Any = None, interrupt_before: Any = None, **nodes: Any
) -> Any:
    """A graph of nodes one after the other."""
    made = StateGraph(schema)
    before = START
    for name, node in nodes.items():
        made.add_node(name, node)
        made.add_edge(before, name)
        before = name
    made.add_edge(before, END)
    return made.compile(checkpointer=checkpointer, interrupt_before=interrupt_before)


class Named(Sections):
    """Finds one document, about what is asked."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(id=query, page_content=f"All about {query}, and no more.")]


class Store:
    """A vector store's `similarity_search`, which fires no event at all."""

    def similarity_search(self, query: str, k: int = 3) -> list[Document]:
        return sections()[:k]

    def similarity_search_with_score(self, query: str) -> list[tuple[Document, float]]:
        return [(document, 0.75) for document in sections()]


def ids(documents: Any) -> list[str | None]:
    return [document.id for document in documents]
