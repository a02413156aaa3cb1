"""`with capture_call(...)` and `record_call(...)`: one right record, and the app undisturbed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from rag_eval_integrations._suppress import suppress_capture, suppressed
from rag_eval_integrations.capture import capture_call, capture_failures, current_call, record_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Document, RagCall, Turn, from_line, to_line

from .conftest import Captured

QUESTION = "How fast is the kettle?"
ANSWER = "It boils in four minutes."
ANSWERED: Any = {"question": QUESTION, "response": ANSWER}
EMPTY: Any = {"question": "", "documents": (), "response": None}


class TestRecord:
    def test_holds_all_that_was_set(self, captured: Captured) -> None:
        """Every field of the call object, how it was observed, and it survives JSON."""
        with capture_call(captured, QUESTION, app="kettle", metadata={"user": 7}, tags=["t"]) as c:
            c.documents = [ANSWER]
            c.response = ANSWER
            c.id = "row-1"
            c.reference = "Four minutes."
            c.history = [Turn(role="user", content="Hi"), {"role": "assistant", "content": "Yes?"}]
            c.history += [("human", "Say"), ("ai", "Ask")]

        call, how = captured.only, captured.how
        assert (call.question, call.response, call.app) == (QUESTION, ANSWER, "kettle")
        assert call.documents == (Document(text=ANSWER),)
        assert (call.id, call.reference) == ("row-1", "Four minutes.")
        assert [turn.role for turn in call.history] == ["user", "assistant"] * 2
        assert getattr(call.started_at, "tzinfo", None) is UTC
        assert (how.framework, how.status, how.documents_from) == ("plain", "ok", "dataflow")
        assert (how.metadata, how.tags) == ({"user": 7}, ("t",))
        assert isinstance(how.latency_s, float)
        assert from_line(RagCall, to_line(call)) == call
        assert RagCall.model_validate(call.model_dump()) == call

    def test_of_an_empty_block_says_that_nothing_is_known(self, captured: Captured) -> None:
        """No documents set is `none`, an empty list is a retrieval that found nothing."""
        with capture_call(captured, QUESTION):
            pass
        with capture_call(captured) as call:
            call.question = QUESTION
            call.documents = []

        unset, empty = captured.calls
        assert (unset.documents, unset.response, unset.id) == ((), None, unset.row_key[:16])
        assert empty.question == QUESTION
        origins = [call.capture.documents_from for call in captured.calls if call.capture]
        assert origins == ["none", "dataflow"]

    def test_is_a_snapshot_of_the_end(self, captured: Captured) -> None:
        """What the app changes later does not change the record."""
        hit: dict[str, Any] = {"text": ANSWER, "metadata": {"page": 3}}
        hits = [hit]

        with capture_call(captured, QUESTION) as call:
            call.documents = hits
            hits.append({"text": "Added before the end."})
        hits.clear()
        hit["metadata"]["page"] = 4
        call.response = "too late"

        assert captured.only.documents == (
            Document(text=ANSWER, metadata={"page": 3}),
            Document(text="Added before the end."),
        )
        assert captured.only.response is None

    def test_record_call_is_one_line(self, captured: Captured) -> None:
        """It returns what it delivers."""
        began = datetime.now(UTC)

        fields: Any = {"id": 7, "latency_s": 0.5, "started_at": began}
        record = record_call(captured, documents=[ANSWER], **ANSWERED, **fields)

        assert captured.only is record
        assert (record.id, record.started_at) == ("7", began)
        assert (captured.how.latency_s, captured.how.documents_from) == (0.5, "dataflow")
        assert record_call(captured, question="", documents=None, response=None).documents == ()
        assert capture_failures() == 0

    def test_lone_surrogates_are_replaced(self, captured: Captured) -> None:
        """In every text that a record takes from the app, as validation replaces them."""
        bad, good = "a\ud800b", "a\ufffdb"

        texts: Any = dict.fromkeys(("question", "response", "id"), bad)
        lists: Any = {"metadata": {"x": bad}, "tags": [bad], "history": [("user", bad)]}

        document = {"text": bad, "id": bad, "metadata": {bad: [bad]}}
        record = record_call(captured, documents=[document], **texts, **lists)

        assert record.documents == (Document(good, id=good, metadata={good: [good]}),)
        assert (record.question, record.response, record.id) == (good, good, good)
        assert (captured.how.metadata, captured.how.tags) == ({"x": good}, (good,))
        assert record.history[0].content == good
        assert from_line(RagCall, to_line(record)) == record
        assert capture_failures() == 0


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ANSWER, Document(text=ANSWER)),
        (Colour.RED, Document(text="red")),
        (Document(text=ANSWER, id="a", score=1.5, metadata={"p": 1}),) * 2,
        ({"text": ANSWER, "id": "a"}, Document(text=ANSWER, id="a")),
        ({"page_content": ANSWER, "metadata": [1]}, Document(text=ANSWER, metadata={"metadata": [1]})),
        ({"content": "", "score": float("nan")}, Document(text="")),
        ({"text": ANSWER, "metadata": {"seen": datetime(2024, 1, 2, tzinfo=UTC), 3: {1}}},
         Document(text=ANSWER, metadata={"seen": "2024-01-02T00:00:00+00:00", "3": [1]})),
        ((ANSWER, 1), Document(text=ANSWER, score=1.0)),
    ],
)  # fmt: skip
def test_documents_of_any_make(captured: Captured, given: object, expected: Document) -> None:
    """Strings, records, dicts, and what both frameworks' retrievers return, as JSON values."""
    with capture_call(captured, QUESTION) as call:
        call.documents = [given]

    assert captured.only.documents == (expected,)
    assert capture_failures() == 0


def test_documents_of_the_frameworks(captured: Captured) -> None:
    """The real classes: LangChain's document, and LlamaIndex's nodes, also those without a text."""
    documents = pytest.importorskip("langchain_core.documents")
    schema = pytest.importorskip("llama_index.core.schema")
    node = schema.TextNode(id_="n", text=ANSWER, metadata={"page": 3})

    with capture_call(captured, QUESTION) as call:
        call.documents = [
            documents.Document(id="d", page_content=ANSWER, metadata={"page": 3}),
            (documents.Document(page_content=ANSWER), 0.5),
            node,
            schema.NodeWithScore(node=node, score=0.25),
            schema.NodeWithScore(node=schema.ImageNode(id_="i"), score=0.125),
        ]

    page = {"page": 3}
    assert captured.only.documents == (
        Document(text=ANSWER, id="d", metadata=page),
        Document(text=ANSWER, score=0.5),
        Document(text=ANSWER, id="n", metadata=page),
        Document(text=ANSWER, id="n", metadata=page, score=0.25),
        Document(text="", id="i", score=0.125),
    )
    assert capture_failures() == 0


class TestWhatCannotBeUsed:
    @pytest.mark.parametrize(
        ("field", "value", "kept"),
        [
            ("question", 42, ""), ("question", None, ""), ("documents", "one text", ()),
            ("documents", {"text": "one"}, ()), ("documents", Document(text="one"), ()),
            ("documents", (text for text in ["a stream of the app"]), ()),
            ("documents", [object(), "kept", None, ("a", "b")], (Document(text="kept"),)),
            ("response", ["no", "text"], None), ("id", 1.5, None), ("id", True, None),
            ("reference", b"bytes", None), ("history", [{"role": "nobody", "content": "x"}], ()),
            ("history", "Hi", ()), ("app", 3, None), ("metadata", [1], {}), ("tags", "one", ()),
            ("tags", [1], ()), ("dokuments", ["a typing error"], None),
        ],
    )  # fmt: skip
    def test_costs_only_itself(
        self, captured: Captured, log: pytest.LogCaptureFixture, field: str, value: Any, kept: Any
    ) -> None:
        """A wrong type is logged by its field and counted; the rest of the call is delivered."""
        with capture_call(captured, QUESTION) as call:
            call.response = ANSWER
            call.documents = ["a"]
            setattr(call, field, value)

        record = captured.only
        holder = captured.how if field in ("metadata", "tags") else record
        expected = record.row_key[:16] if field == "id" else kept
        assert getattr(holder, field, None) == expected
        assert record.response == (None if field == "response" else ANSWER)
        failed = 0 if value is None else 3 if isinstance(kept, tuple) and len(kept) == 1 else 1
        assert capture_failures() == failed
        assert [f"capture ({field})" in line for line in log.messages] == [True] * min(failed, 1)
        assert from_line(RagCall, to_line(record)) == record

    def test_any_collection_will_do(self, captured: Captured) -> None:
        """Only what can be read once is refused; as an id, also a number of NumPy's, of a frame."""
        with capture_call(captured, QUESTION) as call:
            call.documents = {"first": "a", "second": "b"}.values()
            call.history = [("user", "Hi")]
            call.id = np.int64(7)  # type: ignore[assignment]

        assert captured.only.documents == (Document(text="a"), Document(text="b"))
        assert captured.only.history == (Turn(role="user", content="Hi"),)
        assert captured.only.id == "7"
        assert capture_failures() == 0

    @pytest.mark.parametrize(("latency", "started"), [(-1.0, None), (None, "now"), ("1", None)])
    def test_record_call_is_no_stricter(
        self, captured: Captured, latency: Any, started: Any
    ) -> None:
        """Also code at hand may be wrong."""
        record = record_call(
            captured, documents=["a"], latency_s=latency, started_at=started, **ANSWERED
        )

        assert captured.only is record
        assert (captured.how.latency_s, record.started_at) == (None, None)
        assert capture_failures() == 1

    def test_an_unusable_argument_is_refused_when_it_is_made(self) -> None:
        """A mistake of set-up, which shows at the first run."""

        async def later(call: RagCall) -> None: ...

        for target in (None, later, RagEvaluator):
            with pytest.raises(ConfigurationError, match="target"):
                capture_call(target, QUESTION)  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="target"):
                record_call(target, **EMPTY)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="or its `evaluate_sync`"):
            record_call(RagEvaluator(), **EMPTY)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="documents"):
            capture_call(print, QUESTION, documents=["a"])  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("answer", "did you mean `response`?"),
            ("contexts", "did you mean `documents`?"),
            ("respones", "did you mean `response`?"),
            ("colour", "its fields are app, documents, history, id, metadata, question, reference"),
        ],
    )
    def test_an_unknown_field_is_told_with_the_nearest(
        self, captured: Captured, log: pytest.LogCaptureFixture, name: str, hint: str
    ) -> None:
        """In one line, once, though every call is counted."""
        for _ in range(2):
            with capture_call(captured, QUESTION) as call:
                setattr(call, name, ANSWER)

        (record,) = log.records
        assert (
            f"({name}): a call has no such field, and is delivered without it; {hint}"
            in record.getMessage()
        )
        assert (record.exc_info, capture_failures(), len(captured.calls)) == (None, 2, 2)

    def test_even_a_broken_call_object_breaks_only_the_record(self, captured: Captured) -> None:
        """Whatever fails at the end is counted, and the app goes on."""
        with capture_call(captured, QUESTION) as call:
            del call.response

        assert captured.calls == []
        assert capture_failures() == 1


class TestEnds:
    def test_an_exception_goes_on_unchanged(self, captured: Captured) -> None:
        """The same object, no frame of ours, nothing chained to it; status `error`."""
        error = KeyError("of the app")

        def work() -> None:
            with capture_call(captured, QUESTION) as call:
                call.documents = ["a"]
                call.response = "half an answer"
                raise error

        with pytest.raises(KeyError) as raised:
            work()

        assert raised.value is error
        assert [frame.name for frame in raised.traceback][1:] == ["work"]
        chained = (error.__cause__, error.__context__, error.__suppress_context__)
        assert chained == (None, None, False)
        assert (captured.how.status, captured.only.response) == ("error", None)
        assert captured.only.documents == (Document(text="a"),)

    async def test_a_cancelled_task_is_aborted(self, captured: Captured) -> None:
        """With what was set so far; the cancellation goes on."""
        inside = asyncio.Event()

        async def work() -> None:
            async with capture_call(captured, QUESTION) as call:
                call.response = "half"
                inside.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (captured.how.status, captured.only.response) == ("aborted", "half")

    def test_a_block_may_end_in_another_context(self, captured: Captured) -> None:
        """As generator dependencies of web frameworks do, whose halves run in two threads."""
        block = capture_call(captured, QUESTION)
        call = copy_context().run(block.__enter__)
        call.response = ANSWER

        copy_context().run(block.__exit__, None, None, None)

        assert captured.only.response == ANSWER
        assert capture_failures() == 0

    def test_blocks_may_end_in_any_order(self, captured: Captured) -> None:
        """And what is current is never one that has ended."""
        first, second = capture_call(captured, "1"), capture_call(captured, "2")
        one, two = first.__enter__(), second.__enter__()

        first.__exit__(None, None, None)
        assert current_call() is two
        second.__exit__(None, None, None)

        assert current_call() not in (one, two)
        assert [call.question for call in captured.calls] == ["1", "2"]


class TestTarget:
    def test_that_is_broken_never_reaches_the_app(self, log: pytest.LogCaptureFixture) -> None:
        """One traceback of each target in the log, all failures counted, all blocks went on."""

        def broken(call: RagCall) -> None:
            raise RuntimeError("the target is down")

        def another(call: RagCall) -> None:
            raise RuntimeError

        for number in range(20):
            with capture_call(broken, f"{number}") as call:
                call.response = ANSWER
        record_call(another, **EMPTY)

        assert capture_failures() == 21
        record, _ = log.records
        assert record.name == "rag_eval_integrations.capture"
        assert "broken" in record.getMessage()
        assert "the target is down" in str(record.exc_info)

    def test_is_called_in_the_thread_of_the_end_and_is_not_captured(self) -> None:
        """Calls that the target itself makes are not captured, in any framework."""
        seen: list[tuple[int, bool]] = []

        def target(call: RagCall) -> None:
            seen.append((threading.get_ident(), suppressed()))
            with capture_call(target, "of the judge"):
                pass

        with capture_call(target, QUESTION):
            pass

        assert seen == [(threading.get_ident(), True)]

    def test_gets_nothing_while_suppressed(self, captured: Captured) -> None:
        """A judge's own calls; the code that sets fields runs all the same."""
        with suppress_capture(), capture_call(captured, QUESTION) as call:
            call.response = ANSWER
            current_call().documents = ["a"]
            record = record_call(captured, documents=(), **ANSWERED)

        assert call.documents is None
        assert captured.calls == []
        assert record.response == ANSWER


class TestEvaluator:
    @pytest.mark.parametrize("target", [RagEvaluator(), "embedded"], ids=["evaluator", "name"])
    def test_is_run_in_the_background(self, target: RagEvaluator | str) -> None:
        """As in a handler: the evaluations of a block and a function are kept by its object."""
        block, function = capture_call(target, QUESTION), capture_call(target)
        with block as call:
            call.documents = [ANSWER]
            call.response = ANSWER

        @function
        def answer(question: str) -> tuple[str, list[str]]:
            return ANSWER, [ANSWER]

        assert answer(QUESTION) == (ANSWER, [ANSWER])
        for capturing in (block, function):
            assert capturing.flush()
            (evaluation,) = capturing.evaluations
            assert (evaluation.question, evaluation.response) == (QUESTION, ANSWER)
            assert evaluation.scores["adherence"].value == 1.0
        assert capture_failures() == 0


class TestAtOnce:
    def test_many_threads_with_one_object(self, captured: Captured) -> None:
        """No cross-talk: each record holds what its own thread set."""
        block = capture_call(captured)
        together = threading.Barrier(20)

        def work(number: int) -> None:
            with block as call:
                together.wait()
                call.question = f"{number}"
                current_call().documents = [f"{number}"]
                together.wait()
                call.response = f"{number}"

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(work, range(20)))

        assert_own(captured)

    async def test_many_tasks_with_one_object(self, captured: Captured) -> None:
        """Nor between tasks; a task started inside belongs to the call."""
        block = capture_call(captured)

        async def retrieve(number: int) -> None:
            await asyncio.sleep(0.001 * (number % 7))
            current_call().documents = [f"{number}"]

        async def work(number: int) -> None:
            async with block as call:
                call.question = f"{number}"
                await asyncio.gather(retrieve(number), asyncio.sleep(0.001 * (number % 5)))
                call.response = f"{number}"

        await asyncio.gather(*map(work, range(20)))

        assert_own(captured)

    def test_one_object_inside_of_itself(self, captured: Captured) -> None:
        """Blocks of one object end innermost first."""
        block = capture_call(captured, QUESTION)

        with ExitStack() as stack:
            for number in range(3):
                stack.enter_context(block).response = f"{number}"

        assert [call.response for call in captured.calls] == ["2", "1", "0"]


def assert_own(captured: Captured) -> None:
    assert sorted(call.question for call in captured.calls) == sorted(map(str, range(20)))
    for call in captured.calls:
        assert call.documents == (Document(text=call.question),)
        assert call.response == call.question
    assert capture_failures() == 0
