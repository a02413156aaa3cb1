"""The estimators of G-Eval: ask the model by log-probabilities, else by samples, else once.

A request for log-probabilities asks for neither a JSON format nor a tool: with structured output
the score's token carries the probability under the grammar, and with tools it carries none
(openai-python #2227). Samples differ in their seeds, so that a cache does not answer all of them
with the first.

The fallback chain is for models that do not support an estimator. A model that does not answer is
an error: falling back would make the method depend on when the model failed.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Literal

from rag_eval_integrations.errors import JudgeError, JudgeUnavailableError
from rag_eval_integrations.metrics.geval._expectation import (
    Expectation,
    Unusable,
    expectation,
    place_of,
)
from rag_eval_integrations.metrics.geval._prompt import SCORE_VERSION, score_schema
from rag_eval_integrations.metrics.geval._reply import RatingReply, paper_score, read_reply
from rag_eval_integrations.metrics.geval._settings import EstimatorSettings
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    completed,
)
from rag_eval_integrations.records import Score, Usage
from rag_eval_integrations.records._json import JsonObject
from rag_eval_integrations.records.labels import UnscoredCode

# --- Estimates: a score with its uncertainty, or the reason why there is none


Method = Literal["logprobs", "monte_carlo", "single"]


@dataclass(frozen=True, slots=True)
class RatingEstimate:
    """A score estimated from one model's answers."""

    raw: float
    """Score on the metric's own scale."""
    method: Method
    distribution: Mapping[float, float]
    """Probability by score, or the shares of the samples; adds up to 1."""
    n: int
    """Number of answers used."""
    mass: float
    """With log-probabilities, the probability on the scale; with samples, the share used."""
    reply: str
    """The model's reply with its reasoning; of samples, the one nearest to the mean."""
    reason: str
    """The reasoning alone."""
    std: float | None = None
    """Standard deviation; None for a single answer."""
    std_error: float | None = None
    """Standard error of the mean over samples; None for the other methods and for one sample."""
    sampled: Mapping[str, int] = field(default_factory=dict)
    """Numbers of samples `asked` for, `given` and `used`, and of those dropped, by reason code."""
    shift: float = 0.0
    """How far `raw` may be off because a digit may have begun a longer number; 0 if none may."""

    @property
    def argmax(self) -> float:
        """The likeliest score; the lowest of equally likely ones."""
        return max(self.distribution, key=lambda score: (self.distribution[score], -score))


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """The reason why there is no score."""

    code: UnscoredCode
    why: str
    reply: str = ""


def read_choice(choice: Choice, plan: EstimatorSettings) -> RatingReply | NoEstimate:
    """Read one answer: its score, or the reason why it has none.

    A refusal, a content filter, a reply that was cut off, or one without a score.
    """
    if choice.finish_reason == "refusal" or choice.refusal:
        words = " ".join((choice.refusal or choice.text).split())[:200]
        return NoEstimate("refusal", f"the judge refused: {words}", choice.text)
    if choice.finish_reason == "content_filter":
        return NoEstimate("content_filter", "the judge's content filter stopped the answer")
    if plan.paper_parser is not None:
        return RatingReply(paper_score(choice.text, plan.paper_parser), None, choice.text)
    reading = read_reply(choice.text, plan.name, plan.scale)
    cut = choice.finish_reason == "length"
    unfinished = cut and (not reading.sure or _may_go_on(reading, choice.text, plan))
    if reading.problem is None and not unfinished:
        return reading
    if cut:
        why = f"the judge's answer was cut off (max_tokens={plan.max_tokens})"
        return NoEstimate("truncated", why, choice.text)
    return NoEstimate(reading.problem or "judge_output_invalid", reading.reason, choice.text)


def _may_go_on(reading: RatingReply, text: str, plan: EstimatorSettings) -> bool:
    """Tell whether a reply was cut off at the score's digits, so that more might have followed."""
    at_the_end = reading.span is None or reading.span[1] == len(text.rstrip())
    return at_the_end and plan.scale[1] > 9


def of_logprobs(expected: Expectation, reading: RatingReply, reply: str) -> RatingEstimate:
    """Make a rating estimate from the expectation over token probabilities."""
    distribution = {float(k): p for k, p in expected.distribution.items()}
    return RatingEstimate(
        raw=expected.value,
        method="logprobs",
        distribution=distribution,
        n=1,
        mass=expected.mass,
        reply=reply,
        reason=reading.reason,
        std=expected.std,
        shift=expected.shift,
    )


def of_single(reading: RatingReply, reply: str) -> RatingEstimate:
    """Make the estimate of one answer."""
    assert reading.score is not None
    return RatingEstimate(
        raw=reading.score,
        method="single",
        distribution={reading.score: 1.0},
        n=1,
        mass=1.0,
        reply=reply,
        reason=reading.reason,
    )


def of_samples(choices: Sequence[Choice], plan: EstimatorSettings) -> RatingEstimate | NoEstimate:
    """Estimate the rating by the mean of samples; those without a score are dropped.

    The reply and its reason are of the sample nearest to the mean. Without any score, the most
    frequent reason why there is none.
    """
    used: list[tuple[float, str, str]] = []
    dropped: list[NoEstimate] = []
    for choice in choices:
        reading = read_choice(choice, plan)
        if isinstance(reading, NoEstimate):
            dropped.append(reading)
        elif reading.score is not None:
            used.append((reading.score, choice.text, reading.reason))
    reasons: Counter[UnscoredCode] = Counter(problem.code for problem in dropped)
    if not used:
        code, count = reasons.most_common(1)[0]
        first = next(problem for problem in dropped if problem.code == code)
        why = f"{count} of {len(choices)} samples: {first.why}"
        return NoEstimate(code, why, first.reply)
    scores = [score for score, _, _ in used]
    # The published tables add up one by one, and their ties depend on that rounding.
    total = math.fsum(scores) if plan.paper_parser is None else reduce(add, scores)
    mean = total / len(scores)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    std = math.sqrt(squares / (len(scores) - 1)) if len(scores) > 1 else None
    _, reply, reason = min(used, key=lambda item: abs(item[0] - mean))
    counts = Counter(scores)
    sampled = {"asked": plan.samples, "given": len(choices), "used": len(used)}
    sampled |= {str(code): count for code, count in reasons.items()}
    return RatingEstimate(
        raw=mean,
        method="monte_carlo",
        n=len(scores),
        mass=len(scores) / len(choices),
        distribution={score: counts[score] / len(scores) for score in sorted(counts)},
        reply=reply,
        reason=reason,
        std=std,
        std_error=None if std is None else std / math.sqrt(len(scores)),
        sampled=sampled,
    )


# --- Asking the model


_NONE_RETURNED = "the judge returned no log-probabilities"
_ROUNDS = 3
"""Number of times that missing samples are requested again."""
_LEAST_GIVEN = 0.5
"""Share of the samples below which a failed request fails the whole estimate."""


@dataclass
class EstimatorRun:
    """The requests for one score, with their usage and warnings."""

    judge: Model
    messages: tuple[Message, ...]
    plan: EstimatorSettings
    without_logprobs: str | None = None
    """Why the judge is known to return no log-probabilities, or only placeholders; set by the first
    request."""
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """Model that answered, as the endpoint names it."""
    warnings: dict[str, None] = field(default_factory=dict)
    """Warnings without repeats, in order."""

    async def estimate(self) -> RatingEstimate | NoEstimate:
        """Estimate the score by the requested estimator, or by the first that `auto` finds to work.

        Raises:
            JudgeError: the judge does not answer.
        """
        if self.plan.estimator == "single":
            return await self._single()
        if self.plan.estimator == "monte_carlo":
            return await self._monte_carlo()
        pinned = self.plan.estimator == "logprobs"
        # The parsers of published tables give no position to read probabilities at.
        skip = self.without_logprobs is not None or self.plan.paper_parser is not None
        if skip and not pinned:
            if self.without_logprobs is not None:
                self._warn_of_fallback(self.without_logprobs)
            return await (self._monte_carlo() if self.plan.samples > 1 else self._single())
        answer = await self._logprobs()
        if not isinstance(answer, _NoLogprobs):
            return answer
        if pinned:
            why = (
                f"{answer.why}: the judge {self.judge.name} does not support "
                "estimator='logprobs' here; use estimator='monte_carlo', or 'auto', which falls "
                "back to it"
            )
            return NoEstimate("judge_incapable", why, answer.reply)
        greedy = of_single(answer.reading, answer.reply)
        self._warn_of_fallback(answer.why)
        return greedy if self.plan.samples == 1 else await self._samples_or_greedy(greedy)

    def _warn_of_fallback(self, why: str) -> None:
        """Note that another estimator was used, and why."""
        if self.plan.samples == 1:
            self._warn(f"one answer instead of an expectation: {why}")
        else:
            self._warn(f"samples instead of log-probabilities: {why}")

    async def _samples_or_greedy(self, greedy: RatingEstimate) -> RatingEstimate:
        """Return the estimate of samples, or the greedy one, with a warning, if sampling fails.

        A judge that does not answer is raised.
        """
        try:
            sampled = await self._monte_carlo()
        except JudgeUnavailableError:
            raise
        except JudgeError as error:
            sampled = NoEstimate("judge_incapable", str(error)[:200])
        if isinstance(sampled, NoEstimate):
            self._warn(f"one answer instead of samples: {sampled.why}")
            return greedy
        return sampled

    # --- The three estimators ---------------------------------------------------------------------

    async def _logprobs(self) -> RatingEstimate | NoEstimate | _NoLogprobs:
        """Estimate the rating from the log-probabilities of one answer, or say why it cannot be.

        A judge that sends none, or placeholders, is remembered.
        """
        completion = await self._ask(
            CompletionRequest(
                messages=self.messages,
                top_logprobs=self.plan.top_logprobs,
                temperature=0.0,
                max_tokens=self.plan.max_tokens,
                prompt_version=SCORE_VERSION,
            )
        )
        choice = completion.choices[0]
        reading = read_choice(choice, self.plan)
        # An empty answer has no tokens either, which says nothing about the judge.
        if not choice.tokens and choice.text.strip():
            self.without_logprobs = _NONE_RETURNED
        if isinstance(reading, NoEstimate):
            return reading
        why = None
        if not choice.tokens:
            why = _NONE_RETURNED
        elif reading.span is None:
            why = f"the score {reading.score:g} is not an integer"
        else:
            place = place_of(choice.text, reading.span, choice.tokens)
            if place is None:
                why = "the tokens do not spell the reply"
            else:
                expected = expectation(choice.tokens, place, self.plan.scale)
                if not isinstance(expected, Unusable):
                    return of_logprobs(expected, reading, choice.text)
                why = expected.why
                self.without_logprobs = why if expected.placeholder else None
        return _NoLogprobs(why, reading, choice.text)

    async def _single(self) -> RatingEstimate | NoEstimate:
        """Estimate the rating by one greedy answer."""
        completion = await self._ask(self._request(n=1, temperature=0.0))
        choice = completion.choices[0]
        reading = read_choice(choice, self.plan)
        return reading if isinstance(reading, NoEstimate) else of_single(reading, choice.text)

    async def _monte_carlo(self) -> RatingEstimate | NoEstimate:
        """Estimate the rating from several sampled answers.

        Those that a judge does not give at once are asked for in further rounds; a failure is
        raised if too few came.
        """
        wanted = self.plan.samples
        temperature = self.plan.temperature
        first = await self._ask(self._request(n=wanted, temperature=temperature))
        choices = list(first.choices[:wanted])
        at_once, seed = len(choices), 0
        if at_once < wanted:
            self._warn(
                f"{wanted} answers were asked for at once and {at_once} given: the others took "
                "more requests"
            )
        failure: JudgeError | None = None
        for _ in range(_ROUNDS):
            missing = wanted - len(choices)
            if missing <= 0:
                break
            sizes = [min(at_once, missing - done) for done in range(0, missing, at_once)]
            requests = [
                self._request(n=size, temperature=temperature, seed=seed + number)
                for number, size in enumerate(sizes, 1)
            ]
            seed += len(requests)
            given, failure = await self._top_up(requests)
            choices += given
        choices = choices[:wanted]
        if failure is not None and len(choices) < _LEAST_GIVEN * wanted:
            raise failure
        if len(choices) < wanted:
            self._warn(f"{len(choices)} of {wanted} requested samples were returned")
        return of_samples(choices, self.plan)

    async def _top_up(
        self, requests: Sequence[CompletionRequest]
    ) -> tuple[list[Choice], JudgeError | None]:
        """Request more samples; a request that fails does not discard the others."""
        answers = await asyncio.gather(*map(self._ask, requests), return_exceptions=True)
        choices: list[Choice] = []
        failure: JudgeError | None = None
        for item in answers:
            if isinstance(item, JudgeError):
                failure = item
                self._warn(f"a request for samples failed: {str(item)[:200]}")
            elif isinstance(item, BaseException):
                raise item
            else:
                choices += item.choices
        return choices, failure

    def _request(self, *, n: int, temperature: float, seed: int | None = None) -> CompletionRequest:
        """Make the request for n answers."""
        schema = score_schema(self.plan.scale) if self.plan.form == "json" else None
        return CompletionRequest(
            messages=self.messages,
            json_schema=schema,
            schema_name="score",
            n=n,
            temperature=temperature,
            max_tokens=self.plan.max_tokens,
            seed=seed,
            prompt_version=SCORE_VERSION,
        )

    async def _ask(self, request: CompletionRequest) -> Completion:
        """Ask the judge, and note usage, model and warnings."""
        try:
            completion = await completed(self.judge, request)
        except JudgeError as error:
            self.usage += error.usage or Usage()
            raise
        self.usage += completion.usage
        self.model = self.model or completion.model
        for warning in completion.warnings:
            # The fallback chain reports these two in its own words.
            if "answers were asked for" not in warning and "log-probabilities" not in warning:
                self._warn(warning)
        return completion

    def _warn(self, warning: str) -> None:
        """Note a warning once."""
        self.warnings[warning] = None


@dataclass(frozen=True, slots=True)
class _NoLogprobs:
    """An answer with a score, and the reason why its log-probabilities cannot be used."""

    why: str
    reading: RatingReply
    reply: str


# --- From an estimate to a `Score`

_MOST_REPLY = 8_000
"""Characters of a reply that the evidence keeps."""


def score_of(
    estimate: RatingEstimate | NoEstimate,
    scale: tuple[int, int],
    *,
    strict: bool,
    steps: Sequence[str],
    **fields: Any,
) -> Score:
    """Make the `Score` of an estimate.

    `value` is (raw - lowest) / (highest - lowest), in [0, 1]; for a strict metric, 1.0 when the
    likeliest score is the highest of the scale, else 0.0.

    Args:
        estimate: the estimate, or the reason why there is none.
        scale: lowest and highest score.
        strict: whether the metric is.
        steps: the evaluation steps, for the evidence.
        fields: the other fields of the `Score`.
    """
    low, high = scale
    evidence: JsonObject = {"steps": list(steps)} if steps else {}
    if estimate.reply:
        evidence["reply"] = estimate.reply[:_MOST_REPLY]
    if isinstance(estimate, NoEstimate):
        return Score(
            status="unscored",
            unscored=estimate.code,
            reason=estimate.why,
            scale=scale,
            evidence=evidence or None,
            **fields,
        )
    evidence |= {"argmax": estimate.argmax, "std": estimate.std}
    if estimate.sampled:
        evidence["samples"] = dict(estimate.sampled)
    if estimate.shift:
        evidence["shift"] = estimate.shift
    value = (estimate.raw - low) / (high - low)
    if strict:
        value = float(estimate.argmax == high)
    return Score(
        status="scored",
        # Outside of 0 to 1 only with the parsers of published tables, which accept any number.
        value=min(1.0, max(0.0, value)),
        raw=estimate.raw,
        scale=scale,
        reason=_reason(estimate, high),
        evidence=evidence,
        method=estimate.method,
        n=estimate.n,
        mass=estimate.mass,
        std_error=estimate.std_error,
        distribution={f"{k:g}": min(1.0, p) for k, p in estimate.distribution.items()},
        probability=min(1.0, estimate.distribution.get(high, 0.0)) if strict else None,
        **fields,
    )


def _reason(estimate: RatingEstimate, high: int) -> str:
    """Return the judge's reason, or the figures where it gave none."""
    words = " ".join(estimate.reason.split())[:_MOST_REPLY]
    if words:
        return words
    dropped = f", {estimate.sampled['given'] - estimate.n} dropped" if estimate.sampled else ""
    return (
        f"{estimate.raw:.4g} of {high} by {estimate.method} (n {estimate.n}{dropped}); "
        "the judge gave no reason"
    )
