"""`ThrottledModel`: the retry loop around a model, and when and how it retries or gives up.

`with_retries` puts it around a model that does not retry.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_eval_integrations import _process
from rag_eval_integrations._visible import counted, logger_of
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeUnavailableError,
    whole_number,
)
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    ModelBase,
    Reason,
    Waiting,
    WrappedModel,
    completed,
    model_base,
)
from rag_eval_integrations.models.throttling._limits import (
    AdaptiveConcurrency,
    CircuitBreaker,
    LocalPermits,
    Permits,
    estimated_tokens,
)
from rag_eval_integrations.models.throttling._queue import AdmissionQueue, Outcome, Permit
from rag_eval_integrations.records import Usage
from rag_eval_integrations.records._json import is_amount

logger = logger_of(__name__)


class ThrottledModel(WrappedModel, _process.ProcessObserver):
    """A model with rate limits, adaptive concurrency, retries and a circuit breaker.

    This is the one layer that retries: retries of a client below it would multiply with these. Only
    `JudgeUnavailableError` is retried (429, 5xx, timeouts, lost connections); other errors are
    final. An endpoint that has never answered and to which no connection can be made (refused,
    unknown host, TLS) is tried twice within a second, and then all requests fail at once. So is one
    that answers 200 with something else than a chat reply, such as a web page.

    Limits are spread evenly: fifty requests at `rpm=30` start every two seconds, the last at 98 s,
    and no minute has more than thirty starts. Attempts count, not requests. Tokens are estimated
    in advance (characters / 4, plus `max_tokens` or 500 per answer) and corrected by the usage that
    comes back; a request above the whole token limit goes alone, with a warning in the log.

    Concurrency halves on 429 and timeouts and grows on answers (AIMD). Requests start in the order
    in which they came; a retry goes before later requests.

    May be used from several loops and threads, and after a fork (the child starts afresh).

    Args:
        model: the model to ask; its own retries should be off.
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, prompts and answers, above 0; None for no limit.
        permits: a limit shared with other models or processes, from which every attempt also takes
            1 and its estimated tokens; None for none.
        max_concurrency: most concurrent requests, from 1.
        deadline: seconds from the start of the first attempt to the end of the last, above 0. Time
            in the queue before the first attempt does not count: of 10,000 requests at `rpm=30` the
            last one waits for hours.
        on_wait: called when a wait with a known end begins, on the thread that waits; it should
            return quickly. If it raises, it is not called again.
        clock: returns seconds, like `time.monotonic`; timers are the running loop's, so a test
            that controls the loop's time passes `loop.time`.

    Raises:
        ConfigurationError: for an argument out of its range.
    """

    retries = True
    _max_attempts = 8
    """Most attempts per request."""
    _max_failures = 5
    """Requests in a row that fail for good before the circuit opens."""
    _cool_down = 30.0
    """Seconds for which requests then fail at once."""

    def __init__(
        self,
        model: Model,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        permits: Permits | None = None,
        max_concurrency: int = 32,
        deadline: float = 300.0,
        on_wait: Callable[[Waiting], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not is_amount(deadline):
            raise ConfigurationError("deadline", deadline, "use a finite number above 0")
        whole_number("max_concurrency", max_concurrency)
        if permits is not None and not isinstance(permits, Permits):
            raise ConfigurationError(
                "permits", permits, "pass an object with `async take(requests, tokens)`"
            )
        super().__init__(model)
        self._permits = permits
        self._rpm, self._tpm, self._most = rpm, tpm, max_concurrency
        self.max_concurrency: int = max_concurrency
        self._deadline = deadline
        self._on_wait, self._clock = on_wait, clock
        self._random = random.Random()
        self._warned = False
        self.after_fork()
        _process.register(self)

    def after_fork(self) -> None:
        """Start with no requests in flight, full limits and a closed circuit.

        The parent's requests are answered in the parent.
        """
        self._queue = AdmissionQueue(
            LocalPermits(self._rpm, self._tpm),
            AdaptiveConcurrency(self._most),
            CircuitBreaker(self.name, self._max_failures, self._cool_down),
            self._clock,
            self._on_wait,
        )

    def waiting(self) -> Waiting | None:
        """Return what requests are waiting for, for a progress line; None when none waits.

        May be called from any thread; takes microseconds.
        """
        return self._queue.waiting()

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request when the limits allow it, with retries.

        The usage has the failed attempts as well, also that of an error.

        Raises:
            JudgeUnavailableError: given up; the message has the number of attempts, the seconds,
                the reason and the last failure (also its `__cause__`). Raised at once when the
                circuit is open, or when the endpoint asks to wait beyond the deadline.
            JudgeRejectedError: raised by the model; not retried.
        """
        queue = self._queue
        attempts = Attempts(self.name, self._deadline, queue.next_sequence(), self._tokens(request))
        while True:
            permit = await self._acquire(queue, attempts)
            answer = await self._attempt(queue, permit, request, attempts)
            if isinstance(answer, Completion):
                if attempts.failed.requests:
                    usage = answer.usage + attempts.failed
                    answer = answer.model_copy(update={"usage": usage})
                if queue.is_waiting:
                    # The next request is sent before this answer is read and scored.
                    await asyncio.sleep(0)
                return answer
            attempts.last = answer
            await self._back_off(queue, attempts, answer)

    def _tokens(self, request: CompletionRequest) -> int:
        """Estimate the tokens of a request; 0 without a token limit and shared permits.

        The first estimate above the limit is logged.
        """
        if self._tpm is None and self._permits is None:
            return 0
        tokens = estimated_tokens(request)
        if self._tpm is not None and tokens > self._tpm and not self._warned:
            self._warned = True
            logger.warning(
                "a request of about %d tokens is above the limit of %g tokens per minute; such "
                "requests go alone, a minute apart from others (logged once)",
                tokens,
                self._tpm,
            )
        return tokens

    def _booked(self, completion: Completion, estimate: int) -> int:
        """Return the tokens that a reply took of the limit; 0 when it does not say.

        At most the whole limit, or the estimate if that is higher: a count that a server makes up
        would hold all others for years. Without a limit, the count as it is.
        """
        used = completion.usage.prompt_tokens + completion.usage.completion_tokens
        return used if self._tpm is None else min(used, max(estimate, math.ceil(self._tpm)))

    async def _acquire(self, queue: AdmissionQueue, attempts: Attempts) -> Permit:
        """Wait for the permits of an attempt.

        Raises:
            JudgeUnavailableError: the deadline passed while waiting, or the circuit is open.
        """
        try:
            permit = await queue.acquire(attempts.sequence, attempts.tokens, attempts.end)
            if self._permits is not None:
                await queue.share(permit, self._permits, attempts.tokens, attempts.end)
            return permit
        except TimeoutError as reason:
            why = f"the deadline of {self._deadline:g} s passed while waiting ({reason})"
            raise self._given_up(queue, attempts, why) from attempts.last
        except JudgeUnavailableError as is_open:
            if not attempts.number:
                raise
            raise self._cut_short(attempts, is_open) from attempts.last

    async def _attempt(
        self, queue: AdmissionQueue, permit: Permit, request: CompletionRequest, attempts: Attempts
    ) -> Completion | JudgeUnavailableError:
        """Make one attempt; return the failure when another attempt may help.

        The permit is returned in any case. `attempts` counts the attempt and its usage.

        Raises:
            JudgeUnavailableError: the deadline passed.
            JudgeError: any failure that is not temporary.
        """
        outcome: Outcome = "unknown"
        used, why, connected = 0, "", True
        end = attempts.begin(permit.started)
        try:
            async with asyncio.timeout(max(0.0, end - self._clock())) as limit:
                completion = await completed(self._wrapped, request)
            outcome = "answered"
            used = self._booked(completion, attempts.tokens)
            return completion
        except JudgeUnavailableError as error:
            outcome, why = ("overloaded" if overloaded(error) else "failed"), str(error)
            connected = error.connected
            attempts.count(error, sent=connected or error.status is not None)
            return error
        except JudgeError as error:
            outcome = "answered"  # by a refusal or by nonsense: the endpoint is up
            attempts.count(error)
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            outcome, why = "overloaded", f"no answer in {self._deadline:g} s"
        finally:
            queue.release(permit, outcome, tokens=used, why=why, connected=connected)
        why = f"the deadline of {self._deadline:g} s passed without an answer"
        raise self._given_up(queue, attempts, why) from attempts.last

    async def _back_off(
        self, queue: AdmissionQueue, attempts: Attempts, last: JudgeUnavailableError
    ) -> None:
        """Wait before the next attempt, or raise the reason why there is none.

        There is none after the last attempt, when the pause would go beyond the deadline, when no
        connection could be made twice, or once in more than a second, and when the circuit opens.
        Each but the last is counted for the circuit.

        Raises:
            JudgeUnavailableError: there is none.
        """
        unreachable = not last.connected and not queue.was_up
        no_chat = not last.connected and last.status is not None
        slow = attempts.seconds(self._clock()) > _QUICK
        if (unreachable or no_chat) and (slow or attempts.number >= min(2, self._max_attempts)):
            queue.record_failure(str(last), unreachable=unreachable)
            raise attempts.error(self._clock(), "no connection") from last
        if attempts.number >= self._max_attempts:
            raise self._given_up(queue, attempts, "the maximum") from last
        seconds = pause(attempts.number, last.retry_after, self._random)
        if unreachable:
            seconds = _SOON
        reason: Reason = "Retry-After" if seconds == last.retry_after else "backoff"
        if seconds > attempts.remaining(self._clock()):
            asked = seconds == last.retry_after
            who = "the endpoint asks to wait" if asked else "the next is due in"
            why = f"{who} {seconds:.3g} s, beyond the deadline of {self._deadline:g} s"
            raise self._given_up(queue, attempts, why) from last
        try:
            others = pause_for_others(last, seconds)
            why = "" if unreachable else str(last)  # told in a moment, when it is known for sure
            await queue.backoff(seconds, reason, others=others, why=why)
        except JudgeUnavailableError as is_open:
            raise self._cut_short(attempts, is_open) from last

    def _given_up(
        self, queue: AdmissionQueue, attempts: Attempts, why: str
    ) -> JudgeUnavailableError:
        """Make the error of a request that is given up, and count it for the circuit."""
        error = attempts.error(self._clock(), why)
        queue.record_failure(str(attempts.last or error))
        return error

    def _cut_short(
        self, attempts: Attempts, is_open: JudgeUnavailableError
    ) -> JudgeUnavailableError:
        """Make the error of a request whose retry an open circuit refuses; not counted for it."""
        why = f"other requests fail as well, so none is sent for {is_open.retry_after:.0f} s"
        return attempts.error(self._clock(), why)


def with_retries(model: Model) -> ModelBase:
    """Wrap a model in `ThrottledModel`, unless it retries already (`retries` is true)."""
    known = model_base(model)
    return known if known.retries else ThrottledModel(known)


_QUICK = 1.0
"""Seconds that a first attempt to connect may take for a second one to be made. Looking up a host
may take ten, and a person waits."""
_SOON = 0.3
"""Seconds before that second attempt, which a server that is just starting may still miss."""

_FIRST = 1.0
"""Longest first pause in seconds. With 0.5, eight attempts ended within a minute, before a quota
per minute that sends no Retry-After is renewed."""
_LONGEST = 30.0
"""Longest pause in seconds, unless the endpoint asks for more."""

_OVERLOADED = frozenset({408, 429, 503, 504, 529})


def overloaded(error: JudgeUnavailableError) -> bool:
    """Whether a failure means that the endpoint is overloaded.

    429, 503 and 529 say so; 408, 504 and a failure without a status (a timeout, a lost connection)
    may have the same cause. A 500 concerns one request, and where no connection can be made there
    is nobody to be overloaded.
    """
    return error.connected and (error.status is None or error.status in _OVERLOADED)


def pause(attempt: int, retry_after: float | None, random_: random.Random) -> float:
    """Seconds before the next attempt: exponential backoff with full jitter.

    Uniform in [0, min(30, 2^(attempt - 1))], so that requests that failed together do not
    come back together; at least `retry_after` if the endpoint sent one.

    Args:
        attempt: how many attempts were made, from 1.
        retry_after: seconds that the endpoint asked to wait; None if it did not.
        random_: source of the jitter.
    """
    jittered = random_.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))
    return max(jittered, retry_after or 0.0)


def pause_for_others(error: JudgeUnavailableError, seconds: float) -> float:
    """Seconds that all other requests wait when none is answered.

    A 429 or a Retry-After concerns all requests: they wait as long as this one. After other
    failures they wait at most one second, so that an endpoint that is down is detected in one
    minute, not in four.

    Args:
        error: the failure.
        seconds: how long this request waits.
    """
    if error.status == 429 or error.retry_after is not None:
        return seconds
    return min(seconds, 1.0)


_NONE = Usage()


@dataclass(slots=True)
class Attempts:
    """The attempts made for one request."""

    name: str
    """The model's name."""
    deadline: float
    """Seconds from the start of the first attempt to the end of the last."""
    sequence: int
    """The request's place in the order."""
    tokens: int
    """Estimate of the tokens that each attempt takes of the limit."""
    number: int = 0
    """Number of attempts that have started."""
    started: float | None = None
    """When the first attempt started."""
    last: JudgeUnavailableError | None = None
    """The failure of the last attempt."""
    failed: Usage = _NONE
    """Usage of the attempts that failed."""

    def count(self, error: JudgeError, *, sent: bool = True) -> None:
        """Count a failed attempt, and have its error tell the usage of all of them.

        A failure without usage counts as one failed request, or as none if it was not `sent`.
        """
        self.failed += error.usage or Usage(requests=sent, failed=sent)
        error.usage = self.failed

    @property
    def end(self) -> float | None:
        """When the deadline passes; None before the first attempt."""
        return None if self.started is None else self.started + self.deadline

    def remaining(self, now: float) -> float:
        """Seconds until the deadline, below 0 after it; all of them before the first attempt."""
        return self.deadline if self.started is None else self.started + self.deadline - now

    def seconds(self, now: float) -> float:
        """Seconds since the start of the first attempt; 0 before it."""
        return 0.0 if self.started is None else now - self.started

    def begin(self, now: float) -> float:
        """Count an attempt; return when the deadline passes, which the first attempt starts."""
        self.number += 1
        if self.started is None:
            self.started = now
        return self.started + self.deadline

    def error(self, now: float, why: str) -> JudgeUnavailableError:
        """Make the error of a request that is given up.

        It has the status and wait of the last failure, and the usage of all of them.

        Args:
            now: the time.
            why: why there is no other attempt.
        """
        last = self.last
        took = f"{counted(self.number, 'attempt')} in {self.seconds(now):.1f} s"
        cause = "" if last is None else f"; the last failure: {last}"
        message = f"{self.name} did not answer: {took}, {why}{cause}"
        if last is not None and not last.connected:
            message = f"{last} ({took})"  # the reason first, which says all
        error = JudgeUnavailableError(
            message,
            status=None if last is None else last.status,
            retry_after=None if last is None else last.retry_after,
            connected=last is None or last.connected,
        )
        error.usage = self.failed
        return error
