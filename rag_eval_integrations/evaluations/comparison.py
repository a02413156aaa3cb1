"""`compare`: what became better or worse between runs of the same calls, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._difference_words import (
    HEADINGS,
    OUTCOMES,
    calls,
    cells,
    decimal,
    outcome,
)
from rag_eval_integrations.evaluations._notebook import text
from rag_eval_integrations.evaluations._paired import (
    DERIVED,
    MIN_PAIRS,
    ScoreDifference,
    Values,
    millionths,
    paired,
)
from rag_eval_integrations.evaluations._pairing import (
    POOLED,
    CallInBrief,
    Change,
    Pair,
    PairedBy,
    PairingWays,
    RunInBrief,
    Source,
    conversations,
    difference_of,
    interned,
    opened,
    run_names,
)
from rag_eval_integrations.evaluations._pooling import OF_RETRIEVAL, Agreement, Pairs, Pools
from rag_eval_integrations.evaluations.summary import aligned, caution
from rag_eval_integrations.records import By
from rag_eval_integrations.records.score import score_hint

# --- What is found


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
    others: tuple[Comparison, ...] = ()
    """One comparison with the baseline for each run after the second."""
    pooled: Agreement = field(kw_only=True)
    """How far the runs' own labels agree on the relevant sentences that are pooled: `calls`, and
    numbers of sentences that `both` runs, or `either`, label relevant."""
    _runs: tuple[RunInBrief, RunInBrief] = field(compare=False, kw_only=True)
    _pairs: Sequence[Pair] = field(compare=False, kw_only=True)

    @property
    def all(self) -> tuple[Comparison, ...]:
        """This comparison and the others: one for each run but the baseline."""
        return (self, *self.others)

    def score(self, name: str) -> ScoreDifference:
        """Look up a score.

        Raises:
            ConfigurationError: the runs do not both have it; lists those they have.
        """
        return self._named(name, "name")

    def _named(self, name: str, field: str) -> ScoreDifference:
        """Return a score's difference; refuse a name that the runs do not share."""
        if name not in self.scores:
            hint = score_hint(name, self.scores)
            why = f"{self.names[0]} and {self.names[1]} do not both have it; {hint}"
            raise ConfigurationError(field, name, why)
        return self.scores[name]

    def changed(self, name: str, limit: int | None = 10) -> list[Change]:
        """List the calls whose score changed most, a fall before a rise of the same size.

        Args:
            name: the score.
            limit: number of calls; None for all that changed.

        Raises:
            ConfigurationError: as for `score`.
        """
        return self._changes(self._ordered([self.score(name).name]), limit)

    def fell(self, name: str, limit: int | None = 10) -> list[Change]:
        """List the calls whose score fell most; arguments as for `changed`."""
        changes = self._ordered([self.score(name).name])
        return self._changes([change for change in changes if change[1] < 0], limit)

    def became_unscored(self, name: str, limit: int | None = 10) -> list[Change]:
        """List calls that have the score in the baseline only, in the order of the baseline.

        Args:
            name: the score.
            limit: number of calls; None for all.

        Raises:
            ConfigurationError: as for `score`.
        """
        self.score(name)
        a, b = (run.calls for run in self._runs)
        lost = [
            ((i, j), None)
            for i, j in self._pairs
            if a[i].value(name) is not None and b[j].value(name) is None
        ]
        return self._changes(lost, limit)

    def changed_calls(self, limit: int | None = 20) -> list[Change]:
        """List the calls of which any score changed most; see `changed`.

        Args:
            limit: number of calls; None for all that changed.
        """
        return self._changes(self._ordered(self.scores), limit)

    @property
    def new_unsupported(self) -> int:
        """Number of sentences that are unsupported and have no equal one in the response before."""
        return sum(count for count, _ in self._new_unsupported())

    def with_new_unsupported(self, limit: int | None = 10) -> list[Change]:
        """List the calls with most sentences that are unsupported and new.

        Args:
            limit: number of calls; None for all.
        """
        most = sorted(self._new_unsupported(), key=lambda counted: -counted[0])
        return self._changes([(pair, None) for _, pair in most], limit)

    def _new_unsupported(self) -> Iterator[tuple[int, Pair]]:
        """Yield the pairs with new unsupported sentences, and how many they have."""
        a, b = (run.calls for run in self._runs)
        for i, j in self._pairs:
            if count := b[j].new_unsupported(a[i]):
                yield count, (i, j)

    @property
    def changed_count(self) -> int:
        """Number of calls of which any score changed."""
        return len(self._ordered(self.scores))

    def _ordered(self, names: Iterable[str]) -> list[tuple[Pair, float]]:
        """List pairs with their greatest change in any of the scores, the greatest first."""
        a, b = (run.calls for run in self._runs)
        names = list(names)
        changes = []
        for i, j in self._pairs:
            differences = (difference_of(a[i].value(name), b[j].value(name)) for name in names)
            moved = [difference for difference in differences if difference is not None]
            if moved:
                changes.append(((i, j), min(moved, key=_greatest_first)))
        return sorted(changes, key=lambda change: _greatest_first(change[1]))

    def _changes(
        self, wanted: Sequence[tuple[Pair, float | None]], limit: int | None
    ) -> list[Change]:
        """Read both evaluations of the wanted pairs."""
        wanted = wanted[:limit]
        a, b = self._runs
        before = dict(a.some([i for (i, _), _ in wanted]))
        after = dict(b.some([j for (_, j), _ in wanted]))
        return [
            Change(before[i], after[j], difference, (a.calls[i], b.calls[j]))
            for (i, j), difference in wanted
        ]

    def to_json(self) -> dict[str, Any]:
        """Return all figures as JSON values; `runs` has one entry for each run but the baseline."""
        runs = [run._run_json() for run in self.all]
        return {"generator": GENERATOR, "baseline": self.names[0], "runs": runs}

    def _run_json(self) -> dict[str, Any]:
        """Return the figures of this run alone, without `others`."""
        return {
            "name": self.names[1],
            "paired_by": self.paired_by,
            "pairs": self.pairs,
            "only_baseline": self.only_a,
            "only_run": self.only_b,
            "new_unsupported": self.new_unsupported,
            "notes": list(self.notes),
            "pooled": self.pooled._asdict(),
            "scores": [score.to_json() for score in self.scores.values()],
        }

    def __repr__(self) -> str:
        differences = (
            f"{name} {decimal(score.difference, sign=True)}" for name, score in self.scores.items()
        )
        others = f", and {len(self.others)} more" if self.others else ""
        line = f"{self.names[1]} with {self.names[0]}{others}: {', '.join(differences)}"
        return f"<Comparison of {one_line(line, 300)}>"

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self.all))

    def _repr_html_(self) -> str:
        return "".join(map(_table, self.all))


GENERATOR = "rag-eval compare"
"""Marks files of this program, which may be replaced by newer ones."""


def _greatest_first(difference: float) -> tuple[float, float]:
    """Return a sort key: the greatest difference first, a loss before a gain."""
    return -abs(difference), difference


# --- How it is found


def compare(
    a: Source,
    b: Source,
    *more: Source,
    names: Sequence[str] | None = None,
    by: PairedBy | None = None,
    conversation: str | Literal[False] | None = None,
    allow_mixed: bool = False,
) -> Comparison:
    """Compare a run with a baseline: the same calls, evaluated before and after a change.

    Calls are paired by `id` where the ids are your own and unique in both runs, else by question
    and reference. Each score is compared over the calls that have it in both runs: the difference
    of means with a 95 % interval, a p-value, and what became unscored. `docs/compare.md` says how.

    Calls of one conversation (the same `thread_id`, `conversation_id` or `session_id` in `metadata`
    or `capture.metadata`) are not independent: whole conversations are then counted instead,
    unless all calls have the same id.

    Calls with the same question, history and documents share the sentences that any run labels
    relevant (pooled, as in TREC), and the scores that rest on them are recomputed from the labels
    by the formulas that the scores name.

    Args:
        a: the baseline: evaluations, or the path of an EVALS file, which is read in flat memory.
        b: the run to compare with it.
        more: further runs, each compared with the baseline.
        names: a name for each run; by default the files' names, or A, B, C …
        by: `id` or `question`, to pair by that alone.
        conversation: another field of the metadata that names a call's conversation; False if
            every call stands alone.
        allow_mixed: compare scores although different judges, prompts, formulas or estimators
            made them: a difference may then be the judge's.

    Raises:
        ConfigurationError: a run is empty; no call has the field `conversation`; the calls cannot
            be paired (says which keys repeat or are missing); scores were made differently (says
            what differs); `names` are too few.
        InputError: a line of a file is not an evaluation.
        OSError: a file cannot be read.
    """
    if by not in (None, "id", "question"):
        raise ConfigurationError("by", by, "use 'id' or 'question'")
    sources = [a, b, *more]
    ways = PairingWays(by)
    runs = [
        RunInBrief.of(name, opened(name, source), conversation, ways)
        for name, source in zip(run_names(sources, names), sources, strict=True)
    ]
    if conversation and not any(call.conversation for run in runs for call in run.calls):
        why = "is a field of the metadata of no call"
        raise ConfigurationError("conversation", conversation, why)
    pools = Pools(runs)
    runs = [pools.pooled(run) for run in runs]
    first, *later = (_compared(runs[0], run, ways, pools, allow_mixed) for run in runs[1:])
    return replace(first, others=tuple(later))


def _compared(
    a: RunInBrief, b: RunInBrief, ways: PairingWays, pools: Pools, allow_mixed: bool
) -> Comparison:
    """Compare two runs by pairs of calls.

    Refuses scores that were made differently, unless that is allowed.
    """
    names = [name for name in a.means.total if name in b.means.total]
    different = "; ".join(_made_differently(a, b, names))
    if different and not allow_mixed:
        raise ConfigurationError(
            "runs",
            f"{a.name}, {b.name}",
            f"their scores were made differently ({different}), so a difference could be "
            "the judge's; evaluate both in the same way, or compare them all the same with "
            "--allow-mixed (allow_mixed=True)",
        )
    by, pairs = ways.pair(a, b)
    both = [(a.calls[i], b.calls[j]) for i, j in pairs]
    values = {name: _column(name, both) for name in names}
    same = {
        name
        for name in OF_RETRIEVAL
        if name in values and _has_same_documents(values[name], both, pools)
    }
    figures = paired(values, conversations(a, b, pairs), same)
    agreement = pools.agreement(both)
    return Comparison(
        names=(a.name, b.name),
        scores={name: _completed(figures[name], both, agreement) for name in names},
        paired_by=by,
        pairs=len(pairs),
        only_a=len(a.calls) - len(pairs),
        only_b=len(b.calls) - len(pairs),
        notes=(*pools.notes(both, agreement), *_notes(a, b, pairs, different)),
        pooled=agreement,
        _runs=(a, b),
        _pairs=pairs,
    )


def _column(name: str, pairs: Pairs) -> list[Values | None]:
    """Return the values of a score, a pair of them for each paired call."""
    return [_values(before, after, name) for before, after in pairs]


def _values(before: CallInBrief, after: CallInBrief, name: str) -> Values | None:
    """Return a score's values before and after; None if either is missing."""
    was, now = before.value(name), after.value(name)
    return None if was is None or now is None else interned((was, now))


def _has_same_documents(values: Sequence[Values | None], pairs: Pairs, pools: Pools) -> bool:
    """Tell whether a retrieval score is equal in all pairs because all retrieved the same."""
    scored = [pair for pair, both in zip(pairs, values, strict=True) if both is not None]
    is_equal = all(both is None or millionths(both[0]) == millionths(both[1]) for both in values)
    return bool(scored) and is_equal and all(pools.share(*pair) for pair in scored)


def _completed(score: ScoreDifference, pairs: Pairs, agreement: Agreement) -> ScoreDifference:
    """Add the counts of calls with the score in one run only, and the means without pooling."""
    name = score.name
    lost: Counter[str] = Counter()
    gained = 0
    own: list[Values] = []
    for before, after in pairs:
        was, now = before.own(name), after.own(name)
        if was is not None and now is not None:
            own.append(interned((was, now)))
        elif was is not None:
            lost[after.unscored_code(name)] += 1
        gained += was is None and now is not None
    score = replace(score, became_unscored=dict(lost.most_common()), became_scored=gained)
    if name not in POOLED or not agreement.calls or not own:
        return score
    mean_a, mean_b = (math.fsum(values) / len(own) for values in zip(*own, strict=True))
    return replace(score, own_mean_a=mean_a, own_mean_b=mean_b)


def _made_differently(a: RunInBrief, b: RunInBrief, names: Sequence[str]) -> Iterator[str]:
    """Yield the fields of provenance in which two runs differ, with their scores."""
    differing: dict[str, list[str]] = {}
    for name in names:
        for part in [*By.model_fields, "method"]:
            in_a, in_b = _provenance(a, name, part), _provenance(b, name, part)
            if len({*in_a, *in_b}) > 1:
                words = f"{part} {' and '.join(in_a)} in {a.name}, {' and '.join(in_b)} in {b.name}"
                differing.setdefault(words, []).append(name)
    for words, scores in differing.items():
        yield f"{words}: {', '.join(scores)}"


def _provenance(run: RunInBrief, name: str, part: str) -> list[str]:
    """List the values of one field of a score's provenance in a run, sorted."""
    makers = [maker for maker in run.means.made if maker.name == name]
    return sorted({str(getattr(maker if part == "method" else maker.by, part)) for maker in makers})


def _notes(a: RunInBrief, b: RunInBrief, pairs: Sequence[Pair], different: str) -> Iterator[str]:
    """Yield what limits the comparison: other makers, calls left out, other questions."""
    if different:
        yield f"The scores were made differently ({different})."
    only_a, only_b = len(a.calls) - len(pairs), len(b.calls) - len(pairs)
    if only_a or only_b:
        yield f"Left out: {calls(only_a)} only in {a.name}, {only_b:,} only in {b.name}."
    if asked := sum(a.calls[i].question != b.calls[j].question for i, j in pairs):
        yield (
            f"{asked:,} of {calls(len(pairs))} with the same id "
            f"{'has' if asked == 1 else 'have'} another question or reference."
        )
    for run, other in ((a, b), (b, a)):
        missing = [name for name in run.means.total if name not in other.means.total]
        if missing:
            yield f"Only in {run.name}: {', '.join(missing)}."


# --- As a person reads it


def places_of(comparison: Comparison) -> int:
    """Return the decimals of figures: fewer than 10 calls do not tell a thousandth."""
    return 2 if comparison.pairs < MIN_PAIRS else 3


def heading(comparison: Comparison) -> str:
    """Say which run is compared with which."""
    a, b = comparison.names
    if a != "A" and b != "B":
        return f"A: {a}, B: {b}"
    first, second = (
        letter if name == letter else f"{letter} ({name})" for letter, name in (("A", a), ("B", b))
    )
    return f"{second} compared with {first}"


def answer_changes(comparison: Comparison) -> list[str]:
    """Say how many answers changed, whether that is more than chance, and who read them.

    Returns:
        One or two sentences: of adherence, or without it of the score that most calls changed;
        and that no model read the calls, where none did. None without a score.
    """
    scores = comparison.scores
    if not scores:
        return []
    most = max(scores.values(), key=lambda score: score.losses + score.wins)
    score = scores.get("adherence", most)
    fell, rose = score.losses, score.wins
    if score.name == "adherence":
        line = f"{counted(fell, 'answer') if fell else 'No answer'} became unsupported, "
        line += (
            f"{rose:,} were repaired" if rose > 1 else f"{'one' if rose else 'none'} was repaired"
        )
    else:
        line = f"{score.name} fell in {calls(fell)} and rose in {rose:,}"
    if fell or rose:
        sure = outcome(score) in ("worse", "better")
        units = calls(score.n)
        if score.conversations is not None:
            units += f" of {counted(score.conversations, 'conversation')}"
        are = "is" if units == "1 call" else "are"
        line += "; that is more than chance" if sure else f"; {units} {are} too few to be sure"
    runs = comparison._runs
    total = sum(len(run.calls) for run in runs)
    return [f"{line}.", *filter(None, [caution(sum(run.lexical for run in runs), total)])]


def outcomes(comparison: Comparison) -> list[tuple[str, ScoreDifference]]:
    """List the scores with what the interval tells, the worse ones first."""
    told = [(outcome(score), score) for score in comparison.scores.values()]
    return sorted(told, key=lambda pair: OUTCOMES.index(pair[0]))


def outcome_lines(comparison: Comparison) -> list[str]:
    """Write a line per score: what the interval tells, its name, and how many calls changed."""
    width = max((len(one_line(name)) for name in comparison.scores), default=0)
    return [
        f"{told:14}  {one_line(score.name):{width}}  {score.fell_and_rose}"
        for told, score in outcomes(comparison)
    ]


def table(comparison: Comparison) -> list[list[str]]:
    """Return the headings and a row per score, without columns that hold nothing."""
    places = places_of(comparison)
    rows = [cells(score, places) for score in comparison.scores.values()]
    columns = zip(HEADINGS, *rows, strict=True)
    filled = [column for column in columns if set(column[1:]) != {"–"}]
    return [list(row) for row in zip(*filled, strict=True)]


def moves(change: Change, comparison: Comparison) -> list[tuple[str, float | None, float | None]]:
    """List the scores of a call that changed: name, value before and value after.

    Those that follow from another one are left out beside it.
    """
    moved = list(change.scores(comparison.scores))
    return [move for move in moved if move[0] not in DERIVED] or moved


def remarks(comparison: Comparison) -> list[str]:
    """List the sentences below a table: the pairs, methods, what became unscored, the notes."""
    way = "id" if comparison.paired_by == "id" else "question and reference"
    lines = [f"{calls(comparison.pairs)} paired by {way}."]
    methods: dict[str, list[str]] = {}
    for score in comparison.scores.values():
        if score.interval is not None:
            methods.setdefault(score.interval.method, []).append(score.name)
    intervals = "; ".join(
        method if len(methods) == 1 else f"{method} ({', '.join(names)})"
        for method, names in methods.items()
    )
    if intervals:
        lines.append(
            f"Intervals: {intervals}; p: sign flips. The smallest detectable difference is one "
            "that so many calls show four times out of five."
        )
    if any(score.conversations is not None for score in comparison.scores.values()):
        lines.append("Calls of one conversation were kept together.")
    for score in comparison.scores.values():
        if lost := score.became_unscored:
            why = ", ".join(f"{code} {count:,}" for code, count in lost.items())
            lines.append(f"Became unscored: {score.name} {sum(lost.values()):,} ({why}).")
        if score.became_scored:
            lines.append(f"Became scored: {score.name} {score.became_scored:,}.")
    if new := comparison.new_unsupported:
        are = "sentence is" if new == 1 else "sentences are"
        lines.append(f"{new:,} {are} unsupported that the answers before did not have.")
    return [*lines, *comparison.notes]


def table_lines(comparison: Comparison, width: int = 80) -> list[str]:
    """Write which runs are compared, what happened in answers, and the figures of every score.

    Args:
        comparison: the runs.
        width: columns; the figures stand in two tables where one would be wider.
    """
    rows = table(comparison)
    tables = [aligned(rows)]
    if max(map(len, tables[0])) > width:
        split = rows[0].index("p")
        tables = [
            aligned([row[:split] for row in rows]),
            aligned([[row[0], *row[split:]] for row in rows]),
        ]
    lines = [one_line(line) for line in (heading(comparison), *answer_changes(comparison))]
    tables.insert(0, outcome_lines(comparison))
    return [*lines, *(line for table in tables for line in ("", *table)), ""]


def _text(comparison: Comparison) -> str:
    """Write the comparison as text."""
    return "\n".join([*table_lines(comparison), *map(one_line, remarks(comparison))])


def _table(comparison: Comparison) -> str:
    """Write the comparison as an HTML table."""

    def row(tag: str, values: Sequence[str]) -> str:
        """Write a row of the table."""
        first, *others = map(text, values)
        more = "".join(f"<{tag} style='text-align:right'>{value}</{tag}>" for value in others)
        return f"<tr><th style='text-align:left'>{first}</th>{more}</tr>"

    lines = (heading(comparison), *answer_changes(comparison), *outcome_lines(comparison))
    names = "<br>".join(map(text, lines))
    headings, *figures = table(comparison)
    rows = "".join(row("td", values) for values in figures)
    sentences = "<br>".join(map(text, remarks(comparison)))
    return (
        f"<table><caption style='text-align:left'>{names}</caption>"
        f"<thead>{row('th', headings)}</thead><tbody>{rows}</tbody></table><p>{sentences}</p>"
    )
