"""Judges evaluate outputs, tests and rules: `PromptEvaluation`, of evaluators and metric files.

The evaluators ask a judge for OK or ERR: compliance, validity, groundedness, agreement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError, JudgeError, whole_number
from rag_eval_integrations.metrics.geval._expectation import place_of, word_probabilities
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty._reply import Outcome, Verdict, read_verdict
from rag_eval_integrations.metrics.prompty._sandbox import Texts
from rag_eval_integrations.metrics.prompty.metric import STOPPED, distinct
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.prompt_tests._requests import (
    MARKS,
    J,
    Journal,
    R,
    RecordedModel,
    ask_model,
    dialogue,
    run_jobs,
    sections,
)
from rag_eval_integrations.prompt_tests._settings import output_schema, with_schema
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    PromptTest,
    Result,
    Rule,
    RuleCheck,
    Spec,
    TestCheck,
)
from rag_eval_integrations.prompt_tests.run import model_from

ANSWER = """\
Write your reason first, in at most 20 words. Then, on the next line, write one word: OK or ERR."""

# --- The question that all evaluators ask


_ALTERNATIVES = 5
"""Alternatives per token that are asked for; a verdict has two."""
_LEAST_MASS = 0.5
_WORD = re.compile(r"(?<!\w)(?:OK|ERR)(?!\w)", re.IGNORECASE)


async def ask_verdict(
    judge: Model,
    instructions: str,
    parts: Mapping[str, str],
    *,
    version: str,
    probability: bool = False,
) -> Judged:
    """Ask a judge for OK or ERR; a failure gives `unknown` with its reason.

    The verdict is also `unknown` if the reply was cut off or withheld, or holds no verdict. Only
    the verdict of a judge that does not answer has `failed` set.

    Args:
        judge: the judge to ask.
        instructions: the system message.
        parts: the material, by name; judged text is never outside of it.
        version: version of the prompt and parser.
        probability: whether to ask for log-probabilities, and so for the verdict's probability; a
            recorded reply without them is used all the same.
    """
    request = CompletionRequest(
        messages=dialogue(instructions, sections(parts)),
        temperature=0.0,
        prompt_version=version,
    )
    if probability and not (isinstance(judge, RecordedModel) and judge.holds(request)):
        request = request.model_copy(update={"top_logprobs": _ALTERNATIVES})
    try:
        completion = await ask_model(judge, request)
    except JudgeError as error:
        return _unanswered(error, judge)
    _, stopped = STOPPED.get(completion.finish_reason, ("", ""))
    verdict = Verdict("unknown", stopped) if stopped else read_verdict(completion.text)
    return Judged(
        outcome=verdict.outcome,
        reason=verdict.reason,
        raw=completion.text,
        judge=judge.name,
        probability=probability_of_ok(completion, verdict.outcome),
    )


def _unanswered(error: JudgeError, judge: Model) -> Judged:
    """Return the verdict of a judge that did not answer: `unknown`, with the error as reason."""
    why = f"{type(error).__name__}: {error}"
    return Judged(outcome="unknown", reason=why, judge=judge.name, failed=True)


def probability_of_ok(completion: Completion, outcome: Outcome) -> float | None:
    """Compute P(OK) / (P(OK) + P(ERR)) at the token in which the verdict begins.

    Returns:
        0 to 1; None without a verdict, without usable log-probabilities, or where less than half of
        the probability is on the two words.
    """
    words = [word for word in _WORD.finditer(completion.text) if word[0].lower() == outcome]
    if not words or completion.tokens is None:
        return None
    # The verdict is the reply's end; if other words follow, it stood alone on the first line.
    word = words[-1] if not re.search(r"\w", completion.text[words[-1].end() :]) else words[0]
    place = place_of(completion.text, word.span(), completion.tokens)
    shares = None if place is None else word_probabilities(completion.tokens, place)
    if not isinstance(shares, dict):
        return None
    sums = {"ok": 0.0, "err": 0.0}
    for spelled, share in shares.items():
        begins = re.sub(r"[\W_]+", "", spelled).lower()
        for name in sums:
            # A tokenizer may write ERR in two tokens, or as the beginning of `error`.
            if begins and (name.startswith(begins) or begins.startswith(name)):
                sums[name] += share
    mass = sums["ok"] + sums["err"]
    return sums["ok"] / mass if mass >= _LEAST_MASS and sums[outcome] else None


# --- Test Non-Compliance: does an output comply with the rules or the prompt?


Basis = Literal["rules", "prompt"]

RULES = f"""\
You check whether the output of an assistant keeps the rules that were set for it. You are given \
the rules{{material}} and the output.

Go by the rules alone, not by what you would have answered. Only what the output itself shows \
counts: a rule that does not apply here is kept, and a rule that cannot be checked from what you \
are given is left aside. You do not check whether the output is right, only whether it has the \
form and the kind of content that the rules ask for. One broken rule is enough for ERR; if every \
rule is kept, it is OK.

{ANSWER}

{MARKS}"""

PROMPT = f"""\
You check whether the output of an assistant is one that its prompt allows. You are given the \
prompt{{material}} and the output.

Go by the prompt alone, not by what you would have answered. Only what the output itself shows \
counts: leave aside whatever cannot be checked from what you are given. You do not check whether \
the output is right, only whether it has the form and the kind of content that the prompt asks \
for. One clear violation is enough for ERR; without any, it is OK.

{ANSWER}

{MARKS}"""


@dataclass(frozen=True)
class NonCompliance:
    """The question whether an output complies with the rules or the prompt.

    Args:
        basis: `rules` for the output rules and the input specification, as in PromptPex's paper;
            `prompt` for the prompt's text, as in PromptPex's code.
        see_input: whether the judge sees the test's input; by default only with `rules`.

    Raises:
        ConfigurationError: for another basis.
    """

    basis: Basis = "rules"
    see_input: bool | None = None

    def __post_init__(self) -> None:
        if self.basis not in get_args(Basis):
            raise ConfigurationError("basis", self.basis, f"use {' or '.join(get_args(Basis))}")

    def check(self, prompt: PromptUnderTest, spec: Spec) -> None:
        """Refuse a prompt and specification without anything to judge by.

        With `basis="prompt"`, nothing is refused.

        Raises:
            ConfigurationError: for `basis="rules"` without output rules.
        """
        if self.basis == "rules" and not spec.output_rules:
            why = f"{prompt.name} has no output rules; write some, or use 'prompt'"
            raise ConfigurationError("basis", self.basis, why)

    async def judge(
        self, prompt: PromptUnderTest, spec: Spec, test: PromptTest, output: str, judge: Model
    ) -> Judged:
        """Judge one output; an empty output does not comply, and no judge is asked.

        A judge that does not answer gives `unknown`. The verdict's probability is asked for as
        well.
        """
        if not output.strip():
            return Judged(outcome="err", reason="the output is empty")
        see_input = self.basis == "rules" if self.see_input is None else self.see_input
        if self.basis == "prompt":
            template, words, parts = PROMPT, "", {"prompt": prompt.text}
        else:
            template, words = RULES, ", a description of valid inputs"
            rules = (f"{n}. {rule.text}" for n, rule in enumerate(spec.output_rules, start=1))
            described = spec.input_spec_text or "(not described)"
            parts = {"rules": "\n".join(rules), "valid input": described}
        if see_input:
            words, parts["input"] = f"{words}, the input", test.testinput
        parts["output"] = output
        version = f"noncompliance-1/{self.basis}"
        instructions = template.format(material=words)
        return await ask_verdict(judge, instructions, parts, version=version, probability=True)


# --- Input validity: does the input specification allow a test's input?


_VALIDITY_INSTRUCTIONS = f"""\
You check whether an input is one that an assistant accepts. You are given a description of its \
valid inputs and one input. Go by the description alone; what it does not speak of is allowed. OK \
if the input keeps all of the description, ERR if it breaks any part.

{ANSWER}

{MARKS}"""


class InputValidity:
    """The question whether a test's input is valid."""

    async def judge(self, spec: Spec, test: PromptTest, judge: Model) -> Judged:
        """Judge one test; `unknown` without an input specification, and no judge is asked.

        A judge that does not answer gives `unknown`, too.
        """
        if not spec.input_spec:
            return Judged(outcome="unknown", reason="there is no input specification")
        parts = {"valid input": spec.input_spec_text, "input": test.testinput}
        return await ask_verdict(judge, _VALIDITY_INSTRUCTIONS, parts, version="validity-1")


# --- Rule groundedness: does the prompt support an output rule?


_GROUNDEDNESS_INSTRUCTIONS = f"""\
You check whether a rule was taken from a prompt. You are given the prompt of an assistant and one \
rule about the assistant's output. OK if the prompt says the rule or clearly implies it, ERR if \
the rule adds something, changes something or contradicts the prompt.

{ANSWER}

{MARKS}"""


class RuleGroundedness:
    """The question whether the prompt states or implies a rule."""

    async def judge(self, prompt: PromptUnderTest, rule: Rule, judge: Model) -> Judged:
        """Judge one rule; a judge that does not answer gives `unknown`."""
        parts = {"prompt": prompt.text, "rule": rule.text}
        return await ask_verdict(judge, _GROUNDEDNESS_INSTRUCTIONS, parts, version="groundedness-1")


# --- Spec agreement: does the extracted specification alone lead to a compliant answer?


_AGREEMENT_INSTRUCTIONS = """\
{intent}

Answer the user's input. Your answer has to keep these rules:
{rules}"""


class SpecAgreement:
    """The question whether answers made from the specification alone comply with the prompt."""

    async def judge(
        self,
        prompt: PromptUnderTest,
        spec: Spec,
        test: PromptTest,
        model: Model,
        judge: Model,
    ) -> tuple[Judged, str]:
        """Answer one test from the specification and judge the answer.

        An empty answer does not comply, and the judge is not asked.

        Args:
            prompt: the prompt under test.
            spec: its specification.
            test: the test.
            model: model that answers.
            judge: model that judges the answer by the prompt.

        Returns:
            The verdict and the answer; `unknown` and an empty answer if the model fails.
        """
        system = _AGREEMENT_INSTRUCTIONS.format(
            intent=spec.intent or "You are an assistant.",
            rules="\n".join(f"- {rule.text}" for rule in spec.output_rules),
        )
        question = dialogue(system, test.testinput)
        request = CompletionRequest(messages=question, prompt_version="agreement-1")
        try:
            answer = (await ask_model(model, request)).text
        except JudgeError as error:
            return _unanswered(error, model), ""
        return await NonCompliance("prompt").judge(prompt, spec, test, answer, judge), answer


# --- All of it, over a run


OWN_METRICS = Path(__file__).parent / "metrics"
"""Metric files that are found by name, whatever the prompt's folder."""


class PromptEvaluation:
    """An evaluation of a prompt's outputs, tests and rules by judges.

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
        compliance: NonCompliance | None = NonCompliance(),  # frozen
        max_concurrency: int = 8,
        journal: Journal | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self.prompt = PromptUnderTest.of(prompt)
        self.spec = spec
        record = Journal() if journal is None else journal
        whole_number("max_concurrency", max_concurrency)
        recorded = partial(RecordedModel, journal=record, max_concurrency=max_concurrency)
        self.judges = [recorded(model_from(judge, "judge")) for judge in judges]
        if not self.judges:
            raise ConfigurationError("judges", judges, "give at least one")
        for name, count in Counter(judge.name for judge in self.judges).items():
            if count > 1:
                raise ConfigurationError("judges", name, "two judges have this name")
        self.metrics = distinct(metrics)
        self._own = {
            metric.name: recorded(metric.judge)
            for metric in self.metrics
            if metric.judge is not None
        }
        self._asked = [*self.judges, *self._own.values()]
        self._schema = output_schema(self.prompt)
        self.compliance = compliance
        if compliance is not None:
            compliance.check(self.prompt, spec)
        self.max_concurrency = max_concurrency
        self._done = done or (lambda: None)
        self.verdicts: list[Judged] = []
        """Verdicts on tests and rules so far."""
        self.planned = 0
        """Judgements started or waiting so far, including those whose replies are recorded."""
        given = metric_values(self.prompt, spec, PromptTest(uid="", inputs={"input": ""}), "")
        for metric in self.metrics:
            if missing := metric.prompt.missing({**given, **metric.variables}):
                why = "is not provided; pass it with `variables=`"
                raise ConfigurationError(
                    "metric", metric.name, f"needs {', '.join(missing)}, which {why}"
                )

    @property
    def asked(self) -> int:
        """Requests sent to models so far, without retries and without recorded replies."""
        return sum(model.asked for model in self._asked)

    async def outputs(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs; replies that are recorded are not requested again.

        New verdicts replace earlier ones. Earlier metrics stay unless they are measured again.
        Without `compliance`, earlier verdicts stay.

        Args:
            results: results of `run_tests`; one with an error is returned unchanged.

        Returns:
            The results in the same order, with verdicts, metrics and the check of the prompt's
            schema of outputs. If a judge does not answer,
            the outcome is `unknown` and the reason is the failure.
        """
        jobs: list[tuple[int, Callable[[], Awaitable[Judged | MetricResult]]]] = []
        for number, result in enumerate(results):
            if result.error is not None:
                continue
            if self.compliance is not None:
                subject = (self.prompt, self.spec, result.test, result.output)
                ask = partial(self.compliance.judge, *subject)
                jobs += [(number, partial(ask, judge)) for judge in self.judges]
            for metric in self.metrics:
                judges = [self._own[metric.name]] if metric.name in self._own else self.judges
                jobs += [(number, partial(self._measure, metric, result, j)) for j in judges]
        judgements = await self._judge_all(jobs, lambda job: job[1]())
        by_result: dict[int, list[Judged | MetricResult]] = {}
        for (number, _), judgement in zip(jobs, judgements, strict=True):
            by_result.setdefault(number, []).append(judgement)
        return [
            with_schema(_with_judgements(result, by_result.get(number, ())), self._schema)
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

        A judge or model that does not answer gives `unknown`. What is not judged is None in the
        check.

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
        judge = self.judges[0]
        model = None
        if agreement_model is not None:
            model = RecordedModel(model_from(agreement_model, "agreement_model"), judge.journal)
            self._asked.append(model)

        async def check(test: PromptTest) -> TestCheck:
            """Check a test's validity, and the model's agreement with the rules, each if wanted."""
            valid = await InputValidity().judge(self.spec, test, judge) if validity else None
            agreed, output = None, ""
            if model is not None:
                ask = SpecAgreement().judge
                agreed, output = await ask(self.prompt, self.spec, test, model, judge)
            self.verdicts += [verdict for verdict in (valid, agreed) if verdict is not None]
            return TestCheck(test=test, validity=valid, agreement=agreed, agreement_output=output)

        return await self._judge_all(tests, check)

    async def rules(self) -> list[RuleCheck]:
        """Judge whether the prompt supports each output rule, with the first judge.

        Inverse rules are not judged. The checks are in the rules' order; a judge that does not
        answer gives `unknown`.
        """

        async def check(rule: Rule) -> RuleCheck:
            """Check whether a rule is grounded in the prompt.

            It is `unknown` if the judge does not answer.
            """
            grounded = await RuleGroundedness().judge(self.prompt, rule, self.judges[0])
            self.verdicts.append(grounded)
            return RuleCheck(rule=rule, grounded=grounded)

        return await self._judge_all(self.spec.output_rules, check)

    async def _judge_all(self, jobs: Sequence[J], work: Callable[[J], Awaitable[R]]) -> list[R]:
        """Run judgements concurrently, and return their results in the order of the jobs.

        The jobs are added to `planned`, and `done` is called after each of them.
        """
        self.planned += len(jobs)
        return await run_jobs(
            jobs, work, max_concurrency=self.max_concurrency, done=lambda _: self._done()
        )

    def outputs_sync(self, results: Sequence[Result]) -> list[Result]:
        """Judge outputs from synchronous code; see `outputs`."""
        return _loop.run(self.outputs(results))

    async def _measure(
        self, metric: PromptyMetric, result: Result, judge: RecordedModel
    ) -> MetricResult:
        """Return a metric's result for an output; a failure becomes an `unknown` result.

        An empty output is `unknown`, and no judge is asked. A judge that does not answer, or a
        variable without a value, gives `unknown` with `failed` set.
        """
        problem, failed = "the output is empty", False
        if result.output.strip():
            test, output = result.test, result.output
            values = metric_values(self.prompt, self.spec, test, output, result.contexts)
            try:
                return await ask_metric(metric, values, judge)
            except (JudgeError, ConfigurationError) as error:
                problem, failed = f"{type(error).__name__}: {error}", True
        return _metric_result(metric, judge, outcome="unknown", problem=problem, failed=failed)


def _metric_result(metric: PromptyMetric, judge: Model, **values: Any) -> MetricResult:
    """Return the result of a metric by a judge, with the given fields."""
    return MetricResult(metric=metric.name, judge=judge.name, **values)


def _with_judgements(result: Result, judgements: Sequence[Judged | MetricResult]) -> Result:
    """Return a result with new verdicts and metrics in place of earlier ones.

    The first verdict is the one that counts. Earlier verdicts stay if there is no new one, and
    earlier metrics if they are not measured again.
    """
    verdicts = [judgement for judgement in judgements if isinstance(judgement, Judged)]
    measured = [judgement for judgement in judgements if isinstance(judgement, MetricResult)]
    keys = {result_.key for result_ in measured}
    earlier = [metric for metric in result.metrics if metric.key not in keys]
    changes: dict[str, Any] = {"metrics": (*earlier, *measured)}
    if verdicts:
        changes |= {"compliance": verdicts[0], "others": tuple(verdicts[1:])}
    return result.model_copy(update=changes)


async def ask_metric(
    metric: PromptyMetric, values: Mapping[str, object], judge: Model
) -> MetricResult:
    """Ask a judge a metric's question; return the metric's score or verdict.

    A reply that was cut off, or holds neither a score nor a verdict, gives `unknown` with the
    problem.

    Raises:
        JudgeError: when the judge does not answer.
        ConfigurationError: for a variable without a value.
    """
    reply = await metric.ask({**values, **metric.variables}, judge)
    reading, content = reply.reading, reply.completion.text
    problem = reading.problem and reading.reason if reply.stopped is None else reply.stopped[1]
    if problem is not None:
        return _metric_result(metric, judge, outcome="unknown", content=content, problem=problem)
    return _metric_result(
        metric, judge, outcome=reading.outcome, score=reading.score, content=content
    )


def metric_values(
    prompt: PromptUnderTest,
    spec: Spec,
    test: PromptTest,
    output: str,
    contexts: Sequence[str] = (),
) -> dict[str, object]:
    """Return what a metric file may insert, by variable; unknown values are empty.

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
