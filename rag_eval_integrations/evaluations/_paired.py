"""Statistics of pairs: how sure a difference of means between two runs of the same calls is.

Values are taken as whole millionths, so that every machine gives the same figures, in any order of
the pairs. All of it works on units: a unit is a pair, or all pairs of one conversation, whose calls
are not independent of each other (arXiv:2411.00640).

* The interval of 0/1 scores, and where fewer than `MIN_CHANGED` units differ, is Bonett's and
  Price's (2012): the normal interval after one pair that rose by 1 and one that fell by 1 have been
  added; of conversations, one of average length each. It never has the width 0, which would claim
  to be certain because nothing happened to change.
* Otherwise it is Student's t, with the jackknife's error (Efron and Tibshirani 1993, ch. 11).

Conversations of unequal length tell less than as many equal ones: for the degrees of freedom, units
count as many as units of one length would have to be, (Σn)² / Σn² (Kish 1965).

* p is that of sign flips (Fisher 1935): each unit's difference could as well have been the other
  way. All flips where their sums are few, which for 0/1 scores is McNemar's exact test; else their
  normal limit, with a correction for the steps between sums (Edwards 1948).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple

from rag_eval_integrations._visible import counted
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records.mean import Z_975, Interval, t_975

MIN_PAIRS = 10
"""Fewer units have no interval."""
MIN_CHANGED = 10
"""Units that must differ from the most common difference for the shape of the rest to be seen."""
POWER = 2.80
"""Standard errors of the smallest difference that is seen in 80 % of samples: z.975 + z.80."""

DERIVED = ("supported_fraction", "trace_average")
"""Scores that tell of the same sentences again as the four others."""

_MILLIONTHS = 10**6
_MOST_SUMS = 1 << 16
"""Sums of flips that are gone through: those of 15 units, or of 360 that changed equally."""

Outcome = Literal["worse", "fine", "cannot tell"]
Values = tuple[float, float]
"""One pair's values in the first and the second run, in [0, 1]."""


def millionths(value: float) -> int:
    """Round a value to millionths, in which values are compared; equal ones are ties."""
    return round(value * _MILLIONTHS)


class Verdict(NamedTuple):
    """Whether a score has become worse by more than a margin."""

    outcome: Outcome
    reason: str
    """The outcome in words, with the figures."""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


@dataclass(frozen=True)
class ScoreDifference:
    """The difference of one score between two runs, over the calls that have it in both."""

    name: str
    n: int
    """Number of calls with a value in both runs."""
    mean_a: float | None
    """Mean over these `n` calls in the first run; None without any."""
    mean_b: float | None
    difference: float | None
    """`mean_b - mean_a`, from -1 to 1; above 0 is better."""
    interval: Interval | None
    """95 % interval of the difference, within [-1, 1], by `Bonett-Price` or `Student's t`; None for
    fewer than 10 calls (or conversations)."""
    p: float | None
    """Two-sided p-value of no difference, by sign flips; None without any call."""
    p_holm: float | None
    """The same, adjusted for the number of scores that were compared; None for
    `supported_fraction` and `trace_average` beside adherence: they tell of the same sentences
    again, and are not counted."""
    wins: int
    """Number of calls that rose."""
    losses: int
    """Number of calls that fell."""
    ties: int
    became_unscored: Mapping[str, int]
    """Why calls with a value in the first run have none in the second: code → number of calls.
    `error` is a failure, `absent` a score that was not made."""
    became_scored: int
    """Number of calls with a value in the second run only."""
    smallest_visible: float | None
    """The smallest true difference that so many calls show four times out of five; None for fewer
    than 10."""
    conversations: int | None = None
    """Number of conversations, which were kept together; None where each call stands alone."""
    same_documents: bool = False
    """Whether the difference is 0 by construction: the score depends on the retrieval alone, and
    all `n` calls have the same question, history and documents. Nothing is tested then, and
    `interval`, `p`, `p_holm` and `smallest_visible` are None."""
    own_mean_a: float | None = None
    """Of a score whose relevant sentences are pooled, the mean over the same calls by the first
    run's labels alone; None for another score, and where nothing is pooled."""
    own_mean_b: float | None = None

    def verdict(self, delta: float = 0.0) -> Verdict:
        """Tell whether the score has become worse by more than `delta`.

        * `worse`: the whole 95 % interval is below `-delta`.
        * `fine`: none of it is, or the documents are the same (`same_documents`).
        * `cannot tell`: the interval reaches across `-delta`, or there are fewer than 10 calls.

        Args:
            delta: the fall that does not matter, from 0 to 1.

        Raises:
            ConfigurationError: `delta` is outside 0 to 1.
        """
        if not _is_share(delta):
            raise ConfigurationError("delta", delta, "use a number from 0 to 1")
        if self.same_documents:
            same = f"{counted(self.n, 'call')} with the same documents in both runs"
            return Verdict("fine", f"{same}, so there is no difference")
        if self.interval is None or self.difference is None:
            units = f"{self.conversations} conversations"
            count = counted(self.n, "call") if self.conversations is None else units
            return Verdict("cannot tell", f"{count} in both runs, at least {MIN_PAIRS} needed")
        low, high, method = self.interval.low, self.interval.high, self.interval.method
        figures = (
            f"{self.fell_and_rose}: {self.difference:+.3f} [{low:+.3f}, {high:+.3f}] ({method})"
        )
        line = f"{-delta:g}" if delta else "0"
        if high < -delta:
            return Verdict("worse", f"{figures} is wholly below {line}")
        if low >= -delta:
            return Verdict("fine", f"{figures} is not below {line}")
        reason = (
            f"{figures} reaches across {line}; {counted(self.n, 'call')} show differences from "
        )
        return Verdict("cannot tell", f"{reason}{self.smallest_visible:.3f}{self._needed(delta)}")

    @property
    def fell_and_rose(self) -> str:
        """How many calls fell and rose, in words."""
        return f"{self.losses:,} of {counted(self.n, 'call')} fell, {self.wins:,} rose"

    def _needed(self, delta: float) -> str:
        """Say how many calls would show a difference of delta."""
        if not delta or not self.smallest_visible or self.smallest_visible <= delta:
            return ""
        calls = math.ceil(self.n * (self.smallest_visible / delta) ** 2)
        # Two digits: the spread is an estimate itself.
        step: int = 10 ** max(0, len(str(calls)) - 2)
        return f", and some {-(-calls // step) * step:,} would show one of {delta:g}"

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return asdict(self)


def _is_share(value: object) -> bool:
    # As numpy's floats are, which a loop over deltas may give.
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) <= 1


def paired(
    scores: Mapping[str, Sequence[Values | None]],
    groups: Sequence[Hashable] | None = None,
    same: Iterable[str] = (),
) -> dict[str, ScoreDifference]:
    """Compute the differences of several scores over the same calls.

    Each score's figures are the same whatever other scores stand beside it, except for `p_holm`.

    Args:
        scores: for each score, a pair of values per call; None for a call without both.
        groups: the conversation of each call; None where each call stands alone.
        same: the scores whose difference is 0 by construction, so that nothing is tested.
    """
    figures = {name: _Units.of(pairs, groups).figures(name) for name, pairs in scores.items()}
    for name in same:
        untested = replace(figures[name], interval=None, p=None, smallest_visible=None)
        figures[name] = replace(untested, same_documents=True)
    apart = DERIVED if figures.get("adherence") and figures["adherence"].n else ()
    ps = {name: score.p for name, score in figures.items() if name not in apart}
    adjusted = _holm({name: p for name, p in ps.items() if p is not None})
    return {name: replace(score, p_holm=adjusted.get(name)) for name, score in figures.items()}


_PRICE, _STUDENT = "Bonett-Price", "Student's t"


@dataclass(frozen=True)
class _Units:
    """One score's differences in millionths: their sum and number in each unit."""

    values: list[Values]
    differences: list[int]
    sums: list[int]
    counts: list[int]
    grouped: bool

    @staticmethod
    def of(pairs: Sequence[Values | None], groups: Sequence[Hashable] | None) -> _Units:
        """Sum the differences per unit: per conversation, or per call without groups."""
        names = range(len(pairs)) if groups is None else groups
        there = [(name, pair) for name, pair in zip(names, pairs, strict=True) if pair is not None]
        differences = [millionths(after) - millionths(before) for _, (before, after) in there]
        counts = Counter(name for name, _ in there)
        sums = dict.fromkeys(counts, 0)
        for (name, _), difference in zip(there, differences, strict=True):
            sums[name] += difference
        return _Units(
            [pair for _, pair in there],
            differences,
            list(sums.values()),
            list(counts.values()),
            groups is not None,
        )

    def method(self) -> str | None:
        """Choose the method of the interval; None for too few units."""
        units = len(self.sums)
        if units < MIN_PAIRS:
            return None
        # By the mean of a unit: conversations that did not change are alike, whatever their length.
        seen = Counter(
            (total // divisor, count // divisor)
            for total, count in zip(self.sums, self.counts, strict=True)
            if (divisor := math.gcd(total, count))
        )
        most = seen.most_common(1)[0][1]
        sparse = most > 1 and units - most < MIN_CHANGED
        binary = not self.grouped and {*self.values} <= {(a, b) for a in (0, 1) for b in (0, 1)}
        return _PRICE if sparse or binary else _STUDENT

    def figures(self, name: str) -> ScoreDifference:
        """Return the figures of the score, with no p-value adjusted."""
        n, method = len(self.differences), self.method()
        interval = error = None
        if method is not None:
            error, centre, reach = self._normal(method)
            low, high = centre - reach * error, centre + reach * error
            interval = Interval(max(-1.0, low), min(1.0, high), method)
        return ScoreDifference(
            name=name,
            n=n,
            mean_a=math.fsum(a for a, _ in self.values) / n if n else None,
            mean_b=math.fsum(b for _, b in self.values) / n if n else None,
            difference=sum(self.differences) / n / _MILLIONTHS if n else None,
            interval=interval,
            p=_sign_flip_p(self.sums) if n else None,
            p_holm=None,
            wins=sum(difference > 0 for difference in self.differences),
            losses=sum(difference < 0 for difference in self.differences),
            ties=self.differences.count(0),
            became_unscored={},
            became_scored=0,
            smallest_visible=None if error is None else POWER * error,
            conversations=len(self.sums) if self.grouped else None,
        )

    def _normal(self, method: str) -> tuple[float, float, float]:
        """Return the standard error, the centre, and the reach in standard errors."""
        units, pairs = len(self.sums), list(zip(self.sums, self.counts, strict=True))
        if method == _PRICE:
            length = round(sum(self.counts) / units)  # of an average conversation; 1 for pairs
            pairs += [(length * _MILLIONTHS, length), (-length * _MILLIONTHS, length)]
        n, total = sum(count for _, count in pairs), sum(self.sums)
        if method == _PRICE:  # in whole numbers up to the root: Σ (n·sum - count·total)² / n⁴
            error = math.sqrt(sum((n * s - c * total) ** 2 for s, c in pairs) / n**4)
        else:  # what the mean changes by, without one unit after the other
            changes = ((n * s - c * total) / (n * (n - c)) for s, c in pairs)
            error = math.sqrt((units - 1) / units * math.fsum(change**2 for change in changes))
        effective = sum(self.counts) ** 2 / sum(count**2 for count in self.counts)
        # Below one degree, as where one conversation holds 70 % of all, t exceeds every range.
        normal = method == _PRICE and max(self.counts) == 1
        reach = Z_975 if normal else t_975(max(1, effective - 1))
        return error / _MILLIONTHS, total / n / _MILLIONTHS, reach


def _sign_flip_p(sums: Sequence[int]) -> float:
    """Return the two-sided p-value of the sign-flip test."""
    sizes, observed = sorted(abs(total) for total in sums if total), abs(sum(sums))
    shares, gone_through = {0: 1.0}, 0  # of all flips, by their sums
    for size in sizes:
        flipped: dict[int, float] = {}
        for total, share in shares.items():
            for end in (total - size, total + size):
                flipped[end] = flipped.get(end, 0.0) + share / 2
        shares = flipped
        gone_through += len(shares)
        if gone_through > _MOST_SUMS:
            deviation = math.sqrt(sum(size**2 for size in sizes))
            apart = max(0, observed - math.gcd(*sizes)) / deviation
            # Not below the share of one flip and its mirror image, as far as a float can tell it.
            return max(2.0 ** max(1 - len(sizes), -1_000), math.erfc(apart / math.sqrt(2)))
    return min(1.0, math.fsum(share for end, share in shares.items() if abs(end) >= observed))


def _holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values for the number of scores, by Holm's method."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, (p, name) in enumerate(sorted((p, name) for name, p in ps.items())):
        largest = adjusted[name] = max(largest, min(1.0, p * (len(ps) - rank)))
    return adjusted
