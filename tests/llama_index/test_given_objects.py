"""LlamaIndex's own objects where a judge or a document goes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.llama_index import LlamaIndexModel


def test_an_llm_is_a_judge() -> None:
    """It is asked with the labelling prompt; MockLLM repeats it, and so gives no labels."""
    call = RagCall("When?", ["At nine."], "At nine.")
    evaluation = RagEvaluator(judge=MockLLM(max_tokens=3)).evaluate_sync(call)

    assert isinstance(judge_from(MockLLM()), LlamaIndexModel)
    assert evaluation.judge.name == "llama_index:MockLLM:unknown"
    assert evaluation.scores["adherence"].unscored == "judge_output_invalid"


def test_another_object_of_llama_index_is_refused() -> None:
    """With what to pass, and without its `repr`, which may hold a key."""
    with pytest.raises(ConfigurationError, match=r"`judge` = <class .*LlamaIndex LLM") as caught:
        RagEvaluator(MockEmbedding(embed_dim=3, api_key="sk-secret"))  # type: ignore[arg-type]

    assert "sk-secret" not in str(caught.value)


def test_nodes_are_taken_as_they_are() -> None:
    """Nodes, nodes with scores and whole documents: text, id, score, metadata as JSON values."""
    node = TextNode(id_="t1", text="At nine.")
    when = {"at": datetime(2026, 1, 2, tzinfo=UTC)}
    dated = LlamaIndexDocument(
        id_="t2", text="At ten.", metadata=when, excluded_llm_metadata_keys=["at"]
    )
    scored = NodeWithScore(node=node, score=0.5)
    call = RagCall("When?", [scored, node, dated, "At eleven."], "Nine.")

    assert [(document.id, document.text, document.score) for document in call.documents] == [
        ("t1", "At nine.", 0.5), ("t1", "At nine.", None),
        ("t2", "At ten.", None), (None, "At eleven.", None),
    ]  # fmt: skip
    assert call.documents[2].metadata == {"at": "2026-01-02T00:00:00+00:00"}
    assert RagCall.model_validate_json(call.model_dump_json()) == call
