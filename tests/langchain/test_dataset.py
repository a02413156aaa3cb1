"""`evaluate_dataset`: every example a row, in order, whatever the chain does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.runnables import Runnable, RunnableLambda
from langsmith.schemas import Example as LangSmithExample

from rag_eval_integrations import Evaluation, Evaluations, RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import aevaluate_dataset, evaluate_dataset
from rag_eval_integrations.records import from_line

from .conftest import ANSWER, cancel, capture_of, judge, rag_chain

NAME = uuid4()
SET: Any = {"metadata": {"set": "a"}}


def evaluator() -> RagEvaluator:
    return RagEvaluator(judge())


def asked(evaluator: RagEvaluator) -> list[str]:
    labeller: Any = evaluator.judge
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
def run(request: pytest.FixtureRequest) -> Any:
    """Both forms."""
    return request.param


class TestRows:
    def test_one_an_example_in_order(self, run: Run, tmp_path: Path) -> None:
        """Twenty at once, and each row is its example's; progress is told after each.

        The caller's tags and metadata go along. Of the file, nothing is left but the rows.
        """
        questions = [f"q{number}" for number in range(20)]
        steps: list[tuple[int, int]] = []
        config: Any = {"tags": ["nightly"], "metadata": {"commit": "abc"}}
        out = tmp_path / "o.jsonl"

        rows = run(
            rag_chain(), questions, evaluator(), config=config, out=str(out),
            max_concurrency=20, progress=lambda *n: steps.append(n),
        )  # fmt: skip

        assert steps == [(number, 20) for number in range(1, 21)]
        assert [row.question for row in rows] == questions
        assert {row.response for row in rows} == {ANSWER}
        assert all(row.scores["adherence"].value == 1.0 for row in rows)
        captures = [capture_of(row) for row in rows]
        assert {(how.documents_from, how.tags) for how in captures} == {("prompt", ("nightly",))}
        assert {how.metadata["commit"] for how in captures} == {"abc"}
        assert [from_line(Evaluation, line) for line in out.read_bytes().splitlines()] == rows
        assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]

    @pytest.mark.parametrize(
        "example",
        [
            {"question": "How?", "reference": "So.", "id": 7, **SET},
            {"inputs": "How?", "outputs": {"answer": "So."}, "id": "7", **SET},
            {"inputs": "How?", "reference_outputs": "So.", "id": 7.0, "relevant_ids": nan, **SET},  # of pandas
            RagCall("How?", ["other"], "other", id=7, reference="So.", **SET),
            LangSmithExample(
                id=NAME, inputs={"question": "How?"}, outputs={"answer": "So."}, **SET,
                dataset_id=NAME, created_at=datetime.now(UTC),
            ),
        ],
        ids=lambda example: type(example).__name__,
    )  # fmt: skip
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
        asked = ["a", {"question": "a"}, {"question": "a", "id": nan}]
        first = evaluate_dataset(rag_chain(), asked, evaluator())
        assert isinstance(first, Evaluations)
        other = evaluate_dataset(rag_chain(), [{"question": "a", "reference": "b"}], evaluator())

        assert first[0].id == first[1].id == first[2].id != other[0].id
        assert len(first[0].id) == 16

    def test_hooks_find_what_the_usual_capture_does_not(self, run: Run) -> None:
        """They are the handler's, beside the example's own question."""
        chain: Any = RunnableLambda(lambda question: {"read": ["Press it."], "said": question})
        hooks: Any = {
            "documents": lambda given, out: out["read"],
            "response": lambda out: out["said"],
        }

        (row,) = run(chain, ["How?"], evaluator(), **hooks)

        assert (row.question, row.response, len(row.document_ids)) == ("How?", "How?", 1)
        assert row.scores["adherence"].value is not None

    def test_a_function_is_a_chain(self) -> None:
        """What it calls is captured as below it."""
        chain = rag_chain()
        (row,) = evaluate_dataset(lambda q: {"answer": chain.invoke(q)}, ["How?"], evaluator())

        assert (row.question, row.response, len(row.document_ids)) == ("How?", ANSWER, 3)

    def test_a_chain_without_documents(self) -> None:
        """Is a row without context, said so; so is one whose answer cannot be told."""
        scorer = evaluator()
        chain: Any = RunnableLambda(lambda q: "yes" if q == "a" else 7)
        rows = evaluate_dataset(chain, ["a", "b"], scorer)

        said = [(row.response, row.scores["adherence"].unscored) for row in rows]
        assert said == [("yes", "no_context"), ("", "empty_response")]
        assert asked(scorer) == []


class TestErrors:
    def test_an_error_is_a_row(self, run: Run) -> None:
        """Its message is in the row, nothing is judged, and the others go on.

        A chain that cancels itself does not cancel the run; a timeout of its own is told as that.
        """
        slow = TimeoutError("store is slow")
        errors = {"b": ValueError("no kettle"), "c": asyncio.CancelledError(), "d": slow}
        scorer = evaluator()

        rows = run(Counted(errors.get).chain, list("abcde"), scorer, timeout=30)

        failures = [row.error and (row.error.stage, row.error.type) for row in rows]
        types = ("ValueError", "CancelledError", "TimeoutError")
        assert failures == [None, *(("app", name) for name in types), None]
        messages = [row.error.message for row in rows if row.error]
        assert messages[::2] == ["no kettle", "store is slow"]
        failed = rows[1]
        assert (failed.question, failed.response, failed.flags) == ("b", None, ("capture_error",))
        assert {score.unscored for score in failed.scores.values()} == {"empty_response"}
        assert asked(scorer) == ["a", "e"]

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
        assert capture_of(row).status == "aborted"

    def test_an_async_function_is_refused_by_the_sync_form(self) -> None:
        """Every example would fail, and name a method that the user never called."""

        async def answer(question: str) -> str:
            return question

        with pytest.raises(ConfigurationError, match="use `await aevaluate_dataset"):
            evaluate_dataset(answer, ["a"], evaluator())

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

        await cancel(aevaluate_dataset(RunnableLambda(wait), ["a"], evaluator()), begun)

        assert ended == ["a"]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("examples[0]", [{"id": 1}]),
            ("examples[1]", ["a", 7]),
            ("examples", "How?"),
            ("examples", {"question": "How?"}),
            ("max_concurrency", 0),
            ("max_concurrency", "3"),
            ("config", ["tag"]),
            ("resume", True),
            ("timeout", 0),
            *[(name, 3) for name in ("progress", "make_input", "out", "concurrency")],
            ("chain", "chain"),
            ("evaluator", "embedded"),
        ],
    )
    def test_mistakes_are_named(self, run: Run, field: str, value: Any, tmp_path: Path) -> None:
        """Before anything is run or written."""
        scorer = evaluator()
        options = {
            "chain": rag_chain(), "examples": ["a"], "evaluator": scorer,
            "out": tmp_path / "o.jsonl", field.split("[")[0]: value,
        }  # fmt: skip
        if field == "resume":  # which needs a file
            del options["out"]

        with pytest.raises(ConfigurationError) as raised:
            run(**options)

        assert raised.value.field == field
        assert asked(scorer) == []
        assert list(tmp_path.iterdir()) == []


class TestBounds:
    def test_concurrency_is_bounded(self) -> None:
        """No more examples are under way than asked for."""
        counted = Counted()

        in_async_code(counted.chain, map(str, range(12)), evaluator(), max_concurrency=3)

        assert counted.most == 3


class TestFile:
    def test_resume(self, run: Run, tmp_path: Path) -> None:
        """What failed or is new is run; what is there is taken over, and judged no more."""
        out, scorer = tmp_path / "o.jsonl", evaluator()
        first = Counted(lambda q: ValueError("down") if q == "b" else None)
        run(first.chain, ["a", "b"], scorer, out=out)
        second = Counted()

        rows = run(second.chain, ["c", "a", "b", "a"], scorer, out=out, resume=True)

        assert sorted(second.questions) == ["a", "b", "c"]  # the second `a` is another row
        assert [row.question for row in rows] == ["c", "a", "b", "a"]
        assert [row.error for row in rows] == [None] * 4
        lines = out.read_bytes().splitlines()
        assert [from_line(Evaluation, line).question for line in lines] == ["c", "a", "b", "a"]

    def test_a_file_made_otherwise_is_replaced_on_request(self, run: Run, tmp_path: Path) -> None:
        """Of a changed example of one id: never silently, by resuming."""
        out, changed = tmp_path / "o.jsonl", Counted()
        run(rag_chain(), [{"id": 1, "question": "a"}], evaluator(), out=out)

        with pytest.raises(ConfigurationError, match="of other questions"):
            run(changed.chain, [{"id": 1, "question": "b"}], evaluator(), out=out, resume=True)
        run(changed.chain, [{"id": 1, "question": "b"}], evaluator(), out=out, overwrite=True)

        assert changed.questions == ["b"]
