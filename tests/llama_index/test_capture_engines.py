"""Query engines of every kind: one record a query, with the nodes that the answer rests on."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import (
    MetadataReplacementPostProcessor,
    PrevNextNodePostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import (
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

from rag_eval_integrations.records import RagCall

from .conftest import (
    ANSWER,
    HELPER,
    QUESTION,
    Captured,
    Chooses,
    Model,
    Own,
    Sections,
    engine,
    ids,
    nodes,
    seen,
    synthesizer,
)


def tool(name: str, retrieved: list[TextNode], **more: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(
        engine(Sections(retrieved), **more), name=name, description=name
    )


class Selects(BaseSelector):
    """Chooses the given tools."""

    def __init__(self, *which: int) -> None:
        self._which = which

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return MultiSelection(
            selections=[SingleSelection(index=i, reason="told") for i in self._which]
        )

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


class Asks(BaseQuestionGenerator):
    """Splits every question into the same two."""

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(sub_question="How fast?", tool_name="speed"),
            SubQuestion(sub_question="Which lid?", tool_name="lid"),
        ]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


def sub_questions(speed: Any, lid: Any, use_async: bool) -> Any:
    return SubQuestionQueryEngine(
        question_gen=Asks(),
        response_synthesizer=synthesizer(),
        query_engine_tools=[tool("speed", speed), tool("lid", lid)],
        verbose=False,
        use_async=use_async,
    )


async def ask(query_engine: Any, way: str) -> None:
    await query_engine.aquery(QUESTION) if way == "async" else query_engine.query(QUESTION)


def threads_lose_context(captured: Captured) -> bool:
    """Whether this LlamaIndex runs tasks in threads that do not know what they are a part of.

    0.14.8 does when it is inside of a running loop; then nobody can tell that they belong together.
    """
    assert len(captured.calls) == 1 or int(version("llama-index-core").split(".")[2]) < 25
    return len(captured.calls) > 1


def outermost(captured: Captured) -> RagCall:
    """The last call to end."""
    return captured.calls[-1]


both_ways = pytest.mark.parametrize("way", ["sync", "async"])


@both_ways
class TestRouter:
    @pytest.mark.parametrize(("chosen", "retrieved"), [((1,), ["b"]), ((0, 1), ["a", "b"])])
    async def test_is_one_call(
        self, captured: Captured, way: str, chosen: Any, retrieved: list[str]
    ) -> None:
        """One engine or several chosen: the router's query is the call, with all their nodes."""
        router = RouterQueryEngine(
            selector=Selects(*chosen),
            llm=Model(),
            query_engine_tools=[tool("speed", nodes()[:1]), tool("lid", nodes()[1:2])],
            summarizer=TreeSummarize(llm=Model(), prompt_helper=HELPER),
        )
        await ask(router, way)

        call = outermost(captured)
        assert call.app == "RouterQueryEngine"
        assert call.response == ANSWER
        if not threads_lose_context(captured):
            assert sorted(ids(call)) == retrieved  # type: ignore[type-var]  # no None here
            assert seen(call).retrievers == ("Sections",) * len(chosen)
            assert seen(call).documents_from == "prompt"


@both_ways
class TestSubQuestions:
    @pytest.mark.parametrize("use_async", [False, True])
    async def test_answers_are_no_documents(
        self, captured: Captured, way: str, use_async: bool
    ) -> None:
        """The engine wraps the partial answers into nodes: only what was retrieved is listed."""
        await ask(sub_questions(nodes()[:1], nodes()[1:2], use_async), way)

        call = outermost(captured)
        assert call.question == QUESTION
        if not threads_lose_context(captured):
            assert sorted(ids(call)) == ["a", "b"]  # type: ignore[type-var]  # no None here
            assert not any("Sub question" in document.text for document in call.documents)
            assert (seen(call).documents_from, seen(call).not_in_prompt) == ("prompt", ())

    async def test_nothing_found(self, captured: Captured, way: str) -> None:
        """Partial answers alone make no context."""
        await ask(sub_questions([], [], False), way)

        assert captured.only.documents == ()
        assert captured.how.documents_from == "retriever"


@both_ways
class TestCitation:
    async def test_pieces_are_documents(self, captured: Captured, way: str) -> None:
        """The engine cuts nodes into numbered sources with new ids: these are what is shown."""
        cited = CitationQueryEngine(
            retriever=Sections([TextNode(id_=node.id_, text=node.text) for node in nodes()]),
            llm=Model(),
            response_synthesizer=synthesizer(),
            citation_chunk_size=12,
            citation_chunk_overlap=0,
            text_splitter=SentenceSplitter(chunk_size=12, chunk_overlap=0, tokenizer=str.split),
        )
        await ask(cited, way)

        call = captured.only
        names = [document.text.split(":")[0] for document in call.documents]
        assert names == ["Source 1", "Source 2", "Source 3"]
        assert "The kettle boils in four minutes." in call.documents[0].text
        assert (captured.how.documents_from, captured.how.not_in_prompt) == ("prompt", ())


@both_ways
class TestNestedRetrievers:
    async def test_fusion(self, captured: Captured, way: str) -> None:
        """Several retrievers behind one: the outermost one's nodes, and its name only."""
        fused = QueryFusionRetriever(
            [Sections(nodes()[:2]), Sections(nodes()[1:])],
            llm=MockLLM(),
            num_queries=1,
            similarity_top_k=2,
            use_async=False,
        )
        await ask(engine(fused), way)

        assert captured.how.retrievers == ("QueryFusionRetriever",)
        assert len(captured.only.documents) == 2
        assert captured.how.not_in_prompt == ()

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

        assert captured.ids == ["a"]
        assert captured.how.documents_from == "prompt"

    async def test_query_engine_inside(self, captured: Captured, way: str) -> None:
        """A retriever returns the answer of an engine as a node: its nodes are the documents."""
        link = IndexNode(id_="link", text="See the lid.", index_id="lid")
        recursive = RecursiveRetriever(
            "root",
            retriever_dict={"root": Sections([link])},
            query_engine_dict={"lid": engine(Sections(nodes()[1:2]))},
        )
        await ask(engine(recursive), way)

        assert captured.ids == ["b"]
        assert (captured.how.documents_from, captured.how.not_in_prompt) == ("prompt", ())
        assert captured.only.response == ANSWER


@both_ways
class TestTransforms:
    async def test_hyde(self, captured: Captured, way: str) -> None:
        """The user's question is the call's, whatever is searched for."""
        hyde = TransformQueryEngine(
            engine(Sections(nodes())), HyDEQueryTransform(llm=Model(), include_original=True)
        )
        await ask(hyde, way)

        assert captured.only.question == QUESTION
        assert captured.only.app == "TransformQueryEngine"
        assert captured.ids == ["a", "b", "c"]


class TestPostprocessors:
    def test_built_in_window(self, captured: Captured) -> None:
        """A text that a postprocessor takes from the metadata is what the model sees."""
        text = "The kettle is full. It boils. Steam rises."
        node = TextNode(text="It boils.", metadata={"window": text})
        node.excluded_llm_metadata_keys = ["window"]
        window = MetadataReplacementPostProcessor(target_metadata_key="window")
        engine(Sections([node]), postprocessors=[window]).query(QUESTION)

        assert [document.text for document in captured.only.documents] == [text]
        assert (captured.how.documents_from, captured.how.not_in_prompt) == ("prompt", ())

    def test_that_adds_neighbours(self, captured: Captured) -> None:
        """Nodes that no retriever gave, but a postprocessor fetched, are documents."""
        first, second = nodes()[:2]
        first.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="b")
        second.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id="a")
        store = SimpleDocumentStore()
        store.add_documents([first, second])
        neighbours = PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="next")
        engine(Sections([first]), postprocessors=[neighbours]).query(QUESTION)

        assert captured.ids == ["a", "b"]


class TestCustomEngines:
    def test_synthesizer_inside(self, captured: Captured) -> None:
        """An engine that returns a bare string after a synthesizer: what was synthesized."""

        def answer(question: str) -> str:
            retrieved = Sections(nodes()).retrieve(question)
            return str(NoText(llm=Model()).synthesize(question, retrieved[1:]))

        Own(answer=answer).query(QUESTION)

        assert captured.ids == ["b", "c"]
        assert captured.how.documents_from == "dataflow"

    def test_response_with_own_nodes(self, captured: Captured) -> None:
        """Sources that no retriever gave are taken from the response."""
        response = Response("Done", source_nodes=[NodeWithScore(node=nodes()[2], score=1)])
        Own(answer=lambda question: response).query(QUESTION)

        assert captured.ids == ["c"]
        assert captured.only.documents[0].score == 1.0
        assert (captured.how.retrievers, captured.how.documents_from) == ((), "dataflow")

    def test_structured_answer(self, captured: Captured) -> None:
        """A pydantic answer is recorded as its JSON, a missing one as none."""

        class Speed(BaseModel):
            answer: str

        def answer(question: str) -> PydanticResponse:
            return PydanticResponse(contents.pop(), Sections(nodes()).retrieve(question))

        contents = [None, Speed(answer="4 min")]
        for _ in range(2):
            Own(answer=answer).query(QUESTION)

        assert [call.response for call in captured.calls] == ['{"answer":"4 min"}', None]

    def test_outermost_is_a_retriever(self, captured: Captured) -> None:
        """A bare retriever is no RAG call, even if it asks a query engine."""

        class Asking(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                return list(engine(Sections(nodes())).query(query_bundle).source_nodes)

        assert len(Asking([]).retrieve(QUESTION)) == 3
        assert captured.calls == []

    def test_two_queries_inside(self, captured: Captured) -> None:
        """Two engines asked by a third one that only returns a string."""
        parts = [engine(Sections([node]), mode="no_text") for node in nodes()[:2]]
        Own(
            answer=lambda question: f"{[len(part.query(question).source_nodes) for part in parts]}"
        ).query(QUESTION)

        assert captured.ids == ["a", "b"]
        assert captured.how.documents_from == "dataflow"


class TestModes:
    @pytest.mark.parametrize(
        "mode", ["compact", "refine", "tree_summarize", "accumulate", "simple_summarize"]
    )
    async def test_all_see_the_nodes(self, captured: Captured, mode: str) -> None:
        """However the answer is put together, all nodes are found in the prompts."""
        await engine(Sections(nodes()), mode=mode).aquery(QUESTION)

        assert captured.ids == ["a", "b", "c"]
        assert captured.how.documents_from == "prompt"

    def test_long_context_in_several_requests(self, captured: Captured) -> None:
        """A node that is too long for one prompt was shown in pieces: it is not lost."""
        long = TextNode(id_="long", text=" ".join(f"word{i}" for i in range(6000)))
        engine(Sections([long, nodes()[1]])).query(QUESTION)

        assert set(captured.ids) == {"long", "b"}
        assert captured.how.documents_from == "dataflow"
