"""What evaluators ask is no user's question: LlamaIndex's own, and whatever the app marks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings, SummaryIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.evaluation import (
    BatchEvalRunner,
    ContextRelevancyEvaluator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.query_engine import RetryQueryEngine

from rag_eval_integrations.cli.demo.llama_index_app import HashedWords
from rag_eval_integrations.llama_index import suppress_capture

from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, nodes

# LlamaIndex's own batch runner calls what LlamaIndex has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")

OWN = PromptTemplate("Does {context_str} hold {query_str}?")
EVALUATORS = [FaithfulnessEvaluator, RelevancyEvaluator, ContextRelevancyEvaluator]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluators build an index and an engine with whatever is set for the process."""
    monkeypatch.setattr(Settings, "_llm", Model())
    monkeypatch.setattr(Settings, "_embed_model", HashedWords())
    monkeypatch.setattr(Settings, "_tokenizer", str.split)
    monkeypatch.setattr(Settings, "_callback_manager", CallbackManager([]))


TEXTS: Any = {"query": QUESTION, "response": ANSWER, "contexts": ["It boils in four minutes."]}


class TestLlamaIndexEvaluators:
    @pytest.mark.parametrize("kind", EVALUATORS)
    async def test_are_no_calls(self, captured: Captured, kind: Any) -> None:
        """Awaited or not, in a loop or not; a template of the user's leaves the other, which is recognised."""
        await kind(llm=Model()).aevaluate(**TEXTS)
        kind(llm=Model()).evaluate(**TEXTS)
        for given in ("eval_template", "refine_template"):
            evaluator = kind(llm=Model(), **{given: OWN})
            await asyncio.to_thread(evaluator.evaluate, **TEXTS)

        assert captured.calls == []

    async def test_of_a_batch_are_told_from_its_questions(self, captured: Captured) -> None:
        """The batch runner's own queries are the app's."""
        runner = BatchEvalRunner({"faithful": FaithfulnessEvaluator(llm=Model())})
        await runner.aevaluate_queries(engine(Sections()), [QUESTION, "And the lid?"])

        assert sorted(captured.questions) == ["And the lid?", QUESTION]

    def test_in_a_retry_engine_leave_no_trace(self, captured: Captured) -> None:
        """Neither retrievers nor nodes of theirs are the call's."""
        inner = engine(Sections())
        RetryQueryEngine(inner, FaithfulnessEvaluator(llm=Model()), max_retries=1).query(QUESTION)

        assert (captured.questions, set(captured.how.retrievers)) == ([QUESTION], {"Sections"})
        assert captured.found == (["a", "b", "c"], "prompt", [])

    @pytest.mark.parametrize("kind", EVALUATORS)
    def test_with_only_templates_of_the_users(self, captured: Captured, kind: Any) -> None:
        """Nothing marks their queries then: the evaluator suppresses them itself."""

        class Suppressed(kind):  # type: ignore[misc]  # a class by parameter
            async def aevaluate(self, *args: Any, **options: Any) -> Any:
                with suppress_capture():
                    return await super().aevaluate(*args, **options)

        templates = {"eval_template": OWN, "refine_template": OWN}
        Suppressed(llm=Model(), **templates).evaluate(**TEXTS)
        assert captured.calls == []

        kind(llm=Model(), **templates).evaluate(**TEXTS)
        assert len(captured.calls) == 1

    def test_a_summary_index_is_the_apps(self, captured: Captured) -> None:
        """The evaluators' kind of index and engine, with an app's own prompts or the default."""
        index = SummaryIndex(nodes())
        for prompts in ({}, {"text_qa_template": OWN, "refine_template": OWN}):
            index.as_query_engine(llm=Model(), **prompts).query(QUESTION)

        assert captured.questions == [QUESTION] * 2

    def test_another_aevaluate_is_the_apps(self, captured: Captured) -> None:
        """Only LlamaIndex's evaluators count, not whatever has a method of that name."""

        class Report:
            def aevaluate(self) -> str:
                return str(engine(Sections()).query(QUESTION))

        assert Report().aevaluate() == ANSWER
        assert captured.only.question == QUESTION
