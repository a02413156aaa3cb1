"""Asking an app, without a host: rows that are taken over, apps that exit, the answer's own call."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Capture, Evaluation, RagCall, RagEvaluator
from rag_eval_integrations.dataset._asking import (
    Answered,
    Question,
    attempted,
    captured,
    check_options,
    evaluate_asked,
    threads_for,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import EvaluationError, from_line, to_line
from rag_eval_integrations.records.call import CaptureStatus

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
QUESTIONS = [Question("Is it?", label="1"), Question("Was it?", label="2")]


async def answer(question: Question) -> Answered:
    """Ask an app that always says the same."""
    return Answered(RagCall(question=question.text, documents=["It is."], response="It is."))


def test_a_question_without_a_label_is_named_by_its_digest() -> None:
    """16 digits of text and reference; a label of the user's own stays."""
    digest = hashlib.sha256(b'["Why?", "so"]').hexdigest()

    assert Question("Why?", "so").label == digest[:16]
    assert Question("Why?", label="7").label == "7"


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_concurrency", True), *(("timeout", wrong) for wrong in (float("nan"), True)),
     ("out", ""), ("overwrite", True)],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(field: str, value: Any) -> None:
    """By name, beside those that the tests of both frameworks pass."""
    options: Any = {field: value}
    with pytest.raises(ConfigurationError) as caught:
        check_options(options)

    assert caught.value.field == field


async def test_a_slow_answer_holds_no_other_back() -> None:
    """A row is done, and said to be, when it comes; the list is in the order of the questions."""
    reported: list[tuple[int, int]] = []
    first_row = asyncio.Event()

    def progress(done: int, of: int) -> None:
        reported.append((done, of))
        first_row.set()

    async def ask(question: Question) -> Answered:
        if question.label == "slow":
            await first_row.wait()
        call = (await answer(question)).call
        return Answered(call, LookupError() if question.label == "quick" else None)

    questions = [Question("Is it?", label="slow"), Question("Was it?", "It was.", label="quick")]
    asked = evaluate_asked(questions, ask, EVALUATOR, {"progress": progress})
    slow, quick = await asyncio.wait_for(asked, 20)

    assert reported == [(1, 2), (2, 2)]
    assert (slow.id, slow.error) == ("slow", None)
    assert (quick.id, quick.reference) == ("quick", "It was.")
    assert quick.error == EvaluationError(type="LookupError", message="LookupError()", stage="app")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_only_a_row_that_may_be_taken_over_is_looked_for(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Neither a failed row nor a line that is none stands in the way of the right one."""
    asked: list[str] = []

    async def ask(question: Question) -> Answered:
        asked.append(question.label)
        return await answer(question)

    out = tmp_path / "evals.jsonl"
    (row,) = await evaluate_asked(QUESTIONS[:1], ask, EVALUATOR, {"out": out})
    late = EvaluationError(type="TimeoutError", message="late", stage="app")
    failed = row.model_copy(update={"error": late})
    lines = ['{"not": "a row"}', *(to_line((failed, row)[index]) for index in order)]
    out.rename(tmp_path / "evals.jsonl.partial").write_text("\n".join(lines) + "\n")

    rows = await evaluate_asked(QUESTIONS, ask, EVALUATOR, {"out": out, "resume": True})

    assert asked == ["1", "2"]
    assert rows[0] == row
    assert [from_line(Evaluation, line) for line in out.read_bytes().splitlines()] == list(rows)


@pytest.mark.parametrize(
    ("error", "sync"),
    [(SystemExit(1), False), (SystemExit(1), True), (StopIteration(), True)],
    ids=["on the loop", "in a thread", "out of a thread"],
)
async def test_an_app_that_exits_is_one_row(error: BaseException, sync: bool) -> None:
    """Also out of a thread, where `StopIteration` would never come back."""

    def app(text: str) -> None:
        if text == "1":
            raise error

    async def coroutine(text: str) -> None:
        await asyncio.sleep(0)
        app(text)

    with threads_for({}) as in_thread:

        async def ask(question: Question) -> Answered:
            asking = in_thread(app, question.text) if sync else coroutine(question.text)
            _, failure = await attempted(asking, 60)
            return Answered((await answer(question)).call, failure)

        questions = [Question(str(number)) for number in range(3)]
        rows = await evaluate_asked(questions, ask, EVALUATOR, {})

    assert [row.error and row.error.stage for row in rows] == [None, "app", None]


async def test_a_question_with_unusable_fields_is_one_row() -> None:
    """Metadata that is not JSON, and a framework whose own code fails."""

    async def ask(question: Question) -> Answered:
        if question.text == "2":
            raise SystemExit
        return await answer(question)

    questions = [Question("0", metadata={"n": float("nan")}), Question("1"), Question("2")]
    rows = await evaluate_asked(questions, ask, EVALUATOR, {})

    assert [row.question for row in rows] == ["0", "1", "2"]
    assert [row.error and row.error.stage for row in rows] == ["app", None, "app"]
    assert "metadata.n is nan" in repr(rows[0].error)


# --- Which captured call is the answer's, and threads that end with the asking


def call(response: str, status: CaptureStatus | None) -> RagCall:
    capture = None if status is None else Capture(framework="app", status=status)
    return RagCall(question="seen", documents=["A."], response=response, capture=capture)


async def ask_app(calls: list[RagCall], *, fail: bool = False) -> Answered:
    """Ask an app that captures these calls, and answers or fails."""

    async def ask(capture: Callable[[RagCall], object]) -> object:
        for made in calls:
            capture(made)
        if fail:
            raise ZeroDivisionError("app")
        return 7

    return await captured(Question("asked"), ask, seconds=None, framework="app", answer_of=str)


@pytest.mark.parametrize(
    ("statuses", "answer"),
    [
        (["ok"], 0), (["ok", "ok"], 1), (["error", "ok"], 1), (["ok", "error"], 0),
        ([None, "aborted"], 0), (["ok", None, "error"], 1), (["error", "aborted"], 1),
    ],
)  # fmt: skip
async def test_the_last_call_that_ended_well_is_the_answers(
    statuses: list[CaptureStatus | None], answer: int
) -> None:
    """Of alternatives the one that answered; of none that did the last; as it was asked."""
    made = [call(str(number), status) for number, status in enumerate(statuses)]

    result = await ask_app(made)

    assert result.call.response == str(answer)
    assert (result.call.question, result.error) == ("asked", None)


async def test_what_nothing_captured_is_what_the_app_gave() -> None:
    """A call without documents, by the host's name; a failed app has no response."""
    for calls in ([call("half", "ok")], []):
        failed = await ask_app(calls, fail=True)
        assert (failed.call.response, failed.call.question) == (None, "asked")
        assert isinstance(failed.error, ZeroDivisionError)
    result = await ask_app([])

    assert (result.call.response, result.call.documents) == ("7", ())
    assert result.call.capture == Capture(framework="app", status="ok")


async def test_what_has_not_begun_is_given_up_at_the_end() -> None:
    """And what is running is not waited for."""
    started, go = threading.Event(), threading.Event()
    ran: list[int] = []

    def block() -> int:
        started.set()
        go.wait(5)
        return 1

    with threads_for({"max_concurrency": 1}) as in_thread:
        first = asyncio.ensure_future(in_thread(block))
        second = asyncio.ensure_future(in_thread(ran.append, 2))
        assert await asyncio.to_thread(started.wait, 5)
    go.set()

    assert await first == 1
    with pytest.raises(asyncio.CancelledError):
        await second
    assert ran == []
