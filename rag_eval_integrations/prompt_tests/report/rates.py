"""Rates of compliance with counts and intervals; several judges' verdicts together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from rag_eval_integrations.agreement._statistics import cohen_kappa, fleiss_kappa
from rag_eval_integrations.prompt_tests.records import Judged, Result
from rag_eval_integrations.records.mean import wilson as _wilson

UnknownAs = Literal["err"] | None
"""`err` counts an unknown verdict as not compliant, like PromptPex; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Numbers of outputs by outcome, and the rate of compliance."""

    ok: int = 0
    """Compliant outputs."""
    err: int = 0
    """Outputs that do not comply."""
    unknown: int = 0
    """Outputs that were judged without a verdict, or whose judge did not answer."""
    errors: int = 0
    """Failures of the model, without an output."""
    unknown_as: UnknownAs = None

    @property
    def n(self) -> int:
        """The rate's denominator: ok and err, plus unknown if it counts as err."""
        return self.ok + self.err + (self.unknown if self.unknown_as == "err" else 0)

    @property
    def compliant(self) -> float | None:
        """The share of compliant outputs, 0 to 1; None if `n` is 0."""
        return self.ok / self.n if self.n else None

    @property
    def non_compliant(self) -> float | None:
        """Test Non-Compliance (TNC), 1 - `compliant`; None if `n` is 0."""
        return None if self.compliant is None else 1 - self.compliant

    @property
    def percent(self) -> int | None:
        """The compliant share in whole percent, with halves rounded up, like PromptPex."""
        return None if self.compliant is None else math.floor(100 * self.compliant + 0.5)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of `compliant`; None if `n` is 0.

        With 20 tests, one verdict moves the rate by 5 points; the interval is much wider.
        """
        return wilson(self.ok, self.n) if self.n else None


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the ends of the 95 % Wilson interval of `successes` among `n` cases, n from 1."""
    found = _wilson(successes / n, n)
    return found.low, found.high


def rate_of(results: Iterable[Result], *, unknown_as: UnknownAs = None) -> Rate:
    """Count the verdicts on compliance; results that were not judged are left out.

    Args:
        results: the results.
        unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.
    """
    counts = {"ok": 0, "err": 0, "unknown": 0}
    errors = 0
    for result in results:
        if result.error is not None:
            errors += 1
        elif result.compliance is not None:
            counts[result.compliance.outcome] += 1
    return Rate(counts["ok"], counts["err"], counts["unknown"], errors, unknown_as)


# --- Several judges: the majority, and how far they agree


def verdicts_of(result: Result) -> list[Judged]:
    """List the verdicts of all judges on compliance, that of the first judge first."""
    return [one for one in (result.compliance, *result.others) if one is not None]


def by_majority(results: Iterable[Result]) -> list[Result]:
    """Put the verdict of most judges in place of the first judge's.

    Verdicts of `ok` and `err` are counted. If there are as many of both, or none, the verdict is
    `unknown`. A result that fewer than two judges judged stays as it is.
    """
    return [_with_majority(result) for result in results]


def _with_majority(result: Result) -> Result:
    said = verdicts_of(result)
    if len(said) < 2:
        return result
    ok, err = (sum(one.outcome == outcome for one in said) for outcome in ("ok", "err"))
    outcome: Literal["ok", "err", "unknown"]
    outcome = "ok" if ok > err else "err" if err > ok else "unknown"
    of_it = [one for one in said if one.outcome == outcome]
    counts = f"{ok} of {len(said)} judges say ok, {err} err"
    reason = f"{counts}: {of_it[0].reason}" if of_it and outcome != "unknown" else counts
    known = [one.probability for one in said if one.probability is not None]
    majority = Judged(
        outcome=outcome,
        reason=reason,
        judge="majority",
        probability=fmean(known) if len(known) == len(said) else None,
    )
    return result.model_copy(update={"compliance": majority, "others": tuple(said)})


@dataclass(frozen=True, slots=True)
class JudgesAgreement:
    """How far judges agree on compliance, over the outputs that all of them judged ok or err."""

    judges: tuple[str, ...]
    n: int
    """Number of outputs."""
    agree: float | None
    """Share of outputs on which all say the same, 0 to 1; None without outputs."""
    kappa: float | None
    """Agreement beyond chance, -1 to 1: Cohen's of two judges, Fleiss' of more; None without
    outputs, or where all verdicts are the same."""
    method: str
    """`Cohen` or `Fleiss`."""


def judges_agreement(results: Iterable[Result]) -> list[JudgesAgreement]:
    """Compare the judges of the rule tests' outputs: all together, and if more than two in pairs.

    Returns:
        The agreement of all judges, then of each pair; empty for fewer than two judges.
    """
    rows: list[dict[str, str]] = [
        {one.judge or "": one.outcome for one in verdicts_of(result) if one.judge != "majority"}
        for result in results
        if result.error is None and not result.test.baseline
    ]
    # A verdict without a judge's name is that on an empty output, which nobody was asked about.
    names = list(dict.fromkeys(name for row in rows for name in row if name))
    if len(names) < 2:
        return []
    groups = [tuple(names), *(combinations(names, 2) if len(names) > 2 else ())]
    return [_agreement(group, rows) for group in groups]


def _agreement(judges: tuple[str, ...], rows: Sequence[dict[str, str]]) -> JudgesAgreement:
    said = [
        [row[name] == "ok" for name in judges]
        for row in rows
        if all(row.get(name) in ("ok", "err") for name in judges)
    ]
    two = len(judges) == 2
    kappa = (
        cohen_kappa([one[0] for one in said], [one[1] for one in said])
        if two
        else fleiss_kappa(said)
    )
    agree = sum(len(set(one)) == 1 for one in said) / len(said) if said else None
    return JudgesAgreement(judges, len(said), agree, kappa, "Cohen" if two else "Fleiss")
