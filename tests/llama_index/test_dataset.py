"""`evaluate_query_engine`: questions in, evaluations out, in order, resumable, errors as rows."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

from rag_eval_integrations import Evaluations, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import aevaluate_query_engine, evaluate_query_engine
from rag_eval_integrations.records import Evaluation, RagCall, from_line
from rag_eval_integrations.testing import ScriptedModel, labels_reply

from .conftest import ANSWER, QUESTION, Model, Sections, engine, nodes


def evaluator() -> RagEvaluator:
    return RagEvaluator(ScriptedModel(lambda request: labels_reply(["0a"], ["a"])))


class Picky(Sections):
    """Fails for a question that is in `refused`; counts what it is asked."""

    def __init__(self, *refused: str) -> None:
        super().__init__(nodes())
        self.refused = set(refused)
        self.asked: list[str] = []
        self.running = self.most = 0
        self._lock = threading.Lock()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._lock:
            self.asked.append(query_bundle.query_str)
        if query_bundle.query_str in self.refused:
            raise RuntimeError("index offline")
        return super()._retrieve(query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.005)
        self.running -= 1
        return self._retrieve(query_bundle)


async def run(asynchronously: bool, *args: Any, **options: Any) -> Evaluations:
    if asynchronously:
        return await aevaluate_query_engine(*args, **options)
    return evaluate_query_engine(*args, **options)


both = pytest.mark.parametrize("asynchronously", [False, True])


@both
@pytest.mark.parametrize("streaming", [False, True])
async def test_gives_an_evaluation_a_question_in_order(
    asynchronously: bool, streaming: bool
) -> None:
    """Streams too; inside a running loop; the dispatcher is as it was."""
    before = get_dispatcher().span_handlers
    questions = [f"Question {number}?" for number in range(6)]

    rows = await run(asynchronously, engine(streaming=streaming), questions, evaluator())

    assert [row.question for row in rows] == questions
    assert {row.response for row in rows} == {ANSWER}
    assert {len(row.document_ids) for row in rows} == {3}
    assert all(row.scores["adherence"].value == 1.0 for row in rows)
    assert {row.capture.documents_from for row in rows if row.capture} == {"prompt"}
    assert get_dispatcher().span_handlers == before


@both
async def test_an_engine_error_is_a_row(asynchronously: bool) -> None:
    """The others are evaluated; the failed one says what and where, and half an answer is none."""
    retriever = Picky("Second?")
    asked = evaluator()

    questions = ["First?", "Second?", "Third?"]
    first, second, third = await run(asynchronously, engine(retriever), questions, asked)
    failing = engine(streaming=True, llm=Model(fail_after=2))
    (broken,) = await run(asynchronously, failing, [QUESTION], asked)

    assert broken.error is not None
    assert (broken.error.message, broken.response) == ("connection lost", None)
    assert first.error is third.error is None
    assert second.error is not None
    assert (second.error.stage, second.error.type) == ("app", "RuntimeError")
    assert (second.error.message, second.response) == ("index offline", None)
    assert {score.unscored for score in second.scores.values()} == {"empty_response"}
    assert second.capture is not None
    assert second.capture.status == "error"


async def test_questions_come_in_many_forms() -> None:
    """With references, ids and metadata where they have some."""

    class Example(BaseModel):  # as LlamaIndex's LabelledRagDataExample, which 0.14.25 has no more
        query: str
        reference_answer: str

    rows = await aevaluate_query_engine(
        engine(),
        [
            "As a string?",
            QueryBundle("As a bundle?"),
            {"question": "As a dict?", "reference": "Yes.", "id": 7, "metadata": {"k": 1}},
            {"query": "As theirs?", "reference_answer": "Yes."},
            Example(query="As an example?", reference_answer="Yes."),
            RagCall("As a call?", ["Old."], "Old.", id="c", reference="Yes."),
        ],
        evaluator(),
    )

    assert [row.question for row in rows] == [
        "As a string?", "As a bundle?", "As a dict?", "As theirs?", "As an example?", "As a call?",
    ]  # fmt: skip
    assert [row.reference for row in rows] == [None, None, "Yes.", "Yes.", "Yes.", "Yes."]
    assert (rows[2].id, rows[2].metadata, rows[5].id) == ("7", {"k": 1}, "c")
    assert rows[5].response == ANSWER
    assert rows[2].row_key != rows[0].row_key


@both
async def test_a_slow_engine_is_a_row(asynchronously: bool) -> None:
    """`timeout` bounds each question."""
    release = threading.Event()

    class Slow(Sections):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            release.wait(30)
            return []

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            await asyncio.sleep(3600)
            return []

    before = len(get_dispatcher().span_handlers)
    try:
        (row,) = await run(asynchronously, engine(Slow([])), [QUESTION], evaluator(), timeout=0.05)
    finally:
        release.set()

    assert row.error is not None
    assert (row.error.type, row.error.message) == ("TimeoutError", "no answer within 0.05 s")
    for _ in range(500):  # the thread that goes on
        if len(get_dispatcher().span_handlers) > before:
            await asyncio.sleep(0.01)


async def test_cancelling_the_run_is_no_row() -> None:
    """It ends the run; a cancellation of the engine's own is an error of that question."""

    class Gives(Sections):
        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            if query_bundle.query_str == "Up?":
                raise asyncio.CancelledError
            await asyncio.sleep(3600)
            return []

    (row,) = await aevaluate_query_engine(engine(Gives([])), ["Up?"], evaluator())
    assert row.error is not None
    assert row.error.type == "CancelledError"

    running = asyncio.create_task(aevaluate_query_engine(engine(Gives([])), ["A?"], evaluator()))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@both
async def test_a_run_can_be_resumed(asynchronously: bool, tmp_path: Path) -> None:
    """Only what failed or is missing is asked; the file is in the questions' order."""
    out = tmp_path / "evals.jsonl"
    retriever = Picky("Second?")
    judged = evaluator()
    questions = ["First?", {"question": "Second?", "reference": "Yes."}, "First?"]
    await run(asynchronously, engine(retriever), questions, judged, out=out)
    retriever.refused.clear()
    retriever.asked.clear()
    done: list[tuple[int, int]] = []

    rows = await run(
        asynchronously, engine(retriever), [*questions, "Fourth?"], judged, out=str(out),
        resume=True, progress=lambda *numbers: done.append(numbers), max_concurrency=1,
    )  # fmt: skip

    assert retriever.asked == ["Second?", "Fourth?"]
    assert done == [(3, 4), (4, 4)]
    assert [row.question for row in rows] == ["First?", "Second?", "First?", "Fourth?"]
    assert [row.error for row in rows] == [None] * 4
    assert isinstance(rows, Evaluations)
    assert [from_line(Evaluation, line) for line in out.read_text().splitlines()] == rows


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        ((Sections([]), [QUESTION]), {}, "engine"),
        ((None, QUESTION), {}, "questions"),
        ((None, [7]), {}, "questions[0]"),
        ((None, [QUESTION, {"question": None}]), {}, "questions[1]"),
        ((None, [{"question": "?", "reference": 7}]), {}, "questions[0].reference"),
        ((None, [QUESTION]), {"workers": 2}, "workers"),
        ((None, [QUESTION]), {"max_concurrency": 0}, "max_concurrency"),
    ],
)
def test_refuses_what_cannot_work(arguments: Any, options: Any, field: str) -> None:
    """Before the first question is asked."""
    asked, questions = arguments

    with pytest.raises(ConfigurationError) as raised:
        evaluate_query_engine(asked or engine(), questions, evaluator(), **options)

    assert raised.value.field == field
