"""The `GEval` metric: a model grades a call by criteria in words; its uncertainty is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from rag_eval_integrations import _loop, _target
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import (
    ConfigurationError,
    InputError,
    JudgeError,
    JudgeOutputError,
    JudgeRejectedError,
    whole_number,
)
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges.judge import AnyModel
from rag_eval_integrations.metrics._scales import warn_of_other_range
from rag_eval_integrations.metrics.geval._estimators import (
    EstimatorRun,
    NoEstimate,
    RatingEstimate,
    score_of,
)
from rag_eval_integrations.metrics.geval._presets import PRESETS, Task, preset
from rag_eval_integrations.metrics.geval._prompt import (
    SCORE_VERSION,
    STEPS_VERSION,
    Steps,
    StepsWriter,
    score_messages,
    steps_digest,
    steps_messages,
)
from rag_eval_integrations.metrics.geval._settings import (
    Conversation,
    Estimator,
    EstimatorSettings,
    Form,
    MissingParam,
    RubricLike,
    Section,
    call_of_turns,
    checked_instructions,
    checked_name,
    checked_params,
    checked_plan,
    checked_rubric,
    checked_scale,
    checked_switch,
    checked_threshold,
    from_deepeval,
    sections_of,
)
from rag_eval_integrations.metrics.metric import Measured, ModelMetric
from rag_eval_integrations.models import Model, ModelBase
from rag_eval_integrations.models.completion import Message
from rag_eval_integrations.models.throttling.model import with_retries
from rag_eval_integrations.records import By, RagCall, Score
from rag_eval_integrations.records.labels import UnscoredCode

_MOST_CHARACTERS = 400_000
"""Limit on all parameters of a call together: some 100,000 tokens."""
_JUDGES_REMEMBERED = 64
_PARAMS = ("question", "response")

Messages = tuple[Message, ...]


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
        params: parts of a call that the judge is shown, by default question and response:
            `question`, `response`, `reference`,
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
        deepeval: `evaluation_steps` and `evaluation_params` are taken for `steps` and `params`; an
            error says what to write for DeepEval's other arguments.

    Raises:
        ConfigurationError: an argument is wrong, or neither or both of `criteria` and `steps` are
            given.

    Warns:
        UserWarning: the criteria or steps name another range of scores than `scale`.
    """

    def __init__(
        self,
        name: str,
        criteria: str | None = None,
        steps: Sequence[str] | None = None,
        params: Sequence[str] | None = None,
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
        **deepeval: Any,
    ) -> None:
        renamed = from_deepeval(deepeval, {"steps": steps, "params": params})
        steps = renamed.get("steps", steps)  # type: ignore[assignment]  # checked below
        params = renamed.get("params", params)  # type: ignore[assignment]
        self.name = checked_name(name)
        self.names = (f"geval:{self.name}",)
        self.criteria, self.steps = checked_instructions(criteria, steps)
        self.params = checked_params(_PARAMS if params is None else params)
        self.scale = checked_scale(scale)
        self.rubric = checked_rubric(rubric, self.scale)
        self.threshold = checked_threshold(threshold)
        self.strict = checked_switch("strict", strict)
        self._plan = checked_plan(
            EstimatorSettings(
                self.name,
                self.scale,
                form,
                estimator,
                samples,
                temperature,
                top_logprobs,
                max_tokens,
                None,
            ),
            paper_parser,
        )
        warn_of_other_range(
            self.names[0],
            self.steps or (self.criteria or "",),
            self.scale,
            "name one range in both, or none in the instructions (`value` is in [0, 1] anyway)",
        )
        self.most_requests = self._plan.most_requests
        self.judge = None if judge is None else _model(judge)
        self._writer = None if self.criteria is None else StepsWriter(self.criteria, self.params)
        # By judge, why it is not asked for log-probabilities any more: said on every score.
        self._without_logprobs: dict[tuple[object, ...], str] = {}

    # --- Presets ----------------------------------------------------------------------------------

    @classmethod
    def preset(cls, name: str, /, task: Task = "qa", **changes: Any) -> GEval:
        """Make a ready-made metric by name; each also has a method of its own.

        Args:
            name: `coherence`, `consistency`, `fluency`, `relevance`, `correctness` or
                `groundedness`.
            task: `qa` (a response to a question) or `summary` (a summary of the documents).
            changes: arguments of `GEval` that replace the preset's, such as `threshold` or `name`.

        Raises:
            ConfigurationError: the name or the task is unknown, or an argument is wrong.
        """
        ready = preset(name, task)
        given = {"name": ready.name, "params": ready.params, "scale": ready.scale}
        rules = {} if "criteria" in changes else {"steps": ready.steps, "rubric": ready.levels}
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
            "criteria": self.criteria,
            "steps": self.steps,
            "params": self.params,
            "scale": self.scale,
            "rubric": tuple(map(str, self.rubric)) or None,
            "threshold": self.threshold,
            "strict": self.strict,
            "estimator": plan.estimator,
            "samples": plan.samples,
            "temperature": float(plan.temperature),
            "form": plan.form,
            "top_logprobs": plan.top_logprobs,
            "max_tokens": plan.max_tokens,
            "paper_parser": plan.paper_parser,
        }
        settings = ", ".join(f"{name}={value!r}" for name, value in parts.items())
        return f"GEval({self.name!r}, {settings}, prompts=({STEPS_VERSION!r}, {SCORE_VERSION!r}))"

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Return the score without a value."""
        return (self._score_of(NoEstimate(code, reason), by),)

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        """Score one call; a score that has no value states the reason.

        Args:
            call: the call to score.
            judge: the model to ask; retries are the caller's.

        Raises:
            JudgeError: the judge does not answer.
        """
        by = _by(judge).model_copy(update={"prompt_version": SCORE_VERSION})
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
        messages = self._score_messages(steps.steps, sections)
        known = self._without_logprobs.get(judge.identity)
        asking = EstimatorRun(judge, messages, self._plan, known)
        try:
            estimate = await asking.estimate()
        except JudgeOutputError as error:  # a bad reply is not a judge that does not answer
            estimate = NoEstimate("judge_output_invalid", str(error), error.raw)
        except JudgeError as error:
            error.usage = steps.usage + asking.usage
            raise
        seen = asking.without_logprobs
        if seen is not None and known is None and len(self._without_logprobs) < _JUDGES_REMEMBERED:
            self._without_logprobs[judge.identity] = seen
        by = by.model_copy(
            update={
                "model": asking.model or by.model,
                "prompt_version": f"{SCORE_VERSION}/{steps_digest(steps.steps)}",
            }
        )
        score = self._score_of(estimate, by, steps.steps, tuple(asking.warnings))
        if call.alternatives and "reference" in self.params:  # of several, the one that was shown
            given = {**(score.evidence or {}), "reference": call.reference}
            score = score.model_copy(update={"evidence": given})
        return Measured((score,), steps.usage + asking.usage)

    def messages(
        self, call: RagCall | Conversation, steps: Sequence[str] | None = None
    ) -> Messages:
        """Return the messages that a judge would be sent for the score of a call.

        Args:
            call: a call, or a conversation as a list of turns.
            steps: the evaluation steps, for a metric with `criteria`; without them, the messages
                that ask the judge to write the steps are returned, which come first.

        Raises:
            ConfigurationError: the call lacks a parameter.
        """
        called = call if isinstance(call, RagCall) else call_of_turns(call)
        sections = sections_of(called, self.params)
        if isinstance(sections, MissingParam):
            raise ConfigurationError("call", called.id, sections.why)
        if steps is None and self.criteria is not None:
            return steps_messages(self.criteria, self.params)
        return self._score_messages(tuple(steps or self.steps or ()), sections)

    def _score_of(
        self,
        estimate: RatingEstimate | NoEstimate,
        by: By,
        steps: Sequence[str] = (),
        warnings: tuple[str, ...] = (),
    ) -> Score:
        """Make the score of an estimate with the metric's settings."""
        return score_of(
            estimate,
            self.scale,
            strict=self.strict,
            steps=steps,
            name=self.names[0],
            threshold=self.threshold,
            warnings=warnings,
            by=by,
        )

    def _score_messages(self, steps: tuple[str, ...], sections: Sequence[Section]) -> Messages:
        return score_messages(
            name=self.name,
            steps=steps,
            params=self.params,
            rubric=self.rubric,
            scale=self.scale,
            form=self._plan.form,
            sections=sections,
        )

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
        asked = self._model_to_ask(judge)
        called = call if isinstance(call, RagCall) else call_of_turns(call)
        with suppress_capture():
            measured = await self.measure(called, asked)
        score = measured.scores[0]
        if score.unscored == "judge_incapable":
            why = "the model does not support the requested estimator"
            raise JudgeRejectedError(score.reason or why)
        return score

    def score_sync(self, call: RagCall | Conversation, judge: AnyModel | None = None) -> Score:
        """Score one call from synchronous code, also inside a notebook; see `score`."""
        return _loop.run(self.score(call, judge))

    async def score_many(
        self,
        calls: Iterable[RagCall | Conversation],
        judge: AnyModel | None = None,
        *,
        max_concurrency: int = 8,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[Score]:
        """Score many calls; a call that cannot be scored does not end the others.

        An exception that `calls` or `on_progress` raises does end them.

        Args:
            calls: the calls, read as places become free.
            judge: model to ask, or its name; by default the metric's own.
            max_concurrency: calls scored at once at most, from 1.
            on_progress: called with the number of calls done, after each.

        Returns:
            One score per call, in order; its `status` is `error` where the judge did not answer.

        Raises:
            ConfigurationError: as `score`, or for a wrong `max_concurrency`.
            ExceptionGroup: reading `calls`, or `on_progress`, raised what is in it.
        """
        whole_number("max_concurrency", max_concurrency)
        asked = self._model_to_ask(judge)
        waiting = enumerate(calls)
        scores: dict[int, Score] = {}

        async def work() -> None:
            """Score calls until there are none."""
            for number, call in waiting:
                scores[number] = await self._score_or_error(call, asked)
                if on_progress is not None:
                    on_progress(len(scores))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(max_concurrency):
                tasks.create_task(work())
        return [scores[number] for number in sorted(scores)]

    def score_many_sync(
        self,
        calls: Iterable[RagCall | Conversation],
        judge: AnyModel | None = None,
        *,
        max_concurrency: int = 8,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[Score]:
        """Score many calls from synchronous code; see `score_many`."""
        asking = self.score_many(
            calls, judge, max_concurrency=max_concurrency, on_progress=on_progress
        )
        return _loop.run(asking)

    async def _score_or_error(self, call: RagCall | Conversation, asked: ModelBase) -> Score:
        """Score a call; a failure is a score with the error."""
        try:
            called = call if isinstance(call, RagCall) else call_of_turns(call)
            with suppress_capture():
                return (await self.measure(called, asked)).scores[0]
        except Exception as error:  # noqa: BLE001 -- the boundary: failure is data from here on
            reason = f"{type(error).__name__}: {str(error) or repr(error)}"
            return Score(name=self.names[0], status="error", reason=reason, by=_by(asked))

    def _model_to_ask(self, judge: AnyModel | None) -> ModelBase:
        """Return the model to ask; refuse a metric without one."""
        if judge is None and self.judge is None:
            raise ConfigurationError("judge", None, "pass a model here or to the metric")
        return with_retries(self.judge if judge is None else _model(judge))  # type: ignore[arg-type]


def _by(judge: ModelBase) -> By:
    """Return the provenance of a failed score."""
    return By(judge=judge.name, model=judge.model, judge_version=judge.version)


def _model(judge: AnyModel) -> Model:
    """Return the model of a name or object; refuse a judge that is not a model."""
    model = judge_from(judge)
    if not isinstance(model, Model):
        why = "is not a model that G-Eval can ask; use a model, such as 'openai:gpt-4o-mini'"
        raise ConfigurationError("judge", model.name, why)
    return model


# --- From outside of Python: `NAME.geval.yaml` files, and presets by name
#
# A file holds arguments of `GEval`:
#
#     name: politeness
#     criteria: The response is polite, also where it has to refuse.
#     params: [question, response]
#     scale: [1, 5]
#     rubric:
#       1: rude
#       2-4: neutral
#       5: polite throughout
#     threshold: 0.6
#
# or a ready-made metric with changes:
#
#     preset: coherence
#     task: summary
#     samples: 5


SUFFIXES = (".geval.yaml", ".geval.yml")
_FIELDS = (
    "preset",
    "task",
    "name",
    "criteria",
    "steps",
    "params",
    "scale",
    "rubric",
    "threshold",
    "strict",
    "estimator",
    "samples",
    "temperature",
    "form",
    "top_logprobs",
    "max_tokens",
)
_MOST_BYTES = 1_000_000
PRESET_NAMES = tuple(PRESETS)
"""Names that may follow `geval:` in the name of a metric, or `preset:` in a file."""


def named_geval(name: str, /, **changes: Any) -> GEval:
    """Make a ready-made metric by its name, or `NAME:TASK` as in `coherence:summary`.

    Args:
        name: the name.
        changes: arguments of `GEval` that replace the preset's.

    Raises:
        ConfigurationError: the name or the task is unknown, or an argument is wrong.
    """
    base, _, task = name.partition(":")
    return GEval.preset(base, cast(Task, task or "qa"), **changes)


def read_geval(path: str | Path, /, **changes: Any) -> GEval:
    """Read a metric from a YAML file; without a field `name`, the metric is named after the file.

    Args:
        path: the file.
        changes: arguments of `GEval` that replace the file's.

    Raises:
        InputError: the file is not YAML, or a field is unknown or has a wrong value; names file,
            line and field.
        OSError: the file cannot be read.
    """
    file = Path(path)
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(f"{file}: is larger than {_MOST_BYTES:,} bytes")
    content, lines = _mapping(file)
    unknown = [field for field in content if field not in _FIELDS]
    if unknown:
        why = f"{file}: is not a field of a metric; use {', '.join(_FIELDS)}"
        raise InputError(why, field=str(unknown[0]), line=lines.get(str(unknown[0])))
    content.setdefault("name", _stem(file))
    content |= changes
    if "task" in content and "preset" not in content:
        raise InputError(f"{file}: needs a `preset`", field="task", line=lines.get("task"))
    try:
        if "preset" not in content:
            return GEval(**content)
        if content["preset"] not in PRESET_NAMES:
            names = ", ".join(PRESET_NAMES)
            raise ConfigurationError("preset", content["preset"], f"use one of {names}")
        return GEval.preset(content.pop("preset"), content.pop("task", "qa"), **content)
    except ConfigurationError as error:
        line = lines.get(error.field)
        raise InputError(f"{file}: {error}", field=error.field, line=line) from error


def _stem(file: Path) -> str:
    """Return a file's name without its suffix."""
    suffix = next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), file.suffix)
    return file.name.removesuffix(suffix)


def _mapping(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read a metric file's YAML as a mapping, with the line of each key."""
    from rag_eval_integrations.metrics._yaml import (  # noqa: PLC0415  # PyYAML takes 20 ms
        YamlTextError,
        read_yaml_text,
    )

    data = _target.read_whole(file)
    try:
        read = read_yaml_text(data.decode("utf-8-sig"))
    except YamlTextError as error:
        raise InputError(f"{file}: {error}", line=error.line) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    if not isinstance(read.value, dict):
        raise InputError(f"{file}: should hold fields, such as `criteria: …`")
    return read.value, read.lines
