"""Rates of compliance with their counts and confidence intervals. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.prompt_tests.records import Result

UnknownAs = Literal["err"] | None
"""`err` counts an unknown verdict as not compliant, like PromptPex; None leaves it out."""

_Z = 1.959963984540054
"""Quantile of the normal distribution for a two-sided 95 % interval."""


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


def wilson(successes: int, n: int, z: float = _Z) -> tuple[float, float]:
    """Return the Wilson score interval of a share (E. B. Wilson, 1927).

    Args:
        successes: number of successes, from 0 to `n`.
        n: number of trials, from 1.
        z: quantile of the normal distribution; 1.96 for 95 %.

    Returns:
        The lower and upper end, from 0 to 1.
    """
    share = successes / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


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
