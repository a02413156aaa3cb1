"""`PromptEvaluation`: judges and metric files evaluate outputs, tests and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty._sandbox import Texts
from rag_eval_integrations.metrics.prompty.metric import distinct
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._requests import Journal, RecordedModel, run_jobs
from rag_eval_integrations.prompt_tests._schema import output_schema, with_schema
from rag_eval_integrations.prompt_tests.evaluators import (
    InputValidity,
    NonCompliance,
    RuleGroundedness,
    SpecAgreement,
)
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
from rag_eval_integrations.prompt_tests.run import model_from


class PromptEvaluation:
    """Evaluates a prompt's outputs, tests and rules with judges.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` accepts.
        spec: its specification.
        judges: models, or names such as `openai:MODEL`. The first judge's verdicts on compliance
            count; the others' are recorded beside them.
        metrics: metric files; each is asked of every judge, or of its own judge if it has one.
        compliance: how compliance is judged; None to skip it.
        max_concurrency: maximum number of concurrent requests, from 1.
        journal: where replies are recorded; by default only in memory.
        done: called after each judgement.

    Raises:
        ConfigurationError: for no judges, a judge that does not answer messages, two judges or two
            metrics with the same name, a metric with a variable that is not provided, or no rules
            to judge by.
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
        self.judges: list[RecordedModel] = [
            RecordedModel(model_from(judge, "judge"), record, max_concurrency=max_concurrency)
            for judge in judges
        ]
        if not self.judges:
            raise ConfigurationError("judges", judges, "give at least one")
        names = [judge.name for judge in self.judges]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError("judges", name, "two judges have this name")
        self.metrics = distinct(metrics)
        self._own: dict[str, RecordedModel] = {
            metric.name: RecordedModel(metric.judge, record, max_concurrency=max_concurrency)
            for metric in self.metrics
            if metric.judge is not None
        }
        self._schema = output_schema(self.prompt)
        self.compliance = compliance
        if compliance is not None:
            compliance.check(self.prompt, spec)
        self.max_concurrency = max_concurrency
        self._done = done
        self.planned = 0
        """Judgements started or waiting so far, including those whose replies are recorded."""
        self._check_variables()

    def _check_variables(self) -> None:
        nothing = PromptTest(uid="", inputs={"input": ""})
        given = metric_values(self.prompt, self.spec, nothing, "")
        for metric in self.metrics:
            missing = metric.prompt.missing({**given, **metric.variables})
            if missing:
                why = (
                    f"needs {', '.join(missing)}, which is not provided; pass it with `variables=`"
                )
                raise ConfigurationError("metric", metric.name, why)

    @property
    def asked(self) -> int:
        """Requests sent so far, without retries and without recorded replies."""
        return sum(judge.asked for judge in [*self.judges, *self._own.values()])

    async def outputs(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs; replies that are recorded are not requested again.

        Args:
            results: results of `run_tests`; one with an error is returned unchanged.

        Returns:
            The results in the same order, with verdicts, metrics and the check of the prompt's
            schema of outputs. If a judge does not answer,
            the outcome is `unknown` and the reason is the failure.
        """
        subjects = [*([None] if self.compliance is not None else []), *self.metrics]
        jobs = [
            (number, metric, judge)
            for number, result in enumerate(results)
            if result.error is None
            for metric in subjects
            for judge in self._judges_of(metric)
        ]
        self.planned += len(jobs)

        async def work(
            job: tuple[int, PromptyMetric | None, RecordedModel],
        ) -> Judged | MetricResult:
            result, metric, judge = results[job[0]], *job[1:]
            if metric is not None:
                return await self._measure(metric, result, judge)
            assert self.compliance is not None
            return await self.compliance.judge(
                self.prompt, self.spec, result.test, result.output, judge
            )

        judgements = await run_jobs(
            jobs, work, max_concurrency=self.max_concurrency, done=self._count
        )
        by_result: dict[int, list[Judged | MetricResult]] = {}
        for (number, *_), judgement in zip(jobs, judgements, strict=True):
            by_result.setdefault(number, []).append(judgement)
        return [
            with_schema(_with(result, by_result.get(number, ())), self._schema)
            for number, result in enumerate(results)
        ]

    async def tests(
        self,
        tests: Sequence[PromptTest],
        *,
        validity: bool = True,
        agreement_model: Model | str | None = None,
    ) -> list[TestCheck]:
        """Judge the tests themselves, with the first judge.

        Args:
            tests: the tests to judge.
            validity: whether to judge if each input is valid.
            agreement_model: model that answers each test from the specification alone, so that the
                judge can say whether the specification is enough; None to skip this.

        Returns:
            One check per test, in the same order.

        Raises:
            ConfigurationError: for an `agreement_model` that does not answer messages.
        """
        self.planned += len(tests)
        judge = self.judges[0]
        model = None
        if agreement_model is not None:
            model = RecordedModel(model_from(agreement_model, "agreement_model"), judge.journal)

        async def check(test: PromptTest) -> TestCheck:
            checked = TestCheck(test=test)
            if validity:
                verdict = await InputValidity().judge(self.spec, test, judge)
                checked = checked.model_copy(update={"validity": verdict})
            if model is not None:
                agreed, output = await SpecAgreement().judge(
                    self.prompt, self.spec, test, model, judge
                )
                checked = checked.model_copy(
                    update={"agreement": agreed, "agreement_output": output}
                )
            self._count()
            return checked

        return await run_jobs(tests, check, max_concurrency=self.max_concurrency)

    async def rules(self) -> list[RuleCheck]:
        """Judge whether the prompt supports each output rule, with the first judge."""

        async def check(rule: Any) -> RuleCheck:
            verdict = await RuleGroundedness().judge(self.prompt, rule, self.judges[0])
            self._count()
            return RuleCheck(rule=rule, grounded=verdict)

        self.planned += len(self.spec.output_rules)
        return await run_jobs(self.spec.output_rules, check, max_concurrency=self.max_concurrency)

    def outputs_sync(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs from synchronous code; see `outputs`."""
        return _loop.run(self.outputs(results))

    def _judges_of(self, metric: PromptyMetric | None) -> list[RecordedModel]:
        own = self._own.get(metric.name) if metric is not None else None
        return [own] if own is not None else self.judges

    async def _measure(
        self, metric: PromptyMetric, result: Result, judge: RecordedModel
    ) -> MetricResult:
        none = MetricResult(metric=metric.name, judge=judge.name, outcome="unknown")
        if not result.output.strip():
            return none.model_copy(update={"problem": "the output is empty"})
        values = metric_values(self.prompt, self.spec, result.test, result.output, result.contexts)
        try:
            graded = await metric.ask({**values, **metric.variables}, judge)
        except (JudgeError, ConfigurationError) as error:
            why = f"{type(error).__name__}: {error}"
            return none.model_copy(update={"problem": why, "failed": True})
        content, reading = graded.completion.text, graded.reading
        stopped = reading.problem and reading.reason
        problem = stopped if graded.stopped is None else graded.stopped[1]
        if problem is not None:
            return none.model_copy(update={"content": content, "problem": problem})
        grade = {"score": reading.score, "outcome": reading.outcome, "content": content}
        return none.model_copy(update=grade)

    def _count(self, _: object = None) -> None:
        if self._done is not None:
            self._done()


def _with(result: Result, judgements: Sequence[Judged | MetricResult]) -> Result:
    verdicts = [judgement for judgement in judgements if isinstance(judgement, Judged)]
    measured = [judgement for judgement in judgements if isinstance(judgement, MetricResult)]
    keys = {result_.key for result_ in measured}
    kept = [metric for metric in result.metrics if metric.key not in keys]
    changes: dict[str, Any] = {"metrics": (*kept, *measured)}
    if verdicts:
        changes |= {"compliance": verdicts[0], "others": tuple(verdicts[1:])}
    return result.model_copy(update=changes)


def metric_values(
    prompt: PromptUnderTest,
    spec: Spec,
    test: PromptTest,
    output: str,
    contexts: Sequence[str] = (),
) -> dict[str, object]:
    """Return the values by variable: PromptPex's four and five more; unknown ones are empty.

    Args:
        prompt: the prompt under test.
        spec: its rules.
        test: the test that gave the output.
        output: the output.
        contexts: documents that a RAG app retrieved for the output.
    """
    return {
        "output": output,
        "prompt": prompt.text,
        "rules": spec.rules_text,
        "input": test.testinput,
        "intent": spec.intent,
        "inputSpec": spec.input_spec_text,
        "expected": test.expected,
        "groundtruth": test.usable_groundtruth or "",
        "contexts": Texts(contexts),
    }
