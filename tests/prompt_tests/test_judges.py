"""Several judges, sure and unsure ones: probabilities, majority, agreement, choices of tests."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.completion import Choice as Answer
from rag_eval_integrations.models.completion import Completion, CompletionRequest, Token
from rag_eval_integrations.prompt_tests import (
    Choice,
    Journal,
    MetricResult,
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Report,
    Result,
    Spec,
    TestCheck,
)
from rag_eval_integrations.prompt_tests.evaluate import NonCompliance, probability_of_ok
from rag_eval_integrations.prompt_tests.rates import by_majority, judges_agreement
from rag_eval_integrations.prompt_tests.records import Judged
from rag_eval_integrations.prompt_tests.report import compare
from rag_eval_integrations.prompt_tests.upstream import results_from_rows, results_to_rows
from rag_eval_integrations.testing import ScriptedModel


def reply(text: str, *tokens: tuple[str, dict[str, float]]) -> Completion:
    """A reply whose tokens have alternatives with these probabilities."""
    made = tuple(
        Token(
            text=word,
            logprob=math.log(shares[word]),
            top=tuple((other, math.log(share)) for other, share in shares.items()),
        )
        for word, shares in tokens
    )
    return Completion(choices=(Answer(text=text, finish_reason="stop", tokens=made),))


# --- Probability of a verdict


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
    """Asked for with the verdict, and kept in the folder's file; a judge without gives None."""
    sure = ScriptedModel(lambda _: reply("OK", ("OK", {"OK": 0.9, "ERR": 0.1})), name="sure")
    mute = ScriptedModel(lambda _: "OK", name="mute")
    results = [Result(test=PromptTest(uid="t", inputs={"text": "a"}), model="m", output="A")]

    [result] = await PromptEvaluation(prompt, spec, [sure, mute]).outputs(results)

    assert sure.requests[0].top_logprobs == 5
    assert result.compliance is not None
    assert result.compliance.probability == pytest.approx(0.9)
    assert result.others[0].probability is None
    rows = results_to_rows([result])
    [again] = results_from_rows(rows, prompt, spec, [result.test])
    assert [
        verdict.probability for verdict in (again.compliance, *again.others) if verdict is not None
    ] == [
        pytest.approx(0.9),
        None,
    ]


async def test_a_recorded_verdict_without_log_probabilities_is_not_paid_again(
    prompt: PromptUnderTest, spec: Spec
) -> None:
    """Folders of earlier versions have only these."""
    journal = Journal()
    seen: list[CompletionRequest] = []

    def answer(request: CompletionRequest) -> str:
        seen.append(request)
        return "OK"

    results = [Result(test=PromptTest(uid="t", inputs={"text": "a"}), model="m", output="A")]
    first = PromptEvaluation(prompt, spec, [ScriptedModel(answer, name="j")], journal=journal)
    await first.outputs(results)
    old = seen[0].model_copy(update={"top_logprobs": None})
    earlier = Journal()
    line = journal.get_line(first.judges[0].key(seen[0]))
    assert line is not None
    earlier.put_line(first.judges[0].key(old), line)

    again = PromptEvaluation(prompt, spec, [ScriptedModel([], name="j")], journal=earlier)
    [result] = await again.outputs(results)

    assert result.compliance is not None
    assert (result.compliance.outcome, again.asked) == ("ok", 0)


# --- Majority and agreement


def judged(*rows: str, model: str = "m") -> list[Result]:
    """Results by the judges' words, one letter per judge: o, e or u."""
    words = {"o": "ok", "e": "err", "u": "unknown"}
    return [
        Result(
            test=PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": str(n)}),
            model=model,
            output="x",
            compliance=Judged(outcome=words[row[0]], judge="j0"),  # type: ignore[arg-type]
            others=tuple(
                Judged(outcome=words[letter], judge=f"j{number}")  # type: ignore[arg-type]
                for number, letter in enumerate(row[1:], start=1)
            ),
        )
        for n, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("row", "outcome"),
    [("ooe", "ok"), ("eeo", "err"), ("oe", "unknown"), ("oeu", "unknown"), ("uuo", "ok"),
     ("uu", "unknown"), ("e", "err"), ("eo", "unknown")],
)  # fmt: skip
def test_the_majority_decides(row: str, outcome: str) -> None:
    """Of the judges with a verdict; as many of both give none."""
    [result] = by_majority(judged(row))
    assert result.compliance is not None
    assert result.compliance.outcome == outcome
    assert bool(Report("p", judged(row)).majority().failures()) == (outcome != "ok")


def test_kappa_of_two_judges_is_cohens() -> None:
    """Worked out by hand: agreement 7 of 10, by chance .5."""
    rows = ["oo"] * 4 + ["ee"] * 3 + ["oe"] * 1 + ["eo"] * 2 + ["ou", "uo", "uu"]
    [pair] = judges_agreement(judged(*rows))
    assert (pair.judges, pair.n) == (("j0", "j1"), 10)
    assert pair.agree == pytest.approx(0.7)
    by_chance = 0.5 * 0.6 + 0.5 * 0.4
    assert pair.kappa == pytest.approx((0.7 - by_chance) / (1 - by_chance))


def test_of_three_judges_all_pairs_are_compared() -> None:
    """Each with each; one judge and no result give none, and equal verdicts no kappa."""
    pairs = judges_agreement(judged("ooo", "eee", "ooe", "oeo"))
    assert [pair.judges for pair in pairs] == [("j0", "j1"), ("j0", "j2"), ("j1", "j2")]
    assert [pair.kappa for pair in judges_agreement(judged("oo"))] == [None]
    assert judges_agreement(judged("o", "e")) == []
    assert judges_agreement([]) == []


# --- Choices of tests


def some() -> tuple[list[Result], list[TestCheck]]:
    results, checks = [], []
    for n, (rule, inverse, scenario) in enumerate(
        itertools.product((1, 2), (False, True), ("day", "night"))
    ):
        test = PromptTest(
            uid=f"t{n}", rule_id=rule, inverse=inverse, scenario=scenario, inputs={"x": str(n)}
        )
        verdict = Judged(outcome="ok" if n % 2 else "err", judge="j")
        results.append(Result(test=test, model="m", output="x", compliance=verdict))
        checks.append(TestCheck(test=test, validity=Judged(outcome="ok" if n < 3 else "err")))
    return results, checks


@pytest.mark.parametrize(
    ("choice", "uids"),
    [
        (Choice(), range(8)),
        (Choice(rules=(2,)), range(4, 8)),
        (Choice(scenarios=("night",)), (1, 3, 5, 7)),
        (Choice(direction="negative"), (2, 3, 6, 7)),
        (Choice(direction="positive", scenarios=("day",)), (0, 4)),
        (Choice(only_valid=True), (0, 1, 2)),
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
    return [
        Result(
            test=PromptTest(uid=f"t{n}", rule_id=1, inputs={"x": str(n)}),
            model="m",
            output="x",
            compliance=Judged(outcome="ok" if ok else "err", judge="j"),
            metrics=(MetricResult(metric="loud", judge="j", score=score),),
        )
        for n, (ok, score) in enumerate(zip(oks, scores, strict=True))
    ]


def test_a_fall_is_worse_fine_or_cannot_be_told() -> None:
    """By the interval of the paired difference, as in `rag-eval compare`."""
    source = random.Random(1)
    before = scored([True] * 60, [80.0 + source.random() for _ in range(60)])
    after = scored([n % 3 > 0 for n in range(60)], [80.0 + source.random() for _ in range(60)])

    [comparison] = compare(before, after)

    fell, loud = comparison.scores["compliance"], comparison.scores["loud"]
    assert (fell.n, fell.losses, fell.mean_a) == (60, 20, 1.0)
    assert fell.difference == pytest.approx(-1 / 3)
    assert fell.verdict(0.1).outcome == "worse"
    assert fell.verdict(0.3).outcome == "cannot tell"
    assert fell.verdict(0.9).outcome == "fine"
    assert loud.verdict(0.05).outcome == "fine"
    [few] = compare(before[:5], after[:5])
    assert few.scores["compliance"].verdict(0.1).outcome == "cannot tell"


def test_repetitions_of_a_test_count_as_one() -> None:
    """They are not independent: the interval is that of the tests."""
    before = [
        result.model_copy(update={"run": run}) for result in scored([True] * 12, [None] * 12)
        for run in range(3)
    ]  # fmt: skip
    after = [
        result.model_copy(update={"compliance": Judged(outcome="err", judge="j")})
        if result.test.uid == "t0" else result
        for result in before
    ]  # fmt: skip
    [comparison] = compare(before, after)
    assert (comparison.scores["compliance"].n, comparison.scores["compliance"].conversations) == (
        36,
        12,
    )
    assert "loud" not in comparison.scores


def test_unknown_verdicts_and_baseline_tests_are_in_no_difference() -> None:
    """A verdict that went unknown is counted apart; as err it counts."""
    before = judged("o", "o", "o")
    after = judged("o", "u", "e")
    [comparison] = compare(before, after)
    score = comparison.scores["compliance"]
    assert score.n == 2
    [strict] = compare(before, after, unknown_as="err")
    assert strict.scores["compliance"].n == 3


def test_a_metric_is_averaged_over_judges_for_each_output() -> None:
    """And each judge's own mean has its own name."""
    [result] = judged("o")
    both = result.model_copy(
        update={
            "metrics": (
                MetricResult(metric="loud", judge="a", score=90),
                MetricResult(metric="loud", judge="b", score=70),
                MetricResult(metric="form", judge="a", outcome="ok"),
            )
        }
    )
    report = Report("p", [both])
    assert report.means("loud", model="m") == (pytest.approx(80), 1)
    assert report.means("loud with b", model="m") == (pytest.approx(70), 1)
    assert report.means("form", model="m") == (100, 1)
    assert report.means("absent", model="m") == (None, 0)


async def test_judging_by_the_prompt_asks_for_probabilities_too(
    prompt: PromptUnderTest, spec: Spec
) -> None:
    """Whatever the basis."""
    judge = ScriptedModel(lambda _: "OK", name="j")
    results = [Result(test=PromptTest(uid="t", inputs={"text": "a"}), model="m", output="A")]
    await PromptEvaluation(prompt, spec, [judge], compliance=NonCompliance("prompt")).outputs(
        results
    )
    assert judge.requests[0].top_logprobs == 5
