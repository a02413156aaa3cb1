"""Methods and workflow steps of the app that have the names of LlamaIndex's own methods."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from rag_eval_integrations.cli.demo.llama_index_app import HashedWords

from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, nodes

dispatcher = get_dispatcher("an.app")


class Found(Event):
    nodes: list[Any]
    question: str = ""


class Chosen(Found):
    pass


def workflow(first: str, second: str, third: str, *, result: Any = None) -> Workflow:
    """Make a workflow whose three steps have these names."""

    async def find(self: Any, ctx: Context, ev: StartEvent) -> Found | None:
        question = ev.get("query")
        if question is None:
            return None
        return Found(nodes=await Sections(nodes()).aretrieve(question), question=question)

    async def choose(self: Any, ctx: Context, ev: Found) -> Chosen:
        return Chosen(nodes=ev.nodes[:1], question=ev.question)

    async def answer(self: Any, ctx: Context, ev: Chosen) -> StopEvent:
        if result is not None:
            return StopEvent(result=result(ev.nodes))
        told = await Model().acomplete(f"Use: {ev.nodes[0].text} for {ev.question}")
        return StopEvent(result=told.text)

    async def ingest(self: Any, ctx: Context, ev: StartEvent) -> StopEvent | None:
        if ev.get("dirname") is None:
            return None
        made = VectorStoreIndex(nodes(), embed_model=HashedWords(), transformations=[])
        return StopEvent(result=made)

    steps = {first: find, second: choose, third: answer, "ingest": ingest}
    for name, function in steps.items():
        function.__name__, function.__qualname__ = name, f"Rag.{name}"
    methods = {name: step(function) for name, function in steps.items()}
    made: Workflow = type("Rag", (Workflow,), methods)(timeout=20)
    return made


class TestSteps:
    @pytest.mark.parametrize(
        "names",
        [
            ("find", "choose", "answer"),
            ("retrieve", "postprocess_nodes", "asynthesize"),
            ("chat", "acall", "achat"),
        ],
    )
    async def test_names_do_not_matter(self, captured: Captured, names: Any) -> None:
        """Whatever the steps are called, the retriever inside and the prompt tell the documents."""
        assert await workflow(*names).run(query=QUESTION) == ANSWER

        assert (captured.only.question, captured.only.response) == (QUESTION, ANSWER)
        assert (captured.ids, captured.left_out) == (["a"], ["b", "c"])
        assert captured.how.documents_from == "prompt"
        assert captured.how.retrievers == ("Sections",)

    async def test_ingestion(self, captured: Captured) -> None:
        """An ingestion run, which starts the step `retrieve` as well, is no call."""
        await workflow("retrieve", "rerank", "synthesize").run(dirname="data")

        assert (captured.calls, captured.handler.uncaptured) == ([], 0)

    @pytest.mark.parametrize("name", ["retrieve", "synthesize"])
    async def test_query_inside(self, captured: Captured, name: str) -> None:
        """A query engine that is asked inside of such a step keeps its evidence."""

        async def ask(self: Any, ctx: Context, ev: StartEvent) -> StopEvent:
            return StopEvent(result=await engine(Sections(nodes())).aquery(ev.query))

        ask.__name__, ask.__qualname__ = name, f"Asks.{name}"
        asks: Any = type("Asks", (Workflow,), {name: step(ask)})(timeout=20)
        await asks.run(query=QUESTION)

        assert captured.ids == ["a", "b", "c"]
        assert captured.how.documents_from == "prompt"

    @pytest.mark.parametrize("kept", [["a"], []])
    async def test_that_only_retrieves(self, captured: Captured, kept: list[str]) -> None:
        """A workflow that returns nodes, or none, has no answer, whatever a grader was shown."""

        def grade(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            Model().complete(f"Relevant? {nodes()[1].text} {retrieved[0].text}")
            return retrieved if kept else []

        await workflow("retrieve", "rerank", "grade", result=grade).run(query=QUESTION)

        assert (captured.only.response, captured.ids) == (None, kept)
        assert captured.how.documents_from == ("dataflow" if kept else "retriever")
        assert len(captured.left_out) == 3 - len(kept)


class App:
    """An app's own class, which uses LlamaIndex's instrumentation."""

    @dispatcher.span
    def query(self, question: str) -> str:
        return self.complete(question, self.postprocess_nodes(self.retrieve(question)))

    @dispatcher.span
    def retrieve(self, question: str) -> list[NodeWithScore]:
        return Sections(nodes()).retrieve(question)

    @dispatcher.span
    def postprocess_nodes(self, retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
        return retrieved[:2]

    @dispatcher.span
    def complete(self, question: str, retrieved: list[NodeWithScore]) -> str:
        return str(Model().complete(f"{retrieved[1].text} {question}"))


class TestOwnMethods:
    def test_are_not_internal(self, captured: Captured) -> None:
        """Retrievers and models inside of them are seen."""
        App().query(QUESTION)

        assert captured.ids == ["b"]
        assert captured.how.documents_from == "prompt"
        assert captured.how.retrievers == ("Sections",)

    def test_pass_nodes_on(self, captured: Captured) -> None:
        """The nodes that they return are those that go on, as of a postprocessor."""

        class Silent(App):
            @dispatcher.span
            def complete(self, question: str, retrieved: list[NodeWithScore]) -> str:
                return f"There are {len(retrieved)}."

        Silent().query(QUESTION)

        assert captured.ids == ["a", "b"]
        assert captured.how.documents_from == "dataflow"

    def test_may_find_nodes_themselves(self, captured: Captured) -> None:
        """A class without LlamaIndex's base class finds nodes as well."""

        class Finds(App):
            @dispatcher.span
            def retrieve(self, question: str) -> list[NodeWithScore]:
                return [NodeWithScore(node=node, score=0.5) for node in nodes()]

        Finds().query(QUESTION)

        assert (captured.ids, captured.left_out) == (["b"], ["a", "c"])
