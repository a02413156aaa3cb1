"""`RagEvalCallbackHandler` on real chains: one right record a call, and the app undisturbed."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall, from_line, to_line

from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, rag_chain, sections

QUESTION = "How fast is the kettle?"


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


async def every_way(chain: Runnable[Any, Any], given: Any, config: Any) -> list[Any]:
    """The outputs of all six ways to call a chain."""
    streamed = list(chain.stream(given, config))
    astreamed = [chunk async for chunk in chain.astream(given, config)]
    return [
        chain.invoke(given, config),
        await chain.ainvoke(given, config),
        *chain.batch([given], config),
        *await chain.abatch([given], config),
        "".join(streamed) if isinstance(streamed[0], str) else streamed,
        "".join(astreamed) if isinstance(astreamed[0], str) else astreamed,
    ]


class TestRecord:
    def test_holds_what_design_says(self, captured: Captured) -> None:
        """Question, documents as the model saw them, answer, and how it was observed."""
        config: Any = {
            **captured.config,
            "tags": ["t"],
            "metadata": {"user": 7},
            "run_name": "kettle",
        }

        rag_chain().invoke(QUESTION, config)

        call = captured.only
        assert call.question == QUESTION
        assert [document.id for document in call.documents] == ["a", "b", "c"]
        assert call.documents[0].metadata == {"page": 3}
        assert call.documents[1].score == 0.5
        assert call.response == ANSWER
        assert call.app == "kettle"
        assert call.started_at is not None
        assert call.capture is not None
        assert call.capture.framework == "langchain"
        assert call.capture.status == "ok"
        assert call.capture.documents_from == "prompt"
        assert call.capture.tags == ("t",)
        assert call.capture.metadata == {"user": 7}
        assert call.capture.retrievers == ("Sections",)
        assert call.capture.not_in_prompt == ()
        assert call.capture.run_id
        assert call.capture.latency_s is not None
        assert call.capture.latency_s > 0
        assert from_line(RagCall, to_line(call)) == call

    async def test_is_the_same_six_ways(self, captured: Captured) -> None:
        """invoke, ainvoke, batch, abatch, stream and astream give one record and one answer."""
        outputs = await every_way(rag_chain(), QUESTION, captured.config)

        assert outputs == [ANSWER] * 6
        assert len(captured.calls) == 6
        assert [substance(call) for call in captured.calls] == [substance(captured.calls[0])] * 6

    @pytest.mark.parametrize(
        "given",
        [
            {"question": QUESTION},
            {"input": HumanMessage(QUESTION)},
            {"query": {"question": QUESTION}},
            {"messages": [("system", "Be brief."), ("human", QUESTION)]},
            {"messages": [HumanMessage("Hello"), AIMessage("Hi"), HumanMessage(QUESTION)]},
            [{"role": "user", "content": QUESTION}],
            HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "x"}]),
        ],
        ids=["question", "message", "nested", "pairs", "messages", "dicts", "blocks"],
    )
    async def test_finds_the_question_in_every_root(self, captured: Captured, given: Any) -> None:
        """A dict, a list of messages or a message as the input gives the user's question."""
        chain: Any = RunnableLambda(lambda _: "rephrased") | rag_chain()

        await every_way(chain, given, captured.config)

        assert [call.question for call in captured.calls] == [QUESTION] * 6

    def test_question_falls_back_to_the_query(self, captured: Captured) -> None:
        """An input of an unknown shape is not guessed at: the retriever's query is the question."""
        chain: Any = RunnableLambda(lambda numbers: f"sum of {numbers['of']}") | rag_chain()

        chain.invoke({"of": [1, 2]}, captured.config)

        assert captured.only.question == "sum of [1, 2]"

    @pytest.mark.parametrize(
        "shape",
        [
            lambda answer: {"answer": answer, "context": ["x"]},
            lambda answer: {"messages": [HumanMessage("q"), AIMessage(answer)]},
            lambda answer: AIMessage(answer),
            lambda answer: {"result": {"output": answer}},
            lambda answer: {"unheard_of": 1},  # then the model's own text
        ],
        ids=["answer", "messages", "message", "nested", "model"],
    )
    def test_finds_the_answer_in_every_root(self, captured: Captured, shape: Any) -> None:
        """The answer is found in dicts and messages, or else it is what the model wrote."""
        (rag_chain() | RunnableLambda(shape)).invoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER

    def test_metadata_is_made_json(self, captured: Captured) -> None:
        """What JSON cannot hold is kept as text, so that the record can always be written."""
        from datetime import date

        odd = {"day": date(2024, 5, 1), "nan": float("nan"), 3: {"x": object}, "s": {1}}

        rag_chain(Sections(found=[Document(page_content="x", metadata=odd)])).invoke(
            QUESTION, captured.config
        )

        metadata = captured.only.documents[0].metadata
        assert metadata == {
            "day": "2024-05-01",
            "nan": "nan",
            "3": {"x": "<class 'object'>"},
            "s": [1],
        }
        assert from_line(RagCall, to_line(captured.only)) == captured.only


class TestContext:
    def test_is_what_a_reranker_left(self, captured: Captured) -> None:
        """Documents that a lambda drops never reached the prompt: they are listed as such."""
        reranked = Sections() | RunnableLambda(lambda found: [found[2], found[0]])

        rag_chain(reranked).invoke(QUESTION, captured.config)

        call = captured.only
        assert [document.id for document in call.documents] == ["c", "a"]
        assert call.capture is not None
        assert call.capture.documents_from == "prompt"
        assert [document.id for document in call.capture.not_in_prompt] == ["b"]

    def test_flows_where_the_prompt_is_templated(self, captured: Captured) -> None:
        """Cut documents are not verbatim in the prompt: the last list before the model counts."""
        long = [Document(id=str(i), page_content=f"Part {i}: " + "word " * 40) for i in range(3)]
        reranked = Sections(found=long) | RunnableLambda(lambda found: found[:2])
        chain = rag_chain(reranked, fmt=lambda found: "|".join(d.page_content[:99] for d in found))

        chain.invoke(QUESTION, captured.config)

        call = captured.only
        assert call.capture is not None
        assert call.capture.documents_from == "dataflow"
        assert [document.id for document in call.documents] == ["0", "1"]
        assert [document.id for document in call.capture.not_in_prompt] == ["2"]

    def test_is_the_retriever_without_a_model(self, captured: Captured) -> None:
        """With no prompt and no list passed on, the retriever's output is the context."""
        (Sections() | RunnableLambda(len) | RunnableLambda(str)).invoke(QUESTION, captured.config)

        call = captured.only
        assert call.response == "3"
        assert [document.id for document in call.documents] == ["a", "b", "c"]

    def test_is_the_outermost_retriever(self, captured: Captured) -> None:
        """A retriever inside of a retriever, and its model, are the outer one's affair."""

        class Best(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                child: Any = {"callbacks": run_manager.get_child()}
                model("rewritten").invoke(f"rewrite {joined(sections())}", child)
                return Sections().invoke(query, child)[:1]

        rag_chain(Best()).invoke(QUESTION, captured.config)

        call = captured.only
        assert call.capture is not None
        assert call.capture.retrievers == ("Best",)
        assert [document.id for document in call.documents] == ["a"]
        assert call.capture.not_in_prompt == ()
        assert call.response == ANSWER

    def test_of_two_retrievers_is_both(self, captured: Captured) -> None:
        """Retrievers side by side are concatenated in the order of the prompt."""
        first, second = Sections(found=sections()[:1]), Sections(found=sections()[1:])
        inputs: Any = {
            "context": {"x": second, "y": first}
            | RunnableLambda(lambda o: joined(o["y"] + o["x"])),
            "question": RunnablePassthrough(),
        }

        (inputs | PROMPT | model()).invoke(QUESTION, captured.config)

        assert [document.id for document in captured.only.documents] == ["a", "b", "c"]

    def test_can_be_empty(self, captured: Captured) -> None:
        """A retriever that finds nothing gives a call without documents, not no call."""
        rag_chain(Sections(found=[])).invoke(QUESTION, captured.config)

        call = captured.only
        assert call.documents == ()
        assert call.response == ANSWER
        assert call.capture is not None
        assert call.capture.documents_from == "retriever"

    def test_a_word_of_the_question_is_no_document(self, captured: Captured) -> None:
        """A short document that only the question contains did not reach the prompt."""
        found = [Document(page_content="kettle"), *sections()[1:]]
        chain = rag_chain(Sections(found=found), fmt=lambda documents: joined(documents[1:]))

        chain.invoke(QUESTION, captured.config)

        assert [document.id for document in captured.only.documents] == ["b", "c"]

    def test_documents_of_a_function_count(self, captured: Captured) -> None:
        """A plain function that returns documents, with scores, makes a RAG call."""
        search: Any = RunnableLambda(lambda _: [(document, 0.25) for document in sections()])

        rag_chain(search, fmt=lambda pairs: joined([pair[0] for pair in pairs])).invoke(
            QUESTION, captured.config
        )

        call = captured.only
        assert [document.score for document in call.documents] == [0.25] * 3
        assert call.capture is not None
        assert call.capture.retrievers == ()
        assert call.capture.documents_from == "prompt"

    def test_is_a_snapshot(self, captured: Captured) -> None:
        """The app may change its documents later; the record does not."""
        kept = sections()
        rag_chain(Sections(found=kept)).invoke(QUESTION, captured.config)

        kept[0].page_content, kept[0].metadata["page"] = "changed", 99

        assert captured.only.documents[0].text == "The kettle boils in four minutes."
        assert captured.only.documents[0].metadata == {"page": 3}


class TestNoRagCall:
    def test_bare_retriever(self, captured: Captured) -> None:
        """A retriever on its own answers nothing."""
        Sections().invoke(QUESTION, captured.config)

        assert captured.calls == []

    def test_chain_without_documents(self, captured: Captured) -> None:
        """A chain in which no retriever runs and no document passes is not delivered."""
        (PROMPT | model()).invoke({"context": "", "question": QUESTION}, captured.config)
        model().invoke(QUESTION, captured.config)

        assert captured.calls == []

    async def test_suppressed(self, captured: Captured) -> None:
        """What runs as part of an evaluation is not captured, in threads and tasks neither."""
        with suppress_capture():
            await every_way(rag_chain(), QUESTION, captured.config)

        assert captured.calls == []


class TestTrouble:
    @pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
    async def test_retriever_error(self, captured: Captured, way: str) -> None:
        """The user's own error comes through; the call is an error without a response."""
        chain = rag_chain(Sections(error="index is gone"))

        with pytest.raises(RuntimeError, match="index is gone"):
            await use(chain, way, captured.config)

        call = captured.only
        assert call.question == QUESTION
        assert call.documents == ()
        assert call.response is None
        assert call.capture is not None
        assert call.capture.status == "error"
        assert call.capture.documents_from == "none"

    @pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
    async def test_model_error(self, captured: Captured, way: str) -> None:
        """What was retrieved for a model that failed is on the record."""

        def fail(prompt: object) -> str:
            raise ValueError("no model")

        with pytest.raises(ValueError, match="no model"):
            await use(rag_chain(llm=RunnableLambda(fail)), way, captured.config)

        call = captured.only
        assert len(call.documents) == 3
        assert call.response is None
        assert call.capture is not None
        assert call.capture.status == "error"

    def test_failed_attempts_do_not_count(self, captured: Captured) -> None:
        """With a retry, the documents are those of the attempt that led to the answer."""
        attempts: list[int] = []

        def once_wrong(found: list[Document]) -> str:
            attempts.append(1)
            if len(attempts) == 1:
                raise ConnectionError("try again")
            return joined(found)

        class Fresh(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                return sections()[:1] if not attempts else sections()[1:]

        flaky = rag_chain(Fresh(), fmt=once_wrong).with_retry(
            stop_after_attempt=2, wait_exponential_jitter=False
        )

        flaky.invoke(QUESTION, captured.config)

        call = captured.only
        assert [document.id for document in call.documents] == ["b", "c"]
        assert call.capture is not None
        assert call.capture.status == "ok"
        assert call.capture.not_in_prompt == ()

    def test_closed_stream(self, captured: Captured) -> None:
        """A stream closed by the app is aborted, with what the app was given."""
        stream = rag_chain().stream(QUESTION, captured.config)
        given = next(stream) + next(stream) + next(stream)

        stream.close()  # type: ignore[attr-defined]  # it is a generator

        call = captured.only
        assert call.question == QUESTION
        assert len(call.documents) == 3
        assert call.response == given == "The"
        assert call.capture is not None
        assert call.capture.status == "aborted"

    async def test_closed_async_stream(self, captured: Captured) -> None:
        """An async stream that the app leaves is aborted once asyncio has closed it."""
        stream = rag_chain().astream(QUESTION, captured.config)
        given = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
        del stream
        for _ in range(5):
            await asyncio.sleep(0)
            gc.collect()

        call = captured.only
        assert call.response == given
        assert call.capture is not None
        assert call.capture.status == "aborted"

    async def test_cancelled(self, captured: Captured) -> None:
        """A cancelled task leaves an aborted call, and nothing open."""
        slow = FakeListChatModel(responses=[ANSWER], sleep=1)
        task = asyncio.create_task(rag_chain(llm=slow).ainvoke(QUESTION, captured.config))
        await asyncio.sleep(0.1)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        call = captured.only
        assert call.response is None
        assert call.capture is not None
        assert call.capture.status == "aborted"

    def test_capture_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        """A document that raises when it is read disturbs the capture, not the chain."""

        class Sour(Document):
            def __getattribute__(self, name: str) -> Any:
                if name == "metadata":
                    raise OSError("sour")
                return super().__getattribute__(name)

        handler = RagEvalCallbackHandler(lambda call: None)
        chain = rag_chain(Sections(found=[Sour.model_construct(page_content="x")]))

        assert chain.invoke(QUESTION, {"callbacks": [handler]}) == ANSWER
        assert handler.failed > 0
        assert handler.open_calls == 0
        assert "capture" in caplog.text

    @pytest.mark.parametrize(
        ("field", "value"),
        [("target", None), ("max_open", 0), ("max_open", True), ("ttl", 0), ("ttl", "1")],
    )
    def test_wrong_argument(self, field: str, value: Any) -> None:
        """An argument that cannot work is refused where the handler is made, by name."""
        arguments: dict[str, Any] = {"target": print, field: value}

        with pytest.raises(ConfigurationError, match=f"`{field}`"):
            RagEvalCallbackHandler(arguments.pop("target"), **arguments)


async def use(chain: Runnable[Any, Any], way: str, config: Any) -> Any:
    if way == "ainvoke":
        return await chain.ainvoke(QUESTION, config)
    return (
        list(chain.stream(QUESTION, config)) if way == "stream" else chain.invoke(QUESTION, config)
    )


class TestAttachment:
    def test_bound_to_the_chain(self, captured: Captured) -> None:
        """`with_config` is as good as config."""
        rag_chain().with_config(callbacks=[captured.handler]).invoke(QUESTION)

        assert captured.only.response == ANSWER

    def test_bound_to_an_inner_runnable(self, captured: Captured) -> None:
        """A handler on a part sees that part as the call."""
        inner = rag_chain().with_config(callbacks=[captured.handler])

        (RunnableLambda(lambda text: text + "!") | inner).invoke(QUESTION)

        assert captured.only.question == QUESTION + "!"

    def test_given_twice(self, captured: Captured) -> None:
        """On the chain and in the config gives one record."""
        chain = rag_chain().with_config(callbacks=[captured.handler])

        chain.invoke(QUESTION, captured.config)

        assert len(captured.calls) == 1

    def test_target_may_run_chains(self) -> None:
        """A target that runs a RAG chain under the same handler does not call itself."""
        calls: list[RagCall] = []

        def target(call: RagCall) -> None:
            calls.append(call)
            rag_chain().invoke("Is that so?", {"callbacks": [handler]})

        handler = RagEvalCallbackHandler(target)

        rag_chain().invoke(QUESTION, {"callbacks": [handler]})

        assert [call.question for call in calls] == [QUESTION]


class TestConcurrency:
    async def test_fifty_tasks(self, captured: Captured) -> None:
        """50 concurrent calls keep their questions, documents and answers apart."""
        questions = [f"Question {i:02}?" for i in range(50)]

        await asyncio.gather(*(echo().ainvoke(q, captured.config) for q in questions))

        assert_no_cross_talk(captured.calls, questions)

    def test_fifty_threads(self, captured: Captured) -> None:
        """50 batch items in 50 threads, all under way at once, are kept apart."""
        questions = [f"Question {i:02}?" for i in range(50)]
        together = threading.Barrier(50, timeout=30)
        config: Any = {**captured.config, "max_concurrency": 50}

        echo(lambda: together.wait()).batch(questions, config)

        assert_no_cross_talk(captured.calls, questions)


def echo(wait: Any = lambda: None) -> Runnable[Any, str]:
    """A chain whose documents and answer name the question."""

    class Named(Sections):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            wait()
            return [Document(page_content=f"About {query} number {i}") for i in range(2)]

    return rag_chain(Named()) | RunnableLambda(str) | RunnableLambda(lambda text: text)


def assert_no_cross_talk(calls: list[RagCall], questions: list[str]) -> None:
    assert sorted(call.question for call in calls) == questions
    for call in calls:
        assert [document.text for document in call.documents] == [
            f"About {call.question} number {i}" for i in range(2)
        ]


class TestBounds:
    def test_oldest_is_dropped(self) -> None:
        """No more than `max_open` calls are held; a dropped one is counted, not delivered."""
        calls: list[RagCall] = []
        handler = RagEvalCallbackHandler(calls.append, max_open=2)
        streams = [rag_chain().stream(f"q{i}", {"callbacks": [handler]}) for i in range(3)]
        for stream in streams:
            next(stream)

        assert handler.open_calls == 2
        assert handler.dropped == 1

        for stream in streams:
            list(stream)

        assert [call.question for call in calls] == ["q1", "q2"]
        assert handler.open_calls == 0
        assert not handler._runs

    def test_old_ones_are_dropped(self) -> None:
        """A stream that is kept and never read is forgotten after `ttl` seconds."""
        handler = RagEvalCallbackHandler(lambda call: None, ttl=0.01)
        stream = rag_chain().stream(QUESTION, {"callbacks": [handler]})
        next(stream)
        threading.Event().wait(0.05)

        assert handler.open_calls == 0
        assert handler.dropped == 1
        assert not handler._runs
        stream.close()  # type: ignore[attr-defined]  # it is a generator
        assert not handler._late

    def test_nothing_grows(self, captured: Captured) -> None:
        """After many calls, a tenth of them failing, no run, late id or call is left."""
        good, bad = rag_chain(), rag_chain(Sections(error="x"))
        for i in range(100):
            chain = bad if i % 10 == 0 else good
            chain.batch([QUESTION], captured.config, return_exceptions=True)

        assert len(captured.calls) == 100
        assert not captured.handler._late
        assert not captured.handler._runs


class TestShortcut:
    def test_records_are_as_validated(self, captured: Captured) -> None:
        """Records are made without validation, and are what validation would have made."""
        reranked = Sections() | RunnableLambda(lambda found: found[:2])
        config: Any = {**captured.config, "tags": ["t"], "metadata": {"day": {1}, "user": 7}}
        rag_chain(reranked).invoke(QUESTION, config)

        call = captured.only

        content = call.model_dump()
        again = RagCall.model_validate(content)
        assert again == call
        assert again.model_dump() == content
        assert again.id == call.id == call.row_key[:16]
        assert type(call.documents) is type(again.documents)
        assert set(call.__dict__) - {"row_key"} == set(RagCall.model_fields)
        assert call.capture is not None
        assert set(call.capture.__dict__) == set(type(call.capture).model_fields)
        assert set(call.documents[0].__dict__) == set(type(call.documents[0]).model_fields)
        assert hash(call.documents[0].text) == hash(again.documents[0].text)
        assert call.model_copy(update={"app": "x"}).app == "x"

    def test_lone_surrogates_are_replaced(self, captured: Captured) -> None:
        """As validation replaces them; a document is still found in the prompt that it stands in."""
        bad, good = "The kettle\ud800 boils.", "The kettle\ufffd boils."
        found = [Document(page_content=bad, id=bad, metadata={bad: bad})]
        config: Any = {**captured.config, "tags": [bad], "metadata": {"user": bad}}

        rag_chain(Sections(found=found), llm=model("Yes\ud800.")).invoke("Does\udfff it?", config)

        call = captured.only
        assert (call.question, call.response) == ("Does\ufffd it?", "Yes\ufffd.")
        assert [(d.text, d.id, d.metadata) for d in call.documents] == [(good, good, {good: good})]
        assert call.capture is not None
        assert call.capture.documents_from == "prompt"
        assert good in call.capture.tags
        assert from_line(RagCall, to_line(call)) == call
