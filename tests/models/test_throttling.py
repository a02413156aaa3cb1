"""ThrottledModel: limits are kept and not undercut, failures end stated, nothing leaks.

Time is the loop's own and jumps from timer to timer: no test waits, none measures.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jumping import JumpingLoop

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeOutputError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    Model,
    WrappedModel,
)
from rag_eval_integrations.models.throttling import LocalPermits, Permits, ThrottledModel, Waiting
from rag_eval_integrations.records import Usage

T = TypeVar("T")

REQUEST = CompletionRequest(messages=(Message(role="user", content="x" * 400),), max_tokens=100)
ANSWER = Completion(
    choices=(Choice(text="yes", finish_reason="stop"),),
    usage=Usage(requests=1, prompt_tokens=100, completion_tokens=10),
)


def run(
    main: Callable[[JumpingLoop], Coroutine[None, None, T]],
    lateness: Callable[[], float] = lambda: 0.0,
) -> T:
    loop = JumpingLoop(lateness)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.close()


class Scripted:
    """Answers by a function of the attempt's number, from 0; records when attempts started."""

    name = "scripted"
    model = "m"
    version = "7"
    base_url = "http://127.0.0.1/v1"

    def __init__(self, loop: JumpingLoop, answer: Callable[[int], Awaitable[Completion]]) -> None:
        self._loop, self._answer = loop, answer
        self.starts: list[float] = []
        self.requests: list[CompletionRequest] = []
        self.running = 0
        self.most = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        self.starts.append(self._loop.time() - 1000.0)
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._answer(len(self.starts) - 1)
        finally:
            self.running -= 1


def after(
    seconds: float, failures: Mapping[int, Exception] | None = None, every: Exception | None = None
) -> Callable[[int], Awaitable[Completion]]:
    """Answer after some seconds, but fail the attempts named, or every one."""

    async def answer(number: int) -> Completion:
        await asyncio.sleep(seconds)
        if (error := (failures or {}).get(number, every)) is not None:
            raise error
        return ANSWER

    return answer


def unavailable(
    status: int | None = 500, retry_after: float | None = None
) -> JudgeUnavailableError:
    return JudgeUnavailableError(f"replied {status}", status=status, retry_after=retry_after)


def numbered(number: int) -> CompletionRequest:
    return CompletionRequest(messages=(Message(role="user", content=str(number)),), max_tokens=100)


# --- Rates -------------------------------------------------------------------------------------


def most_in_a_minute(starts: list[float]) -> int:
    # Starts are differences of the clock, and rounded: the 1e-9 s are nothing that an endpoint could see.
    return max(sum(s <= other < s + 60 - 1e-9 for other in starts) for s in starts)


def test_fifty_requests_at_thirty_a_minute_take_98_seconds() -> None:
    """Every two seconds one starts, no minute sees more than thirty, and nobody waits longer."""

    async def main(loop: JumpingLoop) -> list[float]:
        model = Scripted(loop, after(0.5))
        throttled = ThrottledModel(model, rpm=30, clock=loop.time)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(50)))
        return model.starts

    starts = run(main)

    assert starts == pytest.approx([2.0 * n for n in range(50)])
    assert most_in_a_minute(starts) == 30


@settings(max_examples=25, deadline=None)
@example(rpm=7, count=130, seed=0, lateness=0.0)  # 8 by 2e-13 s of rounding
@given(
    rpm=st.sampled_from([1, 7, 30, 59.5, 600, 6000]),
    count=st.integers(1, 130),
    seed=st.integers(0, 10**6),
    lateness=st.sampled_from([0.0, 0.002, 0.5]),
)
def test_no_minute_sees_more_than_the_limit_and_no_time_is_lost(
    rpm: float, count: int, seed: int, lateness: float
) -> None:
    """Also when the loop wakes late: lateness does not add up, and no window is overrun."""
    chance = random.Random(seed)

    async def main(loop: JumpingLoop) -> list[float]:
        model = Scripted(loop, after(0.01))
        throttled = ThrottledModel(model, rpm=rpm, clock=loop.time, max_concurrency=64)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(count)))
        return model.starts

    starts = run(main, lambda: chance.uniform(0, lateness))

    assert most_in_a_minute(starts) <= -(-rpm // 1)
    # Only the start a minute earlier holds one back, so one lateness is lost per minute.
    minutes = 1 + starts[-1] // 60
    assert starts[-1] <= (count - 1) * 60 / rpm + (1 + 2 * minutes) * lateness + 1e-3


def test_tokens_are_corrected_by_the_usage_that_comes_back() -> None:
    """Estimated 201 tokens (400 characters, cap 100), used 110: the pace follows what was used.

    Only the newest request stands in the window with its estimate, as endpoints count it.
    """

    async def main(loop: JumpingLoop) -> tuple[float, int]:
        model = Scripted(loop, after(0.5))
        throttled = ThrottledModel(model, tpm=1100, clock=loop.time)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(41)))
        return model.starts[-1], most_in_a_minute(model.starts)

    last, most = run(main)

    assert 40 * 6.0 <= last < 1.15 * 40 * 6.0  # 110 tokens of 1,100 per minute: 6 s each; not 11 s
    assert most <= 10


def test_an_answer_that_took_a_minute_corrects_nothing() -> None:
    """Its estimate no longer counts when a usage of ten thousand tokens comes back."""

    async def main(loop: JumpingLoop) -> list[float]:
        async def answer(number: int) -> Completion:
            await asyncio.sleep(61)
            return ANSWER.model_copy(update={"usage": Usage(prompt_tokens=10_000)})

        model = Scripted(loop, answer)
        throttled = ThrottledModel(model, tpm=402, clock=loop.time)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(6)))
        return model.starts

    assert run(main) == pytest.approx([30.0 * n for n in range(6)])


def test_a_request_above_the_whole_token_limit_goes_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It waits for an empty minute instead of for ever, is warned about, and is paid for after."""

    async def main(loop: JumpingLoop) -> list[float]:
        model = Scripted(loop, after(0.5, every=None))
        throttled = ThrottledModel(model, tpm=150, clock=loop.time)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(3)))
        return model.starts

    starts = run(main)

    assert starts[0] == 0
    assert starts[1] >= 60
    assert starts[2] - starts[1] >= 60
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "above the limit of 150 tokens per minute" in caplog.text


# --- Retries -----------------------------------------------------------------------------------


def test_what_may_succeed_is_tried_again() -> None:
    """429, 5xx, timeouts and lost connections are retried until an answer comes, and are counted."""

    async def main(loop: JumpingLoop) -> tuple[Completion, int]:
        failing = {n: unavailable(status) for n, status in enumerate((429, 503, 500, None))}
        model = Scripted(loop, after(0.1, failing))
        throttled = ThrottledModel(model, clock=loop.time)
        return await throttled.complete(REQUEST), len(model.starts)

    completion, asked = run(main)
    assert (completion.choices, asked) == (ANSWER.choices, 5)
    assert completion.usage == ANSWER.usage + Usage(requests=4, failed=4)


@pytest.mark.parametrize(
    "error", [JudgeRejectedError("401", status=401), JudgeOutputError("no", ""), TimeoutError("x")]
)
def test_all_else_is_final(error: Exception) -> None:
    """A rejection, nonsense or a bug is raised as it is, after one attempt, and leaves no place taken."""

    async def main(loop: JumpingLoop) -> int:
        model = Scripted(loop, after(0.1, {0: error}))
        throttled = ThrottledModel(model, max_concurrency=1, clock=loop.time)
        with pytest.raises(type(error)) as raised:
            await throttled.complete(REQUEST)
        assert raised.value is error
        await throttled.complete(REQUEST)
        return len(model.starts)

    assert run(main) == 2


def test_the_last_error_says_attempts_seconds_and_cause() -> None:
    """After the last attempt the error is of the same kind, with status and cause."""

    async def main(loop: JumpingLoop) -> JudgeUnavailableError:
        model = Scripted(loop, after(1.0, every=unavailable(502, retry_after=2.0)))
        throttled = ThrottledModel(model, max_attempts=3, clock=loop.time)
        with pytest.raises(JudgeUnavailableError) as raised:
            await throttled.complete(REQUEST)
        assert len(model.starts) == 3
        return raised.value

    error = run(main)

    assert str(error) == (
        "scripted did not answer: 3 attempts in 7.0 s, the maximum (`max_attempts`); the last failure: "
        "replied 502"
    )
    assert error.status == 502
    assert isinstance(error.__cause__, JudgeUnavailableError)


def test_retry_after_beyond_the_deadline_fails_at_once() -> None:
    """Nobody sleeps only to fail then."""

    async def main(loop: JumpingLoop) -> tuple[str, float]:
        model = Scripted(loop, after(0.0, every=unavailable(429, retry_after=600.0)))
        with pytest.raises(JudgeUnavailableError) as raised:
            await ThrottledModel(model, clock=loop.time).complete(REQUEST)
        assert raised.value.retry_after == 600.0
        return str(raised.value), loop.time() - 1000.0

    message, seconds = run(main)

    assert "asks to wait 600 s, beyond the deadline of 300 s" in message
    assert seconds < 1


def test_a_model_that_hangs_is_cut_off_at_the_deadline() -> None:
    """The deadline counts from the first attempt's start, whatever the attempt does."""

    async def main(loop: JumpingLoop) -> tuple[str, float]:
        model = Scripted(loop, after(10_000.0))
        with pytest.raises(JudgeUnavailableError) as raised:
            await ThrottledModel(model, deadline=20, clock=loop.time).complete(REQUEST)
        return str(raised.value), loop.time() - 1000.0

    message, seconds = run(main)

    assert message == (
        "scripted did not answer: 1 attempt in 20.0 s, the deadline of 20 s passed without an answer"
    )
    assert seconds == pytest.approx(20.0)


def test_a_retry_that_finds_no_place_ends_at_the_deadline() -> None:
    """The error names the reason: all slots are taken by requests that hang."""

    async def main(loop: JumpingLoop) -> str:
        async def answer(number: int) -> Completion:
            if number == 0:
                raise unavailable(500, retry_after=1.0)
            await asyncio.sleep(50)
            return ANSWER

        throttled = ThrottledModel(
            Scripted(loop, answer), deadline=20, max_concurrency=1, clock=loop.time
        )
        first = asyncio.ensure_future(throttled.complete(REQUEST))
        second = asyncio.ensure_future(throttled.complete(REQUEST))
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert all(isinstance(result, JudgeUnavailableError) for result in results)
        return str(results[0])

    assert "waiting (concurrency); the last failure: replied 500" in run(main)


class Highest(random.Random):
    """Always the longest pause."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_pauses_double_up_to_thirty_seconds() -> None:
    """And attempts go on until one is answered."""

    async def main(loop: JumpingLoop) -> list[float]:
        failing = dict.fromkeys(range(7), unavailable(500))
        model = Scripted(loop, after(0.0, failing))
        throttled = ThrottledModel(model, max_attempts=8, clock=loop.time)
        throttled._random = Highest()
        await throttled.complete(REQUEST)
        return model.starts

    starts = run(main)

    assert [b - a for a, b in pairwise(starts)] == pytest.approx([1, 2, 4, 8, 16, 30, 30])


# --- Concurrency -------------------------------------------------------------------------------


def test_older_requests_go_first() -> None:
    """In the order of asking, and one that is tried again before all that came after it."""

    async def main(loop: JumpingLoop) -> list[str]:
        model = Scripted(loop, after(1.0, {0: unavailable(500)}))
        throttled = ThrottledModel(model, max_concurrency=1, clock=loop.time)
        throttled._random = random.Random(1)  # waits 0.13 s, within the second's attempt
        await asyncio.gather(*(throttled.complete(numbered(n)) for n in range(6)))
        return [request.messages[0].content for request in model.requests]

    assert run(main) == ["0", "1", "0", "2", "3", "4", "5"]


def test_concurrency_is_bounded_and_full() -> None:
    """Never more than `max_concurrency`, and no place is idle while anyone waits."""

    async def main(loop: JumpingLoop) -> tuple[int, float]:
        model = Scripted(loop, after(0.5))
        throttled = ThrottledModel(model, clock=loop.time)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(320)))
        return model.most, loop.time() - 1000.0

    assert run(main) == (32, pytest.approx(5.0))


def test_the_capacity_of_an_endpoint_is_measured() -> None:
    """64 at once against 10 places: all are answered, refusals stay few, the places well used."""

    async def main(loop: JumpingLoop) -> tuple[int, float]:
        refused = 0

        async def answer(number: int) -> Completion:
            nonlocal refused
            await asyncio.sleep(0.005)
            if model.running > 10:
                refused += 1
                raise unavailable(429)
            await asyncio.sleep(0.2)
            return ANSWER

        model = Scripted(loop, answer)
        throttled = ThrottledModel(model, max_concurrency=64, clock=loop.time)
        throttled._random = random.Random(2)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(2000)))
        return refused, loop.time() - 1000.0

    refused, seconds = run(main)

    assert refused < 200
    assert 2000 * 0.205 / 10 / seconds > 0.65


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_refusals_at_random_do_not_starve_the_run(share: float) -> None:
    """A constant share of 429s that has nothing to do with load costs its attempts, little more."""

    async def main(loop: JumpingLoop) -> float:
        chance = random.Random(1)

        async def answer(number: int) -> Completion:
            refused = chance.random() < share
            await asyncio.sleep(0.01 if refused else 0.5)
            if refused:
                raise unavailable(429, retry_after=1.0)
            return ANSWER

        throttled = ThrottledModel(Scripted(loop, answer), clock=loop.time)
        throttled._random = random.Random(1)
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(2000)))
        return loop.time() - 1000.0

    assert run(main) < 2.0 * 2000 * 0.5 / 32


# --- Circuit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "requests"), [(None, 2_000), (503, 2_000)])
def test_an_endpoint_that_is_down_becomes_quick_stated_errors(
    status: int | None, requests: int
) -> None:
    """2,000 requests to an endpoint that is not there end in a minute or so, each with its error."""

    async def main(loop: JumpingLoop) -> tuple[list[object], int, float]:
        model = Scripted(loop, after(0.01, every=unavailable(status)))
        throttled = ThrottledModel(model, clock=loop.time)
        throttled._random = random.Random(1)
        results = await asyncio.gather(
            *(throttled.complete(REQUEST) for _ in range(requests)), return_exceptions=True
        )
        return list(results), len(model.starts), loop.time() - 1000.0

    results, attempts, seconds = run(main)

    assert all(isinstance(result, JudgeUnavailableError) for result in results)
    assert re.match(
        r"scripted was not asked: \d requests in a row failed, it is tried again in",
        str(results[-1]),
    )
    assert attempts < 2000
    assert seconds < 90


def test_after_the_cool_down_one_probe_decides() -> None:
    """A single request goes; others fail at once until it is answered, then all go again."""

    async def main(loop: JumpingLoop) -> None:
        model = Scripted(loop, after(1.0, every=unavailable(500)))
        throttled = ThrottledModel(model, max_attempts=1, max_failures=2, clock=loop.time)

        async def fails(why: str) -> None:
            with pytest.raises(JudgeUnavailableError, match=why):
                await throttled.complete(REQUEST)

        await fails("1 attempt")
        await fails("1 attempt")
        await fails("2 requests in a row failed, it is tried again in 30 s; the last: replied 500")
        await asyncio.sleep(30)
        await fails("1 attempt")  # the probe fails: open again
        await fails("was not asked")
        await asyncio.sleep(30)
        cancelled = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(0.5)
        cancelled.cancel()
        model._answer = after(1.0)
        probe = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(0.5)
        await fails("is being tried again now")
        assert await probe == ANSWER
        three = await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(3)))
        assert three == [ANSWER] * 3
        assert len(model.starts) == 8

    run(main)


def test_a_request_between_attempts_learns_at_once_that_the_circuit_opened() -> None:
    """It does not sleep on: the error names its own attempts and why there is none more."""

    async def main(loop: JumpingLoop) -> tuple[str, float]:
        model = Scripted(
            loop, after(0.0, {0: unavailable(503, retry_after=200.0)}, every=unavailable(500))
        )
        throttled = ThrottledModel(model, max_attempts=2, max_failures=1, clock=loop.time)
        resting = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(0.1)
        with pytest.raises(JudgeUnavailableError):
            await throttled.complete(REQUEST)
        with pytest.raises(JudgeUnavailableError) as raised:
            await resting
        return str(raised.value), loop.time() - 1000.0

    message, seconds = run(main)

    assert message.startswith("scripted did not answer: 1 attempt in")
    assert "none is sent for 30 s; the last failure: replied 503" in message
    assert seconds < 10


# --- What is waited for ------------------------------------------------------------------------


def test_waiting_says_what_for() -> None:
    """Each reason with its seconds and how many wait; None when nobody does."""

    async def main(loop: JumpingLoop) -> None:
        waits: list[Waiting] = []
        throttled = ThrottledModel(
            Scripted(loop, after(1.0)), rpm=6, clock=loop.time, on_wait=waits.append
        )
        assert throttled.waiting() is None
        tasks = [asyncio.ensure_future(throttled.complete(REQUEST)) for _ in range(4)]
        await asyncio.sleep(4)
        assert throttled.waiting() == Waiting("rate limit", 6.0, 3)
        assert str(throttled.waiting()) == "3 waiting for 6.0 s: rate limit"
        await asyncio.gather(*tasks)
        assert [waiting.reason for waiting in waits] == ["rate limit"] * 3

        throttled = ThrottledModel(Scripted(loop, after(1.0)), max_concurrency=1, clock=loop.time)
        tasks = [asyncio.ensure_future(throttled.complete(REQUEST)) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert throttled.waiting() == Waiting("concurrency", None, 2)
        await asyncio.gather(*tasks)

        waits.clear()
        failing: dict[int, Exception] = {0: unavailable(429, retry_after=9.0)}
        throttled = ThrottledModel(
            Scripted(loop, after(0.0, failing)), clock=loop.time, on_wait=waits.append
        )
        task = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(1)
        assert throttled.waiting() == Waiting("Retry-After", pytest.approx(8.0), 1)  # type: ignore[arg-type]
        await task
        assert waits == [Waiting("Retry-After", 9.0, 1)]

        throttled = ThrottledModel(
            Scripted(loop, after(0.0, every=unavailable())),
            max_attempts=1, max_failures=1, clock=loop.time,
        )  # fmt: skip
        with pytest.raises(JudgeUnavailableError):
            await throttled.complete(REQUEST)
        assert throttled.waiting() == Waiting("circuit open", 30.0, 0)

    run(main)


def test_a_progress_line_that_fails_does_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once and left alone."""
    calls = 0

    def broken(waiting: Waiting) -> None:
        nonlocal calls
        calls += 1
        raise ValueError("no terminal")

    async def main(loop: JumpingLoop) -> None:
        throttled = ThrottledModel(
            Scripted(loop, after(0.1)), rpm=60, clock=loop.time, on_wait=broken
        )
        await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(5)))

    run(main)

    assert calls == 1
    assert "on_wait failed" in caplog.text


# --- Cancellation, loops, threads --------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_cancellation_leaks_a_place(seed: int) -> None:
    """Cancelled at random moments, among failures: afterwards all places are free.

    Everyone who was not cancelled has an answer or a stated error.
    """
    chance = random.Random(seed)

    async def main(loop: JumpingLoop) -> None:
        async def answer(number: int) -> Completion:
            await asyncio.sleep(chance.choice([0.0, 0.1, 1.0]))
            kind = chance.random()
            if kind < 0.2:
                raise unavailable(chance.choice([429, 500, None]), chance.choice([None, 0.0, 3.0]))
            if kind < 0.25:
                raise JudgeRejectedError("no", status=400)
            return ANSWER

        model = Scripted(loop, answer)
        throttled = ThrottledModel(
            model, rpm=chance.choice([None, 600]), tpm=chance.choice([None, 100_000]),
            max_concurrency=chance.choice([1, 2, 5]), max_failures=3, cool_down=2, clock=loop.time,
        )  # fmt: skip
        throttled._random = chance
        tasks = [asyncio.ensure_future(throttled.complete(REQUEST)) for _ in range(40)]
        for _ in range(25):
            await asyncio.sleep(chance.choice([0.0, 0.0, 0.05, 0.7]))
            chance.choice(tasks).cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)

        kinds = (Completion, JudgeUnavailableError, JudgeRejectedError, asyncio.CancelledError)
        assert all(isinstance(result, kinds) for result in results)
        queue = throttled._queue
        assert model.running == 0
        assert model.most <= throttled.max_concurrency
        assert (queue._concurrency.in_flight, queue._queued, queue._backing_off) == (0, 0, set())
        assert queue._head() is None

    run(main)


def test_a_throttled_model_outlives_its_loops() -> None:
    """One loop after another, the first abandoned with requests in the air and in the line."""
    # Shares the clock of real loops, as it does in use.
    alive = True

    class Hanging:
        name = "hanging"

        async def complete(self, request: CompletionRequest) -> Completion:
            if not alive:
                await asyncio.Event().wait()
            return ANSWER

    throttled = ThrottledModel(Hanging(), max_concurrency=2)
    assert asyncio.run(throttled.complete(REQUEST)) == ANSWER

    async def abandon() -> None:
        tasks = [asyncio.ensure_future(throttled.complete(REQUEST)) for _ in range(5)]
        await asyncio.sleep(0)
        assert throttled.waiting() == Waiting("concurrency", None, 3)
        del tasks

    alive = False
    asyncio.run(abandon())
    alive = True

    assert asyncio.run(throttled.complete(REQUEST)) == ANSWER
    assert throttled.waiting() is None


def test_a_loop_that_was_closed_under_its_requests_holds_nobody_up() -> None:
    """Closed without cancelling, its tasks still referred to: others pass those in the line."""

    async def main(loop: JumpingLoop) -> None:
        throttled = ThrottledModel(Scripted(loop, after(1.0)), max_concurrency=1, clock=loop.time)
        running = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(0)
        abandoned = asyncio.new_event_loop()
        stuck = throttled.complete(REQUEST)
        stuck_task = asyncio.Task(stuck, loop=abandoned)
        thread = threading.Thread(target=abandoned.run_until_complete, args=[asyncio.sleep(0)])
        thread.start()
        thread.join()
        abandoned.close()

        late = asyncio.ensure_future(throttled.complete(REQUEST))

        assert await asyncio.gather(running, late) == [ANSWER, ANSWER]
        assert throttled.waiting() is None
        stuck_task._log_destroy_pending = False  # type: ignore[attr-defined]
        stuck.close()

    run(main)


def test_after_a_fork_nobody_waits_for_the_parents_requests() -> None:
    """The child begins with all places free (here it is only told of a fork)."""

    async def main(loop: JumpingLoop) -> None:
        throttled = ThrottledModel(Scripted(loop, after(100.0)), max_concurrency=1, clock=loop.time)
        parents = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(1)
        throttled.after_fork()

        childs = asyncio.ensure_future(throttled.complete(REQUEST))
        await asyncio.sleep(1)

        assert throttled.waiting() is None
        await asyncio.gather(parents, childs)

    run(main)


def test_two_threads_share_the_places() -> None:
    """The app's loop and the library's own: a place freed on one wakes who waits on the other."""
    running: list[int] = []
    most: list[int] = []

    class Counting:
        name = "counting"

        async def complete(self, request: CompletionRequest) -> Completion:
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0.001)
            running.pop()
            return ANSWER

    throttled = ThrottledModel(Counting(), max_concurrency=3)
    answers: list[Completion] = []

    async def ask() -> None:
        answers.extend(await asyncio.gather(*(throttled.complete(REQUEST) for _ in range(50))))

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(answers) == 150
    assert max(most) <= 3


# --- The object --------------------------------------------------------------------------------


def test_it_is_a_model_with_the_same_identity() -> None:
    """Throttling changes nothing that a score or a cache key is made of."""

    async def main(loop: JumpingLoop) -> None:
        throttled = ThrottledModel(Scripted(loop, after(0)))
        assert isinstance(throttled, Model)
        assert (throttled.name, throttled.model, throttled.version) == ("scripted", "m", "7")
        assert throttled.base_url == "http://127.0.0.1/v1"
        assert await WrappedModel(Scripted(loop, after(0))).complete(REQUEST) == ANSWER

    run(main)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rpm", 0), ("rpm", float("nan")), ("tpm", -1), ("deadline", float("inf")), ("rpm", "60"),
     ("max_concurrency", 2.5), ("max_attempts", True), ("max_failures", 0), ("cool_down", -1),
     ("permits", 30)],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(field: str, value: object) -> None:
    """At construction, with the field's name."""

    async def main(loop: JumpingLoop) -> None:
        with pytest.raises(ConfigurationError, match=f"`{field}`"):
            ThrottledModel(Scripted(loop, after(0)), **{field: value})  # type: ignore[arg-type]
        if field in ("rpm", "tpm"):
            with pytest.raises(ConfigurationError, match=f"`{field}`"):
                LocalPermits(**{field: value})  # type: ignore[arg-type]

    run(main)


# --- Permits that models share ------------------------------------------------------------------


class Shared:
    """Permits from elsewhere: each is given after some seconds, in the order of asking."""

    def __init__(self, seconds: float = 0.0, failure: Exception | None = None) -> None:
        self.seconds, self.failure = seconds, failure
        self.asked: list[tuple[int, int]] = []
        self._one_at_a_time = asyncio.Lock()

    async def take(self, requests: int, tokens: int) -> None:
        self.asked.append((requests, tokens))
        async with self._one_at_a_time:
            await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure


def test_every_attempt_takes_a_shared_permit() -> None:
    """One request and its estimated tokens, retries included, in the order of the requests."""

    async def main(loop: JumpingLoop) -> None:
        shared = Shared(10.0)
        model = Scripted(loop, after(0.0, {0: unavailable(429, retry_after=1.0)}))
        throttled = ThrottledModel(model, permits=shared, clock=loop.time)

        await asyncio.gather(*(throttled.complete(numbered(number)) for number in range(3)))

        sent = [request.messages[0].content for request in model.requests]
        assert sent == ["0", "1", "2", "0"]
        assert shared.asked == [(1, 101)] * 4
        assert model.starts == [10.0, 20.0, 30.0, 40.0]

    run(main)


def test_two_models_share_one_quota() -> None:
    """What both start in any minute is within the limits, on requests and on tokens."""

    async def main(loop: JumpingLoop, **limits: float) -> list[float]:
        quota = LocalPermits(**limits, clock=loop.time)
        assert isinstance(quota, Permits)
        models = [Scripted(loop, after(1.0)) for _ in range(2)]
        throttled = [ThrottledModel(m, permits=quota, clock=loop.time) for m in models]
        await asyncio.gather(*(model.complete(REQUEST) for model in throttled for _ in range(5)))
        return sorted(start for model in models for start in model.starts)

    assert run(lambda loop: main(loop, rpm=6)) == pytest.approx([10.0 * n for n in range(10)])
    starts = run(lambda loop: main(loop, rpm=600, tpm=402))  # two of 201 per minute
    assert starts == pytest.approx([30.0 * n for n in range(10)])


def test_a_retry_waits_for_shared_permits_until_the_deadline() -> None:
    """The time before the first attempt does not count, as in the queue."""

    async def main(loop: JumpingLoop) -> None:
        shared = Shared(50.0)
        model = Scripted(loop, after(0.0, every=unavailable(429, retry_after=1.0)))
        throttled = ThrottledModel(model, permits=shared, deadline=20.0, clock=loop.time)

        with pytest.raises(JudgeUnavailableError, match=r"1 attempt in 20.0 s.*\(rate limit\)"):
            await throttled.complete(REQUEST)

        assert model.starts == [50.0]
        assert throttled.waiting() is None

    run(main)


@pytest.mark.parametrize("failure", [ConnectionError("store is down"), TimeoutError("slow")])
def test_permits_that_fail_end_the_request(failure: Exception) -> None:
    """It is not sent, and its place is free again."""

    async def main(loop: JumpingLoop) -> None:
        shared = Shared(failure=failure)
        model = Scripted(loop, after(0.0))
        throttled = ThrottledModel(model, permits=shared, max_concurrency=1, clock=loop.time)

        for _ in range(2):
            with pytest.raises(
                (ConnectionError, RuntimeError), match=r"store is down|shared permits"
            ):
                await throttled.complete(REQUEST)
        assert model.starts == []
        shared.failure = None
        assert (await throttled.complete(REQUEST)).text == "yes"

    run(main)


def test_waiting_tells_of_shared_permits_and_nothing_leaks() -> None:
    """Their end is unknown; a cancelled request gives its place back and is not sent."""

    async def main(loop: JumpingLoop) -> None:
        model = Scripted(loop, after(0.0))
        throttled = ThrottledModel(model, permits=Shared(5.0), max_concurrency=1, clock=loop.time)
        first, second = (asyncio.ensure_future(throttled.complete(REQUEST)) for _ in range(2))
        await asyncio.sleep(1.0)
        assert throttled.waiting() == Waiting("rate limit", None, 2)

        first.cancel()
        assert (await second).text == "yes"

        assert throttled.waiting() is None
        assert model.starts == [6.0]

    run(main)


# --- Nobody there ------------------------------------------------------------------------------


def refused() -> JudgeUnavailableError:
    return JudgeUnavailableError("m at host cannot be reached: refused", connected=False)


def test_an_endpoint_that_is_not_there_is_reported_at_once() -> None:
    """1,000 requests end within a second, after two attempts each of those under way."""

    async def main(loop: JumpingLoop) -> None:
        waits: list[Waiting] = []
        model = Scripted(loop, after(0.01, every=refused()))
        throttled = ThrottledModel(model, clock=loop.time, on_wait=waits.append)
        results = await asyncio.gather(
            *(throttled.complete(REQUEST) for _ in range(1_000)), return_exceptions=True
        )

        assert loop.time() - 1000.0 < 1.0
        assert len(model.starts) <= 2 * 32
        assert all(
            isinstance(error, JudgeUnavailableError) and not error.connected for error in results
        )
        assert all(
            str(error).startswith("m at host cannot be reached: refused") for error in results
        )
        assert str(results[0]) == "m at host cannot be reached: refused (2 attempts in 0.3 s)"
        assert str(results[-1]).endswith("refused; it is tried again in 30 s")
        (opened,) = [waiting for waiting in waits if waiting.reason == "circuit open"]
        assert opened.why == "m at host cannot be reached: refused"

        model._answer = after(0.01)
        await asyncio.sleep(30)
        assert await throttled.complete(REQUEST) == ANSWER

    run(main)


@pytest.mark.parametrize(
    "first", [None, JudgeRejectedError("400", status=400), JudgeOutputError("nonsense", "")]
)
def test_an_endpoint_that_was_up_is_tried_again(first: Exception | None) -> None:
    """It may be restarting: refused connections are then as temporary as a 503."""

    async def main(loop: JumpingLoop) -> None:
        failing = {} if first is None else {0: first}
        model = Scripted(loop, after(0.1, failing | {n: refused() for n in range(1, 6)}))
        throttled = ThrottledModel(model, clock=loop.time)
        await asyncio.gather(throttled.complete(REQUEST), return_exceptions=True)
        assert await throttled.complete(REQUEST) == ANSWER
        assert len(model.starts) == 7

    run(main)


@pytest.mark.parametrize("retry_after", [None, 20.0])
def test_a_single_request_that_keeps_failing_is_seen_within_5_seconds(
    caplog: pytest.LogCaptureFixture, retry_after: float | None
) -> None:
    """Its pauses grow, so that a fifth failure may take a minute; a retry or two tell nobody."""

    async def main(loop: JumpingLoop) -> None:
        model = Scripted(loop, after(0.0, every=unavailable(500, retry_after)))
        task = asyncio.ensure_future(ThrottledModel(model, clock=loop.time).complete(REQUEST))
        await asyncio.sleep(5)  # after the first failure
        assert len(caplog.records) == 1
        with pytest.raises(JudgeUnavailableError):
            await task
        assert len(caplog.records) == 1

    run(main)
