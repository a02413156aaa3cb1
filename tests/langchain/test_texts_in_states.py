"""Documents that a graph's state or a tool's result holds as texts or plain objects."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from .apps import QUESTION, agent, asked, calls_tool, graph, scripted
from .conftest import ANSWER, Captured, Sections, capture_of, model, run, sections

TEXTS = [document.page_content.replace("\n ", "") for document in sections()]


@dataclass
class Hit:
    content: str
    doc_id: str
    score: float


PLAIN: dict[str, Any] = {
    "texts": lambda text, n: text,
    "content": lambda text, n: {"content": text, "metadata": {"page": n}, "score": n / 4},
    "part": lambda text, n: {
        "document_id": "d",
        "chunk_id": f"s{n}",
        "chunk": text,
        "score": n / 4,
        "document_title": "Manual",
        "metadata": {"page": n},
    },
    "passage": lambda text, n: {"source_id": f"s{n}", "passage": text, "similarity": n / 4},
    "objects": lambda text, n: SimpleNamespace(text=text, id=f"s{n}", score=n / 4),
    "dataclass": lambda text, n: Hit(text, f"s{n}", n / 4),
    "search result": lambda text, n: {"url": f"u{n}", "filename": "t", "content": text},
    "pair": lambda text, n: (text, n / 4),
}


class Plain(TypedDict, total=False):
    """State of a graph whose documents are of no class of LangChain."""

    question: str
    retrieved_docs: list[Any]
    steps: list[str]
    queries: list[str]
    result: Any
    generation: str


def text_of(item: Any) -> str:
    """The text of such a document."""
    if isinstance(item, str):
        return item
    if isinstance(item, tuple):
        return str(item[0])
    fields = item if isinstance(item, dict) else vars(item)
    return next(
        str(fields[name]) for name in ("text", "content", "chunk", "passage") if name in fields
    )


def app(find: Any, write: Any = None, **options: Any) -> Any:
    """A graph that retrieves so, and generates."""

    def generate(state: Plain) -> Plain:
        shown = "\n\n".join(map(text_of, state["retrieved_docs"][:2]))
        asked = ["How quick is the kettle, and why?"]
        prompt = f"Answer from:\n{shown}\n\n{state['question']} {asked[0]}"
        return {"generation": model().invoke(prompt).text, "queries": asked}

    return graph(Plain, find=find, generate=write or generate, **options)


class TestStates:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "astream"])
    @pytest.mark.parametrize("form", PLAIN)
    async def test_are_the_documents(self, captured: Captured, form: str, way: str) -> None:
        """What stands in the prompt was shown, what does not was not, with ids, scores, metadata."""
        made = [PLAIN[form](text, n) for n, text in enumerate(TEXTS)]
        built = app(lambda state: {"retrieved_docs": made, "steps": ["retrieve documents"]})
        await run(built, {"question": QUESTION}, way, captured.config)

        assert (captured.exchange, captured.handler.uncaptured) == ((QUESTION, ANSWER), 0)
        call, how = captured.only, captured.how
        assert [document.text for document in call.documents] == TEXTS[:2]
        assert [document.text for document in how.not_in_prompt] == TEXTS[2:]
        assert how.documents_from == "prompt"
        second = call.documents[1]
        assert second.id == ("s1" if form in ("part", "passage", "objects", "dataclass") else None)
        assert second.score == (None if form in ("texts", "search result") else 0.25)
        about = {
            "content": {"page": 1},
            "part": {"document_title": "Manual", "page": 1},
            "search result": {"filename": "t", "url": "u1"},
        }
        assert second.metadata == about.get(form, {})

    def test_model_that_nobody_sees(self, captured: Captured) -> None:
        """Where the app asks a model of its own, a list under such a name is what was passed on."""
        made = [PLAIN["passage"](text, n) for n, text in enumerate(TEXTS)]

        def write(state: Plain) -> Plain:
            cut = [
                {"source_id": each["source_id"], "passage": each["passage"][:20]} for each in made
            ]
            return {"generation": ANSWER, "result": cut}

        app(lambda state: {"retrieved_docs": made}, write).invoke(
            {"question": QUESTION}, captured.config
        )
        app(lambda state: {"retrieved_docs": made}, write).invoke({}, captured.config)

        assert captured.exchange == (QUESTION, ANSWER)
        assert captured.found == (["s0", "s1", "s2"], "dataflow", [])

    def test_given_to_the_graph(self, captured: Captured) -> None:
        """So it is where the app gives them to its graph or chain."""
        prompt = ChatPromptTemplate.from_template("{context}\n{question}")
        (prompt | model()).invoke({"context": TEXTS, "question": QUESTION}, captured.config)

        assert [document.text for document in captured.only.documents] == TEXTS
        assert captured.how.documents_from == "prompt"

    @pytest.mark.parametrize(
        "state",
        [
            {"steps": ["Look into the manual."]},
            {"chat_history": ["What is the kettle made of?"]},
            {"retrieved_docs": [3, 4]},
            {"retrieved_docs": ["Nobody was shown this text."]},
            {"retrieved_docs": [{"name": "The kettle and its lid."}]},
        ],
    )
    def test_other_lists_are_not(self, captured: Captured, state: Any) -> None:
        """Steps, turns, numbers, what has no text and what no model was shown are no documents."""

        def write(before: Plain) -> Plain:
            return {"generation": model().invoke(f"{json.dumps(state)} {QUESTION}").text}

        if "Nobody" in str(state):
            write = lambda before: {"generation": model().invoke(QUESTION).text}  # noqa: E731
        app(lambda before: state, write).invoke({"question": QUESTION}, captured.config)

        assert captured.calls == []

    def test_drafts_are_not(self, captured: Captured) -> None:
        """What a model wrote before another was shown it is no document."""
        llm = scripted("First, the lid is opened.", "Then, the kettle is filled.", ANSWER)

        def plan(state: Plain) -> Plain:
            return {"retrieved_docs": [llm.invoke(QUESTION).text, llm.invoke("And?").text]}

        def write(state: Plain) -> Plain:
            return {"generation": llm.invoke("\n".join(state["retrieved_docs"])).text}

        app(plan, write).invoke({"question": QUESTION}, captured.config)

        assert captured.calls == []

    def test_beside_documents(self, captured: Captured) -> None:
        """Texts of a web search count beside documents; copies of documents do not."""
        web = [{"url": "u", "content": "The web says that it boils in three minutes."}]

        def find(state: Plain) -> Plain:
            found = Sections().invoke(state["question"])
            return {"retrieved_docs": web, "result": [d.page_content[:20] for d in found]}

        def write(state: Plain) -> Plain:
            text = f"{TEXTS[0]} {web[0]['content']}"
            return {"generation": model().invoke(text).text}

        app(find, write).invoke({"question": QUESTION}, captured.config)

        assert captured.found == (["a", None], "prompt", ["b", "c"])


class TestTools:
    @pytest.mark.parametrize("form", ["texts", "search result", "results"])
    async def test_result(self, captured: Captured, form: str) -> None:
        """A tool's list of texts or objects, which LangChain turns into one text, is read."""

        @tool
        def search(query: str) -> Any:
            """Searches."""
            if form == "results":
                return {"query": query, "results": [{"content": text} for text in TEXTS]}
            return [PLAIN[form](text, n) for n, text in enumerate(TEXTS)]

        await agent(tools=[search]).ainvoke(asked(), captured.config)

        assert [document.text for document in captured.only.documents] == TEXTS
        assert (captured.exchange, captured.how.documents_from) == ((QUESTION, ANSWER), "prompt")

    def test_next_turn(self, captured: Captured) -> None:
        """The next turn has its own."""
        found = iter([TEXTS[:2], TEXTS[2:]])

        @tool
        def search(query: str) -> Any:
            """Searches."""
            return json.dumps([{"content": text} for text in next(found)])

        built = agent(
            calls_tool("lid"), "1", calls_tool("base"), "2", tools=[search],
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        for question in ("And the lid?", "And the base?"):
            built.invoke(asked(question), captured.remembering)

        assert [document.text for document in captured.calls[0].documents] == TEXTS[:2]
        assert captured.calls[1].documents[0].text == TEXTS[2]


def test_of_earlier_turns(captured: Captured) -> None:
    """What the state keeps from an earlier turn is that turn's, shown again or not."""

    class Kept(TypedDict, total=False):
        question: str
        citations: list[dict[str, str]]
        chunks: Annotated[list[dict[str, str]], operator.add]
        generation: str

    parts = [{"chunk_id": f"s{n}", "content": text} for n, text in enumerate(TEXTS)]

    def find(state: Kept) -> Kept:
        return {"chunks": parts[2:] if state.get("chunks") else parts[:1]}

    def write(state: Kept) -> Kept:
        shown = "\n".join(part["content"] for part in state["chunks"])
        answer = model().invoke(f"{shown}\n\n{state['question']}").text
        return {"generation": answer, "citations": [{**state["chunks"][-1], "title": "Cited"}]}

    built = graph(Kept, InMemorySaver(), find=find, write=write)
    config: Any = {**captured.config, "configurable": {"thread_id": "1"}}
    for question in (QUESTION, "And the lid?", "And again?"):
        built.invoke({"question": question}, config)

    first, *later = captured.calls
    assert [document.id for document in first.documents] == ["s0"]
    for call in later:
        found = [(document.id, document.metadata) for document in call.documents]
        assert (found, call.earlier) == ([("s2", {}), ("s0", {})], (1,))
        assert capture_of(call).not_in_prompt == ()
