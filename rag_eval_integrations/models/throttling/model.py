"""`ThrottledModel`: the retry loop around a model."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    WrappedModel,
)
from rag_eval_integrations.models.throttling._limits import PerMinute, estimated_tokens
from rag_eval_integrations.models.throttling._load import AdaptiveConcurrency, Circuit
from rag_eval_integrations.models.throttling._queue import Line, Outcome, Reason, Turn, Waiting

logger = logging.getLogger(__name__)


class ThrottledModel(WrappedModel):
    """A model that keeps limits, retries what may succeed, and gives up on a dead endpoint.

    The one layer that retries: a client's own retries below it would multiply with these. Retried
    is `JudgeUnavailableError` only (429, 5xx, timeouts, no connection); all else is final at once.

    Limits are spread evenly: fifty requests at `rpm=30` start every two seconds, the last at 98 s,
    and no minute sees more than thirty starts. Attempts count, not requests. Tokens are estimated
    before (characters / 4, plus `max_tokens` or 500 an answer) and corrected by the usage that
    comes back; a request above the whole token limit goes alone, with a warning in the log.

    Concurrency halves on 429 and timeouts and grows on answers (`AdaptiveConcurrency`). Requests go
    in the order in which they came, those tried again before younger ones.

    May be used from several loops and threads, and after a fork (which starts anew).

    Args:
        model: the model to ask; its own retries should be off.
        rpm: requests a minute, above 0; None for no limit.
        tpm: tokens a minute, prompt and answers, above 0; None for no limit.
        max_concurrency: most requests at once, from 1.
        deadline: seconds from the start of the first attempt to the end of the last, above 0. The
            time before that, in the line, does not count: in a line of 10,000 at `rpm=30` the last
            waits for hours, and rightly so.
        max_attempts: most attempts a request, from 1.
        on_wait: called with what is waited for when a wait with a known end begins, on the thread
            that waits; it should return quickly. If it raises, it is not called again.
        max_failures: requests in a row that fail for good before the circuit opens, from 1.
        cool_down: seconds for which requests then fail at once, from 0.
        clock: seconds, like `time.monotonic`; timers are the running loop's, so a test that owns
            the loop's time passes `loop.time`.

    Raises:
        ConfigurationError: for an argument out of its range.
    """

    retries = True

    def __init__(
        self,
        model: Model,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        max_concurrency: int = 32,
        deadline: float = 300.0,
        max_attempts: int = 8,
        on_wait: Callable[[Waiting], None] | None = None,
        max_failures: int = 5,
        cool_down: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for field, number in (("rpm", rpm), ("tpm", tpm), ("deadline", deadline)):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise ConfigurationError(field, number, "use a finite number above 0")
        for field, count in (
            ("max_concurrency", max_concurrency),
            ("max_attempts", max_attempts),
            ("max_failures", max_failures),
        ):
            if count < 1:
                raise ConfigurationError(field, count, "use a whole number from 1")
        if not (math.isfinite(cool_down) and cool_down >= 0):
            raise ConfigurationError("cool_down", cool_down, "use a finite number from 0")
        super().__init__(model)
        self._rpm, self._tpm, self._max_concurrency = rpm, tpm, max_concurrency
        self._deadline, self._max_attempts = deadline, max_attempts
        self._max_failures, self._cool_down = max_failures, cool_down
        self._on_wait, self._clock = on_wait, clock
        self._random = random.Random()
        self._warned = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._line = Line(
            None if self._rpm is None else PerMinute(self._rpm),
            None if self._tpm is None else PerMinute(self._tpm),
            AdaptiveConcurrency(self._max_concurrency),
            Circuit(self.name, self._max_failures, self._cool_down),
            self._clock,
            self._on_wait,
        )

    def waiting(self) -> Waiting | None:
        """Return what is being waited for, for a progress line; None when nobody waits.

        From any thread; a snapshot that costs microseconds.
        """
        return self._line.waiting()

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request when the limits allow it, after as many attempts as it takes.

        Raises:
            JudgeUnavailableError: given up; says after how many attempts and seconds, why, and the
                last failure (which is its cause). At once when the circuit is open, or when the
                judge asks to wait beyond the deadline.
            JudgeRejectedError: as the model raised it.
        """
        if self._process != os.getpid():
            # A child of a fork has the parent's requests in flight in its counts, and would wait
            # for them for ever.
            self._begin()
        line = self._line
        tries = Tries(self.name, self._deadline, line.ticket(), self._tokens(request))
        while True:
            turn = await self._turn(line, tries)
            answer = await self._attempt(line, turn, request, tries)
            if isinstance(answer, Completion):
                return answer
            tries.last = answer
            await self._rest(line, tries, answer)

    def _tokens(self, request: CompletionRequest) -> int:
        if self._tpm is None:
            return 0
        tokens = estimated_tokens(request)
        if tokens > self._tpm and not self._warned:
            self._warned = True
            logger.warning(
                "a request of about %d tokens is above the limit of %g tokens a minute; such "
                "requests go alone, a minute apart from others (said once)",
                tokens, self._tpm,
            )  # fmt: skip
        return tokens

    async def _turn(self, line: Line, tries: Tries) -> Turn:
        try:
            return await line.turn(tries.ticket, tries.tokens, tries.end)
        except TimeoutError as reason:
            why = f"the deadline of {self._deadline:g} s passed while waiting ({reason})"
            raise self._given_up(line, tries, why) from tries.last
        except JudgeUnavailableError as is_open:
            if not tries.made:
                raise
            raise self._cut_short(tries, is_open) from tries.last

    async def _attempt(
        self, line: Line, turn: Turn, request: CompletionRequest, tries: Tries
    ) -> Completion | JudgeUnavailableError:
        """Ask once; the failure is returned when another attempt may help."""
        outcome: Outcome = "unknown"
        used, why = 0, ""
        end = tries.begin(turn.began)
        try:
            async with asyncio.timeout(max(0.0, end - self._clock())) as limit:
                completion = await self._wrapped.complete(request)
            outcome = "answered"
            used = completion.usage.prompt_tokens + completion.usage.completion_tokens
            return completion
        except JudgeUnavailableError as error:
            outcome, why = ("overloaded" if overloaded(error) else "failed"), str(error)
            return error
        except JudgeError:
            outcome = "answered"  # with a refusal or nonsense, but it is there
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            outcome, why = "overloaded", f"no answer in {self._deadline:g} s"
        finally:
            line.leave(turn, outcome, tokens=used, why=why)
        why = f"the deadline of {self._deadline:g} s passed without an answer"
        raise self._given_up(line, tries, why) from tries.last

    async def _rest(self, line: Line, tries: Tries, last: JudgeUnavailableError) -> None:
        """Wait before the next attempt, or say why there is none."""
        if tries.made >= self._max_attempts:
            raise self._given_up(line, tries, "as many as are made") from last
        seconds = pause(tries.made, last.retry_after, self._random)
        reason: Reason = "Retry-After" if seconds == last.retry_after else "backoff"
        if seconds > tries.remaining(self._clock()):
            who = "the judge asks to wait" if seconds == last.retry_after else "the next is due in"
            why = f"{who} {seconds:.3g} s, beyond the deadline of {self._deadline:g} s"
            raise self._given_up(line, tries, why) from last
        try:
            await line.rest(seconds, reason, others=pause_for_others(last, seconds))
        except JudgeUnavailableError as is_open:
            raise self._cut_short(tries, is_open) from last

    def _given_up(self, line: Line, tries: Tries, why: str) -> JudgeUnavailableError:
        error = tries.error(self._clock(), why)
        line.failed(str(tries.last or error))
        return error

    def _cut_short(self, tries: Tries, is_open: JudgeUnavailableError) -> JudgeUnavailableError:
        why = f"no other request is answered either, so none goes for {is_open.retry_after:.0f} s"
        return tries.error(self._clock(), why)


# --- When to ask again, and what to say when it is given up


_FIRST = 1.0
"""Seconds. With 0.5, eight attempts were over within a minute, sooner than a quota by the minute
that sends no Retry-After is renewed."""
_LONGEST = 30.0

_OVERLOADED = frozenset({408, 429, 503, 504, 529})


def overloaded(error: JudgeUnavailableError) -> bool:
    """Whether a failure says that the judge has too much to do.

    429, 503, 529 say so; 408, 504 and a failure without a status (a timeout, no connection) look
    the same from outside. A 500 is an accident of one request.
    """
    return error.status is None or error.status in _OVERLOADED


def pause(attempt: int, retry_after: float | None, random_: random.Random) -> float:
    """Seconds before the next attempt: full jitter, and never before the judge allows it.

    Uniform in [0, min(30, 2^(attempt - 1))], so that requests that failed together do not
    come back together; at least `retry_after` where the judge gave it.

    Args:
        attempt: how many attempts were made, from 1.
        retry_after: seconds that the judge asked to wait.
        random_: where chance comes from.
    """
    jittered = random_.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))
    return max(jittered, retry_after or 0.0)


def pause_for_others(error: JudgeUnavailableError, seconds: float) -> float:
    """Seconds that all requests wait when none is answered.

    A 429 or a Retry-After is meant for all: they wait as long as this one. After other failures
    they wait a second at most, so that a dead judge is found dead in one minute, not in four.

    Args:
        error: the failure.
        seconds: how long this request waits.
    """
    if error.status == 429 or error.retry_after is not None:
        return seconds
    return min(seconds, 1.0)


@dataclass(slots=True)
class Tries:
    """What was tried for one request."""

    name: str
    """The judge's name."""
    deadline: float
    """Seconds from the start of the first attempt to the end of the last."""
    ticket: int
    """Place in the line."""
    tokens: float
    """Estimate of what each attempt takes of the token limit."""
    made: int = 0
    """Attempts that have begun."""
    began: float | None = None
    """When the first began."""
    last: JudgeUnavailableError | None = None
    """The last attempt's failure."""

    @property
    def end(self) -> float | None:
        """When the deadline passes; None before the first attempt."""
        return None if self.began is None else self.began + self.deadline

    def remaining(self, now: float) -> float:
        """Seconds until the deadline."""
        return self.deadline if self.began is None else self.began + self.deadline - now

    def begin(self, now: float) -> float:
        """Count an attempt; return when the deadline passes."""
        self.made += 1
        if self.began is None:
            self.began = now
        return self.began + self.deadline

    def error(self, now: float, why: str) -> JudgeUnavailableError:
        """Make the error of a request that is given up.

        Args:
            now: the time.
            why: what forbids another attempt.
        """
        last = self.last
        times = "1 attempt" if self.made == 1 else f"{self.made} attempts"
        seconds = now - (now if self.began is None else self.began)
        cause = "" if last is None else f"; the last failure: {last}"
        return JudgeUnavailableError(
            f"{self.name} did not answer: {times} in {seconds:.1f} s, {why}{cause}",
            status=None if last is None else last.status,
            retry_after=None if last is None else last.retry_after,
        )
