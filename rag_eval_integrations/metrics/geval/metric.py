"""GEval: a criterion in words becomes a score that a judge's own uncertainty is kept in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rag_eval_integrations import _loop
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.metrics.geval._estimators import EstimatorRun, NoEstimate, ScoreEstimate
from rag_eval_integrations.metrics.geval._presets import Task, preset
from rag_eval_integrations.metrics.geval._prompt import (
    SCORE_VERSION,
    STEPS_VERSION,
    Steps,
    StepsWriter,
    score_messages,
    steps_digest,
)
from rag_eval_integrations.metrics.geval._settings import (
    Conversation,
    Estimator,
    EstimatorSettings,
    Form,
    MissingParam,
    RubricLike,
    call_of_turns,
    checked_instructions,
    checked_name,
    checked_params,
    checked_plan,
    checked_rubric,
    checked_scale,
    checked_switch,
    checked_threshold,
    sections_of,
)
from rag_eval_integrations.metrics.metric import Measured
from rag_eval_integrations.models import Model, with_retries
from rag_eval_integrations.records import By, JsonObject, RagCall, Score, UnscoredCode

_MOST_CHARACTERS = 400_000
"""Of a call's parameters together: some 100,000 tokens."""
_JUDGES_REMEMBERED = 64


class GEval:
    """Scores a call by criteria in words (G-Eval, Liu et al. 2023; seeds 000 and 002).

    The judge works by evaluation steps: those given as `steps`, or steps that it writes itself,
    once for all calls. It then reasons and gives a score, which is read as an expectation:

    * `logprobs`: Σ k·p(k) / Σ p(k) over the scores of the scale, from the log-probabilities at the
      score's own position. One request. `mass` is Σ p(k); a mass below 0.5, and log-probabilities
      that are placeholders, are not used.
    * `monte_carlo`: the mean of `samples` answers at `temperature`, asked for by one request where
      the endpoint gives several answers. Answers without a score are dropped and counted.
    * `single`: one answer.

    `auto` takes the first that the judge is able to, says so in the score's warnings, and stamps it
    as `method`, so that no mean mixes them. A judge that does not answer is an error and no reason
    to go on. A score out of range is unscored, never bent.

    Args:
        name: of what is scored; the score is called `geval:NAME`.
        criteria: what is asked for, in words; the judge derives 3 or 4 steps from it.
        steps: evaluation steps to go by instead.
        params: what of a call the judge is shown: `question`, `response`, `reference`,
            `documents`, `history`, `conversation` (all turns), `metadata.FIELD`.
        scale: lowest and highest score, integers from 0.
        rubric: what scores mean: `{1: "…", "2-4": "…"}`.
        threshold: `value` at or above it passes; None gives no verdict.
        strict: value 1.0 when the likeliest score is the highest of the scale, else 0.0; `raw`
            keeps the expectation and `probability` how likely the highest score is.
        estimator: `auto`, or one to be used and no other.
        samples: of `monte_carlo`; 1 leaves it out of `auto`.
        temperature: of the samples.
        form: `json`, or `paper` for the original's form to fill in.
        judge: asked instead of the evaluator's judge: a model or its name.
        top_logprobs: alternatives asked for at each position, 1 to 20.
        max_tokens: most tokens of one answer; None leaves it to the judge.
        paper_parser: read replies as the authors of published tables did, a reply without a number
            counting as 0: True or `g-eval` (Liu et al.), `chiang-lee`. For recomputing tables only.

    Raises:
        ConfigurationError: for a wrong argument, or neither or both of `criteria` and `steps`.
    """

    needs: Literal["completion"] = "completion"

    def __init__(
        self,
        name: str,
        criteria: str | None = None,
        steps: Sequence[str] | None = None,
        params: Sequence[str] = ("question", "response"),
        scale: tuple[int, int] = (1, 5),
        rubric: RubricLike | None = None,
        threshold: float | None = 0.5,
        strict: bool = False,
        estimator: Estimator = "auto",
        samples: int = 20,
        temperature: float = 1.0,
        form: Form = "json",
        judge: Model | str | None = None,
        *,
        top_logprobs: int = 20,
        max_tokens: int | None = 2048,
        paper_parser: bool | str = False,
    ) -> None:
        self.name = checked_name(name)
        self.criteria, self.steps = checked_instructions(criteria, steps)
        self.params = checked_params(params)
        self.scale = checked_scale(scale)
        self.rubric = checked_rubric(rubric, self.scale)
        self.threshold = checked_threshold(threshold)
        self.strict = checked_switch("strict", strict)
        self._plan = checked_plan(
            EstimatorSettings(
                self.name, self.scale, form, estimator, samples, temperature, top_logprobs,
                max_tokens, None,
            ),
            paper_parser,
        )  # fmt: skip
        self.judge: Model | None = None if judge is None else _model(judge)
        self._writer = None if self.criteria is None else StepsWriter(self.criteria, self.params)
        self._without_logprobs: set[tuple[object, ...]] = set()

    # --- presets ----------------------------------------------------------------------------------

    @classmethod
    def preset(cls, name: str, task: Task = "qa", **changes: Any) -> GEval:
        """Make a ready-made metric; those below, by name.

        Args:
            name: `coherence`, `consistency`, `fluency`, `relevance`, `correctness` or
                `groundedness`.
            task: `qa` (a response to a question) or `summary` (of documents).
            changes: other arguments of `GEval`, such as `threshold`.

        Raises:
            ConfigurationError: for an unknown name or task, or a wrong argument.
        """
        found = preset(name, task)
        given = {"name": found.name, "params": found.params, "scale": found.scale}
        rules = {} if "criteria" in changes else {"steps": found.steps, "rubric": found.levels}
        return cls(**{**given, **rules, **changes})

    @classmethod
    def coherence(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Whether the response holds together: order, links, one line of thought. 1 to 5."""
        return cls.preset("coherence", task, **changes)

    @classmethod
    def consistency(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Whether the response says only what the documents say. 1 to 5."""
        return cls.preset("consistency", task, **changes)

    @classmethod
    def fluency(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Whether the response is well written, sentence by sentence. 1 to 5."""
        return cls.preset("fluency", task, **changes)

    @classmethod
    def relevance(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Whether the response says what matters, and nothing else. 1 to 5."""
        return cls.preset("relevance", task, **changes)

    @classmethod
    def correctness(cls, **changes: Any) -> GEval:
        """Whether the response says what the reference says. 0 to 10 (as DeepEval's GEval)."""
        return cls.preset("correctness", **changes)

    @classmethod
    def groundedness(cls, **changes: Any) -> GEval:
        """Whether every claim of the response rests on the documents. 1 to 5."""
        return cls.preset("groundedness", **changes)

    # --- what a metric is -------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """`geval:NAME`."""
        return (f"geval:{self.name}",)

    def __repr__(self) -> str:
        plan = self._plan
        parts = {
            "criteria": self.criteria, "steps": self.steps, "params": self.params,
            "scale": self.scale, "rubric": tuple(map(str, self.rubric)) or None,
            "threshold": self.threshold, "strict": self.strict, "estimator": plan.estimator,
            "samples": plan.samples, "temperature": float(plan.temperature), "form": plan.form,
            "top_logprobs": plan.top_logprobs, "max_tokens": plan.max_tokens,
            "paper_parser": plan.paper_parser,
        }  # fmt: skip
        shown = ", ".join(f"{name}={value!r}" for name, value in parts.items())
        return f"GEval({self.name!r}, {shown}, prompts=({STEPS_VERSION!r}, {SCORE_VERSION!r}))"

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Give the score without a value."""
        return (score_of(self, NoEstimate(code, reason), by),)

    async def measure(self, call: RagCall, judge: Model) -> Measured:
        """Score one call; what cannot be scored is unscored with its reason.

        Args:
            call: what was captured.
            judge: who is asked, as it is.

        Raises:
            JudgeError: the judge does not answer.
        """
        by = By(
            judge=judge.name,
            model=getattr(judge, "model", None),
            judge_version=getattr(judge, "version", None),
            prompt_version=SCORE_VERSION,
        )
        sections = sections_of(call, self.params)
        if isinstance(sections, MissingParam):
            return Measured(self.unscored(sections.code, sections.why, by))
        characters = sum(len(section.text) for section in sections)
        if characters > _MOST_CHARACTERS:
            why = f"the call has {characters:,} characters, more than {_MOST_CHARACTERS:,}"
            return Measured(self.unscored("over_budget", why, by))
        steps = Steps(self.steps or ()) if self._writer is None else await self._writer.get(judge)
        if steps.code is not None:
            return Measured(self.unscored(steps.code, steps.why, by), steps.usage)
        messages = score_messages(
            name=self.name, steps=steps.steps, params=self.params, rubric=self.rubric,
            scale=self.scale, form=self._plan.form, sections=sections,
        )  # fmt: skip
        asking = EstimatorRun(judge, messages, self._plan, self._is_without_logprobs(judge))
        found = await asking.estimate()
        if asking.without_logprobs:
            self._remember_without_logprobs(judge)
        by = by.model_copy(
            update={
                "model": asking.model or by.model,
                "prompt_version": f"{SCORE_VERSION}/{steps_digest(steps.steps)}",
            }
        )
        score = score_of(self, found, by, steps.steps, tuple(asking.warnings))
        return Measured((score,), steps.usage + asking.usage)

    async def score(self, call: RagCall | Conversation, judge: Model | str | None = None) -> Score:
        """Score one call without an evaluator.

        Args:
            call: a call, or a list of turns.
            judge: a model or its name; by default the metric's own.

        Raises:
            ConfigurationError: no judge, or one that is no model.
            JudgeRejectedError: the pinned estimator is not to be had from this judge.
            JudgeError: the judge does not answer.
        """
        if judge is None and self.judge is None:
            raise ConfigurationError("judge", None, "give a model here, or to the metric")
        asked = with_retries(self.judge if judge is None else _model(judge))  # type: ignore[arg-type]
        called = call if isinstance(call, RagCall) else call_of_turns(call)
        with suppress_capture():
            measured = await self.measure(called, asked)
        score = measured.scores[0]
        if score.unscored == "judge_incapable":
            raise JudgeRejectedError(score.reason or "the judge cannot be read as asked for")
        return score

    def score_sync(self, call: RagCall | Conversation, judge: Model | str | None = None) -> Score:
        """Score one call from code that is not async; also inside a notebook."""
        return _loop.run(self.score(call, judge))

    def _is_without_logprobs(self, judge: Model) -> bool:
        return _identity(judge) in self._without_logprobs

    def _remember_without_logprobs(self, judge: Model) -> None:
        if len(self._without_logprobs) < _JUDGES_REMEMBERED:
            self._without_logprobs.add(_identity(judge))


def _identity(judge: Model) -> tuple[object, ...]:
    return (judge.name, *(getattr(judge, part, None) for part in ("model", "version", "base_url")))


def _model(judge: Model | str) -> Model:
    found = judge_from(judge)
    if not isinstance(found, Model):
        raise ConfigurationError(
            "judge",
            found.name,
            "is no model that G-Eval could ask; use one, such as 'openai:gpt-4o-mini'",
        )
    return found


# --- An estimate becomes a `Score`: normalised, with a verdict, and with what it rests on


_MOST_REPLY = 8_000
"""Characters of a reply that are kept."""


def score_of(
    metric: GEval,
    found: ScoreEstimate | NoEstimate,
    by: By,
    steps: Sequence[str] = (),
    warnings: tuple[str, ...] = (),
) -> Score:
    """Write the score of what was found.

    `value` is (raw - lowest)/(highest - lowest); strict, 1.0 when the likeliest score is the
    highest, else 0.0.
    """
    low, high = metric.scale
    evidence: JsonObject = {"steps": list(steps)} if steps else {}
    if found.reply:
        evidence["reply"] = found.reply[:_MOST_REPLY]
    if isinstance(found, NoEstimate):
        return Score(
            name=metric.names[0], status="unscored", unscored=found.code, reason=found.why,
            scale=(low, high), threshold=metric.threshold, evidence=evidence or None,
            warnings=warnings, by=by,
        )  # fmt: skip
    evidence |= {"argmax": found.argmax, "std": found.std}
    if found.sampled:
        evidence["samples"] = dict(found.sampled)
    value = (found.raw - low) / (high - low)
    if metric.strict:
        value = float(found.argmax == high)
    return Score(
        name=metric.names[0],
        status="scored",
        # Outside of 0 to 1 only for the parsers of published tables, which believe any number.
        value=min(1.0, max(0.0, value)),
        raw=found.raw,
        scale=(low, high),
        threshold=metric.threshold,
        reason=_reason(found, high),
        evidence=evidence,
        method=found.method,
        n=found.n,
        mass=found.mass,
        std_error=found.std_error,
        distribution={f"{k:g}": min(1.0, p) for k, p in found.distribution.items()},
        probability=min(1.0, found.distribution.get(high, 0.0)) if metric.strict else None,
        warnings=warnings,
        by=by,
    )


def _reason(found: ScoreEstimate, high: int) -> str:
    words = " ".join(found.reason.split())[:_MOST_REPLY]
    if words:
        return words
    dropped = f", {found.sampled['given'] - found.n} dropped" if found.sampled else ""
    return f"{found.raw:.4g} of {high} by {found.method} (n {found.n}{dropped}), without a reason"
