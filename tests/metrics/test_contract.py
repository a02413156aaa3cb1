"""The contract of metrics: what is checked at construction, and what where scores come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import LLMJudge
from rag_eval_integrations.metrics import (
    TRACE_SCORES,
    CallMetric,
    ContextRecall,
    GEval,
    LabelMetric,
    LabelRetrieval,
    Measured,
    ModelMetric,
    PromptyMetric,
    Retrieval,
    Trace,
)
from rag_eval_integrations.metrics.prompty.file import parse_prompty
from rag_eval_integrations.models import ModelBase
from rag_eval_integrations.records import (
    By,
    EvaluationError,
    Labelling,
    RagCall,
    Score,
    SentencizedCall,
    Usage,
)
from rag_eval_integrations.testing import ScriptedModel, labels_reply

CALL = RagCall("Where do bees live?", ("Bees live in hives.",), "Bees live in hives.")
LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


def made(*names: str) -> tuple[Score, ...]:
    return tuple(Score(name=name, status="scored", value=0.5) for name in names)


@dataclass(frozen=True)
class OfLabels(LabelMetric):
    """Promises `one` and `two`, and returns what it is told."""

    given: tuple[str, ...] | None = ("one", "two")
    names = ("one", "two")

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> Any:
        return None if self.given is None else made(*self.given)


@dataclass(frozen=True)
class OfModel(ModelMetric):
    """Promises `three` and `four`, and returns what it is told, for one request."""

    given: tuple[str, ...] = ("three", "four")
    names = ("three", "four")

    async def measure(self, call: RagCall, judge: ModelBase) -> Measured:
        return Measured(made(*self.given), Usage(requests=1))


@dataclass(frozen=True)
class OfCalls(CallMetric):
    """Promises `five`, and returns what it is told; fails where it is told to."""

    given: tuple[str, ...] = ("five",)
    names = ("five",)

    def score(self, call: RagCall, by: By) -> tuple[Score, ...]:
        if not self.given:
            raise SystemExit("a metric's own")
        return made(*self.given)


class Nameless(OfLabels):
    """A metric that forgot its names."""

    def __init__(self, names: Any = None) -> None:
        object.__setattr__(self, "names", names)


class Both(OfLabels, OfModel):  # type: ignore[misc]
    """A metric of both kinds, which is none."""


class OfDocuments(OfLabels):
    """A metric of a text that no judge labels."""

    judged = "documents"  # type: ignore[assignment]


HasScore, HasMeasure = (
    type(f"Has{name.title()}", (), {name: made}) for name in ("score", "measure")
)
"""What metrics were before there were base classes."""


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([], "give at least one metric"),
        ([HasScore()], r"let HasScore inherit .*\.LabelMetric"),
        ([HasMeasure()], r"let HasMeasure inherit .*\.ModelMetric"),
        ([Trace], "is a class"),
        (["tarce"], "'tarce': no such metric; did you mean 'trace'[?] Else .*or geval:NAME"),
        (["adherence"], "no such metric; `adherence` is a score of `trace`; use trace, "),
        (["adherance"], "no such metric; `adherence` is a score of `trace`; use trace, "),
        (["faithfulness"], "`supported_fraction` is nearest to it, by the metric `trace`; use"),
        (["geval:nice"], "'geval:nice': no such metric; use one of coherence"),
        ("trace", r"'trace': use a list, as in \['trace'\]"),
        ([object()], "is not a metric"),
        ([OfDocuments()], "one of response, reference"),
        ([Both()], "inherits both LabelMetric and ModelMetric"),
        ([Nameless()], "its `names` should be"),
        ([Nameless(("a", 1))], "its `names` should be"),
        ([Trace(), Nameless(("adherence",))], r"\['adherence'\]: two metrics"),
    ],
)
def test_an_evaluator_refuses_what_is_no_metric(metrics: Any, said: str) -> None:
    """At construction, and with what to do."""
    with pytest.raises(ConfigurationError, match=f"^`metrics` = .*{said}"):
        RagEvaluator(metrics=metrics)


async def test_a_metric_of_calls_asks_nobody() -> None:
    """Neither the judge nor a model; and its scores name none."""
    judge = ScriptedJudge(LABELS)

    for metrics in ([OfCalls()], [Trace(), OfCalls()]):
        evaluation = await RagEvaluator(judge, metrics).evaluate(CALL, only=["five"])
        assert {name: score.value for name, score in evaluation.scores.items()} == {"five": 0.5}
        assert (evaluation.labels, evaluation.usage, judge.asked) == (None, Usage(), [])


class Unstable(OfLabels):
    """A metric with Python's own `repr`, and maybe a version."""

    __repr__ = object.__repr__

    def __init__(self, version: str | None = None) -> None:
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "given", self.names)


def test_a_metric_without_a_name_for_its_settings_is_warned_of() -> None:
    """Its evaluations are never taken for those of another metric, nor ever resumed."""
    prints = set()
    for metric in (Unstable(), Unstable()):
        with pytest.warns(UserWarning, match="Unstable has no `repr` of its own and no `version`"):
            prints.add(RagEvaluator(metrics=[metric]).fingerprint)
        assert metric.identity is None
    assert len(prints) == 2


def test_a_version_stands_for_a_metric_without_a_repr() -> None:
    """Without a warning, and the same in every process; beside a `repr` both count."""
    prints = [RagEvaluator(metrics=[Unstable(version)]).fingerprint for version in "112"]

    assert prints[0] == prints[1] != prints[2]
    assert Unstable("1").identity == f"{__name__}.Unstable@1"
    assert OfLabels().identity == "OfLabels(given=('one', 'two'))"
    assert Second().identity == f"{Second()!r}@2"


class Second(OfLabels):
    """A metric with settings, in its second version."""

    version = "2"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (OfLabels(("one",)), "promises the scores one, two, gave one"),
        (OfLabels(("one", "two", "more")), "promises the scores one, two, gave one, two, more"),
        (OfLabels(None), "gave NoneType instead"),
        (OfModel(("three",)), "promises the scores three, four, gave three"),
        (OfCalls(("six",)), "promises the scores five, gave six"),
        (OfCalls(()), "a metric's own"),
    ],
)
async def test_a_metric_that_fails_or_breaks_its_promise_leaves_the_rest(
    broken: OfLabels | OfModel | OfCalls, said: str
) -> None:
    """An error of this metric alone, each time; the others, the labels, the cost are kept."""
    judge = ScriptedModel(lambda _: labels_reply(documents=["0a"], response=["a"]))
    evaluator = RagEvaluator(judge, [broken, Trace()])

    for _ in range(2):
        evaluation = await evaluator.evaluate(CALL)

        assert tuple(evaluation.scores) == (*broken.names, *TRACE_SCORES)
        for name in broken.names:
            score = evaluation.scores[name]
            assert score.status == "error"
            assert said in str(score.reason)
            assert score.by.judge == (None if isinstance(broken, OfCalls) else judge.name)
        assert evaluation.scores["adherence"].value == 1.0
        assert getattr(evaluation.error, "stage", None) == "metrics"
        assert evaluation.labels is not None


async def test_the_order_of_the_scores_is_that_of_the_names() -> None:
    """In whatever order a metric returns them."""
    metrics = [OfModel(("four", "three")), OfLabels(("two", "one"))]

    evaluation = await RagEvaluator(ScriptedModel([]), metrics).evaluate(CALL)

    assert tuple(evaluation.scores) == ("three", "four", "one", "two")
    assert all(name == score.name for name, score in evaluation.scores.items())


async def test_unknown_names_are_refused() -> None:
    """An evaluation without scores and without an error would look like success."""
    evaluator = RagEvaluator(ScriptedJudge(LABELS))

    for only in (["adherance"], ["adherence", "adherance"]):
        with pytest.raises(ConfigurationError, match="`only` = "):
            await evaluator.evaluate(CALL, only=only)


@pytest.mark.parametrize("value", [object(), float("nan")])
async def test_metadata_that_is_no_json_does_not_raise(value: Any) -> None:
    """Put there after the call was checked: the scores stay, and what is lost is said."""
    call = RagCall(CALL.question, CALL.documents, CALL.response)
    call.metadata["put"] = value

    evaluation = await RagEvaluator(ScriptedModel([]), [OfModel()]).evaluate(call)

    assert {score.value for score in evaluation.scores.values()} == {0.5}
    assert evaluation.metadata == {}
    assert "put" in str(evaluation.error)


def test_one_maker_of_evaluations_without_a_result() -> None:
    """Failed or unscored: the same fields, and every score says whose it would have been."""
    prompt = parse_prompty("---\nname: brief\n---\nuser:\n{{output}}", name="brief")
    model = ScriptedModel([], name="model")
    metrics = [Trace("ragbench"), PromptyMetric(prompt, judge=model)]
    evaluator = RagEvaluator("embedded", metrics)
    error = EvaluationError(type="TimeoutError", message="late", stage="judge")

    failed = evaluator.without_result(CALL, error)
    unscored = evaluator.without_result(CALL, ("over_budget", "no more today"))

    assert tuple(failed.scores) == tuple(unscored.scores) == evaluator.names
    assert (failed.error, unscored.error) == (error, None)
    assert {score.reason for score in failed.scores.values()} == {"TimeoutError: late"}
    assert {score.unscored for score in unscored.scores.values()} == {"over_budget"}
    for evaluation in (failed, unscored):
        assert evaluation.scores["adherence"].by.judge == "embedded"
        assert evaluation.scores[metrics[1].names[0]].by.judge == "model"
        assert evaluation.fingerprint == evaluator.fingerprint
    assert unscored.scores["adherence"].by.formulas == "ragbench"


def test_a_metric_may_be_named() -> None:
    """As on the command line, beside objects; a name stands for the metric without options."""
    made = RagEvaluator(metrics=["trace", Retrieval(k=(2,)), "label_retrieval", "context_recall"])

    assert made.metrics == (Trace(), Retrieval(k=(2,)), LabelRetrieval(), ContextRecall())
    judge = LLMJudge(ScriptedModel(lambda request: ""))
    (graded,) = RagEvaluator(judge, ["geval:coherence"]).metrics
    assert repr(graded) == repr(GEval.coherence())
