"""Sums of prompt tests over generated results, against a naive second count of them.

The recipe is that of the paper's tables (PromptPex, arXiv:2503.05070): whole percents with halves
up, unknown counted as not compliant, plain means over prompts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import pytest

from rag_eval_integrations.prompt_tests import MetricResult, PromptTest, Report, Result, TestCheck
from rag_eval_integrations.prompt_tests.records import Judged
from rag_eval_integrations.prompt_tests.report import average, overview

MODELS = ("big", "small", "other")


class One(NamedTuple):
    """A result in plain values: what is counted, and nothing else."""

    model: str
    kind: str
    """`rule`, `inverse` or `baseline`."""
    said: str
    """`ok`, `err`, `unknown`, `nobody` (not judged) or `error` (no output)."""
    valid: bool
    score: float | None
    """Of a metric; None where its reply held no score."""


def drawn(
    start: int, count: int, kinds: Sequence[str] = ("rule", "inverse", "baseline")
) -> list[One]:
    source = random.Random(start)
    said = ["ok", "ok", "ok", "err", "err", "unknown", "nobody", "error"]
    return [
        One(
            source.choice(MODELS),
            source.choice(kinds),
            source.choice(said),
            source.random() < 0.7,
            source.choice((None, 0.0, 25.0, 80.0, 100.0)),
        )
        for _ in range(count)
    ]


def records(rows: Sequence[One]) -> tuple[list[Result], list[TestCheck]]:
    """The same as the library holds it."""
    results, checks = [], []
    for number, row in enumerate(rows):
        test = PromptTest(
            uid=str(number),
            inputs={"x": str(number)},
            inverse=row.kind == "inverse",
            baseline=row.kind == "baseline",
        )
        judged = Judged.model_validate({"outcome": row.said}) if row.said in OUTCOMES else None
        metric = MetricResult(metric="loud", judge="j", score=row.score)
        results.append(
            Result(
                test=test,
                model=row.model,
                compliance=judged,
                error="down" if row.said == "error" else None,
                metrics=() if row.said == "error" else (metric,),
            )
        )
        outcome = "ok" if row.valid else "err"
        checks.append(TestCheck(test=test, validity=Judged.model_validate({"outcome": outcome})))
    return results, checks


OUTCOMES = ("ok", "err", "unknown")


def share(rows: Sequence[One], *, unknown_is_err: bool) -> Fraction | None:
    """How many of the judged comply."""
    counted = ("ok", "err", "unknown") if unknown_is_err else ("ok", "err")
    judged = [row for row in rows if row.said in counted]
    return Fraction(sum(row.said == "ok" for row in judged), len(judged)) if judged else None


def percent(part: Fraction | None) -> int | None:
    """Whole percents, halves up."""
    return (
        None
        if part is None
        else (200 * part.numerator + part.denominator) // (2 * part.denominator)
    )


def mean(parts: Sequence[Fraction | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return float(sum(known, Fraction(0)) / len(known)) if known else None


WAYS: dict[str | None, Callable[[One], bool]] = {
    None: lambda row: row.kind != "baseline",
    "rule": lambda row: row.kind == "rule",
    "inverse": lambda row: row.kind == "inverse",
    "baseline": lambda row: row.kind == "baseline",
    "valid": lambda row: row.kind != "baseline" and row.valid,
}


@pytest.mark.parametrize("unknown_is_err", [False, True])
def test_rates_are_the_naive_ones(unknown_is_err: bool) -> None:
    """By model and kind of test: ok, err, unknown and errors apart, the share and its percent."""
    for start in range(20):
        rows = drawn(start, 60)
        results, checks = records(rows)
        report = Report("p", results, checks=checks, unknown_as="err" if unknown_is_err else None)
        for model in report.models:
            for by, is_one in WAYS.items():
                chosen = [row for row in rows if row.model == model and is_one(row)]
                rate = report.tnc(model=model, by=by)  # type: ignore[arg-type]
                said = [row.said for row in chosen]
                counts = (rate.ok, rate.err, rate.unknown, rate.errors)
                assert counts == tuple(map(said.count, ("ok", "err", "unknown", "error")))
                part = share(chosen, unknown_is_err=unknown_is_err)
                assert rate.compliant == (None if part is None else pytest.approx(float(part)))
                assert rate.percent == percent(part)


@pytest.mark.parametrize("upstream", [False, True])
def test_the_overview_is_the_naive_one(upstream: bool) -> None:
    """Every cell of every model's row; a metric without a score is 0 upstream, and left out here."""
    rows = drawn(1, 120)
    found = {row["model"]: row for row in overview(*records(rows), upstream=upstream)}

    assert found.keys() == {row.model for row in rows}
    for model, row in found.items():
        answered = [one for one in rows if one.model == model and one.said != "error"]
        tests = [one for one in answered if one.kind != "baseline"]
        of_kind = {
            kind: [one for one in answered if one.kind == kind]
            for kind in ("rule", "inverse", "baseline")
        }
        valid = [one for one in tests if one.valid]
        scores = [one.score for one in tests if one.score is not None]
        expected = {
            "errors": sum(one.model == model and one.said == "error" for one in rows),
            "tests": len(tests),
            "tests compliant": f"{percent(share(tests, unknown_is_err=upstream))}%",
            "tests compliance unknown": sum(one.said == "unknown" for one in tests),
            "baseline": len(of_kind["baseline"]),
            "baseline compliant": f"{percent(share(of_kind['baseline'], unknown_is_err=upstream))}%",
            "tests positive": len(of_kind["rule"]),
            "tests positive compliant": sum(one.said == "ok" for one in of_kind["rule"]),
            "tests negative": len(of_kind["inverse"]),
            "tests negative compliant": sum(one.said == "ok" for one in of_kind["inverse"]),
            "tests valid": len(valid),
            "tests valid compliant": sum(one.said == "ok" for one in valid),
            "loud with j": pytest.approx(sum(scores) / len(tests if upstream else scores)),
        }
        assert {name: row[name] for name in expected} == expected
        assert row.get("loud with j n") == (None if upstream else len(scores))


def test_the_mean_over_prompts_is_the_naive_one() -> None:
    """Non-compliance: of rounded percents for all tests, unrounded where the two kinds are compared."""
    every, direct = ("rule", "inverse", "baseline"), ("rule", "baseline")
    prompts = [drawn(start, 40, every if start % 3 else direct) for start in range(12)]
    reports = [
        Report(str(at), records(rows)[0], unknown_as="err") for at, rows in enumerate(prompts)
    ]

    found = {row.model: row for row in average(reports)}

    assert found.keys() == set(MODELS)
    for model, row in found.items():
        by_prompt = []
        for rows in prompts:
            of_model = [one for one in rows if one.model == model]
            by_prompt.append(
                {
                    by: share([one for one in of_model if is_one(one)], unknown_is_err=True)
                    for by, is_one in WAYS.items()
                }
            )

        def rounded(
            by: str | None, by_prompt: list[dict[str | None, Fraction | None]] = by_prompt
        ) -> float | None:
            parts = [percent(shares[by]) for shares in by_prompt]
            return mean([None if part is None else 1 - Fraction(part, 100) for part in parts])

        comparable = [
            (shares["rule"], shares["inverse"])
            for shares in by_prompt
            if shares["rule"] is not None and shares["inverse"] is not None
        ]
        assert 0 < len(comparable) < len(prompts)
        assert row.prompts == len(prompts)
        assert (row.tests, row.baseline) == pytest.approx((rounded(None), rounded("baseline")))
        assert row.rule == pytest.approx(mean([1 - direct for direct, _ in comparable]))
        assert row.inverse == pytest.approx(mean([1 - inverse for _, inverse in comparable]))
