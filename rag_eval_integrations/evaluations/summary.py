"""The one model of the figures that every report shows, from running totals in constant memory.

    evaluations ─▶ Summary.add ─▶ scores, patterns, retrieval, counts

The terminal, HTML, Markdown, CSV and JSON say the same because all of them read these figures.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from rag_eval_integrations._counted import counted
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.metrics import Diagnosis, diagnose
from rag_eval_integrations.records import (
    By,
    Evaluation,
    JudgeInfo,
    Labels,
    Made,
    Means,
    Score,
    Usage,
)
from rag_eval_integrations.records._patterns import DIAGNOSES, Pattern
from rag_eval_integrations.records.mean import Interval, makers_of, wilson
from rag_eval_integrations.sentences import document_number

BINS = 10
"""Number of bins of a score's histogram."""
_EDGES = [at / BINS for at in range(1, BINS)]
_MOST_KINDS = 1_000
"""Kinds of warnings, failures, flags … that are counted apart, so that memory is bounded."""
OTHERS = "(others)"
"""Kind under which all further kinds are counted together."""
_MOST_RANKS = 1_000

K = TypeVar("K", bound=Hashable)


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
    """Provenance, without `splitter` and `windows`, which do not change the meaning of a score."""
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
    """What is counted of the scores that were made in one way, beside their mean."""

    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    unscored: Counter[str] = field(default_factory=Counter)
    passed: int = 0
    with_threshold: int = 0

    def add(self, score: Score) -> None:
        if score.value is None:
            self.unscored[score.unscored or score.status] += 1
            return
        self.bins[bisect_right(_EDGES, score.value)] += 1
        passed = score.passed
        if passed is not None:
            self.with_threshold += 1
            self.passed += passed

    def merge(self, other: _Tally) -> None:
        self.bins = [sum(both) for both in zip(self.bins, other.bins, strict=True)]
        self.unscored.update(other.unscored)
        self.passed += other.passed
        self.with_threshold += other.with_threshold


@dataclass
class Summary:
    """Running totals over evaluations; `add` each, and read the figures at any time.

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
        """Count one evaluation."""
        self.calls += 1
        error = evaluation.error
        if error is not None:
            self.failed += 1
            kind = _count(self.errors, f"{error.stage}: {error.type}", OTHERS)
            self.reasons.setdefault(kind, error.message)
        if evaluation.labels is not None:
            self.labelled += 1
            self._retrieval.add(evaluation, evaluation.labels)
            for diagnosis in diagnose(evaluation):
                self.diagnoses[diagnosis.pattern] += 1
        self._add_scores(evaluation)
        for flag in evaluation.flags:
            _count(self.flags, flag, OTHERS)
        for warning in dict.fromkeys(w for s in evaluation.scores.values() for w in s.warnings):
            _count(self.warnings, warning, OTHERS)
        _count(self.judges, evaluation.judge, _OTHER_JUDGES)
        usage = evaluation.usage
        if usage.requests or usage.prompt_tokens or usage.completion_tokens or usage.cost_usd:
            self.usage += usage

    def merge(self, other: Summary) -> None:
        """Count the evaluations that another summary was made of, as if they came after its own."""
        self.calls += other.calls
        self.scored += other.scored
        self.failed += other.failed
        self.labelled += other.labelled
        for error, count in other.errors.items():
            kind = _count(self.errors, error, OTHERS, count)
            self.reasons.setdefault(kind, other.reasons[error])
        self.means.merge(other.means)
        self.diagnoses.update(other.diagnoses)
        _merge(self.warnings, other.warnings, OTHERS)
        _merge(self.flags, other.flags, OTHERS)
        _merge(self.judges, other.judges, _OTHER_JUDGES)
        for name, values in other.versions.items():
            _merge(self.versions.setdefault(name, Counter()), values, OTHERS)
        self.usage += other.usage
        for made, tally in other._tallies.items():
            self._tallies.setdefault(made, _Tally()).merge(tally)
        self._retrieval.merge(other._retrieval)

    def _add_scores(self, evaluation: Evaluation) -> None:
        scored = False
        makers: list[By] = []
        last: By | None = None
        for made, score in makers_of(evaluation):
            scored = scored or score.value is not None
            self.means.count(made, score)
            tally = self._tallies.get(made)
            if tally is None:
                tally = self._tallies[made] = _Tally()
            tally.add(score)
            if made.by is not last:  # the scores of one metric share it
                last = made.by
                makers.append(score.by)
        self.scored += scored
        made_by = [("fingerprint", evaluation.fingerprint)]
        made_by += [(name, getattr(by, name)) for by in makers for name in _VERSIONS]
        for name, value in dict.fromkeys(made_by):  # in an order that is the same in every process
            if value is not None:
                _count(self.versions.setdefault(name, Counter()), str(value), OTHERS)

    @property
    def scores(self) -> tuple[ScoreFigures, ...]:
        """The figures of every score, in the order of the metrics; empty without calls."""
        unscored = {made: Counter(tally.unscored) for made, tally in self._tallies.items()}
        with_values = self.means.made
        for made in unscored.keys() - with_values.keys():
            candidates = [
                one for one in with_values if one.name == made.name and may_be_of(made.by, one.by)
            ]
            if len(candidates) == 1:
                unscored[candidates[0]] += unscored.pop(made)
        order = {name: at for at, name in enumerate(self.means.total)}
        figures = []
        for made in sorted(
            (made for made in self._tallies if made in unscored), key=lambda one: order[one.name]
        ):
            tally, mean, lost = self._tallies[made], with_values.get(made), unscored[made]
            scored = 0 if mean is None else mean.n
            figures.append(
                ScoreFigures(
                    name=made.name, by=made.by, method=made.method,
                    total=scored + lost.total(), scored=scored,
                    mean=None if mean is None else mean.mean,
                    interval=None if mean is None else mean.interval,
                    deviation=None if mean is None else mean.deviation,
                    bins=tuple(tally.bins), unscored=dict(lost.most_common()),
                    passed=tally.passed, with_threshold=tally.with_threshold,
                )
            )  # fmt: skip
        return tuple(figures)

    @property
    def patterns(self) -> tuple[PatternFigures, ...]:
        """The figures of every pattern, the gravest first; empty without labelled calls."""
        if not self.labelled:
            return ()
        return tuple(
            PatternFigures(
                pattern=pattern, calls=calls, share=calls / self.labelled,
                interval=wilson(calls / self.labelled, self.labelled),
                meaning=diagnosis.problem, fix=diagnosis.fix,
            )
            for pattern, diagnosis in DIAGNOSES.items()
            for calls in (self.diagnoses[pattern],)
        )  # fmt: skip

    @property
    def retrieval(self) -> RetrievalFigures:
        """The figures of the retrieval, with those of every rank."""
        return self._retrieval.figures()

    @property
    def ranks(self) -> tuple[RankFigures, ...]:
        """The figures of every rank: `retrieval.ranks`."""
        return self.retrieval.ranks

    def headline(self) -> str:
        """Say in one line, visible and without figures of scores, what was summed up."""
        counts = [counted(self.calls, "call"), f"{self.scored:,} scored"]
        if self.failed:
            counts.append(f"{self.failed:,} failed")
        judges = [" ".join(filter(None, (one.name, one.model))) for one in list(self.judges)[:4]]
        names = f"; judged by {', '.join(judges)}" if judges else ""
        names += " and others" if len(self.judges) > 4 else ""
        return one_line(f"{', '.join(counts)}{names}; {self.cost()}", 400)

    def cost(self) -> str:
        """Say the requests, the tokens and, where it is known, what they cost."""
        return usage_words(self.usage, "judge request")

    def advice(self) -> list[tuple[Diagnosis, int]]:
        """List the diagnoses with their numbers of calls, the most frequent first."""
        return [(DIAGNOSES[pattern], count) for pattern, count in self.diagnoses.most_common()]


_VERSIONS = (
    "judge_version",
    "prompt_version",
    "formulas",
    "relevance_baseline",
    "splitter",
    "calibration",
)
_OTHER_JUDGES = JudgeInfo(name=OTHERS)


def _count(counter: Counter[K], key: K, others: K, by: int = 1) -> K:
    """Count a kind, or the others when there are too many, and return what was counted."""
    if key not in counter and len(counter) >= _MOST_KINDS:
        key = others
    counter[key] += by
    return key


def _merge(counter: Counter[K], other: Counter[K], others: K) -> None:
    for key, count in other.items():
        _count(counter, key, others, count)


def may_be_of(unscored: By, by: By) -> bool:
    """Return whether a score without a value may be of a maker: what it says of itself agrees.

    Args:
        unscored: provenance of the score without a value; a failed call knows only parts of it.
        by: provenance of scores with values.
    """
    return all(value is None or value == getattr(by, name) for name, value in unscored)


@dataclass
class _Retrieval:
    """Running totals of the documents by rank."""

    calls: int = 0
    relevant: int = 0
    first: int = 0
    ranks: list[list[int]] = field(default_factory=list)
    """Per rank: calls, relevant, used."""

    def add(self, evaluation: Evaluation, labels: Labels) -> None:
        sentences = evaluation.sentences.documents
        keys = {sentence.key for sentence in sentences}
        relevant = _numbers(keys.intersection(labels.all_relevant_sentence_keys))
        used = _numbers(keys.intersection(labels.all_utilized_sentence_keys))
        # An empty document has no sentence, and a row of another program perhaps no ids.
        last = max({-1, *relevant, *used, *_numbers(s.key for s in sentences[-1:])})
        documents = max(last + 1, len(evaluation.document_ids))
        if not documents:
            return
        self.calls += 1
        if relevant:
            self.relevant += 1
            self.first += min(relevant) + 1
        while len(self.ranks) < min(documents, _MOST_RANKS):
            self.ranks.append([0, 0, 0])
        for counts in self.ranks[:documents]:
            counts[0] += 1
        for place, found in ((1, relevant), (2, used)):
            for document in found:
                if document < _MOST_RANKS:
                    self.ranks[document][place] += 1

    def merge(self, other: _Retrieval) -> None:
        self.calls += other.calls
        self.relevant += other.relevant
        self.first += other.first
        while len(self.ranks) < len(other.ranks):
            self.ranks.append([0, 0, 0])
        for counts, more in zip(self.ranks, other.ranks, strict=False):
            counts[:] = map(sum, zip(counts, more, strict=True))

    def figures(self) -> RetrievalFigures:
        share = self.relevant / self.calls if self.calls else None
        return RetrievalFigures(
            calls=self.calls, relevant=self.relevant, share=share,
            interval=None if share is None else wilson(share, self.calls),
            first_relevant=self.first / self.relevant if self.relevant else None,
            ranks=tuple(RankFigures(rank, *counts) for rank, counts in enumerate(self.ranks, 1)),
        )  # fmt: skip


def _numbers(keys: Iterable[str]) -> set[int]:
    """Return the numbers of the documents that keys are of, from 0."""
    return {number for key in keys if (number := document_number(key)) is not None}


def usage_words(usage: Usage, request: str = "request") -> str:
    """Say the requests, the tokens of prompts and answers, and the cost or that it is unknown."""
    unknown = usage.requests and usage.cost_usd is None
    cost = "unknown" if unknown else f"${usage.cost_usd or 0:.4f}"
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    failed = f", {usage.failed:,} failed" if usage.failed else ""
    return f"{counted(usage.requests, request)}{failed}, {tokens}, cost {cost}"
