"""A node's metadata is its document's header: shown to the judge, and none of its sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools import QueryEngineTool

from rag_eval_integrations.cli.demo.llama_index_app import HashedWords

from .apps import Chooses, Own, agent
from .conftest import ANSWER, Captured, Model, Sections, engine

QUESTION = "What does the station run on?"
HEADER = "file: power.txt\npage: 3"
POWER = "The station runs on two AA lithium batteries."


def node(**options: Any) -> TextNode:
    return TextNode(id_="p", text=POWER, metadata={"file": "power.txt", "page": 3}, **options)


class TestHeader:
    def test_of_files(self, captured: Captured, tmp_path: Path) -> None:
        """The default reader's `file_path` is a header, so that the text alone has sentences."""
        (tmp_path / "power.txt").write_text(POWER, encoding="utf-8")
        loaded = SimpleDirectoryReader(str(tmp_path)).load_data()
        index = VectorStoreIndex.from_documents(loaded, embed_model=HashedWords())
        index.as_query_engine(llm=Model()).query(QUESTION)

        (document,) = captured.only.documents
        header = f"file_path: {tmp_path / 'power.txt'}"
        assert (document.text, document.header) == (POWER, header)
        assert captured.how.documents_from == "prompt"

    @pytest.mark.parametrize(
        ("template", "header", "text"),
        [
            ("{metadata_str}\n\n{content}", HEADER, POWER),
            ("Of {metadata_str}\n--\nSays: {content}", f"Of {HEADER}\n--\nSays:", POWER),
            ("{content}", None, POWER),
            ("{metadata_str} {content} (end)", None, f"{HEADER} {POWER} (end)"),
        ],
    )
    def test_is_what_stands_in_front(
        self, captured: Captured, template: str, header: str | None, text: str
    ) -> None:
        """Whatever the template; where it puts something behind the text, nothing is parted."""
        engine(Sections([node(text_template=template)])).query(QUESTION)

        (document,) = captured.only.documents
        assert (document.header, document.text) == (header, text)
        assert captured.how.documents_from == "prompt"

    def test_is_left_out_where_the_prompt_has_none(self, captured: Captured) -> None:
        """An app that shows a node's text alone shows no header."""

        def answer(question: str) -> str:
            retrieved = Sections([node()]).retrieve(question)
            return str(Model().complete(f"Use {retrieved[0].text} for {question}"))

        Own(answer=answer).query(QUESTION)

        assert (captured.only.documents[0].header, captured.only.documents[0].text) == (None, POWER)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    @pytest.mark.parametrize("asks_an_agent", [False, True])
    async def test_has_what_a_postprocessor_adds(
        self, captured: Captured, asks_an_agent: bool
    ) -> None:
        """The model is shown metadata that a postprocessor writes into nodes, such as their ids."""

        def name(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
            for each in nodes:
                each.node.metadata["citation_id"] = each.node.node_id
            return nodes

        named = engine(Sections([node()]), postprocessors=[Chooses(choose=name)])
        if asks_an_agent:
            tool = QueryEngineTool.from_defaults(named, name="docs", description="The manual.")
            await agent([("docs", {"input": QUESTION})], ANSWER, tools=[tool]).run(QUESTION)
        else:
            await named.aquery(QUESTION)

        (document,) = captured.only.documents
        assert (document.header, document.text) == (f"{HEADER}\ncitation_id: p", POWER)
        assert document.metadata == {"file": "power.txt", "page": 3, "citation_id": "p"}
        assert captured.found == (["p"], "prompt", [])

    def test_of_nodes_left_out(self, captured: Captured) -> None:
        """Nodes that were not shown have theirs as well."""

        def answer(question: str) -> str:
            other = TextNode(id_="o", text="The lid opens with one hand.", metadata={"page": 9})
            retrieved = Sections([node(), other]).retrieve(question)
            shown = retrieved[0].get_content(MetadataMode.LLM)
            return str(Model().complete(f"{shown} {question}"))

        Own(answer=answer).query(QUESTION)

        (left_out,) = captured.how.not_in_prompt
        assert (left_out.header, left_out.text) == ("page: 9", "The lid opens with one hand.")
