"""`RagEvalCallbackHandler` on real chains: one right record a call, and the app undisturbed."""

from __future__ import annotations

import asyncio
import threading
from datetime import date
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall, from_line, to_line

from .apps import QUESTION, Named
from .conftest import ANSWER, Captured, Sections, joined, model, rag_chain, run, sections


class TestRecord:
    def test_holds_what_design_says(self, captured: Captured) -> None:
        """Question, documents as the model saw them, answer, and how it was observed."""
        named = rag_chain().with_config(run_name="kettle", tags=["t"], metadata={"user": 7})

        named.invoke(QUESTION, captured.config)

        call, how = captured.only, captured.how
        assert (call.question, call.response, call.app) == (QUESTION, ANSWER, "kettle")
        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert (call.documents[0].metadata, call.documents[1].score) == ({"page": 3}, 0.5)
        assert (how.framework, how.status, how.retrievers) == ("langchain", "ok", ("Sections",))
        assert (how.tags, how.metadata) == (("t",), {"user": 7})
        assert call.started_at is not None
        assert how.run_id
        assert (how.latency_s or 0) > 0
        assert from_line(RagCall, to_line(call)) == call

    @pytest.mark.parametrize(
        "way",
        ["ainvoke", "batch", "abatch", "completed", "stream", "astream", "transform", "events"],
    )
    async def test_is_the_same_every_way(self, captured: Captured, way: str) -> None:
        """However a chain is called, the record and the answer are those of `invoke`.

        What runs as part of an evaluation is not captured.
        """
        rag_chain().invoke(QUESTION, captured.config)

        assert await run(rag_chain(), QUESTION, way, captured.config) == ANSWER
        with suppress_capture():
            assert await run(rag_chain(), QUESTION, way, captured.config) == ANSWER

        first, other = captured.substances
        assert first == other

    def test_question_falls_back_to_the_query(self, captured: Captured) -> None:
        """An input of an unknown shape is not guessed at: the retriever's query is the question."""
        chain: Any = RunnableLambda(lambda numbers: f"sum of {numbers['of']}") | rag_chain()

        chain.invoke({"of": [1, 2]}, captured.config)

        assert captured.only.question == "sum of [1, 2]"

    def test_metadata_is_made_json(self, captured: Captured) -> None:
        """What JSON cannot hold is kept as text, so that the record can always be written."""
        odd = {"day": date(2024, 5, 1), "nan": float("nan"), 3: {"x": object}, "s": {1}}

        chain = rag_chain(Sections(found=[Document("x", metadata=odd)]))
        chain.invoke(QUESTION, captured.config)

        assert captured.only.documents[0].metadata == {
            "day": "2024-05-01", "nan": "nan", "3": {"x": "<class 'object'>"}, "s": [1],
        }  # fmt: skip
        assert from_line(RagCall, to_line(captured.only)) == captured.only


COUNTED = Sections() | RunnableLambda(len) | RunnableLambda(str)
RERANKED = Sections() | RunnableLambda(itemgetter(2, 0))
WORD = Sections(found=[Document("kettle", id="w"), sections()[1]])


class TestContext:
    @pytest.mark.parametrize(
        ("chain", "expected"),
        [
            (rag_chain(RERANKED), (["c", "a"], "prompt", ["b"])),
            (COUNTED, (["a", "b", "c"], "dataflow", [])),
            (rag_chain(Sections(found=[])), ([], "retriever", [])),
            (rag_chain(WORD, fmt=lambda d: joined(d[1:])), (["b"], "prompt", ["w"])),
        ],
        ids=["reranked", "without a model", "empty", "a word of the question"],
    )
    def test_is_what_reached_the_model(self, captured: Captured, chain: Any, expected: Any) -> None:
        """Documents that were dropped are listed as such, and so is a word of the question alone.

        Without a prompt, the retriever's output is the context; it may be empty.
        """
        answer = chain.invoke(QUESTION, captured.config)

        assert captured.found == expected
        assert captured.only.response == answer

    def test_is_a_snapshot(self, captured: Captured) -> None:
        """The app may change its documents later; the record does not."""
        kept = sections()
        rag_chain(Sections(found=kept)).invoke(QUESTION, captured.config)

        kept[0].page_content, kept[0].metadata["page"] = "changed", 99

        assert captured.only.documents[0].text == "The kettle boils in four minutes."
        assert captured.only.documents[0].metadata == {"page": 3}


class TestTrouble:
    @pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
    @pytest.mark.parametrize("where", ["retriever", "model"])
    async def test_error(self, captured: Captured, where: str, way: str) -> None:
        """The user's own error comes through; what was retrieved until then is on the record."""

        def fail(prompt: object) -> str:
            raise RuntimeError("it is gone")

        in_retriever = where == "retriever"
        retriever = Sections(error="it is gone" if in_retriever else None)
        chain = rag_chain(retriever, llm=RunnableLambda(fail))

        with pytest.raises(RuntimeError, match="it is gone"):
            await run(chain, QUESTION, way, captured.config)

        assert (captured.questions, captured.ended) == ([QUESTION], (None, "error"))
        assert captured.ids == ([] if in_retriever else ["a", "b", "c"])
        assert not in_retriever or captured.how.documents_from == "none"

    def test_failed_attempts_do_not_count(self, captured: Captured) -> None:
        """With a retry, the documents are those of the attempt that led to the answer."""
        found = sections()

        def once_wrong(retrieved: list[Document]) -> str:
            retriever.found = found[1:]
            if retrieved == found:
                raise ConnectionError("try again")
            return joined(retrieved)

        retriever = Sections(found=found)
        flaky = rag_chain(retriever, fmt=once_wrong).with_retry(wait_exponential_jitter=False)

        flaky.invoke(QUESTION, captured.config)

        assert captured.found == (["b", "c"], "prompt", [])
        assert captured.how.status == "ok"

    def test_closed_stream(self, captured: Captured) -> None:
        """A stream closed by the app is aborted, with what the app was given."""
        stream = rag_chain().stream(QUESTION, captured.config)
        given = next(stream) + next(stream) + next(stream)

        stream.close()  # type: ignore[attr-defined]  # it is a generator

        assert captured.exchange == (QUESTION, given) == (QUESTION, "The")
        assert (len(captured.ids), captured.how.status) == (3, "aborted")

    def test_capture_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        """A document that raises when it is read disturbs the capture, not the chain."""

        class Sour(Document):
            def __getattribute__(self, name: str) -> Any:
                if name == "metadata":
                    raise OSError("sour")
                return super().__getattribute__(name)

        handler = RagEvalCallbackHandler(print)
        chain = rag_chain(Sections(found=[Sour.model_construct(page_content="x")]))

        assert chain.invoke(QUESTION, {"callbacks": [handler]}) == ANSWER
        assert (handler.failed > 0, handler.open_calls) == (True, 0)
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


class TestConcurrency:
    @pytest.mark.parametrize("threads", [False, True])
    async def test_many(self, captured: Captured, threads: bool) -> None:
        """20 tasks, or batch items in 20 threads all at once, keep questions and documents apart."""
        together = threading.Barrier(20, timeout=30)

        class Meeting(Named):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                together.wait()
                return super()._get_relevant_documents(query, run_manager=run_manager)

        questions = [f"Question {i:02}?" for i in range(20)]
        if threads:
            bound = rag_chain(Meeting()).with_config(callbacks=[captured.handler])
            bound.batch(questions, {"max_concurrency": 20})
        else:
            chain = rag_chain(Named())
            await asyncio.gather(*(chain.ainvoke(each, captured.config) for each in questions))

        assert sorted(captured.questions) == questions
        assert captured.ids_by_call == [[question] for question in captured.questions]


class TestBounds:
    def test_oldest_is_dropped(self) -> None:
        """No more than `max_open` calls are held; a dropped one is counted, not delivered."""
        captured = Captured(max_open=2)
        handler = captured.handler
        streams = [rag_chain().stream(f"q{i}", captured.config) for i in range(3)]
        for stream in streams:
            next(stream)

        assert (handler.open_calls, handler.dropped) == (2, 1)

        for stream in streams:
            list(stream)

        assert captured.questions == ["q1", "q2"]
        assert (handler.open_calls, handler._runs) == (0, {})

    def test_old_ones_are_dropped(self) -> None:
        """A stream that is kept and never read is forgotten after `ttl` seconds."""
        handler = RagEvalCallbackHandler(print, ttl=0.01)
        stream = rag_chain().stream(QUESTION, {"callbacks": [handler]})
        next(stream)
        threading.Event().wait(0.05)

        assert (handler.open_calls, handler.dropped, handler._runs) == (0, 1, {})
        stream.close()  # type: ignore[attr-defined]  # it is a generator
        assert not handler._late


class TestShortcut:
    def test_records_are_as_validated(self, captured: Captured) -> None:
        """Records are made without validation, and are what validation would have made."""
        reranked = Sections() | RunnableLambda(lambda retrieved: retrieved[:2])
        config: Any = {**captured.config, "tags": ["t"], "metadata": {"day": {1}, "user": 7}}
        rag_chain(reranked).invoke(QUESTION, config)

        call = captured.only
        again = RagCall.model_validate(call.model_dump())
        assert again == call
        assert again.model_dump() == call.model_dump()
        assert type(call.documents) is type(again.documents)
        assert set(call.__dict__) - {"row_key"} == set(RagCall.model_fields)
        for part in (captured.how, call.documents[0]):
            assert set(part.__dict__) == set(type(part).model_fields)

    def test_lone_surrogates_are_replaced(self, captured: Captured) -> None:
        """As validation replaces them; a document is still found in the prompt that it stands in."""
        bad, good = "The kettle\ud800 boils.", "The kettle\ufffd boils."
        found = [Document(page_content=bad, id=bad, metadata={bad: bad})]
        config: Any = {**captured.config, "tags": [bad], "metadata": {"user": bad}}

        rag_chain(Sections(found=found), llm=model("Yes\ud800.")).invoke("Does\udfff it?", config)

        call = captured.only
        assert (call.question, call.response) == ("Does\ufffd it?", "Yes\ufffd.")
        assert [(d.text, d.id, d.metadata) for d in call.documents] == [(good, good, {good: good})]
        assert captured.how.documents_from == "prompt"
        assert good in captured.how.tags
        assert from_line(RagCall, to_line(call)) == call
