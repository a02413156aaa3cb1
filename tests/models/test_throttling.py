"""ThrottledModel: limits are kept and not undercut, failures end stated, nothing leaks.

Time is the loop's own and jumps from timer to timer: no test waits, none measures.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

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
from rag_eval_integrations.models import Choice, Completion, CompletionRequest, Message, Model
from rag_eval_integrations.models.completion import WrappedModel
from rag_eval_integrations.models.throttling import LocalPermits, Permits, ThrottledModel, Waiting
from rag_eval_integrations.records import Usage

REQUEST = CompletionRequest(messages=(Message(role="user", content="x" * 400),), max_tokens=100)
USED = Usage(requests=1, prompt_tokens=100, completion_tokens=10)
ANSWER = Completion(choices=(Choice(text="yes", finish_reason="stop"),), usage=USED)
Answers = Callable[[int], Awaitable[Completion]]


def on_its_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run a test on a loop of its own."""

    @functools.wraps(test)
    def run(**given: object) -> None:
        with contextlib.closing(JumpingLoop()) as loop:
            loop.run_until_complete(test(**given))

    return run


def clock() -> float:
    return asyncio.get_running_loop().time()


def now() -> float:
    """Seconds since the loop of a test began."""
    return clock() - 1000.0


class Scripted:
    """Answers by a function of the attempt's number, from 0; records when attempts started."""

    name = "scripted"
    model = "m"
    version = "7"
    base_url = "http://127.0.0.1/v1"

    def __init__(self, answer: Answers) -> None:
        self._answer = answer
        self.starts: list[float] = []
        self.requests: list[CompletionRequest] = []
        self.running = 0
        self.most = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        self.starts.append(now())
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._answer(len(self.starts) - 1)
        finally:
            self.running -= 1


def after(
    seconds: float, failures: Mapping[int, Exception] | None = None, every: Exception | None = None,
    answered: Completion = ANSWER,
) -> Answers:  # fmt: skip
    """Answer after some seconds, but fail the attempts named, or every one."""

    async def answer(number: int) -> Completion:
        await asyncio.sleep(seconds)
        if (error := (failures or {}).get(number, every)) is not None:
            raise error
        return answered

    return answer


class LongestPauses(random.Random):
    """Chance that has every pause as long as it may be."""

    def uniform(self, a: float, b: float) -> float:
        return b


_OWN = {"max_attempts", "max_failures", "cool_down"}


def throttling(
    answer: Answers, chance: random.Random | None = None, **settings: Any
) -> tuple[Scripted, ThrottledModel]:
    """A model that answers so, and the same within limits, with pauses by chance."""
    model = Scripted(answer)
    own = {f"_{name}": settings.pop(name) for name in _OWN & settings.keys()}
    throttled = type("Own", (ThrottledModel,), own)(model, clock=clock, **settings)
    throttled._random = chance or throttled._random
    return model, throttled


async def asked(throttled: ThrottledModel, times: int) -> list[Any]:
    """Ask at once, so many times."""
    every = (throttled.complete(REQUEST) for _ in range(times))
    return await asyncio.gather(*every, return_exceptions=True)


def asking(throttled: ThrottledModel) -> asyncio.Future[Completion]:
    """A request that is under way from the next step of the loop on."""
    return asyncio.ensure_future(throttled.complete(REQUEST))


def unavailable(status: int | None = 500, wait: float | None = None) -> JudgeUnavailableError:
    return JudgeUnavailableError(f"replied {status}", status=status, retry_after=wait)


def numbered(number: int) -> CompletionRequest:
    return CompletionRequest(messages=(Message(role="user", content=str(number)),), max_tokens=100)


# --- Rates -------------------------------------------------------------------------------------


def most_in_a_minute(starts: list[float]) -> int:
    # Starts are differences of the clock, and rounded: the 1e-9 s are nothing that an endpoint could see.
    return max(sum(s <= other < s + 60 - 1e-9 for other in starts) for s in starts)


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
    with contextlib.closing(JumpingLoop(lambda: chance.uniform(0, lateness))) as loop:
        model, throttled = throttling(after(0.01), rpm=rpm, max_concurrency=64)
        loop.run_until_complete(asked(throttled, count))
    starts = model.starts

    assert most_in_a_minute(starts) <= -(-rpm // 1)
    # Only the start a minute earlier holds one back, so one lateness is lost per minute.
    minutes = 1 + starts[-1] // 60
    assert starts[-1] <= (count - 1) * 60 / rpm + (1 + 2 * minutes) * lateness + 1e-3


@on_its_loop
async def test_tokens_are_corrected_by_the_usage_that_comes_back() -> None:
    """Estimated 201 tokens (400 characters, cap 100), used 110: the pace follows what was used.

    Only the newest request stands in the window with its estimate, as endpoints count it.
    """
    model, throttled = throttling(after(0.5), tpm=1100)

    await asked(throttled, 41)

    # 110 tokens of 1,100 per minute: 6 s each; not 11 s
    assert 40 * 6.0 <= model.starts[-1] < 1.15 * 40 * 6.0
    assert most_in_a_minute(model.starts) <= 10


@on_its_loop
async def test_an_answer_that_took_a_minute_corrects_nothing() -> None:
    """Its estimate no longer counts when a usage of ten thousand tokens comes back."""
    late = ANSWER.model_copy(update={"usage": Usage(prompt_tokens=10_000)})
    model, throttled = throttling(after(61, answered=late), tpm=402)

    await asked(throttled, 6)

    assert model.starts == pytest.approx([30.0 * n for n in range(6)])


@on_its_loop
async def test_a_usage_that_a_server_makes_up_holds_no_request_for_days() -> None:
    """It counts as the tokens of a whole minute at most."""
    made_up = ANSWER.model_copy(update={"usage": Usage(prompt_tokens=1_000_000)})
    model, throttled = throttling(after(1, answered=made_up), tpm=402)

    await asked(throttled, 3)

    assert model.starts == pytest.approx([0.0, 60.0, 120.0])


@on_its_loop
async def test_a_request_above_the_whole_token_limit_goes_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It waits for an empty minute instead of for ever, is warned about, and is paid for after."""
    model, throttled = throttling(after(0.5), tpm=150)

    await asked(throttled, 3)

    assert model.starts[0] == 0
    assert min(b - a for a, b in pairwise(model.starts)) >= 60
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "above the limit of 150 tokens per minute" in caplog.text


# --- Retries -----------------------------------------------------------------------------------


@on_its_loop
async def test_what_may_succeed_is_tried_again() -> None:
    """429, 5xx, timeouts and lost connections are retried until an answer comes, and are counted."""
    failing = {n: unavailable(status) for n, status in enumerate((429, 503, 500, None))}
    model, throttled = throttling(after(0.1, failing))

    completion = await throttled.complete(REQUEST)

    assert (completion.choices, len(model.starts)) == (ANSWER.choices, 5)
    assert completion.usage == ANSWER.usage + Usage(requests=4, failed=4)


@pytest.mark.parametrize(
    "error", [JudgeRejectedError("401", status=401), JudgeOutputError("no", ""), TimeoutError("x")]
)
@on_its_loop
async def test_all_else_is_final(error: Exception) -> None:
    """A rejection, nonsense or a bug is raised as it is, after one attempt, and leaves no place taken."""
    model, throttled = throttling(after(0.1, {0: error}), max_concurrency=1)

    assert await asked(throttled, 2) == [error, ANSWER]
    assert len(model.starts) == 2


@pytest.mark.parametrize(
    ("answer", "settings", "seconds", "status", "message"),
    [
        (after(1.0, every=unavailable(502, 2.0)), {"max_attempts": 3}, 7.0, 502,
         "3 attempts in 7.0 s, the maximum; the last failure: replied 502"),
        # nobody sleeps only to fail then
        (after(0.0, every=unavailable(429, 600.0)), {}, 0.0, 429,
         "1 attempt in 0.0 s, the endpoint asks to wait 600 s, beyond the deadline of 300 s; "
         "the last failure: replied 429"),
        # the deadline counts from the first attempt's start
        (after(10_000.0), {"deadline": 20}, 20.0, None,
         "1 attempt in 20.0 s, the deadline of 20 s passed without an answer"),
    ],
    ids=["attempts", "Retry-After", "hangs"],
)  # fmt: skip
@on_its_loop
async def test_the_last_error_says_attempts_seconds_and_cause(
    answer: Any, settings: Any, seconds: float, status: int | None, message: str
) -> None:
    """Of the same kind as the last failure, with its status, wait and cause."""
    _, throttled = throttling(answer, **settings)

    with pytest.raises(JudgeUnavailableError) as raised:
        await throttled.complete(REQUEST)

    error, cause = raised.value, raised.value.__cause__
    assert str(error) == f"scripted did not answer: {message}"
    assert now() == pytest.approx(seconds)
    assert (error.status, isinstance(cause, JudgeUnavailableError)) == (status, status is not None)
    assert error.retry_after == getattr(cause, "retry_after", None)


@on_its_loop
async def test_a_retry_that_finds_no_place_ends_at_the_deadline() -> None:
    """The error names the reason: all slots are taken by requests that hang."""

    async def answer(number: int) -> Completion:
        if number == 0:
            raise unavailable(500, wait=1.0)
        await asyncio.sleep(50)
        return ANSWER

    _, throttled = throttling(answer, deadline=20, max_concurrency=1)

    first, second = await asked(throttled, 2)

    assert {type(first), type(second)} == {JudgeUnavailableError}
    assert "waiting (concurrency); the last failure: replied 500" in str(first)


@on_its_loop
async def test_pauses_double_up_to_thirty_seconds() -> None:
    """And attempts go on until one is answered."""
    failing = dict.fromkeys(range(7), unavailable(500))
    model, throttled = throttling(after(0.0, failing), LongestPauses(), max_attempts=8)

    await throttled.complete(REQUEST)

    pauses = [b - a for a, b in pairwise(model.starts)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 30, 30])


# --- Concurrency -------------------------------------------------------------------------------


@on_its_loop
async def test_older_requests_go_first() -> None:
    """In the order of asking, and one that is tried again before all that came after it."""
    model, throttled = throttling(after(1.0, {0: unavailable(500)}), max_concurrency=1)
    throttled._random = random.Random(1)  # waits 0.13 s, within the second's attempt

    await asyncio.gather(*(throttled.complete(numbered(n)) for n in range(6)))

    order = [request.messages[0].content for request in model.requests]
    assert order == ["0", "1", "0", "2", "3", "4", "5"]


@on_its_loop
async def test_concurrency_is_bounded_and_full() -> None:
    """Never more than `max_concurrency`, and no place is idle while anyone waits."""
    model, throttled = throttling(after(0.5))

    await asked(throttled, 320)

    assert (model.most, now()) == (32, pytest.approx(5.0))


@on_its_loop
async def test_the_capacity_of_an_endpoint_is_measured() -> None:
    """64 at once against 10 places: all are answered, refusals stay few, the places well used."""

    async def answer(number: int) -> Completion:
        await asyncio.sleep(0.005)
        if model.running > 10:
            raise unavailable(429)
        await asyncio.sleep(0.2)
        return ANSWER

    model, throttled = throttling(answer, random.Random(2), max_concurrency=64)

    answers = await asked(throttled, 2000)

    assert {type(answer) for answer in answers} == {Completion}
    assert len(model.starts) - 2000 < 200  # refused
    assert 2000 * 0.205 / 10 / (now()) > 0.65


@pytest.mark.parametrize(
    ("status", "retried"),
    [
        *((status, [2, 2, 3, 3]) for status in (408, 429, 503, 504, 529, None)),
        *((status, [2, 2, 2, 2]) for status in (409, 500, 502)),
    ],
)
@on_its_loop
async def test_failures_that_mean_overload_halve_the_concurrency(
    status: int | None, retried: list[float]
) -> None:
    """A timeout does, with or without a status; a 500 concerns one request."""
    failing = dict.fromkeys(range(4), unavailable(status))
    model, throttled = throttling(after(1.0, failing), LongestPauses(), max_concurrency=4)

    await asked(throttled, 4)

    assert model.starts == pytest.approx([0, 0, 0, 0, *retried])


@pytest.mark.parametrize("share", [0.02, 0.2])
@on_its_loop
async def test_refusals_at_random_do_not_starve_the_run(share: float) -> None:
    """A constant share of 429s that has nothing to do with load costs its attempts, little more."""
    chance = random.Random(1)

    async def answer(number: int) -> Completion:
        refused = chance.random() < share
        await asyncio.sleep(0.01 if refused else 0.5)
        if refused:
            raise unavailable(429, wait=1.0)
        return ANSWER

    _, throttled = throttling(answer, random.Random(1))

    await asked(throttled, 2000)

    assert now() < 2.0 * 2000 * 0.5 / 32


# --- Circuit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, 503])
@on_its_loop
async def test_an_endpoint_that_is_down_becomes_quick_stated_errors(status: int | None) -> None:
    """2,000 requests to an endpoint that is not there end in a minute or so, each with its error."""
    answer = after(0.01, every=unavailable(status))
    model, throttled = throttling(answer, random.Random(1))

    results = await asked(throttled, 2_000)

    assert {type(result) for result in results} == {JudgeUnavailableError}
    why = r"scripted was not asked: \d requests in a row failed, it is tried again in"
    assert re.match(why, str(results[-1]))
    assert len(model.starts) < 2000
    assert now() < 90


@on_its_loop
async def test_after_the_cool_down_one_probe_decides() -> None:
    """A single request goes; others fail at once until it is answered, then all go again."""
    answer = after(1.0, every=unavailable(500))
    model, throttled = throttling(answer, max_attempts=1, max_failures=2)

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
    cancelled = asking(throttled)
    await asyncio.sleep(0.5)
    cancelled.cancel()
    model._answer = after(1.0)
    probe = asking(throttled)
    await asyncio.sleep(0.5)
    await fails("is being tried again now")
    assert await probe == ANSWER
    assert await asked(throttled, 3) == [ANSWER] * 3
    assert len(model.starts) == 8


@on_its_loop
async def test_a_request_between_attempts_learns_at_once_that_the_circuit_opened() -> None:
    """It does not sleep on: the error names its own attempts and why there is none more."""
    answer = after(0.0, {0: unavailable(503, wait=200.0)}, every=unavailable(500))
    _, throttled = throttling(answer, max_attempts=2, max_failures=1)
    resting = asking(throttled)
    await asyncio.sleep(0.1)

    with pytest.raises(JudgeUnavailableError):
        await throttled.complete(REQUEST)
    with pytest.raises(JudgeUnavailableError, match=r"^scripted did not answer: 1 attempt in") as e:
        await resting

    assert "none is sent for 30 s; the last failure: replied 503" in str(e.value)
    assert now() < 10


@on_its_loop
async def test_a_progress_line_that_fails_does_not_fail_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged once and left alone."""
    calls: list[Waiting] = []

    def broken(waiting: Waiting) -> None:
        calls.append(waiting)
        raise ValueError("no terminal")

    _, throttled = throttling(after(0.1), rpm=60, on_wait=broken)

    assert await asked(throttled, 5) == [ANSWER] * 5
    assert len(calls) == 1
    assert "on_wait failed" in caplog.text


# --- Cancellation, loops, threads --------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_cancellation_leaks_a_place(seed: int) -> None:
    """Cancelled at random moments, among failures: afterwards all places are free.

    Everyone who was not cancelled has an answer or a stated error.
    """
    chance = random.Random(seed)

    @on_its_loop
    async def main() -> None:
        async def answer(number: int) -> Completion:
            await asyncio.sleep(chance.choice([0.0, 0.1, 1.0]))
            kind = chance.random()
            if kind < 0.2:
                raise unavailable(chance.choice([429, 500, None]), chance.choice([None, 0.0, 3.0]))
            if kind < 0.25:
                raise JudgeRejectedError("no", status=400)
            return ANSWER

        model, throttled = throttling(
            answer, chance, rpm=chance.choice([None, 600]), tpm=chance.choice([None, 100_000]),
            max_concurrency=chance.choice([1, 2, 5]), max_failures=3, cool_down=2,
        )  # fmt: skip
        tasks = [asking(throttled) for _ in range(40)]
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

    main()


@on_its_loop
async def test_a_loop_that_was_closed_under_its_requests_holds_nobody_up() -> None:
    """Closed without cancelling, its tasks still referred to: others pass those in the line."""
    _, throttled = throttling(after(1.0), max_concurrency=1)
    running = asking(throttled)
    await asyncio.sleep(0)
    abandoned = asyncio.new_event_loop()
    stuck = throttled.complete(REQUEST)
    stuck_task = asyncio.Task(stuck, loop=abandoned)
    thread = threading.Thread(target=abandoned.run_until_complete, args=[asyncio.sleep(0)])
    thread.start()
    thread.join()
    abandoned.close()

    late = asking(throttled)

    assert await asyncio.gather(running, late) == [ANSWER, ANSWER]
    assert throttled.waiting() is None
    stuck_task._log_destroy_pending = False  # type: ignore[attr-defined]
    stuck.close()


@on_its_loop
async def test_after_a_fork_nobody_waits_for_the_parents_requests() -> None:
    """The child begins with all places free (here it is only told of a fork)."""
    _, throttled = throttling(after(100.0), max_concurrency=1)
    parents = asking(throttled)
    await asyncio.sleep(1)
    throttled.after_fork()

    childs = asking(throttled)
    await asyncio.sleep(1)

    assert throttled.waiting() is None
    await asyncio.gather(parents, childs)


def test_two_threads_share_the_places() -> None:
    """The app's loop and the library's own: a place freed on one wakes who waits on the other."""
    running: list[int] = []
    most: list[int] = []

    async def answer(number: int) -> Completion:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0.001)
        running.pop()
        return ANSWER

    throttled = ThrottledModel(Scripted(answer), max_concurrency=3)
    with ThreadPoolExecutor(3) as pool:
        answers = pool.map(lambda _: asyncio.run(asked(throttled, 50)), range(3))

    assert [*answers] == [[ANSWER] * 50] * 3
    assert max(most) <= 3


# --- The object --------------------------------------------------------------------------------


@on_its_loop
async def test_it_is_a_model_with_the_same_identity() -> None:
    """Throttling changes nothing that a score or a cache key is made of."""
    model, throttled = throttling(after(0))
    assert isinstance(throttled, Model)
    assert (throttled.name, throttled.model, throttled.version) == ("scripted", "m", "7")
    assert throttled.base_url == "http://127.0.0.1/v1"
    assert await WrappedModel(model).complete(REQUEST) == ANSWER


@pytest.mark.parametrize(
    ("field", "value"),
    [("rpm", 0), ("rpm", float("nan")), ("tpm", -1), ("deadline", float("inf")), ("rpm", "60"),
     ("max_concurrency", 2.5),
     ("permits", 30)],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(field: str, value: object) -> None:
    """At construction, with the field's name."""
    limits: Any = {field: value}
    with pytest.raises(ConfigurationError, match=f"`{field}`"):
        throttling(after(0), **limits)
    if field in ("rpm", "tpm"):
        with pytest.raises(ConfigurationError, match=f"`{field}`"):
            LocalPermits(**limits)


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


@on_its_loop
async def test_every_attempt_takes_a_shared_permit() -> None:
    """One request and its estimated tokens, retries included, in the order of the requests."""
    shared = Shared(10.0)
    failing: dict[int, Exception] = {0: unavailable(429, wait=1.0)}
    model, throttled = throttling(after(0.0, failing), permits=shared)

    await asyncio.gather(*(throttled.complete(numbered(number)) for number in range(3)))

    sent = [request.messages[0].content for request in model.requests]
    assert sent == ["0", "1", "2", "0"]
    assert shared.asked == [(1, 101)] * 4
    assert model.starts == [10.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [({"rpm": 6}, 10.0), ({"rpm": 600, "tpm": 402}, 30.0)],  # two of 201 tokens per minute
)
@on_its_loop
async def test_two_models_share_one_quota(limits: dict[str, float], seconds: float) -> None:
    """What both start in any minute is within the limits, on requests and on tokens."""
    quota = LocalPermits(**limits, clock=clock)
    assert isinstance(quota, Permits)
    both = [throttling(after(1.0), permits=quota) for _ in range(2)]

    await asyncio.gather(*(asked(throttled, 5) for _, throttled in both))

    starts = sorted(start for model, _ in both for start in model.starts)
    assert starts == pytest.approx([seconds * n for n in range(10)])


@on_its_loop
async def test_a_retry_waits_for_shared_permits_until_the_deadline() -> None:
    """The time before the first attempt does not count, as in the queue."""
    answer = after(0.0, every=unavailable(429, wait=1.0))
    model, throttled = throttling(answer, permits=Shared(50.0), deadline=20.0)

    with pytest.raises(JudgeUnavailableError, match=r"1 attempt in 20.0 s.*\(rate limit\)"):
        await throttled.complete(REQUEST)

    assert model.starts == [50.0]
    assert throttled.waiting() is None


@pytest.mark.parametrize("failure", [ConnectionError("store is down"), TimeoutError("slow")])
@on_its_loop
async def test_permits_that_fail_end_the_request(failure: Exception) -> None:
    """It is not sent, and its place is free again."""
    shared = Shared(failure=failure)
    model, throttled = throttling(after(0.0), permits=shared, max_concurrency=1)

    with pytest.raises((ConnectionError, RuntimeError), match=r"store is down|shared permits"):
        await throttled.complete(REQUEST)
    assert model.starts == []
    shared.failure = None
    assert (await throttled.complete(REQUEST)).text == "yes"


@on_its_loop
async def test_a_request_cancelled_while_it_waits_for_permits_leaks_nothing() -> None:
    """It gives its place back and is not sent."""
    model, throttled = throttling(after(0.0), permits=Shared(5.0), max_concurrency=1)
    first, second = (asking(throttled) for _ in range(2))
    await asyncio.sleep(1.0)

    first.cancel()
    assert (await second).text == "yes"

    assert throttled.waiting() is None
    assert model.starts == [6.0]


# --- What is waited for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "settings", "seconds", "waiting", "told"),
    [
        (after(1.0), {"rpm": 6}, 4.0, Waiting("rate limit", 6.0, 2), [10.0, 10.0]),
        (after(9.0), {"max_concurrency": 1}, 1.0, Waiting("concurrency", None, 2), []),
        (after(0.0, {0: unavailable(429, 9.0)}), {}, 1.0, Waiting("Retry-After", 8.0, 1), [9.0]),
        (after(0.0, every=unavailable()), {"max_attempts": 1, "max_failures": 1}, 1.0,
         Waiting("circuit open", 29.0, 0), [30.0]),
        # how long others make it wait is unknown
        (after(0.0), {"permits": Shared(5.0)}, 1.0, Waiting("rate limit", None, 3), []),
    ],
    ids=["rate", "places", "Retry-After", "circuit", "shared permits"],
)  # fmt: skip
@on_its_loop
async def test_waiting_says_what_for(
    answer: Any, settings: Any, seconds: float, waiting: Waiting, told: list[float]
) -> None:
    """Each reason with its seconds and how many wait, while it lasts; None when nobody does."""
    waits: list[Waiting] = []
    _, throttled = throttling(answer, on_wait=waits.append, **settings)
    before, all_of_them = throttled.waiting(), asyncio.ensure_future(asked(throttled, 3))
    await asyncio.sleep(seconds)

    assert (before, throttled.waiting()) == (None, waiting)
    await all_of_them
    assert [(w.reason, w.seconds) for w in waits] == [(waiting.reason, s) for s in told]
    assert str(Waiting("rate limit", 6.0, 3)) == "3 waiting for 6.0 s: rate limit"


# --- Nobody there ------------------------------------------------------------------------------


def refused() -> JudgeUnavailableError:
    return JudgeUnavailableError("m at host cannot be reached: refused", connected=False)


@on_its_loop
async def test_an_endpoint_that_is_not_there_is_reported_at_once() -> None:
    """1,000 requests end within a second, after two attempts each of those under way."""
    waits: list[Waiting] = []
    model, throttled = throttling(after(0.01, every=refused()), on_wait=waits.append)
    results = await asked(throttled, 1_000)

    assert now() < 1.0
    assert len(model.starts) <= 2 * 32
    assert {type(error) for error in results} == {JudgeUnavailableError}
    assert not any(error.connected for error in results)
    assert all(str(error).startswith("m at host cannot be reached: refused") for error in results)
    assert str(results[0]) == "m at host cannot be reached: refused (2 attempts in 0.3 s)"
    assert str(results[-1]).endswith("refused; it is tried again in 30 s")
    opened = [waiting.why for waiting in waits if waiting.reason == "circuit open"]
    assert opened == ["m at host cannot be reached: refused"]

    model._answer = after(0.01)
    await asyncio.sleep(30)
    assert await throttled.complete(REQUEST) == ANSWER


@pytest.mark.parametrize(
    "first", [None, JudgeRejectedError("400", status=400), JudgeOutputError("nonsense", "")]
)
@on_its_loop
async def test_an_endpoint_that_was_up_is_tried_again(first: Exception | None) -> None:
    """It may be restarting: refused connections are then as temporary as a 503."""
    failing = {} if first is None else {0: first}
    model, throttled = throttling(after(0.1, failing | {n: refused() for n in range(1, 6)}))
    await asked(throttled, 1)
    assert await throttled.complete(REQUEST) == ANSWER
    assert len(model.starts) == 7


@pytest.mark.parametrize("retry_after", [None, 20.0])
@on_its_loop
async def test_a_single_request_that_keeps_failing_is_seen_within_5_seconds(
    caplog: pytest.LogCaptureFixture, retry_after: float | None
) -> None:
    """Its pauses grow, so that a fifth failure may take a minute; a retry or two tell nobody."""
    _, throttled = throttling(after(0.0, every=unavailable(500, retry_after)))
    task = asking(throttled)
    await asyncio.sleep(5)  # after the first failure
    assert len(caplog.records) == 1
    with pytest.raises(JudgeUnavailableError):
        await task
    assert len(caplog.records) == 1
