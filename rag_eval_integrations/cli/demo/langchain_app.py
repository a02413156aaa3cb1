"""The demo's LangChain app: an LCEL chain with a real retriever and a scripted model."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from rag_eval_integrations.cli.demo.corpus import (
    LANGCHAIN_EXCHANGES,
    SECTIONS,
    embed,
    similarity,
)
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall


class ManualRetriever(BaseRetriever):
    """Retrieves the `k` nearest sections of the manual.

    LangChain's in-memory store needs numpy, which langchain-core does not install.
    """

    k: int = 2

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        asked = embed(query)
        scored = [(similarity(asked, embed(section.text)), section) for section in SECTIONS]
        nearest = sorted(scored, key=lambda pair: -pair[0])[: self.k]
        return [
            Document(
                id=section.id,
                page_content=section.text,
                metadata={"title": section.title, "score": round(score, 4)},
            )
            for score, section in nearest
        ]


def build_chain() -> Runnable[str, str]:
    """Build a chain like a tutorial's: retriever, formatting, prompt, model, parser."""

    def as_context(documents: list[Document]) -> str:
        """Join the documents' texts for the prompt."""
        return "\n\n".join(document.page_content for document in documents)

    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer from the manual.\n\n{context}"),
            ("human", "{question}"),
        ]
    )
    inputs: Any = {"context": ManualRetriever() | as_context, "question": RunnablePassthrough()}
    model = FakeListChatModel(responses=[exchange.answer for exchange in LANGCHAIN_EXCHANGES])
    chain: Runnable[str, str] = inputs | prompt | model | StrOutputParser()
    return chain


def ask() -> Generator[RagCall, None, int]:
    """Ask all questions: yield each captured call, and return the number of failed captures."""
    captured: list[RagCall] = []
    handler = RagEvalCallbackHandler(captured.append)
    chain = build_chain()
    for exchange in LANGCHAIN_EXCHANGES:
        chain.invoke(exchange.question, config={"callbacks": [handler], "run_name": "manual"})
        while captured:
            yield captured.pop(0)
    return handler.failed
