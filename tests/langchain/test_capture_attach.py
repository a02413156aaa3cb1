"""The ways to attach: per call, bound, inner, twice, process-wide, and a block of plain code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from rag_eval_integrations.langchain import handler as attach
from rag_eval_integrations.records._conversation import conversation_in

from .apps import QUESTION, State, graph, retriever_tool
from .conftest import ANSWER, PROMPT, Captured, Sections, capture_of, joined, model, rag_chain


@pytest.fixture
def everywhere(captured: Captured) -> Iterator[Captured]:
    """A handler that is attached to the process for the time of a test."""
    captured.handler.attach_globally()
    yield captured
    captured.handler.detach()


class TestGlobally:
    async def test_every_way(self, everywhere: Captured) -> None:
        """No call has to be given the handler, not even in a thread that is started plainly."""
        chain = rag_chain()
        thread = threading.Thread(target=chain.invoke, args=("0",))
        thread.start()
        thread.join()
        chain.invoke("1")
        await chain.ainvoke("2")
        chain.batch(["3", "4"])
        list(chain.stream("5"))
        [chunk async for chunk in chain.astream("6")]

        assert sorted(everywhere.questions) == list("0123456")

    def test_given_as_well(self, everywhere: Captured) -> None:
        """A call that is also given the handler, in either way, is observed once."""
        rag_chain().with_config(callbacks=[everywhere.handler]).invoke(QUESTION, everywhere.config)

        assert len(everywhere.calls) == 1

    def test_detached_can_be_given(self, captured: Captured) -> None:
        """What was attached and detached works where it is given, and can come back; twice is once."""
        for _ in range(20):
            captured.handler.attach_globally()
            captured.handler.attach_globally()
            captured.handler.detach()
            captured.handler.detach()
        rag_chain().invoke("unseen")
        rag_chain().invoke("given", captured.config)
        captured.handler.attach_globally()
        rag_chain().invoke("attached")
        captured.handler.detach()

        assert captured.questions == ["given", "attached"]

    def test_several(self, everywhere: Captured) -> None:
        """Two handlers each observe every call; slots in LangChain's list are used again."""
        for _ in range(10):
            other = Captured()
            other.handler.attach_globally()
            rag_chain().invoke(QUESTION)
            other.handler.detach()
            assert other.substances == everywhere.substances[-1:]

        assert len(everywhere.calls) == 10
        assert len(attach._SLOTS) <= 2

    def test_detached_in_the_middle(self, everywhere: Captured) -> None:
        """A call that had begun is finished."""

        def detach(text: str) -> str:
            everywhere.handler.detach()
            return text

        (RunnableLambda(detach) | rag_chain()).invoke(QUESTION)

        assert everywhere.only.response == ANSWER

    def test_app_without_rag(self, everywhere: Captured) -> None:
        """Models, tools and chains without documents are no RAG calls."""
        (PROMPT | model()).invoke({"context": "", "question": QUESTION})
        retriever_tool().invoke(QUESTION)

        assert everywhere.calls == []


class TestGiven:
    def test_in_the_middle_again(self, captured: Captured) -> None:
        """An app that gives the handler again to what it calls inside has one call, not two."""

        def ask(question: str) -> str:
            return rag_chain().invoke(question, captured.config)

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER

    def test_one_after_the_other(self, captured: Captured) -> None:
        """A function without a handler of its own may make several calls: each is one."""

        def both(question: str) -> list[str]:
            return [rag_chain().invoke(f"{question}{i}", captured.config) for i in range(2)]

        RunnableLambda(both).invoke("q")

        assert captured.questions == ["q0", "q1"]


class TestBlock:
    def test_plain_code_is_one_call(self, captured: Captured) -> None:
        """A retriever and a model that plain code calls one by one are one call."""
        with captured.handler.call(QUESTION, name="app", tags=["t"], metadata={"user": 7}) as call:
            retrieved = Sections().invoke("kettle speed")
            filled = PROMPT.invoke({"context": joined(retrieved), "question": QUESTION})
            call.response = model().invoke(filled).text + " Really."

        assert captured.exchange == (QUESTION, ANSWER + " Really.")
        assert captured.found == (["a", "b", "c"], "prompt", [])
        how = captured.how
        assert (captured.only.app, how.tags, how.metadata) == ("app", ("t",), {"user": 7})

    async def test_async_code(self, captured: Captured) -> None:
        """So in async code, several blocks at once; the model's text is the response."""

        async def ask(question: str) -> None:
            with captured.handler.call(question):
                retrieved = await Sections().ainvoke(question)
                await model(f"Re: {question}").ainvoke(joined(retrieved))

        await asyncio.gather(*(ask(f"q{i}") for i in range(10)))

        assert {*captured.questions} == {f"q{i}" for i in range(10)}
        assert captured.responses == [f"Re: {question}" for question in captured.questions]

    def test_error(self, captured: Captured) -> None:
        """What the block raises comes through, and the call is an error."""
        with pytest.raises(RuntimeError, match="gone"), captured.handler.call(QUESTION):
            Sections(error="gone").invoke(QUESTION)
        Sections().invoke("later, and not in it")

        assert (captured.how.status, captured.how.retrievers) == ("error", ("Sections",))

    def test_in_a_node(self, captured: Captured) -> None:
        """The run around it gives its thread alone; its handlers see the block; a node may pause."""
        around = Captured()

        def search(state: State) -> State:
            with captured.handler.call(state["question"]):
                Sections().invoke(QUESTION)
                return {"answer": interrupt("Go on?")}

        app = graph(State, search=search, checkpointer=InMemorySaver())
        app.invoke({"question": QUESTION}, around.remembering)

        assert app.invoke(Command(resume=ANSWER), around.remembering)["answer"] == ANSWER
        assert around.ids_by_call == captured.ids_by_call == [["a", "b", "c"]] * 2
        kept = [(how.tags, how.metadata) for how in map(capture_of, captured.calls)]
        assert kept == [((), {"conversation_id": "1"})] * 2  # the graph's thread

    def test_generator_in_copied_contexts(self, captured: Captured) -> None:
        """A block may end in another context than it began in, as in a web server's streams."""

        def answer() -> Iterator[str]:
            with captured.handler.call(QUESTION):
                found = joined(Sections().invoke(QUESTION))
                yield from (chunk.text for chunk in model().stream(found))

        steps = answer()

        assert "".join(iter(lambda: copy_context().run(next, steps, None), None)) == ANSWER
        assert captured.only.response == ANSWER

    def test_langchains_own_way(self, captured: Captured) -> None:
        """A root that plain code makes with LangChain's managers is a call, too."""
        manager = CallbackManager.configure(inheritable_callbacks=[captured.handler])
        root = manager.on_chain_start({}, {"question": QUESTION}, name="rag")
        config: Any = {"callbacks": root.get_child()}
        answer = model().invoke(joined(Sections().invoke(QUESTION, config)), config).text
        root.on_chain_end({"answer": answer})

        assert (captured.responses, captured.ids) == ([ANSWER], ["a", "b", "c"])


def test_a_call_names_its_conversation(captured: Captured) -> None:
    """A graph's thread, and the session of a chain with a history; what the app says stands."""
    app = graph(State, search=lambda _: {"context": Sections().invoke(QUESTION), "answer": ANSWER},
                checkpointer=InMemorySaver())  # fmt: skip
    app.invoke({"question": QUESTION}, captured.remembering)
    chain: Any = RunnableLambda(lambda question: f"{ANSWER} {len(Sections().invoke(question))}")
    for configurable, metadata in (
        ({"session_id": "s1"}, {}), ({"session_id": "s1"}, {"conversation_id": 5}), ({}, {}),
    ):  # fmt: skip
        chain.invoke(QUESTION, {**captured.config, "configurable": configurable,
                                "metadata": metadata})  # fmt: skip

    found = [conversation_in([capture_of(call).metadata]) for call in captured.calls]
    assert found == ["1", "s1", "5", None]
