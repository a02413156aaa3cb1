"""`evaluate_dataset`: every example a row, in order, whatever the chain does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from by_hand import ScriptedJudge, labels_of
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langsmith.schemas import Example as LangSmithExample

from rag_eval_integrations import Evaluation, Evaluations, RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import aevaluate_dataset, evaluate_dataset
from rag_eval_integrations.records import from_line

from .conftest import ANSWER, rag_chain

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})
NAME = uuid4()


def evaluator() -> RagEvaluator:
    return RagEvaluator(ScriptedJudge(LABELS))


def asked(judge: RagEvaluator) -> list[str]:
    labeller: Any = judge.judge
    return sorted(call.call.question for call in labeller.asked)


class Counted:
    """A RAG chain that counts its questions and fails on some."""

    def __init__(self, fails: Callable[[str], BaseException | None] = lambda q: None) -> None:
        self.questions: list[str] = []
        self.fails = fails
        self.most = self._now = 0
        self._lock = threading.Lock()
        self.chain: Runnable[Any, Any] = RunnableLambda(self._check, self._acheck) | rag_chain()

    def _check(self, question: str) -> str:
        self.questions.append(question)
        if (error := self.fails(question)) is not None:
            raise error
        return question

    async def _acheck(self, question: str) -> str:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        await asyncio.sleep(0.002 if question.endswith("0") else 0)  # out of order
        self._now -= 1
        return self._check(question)


Run = Callable[..., list[Evaluation]]


def in_async_code(*args: Any, **options: Any) -> Evaluations:
    return asyncio.run(aevaluate_dataset(*args, **options))


@pytest.fixture(params=[evaluate_dataset, in_async_code], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Both forms."""
    form: Run = request.param
    return form


class TestRows:
    def test_one_an_example_in_order(self, run: Run) -> None:
        """Twenty at once, and each row is its example's; progress is told after each."""
        questions = [f"q{number}" for number in range(20)]
        told: list[tuple[int, int]] = []

        rows = run(
            rag_chain(),
            questions,
            evaluator(),
            max_concurrency=20,
            progress=lambda *n: told.append(n),
        )

        assert told == [(number, 20) for number in range(1, 21)]

        assert [row.question for row in rows] == questions
        assert {row.response for row in rows} == {ANSWER}
        assert all(row.scores["adherence"].value == 1.0 for row in rows)
        assert all(row.capture and row.capture.documents_from == "prompt" for row in rows)

    @pytest.mark.parametrize(
        "example",
        [
            {"question": "How?", "reference": "So.", "id": 7, "metadata": {"set": "a"}},
            {"inputs": "How?", "outputs": {"answer": "So."}, "id": "7", "metadata": {"set": "a"}},
            {"inputs": "How?", "reference_outputs": "So.", "id": 7, "metadata": {"set": "a"}},
            RagCall("How?", ["other"], "other", id=7, reference="So.", metadata={"set": "a"}),
            LangSmithExample(
                id=NAME,
                inputs={"question": "How?"},
                outputs={"answer": "So."},
                metadata={"set": "a"},
                dataset_id=NAME,
                created_at=datetime.now(UTC),
            ),
        ],
        ids=lambda example: type(example).__name__,
    )
    def test_examples_of_any_make(self, example: object) -> None:
        """Id, reference and metadata are the example's; the documents are the chain's."""
        chain: Any = rag_chain()
        if isinstance(example, LangSmithExample):  # its inputs go to the chain as they are
            chain = RunnableLambda(lambda given: given["question"]) | chain

        (row,) = evaluate_dataset(chain, [example], evaluator())

        assert row.id in ("7", str(NAME))
        assert (row.question, row.reference) == ("How?", "So.")
        assert row.metadata["set"] == "a"
        assert row.document_ids == ("a", "b", "c")

    def test_ids_are_made_of_the_example(self) -> None:
        """The same for the same example, so that a run can be resumed."""
        first = evaluate_dataset(rag_chain(), ["a", {"question": "a"}], evaluator())
        assert isinstance(first, Evaluations)
        other = evaluate_dataset(rag_chain(), [{"question": "a", "reference": "b"}], evaluator())

        assert first[0].id == first[1].id != other[0].id
        assert len(first[0].id) == 16

    def test_a_function_is_a_chain(self) -> None:
        """What it calls is captured as below it."""
        (row,) = evaluate_dataset(
            lambda q: {"answer": rag_chain().invoke(q)}, ["How?"], evaluator()
        )

        assert (row.question, row.response, len(row.document_ids)) == ("How?", ANSWER, 3)

    def test_a_chain_without_documents(self) -> None:
        """Is a row without context, said so; so is one whose answer cannot be told."""
        judge = evaluator()
        rows = evaluate_dataset(
            RunnableLambda(lambda q: "yes" if q == "a" else 7), ["a", "b"], judge
        )

        codes = [row.scores["adherence"].unscored for row in rows]
        assert [row.response for row in rows] == ["yes", ""]
        assert codes == ["no_context", "empty_response"]
        assert asked(judge) == []

    def test_config_goes_along(self, run: Run) -> None:
        """Tags, metadata and callbacks of the caller."""
        config: RunnableConfig = {"tags": ["nightly"], "metadata": {"commit": "abc"}}

        (row,) = run(rag_chain(), ["How?"], evaluator(), config=config)

        assert row.capture is not None
        assert row.capture.tags == ("nightly",)
        assert row.capture.metadata["commit"] == "abc"


class TestErrors:
    def test_an_error_is_a_row(self, run: Run) -> None:
        """Its message is in the row, nothing is judged, and the others go on.

        A chain that cancels itself does not cancel the run; a timeout of its own is told as that.
        """
        errors: dict[str, BaseException] = {
            "b": ValueError("no such kettle"),
            "c": asyncio.CancelledError(),
            "d": TimeoutError("store is slow"),
        }
        judge = evaluator()

        rows = run(Counted(errors.get).chain, list("abcde"), judge, timeout=30)

        assert [row.error and row.error.type for row in rows] == [
            None, "ValueError", "CancelledError", "TimeoutError", None,
        ]  # fmt: skip
        assert rows[1].error is not None
        assert rows[1].error.message == "no such kettle"
        assert rows[3].error is not None
        assert rows[3].error.message == "store is slow"
        failed = rows[1]
        assert failed.error is not None
        assert (failed.error.type, failed.error.stage) == ("ValueError", "app")
        assert (failed.question, failed.response) == ("b", None)
        assert {score.unscored for score in failed.scores.values()} == {"empty_response"}
        assert failed.flags == ("capture_error",)
        assert asked(judge) == ["a", "e"]

    async def test_a_chain_that_hangs_after_retrieval(self) -> None:
        """`timeout` bounds the chain's own call; the documents that were found are kept."""

        async def wait(prompt: object) -> str:
            await asyncio.Event().wait()
            return ""

        chain = rag_chain(llm=RunnableLambda(wait))

        (row,) = await aevaluate_dataset(chain, ["a"], evaluator(), timeout=2)

        assert row.error is not None
        assert (row.error.type, row.error.message) == ("TimeoutError", "no answer within 2 s")
        assert (len(row.document_ids), row.response) == (3, None)
        assert row.capture is not None
        assert row.capture.status == "aborted"

    async def test_cancelling_the_run(self) -> None:
        """Cancels what is under way, and nothing goes on behind the caller's back."""
        begun, ended = asyncio.Event(), []

        async def wait(question: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(question)
            return ""

        task = asyncio.create_task(aevaluate_dataset(RunnableLambda(wait), ["a"], evaluator()))
        await begun.wait()
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["a"]

    @pytest.mark.parametrize(
        ("arguments", "options", "named"),
        [
            ((rag_chain(), [{"id": 1}]), {}, "examples[0]"),
            ((rag_chain(), ["a", 7]), {}, "examples[1]"),
            ((rag_chain(), ["a"]), {"max_concurrency": 0}, "max_concurrency"),
            ((rag_chain(), ["a"]), {"max_concurrency": "3"}, "max_concurrency"),
            ((rag_chain(), ["a"]), {"timeout": 0}, "timeout"),
            ((rag_chain(), ["a"]), {"progress": 3}, "progress"),
            ((rag_chain(), ["a"]), {"make_input": 3}, "make_input"),
            ((rag_chain(), ["a"]), {"config": ["tag"]}, "config"),
            ((rag_chain(), ["a"]), {"out": 3}, "out"),
            ((rag_chain(), ["a"]), {"resume": True}, "resume"),
            ((rag_chain(), "How?"), {}, "examples"),
            ((rag_chain(), {"question": "How?"}), {}, "examples"),
            ((rag_chain(), ["a"]), {"concurrency": 3}, "concurrency"),
            (("chain", ["a"]), {}, "chain"),
            ((rag_chain(), ["a"]), {"evaluator": "embedded"}, "evaluator"),
        ],
    )
    def test_user_mistakes_are_named(
        self, run: Run, arguments: Any, options: Any, named: str, tmp_path: Path
    ) -> None:
        """Before anything is run or written."""
        judge = evaluator()
        if "resume" not in options:
            options = {"out": tmp_path / "o.jsonl", **options}

        with pytest.raises(ConfigurationError) as raised:
            run(*arguments, options.pop("evaluator", judge), **options)

        assert raised.value.field == named
        assert asked(judge) == []
        assert list(tmp_path.iterdir()) == []


class TestBounds:
    def test_concurrency_is_bounded(self) -> None:
        """No more examples are under way than asked for."""
        counted = Counted()

        in_async_code(counted.chain, map(str, range(12)), evaluator(), max_concurrency=3)

        assert counted.most == 3


class TestFile:
    def test_is_what_rag_eval_writes(self, run: Run, tmp_path: Path) -> None:
        """One line an example, in order; nothing is left beside it."""
        out = tmp_path / "o.jsonl"

        rows = run(rag_chain(), ["a0", "b"], evaluator(), out=str(out))

        assert [from_line(Evaluation, line) for line in out.read_bytes().splitlines()] == rows
        assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]

    def test_resume(self, run: Run, tmp_path: Path) -> None:
        """What failed or is new is run; what is there is taken over, and judged no more."""
        out, judge = tmp_path / "o.jsonl", evaluator()
        first = Counted(lambda q: ValueError("down") if q == "b" else None)
        run(first.chain, ["a", "b"], judge, out=out)
        second = Counted()

        rows = run(second.chain, ["c", "a", "b", "a"], judge, out=out, resume=True)

        assert sorted(second.questions) == ["a", "b", "c"]  # the second `a` is another row
        assert [row.question for row in rows] == ["c", "a", "b", "a"]
        assert [row.error for row in rows] == [None] * 4
        assert [json.loads(line)["question"] for line in out.read_bytes().splitlines()] == [
            "c", "a", "b", "a",
        ]  # fmt: skip

    def test_a_file_made_otherwise_is_replaced_on_request(self, run: Run, tmp_path: Path) -> None:
        """By another evaluator, or of a changed example of one id: never silently, by resuming."""
        out = tmp_path / "o.jsonl"
        example = {"id": 1, "question": "a", "reference": "x"}
        run(rag_chain(), [example], evaluator(), out=out)
        other, changed = Counted(), Counted()

        def both(chain: Any, example: dict[str, Any], why: str) -> None:
            with pytest.raises(ConfigurationError, match=why):
                run(chain, [example], RagEvaluator(), out=out, resume=True)
            run(chain, [example], RagEvaluator(), out=out, overwrite=True)

        both(other.chain, example, "was made by another evaluator")
        both(changed.chain, {**example, "question": "b"}, "of other questions")

        assert (other.questions, changed.questions) == (["a"], ["b"])
