"""Summary: means over many evaluations, never over scores that were made in different ways."""

from __future__ import annotations

import re

import pytest
from runs import call

from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.records import By, Evaluation, EvaluationError, JudgeInfo, Score


def evaluation(*scores: Score) -> Evaluation:
    return call("1", {score.name: score for score in scores}, labels=None)


def scored(value: float, *, name: str = "geval:tone", method: str, judge: str = "j") -> Score:
    return Score(name=name, status="scored", value=value, method=method, by=By(judge=judge))


def shown(summary: Summary) -> str:
    return "\n".join(line for table in summary.tables() for line in table)


def test_two_estimators_have_a_line_each_and_no_common_mean() -> None:
    """Log-probabilities and samples are never averaged together; one estimator needs no mention."""
    summary = Summary.of(
        evaluation(scored(value, method="logprobs"), scored(value, name="a", method="labels"))
        for value in (0.2, 0.4)
    )
    assert "(logprobs)" not in shown(summary)
    assert "Scores by j" in shown(summary)
    assert "formulas" not in shown(summary)

    summary.add(evaluation(scored(0.9, method="monte_carlo")))
    with pytest.raises(ValueError, match="estimators"):
        summary.means.mean("geval:tone")
    lines = shown(summary)
    for words in ("geval:tone (logprobs)", "0.300", "geval:tone (monte_carlo)", "0.900"):
        assert words in lines
    assert "0.500" not in lines

    summary.add(evaluation(scored(0.6, method="logprobs", judge="other")))
    with pytest.raises(ValueError, match="3 different judges"):
        summary.means.mean("geval:tone")
    assert len(summary.tables()) == 2


def test_a_table_holds_its_makers_scores_alone() -> None:
    """What another judge gave is not shown as missing; what nobody gave is shown once."""
    unscored = Score(name="lost", status="unscored", unscored="refusal", reason="no")
    ours = evaluation(scored(0.2, name="a", method="labels"), unscored)
    theirs = evaluation(scored(0.6, name="b", method="single", judge="other"))

    tables = map("\n".join, Summary.of([ours, theirs]).tables())

    assert [re.findall(r"^ *(a|b|lost) ", each, re.M) for each in tables] == [["a", "lost"], ["b"]]


def test_of_nothing_there_is_no_mean() -> None:
    """Nor another figure; one score is its own mean, and one without a value none."""
    summary = Summary()
    retrieval = summary.retrieval
    assert (summary.scores, summary.patterns, summary.ranks) == ((), (), ())
    assert (retrieval.calls, retrieval.share, retrieval.interval) == (0, None, None)
    assert summary.means.mean("geval:tone") is None

    summary.add(evaluation(scored(0.25, method="labels")))
    summary.add(evaluation(Score(name="geval:tone", status="unscored", unscored="no_context")))
    summary.add(evaluation(Score(name="geval:tone", status="error", reason="down")))

    mean = summary.means.mean("geval:tone")
    assert mean is not None
    assert (mean.n, mean.mean, mean.ci95) == (1, 0.25, None)
    assert summary.calls == summary.means.total["geval:tone"] == 3
    assert summary.means.unscored["geval:tone"] == {"no_context": 1, "error": 1}


def test_without_calls_there_is_no_table_and_without_a_maker_no_name() -> None:
    """A score that nobody gave is listed under no one's name."""
    assert Summary().tables() == []
    lost = Score(name="lost", status="unscored", unscored="refusal")

    text = shown(Summary.of([evaluation(lost)]))
    assert text.splitlines()[0].strip() == "Scores"
    assert "refusal 1" in text
    assert "nobody" not in text


def test_a_call_without_a_value_is_with_the_only_maker_that_it_may_be_of() -> None:
    """A failed call does not know its judge; with two judges it is of neither."""
    lost = Score(name="geval:tone", status="error", reason="down")
    by = By(judge="other", windows=2)
    refused = Score(name="geval:tone", status="unscored", unscored="refusal", by=by)
    summary = Summary.of([evaluation(scored(0.2, method="single")), evaluation(lost)])
    (each,) = summary.scores
    assert (each.scored, each.total, each.unscored) == (1, 2, {"error": 1})

    summary.add(evaluation(scored(0.6, method="single", judge="other")))
    summary.add(evaluation(refused))

    found = [(each.by.judge, each.scored, each.total, each.unscored) for each in summary.scores]
    assert found[:2] == [("j", 1, 1, {}), (None, 0, 1, {"error": 1})]
    assert found[2:] == [("other", 1, 2, {"refusal": 1})]


def test_bins_and_thresholds_are_counted() -> None:
    """Edges belong to the bin above them, 1 to the last; a value at its threshold passes."""
    values = (0.0, 0.0999, 0.1, 0.3, 0.7, 0.8999999, 0.9, 1.0)
    made = [scored(value, method="labels") for value in values]
    with_threshold = [each.model_copy(update={"threshold": 0.7}) for each in made]
    (each,) = Summary.of(map(evaluation, [*with_threshold, scored(0.5, method="labels")])).scores
    assert each.bins == (2, 1, 0, 1, 0, 1, 0, 1, 1, 2)
    assert (each.passed, each.with_threshold, each.scored) == (4, 8, 9)


def test_kinds_of_what_was_counted_are_bounded() -> None:
    """A warning, failure or version that names its call takes no memory per call."""
    summaries = Summary(), Summary()
    for number in range(3_000):
        score = scored(0.5, method="labels").model_copy(update={"warnings": (f"call {number}",)})
        name = str(number)
        error = EvaluationError(type=name, message=f"why {name}", stage="judge")
        changed = {"flags": (name,), "error": error, "judge": JudgeInfo(name=name)}
        made = evaluation(score).model_copy(update={**changed, "fingerprint": name})
        summaries[number % 2].add(made)
    first, second = summaries
    first.merge(second)

    counters = (first.warnings, first.flags, first.errors, first.versions["fingerprint"])
    assert [(len(counter), counter["(others)"]) for counter in counters] == [(1_001, 2_000)] * 4
    assert (len(first.judges), first.judges[JudgeInfo(name="(others)")]) == (1_001, 2_000)
    assert first.reasons.keys() == first.errors.keys()
    assert first.reasons["(others)"] == "why 2000"


def test_how_they_were_made_is_told_in_one_order() -> None:
    """Not in that of a set, which is another in every process: a page's bytes would differ."""
    names = ("judge_version", "prompt_version", "formulas", "splitter")
    by = By.model_validate({"judge": "x", **dict.fromkeys(names, "1"), "formulas": "ragbench"})
    warnings = ("late", "early", "odd")
    score = Score(name="a", status="scored", value=1.0, by=by, warnings=warnings)

    summary = Summary.of([evaluation(score).model_copy(update={"fingerprint": "f"})])

    assert tuple(summary.versions) == ("fingerprint", *names)
    assert tuple(summary.warnings) == warnings
