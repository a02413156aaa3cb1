"""Statistics of pairs: how sure a difference of means between two runs of the same calls is.

Values are taken as whole millionths, so that every machine gives the same figures from the same
random seed. All of it works on units: a unit is a pair, or all pairs of one conversation, whose
calls are not independent of each other (arXiv:2411.00640).

* The interval is the percentile bootstrap of the mean difference (Efron and Tibshirani 1993,
  ch. 13) where that can be trusted: from `MIN_BOOTSTRAP` units, of which `MIN_CHANGED` differ.
  From `MANY` units on, a mean is as good as normal, and nothing is drawn any more.
* With fewer that differ, and for few pairs of 0/1 scores, it is Bonett's and Price's (2012): the
  normal interval after one pair that rose by 1 and one that fell by 1 have been added; of
  conversations, one of average length each. It never has the width 0, which would claim to be
  certain because nothing happened to change.
* Otherwise it is Student's t, with the jackknife's error.

Conversations of unequal length tell less than as many equal ones: for their rules and degrees of
freedom, units count as many as units of one length would have to be, (Σn)² / Σn² (Kish 1965).

* p is that of sign flips (Fisher 1935): each unit's difference could as well have been the other
  way. All flips where there are few, which for 0/1 scores is McNemar's exact test; drawn ones where
  there are more; and their normal limit for `MANY` units.
"""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from numbers import Real
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from rag_eval_integrations._visible import counted
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records.mean import Z_975, Interval, t_975

SEED = 20240707
"""Default seed; any number would do."""
MIN_PAIRS = 10
"""Fewer units have no interval."""
MIN_BOOTSTRAP = 50
MANY = 1_000
"""Units from which on the normal distribution stands for draws."""
MIN_CHANGED = 10
"""Units that must differ from the most common difference for the shape of the rest to be seen."""
RESAMPLES = 2_000
FLIPS = 10_000
POWER = 2.80
"""Standard errors of the smallest difference that is seen in 80 % of samples: z.975 + z.80."""

DERIVED = ("supported_fraction", "trace_average")
"""Scores that tell of the same sentences again as the four others."""

_MILLIONTHS = 10**6
_MOST_EXACT = 20
"""Units that differ, up to which all flips are counted: 2²⁰ sums take 0.1 s."""

Outcome = Literal["worse", "fine", "cannot tell"]
Values = tuple[float, float]
"""One pair's values in the first and the second run, in [0, 1]."""


def millionths(value: float) -> int:
    """Return a value as it is compared: values that agree in it are ties."""
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
    """95 % interval of the difference, within [-1, 1], by `bootstrap`, `Bonett-Price` or
    `Student's t`; None for fewer than 10 calls (or conversations)."""
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
    """Number of conversations, which were resampled as wholes; None where each call stands alone.
    """
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
    *,
    seed: int = SEED,
) -> dict[str, ScoreDifference]:
    """Compute the differences of several scores over the same calls.

    All scores are resampled by the same draws and flips, and each score's figures are the same
    whatever other scores stand beside it, except for `p_holm`.

    Args:
        scores: for each score, a pair of values per call; None for a call without both.
        groups: the conversation of each call; None where each call stands alone.
        seed: of the random draws.
    """
    units = {name: _Units.of(pairs, groups) for name, pairs in scores.items()}
    wide = {name: score for name, score in units.items() if score.method() == _BOOTSTRAP}
    bounds, ps = _bootstrap(wide, seed), _flips(units, seed)
    apart = DERIVED if "adherence" in ps else ()
    adjusted = _holm({name: p for name, p in ps.items() if name not in apart})
    return {
        name: score.figures(name, bounds.get(name), ps.get(name), adjusted.get(name))
        for name, score in units.items()
    }


_BOOTSTRAP, _PRICE, _STUDENT = "bootstrap", "Bonett-Price", "Student's t"


@dataclass(frozen=True)
class _Units:
    """One score's differences in millionths: their sum and number in each unit."""

    values: list[Values]
    differences: list[int]
    sums: list[int]
    counts: list[int]
    """0 for a unit of which no pair has the score."""
    grouped: bool

    @staticmethod
    def of(pairs: Sequence[Values | None], groups: Sequence[Hashable] | None) -> _Units:
        """Sum the differences per unit: per conversation, or per call without groups."""
        names = range(len(pairs)) if groups is None else groups
        sums, counts = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        values, differences = [], []
        for name, pair in zip(names, pairs, strict=True):
            if pair is not None:
                values.append(pair)
                differences.append(millionths(pair[1]) - millionths(pair[0]))
                sums[name] += differences[-1]
                counts[name] += 1
        return _Units(
            values, differences, list(sums.values()), list(counts.values()), groups is not None
        )

    @property
    def size(self) -> int:
        """Count the units that have a pair."""
        return sum(count > 0 for count in self.counts)

    @property
    def effective(self) -> float:
        """The number of units of one length that tell as much, from 1 to `size`."""
        return sum(self.counts) ** 2 / sum(count**2 for count in self.counts)

    def method(self) -> str | None:
        """Choose the method of the interval; None for too few pairs.

        By the number of units, whether the scores are 0 or 1, and how many of them changed.
        """
        if self.size < MIN_PAIRS:
            return None
        # By the mean of a unit: conversations that did not change are alike, whatever their length.
        seen = Counter(
            (total // divisor, count // divisor)
            for total, count in zip(self.sums, self.counts, strict=True)
            if (divisor := math.gcd(total, count))
        )
        most = seen.most_common(1)[0][1]
        sparse = most > 1 and self.size - most < MIN_CHANGED
        binary = all(value in (0.0, 1.0) for pair in self.values for value in pair)
        if sparse or (binary and self.size < MIN_BOOTSTRAP):
            return _PRICE
        drawn = self.effective >= MIN_BOOTSTRAP and len(self.sums) < MANY
        return _BOOTSTRAP if drawn else _STUDENT

    def figures(
        self, name: str, bounds: tuple[float, float] | None, p: float | None, p_holm: float | None
    ) -> ScoreDifference:
        """Return the figures of a score from its units and p-values.

        Without an interval where there are too few pairs.
        """
        n = len(self.differences)
        method = self.method()
        interval = error = None
        if method is not None:
            error, centre, reach = self._normal(method)
            low, high = bounds or (centre - reach * error, centre + reach * error)
            interval = Interval(max(-1.0, low), min(1.0, high), method)
        return ScoreDifference(
            name=name, n=n,
            mean_a=math.fsum(a for a, _ in self.values) / n if n else None,
            mean_b=math.fsum(b for _, b in self.values) / n if n else None,
            difference=sum(self.differences) / n / _MILLIONTHS if n else None,
            interval=interval, p=p, p_holm=p_holm,
            wins=sum(difference > 0 for difference in self.differences),
            losses=sum(difference < 0 for difference in self.differences),
            ties=self.differences.count(0), became_unscored={}, became_scored=0,
            smallest_visible=None if error is None else POWER * error,
            conversations=self.size if self.grouped else None,
        )  # fmt: skip

    def _normal(self, method: str) -> tuple[float, float, float]:
        """Return the standard error, the centre, and the reach in standard errors."""
        units, pairs = self.size, list(zip(self.sums, self.counts, strict=True))
        if method == _PRICE:
            length = round(sum(self.counts) / units)  # of an average conversation; 1 for pairs
            pairs += [(length * _MILLIONTHS, length), (-length * _MILLIONTHS, length)]
        n, total = sum(count for _, count in pairs), sum(self.sums)
        if method == _PRICE:  # in whole numbers up to the root: Σ (n·sum - count·total)² / n⁴
            error = math.sqrt(sum((n * s - c * total) ** 2 for s, c in pairs) / n**4)
        else:  # what the mean changes by, without one unit after the other
            changes = ((n * s - c * total) / (n * (n - c)) for s, c in pairs)
            error = math.sqrt((units - 1) / units * math.fsum(change**2 for change in changes))
        # Below one degree, as where one conversation holds 70 % of all, t exceeds every range.
        normal = method == _PRICE and max(self.counts) == 1
        reach = Z_975 if normal else t_975(max(1, self.effective - 1))
        return error / _MILLIONTHS, total / n / _MILLIONTHS, reach


# --- Bootstrap


def _bootstrap(scores: Mapping[str, _Units], seed: int) -> dict[str, tuple[float, float]]:
    """Return the 2.5th and 97.5th percentile of each score's mean difference on the same draws."""
    generator = random.Random(seed)
    means: dict[str, list[float]] = {name: [] for name in scores}
    size = max((len(score.sums) for score in scores.values()), default=0)  # the same of all
    for _ in range(RESAMPLES if scores else 0):
        # Units with replacement, three times as fast as by `random.choices`.
        words = struct.unpack(f"<{size}I", generator.randbytes(4 * size))
        drawn = itemgetter(*[word * size >> 32 for word in words])
        for name, score in scores.items():
            n = sum(drawn(score.counts))
            if n:  # no drawn unit has the score: next to impossible from 50 that have it
                means[name].append(sum(drawn(score.sums)) / n / _MILLIONTHS)
    ordered = {name: sorted(replicates) for name, replicates in means.items()}
    return {name: (_percentile(r, 0.025), _percentile(r, 0.975)) for name, r in ordered.items()}


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, by linear interpolation."""
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    # In this form, equal neighbours give exactly their value, without a rounding error.
    return low + (high - low) * (place - math.floor(place))


# --- Sign flips


def _flips(scores: Mapping[str, _Units], seed: int) -> dict[str, float]:
    """Return the two-sided p-value of each score that has a pair.

    Exactly where all changes are of one size or few, by a normal approximation for very many, else
    by random flips.
    """
    ps: dict[str, float] = {}
    sampled = {}
    for name, score in scores.items():
        changed, observed = [abs(total) for total in score.sums if total], abs(sum(score.sums))
        if not score.differences:
            continue
        if len(set(changed)) <= 1:  # as of 0/1 scores
            ps[name] = _mcnemar(sum(total > 0 for total in score.sums), len(changed))
        elif len(changed) <= _MOST_EXACT:
            ps[name] = _all_flips(changed, observed)
        elif len(score.sums) >= MANY:
            deviation = math.sqrt(sum(size**2 for size in changed))
            ps[name] = max(1 / (FLIPS + 1), math.erfc(observed / deviation / math.sqrt(2)))
        else:
            sampled[name] = score
    return ps | _sampled_flips(sampled, seed)


def _mcnemar(wins: int, changed: int) -> float:
    """Sum both tails of the binomial distribution, exactly."""
    tail = term = 1
    for i in range(min(wins, changed - wins)):
        term = term * (changed - i) // (i + 1)
        tail += term
    share: float = 2 * tail / 2**changed
    return min(1.0, share)


def _all_flips(sizes: Sequence[int], observed: int) -> float:
    """Return the p-value of the sign-flip test over all flips."""
    # The first sign is left at plus: the other half of all flips is the mirror image.
    totals = [sizes[0]]
    for size in sizes[1:]:
        totals = [t + size for t in totals] + [t - size for t in totals]
    return sum(abs(total) >= observed for total in totals) / len(totals)


def _sampled_flips(scores: Mapping[str, _Units], seed: int) -> dict[str, float]:
    """Return the p-values of the sign-flip test over random flips."""
    generator = random.Random(seed + 1)  # not the bits that the bootstrap draws by
    # The last unit first: it belongs to the highest bit, which is written first.
    sizes = {name: [abs(total) for total in reversed(unit.sums)] for name, unit in scores.items()}
    bounds = {name: (sum(sizes[name]), abs(sum(unit.sums))) for name, unit in scores.items()}
    extreme = dict.fromkeys(scores, 0)
    units = max(map(len, sizes.values()), default=0)  # the same of all
    for _ in range(FLIPS if scores else 0):
        bits = f"{generator.getrandbits(units):0{units}b}"
        flipped = bits.encode("ascii").translate(_AS_NUMBERS)
        for name, (whole, observed) in bounds.items():
            extreme[name] += abs(2 * sum(compress(sizes[name], flipped)) - whole) >= observed
    return {name: (1 + count) / (FLIPS + 1) for name, count in extreme.items()}


_AS_NUMBERS = bytes.maketrans(b"01", b"\0\1")


def _holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values by the number of scores: none falls below that of a smaller one."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, (p, name) in enumerate(sorted((p, name) for name, p in ps.items())):
        largest = adjusted[name] = max(largest, min(1.0, p * (len(ps) - rank)))
    return adjusted
