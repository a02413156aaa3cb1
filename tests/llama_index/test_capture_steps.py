"""Methods and workflow steps of the app that have the names of LlamaIndex's own methods."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, index, nodes, scored

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
        return Found(nodes=await Sections().aretrieve(question), question=question)

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
        return StopEvent(result=index())

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

        assert (captured.questions, captured.responses) == ([QUESTION], [ANSWER])
        assert captured.found == (["a"], "prompt", ["b", "c"])
        assert captured.how.retrievers == ("Sections",)

    async def test_ingestion(self, captured: Captured) -> None:
        """An ingestion run, which starts the step `retrieve` as well, is no call."""
        await workflow("retrieve", "rerank", "synthesize").run(dirname="data")

        assert (captured.calls, captured.handler.uncaptured) == ([], 0)

    @pytest.mark.parametrize("name", ["retrieve", "synthesize"])
    async def test_query_inside(self, captured: Captured, name: str) -> None:
        """A query engine that is asked inside of such a step keeps its evidence."""

        async def ask(self: Any, ctx: Context, ev: StartEvent) -> StopEvent:
            return StopEvent(result=await engine(Sections()).aquery(ev.query))

        ask.__name__, ask.__qualname__ = name, f"Asks.{name}"
        asks: Any = type("Asks", (Workflow,), {name: step(ask)})(timeout=20)
        await asks.run(query=QUESTION)

        assert captured.found == (["a", "b", "c"], "prompt", [])

    @pytest.mark.parametrize(
        "found", [(["a"], "dataflow", ["b", "c"]), ([], "retriever", ["a", "b", "c"])]
    )
    async def test_that_only_retrieves(self, captured: Captured, found: Any) -> None:
        """A workflow that returns nodes, or none, has no answer, whatever a grader was shown."""

        def grade(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            Model().complete(f"Relevant? {nodes()[1].text} {retrieved[0].text}")
            return retrieved if found[0] else []

        await workflow("retrieve", "rerank", "grade", result=grade).run(query=QUESTION)

        assert captured.responses == [None]
        assert captured.found == found


class App:
    """An app's own class, which uses LlamaIndex's instrumentation."""

    @dispatcher.span
    def query(self, question: str) -> str:
        return self.complete(question, self.postprocess_nodes(self.retrieve(question)))

    @dispatcher.span
    def retrieve(self, question: str) -> list[NodeWithScore]:
        return Sections().retrieve(question)

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

        assert captured.found == (["b"], "prompt", ["a", "c"])
        assert captured.how.retrievers == ("Sections",)

    def test_pass_nodes_on(self, captured: Captured) -> None:
        """The nodes that they return are those that go on, as of a postprocessor."""

        class Silent(App):
            @dispatcher.span
            def complete(self, question: str, retrieved: list[NodeWithScore]) -> str:
                return f"There are {len(retrieved)}."

        Silent().query(QUESTION)

        assert captured.found == (["a", "b"], "dataflow", ["c"])

    def test_may_find_nodes_themselves(self, captured: Captured) -> None:
        """A class without LlamaIndex's base class finds nodes as well."""

        class Finds(App):
            @dispatcher.span
            def retrieve(self, question: str) -> list[NodeWithScore]:
                return scored()

        Finds().query(QUESTION)

        assert captured.found == (["b"], "prompt", ["a", "c"])
