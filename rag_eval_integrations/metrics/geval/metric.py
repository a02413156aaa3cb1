"""The `GEval` metric: a model grades a call by criteria in words; its uncertainty is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges.judge import AnyModel
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
from rag_eval_integrations.metrics.geval._sections import (
    Conversation,
    MissingParam,
    call_of_turns,
    checked_params,
    sections_of,
)
from rag_eval_integrations.metrics.geval._settings import (
    Estimator,
    EstimatorSettings,
    Form,
    RubricLike,
    checked_instructions,
    checked_name,
    checked_plan,
    checked_rubric,
    checked_scale,
    checked_switch,
    checked_threshold,
)
from rag_eval_integrations.metrics.metric import Measured, ModelMetric
from rag_eval_integrations.models import Model, ModelBase, with_retries
from rag_eval_integrations.records import By, JsonObject, RagCall, Score, UnscoredCode

_MOST_CHARACTERS = 400_000
"""Limit on all parameters of a call together: some 100,000 tokens."""
_JUDGES_REMEMBERED = 64


class GEval(ModelMetric):
    """Scores a call by criteria in words (G-Eval, arXiv:2303.16634; API after DeepEval's GEval).

    The judge follows evaluation steps: those given as `steps`, or steps that it derives from
    `criteria` itself, once for all calls. It then reasons and gives a score, from which an
    expectation is estimated:

    * `logprobs`: Σ k·p(k) / Σ p(k) over the scores of the scale, from the log-probabilities at the
      score's own position. One request per call. `mass` is Σ p(k); log-probabilities with a mass
      below 0.5, or that are placeholders, are not used.
    * `monte_carlo`: the mean of `samples` answers at `temperature`, in one request where the
      endpoint returns several answers. Answers without a score are dropped and counted.
    * `single`: one answer.

    `auto` uses the first of these that the judge supports. The score says which one in its `method`
    (scores of different methods are never averaged), and warns of every fallback. A judge that does
    not answer is an error, not a reason to fall back. An answer out of range is unscored, never
    clipped.

    Args:
        name: name of the criterion; the score is called `geval:NAME`.
        criteria: the criterion in words; the judge derives 3 or 4 evaluation steps from it.
        steps: evaluation steps to follow instead.
        params: parts of a call that the judge is shown: `question`, `response`, `reference`,
            `documents`, `history`, `conversation` (all turns), `metadata.FIELD`.
        scale: lowest and highest score, integers from 0.
        rubric: descriptions of scores: `{1: "…", "2-4": "…"}`.
        threshold: lowest `value` that passes, from 0 to 1; None for no verdict.
        strict: make `value` 1.0 when the likeliest score is the highest of the scale, else 0.0;
            `raw` keeps the expectation, and `probability` is that of the highest score.
        estimator: `auto`, or the only estimator to use.
        samples: number of samples of `monte_carlo`; with 1, `auto` skips that estimator.
        temperature: sampling temperature of `monte_carlo`.
        form: form of the answer: `json`, or `paper` for the paper's form to fill in.
        judge: model to ask instead of the evaluator's, or its name.
        top_logprobs: alternatives requested per token, 1 to 20.
        max_tokens: limit on the tokens of one answer; None for the model's own limit.
        paper_parser: read replies as the authors of published tables did, where a reply without a
            number counts as 0: True or `g-eval` (Liu et al.), `chiang-lee`. Only for reproducing
            these tables.

    Raises:
        ConfigurationError: an argument is wrong, or neither or both of `criteria` and `steps` are
            given.
    """

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
        judge: AnyModel | None = None,
        *,
        top_logprobs: int = 20,
        max_tokens: int | None = 2048,
        paper_parser: bool | str = False,
    ) -> None:
        self.name = checked_name(name)
        self.names = (f"geval:{self.name}",)
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
        self.judge = None if judge is None else _model(judge)
        self._writer = None if self.criteria is None else StepsWriter(self.criteria, self.params)
        self._without_logprobs: set[tuple[object, ...]] = set()

    # --- Presets ----------------------------------------------------------------------------------

    @classmethod
    def preset(cls, name: str, task: Task = "qa", **changes: Any) -> GEval:
        """Make a ready-made metric by name; each also has a method of its own.

        Args:
            name: `coherence`, `consistency`, `fluency`, `relevance`, `correctness` or
                `groundedness`.
            task: `qa` (a response to a question) or `summary` (a summary of the documents).
            changes: arguments of `GEval` that replace the preset's, such as `threshold`.

        Raises:
            ConfigurationError: the name or the task is unknown, or an argument is wrong.
        """
        found = preset(name, task)
        given = {"name": found.name, "params": found.params, "scale": found.scale}
        rules = {} if "criteria" in changes else {"steps": found.steps, "rubric": found.levels}
        return cls(**{**given, **rules, **changes})

    @classmethod
    def coherence(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Score whether the response is one ordered, connected line of thought. Scale 1 to 5."""
        return cls.preset("coherence", task, **changes)

    @classmethod
    def consistency(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Score whether the response says only what the documents say. Scale 1 to 5."""
        return cls.preset("consistency", task, **changes)

    @classmethod
    def fluency(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Score whether the response is well written, sentence by sentence. Scale 1 to 5."""
        return cls.preset("fluency", task, **changes)

    @classmethod
    def relevance(cls, task: Task = "qa", **changes: Any) -> GEval:
        """Score whether the response says what matters and nothing else. Scale 1 to 5."""
        return cls.preset("relevance", task, **changes)

    @classmethod
    def correctness(cls, **changes: Any) -> GEval:
        """Score whether the response agrees with the reference. Scale 0 to 10, as in DeepEval."""
        return cls.preset("correctness", **changes)

    @classmethod
    def groundedness(cls, **changes: Any) -> GEval:
        """Score whether the documents support every claim of the response. Scale 1 to 5."""
        return cls.preset("groundedness", **changes)

    # --- The metric contract ----------------------------------------------------------------------

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
        """Return the score without a value."""
        return (score_of(self, NoEstimate(code, reason), by),)

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call to score.
            judge: the model to ask; retries are the caller's.

        Raises:
            JudgeError: the judge does not answer.
        """
        by = By(
            judge=judge.name,
            model=judge.model,
            judge_version=judge.version,
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

    async def score(self, call: RagCall | Conversation, judge: AnyModel | None = None) -> Score:
        """Score one call without an evaluator.

        Args:
            call: a call, or a conversation as a list of turns.
            judge: model to ask, or its name; by default the metric's own.

        Raises:
            ConfigurationError: no judge is given, or the judge is not a model.
            JudgeRejectedError: the model does not support the requested estimator.
            JudgeError: the judge does not answer.
        """
        if judge is None and self.judge is None:
            raise ConfigurationError("judge", None, "pass a model here or to the metric")
        asked = with_retries(self.judge if judge is None else _model(judge))  # type: ignore[arg-type]
        called = call if isinstance(call, RagCall) else call_of_turns(call)
        with suppress_capture():
            measured = await self.measure(called, asked)
        score = measured.scores[0]
        if score.unscored == "judge_incapable":
            raise JudgeRejectedError(
                score.reason or "the model does not support the requested estimator"
            )
        return score

    def score_sync(self, call: RagCall | Conversation, judge: AnyModel | None = None) -> Score:
        """Score one call from synchronous code, also inside a notebook; see `score`."""
        return _loop.run(self.score(call, judge))

    def _is_without_logprobs(self, judge: ModelBase) -> bool:
        return judge.identity in self._without_logprobs

    def _remember_without_logprobs(self, judge: ModelBase) -> None:
        if len(self._without_logprobs) < _JUDGES_REMEMBERED:
            self._without_logprobs.add(judge.identity)


def _model(judge: AnyModel) -> Model:
    found = judge_from(judge)
    if not isinstance(found, Model):
        raise ConfigurationError(
            "judge",
            found.name,
            "is not a model that G-Eval can ask; use a model, such as 'openai:gpt-4o-mini'",
        )
    return found


# --- From an estimate to a `Score`: normalised, with a threshold and evidence


_MOST_REPLY = 8_000
"""Characters of a reply that the evidence keeps."""


def score_of(
    metric: GEval,
    found: ScoreEstimate | NoEstimate,
    by: By,
    steps: Sequence[str] = (),
    warnings: tuple[str, ...] = (),
) -> Score:
    """Make the `Score` of an estimate.

    `value` is (raw - lowest) / (highest - lowest), in [0, 1]; for a strict metric, 1.0 when the
    likeliest score is the highest of the scale, else 0.0.
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
        # Outside of 0 to 1 only with the parsers of published tables, which accept any number.
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
    return (
        f"{found.raw:.4g} of {high} by {found.method} (n {found.n}{dropped}); "
        "the judge gave no reason"
    )
