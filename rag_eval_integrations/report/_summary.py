"""Running totals of many evaluations in constant memory: means, reasons, diagnoses, usage."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_eval_integrations.metrics import Diagnosis, diagnose
from rag_eval_integrations.records import By, Evaluation, Means, RunningMean, Usage
from rag_eval_integrations.report.console import add_row, plain_table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Summary:
    """Running totals over evaluations."""

    calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Number of failed calls by `stage: type`."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Message of the first failure of each kind in `errors`."""
    scored: int = 0
    """Number of calls with at least one value."""
    means: Means = field(default_factory=Means)
    """Means of the scores, by name, maker and estimator."""
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
            kind = f"{evaluation.error.stage}: {evaluation.error.type}"
            self.errors[kind] += 1
            self.reasons.setdefault(kind, evaluation.error.message)
        self.scored += any(score.value is not None for score in evaluation.scores.values())
        self.means.add(evaluation)
        for diagnosis in diagnose(evaluation.scores):
            self.diagnoses[diagnosis.pattern] += 1
            self._texts[diagnosis.pattern] = diagnosis
        self.flags.update(evaluation.flags)
        self.warnings.update({w for s in evaluation.scores.values() for w in s.warnings})
        self.usage += evaluation.usage

    def advice(self) -> list[tuple[Diagnosis, int]]:
        """List the diagnoses with their numbers of calls, the most frequent first."""
        return [(self._texts[pattern], count) for pattern, count in self.diagnoses.most_common()]


def summary_tables(summary: Summary) -> list[Table]:
    """Render the totals as one table per provenance; no table without calls.

    The first table also lists the scores that have no value in any call.
    """
    if not summary.means.total:
        return []
    makers = list(dict.fromkeys(made.by for made in summary.means.made)) or [By()]
    scored = {made.name for made in summary.means.made}
    tables: list[Table] = []
    for by in makers:
        names = [by.judge or "", by.model or "", f"v{by.judge_version}" if by.judge_version else ""]
        who = " ".join(dict.fromkeys(part for part in names if part))
        formulas = f", {by.formulas} formulas" if by.formulas else ""
        table = plain_table(
            f"Scores by {who}{formulas}" if who else "Scores",
            "score",
            "mean>",
            "scored>",
            "unscored because",
        )
        for name, total in summary.means.total.items():
            found = {
                made.method: mean
                for made, mean in summary.means.made.items()
                if (made.name, made.by) == (name, by)
            }
            if not found and (name in scored or tables):
                continue
            codes = summary.means.unscored.get(name, Counter())
            why = ", ".join(f"{code} {count}" for code, count in codes.most_common())
            for method, running in (found or {None: RunningMean()}).items():
                mean = "–" if running.mean is None else f"{running.mean:.3f}"
                title = f"{name} ({method})" if len(found) > 1 else name
                add_row(table, title, mean, f"{running.n}/{total}", why)
        tables.append(table)
    return tables
