"""`Report`: all that is known about a run, for reading, for files and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests.records import Result, RuleCheck, Spec, TestCheck
from rag_eval_integrations.prompt_tests.report._compare import Comparison, compare
from rag_eval_integrations.prompt_tests.report._overview import Row, overview
from rag_eval_integrations.prompt_tests.report.rates import Rate, UnknownAs, rate_of


class ComplianceError(AssertionError):
    """Outputs comply less than a test asks for; the message lists some that do not."""


@dataclass(frozen=True)
class Report:
    """Results with their rules and checks."""

    name: str
    results: Sequence[Result]
    spec: Spec = field(default_factory=Spec)
    checks: Sequence[TestCheck] = ()
    rule_checks: Sequence[RuleCheck] = ()
    unknown_as: UnknownAs = None

    @property
    def models(self) -> tuple[str, ...]:
        """Models under test, in the results' order."""
        return tuple(dict.fromkeys(result.model for result in self.results))

    def tnc(
        self,
        *,
        model: str | None = None,
        by: Literal["rule", "inverse", "baseline", "valid"] | None = None,
        scenario: str | None = None,
        rule_id: int | None = None,
    ) -> Rate:
        """Count compliance over the tests of rules, or some of them.

        Args:
            model: of this model only.
            by: only tests of rules, of inverse rules, with valid inputs; or the baseline tests.
            scenario: of this scenario only.
            rule_id: of this rule only.

        Raises:
            ConfigurationError: a model that is not there.
        """
        if model is not None and model not in self.models:
            known = ", ".join(self.models) or "none"
            raise ConfigurationError("model", model, f"there are {known}")
        valid = {
            check.test.uid
            for check in self.checks
            if check.validity is not None and check.validity.outcome == "ok"
        }
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

    def overview(self, *, upstream: bool = False) -> list[Row]:
        """One row a model and scenario."""
        return overview(self.results, self.checks, unknown_as=self.unknown_as, upstream=upstream)

    def by_rule(self) -> list[Row]:
        """One row a rule and model: what complies among the tests of that rule."""
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
        """What does not comply, has no verdict, or has no output."""
        return failures(self.results)

    def compare(self, before: Report) -> list[Comparison]:
        """Say what changed since another run."""
        return compare(before.results, self.results, unknown_as=self.unknown_as)


def assert_compliance(
    report: Report, at_least: float = 0.9, *, model: str | None = None, shown: int = 5
) -> None:
    """Fail a test when outputs of any model comply less than asked for.

    Args:
        report: of a run that was judged.
        at_least: share of compliant outputs, 0 to 1, over those with a verdict.
        model: of this model only; by default each model by itself has to reach it.
        shown: failures that the message lists for each model.

    Raises:
        ComplianceError: one complies less, or none of its outputs has a verdict.
        ConfigurationError: a share outside of 0 to 1, or a model that is not there.
    """
    if not 0 <= at_least <= 1:
        raise ConfigurationError("at_least", at_least, "use a share from 0 to 1")
    complaints = []
    models = report.models if model is None else (model,)
    for one in models:
        rate = report.tnc(model=one)
        if rate.compliant is not None and rate.compliant >= at_least:
            continue
        of_it = [failure for failure in report.failures() if failure.model == one]
        found = "no output has a verdict" if rate.compliant is None else f"{rate.compliant:.0%}"
        complaints.append(
            f"{one}: {found} of {rate.n} comply ({rate.ok} ok, {rate.err} err, {rate.unknown} "
            f"unknown, {rate.errors} errors), not {at_least:.0%}"
        )
        complaints += [
            f"  {failure.kind}: {failure.input[:100]!r} → {failure.output[:100]!r}: "
            f"{failure.reason[:200]}"
            for failure in of_it[:shown]
        ]
    if not models:
        complaints.append("there are no results")
    if complaints:
        raise ComplianceError("\n".join(complaints))


# --- Outputs that do not comply, each with its rule, input, output and reason


@dataclass(frozen=True, slots=True)
class Failure:
    """One output that is not known to comply."""

    model: str
    kind: Literal["err", "unknown", "error"]
    """Not compliant; without a verdict; without an output."""
    rule_id: int | None
    rule: str
    """The rule that the test tries; the output may break another one."""
    inverse: bool
    input: str
    output: str
    reason: str
    test: str
    """The test's uid."""
    run: int


def failures(results: Iterable[Result]) -> list[Failure]:
    """List what failed, in the results' order."""
    found = []
    for result in results:
        kind: Literal["err", "unknown", "error"]
        if result.error is not None:
            kind, reason = "error", result.error
        elif result.compliance is None or result.compliance.outcome == "ok":
            continue
        else:
            kind, reason = result.compliance.outcome, result.compliance.reason
        test = result.test
        found.append(
            Failure(
                model=result.model, kind=kind, rule_id=test.rule_id, rule=test.rule,
                inverse=test.inverse, input=test.testinput, output=result.output, reason=reason,
                test=test.uid, run=result.run,
            )
        )  # fmt: skip
    return found
