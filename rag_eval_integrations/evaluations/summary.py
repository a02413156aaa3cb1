"""The one model of the figures that every report shows, from running totals in constant memory.

    evaluations ─▶ Summary.add ─▶ scores, patterns, retrieval, counts

The terminal, HTML, Markdown, CSV and JSON say the same because all of them read these figures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TypeVar

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.metrics import Diagnosis, diagnose
from rag_eval_integrations.metrics._outcome import FAILING, Outcome, outcome
from rag_eval_integrations.records import By, Evaluation, JudgeInfo, Labels, Means, Score, Usage
from rag_eval_integrations.records._repr import LEXICAL
from rag_eval_integrations.records.mean import Interval, Made, RunningMean, makers_of, wilson
from rag_eval_integrations.records.score import DIAGNOSES, Pattern
from rag_eval_integrations.sentences import document_number

BINS = 10
"""Number of bins of a score's histogram."""
_EDGES = [edge / BINS for edge in range(1, BINS)]
_WIDTH = 100
"""Characters of a line of a printed summary."""
_MOST_RANKS = 1_000
_MOST_KINDS = 1_000
"""Kinds of warnings, failures, flags … that are counted apart, so that memory is bounded."""
_OTHERS = "(others)"
"""Kind under which all further kinds are counted together."""
_OTHER_JUDGES = JudgeInfo(name=_OTHERS)

K = TypeVar("K", str, JudgeInfo)


# --- The figures


@dataclass(frozen=True)
class ScoreFigures:
    """One score by one maker and method; scores made differently are never averaged together.

    Calls without a value stand with the maker that they name, or with the only one that they may
    be of: a failed call does not always know its judge. Where there are several, they have figures
    of their own, with `scored` 0. So the totals of a name add up to the calls that have the score.
    """

    name: str
    by: By
    """Provenance, as far as it is comparable."""
    method: str | None
    """The estimator: `labels`, `logprobs` …"""
    total: int
    """Calls with the score, with or without a value."""
    scored: int
    """Calls with a value."""
    mean: float | None
    """Mean of the values, in [0, 1]; None without a value."""
    interval: Interval | None
    """95 % interval of the mean, with its method; None for fewer than two values."""
    deviation: float | None
    """Standard deviation of the values (n - 1); None for fewer than two values."""
    bins: tuple[int, ...]
    """Number of values in each of ten equal parts of [0, 1]: [0, .1), [.1, .2) … [.9, 1]."""
    unscored: dict[str, int]
    """Code (`error` for a failure) → calls without a value, the most frequent first."""
    passed: int
    """Calls whose value reached the threshold of the score."""
    with_threshold: int
    """Calls with a value and a threshold."""


@dataclass(frozen=True)
class PatternFigures:
    """One pattern of `diagnose` over the labelled calls; a call may show several."""

    pattern: Pattern
    calls: int
    """Labelled calls that show it."""
    share: float
    """Share of the labelled calls, in [0, 1]."""
    interval: Interval
    """Wilson's 95 % interval of the share."""
    meaning: str
    """The problem, in one sentence."""
    fix: str
    """The first thing to change."""


@dataclass(frozen=True)
class RankFigures:
    """The documents that were retrieved at one rank."""

    rank: int
    """Place in the order in which the model saw the documents, from 1."""
    calls: int
    """Labelled calls that have a document at this rank."""
    relevant: int
    """Calls in which it held a sentence that is relevant to the question."""
    used: int
    """Calls in which it held a sentence that the response used."""


@dataclass(frozen=True)
class RetrievalFigures:
    """The retrieval of the labelled calls that have a document."""

    calls: int
    """Labelled calls with at least one document; the shares are of these."""
    relevant: int
    """Calls in which a document holds a relevant sentence."""
    share: float | None
    """relevant / calls, in [0, 1]; None without calls."""
    interval: Interval | None
    """Wilson's 95 % interval of the share; None without calls."""
    first_relevant: float | None
    """Mean rank, from 1, of the first document with a relevant sentence, over the calls that have
    one; None without any."""
    ranks: tuple[RankFigures, ...]
    """One per rank, from 1 to the lowest that any call has, at most 1,000."""


# --- The totals that they are made of


@dataclass
class _Tally:
    """Counts of one maker's scores: histogram, unscored, passed; their mean is kept in `Means`."""

    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    unscored: Counter[str] = field(default_factory=Counter)
    passed: int = 0
    with_threshold: int = 0

    def add(self, score: Score) -> None:
        if score.value is None:
            self.unscored[score.unscored or score.status] += 1
            return
        self.bins[bisect_right(_EDGES, score.value)] += 1
        self.with_threshold += score.passed is not None
        self.passed += bool(score.passed)

    def merge(self, other: _Tally) -> None:
        self.bins = [sum(both) for both in zip(self.bins, other.bins, strict=True)]
        self.unscored.update(other.unscored)
        self.passed += other.passed
        self.with_threshold += other.with_threshold


@dataclass(repr=False)
class Summary:
    """Running totals over evaluations; `add` each, and read or print the figures at any time.

    Memory is in proportion to the number of makers of scores, not of evaluations.
    """

    calls: int = 0
    scored: int = 0
    """Number of calls with at least one value."""
    failed: int = 0
    """Number of calls with an error."""
    labelled: int = 0
    """Number of calls with labels."""
    errors: Counter[str] = field(default_factory=Counter)
    """Number of failed calls by `stage: type`."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Message of the first failure of each kind in `errors`."""
    means: Means = field(default_factory=Means)
    """Means of the scores, by name, maker and estimator."""
    diagnoses: Counter[Pattern] = field(default_factory=Counter)
    """Number of labelled calls by diagnosed pattern."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """Number of calls by outcome; each call has one."""
    warnings: Counter[str] = field(default_factory=Counter)
    """Number of calls by warning."""
    flags: Counter[str] = field(default_factory=Counter)
    """Number of calls by flag."""
    judges: Counter[JudgeInfo] = field(default_factory=Counter)
    """Number of calls by judge."""
    versions: dict[str, Counter[str]] = field(default_factory=dict)
    """Field of provenance (`judge_version`, `prompt_version`, `formulas`, `relevance_baseline`,
    `splitter`, `fingerprint`) → its values → number of calls; more than one value per field means
    that the evaluations were not all made in one way."""
    usage: Usage = field(default_factory=Usage)
    """Requests, tokens and cost of all calls; the cost is None unless all of it is known."""
    _tallies: dict[Made, _Tally] = field(default_factory=dict, repr=False)
    _retrieval: _Retrieval = field(default_factory=lambda: _Retrieval(), repr=False)

    @classmethod
    def of(cls, evaluations: Iterable[Evaluation]) -> Summary:
        """Sum evaluations up."""
        summary = cls()
        for evaluation in evaluations:
            summary.add(evaluation)
        return summary

    def add(self, evaluation: Evaluation) -> None:
        """Count one evaluation: its error, labels, diagnoses, scores, flags, judge and usage."""
        self.calls += 1
        error = evaluation.error
        if error is not None:
            self.failed += 1
            kind = f"{error.stage}: {error.type}"
            self._add_errors({kind: 1}, {kind: error.message})
        if evaluation.labels is not None:
            self.labelled += 1
            self._retrieval.add(evaluation, evaluation.labels)
            for diagnosis in diagnose(evaluation):
                self.diagnoses[diagnosis.pattern] += 1
        self.outcomes[outcome(evaluation)] += 1
        self._add_scores(evaluation)
        _count(self.flags, Counter(evaluation.flags), _OTHERS)
        scores = evaluation.scores.values()
        warnings = dict.fromkeys((w for score in scores for w in score.warnings), 1)
        _count(self.warnings, warnings, _OTHERS)
        _count(self.judges, {evaluation.judge: 1}, _OTHER_JUDGES)
        usage = evaluation.usage
        if usage.requests or usage.prompt_tokens or usage.completion_tokens or usage.cost_usd:
            self.usage += usage

    def merge(self, other: Summary) -> None:
        """Count the evaluations that another summary was made of, as if they came after its own."""
        self.calls += other.calls
        self.scored += other.scored
        self.failed += other.failed
        self.labelled += other.labelled
        self._add_errors(other.errors, other.reasons)
        self.means.merge(other.means)
        self.diagnoses.update(other.diagnoses)
        self.outcomes.update(other.outcomes)
        _count(self.warnings, other.warnings, _OTHERS)
        _count(self.flags, other.flags, _OTHERS)
        _count(self.judges, other.judges, _OTHER_JUDGES)
        self.usage += other.usage
        for name, values in other.versions.items():
            _count(self.versions.setdefault(name, Counter()), values, _OTHERS)
        for maker, tally in other._tallies.items():
            self._tallies.setdefault(maker, _Tally()).merge(tally)
        self._retrieval.merge(other._retrieval)

    def _add_errors(self, errors: Mapping[str, int], reasons: Mapping[str, str]) -> None:
        """Count failed calls by their kind, each with the first message."""
        _count(self.errors, errors, _OTHERS)
        for kind, reason in reasons.items():
            self.reasons.setdefault(kind if kind in self.errors else _OTHERS, reason)

    def _add_scores(self, evaluation: Evaluation) -> None:
        """Count the scores of an evaluation, and what made them."""
        provenance = [("fingerprint", evaluation.fingerprint)]
        for maker, score in makers_of(evaluation):
            self.means.count(maker, score)
            self._tallies.setdefault(maker, _Tally()).add(score)
            provenance += [(name, getattr(score.by, name)) for name in _VERSIONS]
        self.scored += any(score.value is not None for score in evaluation.scores.values())
        # In an order that is the same in every process.
        for name, value in dict.fromkeys(provenance):
            if value is not None:
                _count(self.versions.setdefault(name, Counter()), {str(value): 1}, _OTHERS)

    @property
    def scores(self) -> tuple[ScoreFigures, ...]:
        """The figures of every score, in the order of the metrics; empty without calls."""
        unscored = {maker: Counter(tally.unscored) for maker, tally in self._tallies.items()}
        means = self.means.made
        for unknown in unscored.keys() - means.keys():
            candidates = [
                maker
                for maker in means
                if maker.name == unknown.name and may_be_of(unknown.by, maker.by)
            ]
            if len(candidates) == 1:
                unscored[candidates[0]] += unscored.pop(unknown)
        names = list(self.means.total)
        makers = [maker for maker in self._tallies if maker in unscored]
        figures = []
        for maker in sorted(makers, key=lambda maker: names.index(maker.name)):
            tally, mean = self._tallies[maker], means.get(maker, RunningMean())
            figures.append(
                ScoreFigures(
                    name=maker.name,
                    by=maker.by,
                    method=maker.method,
                    total=mean.n + unscored[maker].total(),
                    scored=mean.n,
                    mean=mean.mean,
                    interval=mean.interval,
                    deviation=mean.deviation,
                    bins=tuple(tally.bins),
                    unscored=dict(unscored[maker].most_common()),
                    passed=tally.passed,
                    with_threshold=tally.with_threshold,
                )
            )
        return tuple(figures)

    @property
    def patterns(self) -> tuple[PatternFigures, ...]:
        """The figures of every pattern, the gravest first; empty without labelled calls."""
        if not self.labelled:
            return ()
        figures = []
        for pattern, diagnosis in DIAGNOSES.items():
            calls = self.diagnoses[pattern]
            share = calls / self.labelled
            figures.append(
                PatternFigures(
                    pattern=pattern,
                    calls=calls,
                    share=share,
                    interval=wilson(share, self.labelled),
                    meaning=diagnosis.problem,
                    fix=diagnosis.fix,
                )
            )
        return tuple(figures)

    @property
    def retrieval(self) -> RetrievalFigures:
        """The figures of the retrieval, with those of every rank."""
        return self._retrieval.figures()

    @property
    def ranks(self) -> tuple[RankFigures, ...]:
        """The figures of every rank: `retrieval.ranks`."""
        return self.retrieval.ranks

    def verdict(self) -> str:
        """Say in one sentence how many answers are sound, and what is wrong with the others.

        Each judged call counts once, by the gravest thing that its scores say. A right refusal is
        sound. It is of thresholds alone where no call has labels.
        """
        if not self.calls:
            return "No calls"
        refusals = self.outcomes["right_refusal"]
        sound = self.outcomes["sound"] + refusals
        judged = sound + sum(self.outcomes[name] for name in FAILING)
        parts = []
        if judged:
            few = 1 in (judged, sound)
            verb = "reach" + "es" * few if not self.labelled else "is" if few else "are"
            what = f"{verb} sound" if self.labelled else f"{verb} the threshold"
            parts.append(f"{sound:,} of {counted(judged, 'answer')} {what}")
        if refusals:
            says = "says" if refusals == 1 else "say"
            parts[0] += f" ({refusals:,} rightly {says} that the documents do not tell)"
        for name, wordings in _OUTCOMES.items():
            if count := self.outcomes[name]:
                parts.append(f"{count:,} {wordings[count > 1]}")
        return "; ".join(parts)

    def headline(self) -> str:
        """Say in one line, visible and without figures of scores, what was summed up."""
        counts = [counted(self.calls, "call"), f"{self.scored:,} scored"]
        if self.failed:
            counts.append(f"{self.failed:,} failed")
        judges = [
            " ".join(filter(None, (judge.name, judge.model))) for judge in list(self.judges)[:4]
        ]
        names = f"; judged by {', '.join(judges)}" if judges else ""
        names += " and others" if len(self.judges) > 4 else ""
        cost = f"; {self.cost()}" if self.usage.requests else ""
        return one_line(f"{', '.join(counts)}{names}{cost}", 400)

    def caution(self) -> str:
        """Say in one line which calls no model read; empty where a model read all of them."""
        return caution(self.flags[LEXICAL], self.scored)

    def cost(self) -> str:
        """Say the requests, the tokens and, where it is known, what they cost."""
        return usage_words(self.usage, "judge request")

    def advice(self) -> list[tuple[Diagnosis, int]]:
        """List the diagnoses with their numbers of calls, the most frequent first."""
        return [(DIAGNOSES[pattern], count) for pattern, count in self.diagnoses.most_common()]

    def tables(self) -> list[list[str]]:
        """Write the figures of the scores: the lines of a table per maker, with its title.

        A score that has a value in no call is listed with the first maker that it may be of.
        """
        makers = list(dict.fromkeys(score.by for score in self.scores if score.scored))
        of_maker: dict[By, list[ScoreFigures]] = {
            by: [] for by in makers or [By()][: len(self.scores)]
        }
        for score in self.scores:
            agreeing = (by for by in of_maker if may_be_of(score.by, by))
            maker = score.by if score.scored else next(agreeing, next(iter(of_maker)))
            of_maker[maker].append(score)
        return [_table(by, figures) for by, figures in of_maker.items()]

    def __repr__(self) -> str:
        return f"<Summary of {self.headline()}>"

    def __str__(self) -> str:
        lines = [fill(self.verdict(), _WIDTH), self.headline(), *filter(None, [self.caution()])]
        for table in self.tables():
            lines += ["", *table]
        patterns = [pattern for pattern in self.patterns if pattern.calls]
        lines += ["", f"Diagnoses of {self.labelled:,} labelled calls"] if patterns else []
        for each in patterns:
            share = f"{each.calls:,}, {each.share:.1%} (95 %: {each.interval:.1%})"
            lines += [f"  {each.pattern}  {share}", f"    {each.meaning}"]
        return "\n".join(lines)


_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "hallucination": ("invents something", "invent something"),
    "nothing_relevant_retrieved": ("retrieval missed", "retrievals missed"),
    "context_ignored": ("ignores what was retrieved", "ignore what was retrieved"),
    "incomplete": ("is incomplete", "are incomplete"),
    "below_threshold": ("is below a threshold", "are below a threshold"),
    "no_verdict": (
        "has no adherence or threshold to judge by",
        "have no adherence or threshold to judge by",
    ),
    "not_judged": ("was not judged", "were not judged"),
}
"""Outcome → what is said of one call, and of several."""


def _count(counter: Counter[K], more: Mapping[K, int], others: K) -> None:
    """Add counts to a counter; beyond 1,000 kinds, new ones count as `others`."""
    for kind, count in more.items():
        counter[kind if kind in counter or len(counter) < _MOST_KINDS else others] += count


def _table(by: By, figures: Sequence[ScoreFigures]) -> list[str]:
    """Return the lines of the table of scores that one maker made.

    The first line is a title with the maker, if known; the last column has the reasons of missing
    values. A score by several methods has a line for each, with the method where it has values.
    """
    several = Counter(score.name for score in figures if score.scored)
    rows = [("score", "mean", "95 %", "scored")]
    reasons = []
    for score in figures:
        name = f"{score.name} ({score.method})"
        rows.append(
            (
                name if score.scored and several[score.name] > 1 else score.name,
                "–" if score.mean is None else f"{score.mean:.3f}",
                "–" if score.interval is None else f"{score.interval:.2f}",
                f"{score.scored}/{score.total}",
            )
        )
        unscored = (f"{code} {count}" for code, count in score.unscored.items())
        reasons.append(one_line(", ".join(unscored)))
    reasons.insert(0, "unscored because" if any(reasons) else "")
    who = maker_words(by)
    both = zip(aligned(rows), reasons, strict=True)
    title = one_line(f"Scores by {who}" if who else "Scores")
    return [title, *(f"  {line}  {reason}".rstrip() for line, reason in both)]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of a table as lines, the first column flush left and all others right."""
    visible = [list(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*visible, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])
        for first, *others in visible
    ]


def maker_words(by: By) -> str:
    """Name who made scores: judge, model, version, and formulas other than the usual ones.

    The usual set's name, `gpt-labeling`, would read as if a GPT had labelled.
    """
    version = f"v{by.judge_version}" if by.judge_version else None
    who = " ".join(dict.fromkeys(filter(None, (by.judge, by.model, version))))
    other = by.formulas is not None and by.formulas != "gpt-labeling"
    return ", ".join(filter(None, (who, f"{by.formulas} formulas" if other else "")))


def caution(lexical: int, scored: int) -> str:
    """Say in one line that no model read the calls, or some of them; empty where it read all.

    Args:
        lexical: number of calls that a judge scored by comparing words.
        scored: number of calls with a score.
    """
    if not lexical:
        return ""
    some = f" in {lexical:,} of {counted(scored, 'scored call')}" if lexical < scored else ""
    return f"Estimates by comparing words{some}: no model read {'them' if some else 'this'}."


_VERSIONS = (
    "judge_version",
    "prompt_version",
    "formulas",
    "relevance_baseline",
    "splitter",
    "calibration",
)


def may_be_of(unscored: By, by: By) -> bool:
    """Return whether a score without a value may come from a maker.

    Args:
        unscored: provenance of the score without a value; a failed call knows only parts of it.
        by: provenance of scores with values.
    """
    return all(value is None or value == getattr(by, name) for name, value in unscored)


@dataclass
class _Retrieval:
    """Running totals of the documents by rank, from 0."""

    calls: Counter[int] = field(default_factory=Counter)
    relevant: Counter[int] = field(default_factory=Counter)
    used: Counter[int] = field(default_factory=Counter)
    hits: int = 0
    """Calls with a relevant document."""
    first: int = 0
    """Sum of the ranks, from 1, of their first relevant documents."""

    def add(self, evaluation: Evaluation, labels: Labels) -> None:
        """Count the relevant and used documents that a call's own turn retrieved, by rank."""
        sentences, earlier = evaluation.sentences.documents, evaluation.earlier
        keys = {sentence.key for sentence in sentences}
        relevant = _document_numbers(keys.intersection(labels.all_relevant_sentence_keys))
        used = _document_numbers(keys.intersection(labels.all_utilized_sentence_keys))
        # An empty document has no sentence, and a row of another program perhaps no ids.
        last = max({-1, *relevant, *used, *_document_numbers(s.key for s in sentences[-1:])})
        documents = max(last + 1, len(evaluation.document_ids)) - len(earlier)
        relevant, used = _ranks(relevant, earlier), _ranks(used, earlier)
        if relevant:
            self.hits += 1
            self.first += min(relevant) + 1
        self.calls.update(range(min(documents, _MOST_RANKS)))
        self.relevant.update(rank for rank in relevant if rank < _MOST_RANKS)
        self.used.update(rank for rank in used if rank < _MOST_RANKS)

    def merge(self, other: _Retrieval) -> None:
        self.calls.update(other.calls)
        self.relevant.update(other.relevant)
        self.used.update(other.used)
        self.hits += other.hits
        self.first += other.first

    def figures(self) -> RetrievalFigures:
        """Return the figures with the share's interval; without calls there is no share."""
        calls = self.calls[0]
        share = self.hits / calls if calls else None
        return RetrievalFigures(
            calls=calls,
            relevant=self.hits,
            share=share,
            interval=None if share is None else wilson(share, calls),
            first_relevant=self.first / self.hits if self.hits else None,
            ranks=tuple(
                RankFigures(rank + 1, self.calls[rank], self.relevant[rank], self.used[rank])
                for rank in range(len(self.calls))
            ),
        )


def _ranks(numbers: set[int], earlier: Sequence[int]) -> set[int]:
    """Return the ranks of documents, from 0, without those of earlier turns."""
    return {n - bisect_left(earlier, n) for n in numbers if n not in earlier}


def _document_numbers(keys: Iterable[str]) -> set[int]:
    """Return the numbers of the documents that hold these keys, from 0."""
    return {number for key in keys if (number := document_number(key)) is not None}


def usage_words(usage: Usage, request: str = "request") -> str:
    """Say the requests, the tokens of prompts and answers, and the cost or that it is unknown."""
    unknown = usage.requests and usage.cost_usd is None
    cost = "unknown" if unknown else f"${usage.cost_usd or 0:.4f}"
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    failed = f", {usage.failed:,} failed" if usage.failed else ""
    return f"{counted(usage.requests, request)}{failed}, {tokens}, cost {cost}"
