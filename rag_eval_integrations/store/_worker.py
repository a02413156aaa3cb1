"""The worker of a store: imports spools, claims calls, has them judged and records the results.

    spool files ─▶ import ─▶ claim, with a lease ─▶ judge ─▶ settle ─▶ sinks
                                  ▲ renewed every 20 s           │
                                                  judged, due again, parked or left out

Any number may work on one store. The database may be away for a while: then all wait, and what
was judged meanwhile is recorded afterwards. Work with the database has threads of its own, so that
judges whose threads hang hold up nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from typing import TypeVar

from rag_eval_integrations._contain import words_of
from rag_eval_integrations._loop import Threads
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations._visible import LogOnce, counted, logger_of, one_line, visible
from rag_eval_integrations.background.budget import (
    BoundedEvaluator,
    Budget,
    checked,
    chosen,
    sample_key,
)
from rag_eval_integrations.background.counters import FailureLog
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.sinks import Sink
from rag_eval_integrations.store import _outbox
from rag_eval_integrations.store._failures import PATIENCE, kind_of
from rag_eval_integrations.store._import import SpoolImport
from rag_eval_integrations.store._outage import Outage, failure_of
from rag_eval_integrations.store.database import (
    BACKOFF,
    LEASE,
    TRIES,
    ClaimedCall,
    Outcome,
    Store,
)
from rag_eval_integrations.store.spool import new_uid

_logger = logger_of("rag_eval_integrations.store")

_POLL = 0.5
"""Seconds between looks for calls that are due, and for a request to stop."""
_IMPORT = 1.0
_TIMEOUT = 300.0
_STATUS = 60.0
"""Seconds between lines that say what waits."""
_REASONS = 5
_GRACE = 20.0
"""Seconds for which a worker that is stopped waits for the calls in progress."""
_JUDGE_THREADS = 256
"""Threads of judges at most: several times the calls in progress, since one that hangs stays."""
_DAY = 86_400

T = TypeVar("T")


def outcome_of(call: ClaimedCall, evaluation: Evaluation, seconds: float) -> Outcome:
    """Decide what becomes of an evaluated call: recorded, tried again, or parked with its error.

    A failure of the judge is tried again, later each time, up to five tries in all. Otherwise, an
    evaluation with an error is recorded if one of its scores has a value, and parked if none has.
    """
    error, why = evaluation.error, failure_of(evaluation)
    if why is not None and call.tries < TRIES:
        return Outcome(call, "due", why, wait=BACKOFF[call.tries - 1])
    if error is not None and all(score.value is None for score in evaluation.scores.values()):
        return Outcome(call, "parked", f"{error.stage}: {error.type}: {error.message}")
    return Outcome(call, "judged", evaluation=evaluation, seconds=seconds)


class StorePermits:
    """The `Permits` of all workers of a store: requests and tokens per minute.

    Args:
        store: the store.
        name: name of the limit, such as the judge's.
        rpm: requests per minute; None for no limit.
        tpm: tokens per minute, estimated in advance; None for no limit.
    """

    def __init__(self, store: Store, name: str, rpm: float | None, tpm: float | None) -> None:
        self._store, self._name, self._rpm, self._tpm = store, name, rpm, tpm
        self._turn = asyncio.Lock()
        self._thread = Threads(1, "rag-eval-permits")

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the limits, and count them.

        Starts are spaced evenly, over 61 s per minute since one may come late. Does not wait for a
        limit that is None.
        """
        limits = ("requests", self._rpm, requests), ("tokens", self._tpm, tokens)
        async with self._turn:  # one request of each worker looks at the database
            for unit, limit, weight in limits:
                args = (
                    f"{self._name} {unit}",
                    min(weight, max(1.0, limit or weight)) * 61.0 / (limit or 1.0),
                )
                pause = limit and 1.0
                while pause:
                    pause = await self._thread.run(partial(self._store.take_permit, *args))
                    await asyncio.sleep(pause)


class Worker:
    """Judges the calls of a store until it is stopped, or until none is due.

    Args:
        store: the store.
        evaluator: evaluates the calls.
        spools: folders whose files are imported.
        sinks: receive the evaluations once they are recorded; by their names in the store, which
            keeps what they do not have yet.
        sample_rate: share of the calls to judge, in [0, 1]; the others are left out.
        per_minute: evaluations that this worker starts per minute; further calls are left out.
        dollars_per_day: US dollars per day (UTC) of all evaluations in the store, beyond which
            calls are left out.
        max_concurrency: calls in progress at once, from 1.
        max_age: seconds after which a call is parked while the judge cannot be reached.
        say: is given a line about what waits, once a minute.

    Raises:
        ConfigurationError: an argument is out of its range.
    """

    def __init__(
        self,
        store: Store,
        evaluator: RagEvaluator,
        spools: Sequence[Path] = (),
        sinks: Mapping[str, Sink] | None = None,
        *,
        sample_rate: float = 1.0,
        per_minute: float | None = None,
        dollars_per_day: float | None = None,
        max_concurrency: int = 32,
        max_age: float = 7.0 * _DAY,
        say: Callable[[str], object] = _logger.info,
    ) -> None:
        Budget(per_day_usd=dollars_per_day)  # raises what is wrong with it
        checked(sample_rate)
        self._store = store
        self._sample_rate, self._dollars = sample_rate, dollars_per_day
        self._max_concurrency, self._max_age, self._say = max_concurrency, max_age, say
        self._failures = LogOnce(_logger)
        self._spool_import = SpoolImport(store, spools, self._failures)
        self._bounded = BoundedEvaluator(evaluator, Budget(per_minute), _TIMEOUT, FailureLog())
        self._sinks = sinks or {}
        self._name = new_uid()
        self._threads = Threads(4, "rag-eval-store")  # import, renewal, claims and settling, lines
        self._outage = Outage()
        self._running: dict[asyncio.Task[Outcome], ClaimedCall] = {}
        self._asking: asyncio.Task[Outcome] | None = None
        self._spent = 0.0
        self._stopping = False
        self._patience = inf
        self._ends = 0.0
        self.counts: Counter[str] = Counter()
        """Calls by what became of them, and those that were `imported`."""
        self.hung = 0
        """Calls without a result in time: what judges began for them may go on for ever."""
        self.waiting = 0
        """Calls that are left because the judge could not be reached."""

    def stop(self) -> None:
        """Claim no more calls, and end when those in progress are recorded; from any thread.

        Those that take longer than 20 s are given back.
        """
        self._ends = time.monotonic() + _GRACE
        self._stopping = True

    async def run(self, *, once: bool = False) -> None:
        """Work until `stop`; wait for the database where it is away.

        At the end, the sinks have up to 30 seconds for what they do not have yet, 5 after `stop`;
        the next worker sends what is left then.

        Args:
            once: import what is there, and end when no call is due any more, or the judge could not
                be reached for a minute; wait for the database for a minute at most.

        Raises:
            ConfigurationError: a spool cannot be used.
            OSError: the store cannot be used and `stop` was called, or a minute is over.
        """
        self._patience = PATIENCE if once else inf
        judges = ThreadPoolExecutor(_JUDGE_THREADS, "rag-eval-judge")  # of `asyncio.to_thread`
        asyncio.get_running_loop().set_default_executor(judges)
        await self._patiently(self._import_all)
        outboxes = [
            _outbox.Outbox(self._store, *sink, self._failures) for sink in self._sinks.items()
        ]
        helpers = [
            asyncio.create_task(self._repeat(LEASE / 3, self._store.renew, self._name)),
            asyncio.create_task(self._repeat(_STATUS, self._tell)),
        ]
        if not once:
            helpers.append(asyncio.create_task(self._repeat(_IMPORT, self._import_all)))
        try:
            with suppress_capture():
                await self._work(once, helpers)
        finally:
            for helper in helpers:
                helper.cancel()
            await Threads(1, "sinks").run(
                partial(_outbox.end, outboxes, 5.0 if self._stopping else 30.0)
            )

    async def _work(self, once: bool, helpers: list[asyncio.Task[None]]) -> None:
        """Judge calls as they come, until stopped or, once, until none is left.

        Raises:
            ConfigurationError: a spool cannot be used.
            OSError: the store cannot be used and `stop` was called.
        """
        while True:
            for helper in helpers:
                if helper.done():  # by an error alone
                    helper.result()
            room = self._room()
            for call in await self._patiently(self._claim, room) if room else []:
                task = asyncio.create_task(self._judge(call, self._outage.lasts))
                self._running[task] = call
                self._asking = task if self._outage.lasts else None
            if not self._running:
                if self._stopping or (once and await self._patiently(self._is_finished)):
                    return
                await asyncio.sleep(_POLL)
                continue
            done, _ = await asyncio.wait(
                self._running, timeout=_POLL, return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                await self._settle([task.result() for task in done])
                for task in done:
                    del self._running[task]
            elif self._stopping and time.monotonic() > self._ends:
                await self._give_back()

    def _room(self) -> int:
        """Return how many calls may be begun beside those in progress."""
        room = self._max_concurrency - len(self._running)
        if self._stopping or any(call.lapsed for call in self._running.values()):
            return 0
        if self._outage.lasts:
            return min(room, int(self._outage.is_due and self._asking not in self._running))
        return room

    def _is_finished(self) -> bool:
        """Tell whether no call waits for an unreachable judge, or the patience for it is over."""
        lasts = self._outage.lasts
        self.waiting = sum(calls for _, calls in self._store.waiting()) if lasts else 0
        return not self.waiting or self._outage.seconds >= PATIENCE

    async def _give_back(self) -> None:
        """Leave the calls in progress to another worker, without the use of a try."""
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running, timeout=1.0)
        outcomes = []
        for task, call in self._running.items():
            if task.done() and not task.cancelled():
                outcomes.append(task.result())
            else:
                outcomes.append(Outcome(call, "due", call.why, uses_try=False))
                self.counts["due"] += 1
                self.hung += 1
        self._running = {}
        await self._settle(outcomes)

    def _claim(self, most: int) -> list[ClaimedCall]:
        """Claim calls, and read what was spent today."""
        if self._dollars is not None:
            self._spent = self._store.spent(self._store.now() // _DAY * _DAY)
        return self._store.claim(self._name, most, busy=bool(self._running))

    async def _judge(self, claimed: ClaimedCall, asked_for_it: bool) -> Outcome:
        """Judge a call; park one that cannot be read, or with which workers ended.

        A call is left out for a run that did not end well, by the sample, and above a budget.

        Args:
            claimed: the call.
            asked_for_it: whether it is to tell if the judge can be reached again.
        """
        if claimed.tries > TRIES:
            killing = f"its worker ended {TRIES} times as it was judged (id {claimed.call_uid})"
            return Outcome(claimed, "parked", killing)
        try:
            call = claimed.call()
        except InputError as error:
            return Outcome(claimed, "parked", f"cannot be read: {error}")
        why = self._reason_to_skip(call)
        if why is None:
            began, answers = time.perf_counter(), self._outage.answers
            if claimed.why is not None and self._outage.is_answering:
                answers -= 1  # there was one since it failed
            evaluation, fate = await self._bounded.evaluate(call)
            if fate != "over_budget":
                outcome = outcome_of(claimed, evaluation, time.perf_counter() - began)
                return self._retry_if_unreachable(outcome, evaluation, answers, asked_for_it)
            why = next(iter(evaluation.scores.values())).reason
        return Outcome(claimed, "left_out", why)

    def _retry_if_unreachable(
        self, outcome: Outcome, evaluation: Evaluation, answers: int, asked_for_it: bool
    ) -> Outcome:
        """Return the outcome; or the call untried, if the judge cannot be reached.

        Args:
            outcome: what becomes of the call otherwise.
            evaluation: of the call.
            answers: number of answers before the call was begun, or had failed before.
            asked_for_it: whether the call was to tell.
        """
        why, call = failure_of(evaluation), outcome.call
        if why is None:
            if evaluation.labels is not None or evaluation.usage.requests > evaluation.usage.failed:
                self._outage.answered()
            return outcome
        self.hung += evaluation.error is not None and evaluation.error.type == "TimeoutError"
        if self._outage.answers > answers:
            return outcome
        self._outage.failed(why, asked_for_it=asked_for_it)
        if time.time() - call.at > self._max_age:
            why = f"older than --max-age, and the judge cannot be reached: {why}"
            return Outcome(call, "parked", why)
        return Outcome(call, "due", why, wait=self._outage.pause / 2, uses_try=False)

    def _reason_to_skip(self, call: RagCall) -> str | None:
        """Return why a call is not judged; None if it is."""
        if call.capture is not None and call.capture.status != "ok":
            return f"the app's run ended as {call.capture.status}"
        if not chosen(sample_key(call), self._sample_rate):
            return f"not in the sample of {self._sample_rate:g}"
        if self._dollars is not None and self._spent >= self._dollars:
            return f"the budget of {self._dollars:g} USD per day is spent"
        return None

    async def _settle(self, outcomes: list[Outcome]) -> None:
        """Record and count outcomes."""
        await self._patiently(self._store.settle, outcomes, self._name, self._sinks)
        self.counts.update(outcome.state for outcome in outcomes if outcome.uses_try)

    def _import_all(self) -> None:
        """Import the calls of all spools, and count them."""
        self.counts["imported"] += self._spool_import.run(lambda: self._stopping)

    def _tell(self) -> None:
        """Say what waits and why, if calls do."""
        waiting = self._store.waiting()
        calls = sum(number for _, number in waiting)
        if calls > len(self._running):
            each = [
                f"{number:,} {one_line(why, 200) or 'new, or in progress'}"
                for why, number in waiting[:_REASONS]
            ]
            self._say(f"{counted(calls, 'call waits', 'calls wait')}: {'; '.join(each)}")

    async def _repeat(self, seconds: float, work: Callable[..., object], *args: object) -> None:
        """Run database work again and again, every so many seconds, after a first wait."""
        while True:
            await asyncio.sleep(seconds)
            await self._patiently(work, *args)

    async def _patiently(self, work: Callable[..., T], *args: object) -> T:
        """Run database work in a thread, retrying once a second while the database is away.

        Failures are logged once per kind.

        Raises:
            OSError: it failed, and `stop` was called or the worker's patience is over.
            Exception: any other failure, at once.
        """
        began = time.monotonic()
        while True:
            try:
                return await self._threads.run(partial(work, *args))
            except OSError as error:
                if self._stopping or time.monotonic() - began > self._patience:
                    raise
                words = visible(words_of(error))
                message = "%s; tried again every second, and logged once"
                self._failures.log(("store", kind_of(error)), message, words)
                await asyncio.sleep(1.0)
