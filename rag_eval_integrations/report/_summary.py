"""Running totals of many evaluations in constant memory: means, reasons, diagnoses, usage."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rag_eval_integrations.metrics import Diagnosis, diagnose
from rag_eval_integrations.records import By, Evaluation, Score, Usage
from rag_eval_integrations.report.console import plain_table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class ScoreSummary:
    """The totals of one score over many calls."""

    scored: int = 0
    """Number of calls in which the score has a value."""
    total: int = 0
    """Number of calls in which the score occurs."""
    sum: float = 0.0
    unscored: Counter[str] = field(default_factory=Counter)
    """Number of calls by reason code; `error` counts calls that failed."""

    @property
    def mean(self) -> float | None:
        """Mean over the scored calls, in [0, 1]; None when no call is scored."""
        return self.sum / self.scored if self.scored else None

    def add(self, score: Score) -> None:
        """Count one score."""
        self.total += 1
        if score.value is not None:
            self.scored += 1
            self.sum += score.value
        else:
            self.unscored[score.unscored or score.status] += 1


class ScoreKind(NamedTuple):
    """A score by its name and the estimator that made it."""

    name: str
    method: str | None
    """The estimator, `Score.method`."""


@dataclass
class Summary:
    """Running totals over evaluations.

    Scores made by different judges, prompts, formulas or estimators are kept apart, because their
    common mean would have no meaning.
    """

    calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Number of failed calls by `stage: type`."""
    given: dict[str, ScoreSummary] = field(default_factory=dict)
    """Totals by score name, of all provenances together."""
    makers: dict[By, dict[ScoreKind, ScoreSummary]] = field(default_factory=dict)
    """Totals of the scores with a value, by provenance, then by name and estimator."""
    diagnoses: Counter[str] = field(default_factory=Counter)
    """Number of calls by diagnosed pattern."""
    warnings: Counter[str] = field(default_factory=Counter)
    """Number of calls by warning."""
    flags: Counter[str] = field(default_factory=Counter)
    """Number of calls by flag."""
    usage: Usage = field(default_factory=Usage)
    _texts: dict[str, Diagnosis] = field(default_factory=dict)

    def add(self, evaluation: Evaluation) -> None:
        """Count one evaluation."""
        self.calls += 1
        if evaluation.error is not None:
            self.errors[f"{evaluation.error.stage}: {evaluation.error.type}"] += 1
        by: By | None = None
        for name, score in evaluation.scores.items():
            self.given.setdefault(name, ScoreSummary()).add(score)
            if score.value is not None:
                if score.by is not by:  # a metric's scores share one; a copy takes 20 µs
                    by = score.by
                    made = self.makers.setdefault(_maker(by), defaultdict(ScoreSummary))
                made[ScoreKind(name, score.method)].add(score)
        for diagnosis in diagnose(evaluation.scores):
            self.diagnoses[diagnosis.pattern] += 1
            self._texts[diagnosis.pattern] = diagnosis
        self.flags.update(evaluation.flags)
        self.warnings.update({w for s in evaluation.scores.values() for w in s.warnings})
        self.usage += evaluation.usage

    def mean(self, name: str) -> ScoreSummary | None:
        """Look up the totals of one score; None when no evaluation has it.

        Raises:
            ValueError: the score was made in different ways, so that it has no common mean.
        """
        if name not in self.given:
            return None
        found = sum(made.name == name for summaries in self.makers.values() for made in summaries)
        if found > 1:
            raise ValueError(f"{name} was made by {found} different judges, formulas or estimators")
        return self.given[name]

    def advice(self) -> list[tuple[Diagnosis, int]]:
        """List the diagnoses with their numbers of calls, the most frequent first."""
        return [(self._texts[pattern], count) for pattern, count in self.diagnoses.most_common()]


def _maker(by: By) -> By:
    # The splitter and the number of labelling windows do not change the meaning of a score.
    return by.model_copy(update={"splitter": None, "windows": None})


def summary_tables(summary: Summary) -> list[Table]:
    """Render the totals as one table per provenance.

    The first table also lists the scores that have no value in any call.
    """
    makers = summary.makers or {By(): {}}
    scored = {made.name for found in summary.makers.values() for made in found}
    tables: list[Table] = []
    for by, made in makers.items():
        names = [by.judge or "", by.model or "", f"v{by.judge_version}" if by.judge_version else ""]
        title = " ".join(dict.fromkeys(part for part in names if part)) or "nobody"
        formulas = f", {by.formulas} formulas" if by.formulas else ""
        table = plain_table(
            f"Scores by {title}{formulas}", "score", "mean>", "scored>", "unscored because"
        )
        for name, given in summary.given.items():
            found = {one.method: score for one, score in made.items() if one.name == name}
            if not found and (name in scored or tables):
                continue
            why = ", ".join(f"{code} {count}" for code, count in given.unscored.most_common())
            for method, score in (found or {None: ScoreSummary()}).items():
                mean = "–" if score.mean is None else f"{score.mean:.3f}"
                title = f"{name} ({method})" if len(found) > 1 else name
                table.add_row(title, mean, f"{score.scored}/{given.total}", why)
        tables.append(table)
    return tables
