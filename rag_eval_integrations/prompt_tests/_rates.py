"""Rates of compliance with counts and intervals, agreement of judges, and the overview. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from rag_eval_integrations._visible import counted
from rag_eval_integrations.metrics.prompty._reply import Outcome
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    PromptTest,
    Result,
    TestCheck,
    valid_uids,
)
from rag_eval_integrations.records.mean import wilson

UnknownAs = Literal["err"] | None
"""`err` counts an unknown verdict as not compliant, like PromptPex; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Numbers of outputs by outcome, and the rate of compliance."""

    ok: int = 0
    """Compliant outputs."""
    err: int = 0
    """Outputs that do not comply."""
    unknown: int = 0
    """Outputs that were judged without a verdict, or whose judge did not answer."""
    errors: int = 0
    """Failures of the model, without an output."""
    unknown_as: UnknownAs = None

    @property
    def n(self) -> int:
        """The rate's denominator: ok and err, plus unknown if it counts as err."""
        return self.ok + self.err + (self.unknown if self.unknown_as == "err" else 0)

    @property
    def outputs(self) -> int:
        """The number of outputs that were judged, and of failures."""
        return self.ok + self.err + self.unknown + self.errors

    @property
    def compliant(self) -> float | None:
        """The share of compliant outputs, 0 to 1; None if `n` is 0."""
        return self.ok / self.n if self.n else None

    @property
    def percent(self) -> int | None:
        """The compliant share in whole percent, with halves rounded up, like PromptPex.

        None if `n` is 0.
        """
        return None if self.compliant is None else math.floor(100 * self.compliant + 0.5)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of outputs by outcome."""
        return {"ok": self.ok, "err": self.err, "unknown": self.unknown, "errors": self.errors}

    @property
    def words(self) -> str:
        """The numbers of outputs by outcome, in words."""
        return (
            f"{counted(self.ok, 'output complies', 'outputs comply')}, {self.err:,} "
            f"{'does' if self.err == 1 else 'do'} not, {self.unknown:,} without a verdict, "
            f"{self.errors:,} failed"
        )

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of `compliant`; None if `n` is 0.

        With 20 tests, one verdict moves the rate by 5 points; the interval is much wider.
        """
        if self.compliant is None:
            return None
        ends = wilson(self.compliant, self.n)
        return ends.low, ends.high


def rate_of(results: Iterable[Result], *, unknown_as: UnknownAs = None) -> Rate:
    """Count the verdicts on compliance; results that were not judged are left out.

    Failures of the model are counted as `errors`.

    Args:
        results: the results.
        unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.
    """
    states = Counter(result.state for result in results)
    return Rate(states["ok"], states["err"], states["unknown"], states["error"], unknown_as)


# --- Kinds of tests


Tests = Literal["rule", "inverse", "baseline", "valid"]
"""Some of the tests; see `Report.tnc`."""
KINDS: Mapping[str, Tests | None] = {
    "all": None,
    "rule": "rule",
    "inverse": "inverse",
    "baseline": "baseline",
    "valid": "valid",
}
"""The kinds of tests whose compliance every report shows."""


def is_of_kind(test: PromptTest, by: Tests | None, valid: Collection[str]) -> bool:
    """Return whether a test is of a kind; for None, whether it tests a rule.

    A baseline test is of the kind `baseline` only.

    Args:
        test: the test.
        by: the kind.
        valid: uids of the tests whose input is valid.
    """
    if test.baseline or by == "baseline":
        return test.baseline and by == "baseline"
    if by in ("rule", "inverse"):
        return test.inverse == (by == "inverse")
    return by is None or test.uid in valid


# --- Several judges: the majority, and how far they agree


def by_majority(results: Iterable[Result]) -> list[Result]:
    """Return results in which the verdict of most judges counts, not the first judge's.

    Verdicts of `ok` and `err` are counted. If there are as many of both, or none, the verdict is
    `unknown`. A result that fewer than two judges judged stays as it is. The judges' own verdicts
    are kept in `others`.
    """
    return [_with_majority(result) if result.others else result for result in results]


def judge_verdicts(result: Result) -> list[Judged]:
    """Return the judges' verdicts on compliance, without the majority's."""
    return [verdict for verdict in result.verdicts if verdict.judge != "majority"]


def share_of(outcome: Outcome, unknown_as: UnknownAs = None) -> float | None:
    """Return a verdict as a share of compliance: 1 for `ok`, 0 for `err`, None if it is left out.

    An unknown verdict counts 0 if `unknown_as` is `err`, and is left out otherwise.
    """
    if outcome == "unknown":
        return 0.0 if unknown_as == "err" else None
    return float(outcome == "ok")


def _with_majority(result: Result) -> Result:
    """Return a result with the verdict of most judges; the judges' own go to `others`.

    It is `unknown` if as many say ok as err. The probability is the mean, if every judge has one.
    """
    verdicts = judge_verdicts(result)
    votes = Counter(verdict.outcome for verdict in verdicts)
    ok, err = votes["ok"], votes["err"]
    outcome: Outcome = "ok" if ok > err else "err" if err > ok else "unknown"
    agreeing = [verdict for verdict in verdicts if verdict.outcome == outcome]
    counts = f"{ok} of {len(verdicts)} judges say ok, {err} err"
    reason = f"{counts}: {agreeing[0].reason}" if agreeing and outcome != "unknown" else counts
    known = [verdict.probability for verdict in verdicts if verdict.probability is not None]
    majority = Judged(
        outcome=outcome,
        reason=reason,
        judge="majority",
        probability=fmean(known) if len(known) == len(verdicts) else None,
    )
    return result.model_copy(update={"compliance": majority, "others": tuple(verdicts)})


@dataclass(frozen=True, slots=True)
class JudgesAgreement:
    """How far two judges agree on compliance, over the outputs that both judged ok or err."""

    judges: tuple[str, str]
    n: int
    """Number of outputs."""
    agree: float | None
    """Share of outputs on which both say the same, 0 to 1; None without outputs."""
    kappa: float | None
    """Cohen's kappa (Cohen 1960): agreement beyond chance, -1 to 1; None without outputs, or where
    all verdicts are the same, since chance then explains everything."""


def judges_agreement(results: Iterable[Result]) -> list[JudgesAgreement]:
    """Compare the judges of the rule tests' outputs in pairs; empty for fewer than two judges.

    Pairs are in the order in which the judges appear. The majority is not a judge.
    """
    rows = [
        _outcome_by_judge(result)
        for result in results
        if result.error is None and not result.test.baseline
    ]
    names = dict.fromkeys(name for row in rows for name in row if name)
    return [_agreement(pair, rows) for pair in combinations(names, 2)]


def _outcome_by_judge(result: Result) -> dict[str, Outcome]:
    """Return each judge's outcome for an output, by the judge's name.

    The name is empty for the verdict on an empty output, about which no judge was asked.
    """
    return {verdict.judge or "": verdict.outcome for verdict in judge_verdicts(result)}


def _agreement(judges: tuple[str, str], rows: Sequence[dict[str, Outcome]]) -> JudgesAgreement:
    """Compute the agreement of two judges: share and kappa, over outputs both judged ok or err.

    The share is None without such outputs, and kappa also if all verdicts are the same.
    """
    pairs = []
    for row in rows:
        outcomes = [row.get(name) for name in judges]
        if set(outcomes) <= {"ok", "err"}:
            pairs.append((outcomes[0] == "ok", outcomes[1] == "ok"))
    n, same, both = len(pairs), sum(a == b for a, b in pairs), sum(a and b for a, b in pairs)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    chance = first * (n - second) + second * (n - first)
    kappa = 2 * (both * n - first * second) / chance if chance else None
    return JudgesAgreement(judges, n, same / n if n else None, kappa)


# --- Overview: one row per model and scenario, with PromptPex's column names


AVERAGE = "average"
"""Stands for the judge in the column of the mean over judges, as in PromptPex's files."""

Cell = str | int | float | None
Row = dict[str, Cell]


def overview(
    results: Sequence[Result],
    checks: Iterable[TestCheck] = (),
    *,
    unknown_as: UnknownAs = None,
    upstream: bool = False,
) -> list[Row]:
    """Summarise results: one row per model and scenario.

    PromptPex's columns are `tests`, `tests compliant` (percent), `tests compliance unknown`,
    `baseline compliant`, `tests positive`, `… compliant`, `tests negative`, `… compliant` (numbers
    of tests of rules and of inverse rules), `baseline`, `tests valid`, `… compliant`, and the mean
    of every metric by every judge (`METRIC with JUDGE`) and, if several judges were asked, of the
    mean over the judges that gave a score (`METRIC with average`). Our own are `tests judged`,
    `compliant from` and `compliant to` (the 95 % interval in percent), and `METRIC n` (number of
    outputs with a score).

    Args:
        results: results of any number of models and scenarios.
        checks: checks of the tests, which say which tests are valid.
        unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.
        upstream: whether to compute like PromptPex: an unknown verdict counts as not compliant and
            a metric without a score as 0, and our own columns are left out.

    Returns:
        Rows with the same columns. The columns are the same for all runs, apart from those of
        metrics; with `upstream`, columns that are empty or 0 in every row are left out.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.model, result.test.scenario), []).append(result)
    valid = valid_uids(checks)
    rows = [
        _overview_row(model, scenario, group, valid, "err" if upstream else unknown_as, upstream)
        for (model, scenario), group in groups.items()
    ]
    if upstream:
        return without_empty_columns(rows)
    names = dict.fromkeys(name for row in rows for name in row)  # of some models' metrics
    return [_with_columns(row, names) for row in rows]


def _with_columns(row: Row, names: Iterable[str]) -> Row:
    """Return a row with these columns alone; a cell that it lacks is None."""
    return {name: row.get(name) for name in names}


def _of_kind(results: Iterable[Result], by: Tests | None, valid: Collection[str]) -> list[Result]:
    """Return the results of a kind of tests; see `is_of_kind`."""
    return [result for result in results if is_of_kind(result.test, by, valid)]


def _overview_row(
    model: str,
    scenario: str,
    results: Sequence[Result],
    valid: set[str],
    unknown_as: UnknownAs,
    upstream: bool,
) -> Row:
    """Return the row of a model and scenario in the overview.

    Failed outputs are counted as `errors` only. With `upstream`, our own columns are left out.
    """
    answered = [result for result in results if result.error is None]
    kinds = {kind: _of_kind(answered, by, valid) for kind, by in KINDS.items()}
    tests = kinds["all"]
    rate = rate_of(tests, unknown_as=unknown_as)
    row: Row = {
        "model": model,
        "scenario": scenario,
        "errors": len(results) - len(answered),
        "tests": len(tests),
        "tests compliant": _percent(rate),
        "tests compliance unknown": rate.unknown,
        "baseline compliant": _percent(rate_of(kinds["baseline"], unknown_as=unknown_as)),
        "tests positive": len(kinds["rule"]),
        "tests positive compliant": rate_of(kinds["rule"]).ok,
        "tests negative": len(kinds["inverse"]),
        "tests negative compliant": rate_of(kinds["inverse"]).ok,
        "baseline": len(kinds["baseline"]),
        "tests valid": len(kinds["valid"]),
        "tests valid compliant": rate_of(kinds["valid"]).ok,
    }
    if not upstream:
        low, high = rate.interval or (None, None)
        row["tests judged"] = rate.n
        row["compliant from"] = None if low is None else round(100 * low, 1)
        row["compliant to"] = None if high is None else round(100 * high, 1)
    for key, cells in _metric_columns(tests).items():
        row |= _upstream_metric_cells(key, cells) if upstream else _metric_cells(key, cells)
    return row


def _percent(rate: Rate) -> str | None:
    """Return the compliant share in whole percent as text; None if it is not known."""
    return None if rate.percent is None else f"{rate.percent}%"


def _metric_columns(results: Sequence[Result]) -> dict[str, list[MetricResult]]:
    """Return the metrics' results by column of the overview, with an average over several judges.

    Columns are sorted by name. A metric without any score has no average.
    """
    columns: dict[str, list[MetricResult]] = {}
    means: dict[str, list[MetricResult]] = {}
    for result in results:
        for metric_result in result.metrics:
            columns.setdefault(metric_result.key, []).append(metric_result)
        for name in dict.fromkeys(metric_result.metric for metric_result in result.metrics):
            of_metric = [cell.score for cell in result.metrics if cell.metric == name]
            scores = [score for score in of_metric if score is not None]
            score = fmean(scores) if scores else None
            mean = MetricResult(metric=name, judge=AVERAGE, score=score)
            means.setdefault(name, []).append(mean)
    for name, cells in means.items():
        judges = [key for key, column in columns.items() if column[0].metric == name]
        # Judges of a metric that gives verdicts have no mean.
        if len(judges) > 1 and any(cell.score is not None for cell in cells):
            columns[cells[0].key] = cells
    return dict(sorted(columns.items()))


def _metric_cells(key: str, cells: Sequence[MetricResult]) -> Row:
    """Return a metric's cells: its mean score or count of OK verdicts, and the number of outputs.

    Outputs without either are left out; None and 0 if all are.
    """
    scores = [cell.score for cell in cells if cell.score is not None]
    if scores:
        return {key: fmean(scores), f"{key} n": len(scores)}
    verdicts = [cell.outcome for cell in cells if cell.outcome in ("ok", "err")]
    if not verdicts:
        return {key: None, f"{key} n": 0}
    return {key: f"{verdicts.count('ok')} of {len(verdicts)} ok", f"{key} n": len(verdicts)}


def _upstream_metric_cells(key: str, cells: Sequence[MetricResult]) -> Row:
    """Return a metric's cell as in PromptPex: the mean with 0 for no score, or the count of OK."""
    if any(cell.score is not None for cell in cells):
        return {key: sum(cell.score or 0.0 for cell in cells) / len(cells)}
    return {key: sum(cell.outcome == "ok" for cell in cells)}


_ALWAYS = {"model", "tests", "tests compliant", "tests judged", "compliant from", "compliant to"}


def without_empty_columns(rows: Sequence[Row]) -> list[Row]:
    """Drop columns that are empty or 0 in every row, except those of compliance."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if name in _ALWAYS or not _is_empty_column(name, rows)]
    return [_with_columns(row, columns) for row in rows]


def _is_empty_column(name: str, rows: Iterable[Row]) -> bool:
    """Return whether a column is empty or 0 in every row."""
    return all(row.get(name) in (None, "", 0) for row in rows)
