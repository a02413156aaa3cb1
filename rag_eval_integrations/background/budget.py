"""Limits of background evaluation: evaluations per minute, dollars per day, share of calls, time.

`BoundedEvaluator` evaluates a call within them.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations._contain import contained
from rag_eval_integrations.background.counters import FailureLog, Fate, log_excerpt
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.models.throttling._limits import MINUTE, RollingWindow
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall, Usage
from rag_eval_integrations.records._json import is_amount
from rag_eval_integrations.records.call import EndedCall

_DAY = 86_400


@dataclass(frozen=True)
class Budget:
    """Limits on background evaluation in one process; None means no limit.

    Raises:
        ConfigurationError: a limit is not a finite number above 0.
    """

    per_minute: float | None = None
    """Evaluations started per 60 s, in any window. A fraction holds over a longer window: 0.5 is
    one per 120 s, 2.5 is three per 72 s."""
    per_day_usd: float | None = None
    """US dollars per day (UTC), by the `Usage.cost_usd` of finished evaluations: those in flight
    when the limit is reached (at most `max_concurrency`) exceed it. An unknown price is not 0: the
    limit cannot be enforced then, which is logged once."""

    def __post_init__(self) -> None:
        for name, value in (("per_minute", self.per_minute), ("per_day_usd", self.per_day_usd)):
            if value is not None and not is_amount(value):
                raise ConfigurationError(name, value, "use a finite number above 0, or None")


class Meter:
    """Enforces a budget; used from one thread.

    It shares the rolling window with the models' limits, but is not a `Permits`: an evaluation
    beyond the limit is dropped and not delayed, starts are not spaced, and a fraction has a longer
    window.

    Args:
        budget: the limits.
        monotonic: returns seconds from any start, never decreasing.
        clock: returns seconds since 1970, UTC.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._budget = budget
        self._monotonic = monotonic
        self._clock = clock
        per_minute = budget.per_minute
        self._starts: RollingWindow | None = None
        if per_minute is not None:
            most = math.ceil(per_minute)
            self._starts = RollingWindow(most, MINUTE * most / per_minute)
        self._day = self._today()
        self._spent = 0.0
        self.cost_unknown = False
        """Whether an evaluation had an unknown price while a limit in dollars was set."""

    def start(self) -> str | None:
        """Count an evaluation as started, or return why the budget does not allow it.

        Checks the money of the day first, then the starts of the last minute.
        """
        limit = self._budget.per_day_usd
        if limit is not None:
            self._new_day()
            if self._spent >= limit:
                return f"the budget of {limit:g} USD per day is spent"
        if self._starts is not None:
            now = self._monotonic()
            if self._starts.free_at(now, 1) > now:
                return f"the limit of {self._budget.per_minute:g} evaluations per minute is reached"
            self._starts.add(now, 1)
        return None

    def add_cost(self, usage: Usage) -> None:
        """Add the cost of a finished evaluation, or note that it is unknown.

        Does nothing without a budget in money.
        """
        if self._budget.per_day_usd is None:
            return
        self._new_day()
        if usage.cost_usd is not None:
            self._spent += usage.cost_usd
        elif usage.requests > usage.failed:  # of those, a price can be known
            self.cost_unknown = True

    def _new_day(self) -> None:
        """Forget what was spent if the day has changed."""
        today = self._today()
        if today != self._day:
            self._day, self._spent = today, 0.0

    def _today(self) -> int:
        return int(self._clock() // _DAY)


# --- The sample of calls that are judged: decided by an id alone, so it is reproducible


SampleRate = float | Callable[[RagCall], float]

_RANGE = 2.0**64


def chosen(call_id: str, probability: float) -> bool:
    """Return whether a call is sampled; the same id gives the same answer on every machine.

    A call that is sampled at one rate is sampled at all higher rates. Takes about 1 µs: a digest
    of the id, which has at most a few dozen characters, and not of the texts.

    Args:
        call_id: id of the call.
        probability: sampling probability, in [0, 1].
    """
    if probability >= 1.0:
        return True
    digest = hashlib.blake2b(
        call_id.encode("utf-8", "surrogatepass"), digest_size=8, person=b"rag-eval-sample"
    )  # `person`: another sampler that hashes the same ids does not pick the same calls
    return int.from_bytes(digest.digest(), "big") / _RANGE < probability


def sample_key(call: RagCall | EndedCall) -> str:
    """Return the id that decides whether a call is sampled.

    A captured call's is that of its run, which is known before its texts are hashed.
    """
    if isinstance(call, EndedCall):
        return str(call.run_id)
    run_id = None if call.capture is None else call.capture.run_id
    return call.id if run_id is None else run_id


def checked(rate: SampleRate) -> SampleRate:
    """Check a sample rate, and return it.

    Raises:
        ConfigurationError: it is neither a number in [0, 1] nor a function.
    """
    if not callable(rate) and not _is_probability(rate):
        raise ConfigurationError(
            "sample_rate", rate, "use a number in [0, 1], or a function that returns one"
        )
    return rate


def probability_of(call: RagCall | EndedCall, rate: SampleRate) -> float:
    """Return the probability in [0, 1] with which a call is sampled.

    Raises:
        ValueError: the user's function returned something else, or the call has no record.
        Exception: the user's function raised it.
    """
    if not callable(rate):
        return rate
    record = call.record() if isinstance(call, EndedCall) else call
    if record is None:
        raise ValueError("the record of the call could not be made")
    probability = rate(record)
    if not _is_probability(probability):
        raise ValueError(f"`sample_rate` returned {probability!r}, which is not in [0, 1]")
    return probability


def _is_probability(value: Any) -> bool:
    return is_amount(value, or_zero=True) and value <= 1.0


# --- One evaluation, within the budget and the time limit


class BoundedEvaluator:
    """Evaluates calls on the worker's loop, within a budget and a time limit.

    Args:
        evaluator: evaluates the calls.
        budget: limits on evaluations per minute and dollars per day.
        timeout: seconds per evaluation at most, above 0.
        failures: logs each kind of failure once.
    """

    def __init__(
        self, evaluator: RagEvaluator, budget: Budget, timeout: float, failures: FailureLog
    ) -> None:
        self._evaluator = evaluator
        self._meter = Meter(budget)
        self._timeout = timeout
        self._failures = failures

    async def evaluate(self, call: RagCall) -> tuple[Evaluation, Fate]:
        """Evaluate a call; return the evaluation and the call's fate.

        A call beyond the budget or the time limit gives an evaluation that says so.
        """
        refusal = self._meter.start()
        if refusal is not None:
            self._failures.log(("over budget",), f"a call was not judged: {refusal}")
            unscored = self._evaluator.without_result(call, ("over_budget", refusal))
            return unscored, "over_budget"
        evaluation = await self._evaluated_in_time(call)
        self._meter.add_cost(evaluation.usage)
        if self._meter.cost_unknown:
            self._failures.log(
                ("unknown cost",),
                f"`per_day_usd` cannot be enforced: the price of {evaluation.judge.name} is not "
                "known",
            )
        if evaluation.error is not None:
            failure = evaluation.error
            reason = f"{failure.stage}: {failure.type}: {log_excerpt(failure.message)}"
            kind = ("evaluation", failure.stage, failure.type)
            self._failures.log(kind, f"an evaluation failed ({reason})")
            return evaluation, "failed"
        scored = any(score.value is not None for score in evaluation.scores.values())
        if scored:
            return evaluation, "scored"
        return evaluation, "unscored" if evaluation.sentences.documents else "no_documents"

    async def _evaluated_in_time(self, call: RagCall) -> Evaluation:
        """Evaluate a call within the timeout, even if the judge catches its cancellation.

        An evaluation that ends just after it counts; else one with a `TimeoutError`.
        """
        # In a task of its own, which can be left behind: a judge may catch its cancellation.
        task = asyncio.create_task(self._contained(call))
        try:
            await asyncio.wait([task], timeout=self._timeout)
            if task.done():
                return await task
            task.cancel()
            await asyncio.wait([task], timeout=_LAST_STEPS)
        finally:
            if not task.done():
                task.cancel()
                _left_behind.add(task)
            task.add_done_callback(_forget)
        if task.done() and not task.cancelled() and task.exception() is None:
            return task.result()
        message = f"no result within {self._timeout:g} s"
        failure = EvaluationError(type="TimeoutError", message=message, stage="judge")
        return self._evaluator.without_result(call, failure)

    async def _contained(self, call: RagCall) -> Evaluation:
        """Evaluate a call, with exits of a user's code turned into exceptions."""
        with contained:  # out of a task, `SystemExit` would end the loop
            return await self._evaluator.evaluate(call)


_LAST_STEPS = 1.0
"""Seconds that an evaluation beyond its time may take to end."""
_left_behind: set[asyncio.Task[Evaluation]] = set()


def _forget(task: asyncio.Task[Evaluation]) -> None:
    """Forget a task that was left behind, once it has ended."""
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # nobody else asks for it
