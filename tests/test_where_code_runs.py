"""Where users' code runs: on the loop that awaits, in threads if it blocks, never captured."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from by_hand import ScriptedJudge
from forked import forked
from loopback import Behaviour, LoopbackServer
from processes import until

from rag_eval_integrations import _suppress
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.models import CallableModel, OpenAIModel
from rag_eval_integrations.records import Evaluation, Labels, RagCall, SentencizedCall
from rag_eval_integrations.sinks import CallbackSink
from rag_eval_integrations.testing import labels_reply, small_call

REPLY = labels_reply(["0a", "0b", "1a"], ["a", "b"])
MESSAGES = list[dict[str, str]]


def numbered(number: int) -> RagCall:
    return small_call().call.model_copy(update={"question": f"question {number}"})


async def test_a_coroutine_may_use_sessions_of_the_apps_loop() -> None:
    """Under `await` it runs there, twenty at once.

    The sync form works there, too, as in a notebook: on the library's loop, since the app's is
    blocked.
    """
    seen: list[asyncio.AbstractEventLoop] = []

    async def ask(messages: MESSAGES) -> str:
        seen.append(asyncio.get_running_loop())
        return REPLY

    evaluator = RagEvaluator(CallableModel(ask))
    await asyncio.gather(*(evaluator.evaluate(numbered(n)) for n in range(20)))

    assert seen == [asyncio.get_running_loop()] * 20
    assert evaluator.evaluate_sync(numbered(20)).error is None
    assert seen[20] is not asyncio.get_running_loop()


def test_the_sync_form_inside_an_evaluation_raises_instead_of_hanging() -> None:
    """A judge that calls `evaluate_sync` on the library's loop gets an error, with the way out."""

    def nested(call: SentencizedCall) -> Labels:
        RagEvaluator().evaluate_sync(call.call)
        raise AssertionError("it should have raised")

    evaluation = RagEvaluator(ScriptedJudge(nested)).evaluate_sync(numbered(0))

    assert (evaluation.error and evaluation.error.type) == "ReentryError"
    assert "await the async form" in str(evaluation.error and evaluation.error.message)


async def test_a_function_that_blocks_holds_up_nobody() -> None:
    """A plain function runs in threads: as many at once as allowed, and the loop goes on."""
    together = threading.Barrier(5, timeout=30)

    def ask(messages: MESSAGES) -> str:
        together.wait()  # each thread needs the four others and the loop
        return REPLY

    evaluator = RagEvaluator(CallableModel(ask))
    asked = [asyncio.create_task(evaluator.evaluate(numbered(n))) for n in range(4)]
    await asyncio.to_thread(together.wait)

    assert [evaluation.error for evaluation in await asyncio.gather(*asked)] == [None] * 4


def test_a_coroutine_that_blocks_stalls_its_own_evaluator_only() -> None:
    """A background evaluator's judge that never returns control does not hold up the others."""
    stuck, leave = threading.Event(), threading.Event()
    delivered: list[Evaluation] = []

    async def block(messages: MESSAGES) -> str:
        stuck.set()
        leave.wait(30)
        return REPLY

    blocked = BackgroundEvaluator(RagEvaluator(CallableModel(block)))
    free = BackgroundEvaluator(RagEvaluator(), [CallbackSink(delivered.append)])
    try:
        blocked.submit(numbered(0))
        assert stuck.wait(10)
        free.submit(numbered(1))

        assert free.flush(10)
        assert RagEvaluator().evaluate_sync(numbered(2)).error is None
    finally:
        leave.set()
        assert blocked.close(10)
        assert free.close(10)

    assert [evaluation.error for evaluation in delivered] == [None]
    assert blocked.counters.scored == 1


@pytest.mark.parametrize("blocking", [False, True], ids=["coroutine", "plain function"])
@pytest.mark.parametrize("form", ["await", "sync", "background"])
def test_nothing_is_captured_inside_an_evaluation(form: str, blocking: bool) -> None:
    """The mark reaches the judge's function in every form of call, and does not stay behind."""
    seen: list[bool] = []

    def ask(messages: MESSAGES) -> str:
        seen.append(_suppress.suppressed())
        return REPLY

    async def ask_async(messages: MESSAGES) -> str:
        return ask(messages)

    evaluator = RagEvaluator(CallableModel(ask if blocking else ask_async))
    if form == "await":
        asyncio.run(evaluator.evaluate(numbered(0)))
    elif form == "sync":
        evaluator.evaluate_sync(numbered(0))
    else:
        with BackgroundEvaluator(evaluator) as background:
            background.submit(numbered(0))

    assert seen == [True]
    assert not _suppress.suppressed()


async def test_a_cancelled_evaluation_cancels_its_request() -> None:
    """On the app's loop, before the answer; the next evaluation asks anew."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def ask(messages: MESSAGES) -> str:
        if not begun.is_set():
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise
        return REPLY

    evaluator = RagEvaluator(CallableModel(ask))
    evaluation = asyncio.create_task(evaluator.evaluate(numbered(0)))
    await begun.wait()
    evaluation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluation

    assert cancelled.is_set()
    assert (await evaluator.evaluate(numbered(0))).error is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
def test_a_forked_child_evaluates_and_so_does_the_parent() -> None:
    """With an evaluation in flight at the fork, on every kind of judge that was in use before it."""
    with LoopbackServer(Behaviour(content=REPLY, latency=0.3)) as server:
        over_http = RagEvaluator(OpenAIModel("m", base_url=server.base_url))
        in_threads = RagEvaluator(CallableModel(lambda messages: REPLY))
        for evaluator in (over_http, in_threads):
            assert evaluator.evaluate_sync(numbered(0)).error is None
        later: list[Evaluation] = []
        thread = threading.Thread(target=lambda: later.append(over_http.evaluate_sync(numbered(1))))
        thread.start()
        until(lambda: len(server.requests) == 2)
        printed = forked(
            lambda: [e.evaluate_sync(numbered(1)).error for e in (over_http, in_threads)]
        ).printed()
        thread.join(10)
        after = over_http.evaluate_sync(numbered(2))

    assert printed == "[None, None]"
    assert [evaluation.error for evaluation in [*later, after]] == [None, None]
