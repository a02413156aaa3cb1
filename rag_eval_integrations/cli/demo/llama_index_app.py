"""The demo's LlamaIndex app: a query engine over a real vector index with a scripted model."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from llama_index.core import PromptHelper, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import TextNode

from rag_eval_integrations.cli.demo.corpus import (
    LLAMA_INDEX_EXCHANGES,
    SECTIONS,
    embed,
    scripted_answer,
)
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall


class HashedWords(BaseEmbedding):
    """An embedding model that uses the corpus's `embed`."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)


class ScriptedLLM(CustomLLM):
    """An LLM that answers from the script, without a key or network."""

    @property
    def metadata(self) -> LLMMetadata:
        """Return the model's name."""
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer the question in the prompt."""
        return CompletionResponse(text=scripted_answer(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Answer in one piece."""
        text = scripted_answer(prompt)
        yield CompletionResponse(text=text, delta=text)


def build_engine() -> RetrieverQueryEngine:
    """Build the query engine without global settings and without a tokenizer."""
    nodes = [
        TextNode(
            id_=section.id,
            text=section.text,
            metadata={"title": section.title},
            # Titles are for people: the model and the embedding get the text alone.
            excluded_llm_metadata_keys=["title"],
            excluded_embed_metadata_keys=["title"],
        )
        for section in SECTIONS
    ]
    index = VectorStoreIndex(nodes, embed_model=HashedWords(), transformations=[])
    synthesizer = get_response_synthesizer(
        llm=ScriptedLLM(),
        # LlamaIndex's default counts tokens with tiktoken; counting words is enough here.
        prompt_helper=PromptHelper(context_window=4096, num_output=256, tokenizer=str.split),
        callback_manager=CallbackManager([]),
    )
    return RetrieverQueryEngine(
        retriever=index.as_retriever(similarity_top_k=2),
        response_synthesizer=synthesizer,
        callback_manager=CallbackManager([]),
    )


def ask() -> Generator[RagCall, None, int]:
    """Ask all questions: yield each captured call, and return the number of failed captures."""
    captured: list[RagCall] = []
    engine = build_engine()
    with RagEvalHandler(captured.append) as handler:
        for exchange in LLAMA_INDEX_EXCHANGES:
            engine.query(exchange.question)
            while captured:
                yield captured.pop(0)
    return handler.failed
