"""Query engines of every kind: one record a query, with the nodes that the answer rests on."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.postprocessor.node import PrevNextNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.selectors import BaseSelector, MultiSelection, SelectorResult, SingleSelection
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool
from pydantic import BaseModel

from .apps import Chooses, Own, ToolCaller
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, nodes, synthesizer


def tool(name: str, retrieved: list[TextNode]) -> QueryEngineTool:
    asked = engine(Sections(retrieved))
    return QueryEngineTool.from_defaults(asked, name=name, description=name)


QUOTED = [TextNode(id_="q", text="The kettle boils")]
"""A node that the model's answer quotes and adds to."""


class Promptless(PromptMixin):
    """Has no prompts, which LlamaIndex asks for."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    _get_prompt_modules = _get_prompts

    def _update_prompts(self, prompts: Any) -> None: ...


class Selects(Promptless, BaseSelector):
    """Chooses the given tools."""

    def __init__(self, *which: int) -> None:
        self._which = which

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        chosen = [SingleSelection(index=i, reason="told") for i in self._which]
        return MultiSelection(selections=chosen)

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


class Asks(Promptless, BaseQuestionGenerator):
    """Splits every question into the same two."""

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question="How?", tool_name=name) for name in ("speed", "lid")]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def sub_questions(speed: Any, lid: Any, use_async: bool) -> Any:
    tools = [tool("speed", speed), tool("lid", lid)]
    how: Any = {"verbose": False, "use_async": use_async}
    return SubQuestionQueryEngine(Asks(), synthesizer(), tools, **how)


async def ask(query_engine: Any, way: str) -> None:
    await query_engine.aquery(QUESTION) if way == "async" else query_engine.query(QUESTION)


def threads_lose_context(captured: Captured) -> bool:
    """Whether this LlamaIndex runs tasks in threads that do not know what they are a part of.

    0.14.8 does when it is inside of a running loop; then nobody can tell that they belong together.
    """
    lost = len(captured.calls) > 1
    assert not lost or int(version("llama-index-core").split(".")[2]) < 25
    del captured.calls[:-1]  # the outermost ends last
    return lost


both_ways = pytest.mark.parametrize("way", ["sync", "async"])


@both_ways
class TestRouter:
    @pytest.mark.parametrize(("chosen", "retrieved"), [((1,), ["b"]), ((0, 1), ["a", "b"])])
    async def test_is_one_call(
        self, captured: Captured, way: str, chosen: Any, retrieved: list[str]
    ) -> None:
        """One engine or several chosen: the router's query is the call, with all their nodes."""
        tools = [tool("speed", nodes()[:1]), tool("lid", nodes()[1:2])]
        summarizer = synthesizer(response_mode="tree_summarize")
        await ask(RouterQueryEngine(Selects(*chosen), tools, Model(), summarizer), way)

        lost = threads_lose_context(captured)
        assert (captured.only.app, captured.only.response) == ("RouterQueryEngine", ANSWER)
        if not lost:
            assert sorted(captured.ids) == retrieved  # type: ignore[type-var]  # no None here
            assert captured.how.retrievers == ("Sections",) * len(chosen)
            assert captured.how.documents_from == "prompt"


@both_ways
class TestSubQuestions:
    @pytest.mark.parametrize("use_async", [False, True])
    async def test_answers_are_no_documents(
        self, captured: Captured, way: str, use_async: bool
    ) -> None:
        """The engine wraps the partial answers into nodes: only what was retrieved is listed."""
        await ask(sub_questions(nodes()[:1], nodes()[1:2], use_async), way)

        lost = threads_lose_context(captured)
        assert captured.questions == [QUESTION]
        if not lost:
            assert sorted(captured.ids) == ["a", "b"]  # type: ignore[type-var]  # no None here
            assert captured.found[1:] == ("prompt", [])

    async def test_an_answer_that_quotes_is_none(self, captured: Captured, way: str) -> None:
        """Nor is a partial answer that quotes a whole node and adds to it."""
        await ask(sub_questions(QUOTED, nodes()[1:2], False), way)

        if not threads_lose_context(captured):
            assert sorted(captured.ids) == ["b", "q"]  # type: ignore[type-var]  # no None here

    async def test_nothing_found(self, captured: Captured, way: str) -> None:
        """Partial answers alone make no context."""
        await ask(sub_questions([], [], False), way)

        assert captured.found == ([], "retriever", [])


@both_ways
class TestCitation:
    async def test_pieces_are_documents(self, captured: Captured, way: str) -> None:
        """The engine cuts nodes into numbered sources, which keep the retrieved nodes' ids."""
        splitter = SentenceSplitter(chunk_size=12, chunk_overlap=0, tokenizer=str.split)
        parts: Any = {"response_synthesizer": synthesizer(), "text_splitter": splitter}
        await ask(CitationQueryEngine(Sections(), Model(), **parts), way)

        call = captured.only
        headers = [document.header for document in call.documents]
        assert headers == ["page: 3\n\nSource 1:", "Source 2:", "Source 3:"]
        assert [document.text for document in call.documents] == [node.text for node in nodes()]
        assert captured.ids == ["a", "b", "c"]
        assert (captured.how.documents_from, captured.how.not_in_prompt) == ("prompt", ())


@both_ways
class TestNestedRetrievers:
    async def test_fusion(self, captured: Captured, way: str) -> None:
        """Several retrievers behind one: the outermost one's nodes, and its name only."""
        parts: Any = [Sections(nodes()[:2]), Sections(nodes()[1:])]
        how: Any = {"num_queries": 1, "similarity_top_k": 2, "use_async": False}
        await ask(engine(QueryFusionRetriever(parts, MockLLM(), **how)), way)

        assert captured.how.retrievers == ("QueryFusionRetriever",)
        assert (len(captured.ids), captured.left_out) == (2, [])

    async def test_generated_queries(self, captured: Captured, way: str) -> None:
        """What a retriever asks a model, with documents in it, is no prompt of the answer."""

        class Rewrites(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                for node in self._nodes:
                    Model().complete(f"Rewrite {node.get_content()}")
                return super()._retrieve(query_bundle)

        def first(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            Model().complete(f"Rank {retrieved[1].get_content()} {retrieved[2].get_content()}")
            return retrieved[:1]

        def answer(question: str) -> str:
            retrieved = Rewrites(nodes()).retrieve(question)
            chosen = Chooses(choose=first).postprocess_nodes(retrieved)
            return str(Model().complete(chosen[0].get_content()))

        await ask(Own(answer=answer), way)

        assert captured.found == (["a"], "prompt", ["b", "c"])

    @pytest.mark.parametrize("found", [nodes()[1:2], QUOTED], ids=["other", "quoted"])
    async def test_query_engine_inside(
        self, captured: Captured, way: str, found: list[TextNode]
    ) -> None:
        """A retriever returns the answer of an engine as a node: its nodes are the documents."""
        link = IndexNode(id_="link", text="See the lid.", index_id="lid")
        asked = {"lid": engine(Sections(found))}
        recursive = RecursiveRetriever("root", {"root": Sections([link])}, asked)  # type: ignore[arg-type]  # invariant
        await ask(engine(recursive), way)

        assert captured.found == ([found[0].id_], "prompt", [])
        assert captured.only.response == ANSWER


@both_ways
class TestTransforms:
    async def test_hyde(self, captured: Captured, way: str) -> None:
        """The user's question is the call's, whatever is searched for."""
        hyde = HyDEQueryTransform(llm=Model(), include_original=True)
        await ask(TransformQueryEngine(engine(Sections()), hyde), way)

        assert (captured.only.app, captured.questions) == ("TransformQueryEngine", [QUESTION])
        assert captured.ids == ["a", "b", "c"]


class TestPostprocessors:
    def test_built_in_window(self, captured: Captured) -> None:
        """A text that a postprocessor takes from the metadata is what the model sees."""
        text = "The kettle is full. It boils. Steam rises."
        hidden: Any = {"metadata": {"window": text}, "excluded_llm_metadata_keys": ["window"]}
        window = MetadataReplacementPostProcessor(target_metadata_key="window")
        found = Sections([TextNode(text="It boils.", **hidden)])
        engine(found, postprocessors=[window]).query(QUESTION)

        assert [document.text for document in captured.only.documents] == [text]
        assert (captured.how.documents_from, captured.how.not_in_prompt) == ("prompt", ())

    def test_that_adds_neighbours(self, captured: Captured) -> None:
        """Nodes that no retriever gave, but a postprocessor fetched, are documents."""
        first, second = nodes()[:2]
        first.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="b")
        store = SimpleDocumentStore()
        store.add_documents([first, second])
        neighbours = PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="next")
        engine(Sections([first]), postprocessors=[neighbours]).query(QUESTION)

        assert captured.ids == ["a", "b"]


class TestCustomEngines:
    def test_synthesizer_inside(self, captured: Captured) -> None:
        """An engine that returns a bare string after a synthesizer: what was synthesized."""

        def answer(question: str) -> str:
            retrieved = Sections().retrieve(question)
            return str(NoText(llm=Model()).synthesize(question, retrieved[1:]))

        Own(answer=answer).query(QUESTION)

        assert captured.found == (["b", "c"], "dataflow", ["a"])

    def test_response_with_own_nodes(self, captured: Captured) -> None:
        """Sources that no retriever gave are taken from the response."""
        response = Response("Done", source_nodes=[NodeWithScore(node=nodes()[2], score=1)])
        Own(answer=lambda question: response).query(QUESTION)

        assert captured.found == (["c"], "dataflow", [])
        assert (captured.how.retrievers, captured.only.documents[0].score) == ((), 1.0)

    def test_structured_answer(self, captured: Captured) -> None:
        """A pydantic answer is recorded as its field `answer`, else as JSON, a missing one as none."""

        class Speed(BaseModel):
            minutes: int

        class Cited(BaseModel):
            answer: str
            citations: list[int] = [1]

        contents = iter([Speed(minutes=4), Cited(answer="4 min"), None])
        retrieved = Sections().retrieve("?")
        asked = Own(answer=lambda question: PydanticResponse(next(contents), retrieved))
        for _ in range(3):
            asked.query(QUESTION)

        assert captured.responses == ['{"minutes":4}', "4 min", None]

    def test_outermost_is_a_retriever(self, captured: Captured) -> None:
        """A bare retriever is no RAG call, even if it asks a query engine."""

        class Asking(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                return list(engine(Sections()).query(query_bundle).source_nodes)

        assert len(Asking([]).retrieve(QUESTION)) == 3
        assert captured.calls == []

    def test_two_queries_inside(self, captured: Captured) -> None:
        """Two engines asked by a third one that only returns a string."""
        writer = NoText(llm=Model())
        parts = [RetrieverQueryEngine(Sections([node]), writer) for node in nodes()[:2]]
        Own(answer=lambda question: f"{[part.query(question) for part in parts]}").query(QUESTION)

        assert captured.found == (["a", "b"], "dataflow", [])


class TestModes:
    @pytest.mark.parametrize(
        "mode", ["compact", "refine", "tree_summarize", "accumulate", "simple_summarize"]
    )
    async def test_all_see_the_nodes(self, captured: Captured, mode: str) -> None:
        """However the answer is put together, all nodes are found in the prompts."""
        await engine(Sections(), response_mode=mode).aquery(QUESTION)

        assert captured.found == (["a", "b", "c"], "prompt", [])

    def test_that_shows_none(self, captured: Captured) -> None:
        """Where the model is sent the question alone, the nodes are no documents."""
        engine(Sections(), response_mode="generation").query(QUESTION)

        assert captured.found == ([], "retriever", ["a", "b", "c"])

    def test_long_context_in_several_requests(self, captured: Captured) -> None:
        """A node that is too long for one prompt was shown in pieces: it is not lost."""
        long = TextNode(id_="long", text=" ".join(f"word{i}" for i in range(6000)))
        engine(Sections([long, nodes()[1]])).query(QUESTION)

        assert captured.found == (["long", "b"], "dataflow", [])


class TestImages:
    def test_that_was_shown(self, captured: Captured) -> None:
        """An image node that the model got as an image is not listed as left out."""
        images = [ImageNode(id_=name, image_url=f"http://x/{name}.png") for name in "ij"]
        found = Sections([*nodes()[:1], *images])

        def answer(question: str) -> str:
            text, *_ = found.retrieve(question)
            blocks = [TextBlock(text=text.text), ImageBlock(url=images[0].image_url)]
            message = ChatMessage(role="user", blocks=blocks)
            return str(ToolCaller(script=[ANSWER]).chat([message]).message.content)

        Own(answer=answer).query(QUESTION)

        assert captured.found == (["a"], "prompt", ["j"])
