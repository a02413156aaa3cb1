"""LangGraph graphs and agents to observe, on a model that answers from a script."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool, create_retriever_tool
from langgraph.graph import END, START, StateGraph

from .conftest import ANSWER, Sections, sections

QUESTION = "How fast is the kettle?"


class Scripted(FakeMessagesListChatModel):
    """Gives copies of its replies one after the other, and calls tools as they say."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return super()._generate(*args, **kwargs).model_copy(deep=True)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def scripted(*replies: AIMessage | str) -> Scripted:
    messages = [AIMessage(reply) if isinstance(reply, str) else reply for reply in replies]
    return Scripted(responses=[*messages])


def calls_tool(query: str, name: str = "search", text: str = "") -> AIMessage:
    """A model's message that asks for a tool."""
    call = {"name": name, "args": {"query": query}, "id": f"{name}-{query}"}
    return AIMessage(text, tool_calls=[call])


class State(TypedDict, total=False):
    """State of a graph that retrieves and then generates."""

    question: str
    context: list[Document]
    answer: str


def graph(schema: Any, checkpointer: Any = None, interrupt_before: Any = None, **nodes: Any) -> Any:
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


def retriever_tool(
    retriever: Any = None, name: str = "search", response_format: Any = "content"
) -> BaseTool:
    return create_retriever_tool(
        retriever or Sections(), name, "Searches.", response_format=response_format
    )


def agent(*replies: AIMessage | str, tools: Any = None, **options: Any) -> Any:
    """An agent that searches once and answers, or says what is given."""
    model = scripted(*replies or (calls_tool("kettle"), ANSWER))
    return create_agent(model, [retriever_tool()] if tools is None else tools, **options)


def asked(question: str = QUESTION) -> dict[str, Any]:
    return {"messages": [("user", question)]}
