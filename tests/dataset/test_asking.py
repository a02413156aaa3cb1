"""Asking an app, without a host: what an answer, a failure, a time limit and a cancellation are."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.dataset._asking import (
    Answered,
    AskingOptions,
    Question,
    attempted,
    check_options,
    evaluate_asked,
    threads_for,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall, from_line, to_line


async def _answers() -> str:
    await asyncio.sleep(0)
    return "yes"


async def _raises(error: BaseException) -> str:
    raise error


async def test_an_answer_is_given_back() -> None:
    """With and without a limit."""
    assert await attempted(_answers(), None) == ("yes", None)
    assert await attempted(_answers(), 60) == ("yes", None)


@pytest.mark.parametrize("error", [
    KeyError("x"), TimeoutError("the app's own"), asyncio.CancelledError("its own affair"),
])  # fmt: skip
async def test_what_an_app_raises_is_a_result(error: BaseException) -> None:
    """The very exception; the app's own `TimeoutError` and cancellation are not taken for ours."""
    assert await attempted(_raises(error), 60) == (None, error)


async def test_a_limit_that_passes_says_how_long_it_was() -> None:
    """Whole seconds or parts of one, as they were given."""
    answer, failure = await attempted(asyncio.sleep(60), 0.01)

    assert answer is None
    assert isinstance(failure, TimeoutError)
    assert str(failure) == "no answer within 0.01 s"


@pytest.mark.parametrize("seconds", [None, 60])
async def test_a_cancelled_caller_is_cancelled(seconds: float | None) -> None:
    """Ctrl-C ends a run; it is not a row."""
    begun = asyncio.Event()

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(attempted(never(), seconds))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_question_without_a_label_is_named_by_its_digest() -> None:
    """16 digits of text and reference; a label of the user's own stays."""
    digest = hashlib.sha256(b'["Why?", "so"]').hexdigest()

    assert Question("Why?", "so").label == digest[:16]
    assert Question("Why?").label != Question("Why?", "so").label
    assert Question("Why?", label="7").label == "7"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_concurrency": True}, "max_concurrency"),
        ({"max_concurrency": 2.0}, "max_concurrency"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": "5"}, "timeout"),
        ({"progress": 1}, "progress"),
        ({"out": ""}, "out"),
        ({"out": 3}, "out"),
        ({"resume": True}, "resume"),
        ({"speed": 1}, "speed"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, field: str) -> None:
    """Before a question is asked, by name."""
    with pytest.raises(ConfigurationError) as caught:
        check_options(options)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_concurrency": 1, "timeout": 0.5, "progress": print, "out": "a", "resume": True},
        {"timeout": None, "progress": None, "out": None, "resume": False},
        {"timeout": 1},
    ],
)
def test_options_at_their_limits_are_taken(options: AskingOptions) -> None:
    """None is as good as left out."""
    check_options(options)


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
        call = RagCall(question=question.text, documents=["It is."], response="It is.")
        return Answered(call, LookupError() if question.label == "quick" else None)

    evaluator = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
    questions = [Question("Is it?", label="slow"), Question("Was it?", "It was.", label="quick")]
    asked = evaluate_asked(questions, ask, evaluator, {"progress": progress})
    slow, quick = await asyncio.wait_for(asked, 20)

    assert reported == [(1, 2), (2, 2)]
    assert (slow.id, slow.error) == ("slow", None)
    assert (quick.id, quick.reference) == ("quick", "It was.")
    assert quick.error is not None
    assert (quick.error.type, quick.error.message, quick.error.stage) == (
        "LookupError", "LookupError()", "app",
    )  # fmt: skip


async def test_a_line_that_is_no_row_does_not_hide_the_rows_after_it(tmp_path: Path) -> None:
    """What can be read of an earlier run is taken over, whatever stands before it."""
    asked: list[str] = []

    async def ask(question: Question) -> Answered:
        asked.append(question.label)
        return Answered(RagCall(question=question.text, documents=["It is."], response="It is."))

    evaluator = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
    options: AskingOptions = {"out": tmp_path / "evals.jsonl"}
    first = await evaluate_asked([Question("Is it?", label="1")], ask, evaluator, options)
    file = tmp_path / "evals.jsonl"
    file.write_bytes(b'{"not": "a row"}\n' + file.read_bytes())

    questions = [Question("Is it?", label="1"), Question("Was it?", label="2")]
    rows = await evaluate_asked(questions, ask, evaluator, {**options, "resume": True})

    assert asked == ["1", "2"]
    assert rows[0] == first[0]
    assert [row.id for row in rows] == ["1", "2"]
    assert len(file.read_bytes().splitlines()) == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_only_a_row_that_may_be_taken_over_is_looked_for(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """A failed row does not stand in the way of the right one."""
    labeller = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))
    evaluator = RagEvaluator(labeller)

    async def row(response: str, of: RagEvaluator) -> Evaluation:
        return await of.evaluate(
            RagCall(question="Is it?", documents=["It is."], response=response, id="1")
        )

    failed = EvaluationError(type="TimeoutError", message="late", stage="app")
    rows = [
        (await row("It may be.", evaluator)).model_copy(update={"error": failed}),
        await row("It is.", evaluator),
    ]
    out = tmp_path / "evals.jsonl"
    (tmp_path / "evals.jsonl.partial").write_text(
        "".join(to_line(rows[index]) + "\n" for index in order)
    )

    async def ask(question: Question) -> Answered:
        raise AssertionError(question)

    taken = await evaluate_asked(
        [Question("Is it?", label="1")], ask, evaluator, {"out": out, "resume": True}
    )

    assert taken == rows[1:]
    assert from_line(Evaluation, out.read_bytes()) == rows[1]


async def test_rows_that_would_be_lost_are_not_resumed(tmp_path: Path) -> None:
    """Of other questions, of a changed one, or made by other metrics: refused, and left alone."""
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))
    out = tmp_path / "evals.jsonl"

    async def ask(question: Question) -> Answered:
        return Answered(RagCall(question=question.text, documents=["It is."], response="It is."))

    asked = [Question("Is it?", label="1"), Question("Was it?", label="2")]
    await evaluate_asked(asked, ask, RagEvaluator(judge), {"out": out})
    before = out.read_bytes()

    for questions, metrics, why in [
        (asked[:1], [Trace()], "holds 1 evaluations of other questions"),
        ([asked[0], Question("Will it?", label="2")], [Trace()], "of other questions"),
        (asked, [Trace("ragbench")], "was made by another evaluator"),
    ]:
        with pytest.raises(ConfigurationError, match=why):
            await evaluate_asked(
                questions, ask, RagEvaluator(judge, metrics), {"out": out, "resume": True}
            )

    assert out.read_bytes() == before
    assert os.listdir(tmp_path) == ["evals.jsonl"]


async def test_a_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    """An `out` that exists is refused without `resume` or `overwrite`."""
    out = tmp_path / "evals.jsonl"
    out.write_text("mine\n")

    async def ask(question: Question) -> Answered:
        return Answered(RagCall(question=question.text, documents=["It is."], response="It is."))

    evaluator = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
    questions = [Question("Is it?", label="1")]
    with pytest.raises(ConfigurationError, match="exists; use another name"):
        await evaluate_asked(questions, ask, evaluator, {"out": out})
    assert out.read_text() == "mine\n"

    rows = await evaluate_asked(questions, ask, evaluator, {"out": out, "overwrite": True})

    assert from_line(Evaluation, out.read_bytes()) == rows[0]
    assert os.listdir(tmp_path) == ["evals.jsonl"]


ESCAPES = (
    SystemExit(1),
    asyncio.CancelledError(),
    StopIteration(),
)


@pytest.mark.parametrize("error", ESCAPES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("sync", [True, False], ids=["in a thread", "on the loop"])
async def test_an_app_that_exits_is_one_row(error: BaseException, sync: bool) -> None:
    """Also out of a thread, where `StopIteration` would never come back."""
    evaluator = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))

    def app(text: str) -> str:
        if text == "1":
            raise error
        return "An answer."

    async def coroutine(text: str) -> str:
        if isinstance(error, StopIteration) and text == "1":
            raise SystemExit  # a coroutine cannot raise StopIteration
        return app(text)

    with threads_for({}) as in_thread:

        async def ask(question: Question) -> Answered:
            asking = in_thread(app, question.text) if sync else coroutine(question.text)
            answer, failure = await attempted(asking, 60)
            response = str(answer) if failure is None else None
            return Answered(RagCall(question.text, ["A document."], response), failure)

        questions = [Question(str(number)) for number in range(3)]
        rows = await evaluate_asked(questions, ask, evaluator, {})

    assert [row.error is None for row in rows] == [True, False, True]
    assert rows[1].error is not None
    assert rows[1].error.stage == "app"


async def test_a_question_with_unusable_fields_is_one_row() -> None:
    """Metadata that is not JSON, and a framework whose own code fails."""
    evaluator = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))

    async def ask(question: Question) -> Answered:
        if question.text == "2":
            raise SystemExit
        return Answered(RagCall(question.text, ["A document."], "An answer."))

    questions = [Question("0", metadata={"n": float("nan")}), Question("1"), Question("2")]
    rows = await evaluate_asked(questions, ask, evaluator, {})

    assert [row.question for row in rows] == ["0", "1", "2"]
    assert [row.error and row.error.stage for row in rows] == ["app", None, "app"]
    assert rows[0].error is not None
    assert "metadata.n is nan" in rows[0].error.message
