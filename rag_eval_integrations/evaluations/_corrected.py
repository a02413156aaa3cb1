"""Means that people have corrected: what a judge says of all calls, moved by labels of some.

Prediction-powered inference with power tuning (PPI++, arXiv:2311.01453), for calls that were drawn
at random, without replacement, from calls that are all known. With N calls, n of them labelled,
judge's values f and people's y:

    mean = mean of y + w · (mean of f over all N - mean of f over the n labelled)
    w    = covariance of y and f / variance of f, both over the labelled, from 0 to 1

The labelled calls are part of all N: this is PPI++ with the N - n others as its unlabelled calls,
whose weight is w · (N - n) / N, and survey sampling's regression estimator. A judge that says
nothing about people's labels has the weight 0, and their plain mean remains.

* The variance is the jackknife's. It leaves out one conversation after the other and finds w anew
  each time, so that neither calls that depend on each other nor a weight found by few labels make
  it too small. The share 1 - n / N remains of it: people have spoken about the rest.
* The interval is Wilson's at the effective size m = mean · (1 - mean) / variance, as a comparison
  of intervals in complex surveys recommends (PMC6690503), with Student's t for the effective number
  of conversations. Student's t around the mean itself covers too seldom where nearly all
  labels are alike: in 92.8 % of draws of 50 labels of answers that are 92 % adherent.
* Where the labels show no spread, as all of them are 1 or just as the judge said, the variance is
  mean · (1 - mean) / n. So no interval has the width 0 before all calls are labelled.
* Values between 0 and 1 of which fewer than 10 differ from the judge's hardly tell how far such
  calls may lie apart. The variance is then at least that of the labels alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_eval_integrations._visible import counted
from rag_eval_integrations.evaluations._paired import MIN_CHANGED
from rag_eval_integrations.evaluations.summary import aligned
from rag_eval_integrations.records.mean import Z_975, Interval, t_975, wilson

_NOISE = 1e-12


class CorrectedRun(NamedTuple):
    """The corrected means of one of several runs, or why it has none."""

    name: str
    means: CorrectedMeans | None
    why_not: str = ""


class LabelledCall(NamedTuple):
    """One score of a call that was drawn at random, as the judge and as people have it."""

    judge: float
    people: float
    conversation: Hashable
    """What a call shares with those that it is not independent of."""


@dataclass(frozen=True)
class CorrectedMean:
    """What people would say of all calls, by the labels of some of them."""

    mean: float
    """In [0, 1]."""
    interval: Interval
    """95 % interval of the mean of these very calls."""
    judge: float
    """The judge's own mean over all calls."""
    labels: int
    """Calls with people's labels."""
    calls: int
    """Calls with the judge's value, the labelled ones among them."""
    weight: float
    """How much the judge's values count beside the labels, from 0 to 1."""
    labels_to_halve: int
    """Labels, those that there are among them, with which the interval is half as wide."""


@dataclass(frozen=True)
class CorrectedMeans:
    """The corrected means of a file of evaluations, and the draw that people have labelled."""

    means: Mapping[str, CorrectedMean]
    """Those of the scores that people's labels tell of."""
    drawn: int
    """Number of calls of the draw."""
    calls: int
    """Number of calls that it was drawn from."""
    seed: int
    left_out: int
    """Labellings of calls that are not of the draw, or were labelled again later."""

    def rows(self) -> list[list[str]]:
        """Write the table: headings, and a row for each score."""
        rows = [["score", "judge", "corrected", "95 %", "labels"]]
        for name, figures in self.means.items():
            means = f"{figures.judge:.3f}", f"{figures.mean:.3f}", f"{figures.interval:.2f}"
            rows.append([name, *means, f"{figures.labels:,} of {figures.calls:,}"])
        return rows

    def remarks(self) -> list[str]:
        """Say what the labels are, what they leave out, and how many more would tell much more."""
        labelled = f"{counted(self.drawn, 'call')} drawn from these {self.calls:,}"
        lines = [f"Corrected by people's labels of {labelled} (seed {self.seed})."]
        if self.drawn < self.calls:
            most = max(figures.labels_to_halve for figures in self.means.values())
            review = f"rag-eval review EVALS -o LABELS --n {most} --seed {self.seed}"
            lines += [
                f"With 95 % confidence, labels of all {self.calls:,} have a mean in the interval.",
                f"{most:,} labels in all would make the intervals half as wide: {review}.",
            ]
        if self.left_out:
            other = counted(self.left_out, "other labelled call is", "other labelled calls are")
            lines.append(f"{other} left out: not of this draw, or labelled again later.")
        return lines

    def __str__(self) -> str:
        return "\n".join([*aligned(self.rows()), *self.remarks()])


def corrected(judge: float, calls: int, labelled: Sequence[LabelledCall]) -> CorrectedMean:
    """Correct a judge's mean by labels of a random draw.

    Args:
        judge: the judge's mean over all calls.
        calls: their number.
        labelled: those that were drawn and labelled, at least one.
    """
    n, units = len(labelled), _units(labelled)
    estimate, weight = _estimate(_total_of(units), judge)
    mean = min(1.0, max(0.0, estimate))
    interval = Interval(mean, mean, "all calls labelled")
    if n < calls:
        variance = _variance(units, judge)
        binary = all(value in (0.0, 1.0) for call in labelled for value in call[:2])
        differing = sum(abs(call.people - call.judge) > _NOISE for call in labelled)
        if not binary and differing < MIN_CHANGED:
            alone = [unit._replace(judge=0.0, both=0.0, squares=0.0) for unit in units]
            variance = max(variance, _variance(alone, 0.0))
        spread = mean * (1 - mean)
        size = spread / variance if min(variance, spread) > _NOISE else n
        # Wilson's interval depends on z² / size alone; here, t stands in for z.
        reach = t_975(max(1.0, n * n / sum(unit.n**2 for unit in units) - 1)) / Z_975
        ends = wilson(mean, size / (1 - n / calls) / reach**2)
        interval = Interval(ends.low, ends.high, "prediction-powered, Wilson")
    # For half the width, 1/n - 1/N has to be a quarter of what it is.
    halved = -(-4 * n * calls // (calls + 3 * n))
    return CorrectedMean(mean, interval, judge, n, calls, weight, halved)


class _Sums(NamedTuple):
    """Sums over labelled calls."""

    n: float
    people: float
    judge: float
    both: float
    squares: float


def _units(labelled: Sequence[LabelledCall]) -> list[_Sums]:
    """Sum up the calls of each conversation; of a single one, each call alone."""
    groups: defaultdict[Hashable, list[_Sums]] = defaultdict(list)
    for judge, people, conversation in labelled:
        groups[conversation].append(_Sums(1, people, judge, judge * people, judge * judge))
    if len(groups) > 1:
        return [_total_of(group) for group in groups.values()]
    return next(iter(groups.values()))


def _total_of(units: Sequence[_Sums]) -> _Sums:
    """Add sums up."""
    return _Sums(*map(math.fsum, zip(*units, strict=True)))


def _estimate(sums: _Sums, mean: float) -> tuple[float, float]:
    """Return the corrected mean, not yet cut to [0, 1], and the weight of the judge's mean."""
    n, people, judge, both, squares = sums
    spread = squares - judge * judge / n
    tuned = (both - judge * people / n) / spread if spread > _NOISE * n else 0.0
    weight = min(1.0, max(0.0, tuned))
    return people / n + weight * (mean - judge / n), weight


def _variance(units: Sequence[_Sums], judge: float) -> float:
    """Return the jackknife's variance over leaving out each conversation."""
    total, changes = _total_of(units), []
    for unit in units if len(units) > 1 else ():
        rest = _Sums(*(of_all - of_one for of_all, of_one in zip(total, unit, strict=True)))
        changes.append(_estimate(rest, judge)[0] - _estimate(total, judge)[0])
    return (len(units) - 1) / len(units) * math.fsum(change * change for change in changes)
