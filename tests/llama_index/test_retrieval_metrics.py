"""Retrieval metrics with LlamaIndex: gold ids in wrappers, data sets, evaluators, batches."""

from __future__ import annotations

import random
from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner, resolve_metrics
from llama_index.core.schema import TextNode

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import (
    EvaluatedRetriever,
    as_evaluators,
    evaluate_query_engine,
)
from rag_eval_integrations.metrics import Retrieval

from .conftest import QUESTION, Sections, engine, scored

GOLD = ["b", "z"]
"""Of the nodes a, b, c, in this order."""


def evaluator() -> RagEvaluator:
    return RagEvaluator(metrics=[Retrieval(k=(1, 3))])


async def test_a_wrapped_retriever_is_scored() -> None:
    """Node ids are the documents' ids; sync and async."""
    wrapped = EvaluatedRetriever(Sections(), evaluator(), relevant_ids={QUESTION: GOLD})

    wrapped.retrieve(QUESTION)
    await wrapped.aretrieve("Another question?")
    wrapped.flush()

    known, unknown = wrapped.evaluations
    assert [known.scores[f"mrr@{k}"].value for k in (1, 3)] == [0, 1 / 2]
    assert (known.relevant_ids, known.document_ids) == (("b", "z"), ("a", "b", "c"))
    assert {score.unscored for score in unknown.scores.values()} == {"missing_param"}


def test_unusable_gold_is_refused() -> None:
    """When the wrapper is made, or before the first question is asked."""
    with pytest.raises(ConfigurationError, match=r"`relevant_ids\['q'\]`"):
        EvaluatedRetriever(Sections(), print, relevant_ids={"q": "a"})
    with pytest.raises(ConfigurationError, match=r"`questions\[0\].relevant_ids\[0\]`"):
        evaluate_query_engine(engine(), [{"query": "q", "relevant_ids": [1.5]}], evaluator())


def test_questions_bring_gold() -> None:
    """As a row of a data set; the engine's source nodes are the ranking."""
    example = {"query": QUESTION, "relevant_ids": ["a", "z"]}
    (evaluation,) = evaluate_query_engine(engine(), [example], evaluator())

    assert evaluation.relevant_ids == ("a", "z")
    assert evaluation.scores["recall@3"].value == 1 / 2


def test_evaluators_take_gold() -> None:
    """Beside contexts, and beside a response with source nodes; nodes without an answer will do."""
    view = as_evaluators(evaluator())["mrr@3"]

    by_texts = view.evaluate(QUESTION, None, scored(), relevant_ids=GOLD)  # type: ignore[arg-type]
    response = Response("In four.", source_nodes=scored())
    by_response = view.evaluate_response(QUESTION, response, relevant_ids=GOLD)

    for result in (by_texts, by_response):
        assert (result.score, result.invalid_result) == (1 / 2, False)


@pytest.mark.parametrize("response", ["An answer.", None])
def test_without_contexts_there_is_no_number(response: str | None) -> None:
    """Nobody said what was retrieved; an empty list, or no source node, says that nothing was."""
    view = as_evaluators(evaluator())["mrr@3"]

    unknown = view.evaluate(QUESTION, response, relevant_ids=GOLD)
    assert (unknown.invalid_reason or "").startswith("no_context")
    assert view.evaluate(QUESTION, response, [], relevant_ids=GOLD).score == 0
    assert view.evaluate_response(QUESTION, Response("x"), relevant_ids=GOLD).score == 0


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
async def test_a_batch_takes_gold_for_each_item() -> None:
    """As LlamaIndex hands over what differs by item."""
    runner = BatchEvalRunner({"mrr": as_evaluators(evaluator())["mrr@3"]})
    responses = [Response("x", source_nodes=scored())] * 2
    kwargs: dict[str, Any] = {"mrr": {"relevant_ids": [["a"], ["c"]]}}

    found = await runner.aevaluate_responses(["q1", "q2"], responses, **kwargs)

    assert [result.score for result in found["mrr"]] == [1, 1 / 3]


def test_equal_to_llama_indexs_own_where_they_agree() -> None:
    """With a k that cuts nothing; precision divides by k here, by the number retrieved there."""
    chance = random.Random(7)
    pool = [f"n{number}" for number in range(12)]
    for _ in range(60):
        ranking, gold = (chance.sample(pool, chance.randint(1, 8)) for _ in range(2))
        k = max(len(ranking), len(gold))
        call = RagCall("q", [TextNode(text=n, id_=n) for n in ranking], None, relevant_ids=gold)
        ours = RagEvaluator(metrics=[Retrieval(k=k)]).evaluate_sync(call).scores
        for theirs in resolve_metrics(["hit_rate", "mrr", "recall", "ap", "ndcg", "precision"]):
            retrieved = theirs().compute(expected_ids=gold, retrieved_ids=ranking).score
            name = theirs.metric_name.replace("ap", "map")
            divided = k / len(ranking) if name == "precision" else 1
            value = ours[f"{name}@{k}"].value
            assert value is not None
            assert value * divided == pytest.approx(retrieved, abs=1e-12)
