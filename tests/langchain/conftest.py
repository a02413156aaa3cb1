"""A LangChain app to observe: real retriever, prompt, chain; a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from captured_calls import CapturedCalls
from captured_calls import capture_of as capture_of
from captured_calls import substance as substance
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from rag_eval_integrations.langchain import RagEvalCallbackHandler

ANSWER = "The kettle boils in four minutes."
LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})
"""One document sentence, relevant and used; one response sentence, supported."""
PROMPT = ChatPromptTemplate.from_messages([("system", "Use:\n{context}"), ("human", "{question}")])


def sections() -> list[Document]:
    return [
        Document(id="a", page_content="The kettle boils in four minutes.", metadata={"page": 3}),
        Document(id="b", page_content="The lid opens with one\n  hand.", metadata={"score": 0.5}),
        Document(id="c", page_content="The base turns all the way round."),
    ]


class Sections(BaseRetriever):
    """Finds the same sections whatever is asked; fails where `error` is set."""

    found: list[Document] | None = None
    error: str | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if self.error is not None:
            raise RuntimeError(self.error)
        return sections() if self.found is None else list(self.found)


def model(answer: str = ANSWER) -> FakeListChatModel:
    return FakeListChatModel(responses=[answer])


def joined(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def rag_chain(
    retriever: Runnable[Any, Any] | None = None,
    *,
    llm: Runnable[Any, Any] | None = None,
    fmt: Callable[[Any], Any] = joined,
) -> Runnable[Any, str]:
    context = (retriever or Sections()) | RunnableLambda(fmt)
    inputs: Any = {"context": context, "question": RunnablePassthrough()}
    chain: Runnable[Any, str] = inputs | PROMPT | (llm or model()) | StrOutputParser()
    return chain


def judge(answer: Any = LABELS) -> ScriptedJudge:
    return ScriptedJudge(answer)


def ids(documents: Any) -> list[str | None]:
    return [document.id for document in documents]


def chat_model(base_url: str, **changes: Any) -> Any:
    """A model of a server that a test runs."""
    from langchain_openai import ChatOpenAI

    options: dict[str, Any] = {"model": "m", "api_key": "none", "max_retries": 0, **changes}
    return ChatOpenAI(base_url=base_url, **options)


class Captured(CapturedCalls):
    """A handler and what it delivered."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.handler = RagEvalCallbackHandler(self.calls.append, **options)

    @property
    def config(self) -> Any:
        return {"callbacks": [self.handler]}

    @property
    def remembering(self) -> Any:
        """The config of an app that keeps its state from turn to turn."""
        return {**self.config, "configurable": {"thread_id": "1"}}

    @property
    def ids_by_call(self) -> list[list[str | None]]:
        return [ids(call.documents) for call in self.calls]

    @property
    def exchange(self) -> tuple[str, str | None]:
        """The question and the answer."""
        return self.only.question, self.only.response


async def run(graph: Runnable[Any, Any], given: Any, way: str, config: Any = None) -> Any:
    """What a runnable gives in one of the ways to run it; of a stream the last item or the text."""
    if way == "invoke":
        return graph.invoke(given, config)
    if way == "ainvoke":
        return await graph.ainvoke(given, config)
    if way == "batch":
        return graph.batch([given], config)[0]
    if way == "abatch":
        return (await graph.abatch([given], config))[0]
    if way == "completed":
        return next(iter(graph.batch_as_completed([given], config)))[1]
    if way == "stream":
        items = list(graph.stream(given, config))
    elif way == "transform":
        items = list(graph.transform(iter([given]), config))
    elif way == "events":
        events = [event async for event in graph.astream_events(given, config, version="v2")]
        items = [events[-1]["data"]["output"]]  # of the root's end
    else:
        items = [item async for item in graph.astream(given, config)]
    return "".join(items) if all(isinstance(item, str) for item in items) else items[-1]


async def cancel(running: Coroutine[Any, Any, Any], begun: asyncio.Event) -> None:
    """Cancel what runs when it has begun."""
    task = asyncio.create_task(running)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def captured() -> Iterator[Captured]:
    """Whatever a test does: nothing stays open, and the capture itself never fails."""
    captured = Captured()
    yield captured
    assert captured.handler.open_calls == 0
    assert captured.handler.failed == 0
    assert not captured.handler._runs
