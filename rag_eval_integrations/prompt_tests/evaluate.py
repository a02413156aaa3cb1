"""Evaluate: what judges say about outputs, tests and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty.metric import distinct
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._asking import Recorded, each
from rag_eval_integrations.prompt_tests._variables import metric_values
from rag_eval_integrations.prompt_tests.evaluators import (
    InputValidity,
    NonCompliance,
    RuleGroundedness,
    SpecAgreement,
)
from rag_eval_integrations.prompt_tests.generate import completer_of
from rag_eval_integrations.prompt_tests.journal import Journal
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    PromptTest,
    Result,
    RuleCheck,
    Spec,
    TestCheck,
)


@dataclass(frozen=True)
class _Job:
    result: int
    judge: Recorded
    metric: PromptyMetric | None
    """None for compliance."""


class PromptEvaluation:
    """Judges outputs of a prompt, and its tests and rules.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` takes.
        spec: its rules.
        judges: who judges; the first one's verdicts on compliance are the ones that are counted,
            the others' stand beside them.
        metrics: metric files, each asked of every judge (or of its own, where it has one).
        compliance: how compliance is judged; None not to judge it.
        max_concurrency: requests under way at once.
        journal: where replies are recorded; by default only in memory.
        done: called after each reply.

    Raises:
        ConfigurationError: no judge, one that cannot be asked, two of one name, two metrics of one
            name, a metric that needs what nobody gives, or no rules to judge by.
    """

    def __init__(
        self,
        prompt: object,
        spec: Spec,
        judges: Sequence[Model | str],
        metrics: Sequence[PromptyMetric] = (),
        *,
        compliance: NonCompliance | None = NonCompliance(),  # noqa: B008  # frozen
        max_concurrency: int = 8,
        journal: Journal | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self.prompt = PromptUnderTest.of(prompt)
        self.spec = spec
        record = Journal() if journal is None else journal
        if max_concurrency < 1:
            raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
        self.judges = [
            Recorded(completer_of(one, "judge"), record, max_concurrency=max_concurrency)
            for one in judges
        ]
        if not self.judges:
            raise ConfigurationError("judges", judges, "give at least one")
        names = [judge.name for judge in self.judges]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError("judges", name, "two judges have this name")
        self.metrics = distinct(metrics)
        self._own = {
            metric.name: Recorded(metric.judge, record, max_concurrency=max_concurrency)
            for metric in self.metrics
            if metric.judge is not None
        }
        self.compliance = compliance
        if compliance is not None:
            compliance.check(self.prompt, spec)
        self.max_concurrency = max_concurrency
        self._done = done
        self.planned = 0
        """Questions so far, also those whose replies are recorded; `done` is told of each."""
        self._check_variables()

    def _check_variables(self) -> None:
        nothing = PromptTest(uid="", inputs={"input": ""})
        given = metric_values(self.prompt, self.spec, nothing, "")
        for metric in self.metrics:
            missing = metric.prompt.missing({**given, **metric.variables})
            if missing:
                why = f"needs {', '.join(missing)}, which nobody gives"
                raise ConfigurationError("metric", metric.name, why)

    @property
    def asked(self) -> int:
        """Requests made so far, retries not counted; recorded replies are none."""
        return sum(judge.asked for judge in [*self.judges, *self._own.values()])

    async def outputs(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs; what was judged already by the same judges is not asked again.

        A result with an error is left as it is. What a judge does not answer is `unknown`, with
        the failure as its reason.
        """
        jobs = [
            _Job(number, judge, metric)
            for number, result in enumerate(results)
            if result.error is None
            for metric in self._asked_about()
            for judge in self._judges_of(metric)
        ]
        self.planned += len(jobs)

        async def work(job: _Job) -> Judged | MetricResult:
            result = results[job.result]
            if job.metric is None:
                assert self.compliance is not None
                return await self.compliance.judge(
                    self.prompt, self.spec, result.test, result.output, job.judge
                )
            return await self._measure(job.metric, result, job.judge)

        said = await each(
            jobs, work, max_concurrency=self.max_concurrency, done=lambda *_: self._tell()
        )
        by_result: dict[int, list[Judged | MetricResult]] = {}
        for job, one in zip(jobs, said, strict=True):
            by_result.setdefault(job.result, []).append(one)
        return [
            _with(result, by_result[number]) if number in by_result else result
            for number, result in enumerate(results)
        ]

    async def tests(
        self,
        tests: Sequence[PromptTest],
        *,
        validity: bool = True,
        agreement_model: Model | str | None = None,
    ) -> list[TestCheck]:
        """Judge tests themselves, by the first judge.

        Args:
            tests: which.
            validity: whether each input is a valid one.
            agreement_model: answers from the specification alone; None not to ask.
        """
        self.planned += len(tests)
        judge = self.judges[0]
        model = None
        if agreement_model is not None:
            model = Recorded(completer_of(agreement_model, "agreement_model"), judge.journal)

        async def check(test: PromptTest) -> TestCheck:
            found = TestCheck(test=test)
            if validity:
                said = await InputValidity().judge(self.spec, test, judge)
                found = found.model_copy(update={"validity": said})
            if model is not None:
                agreed, output = await SpecAgreement().judge(
                    self.prompt, self.spec, test, model, judge
                )
                found = found.model_copy(update={"agreement": agreed, "agreement_output": output})
            self._tell()
            return found

        return await each(tests, check, max_concurrency=self.max_concurrency)

    async def rules(self) -> list[RuleCheck]:
        """Judge whether each output rule stands in the prompt, by the first judge."""

        async def check(rule: Any) -> RuleCheck:
            said = await RuleGroundedness().judge(self.prompt, rule, self.judges[0])
            self._tell()
            return RuleCheck(rule=rule, grounded=said)

        self.planned += len(self.spec.output_rules)
        return await each(self.spec.output_rules, check, max_concurrency=self.max_concurrency)

    def outputs_sync(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs from code that is not async."""
        return _loop.run(self.outputs(results))

    def _asked_about(self) -> list[PromptyMetric | None]:
        return [*([None] if self.compliance is not None else []), *self.metrics]

    def _judges_of(self, metric: PromptyMetric | None) -> list[Recorded]:
        own = self._own.get(metric.name) if metric is not None else None
        return [own] if own is not None else self.judges

    async def _measure(
        self, metric: PromptyMetric, result: Result, judge: Recorded
    ) -> MetricResult:
        none = MetricResult(metric=metric.name, judge=judge.name, outcome="unknown")
        if not result.output.strip():
            return none.model_copy(update={"problem": "empty output"})
        values = metric_values(self.prompt, self.spec, result.test, result.output, result.contexts)
        try:
            graded = await metric.ask({**values, **metric.variables}, judge)
        except (JudgeError, ConfigurationError) as error:
            why = f"{type(error).__name__}: {error}"
            return none.model_copy(update={"problem": why, "failed": True})
        content, reading = graded.completion.text, graded.reading
        problem = graded.stopped[1] if graded.stopped is not None else None
        if problem is None and reading.problem is not None:
            problem = reading.reason
        if problem is not None:
            return none.model_copy(update={"content": content, "problem": problem})
        said = {"score": reading.score, "outcome": reading.outcome, "content": content}
        return none.model_copy(update=said)

    def _tell(self) -> None:
        if self._done is not None:
            self._done()


def _with(result: Result, said: Sequence[Judged | MetricResult]) -> Result:
    verdicts = [one for one in said if isinstance(one, Judged)]
    measured = [one for one in said if isinstance(one, MetricResult)]
    keys = {one.key for one in measured}
    kept = [one for one in result.metrics if one.key not in keys]
    changes: dict[str, Any] = {"metrics": (*kept, *measured)}
    if verdicts:
        changes |= {"compliance": verdicts[0], "others": tuple(verdicts[1:])}
    return result.model_copy(update=changes)
