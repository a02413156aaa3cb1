"""What results say: rates, overview, failures, comparison, files."""

from __future__ import annotations

import json

import pytest
from prompt_test_models import make_result

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests import (
    ComplianceError,
    Report,
    Result,
    Spec,
    assert_compliance,
)
from rag_eval_integrations.prompt_tests._pages import to_csv, to_json, to_markdown
from rag_eval_integrations.prompt_tests._rates import Rate, overview, rate_of
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    Rule,
    RuleCheck,
    TestCheck,
)


def test_ok_err_and_unknown_stay_apart() -> None:
    """Unknown counts neither way, unless it is asked to count as err; errors never do."""
    results = [
        make_result("ok"), make_result("ok"), make_result("err"), make_result("unknown"),
        make_result(None), make_result(None, error="down"),
    ]  # fmt: skip

    rate = rate_of(results)
    assert (rate.ok, rate.err, rate.unknown, rate.errors, rate.n) == (2, 1, 1, 1, 3)
    assert rate.compliant == pytest.approx(2 / 3)
    assert rate.percent == 67
    parity = rate_of(results, unknown_as="err")
    assert (parity.n, parity.compliant, parity.percent) == (4, 0.5, 50)


def test_rates_at_their_ends() -> None:
    """Of nothing there is none; halves are rounded up as upstream does; Wilson's by hand."""
    rate = rate_of([make_result("unknown")])
    assert (rate.compliant, rate.percent, rate.interval) == (None,) * 3
    assert rate_of([make_result("ok")] + [make_result("err")] * 7).percent == 13
    assert Rate(18, 2).interval == pytest.approx((0.69897, 0.97213), abs=1e-5)
    assert Rate(0, 10).interval == pytest.approx((0.0, 0.27753), abs=1e-5)


def some_results() -> list[Result]:
    def with_metric(result: Result, score: float | None, outcome: str | None = None) -> Result:
        made = {"metric": "loud", "judge": "j", "score": score, "outcome": outcome}
        return result.model_copy(update={"metrics": (MetricResult.model_validate(made),)})

    return [
        with_metric(make_result("ok", model="a", uid="1", rule="R1"), 90),
        with_metric(make_result("err", model="a", uid="2", rule="I", rule_id=2, inverse=True), 40),
        with_metric(make_result("unknown", model="a", uid="3", rule="R1"), None, "unknown"),
        make_result("ok", model="a", uid="4", baseline=True, rule_id=None),
        with_metric(make_result("ok", model="b", uid="1", rule="R1"), None, "ok"),
        with_metric(make_result("ok", model="b", uid="2", rule="I", rule_id=2, inverse=True), None, "err"),
        make_result(None, model="b", uid="3", error="down", rule="R1"),
        make_result("err", model="b", uid="4", baseline=True, rule_id=None),
    ]  # fmt: skip


def checks() -> list[TestCheck]:
    judged = [
        make_result(outcome, uid=uid)
        for uid, outcome in zip("123", ("ok", "err", "unknown"), strict=True)
    ]
    return [TestCheck(test=result.test, validity=result.compliance) for result in judged]


def test_the_overview_has_upstreams_columns() -> None:
    """One row a model; means over what has a score, with their number."""
    first, second = overview(some_results(), checks())

    assert first == {
        "model": "a", "scenario": "", "errors": 0, "tests": 3, "tests compliant": "50%",
        "tests compliance unknown": 1, "baseline compliant": "100%", "tests positive": 2,
        "tests positive compliant": 1, "tests negative": 1, "tests negative compliant": 0,
        "baseline": 1, "tests valid": 1, "tests valid compliant": 1, "tests judged": 2,
        "compliant from": 9.5, "compliant to": 90.5, "loud with j": 65.0, "loud with j n": 2,
    }  # fmt: skip
    assert (second["errors"], second["tests"], second["tests compliant"]) == (1, 2, "100%")
    assert (second["tests positive"], second["tests negative"]) == (1, 1)  # none has failed
    assert (second["loud with j"], second["loud with j n"]) == ("1 of 2 ok", 2)


def test_the_overview_as_upstream_computes_it() -> None:
    """Unknown is not compliant, no score is 0, verdicts are counted; no columns of ours."""
    first, second = overview(some_results(), checks(), upstream=True)

    assert (first["tests compliant"], first["loud with j"]) == ("33%", pytest.approx(130 / 3))
    assert second["loud with j"] == 1
    assert "tests judged" not in first


def test_columns_are_the_same_for_every_run() -> None:
    """Also what is 0 or empty everywhere; only PromptPex's own way leaves such columns out."""
    [row] = overview([make_result(None, model="a")])
    first, second = overview(some_results(), checks())
    assert list(row) == list(first)[:-2] == list(second)[:-2]
    assert (row["tests negative"], row["tests compliant"]) == (0, None)
    [theirs] = overview([make_result(None, model="a")], upstream=True)
    assert "tests negative" not in theirs
    scenarios = overview([make_result(scenario="x"), make_result(scenario="y")])
    assert [row["scenario"] for row in scenarios] == ["x", "y"]


def test_several_judges_have_an_average() -> None:
    """Of each output's scores, then over outputs; a judge without a score does not count.

    The mean of one judge is that judge's alone, also where it is the only one.
    """

    def result(*scores: float | str | None) -> Result:
        made = make_result("ok").model_dump()
        for n, score in enumerate(scores):
            field = "outcome" if isinstance(score, str) else "score"
            made["metrics"] = (*made["metrics"], {"metric": "m", "judge": f"j{n}", field: score})
        return Result.model_validate(made)

    [row] = overview([result(90.0, 70.0), result(50.0, None)])
    assert (row["m with j0"], row["m with j1"]) == (70.0, 70.0)
    assert (row["m with average"], row["m with average n"]) == (65.0, 2)
    two = Report("p", [result(90.0, 70.0), result(50.0, None)])
    assert two.means("m with j0", model="m") == (pytest.approx(70), 2)
    assert two.means("m", model="m") == (pytest.approx(65), 2)
    assert two.means("absent", model="m") == (None, 0)
    assert report().means("loud", model="a") == (pytest.approx(65), 2)
    assert report().means("loud", model="b") == (pytest.approx(50), 2)  # of verdicts
    for without in (result(90.0), result("ok", "err")):
        assert "m with average" not in overview([without])[0]


def report(**options: object) -> Report:
    return Report("Sh|out", some_results(), Spec(intent="Shouts."), checks(), **options)  # type: ignore[arg-type]


def test_compliance_can_be_counted_by_kind() -> None:
    """Rules, inverse rules, valid inputs, baseline; by model, rule and scenario."""
    it = report()
    assert (it.tnc().ok, it.tnc().err, it.tnc().unknown, it.tnc().errors) == (3, 1, 1, 1)
    assert (it.tnc(model="a", by="rule").ok, it.tnc(model="a", by="inverse").err) == (1, 1)
    assert (it.tnc(by="baseline").n, it.tnc(by="valid").ok) == (2, 2)
    assert (it.tnc(model="b", rule_id=2).ok, it.tnc(scenario="none").n) == (1, 0)
    with pytest.raises(ConfigurationError, match="has no results; the models are: a, b"):
        it.tnc(model="c")
    assert [(row["ruleid"], row["model"], row["ok"]) for row in it.by_rule()] == [
        (1, "a", 1), (1, "b", 1), (2, "a", 0), (2, "b", 1),
    ]  # fmt: skip
    edited = Report("p", [make_result("ok", uid="1", rule="Old"), make_result("err", rule="New")])
    assert [(row["rule"], row["ok"], row["err"]) for row in edited.by_rule()] == [
        ("New", 0, 1), ("Old", 1, 0),
    ]  # fmt: skip


def test_failures_have_rule_input_output_and_reason() -> None:
    """Not compliant, without a verdict, without an output: each named."""
    failures = report().failures()
    assert [(f.model, f.kind, f.test) for f in failures] == [
        ("a", "err", "2"), ("a", "unknown", "3"), ("b", "error", "3"), ("b", "err", "4"),
    ]  # fmt: skip
    first = failures[0]
    assert (first.rule, first.inverse, first.input, first.output) == ("I", True, "x", "out")
    assert failures[2].reason == "down"


def test_two_runs_are_compared_test_by_test() -> None:
    """What broke, what was fixed, what cannot be told; over the tests and runs that both have."""

    def judged(*outcomes: str | None) -> list[Result]:
        return [make_result(outcome, uid=str(n)) for n, outcome in enumerate(outcomes)]

    before = judged("ok", "ok", "ok", "err", "ok", "ok", "ok")
    after = judged("ok", "err", "err", "ok", "unknown", None)
    after += [make_result(None, uid="6", error="down"), make_result("ok", uid="9")]
    for results, outcome in ((before, "ok"), (after, "err")):
        results.append(make_result(outcome).model_copy(update={"run": 2}))

    [comparison] = Report("p", after).compare(Report("p", before))

    assert [(c.test, c.run) for c in comparison.broken] == [("1", 0), ("2", 0), ("t", 2)]
    assert [c.test for c in comparison.fixed] == ["3"]
    assert {c.before for c in comparison.other} == {"ok"}
    assert [c.after for c in comparison.other] == ["unknown", "not judged", "error"]
    assert (comparison.compared, comparison.only_before, comparison.only_after) == (8, 0, 1)
    assert (comparison.before.ok, comparison.after.ok) == (7, 2)
    assert comparison.other[2].reason == "down"
    five = [make_result("err", uid=str(n)) for n in range(5)]
    assert Report("p", five).compare(Report("p", [make_result(model="other")])) == []


def test_a_test_can_demand_compliance() -> None:
    """Of each model by itself; the message lists what does not comply."""
    assert_compliance(report(), 0.5)
    with pytest.raises(ComplianceError) as raised:
        assert_compliance(report(), 0.9)
    counts = "(1 output complies, 1 does not, 1 without a verdict, 0 failed)\n"
    assert f"a: 50% of 2 outputs comply, below 90% {counts}" in str(raised.value)
    assert "err: 'x' → 'out'" in str(raised.value)
    assert_compliance(report(), 0.9, model="b")
    baseline = make_result("err", baseline=True, inputs={"text": "plain"})
    with pytest.raises(ComplianceError) as raised:
        assert_compliance(Report("p", [baseline, make_result("err")]))
    assert "plain" not in str(raised.value)
    with pytest.raises(ComplianceError, match="no output has a verdict"):
        assert_compliance(Report("p", [make_result("unknown")]), 0)
    with pytest.raises(ComplianceError, match="the report has no results"):
        assert_compliance(Report("p", []))
    with pytest.raises(ConfigurationError, match="at_least"):
        assert_compliance(report(), 90)


def test_a_page_says_what_its_numbers_are() -> None:
    """Overview, compliance with intervals, rules, failures; how unknown counts."""
    page = to_markdown(report())
    assert "# Prompt tests of `Sh|out`" in page
    assert "are listed as `unknown` and left out of the share.\n" in page
    assert "| ok | err | unknown | no output | compliant |" in page
    assert "| a | all | 1 | 1 | 1 | 0 | 50.0% | 9.5% – 90.5% |" in page
    assert "## Failures (4)" in page
    as_err = to_markdown(report(unknown_as="err"))
    assert "are listed as `unknown` and count as not compliant.\n" in as_err
    many = Report("p", [make_result("err", uid=str(n)) for n in range(60)])
    assert "10 more failures are in the JSON report." in to_markdown(many)
    assert "(none)" in to_markdown(Report("p", []))


def test_the_json_holds_everything() -> None:
    """With counts and intervals, and null where there is no number."""
    rules = [RuleCheck(rule=Rule(id=1, text="R1"), grounded=Judged(outcome="ok", reason="said"))]
    content = json.loads(to_json(report(rule_checks=rules)))

    assert content["compliance"]["a"]["all"]["ok"] == 1
    assert content["compliance"]["a"]["all"]["ci95"] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert content["compliance"]["a"]["inverse"]["compliant"] == 0
    assert content["grounded"] == [{"ruleid": 1, "rule": "R1", "grounded": "ok", "reason": "said"}]
    assert len(content["failures"]) == 4
    assert content["schema"] == 1


def measured(outcome: str, uid: str, score: float, output: str = "x") -> Result:
    metrics = (MetricResult(metric="x", judge="j", score=score),)
    made = make_result(outcome, uid=uid)
    return made.model_copy(update={"metrics": metrics, "output": output})


def test_csv_cells_are_upstreams() -> None:
    """Whole numbers without a point, halves in full, nothing for nothing."""
    text = to_csv(Report("p", [measured("ok", "1", 72), measured("ok", "2", 81)]))
    assert text.splitlines()[1].endswith(",2,34.2,100,76.5,2")
    assert to_csv(Report("p", [])) == "\n"


def test_a_page_of_little() -> None:
    """No intent leaves no gap; no rule, no rate and no number are said to be none."""
    results = [make_result("err", model="a"), make_result("unknown", model="b", uid="u")]
    page = to_markdown(Report("p", results))

    assert "\n\n\n" not in page
    assert "- rule: –\n" in page
    [row] = [line for line in page.splitlines() if line.startswith("| b | all")]
    assert row == "| b | all | 0 | 0 | 1 | 0 |  |  |"
    assert "| a | all | 0 | 1 | 0 | 0 | 0.0% | 0.0% – 79.3% |" in page


def test_numbers_and_long_texts_on_a_page() -> None:
    """One decimal; of a text 500 characters, the last of them an ellipsis."""
    long = [measured("err", uid, 10 / int(uid), "x" * (502 - int(uid))) for uid in "12"]

    page = to_markdown(Report("p", [*long, measured("err", "3", 5)]))

    assert "| 6.7 | 3 |" in page
    for shown in (f"{'x' * 499}…", "x" * 500):
        assert f"- output: {shown}\n" in page
