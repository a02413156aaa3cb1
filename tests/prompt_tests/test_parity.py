"""PromptPex's recorded runs: every published number from the recorded rows."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from rag_eval_integrations.prompt_tests._contents import Contents, read_upstream
from rag_eval_integrations.prompt_tests._rates import Row, overview
from rag_eval_integrations.prompt_tests._replies import read_tests_csv
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Result
from rag_eval_integrations.prompt_tests.report import Report

OTHER_NAMES = {
    "classify": "classify-input-text", "sentence": "sentence-rewrite",
    "shakespeare": "shakespearean-writing-assistant",
}  # fmt: skip


@pytest.fixture
def recorded(data: Path) -> Path:
    return data / "promptpex"


def cells(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, skipinitialspace=True)
        return [{k.strip(): v.strip() for k, v in row.items()} for row in rows]


def name_of(row: dict[str, str]) -> str:
    """The folder of a benchmark, which stands in the first cell."""
    name = next(iter(row.values()))
    return OTHER_NAMES.get(name, name)


def written(value: object) -> str:
    if value is None:
        return ""
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def differences(file: Path, rows: list[Row], skip: set[str]) -> tuple[int, list[str]]:
    by_model = {row["model"]: row for row in rows}
    compared, wrong = 0, []
    for row in cells(file):
        for name, value in row.items():
            if name == "model" or name in skip:
                continue
            compared += 1
            cell = written(by_model[row["model"]].get(name))
            if cell != value and not (name == "errors" and (cell, value) == ("", "0")):
                wrong.append(f"{file.parent.name} {row['model']} {name}: {cell}, not {value}")
    return compared, wrong


@pytest.mark.parametrize(("folder", "cells_of_it"), [("v7", 320), ("paper_2025", 168)])
def test_every_cell_of_the_overviews(recorded: Path, folder: str, cells_of_it: int) -> None:
    """Of eight prompts of v7 and three of the paper, whose baseline columns repeat the others."""
    compared, wrong = 0, list[str]()
    for prompt in sorted((recorded / folder).iterdir()):
        read = read_upstream(prompt, max_rules=20 if folder == "paper_2025" else None)
        assert read.lost == []
        overviews = {"overview.csv": overview(read.results, read.checks, upstream=True)}
        repeated = {"baseline", "baseline compliant"} if folder == "paper_2025" else set[str]()
        if repeated:
            overviews["overview-baseline.csv"] = baseline(read)
            for row in cells(prompt / "overview.csv"):
                assert row["baseline compliant"] == row["tests compliant"]
                assert row["baseline"] == row["tests"]
        for name, rows in overviews.items():
            skip = repeated if name == "overview.csv" else set[str]()
            more, differ = differences(prompt / name, rows, skip)
            compared, wrong = compared + more, wrong + differ

    assert (wrong, compared) == ([], cells_of_it)


def baseline(read: Contents) -> list[Row]:
    """The overview of the baseline tests alone, as if they were tests of rules."""
    results = [
        result.model_copy(update={"test": result.test.model_copy(update={"baseline": False})})
        for result in read.results
        if result.test.baseline
    ]
    return overview(results, read.checks, upstream=True)


def test_a_rules_text_is_the_one_the_test_was_made_for(recorded: Path) -> None:
    """Not what the paper's result rows say: these have no rule, or the wrong one."""
    read = read_upstream(recorded / "paper_2025" / "art-prompt", max_rules=20)

    of_rules = {(rule.id, rule.text, rule.inverse) for rule in read.spec.rules}
    tests = [result.test for result in read.results if not result.test.baseline]
    assert {(test.rule_id, test.rule, test.inverse) for test in tests} == of_rules


def test_the_published_tables_of_v7(recorded: Path) -> None:
    """Non-compliance by prompt and model, its mean, and its split by rule and inverse."""
    reports = {
        folder.name: report_of(read_upstream(folder), folder.name)
        for folder in sorted((recorded / "v7").iterdir())
    }
    assert_headlines(recorded / "headline", "v7", reports)
    for row in cells(recorded / "headline" / "v7_pp-test-validity.csv"):
        report = reports[name_of(row)]
        model = report.models[0]
        assert report.tnc(model=model).n == int(row["tests"])
        assert report.tnc(model=model, by="valid").n == int(row["valid tests"])
    for row in cells(recorded / "headline" / "v7_pp-grounded-rules.csv"):
        direct = reports[name_of(row)].rule_checks[: int(row["rules"])]
        assert sum(c.grounded.outcome == "ok" for c in direct) == int(row["grounded rules"])


def report_of(read: Contents, name: str) -> Report:
    return Report(name, read.results, read.spec, read.checks, read.rule_checks, unknown_as="err")


def test_the_published_tables_of_the_paper(recorded: Path) -> None:
    """From the table of 3,936 recorded verdicts; 22 of the 23 prompts are in the paper."""
    table = recorded / "headline" / "verdict_table_23prompts.csv.gz"
    by_prompt: dict[str, list[Result]] = defaultdict(list)
    with gzip.open(table, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            of_baseline = row["baseline"] == "True"
            test = PromptTest(
                uid=row["testuid"], inputs={"x": ""}, baseline=of_baseline,
                inverse=row["inverse"] == "True" and not of_baseline,
            )  # fmt: skip
            outcome = row["compliance"] if row["compliance"] in ("ok", "err") else "unknown"
            judged = Judged.model_validate({"outcome": outcome})
            result = Result(test=test, model=row["model"], compliance=judged)
            by_prompt[row["prompt"]].append(result)
    assert len(by_prompt) == 23
    published = {name_of(row) for row in cells(recorded / "headline" / "paper2025_pp-cpct.csv")}
    names = published - {"average"}
    reports = {name: Report(name, by_prompt[name], unknown_as="err") for name in names}
    assert len(reports) == 22

    assert_headlines(recorded / "headline", "paper2025", reports)
    for name, report in reports.items():
        rows = cells(recorded / "headline" / "paper2025_overview" / f"{name}.csv")
        assert len(rows) == 4
        for row in rows:
            for by, kind in (("rule", "positive"), ("inverse", "negative")):
                rate = report.tnc(model=row["model"], by=by)  # type: ignore[arg-type]
                assert rate.n == int(row.get(f"tests {kind}", 0))
                assert rate.ok == int(row.get(f"tests {kind} compliant", 0))
            assert f"{report.tnc(model=row['model']).percent}%" == row["tests compliant"]


def assert_headlines(folder: Path, version: str, reports: dict[str, Report]) -> None:
    everything = list(reports.values())
    for row in cells(folder / f"{version}_pp-cpct.csv"):
        for model, value in list(row.items())[1:]:
            of_all = row["Benchmark"] == "average"
            mean = rounded(everything if of_all else [reports[name_of(row)]], model)
            assert mean == pytest.approx(float(value), abs=1e-12)
    for row in cells(folder / f"{version}_pp-compare.csv"):
        means = [rounded(everything, row["Model"], by) for by in (None, "baseline")]
        assert means == pytest.approx([float(value) for value in list(row.values())[1:]], abs=1e-12)
    for row in cells(folder / f"{version}_pos-neg-cpct.csv"):
        pairs = [
            [1 - rate.compliant for rate in rates if rate.compliant is not None]
            for report in everything
            for rates in [[report.tnc(model=row["Model"], by=by) for by in ("rule", "inverse")]]
        ]
        split = [fmean(column) for column in zip(*(p for p in pairs if len(p) == 2), strict=True)]
        assert split == pytest.approx([float(value) for value in list(row.values())[1:]], abs=1e-12)


def rounded(reports: list[Report], model: str, by: Any = None) -> float:
    """The mean non-compliance, of each prompt's rate in whole percent, as in the paper."""
    percents = [report.tnc(model=model, by=by).percent for report in reports]
    return fmean(1 - percent / 100 for percent in percents if percent is not None)


def test_raw_csv_of_models_is_read_and_losses_are_named(recorded: Path) -> None:
    """Twenty files with trouble: 567 rows, 11 that cannot be told, each with line and cells."""
    rows = lost = 0
    for file in sorted((recorded / "raw_test_csv").glob("*.csv")):
        if file.name == "manifest.csv":
            continue
        table = read_tests_csv(file.read_text("utf-8"))
        rows += sum(bool(row["testinput"]) for row in table.rows)
        lost += len(table.lost)
        assert all(why.startswith("line ") or "refusal" in why for why in table.lost)

    assert (rows, lost) == (567, 11)
