"""`compare`: changes between two runs of the same tests, as before and after an edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from statistics import fmean

from rag_eval_integrations.evaluations import ScoreDifference
from rag_eval_integrations.evaluations._paired import paired
from rag_eval_integrations.prompt_tests.records import Result
from rag_eval_integrations.prompt_tests.report.rates import Rate, UnknownAs, rate_of, share_of


@dataclass(frozen=True, slots=True)
class Change:
    """One test whose verdict changed on one model."""

    model: str
    test: str
    """The test's uid."""
    run: int
    before: str
    """`ok`, `err`, `unknown`, `error` or `not judged`."""
    after: str
    """The same for the later run."""
    rule: str
    input: str
    output: str
    """The later run's output."""
    reason: str
    """The later run's reason or error; empty if it was not judged."""


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

    @property
    def p_value(self) -> float:
        """Probability of so uneven a split into broken and fixed by chance (two-sided sign test).

        1.0 if nothing was broken or fixed.
        """
        broken, fixed = len(self.broken), len(self.fixed)
        n = broken + fixed
        tail: float = sum(comb(n, k) for k in range(min(broken, fixed) + 1)) / 2**n
        return min(1.0, 2 * tail)


def compare(
    before: Sequence[Result], after: Sequence[Result], *, unknown_as: UnknownAs = None
) -> list[Comparison]:
    """Compare two runs, test by test; tests match if uid and repetition are the same.

    Args:
        before: results of the earlier run.
        after: results of the later run.
        unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.

    Returns:
        One comparison per model that both runs have, in the later run's order.
    """
    old, new = _by_model(before), _by_model(after)
    return [_compare(model, old[model], new[model], unknown_as) for model in new if model in old]


def _by_model(results: Sequence[Result]) -> dict[str, dict[tuple[str, int], Result]]:
    found: dict[str, dict[tuple[str, int], Result]] = {}
    for result in results:
        found.setdefault(result.model, {})[(result.test.uid, result.run)] = result
    return found


def _compare(
    model: str,
    before: dict[tuple[str, int], Result],
    after: dict[tuple[str, int], Result],
    unknown_as: UnknownAs,
) -> Comparison:
    both = [key for key in after if key in before]
    changes = [
        Change(
            model=model, test=key[0], run=key[1], before=before[key].state,
            after=after[key].state, rule=after[key].test.rule, input=after[key].test.testinput,
            output=after[key].output, reason=after[key].reason,
        )
        for key in both
        if before[key].state != after[key].state
    ]  # fmt: skip
    broken = [change for change in changes if (change.before, change.after) == ("ok", "err")]
    fixed = [change for change in changes if (change.before, change.after) == ("err", "ok")]
    return Comparison(
        model=model,
        before=rate_of((before[key] for key in both), unknown_as=unknown_as),
        after=rate_of((after[key] for key in both), unknown_as=unknown_as),
        broken=tuple(broken),
        fixed=tuple(fixed),
        other=tuple(change for change in changes if change not in broken and change not in fixed),
        compared=len(both),
        only_before=len(before) - len(both),
        only_after=len(after) - len(both),
        scores=_scores(
            [(before[key], after[key]) for key in both if not after[key].test.baseline], unknown_as
        ),
    )


def _scores(
    pairs: Sequence[tuple[Result, Result]], unknown_as: UnknownAs
) -> dict[str, ScoreDifference]:
    values = [(values_of(old, unknown_as), values_of(new, unknown_as)) for old, new in pairs]
    in_a, in_b = (dict.fromkeys(name for pair in values for name in pair[at]) for at in (0, 1))
    columns: dict[str, list[tuple[float, float] | None]] = {
        name: [
            (old[name], new[name]) if name in old and name in new else None for old, new in values
        ]
        for name in in_a
        if name in in_b
    }
    uids = [new.test.uid for _, new in pairs]
    repeated = len(set(uids)) < len(uids)
    found = paired(columns, uids if repeated else None)
    return {
        name: replace(
            difference,
            became_unscored=dict(
                Counter(
                    pair[1].state if name == COMPLIANCE else "no score"
                    for pair, (old, new) in zip(pairs, values, strict=True)
                    if name in old and name not in new
                ).most_common()
            ),
            became_scored=sum(name in new and name not in old for old, new in values),
        )
        for name, difference in found.items()
    }  # fmt: skip


COMPLIANCE = "compliance"


def values_of(result: Result, unknown_as: UnknownAs = None) -> dict[str, float]:
    """Return an output's compliance and metrics as numbers from 0 to 1; without those unknown."""
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
