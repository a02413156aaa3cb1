"""The context is what the model saw: fused, reranked, compressed, cut, repeated, or unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from .apps import QUESTION, Scripted, says
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, rag_chain, sections


def texts(captured: Captured) -> list[str]:
    return [document.text for document in captured.only.documents]


class Fused(BaseRetriever):
    """Asks several retrievers and joins what they find, as an ensemble does."""

    parts: list[Any]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        child = {"callbacks": run_manager.get_child()}
        found = [document for part in self.parts for document in part.invoke(query, child)]
        return list({document.page_content: document for document in reversed(found)}.values())


class Compressed(BaseRetriever):
    """Shortens what another retriever finds, as contextual compression does."""

    inner: Any
    keep: int

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.inner.invoke(query, {"callbacks": run_manager.get_child()})
        return [
            Document(id=document.id, page_content=" ".join(document.page_content.split()[:3]))
            for document in found[: self.keep]
        ]


class TestNestedRetrievers:
    def test_fused(self, captured: Captured) -> None:
        """Of an ensemble, the fused list is the context, not the parts' lists."""
        parts = [Sections(found=sections()[:2]), Sections(found=sections()[1:])]

        rag_chain(Fused(parts=parts)).invoke(QUESTION, captured.config)

        assert captured.ids == ["c", "b", "a"]
        assert captured.how.retrievers == ("Fused",)

    def test_compressed(self, captured: Captured) -> None:
        """Documents that were rewritten and dropped inside of the retriever: the rewritten."""
        rag_chain(Compressed(inner=Sections(), keep=2)).invoke(QUESTION, captured.config)

        assert texts(captured) == ["The kettle boils", "The lid opens"]
        assert captured.how.documents_from == "prompt"
        assert captured.left_out == []

    def test_scored_by_a_lambda(self, captured: Captured) -> None:
        """A reranker's score is kept, whether beside the document or in its metadata."""

        def rerank(retrieved: list[Document]) -> list[Document]:
            return [
                Document(page_content=d.page_content, metadata={"relevance_score": 0.25 + i})
                for i, d in enumerate(retrieved[:2])
            ]

        rag_chain(Sections(found=sections()) | RunnableLambda(rerank)).invoke(
            QUESTION, captured.config
        )

        assert [document.score for document in captured.only.documents] == [0.25, 0.5]
        assert captured.ids == ["a", "b"]

    def test_duplicates_count_once(self, captured: Captured) -> None:
        """A text that two retrievers found is one document."""
        both = RunnableParallel(x=Sections(), y=Sections(found=sections()[1:]))
        merged = both | RunnableLambda(lambda retrieved: retrieved["x"] + retrieved["y"])

        rag_chain(merged).invoke(QUESTION, captured.config)

        assert captured.ids == ["a", "b", "c"]


class TestOtherSources:
    @pytest.mark.parametrize(
        ("give", "text"),
        [
            (lambda: sections(), lambda d: d.page_content),
            (lambda: [(d, 0.25) for d in sections()], lambda pair: pair[0].page_content),
            (lambda: [sections()[:2], sections()[2:]], joined),
            (
                lambda: [
                    {"page_content": d.page_content, "id": d.id, "metadata": d.metadata}
                    for d in sections()
                ],
                lambda d: d["page_content"],
            ),
        ],
        ids=["documents", "pairs", "lists", "dicts"],
    )
    def test_documents_of_a_function(self, captured: Captured, give: Any, text: Any) -> None:
        """A plain function that searches by itself makes a RAG call, in any usual shape."""
        search: Any = RunnableLambda(lambda _: give())

        rag_chain(search, fmt=lambda retrieved: "\n\n".join(map(text, retrieved))).invoke(
            QUESTION, captured.config
        )

        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert captured.how.retrievers == ()
        assert captured.only.documents[0].metadata == {"page": 3}
        score = 0.25 if isinstance(give()[0], tuple) else None
        assert captured.only.documents[0].score == score

    def test_documents_in_the_input(self, captured: Captured) -> None:
        """Documents that the app found before the call came with its input."""
        chain = (
            RunnablePassthrough.assign(context=lambda given: joined(given["context"]))
            | PROMPT
            | model()
        )

        chain.invoke({"question": QUESTION, "context": sections()}, captured.config)

        assert captured.ids == ["a", "b", "c"]
        assert captured.only.question == QUESTION
        assert captured.how.documents_from == "prompt"

    def test_documents_in_the_input_of_an_app_without_a_model(self, captured: Captured) -> None:
        """They are all that is known."""
        chain: Any = RunnableLambda(lambda given: ANSWER)
        chain.invoke({"question": QUESTION, "context": sections()}, captured.config)

        assert captured.found == (["a", "b", "c"], "dataflow", [])


class TestPrompt:
    @pytest.mark.parametrize(
        "blocks",
        [
            lambda first, second: [
                {"type": "text", "text": f"{first}\n\n{second}"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ],
            lambda first, second: [
                {"type": "document", "source": {"type": "text", "data": first}},
                {"type": "search_result", "content": [{"type": "text", "text": second}]},
            ],
        ],
        ids=["text and image", "attachments"],
    )
    def test_blocks(self, captured: Captured, blocks: Any) -> None:
        """A prompt of blocks is read for its text; documents may be blocks of their own."""

        def prompt(retrieved: list[Document]) -> list[Any]:
            shown = blocks(retrieved[0].page_content, retrieved[1].page_content)
            return [HumanMessage([*shown, {"type": "text", "text": QUESTION}])]

        (Sections() | RunnableLambda(prompt) | model()).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"], "prompt", ["c"])

    @pytest.mark.parametrize(
        "written",
        [
            lambda retrieved: json.dumps([d.page_content for d in retrieved]),
            lambda retrieved: repr([d.page_content for d in retrieved]),
            lambda retrieved: (
                "".join(f"<p>{d.page_content}</p>" for d in retrieved)
                .replace("&", "&amp;")
                .replace('"', "&quot;")
            ),
        ],
        ids=["json", "python", "html"],
    )
    def test_escaped(self, captured: Captured, written: Any) -> None:
        """Of escaped documents, those without a character to escape are not taken for all."""
        found = [
            Document(id="a", page_content="Plain words about the kettle."),
            Document(id="b", page_content='The "lid" & its\nhinge, two lines.'),
            Document(id="c", page_content="Never used at all."),
        ]
        used = Sections(found=found) | RunnableLambda(lambda documents: documents[:2])

        rag_chain(used, fmt=written).invoke(QUESTION, captured.config)

        assert captured.ids == ["a", "b"]
        assert captured.how.documents_from == "dataflow"
        assert captured.left_out == ["c"]

    @pytest.mark.parametrize("header", ["Manual of kitchen appliances, part two\n", "The manual: "])
    @pytest.mark.parametrize("shown", ["with each", "once", "not at all"])
    def test_cut_behind_a_common_header(self, captured: Captured, header: str, shown: str) -> None:
        """Two of four chunks are shown, the second cut: it is known by what follows the header."""
        bodies = {
            "a": "The kettle boils a litre of water in four minutes, and then switches itself off.",
            "b": "The toaster has six levels of browning, and a tray for the crumbs that slides.",
            "c": "The mixer should not run for longer than two minutes; let it cool down then.",
            "d": "The blender crushes ice and frozen fruit, but never stones of any kind.",
        }
        more = dict(a="Boiled. ", b="Browned. ", c="Mixed. ", d="Crushed. ")
        found = [
            Document(id=name, page_content=f"{header}{body} {more[name] * 9}")
            for name, body in bodies.items()
        ]
        first = "" if shown == "not at all" else header
        second = header if shown == "with each" else ""

        def text(_: object) -> str:
            return f"{first}{bodies['a']}\n{second}{bodies['b'][:54]}"

        rag_chain(Sections(found=found), fmt=text).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"], "dataflow", ["c", "d"])

    def test_text_of_the_history(self, captured: Captured) -> None:
        """A short document that only an earlier turn contains did not reach the prompt."""
        retrieved = [Document(id="yes", page_content="boils"), *sections()[1:]]
        chain = (
            RunnablePassthrough.assign(
                context=lambda _: joined(Sections(found=retrieved).invoke("q")[1:])
            )
            | RunnableLambda(
                lambda state: [
                    SystemMessage(state["context"]),
                    *state["chat_history"],
                    HumanMessage(state["question"]),
                ]
            )
            | model()
        )
        history = [HumanMessage("When?"), AIMessage("It boils soon.")]

        chain.invoke({"question": QUESTION, "chat_history": history}, captured.config)

        assert captured.ids == ["b", "c"]
        assert [(turn.role, turn.content) for turn in captured.only.history] == [
            ("user", "When?"),
            ("assistant", "It boils soon."),
        ]

    def test_empty_document(self, captured: Captured) -> None:
        """A document without text reaches no prompt."""
        retrieved = [Document(id="none", page_content=""), *sections()]

        rag_chain(Sections(found=retrieved)).invoke(QUESTION, captured.config)

        assert captured.ids == ["a", "b", "c"]
        assert captured.left_out == ["none"]

    def test_changed_after_retrieval(self, captured: Captured) -> None:
        """Documents that the app overwrites in place count as the model saw them."""

        def shout(retrieved: list[Document]) -> list[Document]:
            for document in retrieved:
                document.page_content = document.page_content.upper()
            return retrieved

        rag_chain(Sections() | RunnableLambda(shout)).invoke(QUESTION, captured.config)

        assert texts(captured)[0] == "THE KETTLE BOILS IN FOUR MINUTES."
        assert len(captured.only.documents) == 3


class TestManyModels:
    @pytest.mark.parametrize("refine", [False, True])
    def test_map_reduce_and_refine(self, captured: Captured, refine: bool) -> None:
        """Documents that reached the answer through summaries, or drafts of it, count as seen."""
        summaries = Scripted(replies=[says(f"Summary number {i} of the manual.") for i in range(3)])

        def map_reduce(question: str) -> str:
            parts = [
                summaries.invoke(f"Sum up: {d.page_content}").text
                for d in Sections().invoke(question)
            ]
            return model().invoke("\n".join([*parts, question])).text

        def refined(question: str) -> str:
            answer = "none"
            for document in Sections().invoke(question):
                answer = summaries.invoke(f"{answer}\n{document.page_content}").text
            return answer

        RunnableLambda(refined if refine else map_reduce).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", [])
        written = "Summary number 2 of the manual." if refine else ANSWER
        assert captured.only.response == written

    @pytest.mark.parametrize("way", ["given", "retrieved", "sent"])
    @pytest.mark.parametrize("refine", [False, True], ids=["map-reduce", "refine"])
    @pytest.mark.parametrize("quotes", [(), (0,), (0, 2), (0, 1, 2)], ids=str)
    def test_keeps_all_documents_in_order(
        self, captured: Captured, way: str, refine: bool, quotes: tuple[int, ...]
    ) -> None:
        """Also where a summary quotes a document's first sentence, and in whatever turn."""
        firsts = [
            "Apples are grown in most of the temperate parts of the world.",
            "Berries of many kinds are blue, and some of them may be eaten.",
            "Bananas are harvested while they are green, and sold yellow.",
        ]
        found = [
            Document(id=str(n), page_content=f"{first} This is all that page {n} has to say.")
            for n, first in enumerate(firsts, 1)
        ]
        said = [firsts[n] if n in quotes else f"Sums up part {n} of it." for n in range(3)]
        writer = Scripted(replies=[says(text) for text in said] + [says("All in all, fruit.")])
        prompt: Any = RunnableLambda(
            lambda part: f"Sum up: {part['doc'].page_content} {part['so_far']}"
        )
        step: Any = prompt | writer | StrOutputParser()

        def answer(given: Any) -> dict[str, str]:
            documents = given["documents"] if way == "given" else Sections(found=found).invoke("q")
            parts: list[str] = []
            for document in reversed(documents) if way == "sent" else documents:
                parts.append(step.invoke({"doc": document, "so_far": parts[-1:] if refine else ""}))
            return {"output_text": parts[-1] if refine else writer.invoke("\n".join(parts)).text}

        given = {"question": QUESTION, **({"documents": found} if way == "given" else {})}
        RunnableLambda(answer).invoke(given, captured.config)

        assert captured.found == (["1", "2", "3"], "prompt", [])

    def test_choice_by_a_quote(self, captured: Captured) -> None:
        """A document that a model was asked about, and that was not chosen, was not shown."""
        first = sections()[0].page_content
        writer = Scripted(replies=[says(first), says("It boils soon.")])

        def choose(question: str) -> str:
            retrieved = Sections().invoke(question)
            best = writer.invoke(f"Quote the best of these: {joined(retrieved)}").text
            (chosen,) = [document for document in retrieved if best in document.page_content]
            return writer.invoke(f"{chosen.page_content} {question}").text

        RunnableLambda(choose).invoke(QUESTION, captured.config)

        assert captured.found == (["a"], "prompt", ["b", "c"])

    def test_retrieved_for_citations(self, captured: Captured) -> None:
        """What is retrieved after the answer was written was not its context."""

        def cited(question: str) -> dict[str, Any]:
            answer = model().invoke(question).text
            return {"answer": answer, "sources": Sections().invoke(answer)}

        RunnableLambda(cited).invoke(QUESTION, captured.config)

        assert captured.only.documents == ()
        assert captured.how.documents_from == "none"
        assert captured.left_out == ["a", "b", "c"]

    def test_two_chains_side_by_side(self, captured: Captured) -> None:
        """Two answers under one root: which is the answer cannot be known, so none is given."""
        first = rag_chain(Sections(found=sections()[:1]), llm=model("First answer."))
        second = rag_chain(Sections(found=sections()[1:]), llm=model("Second answer."))

        RunnableParallel(x=first, y=second).invoke(QUESTION, captured.config)

        assert captured.only.response is None
        assert sorted(map(str, captured.ids)) == ["a", "b", "c"]
        assert captured.how.documents_from == "prompt"
