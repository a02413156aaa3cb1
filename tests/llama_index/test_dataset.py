"""`evaluate_query_engine`: questions in, evaluations out, in order, resumable, errors as rows."""

from __future__ import annotations

import threading
from math import nan
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from processes import until
from pydantic import BaseModel

from rag_eval_integrations import Evaluations, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import aevaluate_query_engine, evaluate_query_engine
from rag_eval_integrations.records import Evaluation, RagCall, from_line
from rag_eval_integrations.testing import ScriptedModel, labels_reply

from .apps import Slow
from .conftest import ANSWER, QUESTION, Model, Sections, engine


def evaluator() -> RagEvaluator:
    return RagEvaluator(ScriptedModel(lambda request: labels_reply(["0a"], ["a"])))


class Picky(Sections):
    """Fails for a question that is in `refused`; keeps what it is asked."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        if query_bundle.query_str in self.refused:
            raise RuntimeError("index offline")
        return super()._retrieve(query_bundle)


async def run(asynchronously: bool, *args: Any, **options: Any) -> Evaluations:
    if asynchronously:
        return await aevaluate_query_engine(*args, **options)
    return evaluate_query_engine(*args, **options)


both = pytest.mark.parametrize("asynchronously", [False, True])


@both
@pytest.mark.parametrize("streaming", [False, True])
async def test_gives_rows_in_order(asynchronously: bool, streaming: bool) -> None:
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
async def test_an_engine_error_is_a_row(asynchronously: bool, tmp_path: Path) -> None:
    """The others are evaluated; the failed one says what and where, and half an answer is none.

    A run that is resumed asks for it again.
    """
    working, failing = Picky(), engine(Picky("Second?"))
    judged, out = evaluator(), tmp_path / "evals.jsonl"
    questions = ["First?", "Second?", "Third?"]

    rows = await run(asynchronously, failing, questions, judged, out=out)
    breaking = engine(streaming=True, llm=Model(fail_after=2))
    (broken,) = await run(asynchronously, breaking, [QUESTION], judged)
    again = await run(asynchronously, engine(working), questions, judged, out=out, resume=True)

    assert working.asked == ["Second?"]
    assert [row.error for row in again] == [None] * 3
    assert [from_line(Evaluation, line) for line in out.read_text().splitlines()] == again
    assert broken.error is not None
    assert (broken.error.message, broken.response) == ("connection lost", None)
    second, error = rows[1], rows[1].error
    assert [row.error for row in rows] == [None, error, None]
    assert error is not None
    assert (error.stage, error.type, error.message) == ("app", "RuntimeError", "index offline")
    assert {score.unscored for score in second.scores.values()} == {"empty_response"}
    assert (second.response, second.capture and second.capture.status) == (None, "error")


async def test_questions_come_in_many_forms() -> None:
    """With references, ids and metadata where they have some."""

    class Example(BaseModel):  # as LlamaIndex's LabelledRagDataExample, which 0.14.25 has no more
        query: str
        reference_answer: str

    asked = [
        QUESTION,
        QueryBundle(QUESTION),
        {"question": QUESTION, "reference": "Yes.", "id": 7, "metadata": {"k": 1}},
        {"query": QUESTION, "reference_answer": "Yes."},
        {"user_input": QUESTION, "ground_truth": "Yes."},
        Example(query=QUESTION, reference_answer="Yes."),
        RagCall(QUESTION, ["Old."], "Old.", id="c", reference="Yes."),
        {"question": QUESTION, "id": 8.0, "reference": nan, "relevant_ids": nan},  # of pandas
        {"question": QUESTION, "id": nan},
    ]
    rows = await aevaluate_query_engine(engine(), asked, evaluator())

    assert [row.question for row in rows] == [QUESTION] * 9
    assert [row.reference for row in rows] == [None, None, *["Yes."] * 5, None, None]
    assert (rows[2].id, rows[2].metadata, rows[6].id) == ("7", {"k": 1}, "c")
    assert (rows[7].id, rows[8].id) == ("8", rows[0].id)
    assert rows[6].response == ANSWER
    assert rows[2].row_key != rows[0].row_key


@both
async def test_a_slow_engine_is_a_row(asynchronously: bool) -> None:
    """`timeout` bounds each question."""
    release = threading.Event()

    class Stuck(Slow):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            release.wait(30)
            return []

    before = len(get_dispatcher().span_handlers)
    try:
        (row,) = await run(asynchronously, engine(Stuck()), [QUESTION], evaluator(), timeout=0.05)
    finally:
        release.set()

    assert row.error is not None
    assert (row.error.type, row.error.message) == ("TimeoutError", "no answer within 0.05 s")
    until(lambda: len(get_dispatcher().span_handlers) <= before)  # the thread that goes on


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"engine": Sections()}, "engine"),
        ({"questions": QUESTION}, "questions"),
        ({"questions": [7]}, "questions[0]"),
        ({"questions": [QUESTION, {"question": None}]}, "questions[1]"),
        ({"questions": [{"question": "?", "reference": 7}]}, "questions[0].reference"),
        ({"workers": 2}, "workers"),
        ({"max_concurrency": 0}, "max_concurrency"),
    ],
)
def test_refuses_what_cannot_work(given: dict[str, Any], field: str) -> None:
    """Before the first question is asked."""
    usual: dict[str, Any] = {"engine": engine(), "questions": [], "evaluator": evaluator()}

    with pytest.raises(ConfigurationError) as raised:
        evaluate_query_engine(**{**usual, **given})

    assert raised.value.field == field
