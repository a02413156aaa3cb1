"""What handlers of both frameworks take as target: an evaluator, a judge's name, a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.llama_index import RagEvalHandler

HANDLERS = pytest.mark.parametrize("make", [RagEvalCallbackHandler, RagEvalHandler])


@HANDLERS
def test_a_judges_name_is_enough(make: Callable[[object], Any]) -> None:
    """It makes the evaluator that a reader would make of it."""
    handler = make("embedded")

    assert handler.flush()
    assert "RagEvaluator(EmbeddedJudge()" in repr(handler._delivery)
    with pytest.raises(ConfigurationError, match="no such judge"):
        make("embeded")


@HANDLERS
def test_what_is_captured_is_no_target(make: Callable[[object], Any]) -> None:
    """A chain or an engine in place of the target is told what to type, in a line."""
    index = VectorStoreIndex([], embed_model=MockEmbedding(8))
    typed = {"invoke": RunnableLambda(str), "install": index.as_retriever()}
    for words, wrong in typed.items():
        with pytest.raises(ConfigurationError, match=f"is part of the app.*{words}") as refused:
            make(wrong)
        assert len(str(refused.value)) < 200
    with pytest.raises(ConfigurationError, match="a judge's name, a RagEvaluator or a function"):
        make(7)


async def chosen_later(name: str) -> bool:
    return True


@HANDLERS
@pytest.mark.parametrize("wrong", ["search", b"search", 5, [1], chosen_later])
def test_tools_are_chosen_by_names_or_a_plain_function(
    make: Callable[..., Any], wrong: object
) -> None:
    """A bare string, whose letters would be names, is refused; so is what would be awaited."""
    with pytest.raises(ConfigurationError, match="tool_documents"):
        make(print, tool_documents=wrong)
