"""RagEvaluator: the flow, what is unscored without asking, failures as data, one request."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import (
    BackgroundEvaluator,
    CachedModel,
    CallableModel,
    Capture,
    CascadeJudge,
    EmbeddedJudge,
    Evaluation,
    GEval,
    Labels,
    OpenAIModel,
    RagCall,
    RagEvaluator,
    Score,
    Trace,
    evaluate_calls,
)
from rag_eval_integrations.errors import ConfigurationError, InputError, JudgeRejectedError
from rag_eval_integrations.judges import LLMJudge
from rag_eval_integrations.metrics import TRACE_SCORES, LabelMetric, Measured, Metric, ModelMetric
from rag_eval_integrations.models import CompletionRequest, Message, Model, ThrottledModel
from rag_eval_integrations.records import (
    By,
    EvaluationError,
    Labelling,
    Sentence,
    Sentences,
    SentencizedCall,
    Usage,
    from_line,
    to_line,
)
from rag_eval_integrations.sentences import Punkt
from rag_eval_integrations.testing import ScriptedModel

FIELDS: dict[str, Any] = {
    "question": "Where do bees live?",
    "documents": ("Bees live in hives. Some live in hollow trees.", "Wasps build paper nests."),
    "response": "Bees live in hives. They live on magic.",
}
CALL = RagCall(**FIELDS, id="7", metadata={"user": "x"})
SUPPORT: Any = {"a": (["0a"], True), "b": ([], False)}
LABELS = labels_of(["0a", "0b"], ["0a"], SUPPORT, overall_supported=True)
SENTENCES = Sentences(documents=(Sentence("0a", "All of it."),), response=(Sentence("a", "x"),))
RECORDED = CALL.model_copy(update={"sentences": SENTENCES})


async def test_a_call_comes_back_with_sentences_labels_and_scores() -> None:
    """The whole flow: keys, labels, six scores, who made them, what it cost; alike in sync form."""
    evaluator = RagEvaluator(ScriptedJudge(LABELS))

    evaluation = await evaluator.evaluate(CALL)

    assert [s.key for s in evaluation.sentences.documents] == ["0a", "0b", "1a"]
    assert [s.key for s in evaluation.sentences.response] == ["a", "b"]
    for sentence in evaluation.sentences.response:
        assert FIELDS["response"][sentence.start : sentence.end] == sentence.text
    assert tuple(evaluation.scores) == TRACE_SCORES
    assert evaluation.scores["context_relevance"].value == pytest.approx(2 / 3)
    adherence = evaluation.scores["adherence"]
    assert (adherence.value, adherence.by.judge) == (0.0, "scripted")
    assert adherence.by.formulas == "gpt-labeling"
    assert adherence.by.splitter == evaluator.splitter.name
    assert evaluation.usage.requests == 1
    assert (evaluation.id, evaluation.metadata) == ("7", {"user": "x"})
    assert evaluation.row_key == CALL.row_key
    assert evaluation.flags == ("overall_conflict",)
    assert evaluation.error is None
    assert RagEvaluator(ScriptedJudge(LABELS)).evaluate_sync(CALL) == evaluation


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"response": None}, "empty_response"), ({"response": " \n"}, "empty_response"),
        ({"documents": ()}, "no_context"), ({"documents": ("", " ")}, "no_context"),
        ({"question": "  "}, "no_question"),
    ],
)  # fmt: skip
async def test_what_cannot_be_judged_is_unscored_without_asking(
    change: dict[str, object], code: str
) -> None:
    """No response, no documents, no question: a reason, no request, no zero."""
    judge = ScriptedJudge(LABELS)

    evaluation = await RagEvaluator(judge).evaluate(RagCall(**FIELDS | change))

    assert judge.asked == []
    assert {(s.unscored, s.value) for s in evaluation.scores.values()} == {(code, None)}
    assert all(score.reason for score in evaluation.scores.values())
    assert evaluation.usage.requests == 0


async def test_recorded_sentences_are_used_as_they_are() -> None:
    """A call that brings its sentences is not split again, and says so."""
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))

    evaluation = await RagEvaluator(judge).evaluate(RECORDED)

    assert evaluation.sentences == SENTENCES
    assert evaluation.scores["adherence"].by.splitter == "recorded"


async def test_a_failing_splitter_is_an_error_at_its_stage() -> None:
    """A user's splitter may fail too."""

    class Broken:
        name = "broken"

        def spans(self, text: str) -> list[tuple[int, int]]:
            raise RuntimeError

    evaluation = await RagEvaluator(ScriptedJudge(LABELS), splitter=Broken()).evaluate(CALL)

    told = EvaluationError(type="RuntimeError", message="RuntimeError()", stage="sentences")
    assert evaluation.error == told


async def test_one_content_is_labelled_once() -> None:
    """Ten evaluations at once and one later ask, and pay, once; with other sentences anew."""
    judge = ScriptedJudge(LABELS)
    evaluator = RagEvaluator(judge)

    found = await asyncio.gather(*(evaluator.evaluate(CALL) for _ in range(10)))
    found.append(await evaluator.evaluate(CALL.model_copy(update={"id": "another label"})))
    assert len(judge.asked) == sum(evaluation.usage.requests for evaluation in found) == 1

    await evaluator.evaluate(RECORDED)
    assert len(judge.asked) == 2


async def test_a_big_call_is_split_off_the_loop() -> None:
    """The loop keeps turning while megabytes are split."""
    turns: list[int] = []

    async def turn() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    big = RagCall(question="q", documents=["A word. " * 15_000], response="A word.")
    judge = ScriptedJudge(labels_of([], [], {"a": ([], False)}))
    turning = asyncio.create_task(turn())
    evaluation = await RagEvaluator(judge).evaluate(big)
    turning.cancel()

    assert len(evaluation.sentences.documents) == 15_000
    assert len(turns) > 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("judge", "gpt"), ("judge", object()), ("metrics", Trace()), ("splitter", "punkt"),
        ("splitter", Punkt),
    ],
)  # fmt: skip
def test_mistakes_raise_at_construction(field: str, value: object) -> None:
    """The message names the argument and shows the value."""
    with pytest.raises(ConfigurationError, match=f"`{field}` = "):
        RagEvaluator(**{field: value})  # type: ignore[arg-type]


class Lengths(ModelMetric):
    """A metric that asks a model: how long it says that the response is."""

    def __init__(self, name: str = "length", judge: Model | None = None) -> None:
        self.names = (name,)
        self.judge = judge

    def __repr__(self) -> str:
        return f"Lengths({self.names[0]!r})"

    async def measure(self, call: RagCall, judge: Model) -> Measured:
        asked = CompletionRequest(messages=(Message(role="user", content=call.response or ""),))
        completion = await judge.complete(asked)
        length = float(completion.text) / 100
        score = Score(name=self.names[0], status="scored", value=length, by=By(judge=judge.name))
        return Measured((score,), completion.usage)


def counting(name: str = "model") -> ScriptedModel:
    """Answers every request with the length of its prompt; labels nothing."""
    return ScriptedModel(lambda request: str(len(request.messages[-1].content)), name=name)


async def test_a_metric_that_asks_a_model_scores_beside_the_labels() -> None:
    """Scores stand in the order of the metrics; what both cost is added up."""
    metrics: list[Metric] = [Lengths(judge=counting("other")), Trace()]

    evaluation = await RagEvaluator(ScriptedJudge(LABELS), metrics).evaluate(CALL)

    assert tuple(evaluation.scores) == ("length", *TRACE_SCORES)
    length = evaluation.scores["length"]
    assert (length.value, length.by.judge) == (0.39, "other")
    assert evaluation.scores["adherence"].value == 0.0
    assert evaluation.usage.requests == 2


async def test_a_metric_alone_asks_for_no_labels() -> None:
    """One request, of the metric's; the evaluator's model serves metrics without one."""
    model = counting()

    evaluation = await RagEvaluator(model, [Lengths()]).evaluate(CALL)

    assert evaluation.scores["length"].value == 0.39
    assert evaluation.labels is None
    assert (len(model.requests), evaluation.usage.requests) == (1, 1)
    assert evaluation.judge.name == "model"


async def test_views_on_one_evaluator_ask_once_and_only_what_is_wanted() -> None:
    """`only` leaves other metrics out; the same score asked for twice is one request."""
    model = counting()
    evaluator = RagEvaluator(model, [Lengths("one"), Lengths("two"), Trace()])

    first, second = await asyncio.gather(
        evaluator.evaluate(CALL, only=["one"]), evaluator.evaluate(CALL, only=["one"])
    )

    assert tuple(first.scores) == tuple(second.scores) == ("one",)
    assert len(model.requests) == (first.usage + second.usage).requests == 1


def test_one_name_is_not_read_letter_by_letter() -> None:
    """The message shows what to write."""
    with pytest.raises(ConfigurationError, match=r"`only` = 'adherence': .* \['adherence'\]"):
        RagEvaluator("embedded").evaluate_sync(CALL, only="adherence")


def test_a_metric_that_asks_a_model_needs_one() -> None:
    """With a judge that has no model it is refused at construction; the error names an alternative."""
    with pytest.raises(ConfigurationError, match=r"length.*openai:"):
        RagEvaluator("embedded", [Lengths()])


def test_the_fingerprint_tells_settings_apart() -> None:
    """Judge, metrics and the models of metrics: what decides the scores besides the call."""
    evaluators = [RagEvaluator(ScriptedJudge(LABELS)), RagEvaluator("embedded")]
    evaluators.append(RagEvaluator(ScriptedJudge(LABELS), [Trace("ragbench")]))
    evaluators += [RagEvaluator("embedded", [Lengths(judge=counting(n))]) for n in ("a", "b")]

    assert RagEvaluator(ScriptedJudge(LABELS)).fingerprint == evaluators[0].fingerprint
    assert len({evaluator.fingerprint for evaluator in evaluators}) == 5


RETRIEVED = Capture(framework="x", status="ok", documents_from="retriever")


@pytest.mark.parametrize(
    ("judge", "capture", "scored"),
    [
        (ScriptedJudge(labels_of(["0a", "0b"], [], {})), RETRIEVED, ["context_relevance"]),
        ("embedded", RETRIEVED, ["context_relevance"]),
        ("embedded", Capture(framework="x", status="error", documents_from="prompt"), []),
    ],
    ids=["scripted", "embedded", "failed"],
)
async def test_a_retriever_alone_is_scored_on_relevance_only(
    judge: Any, capture: Capture, scored: list[str]
) -> None:
    """Without an answer the rest is `empty_response`; all is where a chain raised, which has none."""
    call = RagCall(**FIELDS | {"response": None}, capture=capture)

    scores = (await RagEvaluator(judge).evaluate(call)).scores

    assert [name for name in TRACE_SCORES if scores[name].value is not None] == scored
    assert {s.unscored for s in scores.values() if s.value is None} == {"empty_response"}


async def test_a_judge_that_gives_no_labels_leaves_its_reason() -> None:
    """A labelling without labels is not a failure: it keeps its code, reason and cost."""

    class Refusing(ScriptedJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            update = {"labels": None, "unscored": "refusal", "reason": "would not", "windows": 3}
            return (await super().label(call)).model_copy(update=update)

    evaluator = RagEvaluator(Refusing(LABELS))
    evaluation = await evaluator.evaluate(CALL)

    assert evaluation.error is None
    told = {(each.unscored, each.reason, each.by.windows) for each in evaluation.scores.values()}
    assert told == {("refusal", "would not", 3)}
    assert evaluation.usage.requests == 1
    assert evaluator.names == tuple(evaluation.scores) == TRACE_SCORES


async def test_an_incomplete_capture_is_flagged() -> None:
    """A call that was aborted or failed says so on its evaluation; a whole one says nothing."""
    labels = labels_of(["0a"], ["0a"], {"a": (["0a"], True), "b": (["0b"], True)})
    for status, flags in (("ok", ()), ("aborted", ("capture_aborted",))):
        capture = Capture.model_validate({"framework": "plain", "status": status})
        call = CALL.model_copy(update={"capture": capture})
        assert (await RagEvaluator(ScriptedJudge(labels)).evaluate(call)).flags == flags


# --- What users' code may do

ESCAPES = (ConnectionError("no route"), SystemExit(1), asyncio.CancelledError(), MemoryError())
ESCAPING = pytest.mark.parametrize("error", ESCAPES, ids=repr)


def raising_model(error: BaseException, *, retries: bool) -> ScriptedModel:
    """A model that raises."""

    def fail(request: CompletionRequest) -> str:
        raise error

    model = ScriptedModel(fail, name="raising")
    model.retries = retries
    return model


class RaisingMetric(LabelMetric):
    """A metric that raises what it was given."""

    names, version = ("raising",), "1"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        raise self._error


def raising_as_it_asks(error: BaseException) -> Metric:
    return Lengths("raising", raising_model(error, retries=True))


@ESCAPING
async def test_whatever_a_judge_raises_is_the_error_of_its_row(error: BaseException) -> None:
    """With its type; the evaluator goes on and remembers nothing of it."""

    def fail(call: SentencizedCall) -> Labels:
        if call.call.id == "7":
            raise error
        return LABELS

    evaluator = RagEvaluator(ScriptedJudge(fail))

    evaluation = await evaluator.evaluate(CALL)
    other = await evaluator.evaluate(CALL.model_copy(update={"id": "8"}))

    kind, message = type(error).__name__, str(error) or repr(error)
    assert evaluation.error == EvaluationError(type=kind, message=message, stage="judge")
    reason = f"{kind}: {message}"
    states = {(each.status, each.value, each.reason) for each in evaluation.scores.values()}
    assert states == {("error", None, reason)}
    assert other.error is None


@pytest.mark.parametrize("retries", [True, False], ids=["bare", "throttled"])
@ESCAPING
async def test_whatever_a_model_raises_is_the_error_of_its_row(
    error: BaseException, retries: bool
) -> None:
    """Of the labels' and of the metric's scores, which ask in tasks of their own."""
    evaluator = RagEvaluator(raising_model(error, retries=retries), [Trace(), GEval.coherence()])

    evaluation = await evaluator.evaluate(CALL)

    assert (evaluation.error and evaluation.error.type) == type(error).__name__
    assert {score.status for score in evaluation.scores.values()} == {"error"}


@pytest.mark.parametrize("make", [RaisingMetric, raising_as_it_asks])
@ESCAPING
async def test_whatever_a_metric_raises_leaves_the_others_their_scores(
    error: BaseException, make: Callable[[BaseException], Metric]
) -> None:
    """Its own scores are errors of the stage `metrics`."""
    metrics: list[Metric] = [Trace(), make(error)]
    evaluation = await RagEvaluator(ScriptedJudge(LABELS), metrics).evaluate(CALL)

    assert evaluation.scores["adherence"].value == 0.0
    maker = "scripted" if make is RaisingMetric else "raising"
    raising = evaluation.scores["raising"]
    assert (raising.status, raising.by.judge) == ("error", maker)
    kind, message = type(error).__name__, str(error) or repr(error)
    assert evaluation.error == EvaluationError(type=kind, message=message, stage="metrics")


async def test_requests_that_failed_are_counted_once() -> None:
    """Two metrics read the labels of one failed request, and equal calls share it; rows read back."""
    rejecting = raising_model(JudgeRejectedError("401: wrong key", status=401), retries=False)
    metrics = [Trace(), RaisingMetric(ValueError()), GEval("tone", steps=["Read it."])]

    evaluator = RagEvaluator(rejecting, metrics)
    evaluation, *others = await asyncio.gather(*(evaluator.evaluate(CALL) for _ in range(3)))

    assert {s.status for row in (evaluation, *others) for s in row.scores.values()} == {"error"}
    assert evaluation.usage == Usage(requests=2, failed=2)
    assert [other.usage for other in others] == [Usage()] * 2
    assert from_line(Evaluation, to_line(evaluation)) == evaluation


@pytest.mark.parametrize(("method", "wanted"), [("label", "Labelling"), ("complete", "Completion")])
@pytest.mark.parametrize("thing", [None, "text", {"labels": None, "choices": []}, LABELS, object()])
async def test_a_judge_or_model_that_returns_something_else_is_told(
    thing: object, method: str, wanted: str
) -> None:
    """The row says what was returned, and is an error: nothing is judged from it."""

    async def answer(_: object) -> object:
        return thing

    wrong: Any = SimpleNamespace(name="wrong", **{method: answer})
    evaluation = await RagEvaluator(wrong).evaluate(CALL)

    told = f"returned {type(thing).__name__} instead of a {wanted}"
    assert told in (evaluation.error.message if evaluation.error else "")


OWN = Score(name="own", status="scored", value=0.5, by=By(judge="scripted"))
CHANGES = (("value", math.nan), ("value", 1.5), ("status", "fine"), ("raw", math.inf), ("by", None))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("ab", "gave a sequence with str instead"),
        ([None], "gave a sequence with NoneType instead"),
        (({"name": "own"},), "gave a sequence with dict instead"),
        ((Score,), "gave a sequence with ModelMetaclass instead"),
        *(((OWN.model_copy(update={field: value}),), field) for field, value in CHANGES),
    ],
)
async def test_a_metric_that_returns_no_score_of_a_file_is_told(returned: Any, words: str) -> None:
    """Something else, or a copy with changes, which no record checks; the row stays readable."""

    class Own(LabelMetric):
        names = ("own",)
        version = "1"

        def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
            return returned  # type: ignore[no-any-return]

    evaluation = await RagEvaluator(ScriptedJudge(LABELS), [Own(), Trace()]).evaluate(CALL)

    assert evaluation.scores["own"].status == "error"
    assert words in (evaluation.scores["own"].reason or "")
    assert evaluation.scores["adherence"].value == 0.0
    assert from_line(Evaluation, to_line(evaluation)) == evaluation


def test_the_fields_of_a_call_are_taken_as_well() -> None:
    """As by the pytest fixture; a programming mistake raises, since nobody would see the row."""
    evaluator = RagEvaluator(ScriptedJudge(LABELS))

    assert evaluator.evaluate_sync(**FIELDS).scores == evaluator.evaluate_sync(CALL).scores
    kinds = ((None, ""), ("?", "should be a RagCall, not str; "), ([CALL], "not list; "))
    for wrong, kind in kinds:
        with pytest.raises(ConfigurationError, match=f"`call`: .*{kind}.*documents=…, response=…"):
            evaluator.evaluate_sync(wrong)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigurationError, match="documents=…, response=…"):
        evaluator.evaluate_sync(CALL, question="?")
    with pytest.raises(InputError, match="documents"):
        evaluator.evaluate_sync(question="?", response=None)


def test_something_else_than_a_call_gives_a_row_of_a_stream() -> None:
    """One wrong item is not the end of it."""
    evaluator = RagEvaluator(ScriptedJudge(LABELS))
    wrong, right = evaluate_calls([None, CALL], evaluator).collect_sync()  # type: ignore[list-item]  # on purpose

    words = "a call should be a RagCall(question, documents, response), not NoneType"
    assert (wrong.error and wrong.error.message) == words
    assert right.error is None


def test_usage_beyond_every_count_is_kept_as_the_largest() -> None:
    """Sums neither overflow nor make a line that cannot be read."""
    most = 2**63 - 1
    usage = Usage(requests=most, prompt_tokens=most, completion_tokens=1, cost_usd=1e308)

    assert usage + usage == usage.model_copy(update={"completion_tokens": 2, "cost_usd": None})


def test_everything_on_the_way_has_a_short_repr(tmp_path: Path) -> None:
    """Models, judges and evaluators in a notebook or a log line."""
    model = OpenAIModel("small", api_key="x", base_url="http://127.0.0.1:9/v1")

    with BackgroundEvaluator(RagEvaluator()) as background:
        objects: list[object] = [model, ThrottledModel(model), LLMJudge(model), EmbeddedJudge()]
        objects += [CachedModel(model, tmp_path / "answers.db"), CascadeJudge("embedded", model)]
        objects += [CallableModel(lambda messages: "", name="mine"), RagEvaluator(model)]
        objects += [RagEvaluator(), RagEvaluator(ScriptedJudge(LABELS)), background]
        shown = [repr(thing) for thing in objects]

    for text in shown:
        assert len(text) <= 320
        assert " at 0x" not in text
    assert shown[6] == "CallableModel('mine')"
    assert shown[8].startswith("RagEvaluator(EmbeddedJudge(), scores: context_relevance, ")
    assert shown[9].startswith("RagEvaluator(ScriptedJudge('scripted'), ")
    assert "0 captured, 0 scored" in shown[10]


async def test_labels_that_no_file_can_hold_are_the_error_of_the_judge() -> None:
    """Such as probabilities that a judge computed as NaN, and put into a copy."""
    labels = LABELS.model_copy(update={"supported_probabilities": {"a": math.nan}})

    evaluation = await RagEvaluator(ScriptedJudge(labels)).evaluate(CALL)

    assert (evaluation.error and evaluation.error.stage) == "judge"
    assert "supported_probabilities" in str(evaluation.error and evaluation.error.message)
    assert from_line(Evaluation, to_line(evaluation)) == evaluation
