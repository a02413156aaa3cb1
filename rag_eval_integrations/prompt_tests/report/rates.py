"""Rates of compliance with what they rest on. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.prompt_tests.records import Result

UnknownAs = Literal["err"] | None
"""`err` counts an unknown verdict as not compliant, as upstream does; None leaves it out."""

_Z = 1.959963984540054
"""95 %, two-sided."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many outputs comply; the three outcomes stay apart."""

    ok: int = 0
    err: int = 0
    unknown: int = 0
    """Judged without a verdict, or by a judge that did not answer."""
    errors: int = 0
    """No output: the model failed."""
    unknown_as: UnknownAs = None

    @property
    def n(self) -> int:
        """What the rate is out of: ok and err, and unknown where it counts as err."""
        return self.ok + self.err + (self.unknown if self.unknown_as == "err" else 0)

    @property
    def compliant(self) -> float | None:
        """Share that complies, 0 to 1; None of none."""
        return self.ok / self.n if self.n else None

    @property
    def non_compliant(self) -> float | None:
        """Test Non-Compliance (TNC): the rest."""
        return None if self.compliant is None else 1 - self.compliant

    @property
    def percent(self) -> int | None:
        """The compliant share in whole percent, halves up, as upstream rounds."""
        return None if self.compliant is None else math.floor(100 * self.compliant + 0.5)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson interval of `compliant`; None of none.

        With 20 tests one verdict moves the rate by 5 points: the interval says how little that is.
        """
        return wilson(self.ok, self.n) if self.n else None


def wilson(successes: int, n: int, z: float = _Z) -> tuple[float, float]:
    """Return the Wilson score interval of a share (E. B. Wilson, 1927).

    Args:
        successes: from 0 to `n`.
        n: from 1.
        z: quantile of the normal distribution; 1.96 for 95 %.
    """
    share = successes / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def rate_of(results: Iterable[Result], *, unknown_as: UnknownAs = None) -> Rate:
    """Count the verdicts of results; what nobody judged yet counts nowhere."""
    counts = {"ok": 0, "err": 0, "unknown": 0}
    errors = 0
    for result in results:
        if result.error is not None:
            errors += 1
        elif result.compliance is not None:
            counts[result.compliance.outcome] += 1
    return Rate(counts["ok"], counts["err"], counts["unknown"], errors, unknown_as)
