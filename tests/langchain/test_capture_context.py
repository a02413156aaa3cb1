"""The context is what the model saw: fused, reranked, compressed, cut, repeated, or unknown."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from rag_eval_integrations import capture_call
from rag_eval_integrations.langchain import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, scripted
from .conftest import ANSWER, PROMPT, Captured, Sections, ids, joined, model, rag_chain, sections


def texts(captured: Captured) -> list[str]:
    return [document.text for document in captured.only.documents]


class Nested(BaseRetriever):
    """Joins what several retrievers find, as an ensemble does; keeps some words, as compression."""

    parts: list[Any]
    words: int = 99
    keep: int = 9

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        child = {"callbacks": run_manager.get_child()}
        found = [document for part in self.parts for document in part.invoke(query, child)]
        by_id = {document.id: document.page_content.split() for document in reversed(found)}
        joined = [Document(" ".join(words[: self.words]), id=name) for name, words in by_id.items()]
        return joined[-self.keep :]


PARTS = [Sections(found=sections()[:2]), Sections(found=sections()[1:])]


class TestNestedRetrievers:
    def test_fused(self, captured: Captured) -> None:
        """Of an ensemble, the fused list is the context, not the parts' lists."""
        rag_chain(Nested(parts=PARTS)).invoke(QUESTION, captured.config)

        assert captured.ids == ["c", "b", "a"]
        assert captured.how.retrievers == ("Nested",)

    def test_compressed(self, captured: Captured) -> None:
        """Documents that were rewritten and dropped inside of the retriever: the rewritten."""
        rag_chain(Nested(parts=PARTS, words=3, keep=2)).invoke(QUESTION, captured.config)

        assert texts(captured) == ["The lid opens", "The kettle boils"]
        assert captured.found[1:] == ("prompt", [])

    def test_scored_by_a_lambda(self, captured: Captured) -> None:
        """A reranker's score is kept, whether beside the document or in its metadata."""

        def rerank(retrieved: list[Document]) -> list[Document]:
            score = {"relevance_score": 0.25}
            return [Document(document.page_content, metadata=score) for document in retrieved[::2]]

        rag_chain(Sections() | RunnableLambda(rerank)).invoke(QUESTION, captured.config)

        scores = [(document.id, document.score) for document in captured.only.documents]
        assert scores == [("a", 0.25), ("c", 0.25)]

    def test_duplicates_count_once(self, captured: Captured) -> None:
        """A text that two retrievers found is one document; one without text reaches no prompt."""
        more = Sections(found=[Document("", id="none"), *sections()])
        both = RunnableParallel(x=PARTS[1], y=more)

        rag_chain(both | (lambda lists: lists["y"] + lists["x"])).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", ["none"])


SAME = "The kettle boils in four minutes."
TWINS = [
    Document(SAME, id="a1"), Document(SAME, id="a2"), Document("The lid opens by hand.", id="lid")
]  # fmt: skip
BOTH = RunnableParallel(x=Sections(found=TWINS[:1]), y=Sections(found=TWINS[1:]))


def copies(retrieved: list[Document]) -> list[Document]:
    return [Document(found.page_content, id=f"new {found.id}") for found in retrieved]


class TestTwins:
    """Chunks with one text and two ids, of sources that overlap or were stored twice."""

    @pytest.mark.parametrize(
        ("retriever", "shown", "left_out"),
        [
            (Sections(found=TWINS), ["a1", "a2", "lid"], []),
            (BOTH | (lambda lists: lists["x"] + lists["y"]), ["a1", "a2", "lid"], []),
            (Sections(found=TWINS) | (lambda found: found[1:2]), ["a2"], ["a1", "lid"]),
            (Sections(found=TWINS) | (lambda found: found[::2]), ["a1", "lid"], ["a2"]),
            (Sections(found=TWINS[1:]) | RunnableLambda(copies), ["a2", "lid"], []),
        ],
        ids=["one list", "two lists", "the second chosen", "the first chosen", "copied"],
    )
    def test_both_have_their_ids(
        self, captured: Captured, retriever: Any, shown: list[str], left_out: list[str]
    ) -> None:
        """Each is a document; where the prompt has the text once, it is the one passed on last."""
        rag_chain(retriever).invoke(QUESTION, captured.config)

        assert captured.found == (shown, "prompt", left_out)

    @pytest.mark.parametrize("hook", [None, lambda inputs, outputs: TWINS])
    def test_without_a_prompt(self, hook: Any) -> None:
        """So where no model was asked, and where the user's hook says what was shown."""
        captured = Captured(documents=hook)
        chain: Any = RunnableLambda(lambda _: Sections(found=TWINS).invoke("q"))
        chain.invoke("q", captured.config)

        assert (captured.ids, captured.left_out) == (["a1", "a2", "lid"], [])

    def test_in_a_block(self) -> None:
        """Of wrapped retrievers as well, each id once."""
        calls: list[RagCall] = []
        with capture_call(calls.append, QUESTION):
            for found in (TWINS[:1], TWINS[1:], TWINS):
                EvaluatedRetriever(Sections(found=found), calls.append).invoke(QUESTION)

        (call,) = calls
        assert ids(call.documents) == ["a1", "a2", "lid"]


FROM_INPUT: Any = RunnablePassthrough.assign(context=lambda given: joined(given["context"]))


class TestOtherSources:
    @pytest.mark.parametrize(
        ("give", "text"),
        [
            (lambda: sections(), lambda d: d.page_content),
            (lambda: [(d, 0.25) for d in sections()], lambda pair: pair[0].page_content),
            (lambda: [sections()[:2], sections()[2:]], joined),
            (lambda: [d.model_dump() for d in sections()], lambda d: d["page_content"]),
        ],
        ids=["documents", "pairs", "lists", "dicts"],
    )
    def test_documents_of_a_function(self, captured: Captured, give: Any, text: Any) -> None:
        """A plain function that searches by itself makes a RAG call, in any usual shape."""
        search: Any = RunnableLambda(lambda _: give())
        chain = rag_chain(search, fmt=lambda retrieved: "\n\n".join(map(text, retrieved)))

        chain.invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", [])
        first = captured.only.documents[0]
        assert (captured.how.retrievers, first.metadata) == ((), {"page": 3})
        assert first.score == (0.25 if isinstance(give()[0], tuple) else None)

    @pytest.mark.parametrize(
        ("chain", "source"),
        [(FROM_INPUT | PROMPT | model(), "prompt"), (RunnableLambda(lambda _: ANSWER), "dataflow")],
        ids=["model", "no model"],
    )
    def test_documents_in_the_input(self, captured: Captured, chain: Any, source: str) -> None:
        """Documents that the app found before came with the input; without a model, all of them."""
        chain.invoke({"question": QUESTION, "context": sections()}, captured.config)

        assert captured.found == (["a", "b", "c"], source, [])
        assert captured.only.question == QUESTION


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


class TestPrompt:
    @pytest.mark.parametrize(
        "blocks",
        [
            lambda a, b: [text(f"{a}\n\n{b}"), {"type": "image_url", "image_url": {"url": "x"}}],
            lambda a, b: [
                {"type": "document", "source": {"type": "text", "data": a}},
                {"type": "search_result", "content": [text(b)]},
            ],
        ],
        ids=["text and image", "attachments"],
    )
    def test_blocks(self, captured: Captured, blocks: Any) -> None:
        """A prompt of blocks is read for its text; documents may be blocks of their own."""

        def prompt(retrieved: list[Document]) -> list[Any]:
            shown = blocks(retrieved[0].page_content, retrieved[1].page_content)
            return [HumanMessage([*shown, text(QUESTION)])]

        (Sections() | RunnableLambda(prompt) | model()).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"], "prompt", ["c"])

    @pytest.mark.parametrize(
        "written",
        [
            lambda retrieved: json.dumps([d.page_content for d in retrieved]),
            lambda retrieved: repr([d.page_content for d in retrieved]),
            lambda retrieved: "".join(f"<p>{html.escape(d.page_content)}</p>" for d in retrieved),
        ],
        ids=["json", "python", "html"],
    )
    def test_escaped(self, captured: Captured, written: Any) -> None:
        """Of escaped documents, those without a character to escape are not taken for all."""
        found = [
            Document("Plain words about the kettle.", id="a"),
            Document('The "lid" & its\nhinge, two lines.', id="b"),
            Document("Never used at all.", id="c"),
        ]
        used = Sections(found=found) | RunnableLambda(lambda documents: documents[:2])

        rag_chain(used, fmt=written).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"], "dataflow", ["c"])

    @pytest.mark.parametrize("header", ["Manual of kitchen appliances, part two\n", "The manual: "])
    @pytest.mark.parametrize("shown", ["with each", "once", "not at all"])
    def test_cut_behind_a_common_header(self, captured: Captured, header: str, shown: str) -> None:
        """Two of four chunks are shown, the second cut: it is known by what follows the header."""
        bodies = [
            "The kettle boils a litre of water in four minutes, and then switches itself off.",
            "The toaster has six levels of browning, and a tray for the crumbs that slides.",
            "The mixer should not run for longer than two minutes; let it cool down then.",
            "The blender crushes ice and frozen fruit, but never stones of any kind.",
        ]
        more = ["Boiled. ", "Browned. ", "Mixed. ", "Crushed. "]
        texts = [f"{header}{body} {end * 9}" for body, end in zip(bodies, more, strict=True)]
        found = [Document(text, id=name) for text, name in zip(texts, "abcd", strict=True)]
        first = "" if shown == "not at all" else header
        second = header if shown == "with each" else ""
        prompt = f"{first}{bodies[0]}\n{second}{bodies[1][:54]}"

        rag_chain(Sections(found=found), fmt=lambda _: prompt).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"], "dataflow", ["c", "d"])

    def test_text_of_the_history(self, captured: Captured) -> None:
        """A short document that only an earlier turn contains did not reach the prompt."""
        retrieved = Sections(found=[Document("boils", id="yes"), *sections()[1:]])
        given = {"question": QUESTION, "chat_history": [("When?", "It boils soon.")]}

        def prompt(state: Any) -> list[Any]:
            ((asked, answered),) = state["chat_history"]
            turns = [HumanMessage(asked), AIMessage(answered), HumanMessage(state["question"])]
            return [SystemMessage(joined(retrieved.invoke("q")[1:])), *turns]

        (RunnableLambda(prompt) | model()).invoke(given, captured.config)

        assert captured.ids == ["b", "c"]
        assert [turn.content for turn in captured.only.history] == ["When?", "It boils soon."]

    def test_changed_after_retrieval(self, captured: Captured) -> None:
        """Documents that the app overwrites in place count as the model saw them."""

        def shout(retrieved: list[Document]) -> list[Document]:
            for document in retrieved:
                document.page_content = document.page_content.upper()
            return retrieved

        rag_chain(Sections() | RunnableLambda(shout)).invoke(QUESTION, captured.config)

        assert texts(captured) == [document.page_content.upper() for document in sections()]


class TestManyModels:
    @pytest.mark.parametrize("way", ["given", "retrieved", "sent"])
    @pytest.mark.parametrize("refine", [False, True], ids=["map-reduce", "refine"])
    @pytest.mark.parametrize("quotes", [(), (0, 2), (0, 1, 2)], ids=str)
    def test_keeps_all_documents_in_order(
        self, captured: Captured, way: str, refine: bool, quotes: tuple[int, ...]
    ) -> None:
        """Documents that reached the answer through summaries, or drafts of it, count as seen.

        Also where a summary quotes a document's first sentence, and in whatever turn.
        """
        firsts = [
            "Apples are grown in most of the temperate parts of the world.",
            "Berries of many kinds are blue, and some of them may be eaten.",
            "Bananas are harvested while they are green, and sold yellow.",
        ]
        found = [
            Document(f"{first} This is all that page {n} has to say.", id=str(n))
            for n, first in enumerate(firsts, 1)
        ]
        summaries = [firsts[n] if n in quotes else f"Sums up part {n} of it." for n in range(3)]
        writer = scripted(*summaries, "All in all, fruit.")

        def answer(given: Any) -> dict[str, str]:
            documents = given["documents"] if way == "given" else Sections(found=found).invoke("q")
            parts: list[str] = []
            for document in reversed(documents) if way == "sent" else documents:
                before = parts[-1:] if refine else ""
                parts.append(writer.invoke(f"Sum up: {document.page_content} {before}").text)
            return {"output_text": parts[-1] if refine else writer.invoke("\n".join(parts)).text}

        given = {"question": QUESTION, **({"documents": found} if way == "given" else {})}
        RunnableLambda(answer).invoke(given, captured.config)

        assert captured.found == (["1", "2", "3"], "prompt", [])
        assert captured.only.response == (summaries[2] if refine else "All in all, fruit.")

    @pytest.mark.parametrize(
        ("said", "label", "shown"),
        [
            ("Nothing.", "", ["a", "b", "c"]),
            ("NOT RELEVANT", "Summary: ", ["a", "b", "c"]),
            ("no", "A: ", ["a"]),
        ],
    )
    def test_short_summaries(
        self, captured: Captured, said: str, label: str, shown: list[str]
    ) -> None:
        """A short text of another model counts as a line of the prompt; "no" may be an example's."""
        writer = scripted("It boils in four minutes.", said, said, "Four minutes.")

        def answer(question: str) -> str:
            parts = [
                writer.invoke(f'Sum up, or say "{said}": {document.page_content}').text
                for document in Sections().invoke(question)
            ]
            return writer.invoke("\n".join(label + part for part in parts)).text

        RunnableLambda(answer).invoke(QUESTION, captured.config)

        assert captured.ids == shown

    @pytest.mark.parametrize("said", ["I do not know.", "The manual does not say."])
    def test_two_parts_with_the_same_text(self, captured: Captured, said: str) -> None:
        """Of an answer that says the same twice, the documents of both parts count."""
        first, second = (
            rag_chain(Sections(found=[found]), llm=model(said)) for found in sections()[:2]
        )

        def both(question: str) -> str:
            return "\n".join([first.invoke(question), second.invoke(question)])

        RunnableLambda(both).invoke(QUESTION, captured.config)

        assert captured.ids == ["a", "b"]

    def test_choice_by_a_quote(self, captured: Captured) -> None:
        """A document that a model was asked about, and that was not chosen, was not shown."""
        first = sections()[0].page_content
        writer = scripted(first, "It boils soon.")

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

        assert captured.found == ([], "none", ["a", "b", "c"])

    def test_two_chains_side_by_side(self, captured: Captured) -> None:
        """Two answers under one root: which is the answer cannot be known, so none is given."""
        first = rag_chain(Sections(found=sections()[:1]), llm=model("First answer."))
        second = rag_chain(Sections(found=sections()[1:]), llm=model("Second answer."))

        RunnableParallel(x=first, y=second).invoke(QUESTION, captured.config)

        assert captured.only.response is None
        assert sorted(map(str, captured.ids)) == ["a", "b", "c"]
        assert captured.how.documents_from == "prompt"


class TestImages:
    @pytest.mark.parametrize(
        "block",
        [
            lambda seen: {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{seen}"},
            },
            lambda seen: {"type": "image", "base64": seen, "mime_type": "image/png"},
            lambda seen: {"type": "image", "source": {"type": "base64", "data": seen}},
        ],
    )
    def test_that_was_shown(self, captured: Captured, block: Any) -> None:
        """A document that is an image, and was shown as one, is not listed as left out."""
        images = [
            Document("iVBORw0KGgoAAAANSUhEUg", id="i"),
            Document("R0lGODlhAQABAIAAAAA", id="j"),
        ]

        def prompt(found: list[Document]) -> Any:
            text = f"{found[0].page_content} {QUESTION}"
            return [HumanMessage([{"type": "text", "text": text}, block(found[1].page_content)])]

        chain = Sections(found=[sections()[0], *images]) | RunnableLambda(prompt) | model()
        chain.invoke(QUESTION, captured.config)

        assert captured.found == (["a"], "prompt", ["j"])
