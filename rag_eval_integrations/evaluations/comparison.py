"""What `compare` finds: differences of scores, verdicts, the calls that changed; their words."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_eval_integrations._counted import counted
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import _paired
from rag_eval_integrations.evaluations._paired import ScoreDifference, millionths
from rag_eval_integrations.evaluations._pairing import PairedBy, Run, evaluations_at, value_of
from rag_eval_integrations.records import Evaluation

# --- Two runs


@dataclass(frozen=True)
class Change:
    """One call in both runs."""

    before: Evaluation
    after: Evaluation
    difference: float | None
    """The change of the score that was asked for; None where the call became unscored."""

    def scores(self, names: Iterable[str]) -> Iterator[tuple[str, float | None, float | None]]:
        """Yield the scores that differ, among some: name, value before and value after."""
        for name in names:
            old, new = (one.scores.get(name) for one in (self.before, self.after))
            was, now = (None if one is None else one.value for one in (old, new))
            if was is None or now is None:
                if was is not now:
                    yield name, was, now
            elif millionths(was) != millionths(now):
                yield name, was, now


@dataclass(frozen=True, repr=False)
class Comparison:
    """A run compared with the first one, the baseline; `others` has further runs. See `compare`."""

    names: tuple[str, str]
    """Names of the baseline and of the run compared with it."""
    scores: Mapping[str, ScoreDifference]
    """The scores that both runs have, in the order of the baseline."""
    paired_by: PairedBy
    """`id`, or `question`: by question and reference."""
    pairs: int
    """Number of calls in both runs."""
    only_a: int
    """Number of calls in the baseline only, which are left out."""
    only_b: int
    notes: tuple[str, ...]
    """Sentences that a reader should know before trusting the figures."""
    seed: int
    """Of the random draws; the same seed gives the same figures on every machine."""
    others: tuple[Comparison, ...] = ()
    """One comparison with the baseline for each run after the second."""
    _runs: tuple[Run, Run] = field(compare=False, kw_only=True)
    _at: tuple[tuple[int, int], ...] = field(compare=False, kw_only=True)

    @property
    def all(self) -> tuple[Comparison, ...]:
        """This comparison and the others: one for each run but the baseline."""
        return (self, *self.others)

    def score(self, name: str) -> ScoreDifference:
        """Look up a score.

        Raises:
            ConfigurationError: the runs do not both have it; lists those they have.
        """
        found = self.scores.get(name)
        if found is None:
            why = f"no score {name!r} in both runs; they have {', '.join(self.scores) or 'none'}"
            raise ConfigurationError("name", name, why)
        return found

    def changed(self, name: str, limit: int | None = 10) -> list[Change]:
        """List the calls whose score changed most, a fall before a rise of the same size.

        Args:
            name: the score.
            limit: number of calls; None for all that changed.

        Raises:
            ConfigurationError: as for `score`.
        """
        self.score(name)
        return self._changes(self._ordered([name])[:limit])

    def fell(self, name: str, limit: int | None = 10) -> list[Change]:
        """List the calls whose score fell most; arguments as for `changed`."""
        self.score(name)
        fallen = [one for one in self._ordered([name]) if one[2] is not None and one[2] < 0]
        return self._changes(fallen[:limit])

    def became_unscored(self, name: str, limit: int | None = 10) -> list[Change]:
        """List calls that have the score in the baseline only, in the order of the baseline.

        Args:
            name: the score.
            limit: number of calls; None for all.

        Raises:
            ConfigurationError: as for `score`.
        """
        self.score(name)
        a, b = self._runs
        lost = [
            (i, j, None)
            for i, j in self._at
            if value_of(a, i, name) is not None and value_of(b, j, name) is None
        ]
        return self._changes(lost[:limit])

    def _ordered(self, names: Iterable[str]) -> list[tuple[int, int, float | None]]:
        """List pairs with their greatest change in any of the scores, the greatest first."""
        a, b = self._runs
        found: list[tuple[int, int, float | None]] = []
        sizes: list[tuple[float, float, int]] = []
        wanted = list(names)
        for i, j in self._at:
            moved = [
                after - before
                for name in wanted
                if (before := value_of(a, i, name)) is not None
                and (after := value_of(b, j, name)) is not None
                and millionths(before) != millionths(after)
            ]
            largest = max(moved, key=lambda change: (abs(change), -change), default=None)
            if largest is not None:
                sizes.append((-abs(largest), largest, len(found)))
                found.append((i, j, largest))
        return [found[place] for _, _, place in sorted(sizes)]

    def _changes(self, wanted: Sequence[tuple[int, int, float | None]]) -> list[Change]:
        a, b = self._runs
        before = evaluations_at(a, [i for i, _, _ in wanted])
        after = evaluations_at(b, [j for _, j, _ in wanted])
        return [Change(before[i], after[j], difference) for i, j, difference in wanted]

    def changed_calls(self, limit: int | None = 20) -> list[Change]:
        """List the calls of which any score changed most; see `changed`.

        Args:
            limit: number of calls; None for all that changed.
        """
        return self._changes(self._ordered(self.scores)[:limit])

    @property
    def changed_count(self) -> int:
        """Number of calls of which any score changed."""
        return len(self._ordered(self.scores))

    def to_json(self) -> dict[str, Any]:
        """Return all figures as JSON values; `runs` has one entry for each run but the baseline."""
        return {
            "generator": GENERATOR,
            "baseline": self.names[0],
            "seed": self.seed,
            "resamples": _paired.RESAMPLES,
            "flips": _paired.FLIPS,
            "runs": [
                {
                    "name": one.names[1], "paired_by": one.paired_by, "pairs": one.pairs,
                    "only_baseline": one.only_a, "only_run": one.only_b,
                    "notes": list(one.notes),
                    "scores": [score.to_json() for score in one.scores.values()],
                }
                for one in self.all
            ],
        }  # fmt: skip

    def __repr__(self) -> str:
        found = (
            f"{name} {decimal(one.difference, sign=True)}" for name, one in self.scores.items()
        )
        others = f", and {len(self.others)} more" if self.others else ""
        line = f"{self.names[1]} with {self.names[0]}{others}: {', '.join(found)}"
        return f"<Comparison of {one_line(line, 300)}>"

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self.all))

    def _repr_html_(self) -> str:
        return "".join(map(_table, self.all))


GENERATOR = "rag-eval compare"
"""Marks files of this program, which may be replaced by newer ones."""


# --- As a person reads it


def calls(count: int) -> str:
    """Write a number of calls."""
    return counted(count, "call")


def decimal(value: float | None, *, sign: bool = False) -> str:
    """Write a figure with three decimals; a dash for none."""
    return "–" if value is None else f"{value:{'+' if sign else ''}.3f}"


def probability(value: float | None) -> str:
    """Write a p-value; a dash for none."""
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


HEADINGS = ("score", "A", "B", "B - A", "95 % interval", "p", "Holm p", "up/down/same", "n",
            "visible")  # fmt: skip


def cells(score: ScoreDifference) -> list[str]:
    """Write one score's row under `HEADINGS`."""
    interval = score.interval
    ends = "–" if interval is None else f"[{interval.low:+.3f}, {interval.high:+.3f}]"
    return [
        score.name, decimal(score.mean_a), decimal(score.mean_b),
        decimal(score.difference, sign=True), ends, probability(score.p),
        probability(score.p_holm), f"{score.wins}/{score.losses}/{score.ties}", f"{score.n:,}",
        decimal(score.smallest_visible),
    ]  # fmt: skip


def remarks(comparison: Comparison) -> list[str]:
    """List the sentences below a table: the pairs, methods, what became unscored, the notes."""
    way = "id" if comparison.paired_by == "id" else "question and reference"
    lines = [f"{calls(comparison.pairs)} paired by {way}."]
    methods: dict[str, list[str]] = {}
    for score in comparison.scores.values():
        if score.interval is not None:
            methods.setdefault(score.interval.method, []).append(score.name)
    said = "; ".join(
        method if len(methods) == 1 else f"{method} ({', '.join(names)})"
        for method, names in methods.items()
    )
    if said:
        lines.append(
            f'Intervals: {said}; p: sign flips; random seed {comparison.seed}. "Visible": '
            "the smallest difference that so many calls show four times out of five."
        )
    grouped = {score.conversations for score in comparison.scores.values()} - {None}
    if grouped:
        lines.append("Calls of one conversation were kept together.")
    for score in comparison.scores.values():
        if lost := score.became_unscored:
            why = ", ".join(f"{code} {count:,}" for code, count in lost.items())
            lines.append(f"Became unscored: {score.name} {sum(lost.values()):,} ({why}).")
        if score.became_scored:
            lines.append(f"Became scored: {score.name} {score.became_scored:,}.")
    return [*lines, *comparison.notes]


def _text(comparison: Comparison) -> str:
    rows = [list(HEADINGS), *map(cells, comparison.scores.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"A: {one_line(comparison.names[0])}", f"B: {one_line(comparison.names[1])}"]
    for row in rows:
        first, *others = (one_line(cell) for cell in row)
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    return "\n".join([*lines, *map(one_line, remarks(comparison))])


def _table(comparison: Comparison) -> str:
    def row(tag: str, values: Sequence[str]) -> str:
        first, *others = (html.escape(one_line(value)) for value in values)
        return (
            f"<tr><th style='text-align:left'>{first}</th>"
            + "".join(f"<{tag} style='text-align:right'>{value}</{tag}>" for value in others)
            + "</tr>"
        )

    a, b = (html.escape(one_line(name)) for name in comparison.names)
    rows = "".join(row("td", cells(score)) for score in comparison.scores.values())
    said = "<br>".join(html.escape(one_line(line)) for line in remarks(comparison))
    return (
        f"<table><caption style='text-align:left'>A: {a}<br>B: {b}</caption>"
        f"<thead>{row('th', HEADINGS)}</thead><tbody>{rows}</tbody></table><p>{said}</p>"
    )
