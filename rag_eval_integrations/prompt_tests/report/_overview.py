"""`overview`: one row per model and scenario, with PromptPex's column names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from rag_eval_integrations.prompt_tests.records import MetricResult, Result, TestCheck
from rag_eval_integrations.prompt_tests.report.rates import Rate, UnknownAs, rate_of

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
    valid = {
        check.test.uid
        for check in checks
        if check.validity is not None and check.validity.outcome == "ok"
    }
    rows = [
        _row(model, scenario, of_it, valid, "err" if upstream else unknown_as, upstream)
        for (model, scenario), of_it in groups.items()
    ]
    if upstream:
        return without_empty_columns(rows)
    names = dict.fromkeys(name for row in rows for name in row)  # of some models' metrics
    return [{name: row.get(name) for name in names} for row in rows]


def _row(
    model: str,
    scenario: str,
    results: Sequence[Result],
    valid: set[str],
    unknown_as: UnknownAs,
    upstream: bool,
) -> Row:
    with_output = [result for result in results if result.error is None]
    tests = [result for result in with_output if not result.test.baseline]
    baseline = [result for result in with_output if result.test.baseline]
    positive = [result for result in tests if not result.test.inverse]
    negative = [result for result in tests if result.test.inverse]
    checked = [result for result in tests if result.test.uid in valid]
    rate = rate_of(tests, unknown_as=unknown_as)
    row: Row = {
        "model": model,
        "scenario": scenario,
        "errors": rate_of(results).errors,
        "tests": len(tests),
        "tests compliant": _percent(rate),
        "tests compliance unknown": rate.unknown,
        "baseline compliant": _percent(rate_of(baseline, unknown_as=unknown_as)),
        "tests positive": len(positive),
        "tests positive compliant": rate_of(positive).ok,
        "tests negative": len(negative),
        "tests negative compliant": rate_of(negative).ok,
        "baseline": len(baseline),
        "tests valid": len(checked),
        "tests valid compliant": rate_of(checked).ok,
    }
    if not upstream:
        low, high = rate.interval or (None, None)
        row["tests judged"] = rate.n
        row["compliant from"] = None if low is None else round(100 * low, 1)
        row["compliant to"] = None if high is None else round(100 * high, 1)
    for key, cells in _metrics(tests).items():
        row |= _upstream_metric(key, cells) if upstream else _metric(key, cells)
    return row


def _percent(rate: Rate) -> str | None:
    return None if rate.percent is None else f"{rate.percent}%"


def _metrics(results: Sequence[Result]) -> dict[str, list[MetricResult]]:
    """Group the metrics' results by column; several judges of a metric also have an average."""
    judges: dict[str, set[str]] = {}
    for result in results:
        for one in result.metrics:
            judges.setdefault(one.metric, set()).add(one.judge)
    averaged = {metric for metric, names in judges.items() if len(names) > 1}
    found: dict[str, list[MetricResult]] = {}
    for result in results:
        of_metric: dict[str, list[MetricResult]] = {}
        for one in result.metrics:
            found.setdefault(one.key, []).append(one)
            of_metric.setdefault(one.metric, []).append(one)
        for metric in averaged & set(of_metric):
            scores = [one.score for one in of_metric[metric] if one.score is not None]
            score = fmean(scores) if scores else None
            mean = MetricResult(metric=metric, judge=AVERAGE, score=score)
            found.setdefault(mean.key, []).append(mean)
    # Judges of a metric that gives verdicts have no mean.
    without = {f"{metric} with {AVERAGE}" for metric in averaged}
    return {
        key: cells
        for key, cells in sorted(found.items())
        if key not in without or any(one.score is not None for one in cells)
    }


def _metric(key: str, cells: Sequence[MetricResult]) -> Row:
    """Return the mean score or the count of OK verdicts, with the number of outputs behind it."""
    scores = [one.score for one in cells if one.score is not None]
    if scores:
        return {key: fmean(scores), f"{key} n": len(scores)}
    verdicts = [one.outcome for one in cells if one.outcome in ("ok", "err")]
    if not verdicts:
        return {key: None, f"{key} n": 0}
    return {key: f"{verdicts.count('ok')} of {len(verdicts)} ok", f"{key} n": len(verdicts)}


def _upstream_metric(key: str, cells: Sequence[MetricResult]) -> Row:
    """Return a metric as PromptPex does: the mean with 0 for no score, else the count of OK."""
    if any(one.score is not None for one in cells):
        return {key: sum(one.score or 0.0 for one in cells) / len(cells)}
    return {key: sum(one.outcome == "ok" for one in cells)}


_ALWAYS = {"model", "tests", "tests compliant", "tests judged", "compliant from", "compliant to"}


def without_empty_columns(rows: Sequence[Row]) -> list[Row]:
    """Drop columns that are empty or 0 in every row, except those of compliance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    kept = [
        name
        for name in names
        if name in _ALWAYS or any(row.get(name) not in (None, "", 0) for row in rows)
    ]
    return [{name: row.get(name) for name in kept} for row in rows]
