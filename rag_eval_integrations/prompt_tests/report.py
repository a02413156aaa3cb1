"""`Report`: the results of a run with rates, failures, changes since another run, an assertion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from rag_eval_integrations._visible import hanging
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import ScoreDifference
from rag_eval_integrations.evaluations._paired import paired
from rag_eval_integrations.prompt_tests._rates import (
    KINDS,
    JudgesAgreement,
    Rate,
    Row,
    Tests,
    UnknownAs,
    by_majority,
    is_of_kind,
    judges_agreement,
    overview,
    rate_of,
    share_of,
)
from rag_eval_integrations.prompt_tests.records import (
    Choice,
    Result,
    RuleCheck,
    Spec,
    TestCheck,
    valid_uids,
)


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
        chosen = (
            result
            for result in self.results
            if (model is None or result.model == model)
            and (scenario is None or result.test.scenario == scenario)
            and (rule_id is None or result.test.rule_id == rule_id)
            and is_of_kind(result.test, by, valid)
        )
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

        Its name says which tests these are. A choice of all tests returns this report itself.

        Raises:
            ConfigurationError: for `only_valid` without any check of validity, or a choice that
                leaves no results.
        """
        if choice == Choice():
            return self
        results = choice.of(self.results, lambda result: result.test, self.checks)
        return replace(self, name=f"{self.name} ({choice.words})", results=results)

    def majority(self) -> Report:
        """Return a copy in which most judges of a result give its verdict; see `by_majority`."""
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
            it; None and 0 without any. Failed outputs, and those without a value, are left out.
        """
        known = []
        for result in self.results:
            if result.model == model and not result.test.baseline and result.error is None:
                own = {m.key: m.value / 100 for m in result.metrics if m.value is not None}
                values = own | values_of(result)  # a name with its judge, and the mean of all
                known += [values[name]] if name in values else []
        return (100 * fmean(known) if known else None), len(known)

    def overview(self, *, upstream: bool = False) -> list[Row]:
        """Summarise the results: one row per model and scenario; see `overview`.

        Args:
            upstream: whether to compute like PromptPex.
        """
        return overview(self.results, self.checks, unknown_as=self.unknown_as, upstream=upstream)

    def by_rule(self) -> list[Row]:
        """Count outcomes: one row per rule and model, in the order of the rules' ids.

        An id with several texts has a row for each. Tests without a rule and baseline tests are
        left out.
        """
        by_rule: dict[tuple[int, str, bool], list[Result]] = {}
        for result in self.results:
            test = result.test
            if test.rule_id is not None:
                by_rule.setdefault((test.rule_id, test.rule, test.inverse), []).append(result)
        rows: list[Row] = []
        for (rule_id, rule, inverse), results in sorted(by_rule.items()):
            of_rule: Row = {"ruleid": rule_id, "rule": rule, "inverse": str(inverse).lower()}
            for model in self.models:
                of_model = [result for result in results if result.model == model]
                rows.append({**of_rule, "model": model, **rate_of(of_model).counts})
        return rows

    def failures(self) -> list[Failure]:
        """List the outputs that do not comply or have no verdict, and the model's failures.

        They are in the results' order, baseline tests included. Outputs that were not judged are
        left out.
        """
        return [
            Failure(
                kind=result.state,
                rule_id=result.test.rule_id,
                inverse=result.test.inverse,
                **_output_fields(result),
            )
            for result in self.results
            if result.state not in ("ok", "not judged")
        ]

    def compare(self, before: Report) -> list[Comparison]:
        """Compare with the report of an earlier run; see `compare`."""
        return compare(before.results, self.results, unknown_as=self.unknown_as)


def assert_compliance(
    report: Report, at_least: float = 0.9, *, model: str | None = None, shown: int = 5
) -> None:
    """Fail a test if the share of compliant outputs of any model is too low.

    Baseline tests do not count.

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
        why = (
            "no output has a verdict"
            if rate.compliant is None
            else f"{rate.compliant:.0%} of {rate.n} outputs comply, below {at_least:.0%}"
        )
        complaints.append(f"{name}: {why} ({rate.words})")
        counted = [r for r in report.results if r.model == name and not r.test.baseline]
        of_model = replace(report, results=counted).failures()
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _OneOutput:
    """One output with the rule that was tested and the reason of its verdict."""

    model: str
    rule: str
    """The rule that was tested; the output may break another one."""
    input: str
    output: str
    reason: str
    """The judge's reason, or the model's error."""
    test: str
    """The test's uid."""
    run: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure(_OneOutput):
    """One output that does not comply or has no verdict, or one failure of the model."""

    kind: str
    """`err`: does not comply; `unknown`: has no verdict; `error`: there is no output."""
    rule_id: int | None
    inverse: bool


def _output_fields(result: Result) -> dict[str, Any]:
    """Return the fields that failures and changes have in common, from a result."""
    test = result.test
    return {
        "model": result.model,
        "test": test.uid,
        "run": result.run,
        "rule": test.rule,
        "input": test.testinput,
        "output": result.output,
        "reason": result.reason,
    }


# --- Changes between two runs of the same tests, as before and after an edit


@dataclass(frozen=True, kw_only=True, slots=True)
class Change(_OneOutput):
    """One test whose verdict changed on one model; output and reason are the later run's."""

    before: str
    """`ok`, `err`, `unknown`, `error` or `not judged`."""
    after: str
    """The same for the later run."""


@dataclass(frozen=True)
class Comparison:
    """The changes for one model."""

    model: str
    before: Rate
    """Of the tests that both runs have, as is `after`."""
    after: Rate
    broken: tuple[Change, ...]
    """Tests that complied before and do not comply now."""
    fixed: tuple[Change, ...]
    """Tests that did not comply before and comply now."""
    other: tuple[Change, ...]
    """Tests that changed from or to unknown, error or not judged."""
    compared: int
    """Number of outputs in both runs: tests, times their repetitions."""
    only_before: int
    """Number of outputs in the earlier run only."""
    only_after: int
    """Number of outputs in the later run only."""
    scores: Mapping[str, ScoreDifference] = field(default_factory=dict)
    """`compliance` and every metric that both runs have, over the tests of rules, from 0 to 1: the
    difference with its interval. The repetitions of a test are kept together."""


def compare(
    before: Sequence[Result], after: Sequence[Result], *, unknown_as: UnknownAs = None
) -> list[Comparison]:
    """Compare two runs, test by test; tests match if uid and repetition are the same.

    Outputs that only one of the runs has are counted and not compared.

    Args:
        before: results of the earlier run.
        after: results of the later run.
        unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.

    Returns:
        One comparison per model that both runs have, in the later run's order.
    """
    old, new = _by_model(before), _by_model(after)
    return [
        _compare_model(model, old[model], new[model], unknown_as) for model in new if model in old
    ]


def _by_model(results: Sequence[Result]) -> dict[str, dict[tuple[str, int], Result]]:
    """Return results by model, then by test and repetition; the last of equal ones counts."""
    by_model: dict[str, dict[tuple[str, int], Result]] = {}
    for result in results:
        by_model.setdefault(result.model, {})[(result.test.uid, result.run)] = result
    return by_model


def _compare_model(
    model: str,
    before: dict[tuple[str, int], Result],
    after: dict[tuple[str, int], Result],
    unknown_as: UnknownAs,
) -> Comparison:
    """Compare the results of a model in two reports, over the outputs that both have.

    Changes are in the later run's order. Rates and changes include baseline tests; scores do not.
    """
    both = [(before[key], after[key]) for key in after if key in before]
    kinds: dict[tuple[str, str] | None, list[Change]] = {
        ("ok", "err"): [],
        ("err", "ok"): [],
        None: [],
    }
    for old, new in both:
        if old.state != new.state:
            change = Change(before=old.state, after=new.state, **_output_fields(new))
            kinds.get((old.state, new.state), kinds[None]).append(change)
    broken, fixed, other = map(tuple, kinds.values())
    return Comparison(
        model=model,
        before=rate_of((old for old, _ in both), unknown_as=unknown_as),
        after=rate_of((new for _, new in both), unknown_as=unknown_as),
        broken=broken,
        fixed=fixed,
        other=other,
        compared=len(both),
        only_before=len(before) - len(both),
        only_after=len(after) - len(both),
        scores=_score_differences([pair for pair in both if not pair[1].test.baseline], unknown_as),
    )


def _score_differences(
    pairs: Sequence[tuple[Result, Result]], unknown_as: UnknownAs
) -> dict[str, ScoreDifference]:
    """Return the difference of each score that both runs have, over pairs of results.

    A pair in which one result has no value does not count. Repetitions of a test are kept together.
    """
    values = [(values_of(old, unknown_as), values_of(new, unknown_as)) for old, new in pairs]
    before = {name for old, _ in values for name in old}
    now = dict.fromkeys(name for _, new in values for name in new)
    columns = {name: _value_pairs(name, values) for name in now if name in before}
    uids = [new.test.uid for _, new in pairs]
    repeated = len(set(uids)) < len(uids)
    return dict(paired(columns, uids if repeated else None))


def _value_pairs(
    name: str, values: Iterable[tuple[dict[str, float], dict[str, float]]]
) -> list[tuple[float, float] | None]:
    """Return a score's values before and now, output by output; None where one of them lacks it."""
    return [(old[name], new[name]) if name in old and name in new else None for old, new in values]


COMPLIANCE = "compliance"


def values_of(result: Result, unknown_as: UnknownAs = None) -> dict[str, float]:
    """Return an output's compliance and metrics as numbers from 0 to 1, without unknown ones.

    A metric is the mean of its judges, and each judge's own value stands beside it where there are
    several. A failed output has none.
    """
    if result.error is not None:
        return {}
    values: dict[str, float] = {}
    verdict = result.compliance
    share = None if verdict is None else share_of(verdict.outcome, unknown_as)
    if share is not None:
        values[COMPLIANCE] = share
    by_metric: dict[str, dict[str, float]] = {}
    for metric_result in result.metrics:
        if metric_result.value is not None:
            by_metric.setdefault(metric_result.metric, {})[metric_result.key] = (
                metric_result.value / 100
            )
    for metric, judged in by_metric.items():
        if metric != COMPLIANCE:
            values[metric] = fmean(judged.values())  # the mean over its judges
        if len(judged) > 1 or metric == COMPLIANCE:
            values |= judged
    return values
