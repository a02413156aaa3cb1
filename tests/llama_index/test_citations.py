"""Answers of LlamaIndex' own engine for citations, scored by what it told the model."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import TextNode

from rag_eval_integrations import RagEvaluator

from .conftest import QUESTION, Captured, Sections

SAID = "The kettle boils in four minutes [1]. The lid opens with one hand [3]. It is blue [9]."


class Cites(CustomLLM):
    """Cites two of the numbered sources, and one that there is not."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=SAID)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text=SAID, delta=SAID)


@pytest.mark.parametrize("metadata", [{}, {"page": 3}], ids=["plain", "metadata in front"])
def test_numbered_sources(captured: Captured, metadata: dict[str, int]) -> None:
    """The engine's numbers are the documents'; the one that it did not number is dangling."""
    nodes = [
        TextNode(id_="a", text="The kettle boils in four minutes.", metadata=metadata),
        TextNode(id_="b", text="The base turns all the way round."),
        TextNode(id_="c", text="The lid opens with one hand."),
    ]
    engine = CitationQueryEngine(Sections(nodes), Cites())
    with captured.handler:
        engine.query(QUESTION)

    scores = RagEvaluator(metrics=["citations"]).evaluate_sync(captured.only).scores
    evidence: Any = scores["citation_precision"].evidence
    assert [c["documents"] for c in evidence["citations"]] == [[0], [2], []]
    assert [c["state"] for c in evidence["citations"]] == ["right", "right", "dangling"]
    assert [score.value for score in scores.values()] == [2 / 3, 1, 1]
