"""Retrieval metrics with LangChain: gold ids in wrappers, data sets, evaluator objects, examples."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import EvaluatedRetriever, as_evaluators, evaluate_dataset
from rag_eval_integrations.metrics import Retrieval
from rag_eval_integrations.report import Evaluations

from .apps import QUESTION
from .conftest import Sections, rag_chain, sections

GOLD: dict[str, Any] = {"relevant_ids": ["b", "z"]}
"""Of the documents a, b, c, in this order."""


def evaluator() -> RagEvaluator:
    return RagEvaluator(metrics=[Retrieval(k=(1, 3))])


class TestRetriever:
    def test_questions_with_gold_are_scored(self) -> None:
        """Those without are unscored; nothing is asked of a judge."""
        retriever = EvaluatedRetriever(Sections(), evaluator(), relevant_ids={QUESTION: ["b", "z"]})

        retriever.invoke(QUESTION)
        retriever.batch(["Another question?"])
        retriever.flush()

        known, unknown = retriever.evaluations
        values = [known.scores[name].value for name in ("mrr@1", "mrr@3", "recall@3")]
        assert values == [0, 1 / 2, 1 / 2]
        assert (known.relevant_ids, known.document_ids) == (("b", "z"), ("a", "b", "c"))
        assert {score.unscored for score in unknown.scores.values()} == {"missing_param"}

    @pytest.mark.parametrize(
        ("failing", "expected"), [(True, (None, "no_context")), (False, (0.0, None))]
    )
    def test_a_failed_retrieval_is_not_a_bad_one(self, failing: bool, expected: Any) -> None:
        """Nobody knows what would have been found; one that ran and found nothing is zero."""
        inner = Sections(error="down") if failing else Sections(found=[])
        calls: list[RagCall] = []
        retriever = EvaluatedRetriever(inner, calls.append, relevant_ids={QUESTION: ["a"]})

        with pytest.raises(RuntimeError) if failing else nullcontext():
            retriever.invoke(QUESTION)

        evaluation = evaluator().evaluate_sync(calls[0])
        assert evaluation.relevant_ids == ("a",)
        found = {(score.value, score.unscored) for score in evaluation.scores.values()}
        assert found == {expected}

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            (["a"], "relevant_ids"),
            ({1: ["a"]}, "relevant_ids"),
            ({"q": "a"}, "relevant_ids['q']"),
            ({"q": ["a", 1.5]}, "relevant_ids['q'][1]"),
            ({"q": [""]}, "relevant_ids['q'][0]"),
        ],
    )
    def test_unusable_gold_is_refused(self, given: Any, field: str) -> None:
        """When the wrapper is made, with the place."""
        with pytest.raises(ConfigurationError) as refused:
            EvaluatedRetriever(Sections(), [].append, relevant_ids=given)

        assert refused.value.field == field

    def test_unusable_gold_of_an_example_or_by_name_is_refused(self) -> None:
        """Before anything is run."""
        examples = [QUESTION, {"question": "q", "relevant_ids": "a"}]
        with pytest.raises(ConfigurationError, match=r"`examples\[1\].relevant_ids`"):
            evaluate_dataset(rag_chain(), examples, evaluator())
        with pytest.raises(ConfigurationError, match="`relevant_ids`"):
            as_evaluators(evaluator())["mrr@3"](question="q", documents=["a"], relevant_ids="a")


class TestDataset:
    @pytest.mark.parametrize(
        "example",
        [
            {"question": QUESTION, **GOLD},
            {"inputs": QUESTION, "outputs": GOLD},
            {"inputs": QUESTION, "reference_outputs": GOLD},
            RagCall(QUESTION, [], None, relevant_ids=["b", "z"]),
        ],
        ids=["row", "outputs", "reference outputs", "call"],
    )
    def test_examples_bring_gold(self, example: Any) -> None:
        """In each of the accepted forms; ids alone are not taken for an answer."""
        (evaluation,) = evaluate_dataset(rag_chain(), [example], evaluator())

        assert evaluation.scores["mrr@3"].value == 1 / 2
        assert (evaluation.relevant_ids, evaluation.reference) == (("b", "z"), None)

    def test_other_gold_is_asked_again(self, tmp_path: Path) -> None:
        """A row of an earlier run is reused for its own gold only."""
        out = tmp_path / "evals.jsonl"
        asked: list[object] = []

        def chain(given: Any) -> str:
            asked.append(given)
            return "yes"

        def run(*gold: list[str] | None, **options: Any) -> Evaluations:
            examples = [{"question": QUESTION, "id": "1", "relevant_ids": each} for each in gold]
            return evaluate_dataset(chain, examples, evaluator(), out=out, **options)

        run(["a"], ["b"], None)
        assert len(asked) == 3
        found = run(None, ["b"], ["a"], [], resume=True)
        assert len(asked) == 4
        assert [evaluation.relevant_ids for evaluation in found] == [None, ("b",), ("a",), ()]
        with pytest.raises(ConfigurationError, match="other questions"):
            run(["c"], resume=True)


class TestEvaluatorObjects:
    def test_values_by_name(self) -> None:
        """Gold ids beside the documents, or in the expected outputs."""
        view, documents = as_evaluators(evaluator())["mrr@3"], sections()

        plain = view(question=QUESTION, documents=documents, **GOLD)
        outputs = {"answer": "yes", "documents": documents}
        expected = view(inputs=QUESTION, outputs=outputs, reference_outputs=GOLD)

        for result in (plain, expected):
            assert (result["key"], result["score"]) == ("mrr@3", 1 / 2)
            assert result["metadata"]["method"] == "gold_ids"

    def test_without_documents_there_is_no_number(self) -> None:
        """Nobody said what was retrieved."""
        view = as_evaluators(evaluator())["recall@3"]
        given: list[dict[str, Any]] = [
            {"inputs": QUESTION, "outputs": "yes"},
            {"question": QUESTION},
            {"question": QUESTION, "response": None},
            {"run": SimpleNamespace(id=uuid4(), inputs=QUESTION, outputs="yes")},
        ]

        for values in given:
            result = view(**values, relevant_ids=["a"])
            assert result["score"] is None
            assert result["comment"].startswith("unscored (no_context)")
        assert view(question=QUESTION, documents=[], relevant_ids=["a"])["score"] == 0
