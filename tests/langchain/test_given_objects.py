"""LangChain's own objects where a judge or a document goes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler, as_evaluators
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import to_line
from rag_eval_integrations.testing import labels_reply

from .conftest import model


def test_a_chat_model_is_a_judge() -> None:
    """It is asked with the labelling prompt, and named in the scores."""
    evaluator = RagEvaluator(judge=model(labels_reply(["0a"], ["a"])))
    evaluation = evaluator.evaluate_sync(RagCall("When?", ["At nine."], "At nine."))

    assert evaluation.scores["adherence"].value == 1.0
    assert evaluation.judge.name == "langchain:FakeListChatModel"
    assert "LangChainModel" in repr(evaluator)


@pytest.mark.parametrize(
    "judge", [FakeListLLM(responses=["x"]), DeterministicFakeEmbedding(size=3), FakeListChatModel]
)
def test_another_object_of_langchain_is_refused(judge: object) -> None:
    """With what to pass, and without its `repr`, which may hold a key."""
    with pytest.raises(ConfigurationError, match=r"`judge` = <class .*LangChain chat model"):
        RagEvaluator(judge)  # type: ignore[arg-type]


def test_documents_are_taken_as_they_are() -> None:
    """Text, id, score, and metadata as JSON values; beside strings, and of a subclass."""

    class Page(LangChainDocument):
        pass

    metadata = {"at": datetime(2026, 1, 2, tzinfo=UTC), "score": 0.5}
    first = LangChainDocument("At nine.", id="t1", metadata=metadata)
    call = RagCall("When?", [first, Page(page_content="At ten."), "At eleven."], "At nine.")

    assert [document.text for document in call.documents] == ["At nine.", "At ten.", "At eleven."]
    assert (call.documents[0].id, call.documents[0].score) == ("t1", 0.5)
    assert call.documents[0].metadata == {"at": "2026-01-02T00:00:00+00:00", "score": 0.5}
    assert RagCall.model_validate_json(call.model_dump_json()) == call
    assert to_line(call)


def test_handlers_and_evaluators_say_what_they_hold() -> None:
    """One line each: judge, scores, and what came of it; in LlamaIndex as well."""
    evaluator = RagEvaluator()
    (first, *_) = as_evaluators(evaluator).values()

    for kind in (RagEvalCallbackHandler, RagEvalHandler):
        assert repr(kind(evaluator)) == f"{kind.__name__}({evaluator!r}, 0 failed)"
    assert repr(RagEvalCallbackHandler(print)) == "RagEvalCallbackHandler(print, 0 failed)"
    assert repr(first) == f"MetricEvaluator('context_relevance', {evaluator!r})"
