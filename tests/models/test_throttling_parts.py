"""The parts of `ThrottledModel` that need no loop: circuit, retries, limits by the minute."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rag_eval_integrations.errors import JudgeUnavailableError
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.throttling._limits import (
    PerMinute,
    RollingWindow,
    estimated_tokens,
)
from rag_eval_integrations.models.throttling._load import AdaptiveConcurrency, CircuitBreaker
from rag_eval_integrations.models.throttling.model import (
    Attempts,
    overloaded,
    pause,
    pause_for_others,
)

# --- CircuitBreaker -----------------------------------------------------------------------------------


def opened() -> CircuitBreaker:
    """A circuit that two failures opened at 5 s, for 10 s."""
    circuit = CircuitBreaker("model", 2, 10.0)
    assert not circuit.failed(4.0, "first")
    assert circuit.failed(5.0, "second")
    return circuit


def test_a_circuit_opens_after_failures_in_a_row() -> None:
    """An answer between them begins the row anew; open, more failures do not prolong it."""
    circuit = CircuitBreaker("model", 2, 10.0)

    assert not circuit.failed(0.0, "x")
    circuit.answered()
    assert not circuit.failed(1.0, "x")
    assert circuit.seconds_open(1.0) is None
    circuit.check(1.0)
    assert not circuit.enter()
    assert circuit.failed(2.0, "x")
    assert not circuit.failed(9.0, "late")
    assert circuit.seconds_open(9.0) == 3.0


def test_an_open_circuit_says_why_and_until_when() -> None:
    """Which model, how many failures, the last of them, and when a request may go again."""
    circuit = opened()

    with pytest.raises(JudgeUnavailableError) as caught:
        circuit.check(8.0)

    assert caught.value.retry_after == 7.0
    for words in ("model was not asked", "2 requests in a row", "in 7 s", "the last: second"):
        assert words in str(caught.value)
    assert circuit.seconds_open(100.0) == 0.0


def test_one_probe_goes_at_a_time() -> None:
    """After the cool-down; one that is cancelled leaves its place to another."""
    circuit = opened()

    circuit.check(15.0)
    assert circuit.enter()
    with pytest.raises(JudgeUnavailableError, match="tried again now") as caught:
        circuit.check(16.0)
    assert caught.value.retry_after == 0.0
    circuit.release_probe()
    circuit.check(17.0)
    assert circuit.enter()


def test_a_probe_that_fails_opens_it_again_and_one_that_is_answered_closes_it() -> None:
    """One failure is enough then; and after an answer the row begins anew."""
    circuit = opened()
    circuit.enter()

    assert circuit.failed(20.0, "still", probe=True)
    assert circuit.seconds_open(21.0) == 9.0
    circuit.check(30.0)
    assert circuit.enter()
    circuit.answered()
    circuit.check(30.0)
    assert circuit.seconds_open(30.0) is None
    assert not circuit.enter()
    assert not circuit.failed(31.0, "x")
    assert circuit.failed(31.0, "x")


def test_an_earlier_request_that_fails_during_a_probe_is_not_the_probe() -> None:
    """The probe keeps its place."""
    circuit = opened()
    circuit.enter()

    assert not circuit.failed(16.0, "an old one")
    with pytest.raises(JudgeUnavailableError):
        circuit.check(17.0)


# --- Retries -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "load"),
    [(None, True), (408, True), (429, True), (503, True), (504, True), (529, True), (500, False), (502, False)],
)  # fmt: skip
def test_what_speaks_of_load(status: int | None, load: bool) -> None:
    """A 500 is an accident of one request; no status looks like a timeout."""
    assert overloaded(JudgeUnavailableError("x", status=status)) is load


class Highest(random.Random):
    """Always the longest pause."""

    def uniform(self, a: float, b: float) -> float:
        assert a == 0.0
        return b


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (7, 30), (5_000, 30)]
)
def test_pauses_double_up_to_thirty_seconds(attempt: int, seconds: float) -> None:
    """And never end before the endpoint allows it."""
    assert pause(attempt, None, Highest()) == seconds
    assert pause(attempt, seconds + 1, Highest()) == seconds + 1
    assert pause(attempt, 0.5, Highest()) == seconds


def test_others_wait_as_long_when_the_endpoint_means_all() -> None:
    """A 429 or a Retry-After; else at most one second."""
    assert pause_for_others(JudgeUnavailableError("x", status=429), 20.0) == 20.0
    assert pause_for_others(JudgeUnavailableError("x", status=500, retry_after=9.0), 20.0) == 20.0
    assert pause_for_others(JudgeUnavailableError("x", status=500), 20.0) == 1.0
    assert pause_for_others(JudgeUnavailableError("x", status=500), 0.5) == 0.5


def test_the_deadline_runs_from_the_first_attempt() -> None:
    """Before it there is none; a second attempt does not move it."""
    attempts = Attempts("model", deadline=30.0, sequence=1, tokens=0)

    assert (attempts.end, attempts.remaining(100.0)) == (None, 30.0)
    assert attempts.begin(100.0) == 130.0
    assert attempts.begin(110.0) == 130.0
    assert (attempts.end, attempts.remaining(110.0), attempts.made) == (130.0, 20.0, 2)


def test_the_error_of_what_is_given_up_says_what_was_tried() -> None:
    """Attempts, seconds, why there is no other, and the last failure with its status."""
    attempts = Attempts("model", deadline=30.0, sequence=1, tokens=0)
    unbegun = attempts.error(50.0, "why")
    attempts.begin(100.0)
    once = attempts.error(101.5, "why")
    attempts.begin(102.0)
    attempts.last = JudgeUnavailableError("busy", status=503, retry_after=4.0)
    twice = attempts.error(105.0, "why")

    assert str(unbegun) == "model did not answer: 0 attempts in 0.0 s, why"
    assert str(once) == "model did not answer: 1 attempt in 1.5 s, why"
    assert (once.status, once.retry_after) == (None, None)
    assert str(twice) == "model did not answer: 2 attempts in 5.0 s, why; the last failure: busy"
    assert (twice.status, twice.retry_after) == (503, 4.0)


# --- Limits ------------------------------------------------------------------------------------


def test_starts_are_spread_evenly() -> None:
    """One per two seconds at thirty per minute, counted from when the last was due."""
    limit = PerMinute(30)

    assert limit.free_at(100.0, 1) <= 100.0
    limit.take(100.0, 1, since=100.0)
    assert limit.free_at(100.5, 1) == 102.0
    limit.take(102.4, 1, since=100.0)  # 0.4 s late: the grid stays
    assert limit.free_at(102.4, 1) == 104.0
    limit.take(109.0, 1, since=100.0)  # 5 s late: what is lost beyond a second is not made up for
    assert limit.free_at(109.0, 1) == 110.0


def test_who_comes_later_starts_the_grid_anew() -> None:
    """Time in which nobody asked is not saved up."""
    limit = PerMinute(30)
    limit.take(100.0, 1, since=100.0)

    limit.take(150.0, 1, since=150.0)

    assert limit.free_at(150.0, 1) == 152.0


def test_a_window_is_never_overrun() -> None:
    """What started less than a minute ago counts, up to the limit and not beyond."""
    limit = PerMinute(2)
    limit.take(0.0, 1, since=0.0)
    limit.take(30.9, 1, since=0.0)

    assert limit.free_at(59.0, 1) == 60.0
    limit.take(60.0, 1, since=0.0)
    assert limit.free_at(61.0, 1) == pytest.approx(90.9)
    assert limit.free_at(200.0, 1) <= 200.0


def test_a_rolling_window_allows_a_burst_up_to_its_weight() -> None:
    """Three at once, then none until the first has left: limits that are not spaced use it."""
    window = RollingWindow(3, 72.0)
    for _ in range(3):
        assert window.free_at(100.0, 1) <= 100.0
        window.add(100.0, 1)

    assert window.free_at(171.9, 1) == 172.0
    assert window.free_at(172.0, 1) <= 172.0


def test_a_fraction_limits_a_window_to_the_next_whole_number() -> None:
    """And two in a minute and a half are spaced by forty seconds."""
    limit = PerMinute(1.5)
    limit.take(0.0, 1, since=0.0)

    assert limit.free_at(1.0, 1) == 40.0
    assert limit.free_at(1.0, 2) == 60.0


def test_what_is_heavier_than_the_limit_goes_alone() -> None:
    """Once nothing else is in the window; and nothing goes with it."""
    limit = PerMinute(100)
    limit.take(0.0, 50, since=0.0)

    assert limit.free_at(31.0, 500) == 60.0
    limit.take(60.0, 500, since=60.0)
    assert limit.free_at(61.0, 1) == 360.0


def test_an_estimate_is_corrected_while_it_counts() -> None:
    """Less was used: others go sooner. A start that is a minute old cannot be corrected."""
    limit = PerMinute(100)
    taken = limit.take(0.0, 100, since=0.0)
    assert limit.free_at(1.0, 50) == 60.0

    limit.correct(taken, 50)
    assert limit.free_at(1.0, 50) == 30.0
    limit.correct(taken, 60)
    assert limit.free_at(1.0, 50) == 60.0
    assert limit.free_at(1.0, 40) == pytest.approx(36.0)

    assert limit.free_at(61.0, 100) <= 61.0
    limit.correct(taken, 500)
    assert limit.free_at(61.0, 100) <= 61.0


def test_tokens_are_guessed_from_characters_and_caps() -> None:
    """Four per token, and 500 for every answer without a cap."""
    messages = (Message(role="system", content="x" * 10), Message(role="user", content="x" * 31))

    assert estimated_tokens(CompletionRequest(messages=messages)) == 10 + 1 + 500
    assert estimated_tokens(CompletionRequest(messages=messages, max_tokens=7, n=3)) == 11 + 21


def test_requests_that_outlive_an_answered_probe_may_open_it_again() -> None:
    """And the next probe then goes: the answered one holds no place."""
    circuit = opened()
    circuit.enter()
    circuit.answered()

    assert not circuit.failed(16.0, "an old one")
    assert circuit.failed(16.0, "another")
    circuit.check(26.0)


# --- AdaptiveConcurrency -----------------------------------------------------------------------


def at_once(places: AdaptiveConcurrency, refused: Sequence[bool | None]) -> None:
    """So many requests start together and end in this order."""
    numbers = [places.start() for _ in refused]
    for number, one in zip(numbers, refused, strict=True):
        places.finish(number, one)


def one_by_one(places: AdaptiveConcurrency, refused: list[bool]) -> None:
    """So many requests end while all places are in use."""
    others = [places.start() for _ in range(int(places.limit) - 1)]
    for one in refused:
        places.finish(places.start(), one)
    for number in others:
        places.finish(number, None)


def test_a_limit_is_halved_once_for_what_was_in_flight() -> None:
    """Requests that started before say nothing of the new limit."""
    places = AdaptiveConcurrency(32)
    assert (places.limit, places.in_flight, places.free) == (32, 0, True)

    at_once(places, [True] * 32)

    assert (places.limit, places.in_flight, places.background) == (16, 0, 0.0)


def test_after_a_halving_one_window_is_waited_for() -> None:
    """In it neither an answer raises the limit nor a single refusal halves it again."""
    places = AdaptiveConcurrency(32)
    at_once(places, [True] * 32)

    one_by_one(places, [False] * 10)
    one_by_one(places, [True] * 2)
    assert places.limit == 16
    one_by_one(places, [True] * 3)  # 5 of 16 are more than 0.3
    assert places.limit == 8

    one_by_one(places, [False] * 8)
    assert places.limit == 8
    one_by_one(places, [False])
    assert places.limit > 8


@pytest.mark.parametrize(
    ("answered", "grown"), [(31, 17.0), (16, 16 + 0.5 / 16), (0, 16 + 0.5 / 16)]
)
def test_growth_is_slow_near_the_known_capacity(answered: int, grown: float) -> None:
    """That is the limit that failed times the share that it answered: of 32, 31 or 16 or none."""
    places = AdaptiveConcurrency(32)
    at_once(places, [True] * (32 - answered) + [False] * answered)
    one_by_one(places, [False] * 16)

    one_by_one(places, [False])

    assert places.limit == grown


def test_requests_that_end_without_saying_count_for_nothing() -> None:
    """A cancelled one frees its place and changes no limit."""
    places = AdaptiveConcurrency(4)
    at_once(places, [None] * 4)

    assert (places.limit, places.in_flight) == (4, 0)
    held = [places.start() for _ in range(4)]
    assert not places.free
    places.finish(held[0], None)
    assert places.free
