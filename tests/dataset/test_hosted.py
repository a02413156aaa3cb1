"""Asking a host's app: which captured call is the answer's, and threads that end with the asking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from rag_eval_integrations.dataset._asking import Answered, Question, captured, threads_for
from rag_eval_integrations.records import Capture, CaptureStatus, RagCall


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

    return await captured(
        Question("asked"), ask, seconds=None, framework="app", answer_of=lambda output: str(output)
    )


@pytest.mark.parametrize(
    ("statuses", "answer"),
    [
        (["ok"], 0),
        (["ok", "ok"], 1),
        (["error", "ok"], 1),
        (["ok", "error"], 0),
        ([None, "aborted"], 0),
        (["ok", None, "error"], 1),
        (["error", "aborted"], 1),
    ],
)
async def test_the_last_call_that_ended_well_is_the_answers(
    statuses: list[CaptureStatus | None], answer: int
) -> None:
    """Of alternatives the one that answered; of none that did the last; as it was asked."""
    made = [call(str(number), status) for number, status in enumerate(statuses)]

    result = await ask_app(made)

    assert result.call.response == str(answer)
    assert (result.call.question, result.error) == ("asked", None)


async def test_a_failed_app_has_no_response() -> None:
    """Whatever was captured of it before."""
    for calls in ([call("half", "ok")], []):
        result = await ask_app(calls, fail=True)

        assert result.call.response is None
        assert result.error is not None
        assert result.call.question == "asked"


async def test_what_nothing_captured_is_what_the_app_gave() -> None:
    """A call without documents, by the host's name."""
    result = await ask_app([])

    assert (result.call.response, result.call.documents) == ("7", ())
    assert result.call.capture is not None
    assert (result.call.capture.framework, result.call.capture.status) == ("app", "ok")


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
