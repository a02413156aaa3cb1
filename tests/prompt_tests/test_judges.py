"""Several judges, sure and unsure ones: probabilities, majority, agreement, choices of tests."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty._reply import Outcome
from rag_eval_integrations.models.completion import Choice as Answer
from rag_eval_integrations.models.completion import Completion, Token
from rag_eval_integrations.prompt_tests import (
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Report,
    Result,
    Spec,
)
from rag_eval_integrations.prompt_tests._rates import by_majority, judges_agreement
from rag_eval_integrations.prompt_tests._requests import Journal
from rag_eval_integrations.prompt_tests._upstream import results_from_rows, results_to_rows
from rag_eval_integrations.prompt_tests.evaluate import probability_of_ok
from rag_eval_integrations.prompt_tests.records import Choice, Judged, MetricResult, TestCheck
from rag_eval_integrations.prompt_tests.report import compare
from rag_eval_integrations.testing import ScriptedModel


def reply(text: str, *tokens: tuple[str, dict[str, float]]) -> Completion:
    """A reply whose tokens have alternatives with these probabilities."""
    made = []
    for word, shares in tokens:
        top = {other: math.log(share) for other, share in shares.items()}
        made.append(Token(text=word, logprob=top[word], top=tuple(top.items())))
    return Completion(choices=(Answer(text=text, finish_reason="stop", tokens=tuple(made)),))


# --- Probability of a verdict

ANSWERS = [Result(test=PromptTest(uid="t", inputs={"text": "a"}), model="m", output="A")]


@pytest.mark.parametrize(
    ("completion", "outcome", "expected"),
    [
        (reply("Fine.\nOK", ("Fine.", {"Fine.": 0.9}), ("\n", {"\n": 0.8}),
               ("OK", {"OK": 0.6, "ERR": 0.2, "x": 0.1})), "ok", 0.75),
        (reply("Fine.\nOK", ("Fine.\n", {"Fine.\n": 0.9}),
               ("OK", {"OK": 0.5, " ok": 0.25, "E": 0.25})), "ok", 0.75),
        (reply("It is OK not to.\n**ERR**", ("It is OK not to.\n", {"It is OK not to.\n": 0.9}),
               ("**", {"**": 1.0}), ("ER", {"ER": 0.6, "OK": 0.2}), ("R", {"R": 1.0}),
               ("**", {"**": 1.0})), "err", 0.25),
        (reply("OK\nbecause it is so", ("OK", {"OK": 0.9, "ERR": 0.1}),
               ("\nbecause it is so", {"\nbecause it is so": 0.7})), "ok", 0.9),
        # Most of the probability is on other words.
        (reply("OK", ("OK", {"OK": 0.3, "Well": 0.6})), "ok", None),
        # Placeholders instead of probabilities.
        (reply("OK", ("OK", {"OK": 1.0, "ERR": 1.0, "x": 1.0})), "ok", None),
        (reply("OK", ("something else", {"something else": 0.9})), "ok", None),
        (reply("maybe", ("maybe", {"maybe": 0.9})), "unknown", None),
    ],
)  # fmt: skip
def test_the_probability_of_a_verdict(
    completion: Completion, outcome: str, expected: float | None
) -> None:
    """P(OK) against P(ERR) where the verdict begins, whatever the tokens are."""
    probability = probability_of_ok(completion, outcome)  # type: ignore[arg-type]
    assert probability == (None if expected is None else pytest.approx(expected))


async def test_a_verdict_has_its_probability_where_the_judge_gives_it(
    prompt: PromptUnderTest, spec: Spec
) -> None:
    """Kept in the folder's file; without one in a judge that gives none, or a recorded reply."""
    sure = ScriptedModel(lambda _: reply("OK", ("OK", {"OK": 0.9, "ERR": 0.1})), name="sure")
    mute = ScriptedModel(lambda _: "OK", name="mute")
    journal = Journal()
    evaluation = PromptEvaluation(prompt, spec, [sure, mute], journal=journal)

    [result] = await evaluation.outputs(ANSWERS)

    [again] = results_from_rows(results_to_rows([result]), prompt, spec, [result.test])
    for judged in (result, again):
        assert [v.probability for v in judged.verdicts] == [pytest.approx(0.9), None]
    # Folders of earlier versions have replies to requests without log-probabilities only.
    earlier = Journal()
    request, line = mute.requests[0], journal.get_line(evaluation.judges[1].key(mute.requests[0]))
    old = request.model_copy(update={"top_logprobs": None})
    earlier.put_line(evaluation.judges[1].key(old), str(line))
    silent = PromptEvaluation(prompt, spec, [ScriptedModel([], name="mute")], journal=earlier)
    [result] = await silent.outputs(ANSWERS)
    assert (result.state, silent.asked) == ("ok", 0)


# --- Majority and agreement


def judged(*rows: str) -> list[Result]:
    """Results by the judges' words, one letter per judge: o, e or u."""
    words: dict[str, Outcome] = {"o": "ok", "e": "err", "u": "unknown"}
    results = []
    for n, row in enumerate(rows):
        first, *others = [Judged(outcome=words[w], judge=f"j{j}") for j, w in enumerate(row)]
        test = PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": str(n)})
        made = Result(test=test, model="m", output="x", compliance=first, others=tuple(others))
        results.append(made)
    return results


@pytest.mark.parametrize(
    ("row", "outcome"),
    [("ooe", "ok"), ("eeo", "err"), ("oeu", "unknown"), ("uuo", "ok"), ("uu", "unknown")],
)
def test_the_majority_decides(row: str, outcome: str) -> None:
    """Of the judges with a verdict; as many of both give none."""
    assert [result.state for result in by_majority(judged(row))] == [outcome]
    report = Report("p", judged(row)).majority()
    assert bool(report.failures()) == (outcome != "ok")
    assert report.majority().results == report.results  # the majority is not a judge


def test_kappa_of_two_judges_is_cohens() -> None:
    """Worked out by hand: agreement 7 of 10, by chance .5; each judge is compared with each.

    One judge and no result give no pair, and equal verdicts no kappa.
    """
    rows = ["oo"] * 4 + ["ee"] * 3 + ["oe"] * 1 + ["eo"] * 2 + ["ou", "uo", "uu"]
    [pair] = judges_agreement(judged(*rows))
    assert (pair.judges, pair.n) == (("j0", "j1"), 10)
    assert (pair.agree, pair.kappa) == pytest.approx((0.7, (0.7 - 0.5) / (1 - 0.5)))
    pairs = judges_agreement(judged("ooo", "eee", "ooe", "oeo"))
    assert [pair.judges for pair in pairs] == [("j0", "j1"), ("j0", "j2"), ("j1", "j2")]
    assert [pair.kappa for pair in judges_agreement(judged("oo"))] == [None]
    assert judges_agreement(judged("o", "e")) == []
    assert judges_agreement([]) == []


# --- Choices of tests


def some() -> tuple[list[Result], list[TestCheck]]:
    """By rule, direction and scenario; every other one complies, the first three are valid."""
    results, checks = judged(*"eoeoeoeo"), []
    for n, result in enumerate(results):
        place = {"rule_id": 1 + n // 4, "inverse": n % 4 > 1, "scenario": ("day", "night")[n % 2]}
        test = result.test.model_copy(update=place)
        results[n] = result.model_copy(update={"test": test})
        checks.append(TestCheck(test=test, validity=Judged(outcome="ok" if n < 3 else "err")))
    return results, checks


@pytest.mark.parametrize(
    ("choice", "uids"),
    [
        (Choice(), range(8)),
        (Choice(rules=(2,)), range(4, 8)),
        (Choice(direction="positive", scenarios=("day",)), (0, 4)),
        (Choice(only_valid=True, direction="negative"), (2,)),
    ],
)
def test_a_report_of_some_tests(choice: Choice, uids: Sequence[int]) -> None:
    """Its rates, rows and failures are of these alone."""
    results, checks = some()
    chosen = Report("p", results, checks=checks).chosen(choice)
    assert [result.test.uid for result in chosen.results] == [f"t{n}" for n in uids]
    assert chosen.tnc().ok == sum(n % 2 for n in uids)


def test_a_choice_of_nothing_is_a_mistake() -> None:
    """It says which tests were asked for, and what validity needs."""
    results, _ = some()
    with pytest.raises(ConfigurationError, match=r"rule 9; direction positive"):
        Report("p", results).chosen(Choice(rules=(9,), direction="positive"))
    with pytest.raises(ConfigurationError, match="evaluate --validity"):
        Report("p", results).chosen(Choice(only_valid=True))
    baseline = PromptTest(uid="b", inputs={"x": "b"}, baseline=True)
    assert not Choice(direction="positive").takes(baseline)
    assert Choice().takes(baseline)


# --- Two runs of one test set


def scored(oks: Sequence[bool], scores: Sequence[float | None]) -> list[Result]:
    letters = ["o" if ok else "e" for ok in oks]
    metrics = [(MetricResult(metric="loud", judge="j", score=score),) for score in scores]
    pairs = zip(judged(*letters), metrics, strict=True)
    return [result.model_copy(update={"metrics": made}) for result, made in pairs]


def test_a_fall_is_worse_fine_or_cannot_be_told() -> None:
    """By the interval of the paired difference, as in `rag-eval compare`."""
    source = random.Random(1)
    before = scored([True] * 60, [80.0 + source.random() for _ in range(60)])
    after = scored([n % 3 > 0 for n in range(60)], [80.0 + source.random() for _ in range(60)])

    [comparison] = compare(before, after)

    fell, loud = comparison.scores["compliance"], comparison.scores["loud"]
    assert (fell.n, fell.losses, fell.mean_a) == (60, 20, 1.0)
    assert fell.difference == pytest.approx(-1 / 3)
    outcomes = [fell.verdict(margin).outcome for margin in (0.1, 0.3, 0.9)]
    assert outcomes == ["worse", "cannot tell", "fine"]
    assert loud.verdict(0.05).outcome == "fine"
    [few] = compare(before[:5], after[:5])
    assert few.scores["compliance"].verdict(0.1).outcome == "cannot tell"


def test_repetitions_of_a_test_count_as_one() -> None:
    """They are not independent: the interval is that of the tests."""

    def runs(*oks: bool) -> list[Result]:
        results = scored(oks, [None] * 12)
        return [result.model_copy(update={"run": run}) for result in results for run in range(3)]

    [comparison] = compare(runs(*[True] * 12), runs(False, *[True] * 11))
    score = comparison.scores["compliance"]
    assert (score.n, score.conversations) == (36, 12)
    assert "loud" not in comparison.scores


def test_unknown_verdicts_are_in_no_difference() -> None:
    """A verdict that went unknown is counted apart; as err it counts."""
    before, after = judged("o", "o", "o"), judged("o", "u", "e")
    for unknown_as, n in ((None, 2), ("err", 3)):
        [comparison] = compare(before, after, unknown_as=unknown_as)  # type: ignore[arg-type]
        assert comparison.scores["compliance"].n == n
