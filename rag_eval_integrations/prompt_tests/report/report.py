"""`Report`: the results of a run with rates, failures and an assertion for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from rag_eval_integrations._visible import hanging
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests.records import (
    Choice,
    Result,
    RuleCheck,
    Spec,
    TestCheck,
    valid_uids,
)
from rag_eval_integrations.prompt_tests.report._compare import Comparison, compare, values_of
from rag_eval_integrations.prompt_tests.report.rates import (
    JudgesAgreement,
    Rate,
    Row,
    UnknownAs,
    by_majority,
    judges_agreement,
    overview,
    rate_of,
)

Tests = Literal["rule", "inverse", "baseline", "valid"]
"""Some of the tests; see `Report.tnc`."""
KINDS: Mapping[str, Tests | None] = {
    "all": None, "rule": "rule", "inverse": "inverse", "baseline": "baseline", "valid": "valid",
}  # fmt: skip
"""The kinds of tests whose compliance every report shows."""


class ComplianceError(AssertionError):
    """The share of compliant outputs is too low; the message lists some of the failures."""


@dataclass(frozen=True)
class Report:
    """Results of a run, with the prompt's specification and checks of its tests and rules."""

    name: str
    """The prompt's name."""
    results: Sequence[Result]
    spec: Spec = field(default_factory=Spec)
    checks: Sequence[TestCheck] = ()
    rule_checks: Sequence[RuleCheck] = ()
    unknown_as: UnknownAs = None
    """`err` counts unknown verdicts as not compliant; None leaves them out."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models under test, in the results' order."""
        return tuple(dict.fromkeys(result.model for result in self.results))

    def tnc(
        self,
        *,
        model: str | None = None,
        by: Tests | None = None,
        scenario: str | None = None,
        rule_id: int | None = None,
    ) -> Rate:
        """Count compliance over the rule tests, or some of them.

        Args:
            model: only results of this model; None for all.
            by: `rule` for tests of rules that are not inverse, `inverse` for tests of inverse
                rules, `valid` for rule tests with valid inputs, `baseline` for the baseline tests;
                None for all rule tests.
            scenario: only tests of this scenario; None for all.
            rule_id: only tests of this rule; None for all.

        Raises:
            ConfigurationError: for a model without results.
        """
        if model is not None and model not in self.models:
            known = ", ".join(self.models) or "none"
            raise ConfigurationError("model", model, f"has no results; the models are: {known}")
        valid = valid_uids(self.checks)
        chosen = [
            result
            for result in self.results
            if (model is None or result.model == model)
            and (scenario is None or result.test.scenario == scenario)
            and (rule_id is None or result.test.rule_id == rule_id)
            and result.test.baseline == (by == "baseline")
            and (by != "rule" or not result.test.inverse)
            and (by != "inverse" or result.test.inverse)
            and (by != "valid" or result.test.uid in valid)
        ]
        return rate_of(chosen, unknown_as=self.unknown_as)

    def rates(self) -> Iterator[tuple[str, str, Rate]]:
        """Yield the model, the kind of tests and the rate of every kind that has outputs."""
        for model in self.models:
            for kind, by in KINDS.items():
                rate = self.tnc(model=model, by=by)
                if rate.outputs:
                    yield model, kind, rate

    def chosen(self, choice: Choice) -> Report:
        """Return the report of some of the tests.

        Raises:
            ConfigurationError: for `only_valid` without any check of validity, or a choice that
                leaves no results.
        """
        if choice == Choice():
            return self
        valid = valid_uids(self.checks)
        if choice.only_valid and not any(check.validity is not None for check in self.checks):
            why = "no test's input was judged; run `evaluate --validity` first"
            raise ConfigurationError("only_valid", True, why)
        kept = [result for result in self.results if choice.takes(result.test, valid)]
        if self.results and not kept:
            raise ConfigurationError(
                "tests", choice_words(choice), "none of the results is of them"
            )
        return replace(self, name=f"{self.name} ({choice_words(choice)})", results=kept)

    def majority(self) -> Report:
        """Return the report in which the verdict of most judges counts; see `by_majority`."""
        return replace(self, results=by_majority(self.results))

    def agreement(self) -> list[JudgesAgreement]:
        """Say how far the judges of compliance agree; empty for fewer than two."""
        return judges_agreement(self.results)

    def means(self, name: str, *, model: str) -> tuple[float | None, int]:
        """Average a metric over the outputs of rule tests.

        Args:
            name: a metric, whose judges are averaged for each output, or `METRIC with JUDGE`.
            model: the model.

        Returns:
            The mean, 0 to 100 (of verdicts, the percentage of ok), and the number of outputs behind
            it; None and 0 without any.
        """
        found = [
            values[name]
            for result in self.results
            if result.model == model and not result.test.baseline
            if name in (values := values_of(result))
        ]
        return (100 * fmean(found) if found else None), len(found)

    def overview(self, *, upstream: bool = False) -> list[Row]:
        """Summarise the results: one row per model and scenario; see `overview`.

        Args:
            upstream: whether to compute like PromptPex.
        """
        return overview(self.results, self.checks, unknown_as=self.unknown_as, upstream=upstream)

    def by_rule(self) -> list[Row]:
        """Count outcomes: one row per rule and model."""
        named: dict[tuple[int, str, bool], None] = {}
        for result in self.results:
            test = result.test
            if test.rule_id is not None:
                named[(test.rule_id, test.rule, test.inverse)] = None
        rows: list[Row] = []
        for rule_id, rule, inverse in sorted(named):
            for model in self.models:
                rate = self.tnc(model=model, rule_id=rule_id)
                rows.append(
                    {
                        "ruleid": rule_id, "rule": rule, "inverse": str(inverse).lower(),
                        "model": model, "ok": rate.ok, "err": rate.err, "unknown": rate.unknown,
                        "errors": rate.errors,
                    }
                )  # fmt: skip
        return rows

    def failures(self) -> list[Failure]:
        """List the outputs that do not comply or have no verdict, and the model's failures."""
        return failures(self.results)

    def compare(self, before: Report) -> list[Comparison]:
        """Compare with the report of an earlier run; see `compare`."""
        return compare(before.results, self.results, unknown_as=self.unknown_as)


def choice_words(choice: Choice) -> str:
    """Say in words which tests a choice takes."""
    words = {
        "rule": ", ".join(map(str, choice.rules)),
        "scenario": ", ".join(choice.scenarios),
        "direction": choice.direction or "",
        "input": "valid" if choice.only_valid else "",
    }
    return "; ".join(f"{name} {value}" for name, value in words.items() if value)


def assert_compliance(
    report: Report, at_least: float = 0.9, *, model: str | None = None, shown: int = 5
) -> None:
    """Fail a test if the share of compliant outputs of any model is too low.

    Args:
        report: report of a run that was judged.
        at_least: required share of compliant outputs, 0 to 1, among those with a verdict.
        model: the model to check; by default every model.
        shown: maximum number of failures per model in the message.

    Raises:
        ComplianceError: for a lower share, a model without any verdict, or no results.
        ConfigurationError: for a share outside 0 to 1, or a model without results.
    """
    if not 0 <= at_least <= 1:
        raise ConfigurationError("at_least", at_least, "use a share from 0 to 1")
    complaints = []
    models = report.models if model is None else (model,)
    for name in models:
        rate = report.tnc(model=name)
        if rate.compliant is not None and rate.compliant >= at_least:
            continue
        counts = f"{rate.ok} ok, {rate.err} err, {rate.unknown} unknown, {rate.errors} errors"
        found = (
            "no output has a verdict"
            if rate.compliant is None
            else f"{rate.compliant:.0%} of {rate.n} outputs comply, below {at_least:.0%}"
        )
        complaints.append(f"{name}: {found} ({counts})")
        of_model = [failure for failure in report.failures() if failure.model == name]
        complaints += [
            f"  {failure.kind}: {failure.input[:100]!r} → {failure.output[:100]!r}: "
            f"{failure.reason[:200]}"
            for failure in of_model[:shown]
        ]
    if not models:
        complaints.append("the report has no results")
    if complaints:
        raise ComplianceError("\n".join(map(hanging, complaints)))


# --- Failures: outputs that do not comply or have no verdict, and errors of the model


@dataclass(frozen=True, slots=True)
class Failure:
    """One output that does not comply or has no verdict, or one failure of the model."""

    model: str
    kind: str
    """`err`: does not comply; `unknown`: has no verdict; `error`: there is no output."""
    rule_id: int | None
    rule: str
    """The rule that was tested; the output may break another one."""
    inverse: bool
    input: str
    output: str
    reason: str
    """The judge's reason, or the model's error."""
    test: str
    """The test's uid."""
    run: int


def failures(results: Iterable[Result]) -> list[Failure]:
    """List the failures in the results' order; results that were not judged are left out."""
    return [
        Failure(
            model=result.model, kind=result.state, rule_id=result.test.rule_id,
            rule=result.test.rule, inverse=result.test.inverse, input=result.test.testinput,
            output=result.output, reason=result.reason, test=result.test.uid, run=result.run,
        )
        for result in results
        if result.state not in ("ok", "not judged")
    ]  # fmt: skip


# --- The average over several prompts, as in PromptPex's paper


@dataclass(frozen=True, slots=True)
class Average:
    """Mean Test Non-Compliance of one model, 0 to 1; a rate is None if no prompt has such tests."""

    model: str
    tests: float | None
    """For all rule tests. Each prompt's rate is rounded to whole percent, as in the paper."""
    baseline: float | None
    """For baseline tests, rounded in the same way."""
    rule: float | None
    """For tests of rules that are not inverse; rates are not rounded, as in the paper."""
    inverse: float | None
    """For tests of inverse rules, not rounded. `rule` and `inverse` include only prompts with
    tests of both kinds, so that they can be compared: two of the paper's 22 prompts have no inverse
    rules."""
    prompts: int
    """Number of prompts with results of the model."""


def average(reports: Sequence[Report]) -> list[Average]:
    """Average reports of several prompts: one row per model, in the order of the reports."""
    models = list(dict.fromkeys(model for report in reports for model in report.models))
    return [
        _average(model, [report for report in reports if model in report.models])
        for model in models
    ]


def _average(model: str, reports: Sequence[Report]) -> Average:
    split = [
        (rule.non_compliant, inverse.non_compliant)
        for rule, inverse in (
            (report.tnc(model=model, by="rule"), report.tnc(model=model, by="inverse"))
            for report in reports
        )
        if rule.n and inverse.n
    ]
    return Average(
        model=model,
        tests=_mean([_rounded(report.tnc(model=model)) for report in reports]),
        baseline=_mean([_rounded(report.tnc(model=model, by="baseline")) for report in reports]),
        rule=_mean([rule for rule, _ in split]),
        inverse=_mean([inverse for _, inverse in split]),
        prompts=len(reports),
    )


def _rounded(rate: Rate) -> float | None:
    return None if rate.percent is None else 1 - rate.percent / 100


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
