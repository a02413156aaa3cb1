"""CascadeJudge: who is asked, whose name stands on the scores, what it cost, what fails."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from by_hand import ScriptedJudge, keyed, labels_of

from rag_eval_integrations import CascadeJudge, EmbeddedJudge, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.records import JudgeInfo, Labelling, SentencizedCall, Usage
from rag_eval_integrations.testing import ScriptedModel, labels_reply, small_call

CALL = keyed([["A colony stays awake all winter."]], ["A colony stays awake all winter."])
SECOND = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


class Sure:
    """A first judge with one probability for everything."""

    name = "sure"
    version = "7"

    def __init__(self, probability: float | None, *flags: str, name: str = "sure") -> None:
        self.probability, self.flags, self.name = probability, flags, name

    def rule(self, call: SentencizedCall, labelling: Labelling) -> bool:
        return True

    async def label(self, call: SentencizedCall) -> Labelling:
        labels = labels_of(["0a"], [], {"a": ([], False)})
        if self.probability is not None:
            labels = labels.model_copy(update={"supported_probabilities": {"a": self.probability}})
        judge = JudgeInfo(name=self.name, version=self.version)
        return Labelling(labels=labels, judge=judge, flags=self.flags, usage=Usage(requests=1))


@pytest.mark.parametrize(
    ("probability", "asked"), [(0.29, 0), (0.3, 1), (0.7, 1), (0.71, 0), (None, 1)]
)
async def test_the_second_is_asked_inside_of_the_band(
    probability: float | None, asked: int
) -> None:
    """Both ends belong to the band; without a probability the second is always asked."""
    second = ScriptedJudge(SECOND)
    why = "first_no_probability" if probability is None else "first_unsure"

    labelling = await CascadeJudge(Sure(probability), second).label(CALL)

    assert len(second.asked) == asked
    assert labelling.judge.name == ("scripted" if asked else "sure")
    assert labelling.flags == (("cascade_second", why) if asked else ("cascade_first",))
    assert labelling.usage.requests == 1 + asked


async def test_a_call_that_the_first_cannot_label_goes_to_the_second() -> None:
    """The embedded judge refuses what is not English; the model is asked instead."""
    chinese = keyed([["巴黎是法国的首都。"]], ["在法国。"], question="巴黎在哪里？")

    labelling = await CascadeJudge(EmbeddedJudge(), ScriptedJudge(SECOND)).label(chinese)

    assert labelling.judge.name == "scripted"
    assert labelling.flags == ("cascade_second", "first_unlabelled")


def is_question(call: SentencizedCall, labelling: Labelling) -> bool:
    return "?" in call.call.question


async def test_a_function_decides_instead_of_the_band() -> None:
    """It is given the call and the first labelling, and its answer is what counts."""
    seen: list[tuple[str, str]] = []

    def when(call: SentencizedCall, labelling: Labelling) -> bool:
        seen.append((call.call.question, labelling.judge.name))
        return len(seen) == 2

    second = ScriptedJudge(SECOND)
    first = Sure(0.5, "doubt_spread")  # doubts are its own then, and ask nobody
    judge = CascadeJudge(first, second, ask_when=when, name="every second call")

    flags = [(await judge.label(CALL)).flags for _ in range(3)]

    kept = ("doubt_spread", "cascade_first")
    assert flags == [kept, ("cascade_second", "first_rule"), kept]
    assert seen[0] == (CALL.call.question, "sure")


async def test_every_score_says_which_judge_gave_it() -> None:
    """One cascade, two rows, two judges: names, flags and costs are those of who labelled."""
    model = ScriptedModel([labels_reply(["0a", "0b", "1a"], ["a", "b"])], name="model")
    cascade = CascadeJudge(EmbeddedJudge(), model, is_question)
    plain = small_call().call
    other = plain.model_copy(update={"question": "Tell me of the ferry"})

    for call, judge, flag, requests in (
        (plain, "model", "cascade_second", 1),
        (other, "embedded", "cascade_first", 0),
    ):
        evaluation = await RagEvaluator(cascade).evaluate(call)
        assert {score.by.judge for score in evaluation.scores.values()} == {judge}
        assert flag in evaluation.flags
        assert evaluation.usage.requests == requests


async def test_a_second_judge_that_fails_is_an_error() -> None:
    """The first judge's labels are not passed off for the second's; the cost is that of both."""

    class Down:
        name = "down"

        async def label(self, call: SentencizedCall) -> Labelling:
            raise JudgeOutputError("no answer", "", usage=Usage(requests=2))

    evaluation = await RagEvaluator(CascadeJudge(Sure(0.5), Down())).evaluate(CALL.call)

    assert evaluation.error is not None
    assert evaluation.labels is None
    assert {score.status for score in evaluation.scores.values()} == {"error"}
    assert evaluation.usage.requests == 1 + 2


def test_the_name_and_version_say_what_decides() -> None:
    """Another band is another evaluator: its rows are not resumed as the same."""
    second = ScriptedJudge(SECOND)
    narrow, wide = (CascadeJudge(Sure(0.5), second, band) for band in ((0.4, 0.6), (0.1, 0.9)))

    assert narrow.name == "cascade(sure, scripted)"
    assert narrow.version == "7+1+0.4-0.6+doubts"
    assert CascadeJudge(Sure(0.5), second, is_question).version == f"7+1+{__name__}.is_question"
    assert RagEvaluator(narrow).fingerprint != RagEvaluator(wide).fingerprint


@pytest.mark.parametrize(
    "band", [(0.7, 0.3), (-0.1, 0.5), (0.5, 1.1), (0.5,), "0.5", (float("nan"), 1), (True, True)]
)
def test_a_band_that_is_none_is_refused(band: Any) -> None:
    """Named with its field and value."""
    with pytest.raises(ConfigurationError, match="ask_when"):
        CascadeJudge("embedded", ScriptedJudge(SECOND), ask_when=band)


def test_the_probability_is_the_judges_estimate_or_the_product() -> None:
    """An estimate of the whole response comes before the sentences' probabilities."""
    labels = labels_of([], [], {"a": ([], True), "b": ([], True)})
    soft = {"supported_probabilities": {"a": 0.5, "b": 0.5}}
    for fields, probability in (
        ({}, None),
        ({"supported_probabilities": {"a": 0.5}}, None),
        (soft, 0.25),
        ({**soft, "estimates": {"adherence": (0.9, None)}}, 0.9),
    ):
        assert labels.model_copy(update=fields).adherence_probability() == probability


def test_a_cascade_shows_both_judges_and_the_band() -> None:
    """Without addresses in memory, so that it is the same in every process."""
    second = ScriptedJudge(SECOND)
    both = "CascadeJudge(EmbeddedJudge(), ScriptedJudge('scripted'), ask_when="
    unnamed = CascadeJudge(EmbeddedJudge(), second, lambda call, _: True, name="all")

    assert repr(CascadeJudge(EmbeddedJudge(), second, (0.2, 0.5))) == f"{both}(0.2, 0.5))"
    assert repr(unnamed) == f"{both}all)"
    assert repr(CascadeJudge(Sure(0.5), second, is_question)).endswith("cascade.is_question)")


@pytest.mark.parametrize(
    "when",
    [lambda call, labelling: True, functools.partial(is_question), Sure(0.5).rule],
    ids=["lambda", "partial", "method"],
)
def test_a_rule_without_a_name_needs_one(when: Any) -> None:
    """Two opposite lambdas would have one fingerprint, and rows of the one be the other's."""
    second = ScriptedJudge(SECOND)

    with pytest.raises(ConfigurationError, match=r"`ask_when` = .*`name=`"):
        CascadeJudge("embedded", second, when)
    one, other = (RagEvaluator(CascadeJudge("embedded", second, when, name=n)) for n in "ab")
    assert one.fingerprint != other.fingerprint


async def test_without_a_band_the_first_judge_names_it() -> None:
    """As the embedded judge does; one that names none has the middle."""

    class Naming(Sure):
        unsure = (0.8, 0.9)

    second = ScriptedJudge(SECOND)

    assert "ask_when=(0.7, 0.9)" in repr(CascadeJudge("embedded", second))
    for judge, asked in ((Naming(0.85), 1), (Naming(0.5), 0), (Sure(0.85), 0), (Sure(0.5), 1)):
        scripted = ScriptedJudge(SECOND)
        await CascadeJudge(judge, scripted).label(CALL)
        assert len(scripted.asked) == asked


@pytest.mark.parametrize(
    ("first", "second", "flags", "requests"),
    [
        (Sure(0.9), Sure(0.5), ("cascade_first",), 1),
        (Sure(0.5), Sure(0.9, "own"), ("own", "cascade_second", "first_unsure"), 2),
        (Sure(0.9, "doubt_spread"), Sure(0.5), ("cascade_second", "first_doubt_spread"), 2),
        (
            Sure(0.6, "doubt_copied", "doubt_spread"),
            Sure(0.0),
            ("cascade_second", "first_unsure", "first_doubt_copied", "first_doubt_spread"),
            2,
        ),
    ],
)
async def test_both_judges_say_who_labelled_and_why(
    first: Sure, second: Sure, flags: tuple[str, ...], requests: int
) -> None:
    """The cost is that of all that were asked."""
    labelling = await CascadeJudge(first, second).label(CALL)

    assert labelling.flags == flags
    assert labelling.usage.requests == requests


async def test_a_judges_own_words_are_not_the_cascades() -> None:
    """A judge that is not a cascade may use any flag."""
    second = Sure(0.9, "cascade_fifth", "first_rule")

    labelling = await CascadeJudge(Sure(0.5), second).label(CALL)

    assert labelling.flags == ("cascade_fifth", "first_rule", "cascade_second", "first_unsure")


def test_a_cascade_and_a_model_in_the_first_place_are_refused() -> None:
    """There are two judges; a model gives no probabilities, and would cost a request."""
    inner: Any = CascadeJudge(Sure(0.5), ScriptedJudge(SECOND))
    with pytest.raises(ConfigurationError, match=r"`first`.*is a cascade"):
        CascadeJudge(inner, ScriptedJudge(SECOND))
    with pytest.raises(ConfigurationError, match=r"`second`.*is a cascade"):
        CascadeJudge(Sure(0.5), inner)
    with pytest.raises(ConfigurationError, match="first"):
        CascadeJudge(ScriptedModel([]), ScriptedJudge(SECOND))  # type: ignore[arg-type]


async def test_the_embedded_judge_says_where_words_end() -> None:
    """An answer that joins two documents is doubted, one from a single document is not."""
    documents = [
        ["The bridge of Alva was designed by the engineer Maria Bellini in her youth."],
        ["The engineer Giulia Conti was born in the harbour town of Ancona during winter."],
    ]
    joined, single, verbatim = (
        keyed(documents, [response], question=question)
        for question, response in (
            ("Where was the engineer of the Alva bridge born?",
             "The engineer of the Alva bridge was born in the harbour town of Ancona."),
            ("Who designed the bridge of Alva?",
             "Maria Bellini, who was an engineer while young, had designed the bridge at Alva."),
            ("Who?", "The engineer Giulia Conti was born in the harbour town of Ancona."),
        )
    )  # fmt: skip

    for call, doubted in ((joined, True), (single, False), (verbatim, False)):
        flags = (await EmbeddedJudge().label(call)).flags
        assert [flag for flag in flags if flag.startswith("doubt_")] == ["doubt_spread"] * doubted
    passed = await CascadeJudge(EmbeddedJudge(), ScriptedJudge(SECOND), (0.0, 0.0)).label(joined)
    assert passed.flags[:2] == ("cascade_second", "first_doubt_spread")
