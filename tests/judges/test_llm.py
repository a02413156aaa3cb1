"""LLMJudge: one request per call, and answers that are not the requested JSON."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

import pytest

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeOutputError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Judge, LLMJudge
from rag_eval_integrations.judges._prompt import PROMPT_VERSION
from rag_eval_integrations.judges._reconcile import reconcile
from rag_eval_integrations.judges.llm import windows
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.geval import GEval
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest, ModelBase
from rag_eval_integrations.records import Labelling, RagCall, SentencizedCall, Usage
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.testing import JudgeContract, ScriptedModel, labels_reply, small_call

REPLY = labels_reply(["0a", "0b", "1a"], ["a", "b"])
CALL = small_call()


def ended(reason: Any, text: str = "") -> Completion:
    choice = Choice(text=text, finish_reason=reason)
    return Completion(choices=(choice,), usage=Usage(requests=1))


def keys_asked(request: CompletionRequest) -> tuple[list[str], list[str]]:
    """Keys of the document and response sentences that a request shows."""
    keys = re.findall(r"^(\d*[a-z]+): ", request.messages[1].content, re.M)
    return [k for k in keys if k[0].isdigit()], [k for k in keys if not k[0].isdigit()]


def obedient(request: CompletionRequest) -> str:
    """Labels everything that it was shown."""
    return labels_reply(*keys_asked(request))


async def evaluated(*replies: Any) -> tuple[ScriptedModel, Any]:
    """The model that gave these replies, and the evaluation of the call by it."""
    model = ScriptedModel([*replies])
    return model, await RagEvaluator(model).evaluate(CALL.call)


class TestContract(JudgeContract):
    """The contract that every judge keeps."""

    def judge(self) -> Judge:
        return LLMJudge(ScriptedModel(obedient))


async def test_one_request_gives_all_four_scores() -> None:
    """Every TRACe score, from one request, with the prompt's version on it."""
    model, evaluation = await evaluated(REPLY)

    assert len(model.requests) == 1
    assert {evaluation.scores[name].status for name in TRACE_SCORES} == {"scored"}
    by = evaluation.scores["adherence"].by
    assert (by.prompt_version, by.judge) == (PROMPT_VERSION, "scripted")
    assert evaluation.usage.requests == 1
    assert (model.requests[0].json_schema is None, model.requests[0].temperature) == (False, 0.0)


async def test_a_reply_that_is_no_json_is_asked_for_once_more() -> None:
    """The second answer counts; both requests are paid for."""
    model = ScriptedModel(["I think it is fine.", REPLY])

    labelling = await LLMJudge(model).label(CALL)

    assert labelling.labels is not None
    assert labelling.usage.requests == 2
    assert "I think it is fine." in model.prompts[1]
    assert model.requests[1].messages[:2] == model.requests[0].messages


REFUSED = Completion(choices=(Choice(text="", refusal="I won't."),))


@pytest.mark.parametrize(
    ("reply", "code"), [(REFUSED, "refusal"), (ended("content_filter"), "content_filter")]
)
async def test_refusals_and_filters_are_unscored_with_that_reason(
    reply: Completion, code: str
) -> None:
    """Not zero, not an error, not asked again."""
    _, evaluation = await evaluated(reply)

    assert {score.unscored for score in evaluation.scores.values()} == {code}
    assert evaluation.error is None


async def test_a_cut_off_answer_gets_more_room() -> None:
    """Asked again with four times the tokens."""
    model = ScriptedModel([ended("length", REPLY[:50]), REPLY])

    labelling = await LLMJudge(model).label(CALL)

    first, second = (request.max_tokens or 0 for request in model.requests)
    assert labelling.labels is not None
    assert second == 4 * first > 0


async def test_an_answer_cut_off_again_is_asked_for_in_halves() -> None:
    """Each half with its own keys; the labels are joined."""

    def short_winded(request: CompletionRequest) -> str | Completion:
        documents, response = keys_asked(request)
        return ended("length") if len(documents) > 2 else labels_reply(documents, response)

    labelling: Any = await LLMJudge(ScriptedModel(short_winded)).label(CALL)

    assert labelling.labels.all_relevant_sentence_keys == ("0a", "0b", "1a")
    assert labelling.windows == 2
    assert "several windows" in labelling.warnings[0]


async def test_a_call_whose_smallest_window_is_cut_off_takes_four_requests() -> None:
    """The whole, with more room, a half, and its smallest part; of one sentence each, two."""
    model = ScriptedModel(lambda request: ended("length"))
    alone = sentencize(RagCall("When?", ["It leaves at nine."], "At nine."), Punkt())

    labelling = await LLMJudge(model).label(CALL)
    keys = [keys_asked(request) for request in model.requests]
    await LLMJudge(model).label(alone)

    assert labelling.unscored == "truncated"
    assert "--max-tokens" in str(labelling.reason)
    assert keys == [*[(["0a", "0b", "1a"], ["a", "b"])] * 2, (["0a"], ["a", "b"]), (["0a"], ["a"])]
    assert len(model.requests) == 4 + 2


async def test_windows_that_are_cut_off_are_mended_one_by_one() -> None:
    """Until one could be: each takes its first request, and one of them the three more."""
    model = ScriptedModel(lambda request: ended("length"), latency=0.01)
    texts = [f"The ferry number {number} leaves at nine. It is green." for number in range(4)]
    call = sentencize(RagCall("When?", texts, "At nine. It is red."), Punkt())

    assert (await LLMJudge(model, window_characters=90).label(call)).unscored == "truncated"

    assert len(model.requests) == len(windows(call.documents, call.response, 90)) + 3


async def test_what_more_room_mends_is_mended_at_once() -> None:
    """As of a model that thinks: the windows behind the first one do not wait for each other."""
    together = most = 0

    class Thinking(ModelBase):
        name = "thinking"

        async def complete(self, request: CompletionRequest) -> Completion:
            nonlocal together, most
            if (request.max_tokens or 0) < 4 * 500:
                return ended("length")
            together += 1
            most = max(most, together)
            await asyncio.sleep(0.05)
            together -= 1
            return ended("stop", obedient(request))

    texts = [f"The ferry number {number} leaves at nine." for number in range(6)]
    call = sentencize(RagCall("When?", texts, "At nine."), Punkt())

    labelling = await LLMJudge(Thinking(), window_characters=60).label(call)

    assert labelling.windows == 6
    assert most == 5


@pytest.mark.parametrize(("last", "parts"), [(2, 16), (1, None)])
async def test_a_window_is_halved_four_times(last: int, parts: int | None) -> None:
    """Of 32 sentences two are left; a model that takes one, of the last ones, is not asked that."""

    def short_winded(request: CompletionRequest) -> str | Completion:
        documents, response = keys_asked(request)
        fits = last if "0af" in documents else 2
        return ended("length") if len(documents) > fits else labels_reply(documents, response)

    model = ScriptedModel(short_winded)
    call = sentencize(RagCall("When?", ["It leaves. " * 32], "At nine."), Punkt())

    labelling = await LLMJudge(model).label(call)

    assert call.documents[-1].key == "0af"
    assert (labelling.windows if labelling.labels else None) == parts
    assert min(len(keys_asked(request)[0]) for request in model.requests) == 2


async def test_the_most_room_is_not_asked_for_twice() -> None:
    """A larger answer than 16,000 tokens is not to be had: halves follow at once."""
    model = ScriptedModel(lambda request: ended("length"))
    long = RagCall(question="q", documents=["It is so. " * 9], response="It is so. " * 300)

    await LLMJudge(model).label(sentencize(long, Punkt()))

    assert [len(keys_asked(request)[1]) for request in model.requests] == [300, 150, 18]


async def test_after_five_such_calls_in_a_row_none_is_halved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log says once which limit to raise; one whole answer, and calls are halved again."""
    replies: list[Any] = []
    model = ScriptedModel(lambda request: replies.pop() if replies else ended("length"))
    judge = LLMJudge(model)

    async def taken() -> int:
        before = len(model.requests)
        await judge.label(CALL)
        return len(model.requests) - before

    assert [await taken() for _ in range(8)] == [4, 4, 4, 4, 4, 2, 2, 2]
    [line] = caplog.messages
    assert line.startswith("scripted cut off its answers to 5 calls in a row")
    assert "--max-tokens" in line
    replies.append(REPLY)
    assert [await taken() for _ in range(2)] == [1, 4]


@pytest.mark.parametrize(
    "twice",
    [
        REPLY.replace("{", '{"all_relevant_sentence_keys": [], ', 1),
        REPLY.replace("{", '{"all_relevant_sentence_keys": [], ', 1).replace("}", ",}"),
        REPLY.replace('"fully_supported"', '"fully_supported": false, "fully_supported"', 1),
        REPLY.replace('"fully_supported"', '"fully\\u005fsupported": false, "fully_supported"', 1),
    ],
    ids=["of the whole", "broken too", "of an entry", "written otherwise"],
)
async def test_a_reply_that_repeats_a_key_is_asked_for_once_more(twice: str) -> None:
    """It says two things; twice, every score is unscored, and the reason names the key."""
    model, evaluation = await evaluated(twice, REPLY)
    _, unscored = await evaluated(twice, twice)
    quoting, _ = await evaluated(f'The document says {{"a": 1, "a": 2}}. {REPLY}')

    assert len(model.requests) == 2
    assert len(quoting.requests) == 1
    assert evaluation.scores["context_relevance"].value == 1.0
    for score in unscored.scores.values():
        assert (score.value, score.unscored) == (None, "judge_output_invalid")
        assert "repeats the key" in str(score.reason)


async def test_missing_sentences_are_asked_for_once_and_alone() -> None:
    """One repair question names exactly the sentences that were left out."""
    entry = {"response_sentence_key": "b", "fully_supported": False}
    repair = json.dumps({"sentence_support_information": [entry]})
    model = ScriptedModel([labels_reply(["0a"], ["a"]), repair])

    labels: Any = (await LLMJudge(model).label(CALL)).labels

    assert [labels.support(key) for key in "ab"] == ["full", "none"]
    assert labels.missing_keys == ()
    assert "response sentences b only" in model.prompts[1]


@pytest.mark.parametrize("repair", ["no", ended("refusal"), labels_reply([], ["a"])])
async def test_what_is_still_missing_is_unlabelled(repair: str | Completion) -> None:
    """No second repair question; the scores that need it say so."""
    model, evaluation = await evaluated(labels_reply(["0a"], ["a"]), repair)

    assert len(model.requests) == 2
    assert evaluation.scores["adherence"].unscored == "unlabelled_sentences"
    assert evaluation.scores["context_relevance"].status == "scored"
    assert "missing_keys" in evaluation.flags


EMPTY = labels_reply([], [])


@pytest.mark.parametrize("repair", [EMPTY, "no", ended("refusal")])
async def test_a_reply_that_labels_nothing_is_not_none(repair: str | Completion) -> None:
    """Empty fields, twice: every score is unscored. Labels that come the second time count."""
    model, evaluation = await evaluated(EMPTY, repair)

    assert len(model.requests) == 2
    assert {score.unscored for score in evaluation.scores.values()} == {"judge_output_invalid"}
    assert "none of the response sentences" in str(evaluation.scores["adherence"].reason)
    assert evaluation.usage.requests == 2

    _, second = await evaluated(EMPTY, labels_reply([], ["a", "b"]))
    assert second.scores["context_relevance"].value == 0.0
    assert second.scores["adherence"].status == "scored"


async def test_a_long_call_is_labelled_in_windows() -> None:
    """Each sentence is shown once with every response sentence; the labels are joined."""
    documents = ["Some words here. " * 40, "Other words there. " * 40]
    response = "Some words here. Other words there."
    call = sentencize(RagCall("q", documents, response), Punkt())
    model = ScriptedModel(obedient)

    labelling: Any = await LLMJudge(model, window_characters=500).label(call)

    shown = [key for request in model.requests for key in keys_asked(request)[0]]
    assert len(model.requests) > 3
    assert shown == [sentence.key for sentence in call.documents]
    assert all(keys_asked(request)[1] == ["a", "b"] for request in model.requests)
    assert set(labelling.labels.all_relevant_sentence_keys) == set(shown)
    assert labelling.windows == len(model.requests)


async def test_too_many_windows_are_over_budget() -> None:
    """Not a surprise bill: unscored without asking."""
    model = ScriptedModel(obedient)
    judge = LLMJudge(model, window_characters=30, max_windows=2)

    assert (await judge.label(CALL)).unscored == "over_budget"
    assert model.requests == []
    assert judge.estimate(CALL) == Usage()


async def test_a_model_is_asked_through_the_one_layer_that_retries() -> None:
    """A passing failure is not the call's failure, and nothing is wrapped twice."""
    model, evaluation = await evaluated(JudgeUnavailableError("429", retry_after=0.0), REPLY)
    throttled = ThrottledModel(model)

    assert (evaluation.error, len(model.requests)) == (None, 2)
    wrapped: Any = RagEvaluator(throttled).judge
    assert wrapped.model is throttled


async def test_warnings_and_model_of_the_endpoint_are_kept() -> None:
    """Every score has the warnings, and the model that answered."""
    own = {"model": "small-model-2026", "warnings": ("temperature was refused",)}

    _, evaluation = await evaluated(ended("stop", REPLY).model_copy(update=own))

    assert evaluation.judge.model == "small-model-2026"
    assert evaluation.scores["adherence"].warnings == ("temperature was refused",)


@pytest.mark.parametrize(
    "wrong", [{"window_characters": 0}, {"max_windows": 0}, {"temperature": -0.1}, {"model": 5}]
)
def test_mistakes_raise_at_construction(wrong: dict[str, Any]) -> None:
    """Naming the argument."""
    with pytest.raises(ConfigurationError, match=f"`{next(iter(wrong))}` = "):
        LLMJudge(**{"model": ScriptedModel([]), **wrong})
    with pytest.raises(ConfigurationError, match="`replies` = "):
        ScriptedModel("one text")


async def test_the_estimate_is_what_labelling_then_takes() -> None:
    """As many requests as are made, and a quarter of the characters that are sent."""
    for characters in (60_000, 60, 30):
        model = ScriptedModel(obedient)
        judge = LLMJudge(model, window_characters=characters)

        estimate = judge.estimate(CALL)
        await judge.label(CALL)

        sent = sum(len(m.content) for request in model.requests for m in request.messages)
        assert (estimate.requests, estimate.prompt_tokens) == (len(model.requests), sent // 4)


async def test_the_repair_question_goes_on_from_the_reply_that_was_read() -> None:
    """Where the first was no JSON, that is the second one."""
    second = labels_reply(["0a"], ["a"])
    model = ScriptedModel(["I think it is fine.", second, "no"])

    await LLMJudge(model).label(CALL)

    said = [m.content for m in model.requests[-1].messages if m.role == "assistant"]
    assert said == [second]


async def test_an_answer_has_room_for_every_entry() -> None:
    """More sentences, more tokens: 500, 120 a response sentence, 16 a document sentence."""
    model = ScriptedModel(obedient)
    long = RagCall(question="q", documents=["It is so. " * 9], response="It is so. " * 300)

    await LLMJudge(model).label(CALL)
    await LLMJudge(model).label(sentencize(long, Punkt()))

    assert [request.max_tokens for request in model.requests] == [500 + 240 + 48, 16_000]


# --- Lists that say nothing: asked for once more, then unscored, never 0

LISTS = {
    "all_relevant_sentence_keys": ["9z", "0zz", "none"],
    "all_utilized_sentence_keys": ["9z"],
    "sentence_support_information": [{"response_sentence_key": "zz"}],
}
"""Beside each list, what names no sentence that exists."""


def changed(name: str, value: object) -> str:
    """The reply with one list changed."""
    return json.dumps({**json.loads(REPLY), name: value})


@pytest.mark.parametrize("how", ["null", "missing", "unknown"])
@pytest.mark.parametrize("name", LISTS)
async def test_a_list_that_says_nothing_is_asked_for_once_more(name: str, how: str) -> None:
    """The second reply counts, and the request says what was wrong with the first."""
    first = changed(name, LISTS[name] if how == "unknown" else None)
    if how == "missing":
        first = first.replace(f'"{name}": null', '"other": 1')
    model, evaluation = await evaluated(first, REPLY)

    assert evaluation.scores["context_relevance"].value == 1.0
    assert evaluation.scores["adherence"].value == 1.0
    assert len(model.requests) == 2
    said = model.requests[1].messages[-1].content
    assert ("do not exist" if how == "unknown" else "null or missing") in said
    assert "[]" in said


@pytest.mark.parametrize(("name", "value"), [*LISTS.items(), ("all_utilized_sentence_keys", None)])
async def test_a_list_that_says_nothing_twice_is_never_0(name: str, value: object) -> None:
    """Every score is unscored, with the list's name in the reason."""
    _, evaluation = await evaluated(*[changed(name, value)] * 2)

    for score in evaluation.scores.values():
        assert (score.value, score.unscored) == (None, "judge_output_invalid")
    reason = str(evaluation.scores["context_relevance"].reason)
    assert name in reason or "response sentences that the judge labelled" in reason
    assert evaluation.error is None
    assert evaluation.usage.requests == 2


async def test_an_empty_list_says_that_there_is_none() -> None:
    """One request; nothing relevant is a finding, and words such as `none` stand for no sentence."""
    for keys in ([], ["general"], ["none"], [""], ["N/A"]):
        entry = {"supporting_sentence_keys": keys, "fully_supported": False}
        entries = [{"response_sentence_key": key, **entry} for key in "ab"]
        reply = {**json.loads(labels_reply(keys, [])), "sentence_support_information": entries}
        model, evaluation = await evaluated(json.dumps(reply))

        for name in ("context_relevance", "context_utilization", "adherence"):
            assert evaluation.scores[name].value == 0.0
        assert len(model.requests) == 1
        assert "unknown_keys" not in evaluation.flags


@pytest.mark.parametrize(
    "entry",
    [
        {"supporting_sentence_keys": None, "fully_supported": None},
        {"supporting_sentence_keys": ["9z"], "fully_supported": False},
        {},
    ],
)
async def test_an_entry_that_says_nothing_is_a_missing_one(entry: dict[str, object]) -> None:
    """Its sentence is asked for alone; without an answer adherence is unscored, and not 0."""
    name = "sentence_support_information"
    entries = [{"response_sentence_key": "a", "fully_supported": True}]
    entries.append({"response_sentence_key": "b", **entry})
    model, evaluation = await evaluated(changed(name, entries), json.dumps({name: entries[1:]}))

    assert "response sentences b only" in model.requests[1].messages[-1].content
    assert evaluation.scores["adherence"].unscored == "unlabelled_sentences"
    assert evaluation.scores["context_relevance"].value == 1.0
    assert ("unknown_keys" in evaluation.flags) == ("9z" in str(entry))


ENTRY = {"response_sentence_key": "a", "supporting_sentence_keys": [], "fully_supported": True}
MANY = [{**ENTRY, "explanation": f"so {number}"} for number in range(10_000)]
FLOODS = {
    "spaces": " " * 1_000_000,
    "objects": '{"a": 1} ' * 100_000,
    "keys": changed("all_relevant_sentence_keys", ["9z"] * 100_000),
    "a key": changed("all_relevant_sentence_keys", ["to" * 500_000 + "!"]),
    "entries": changed("sentence_support_information", MANY),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_a_flood_is_read_in_bounded_time(flood: str) -> None:
    """Reading a text more than once per line or key would take hours; what is sent is bounded, too."""
    model = ScriptedModel(lambda request: flood)
    tracer = sys.gettrace()
    sys.settrace(None)  # coverage would take most of the time
    try:
        evaluation = await type("Own", (RagEvaluator,), {"_remembers": 0})(model).evaluate(
            CALL.call
        )
    finally:
        sys.settrace(tracer)

    assert evaluation.error is None
    assert max(len(text) for text in model.prompts) < 200_000


async def test_a_window_that_fails_ends_the_requests_of_the_others() -> None:
    """Nobody would use their answers, and they would be paid for."""
    ended: list[str] = []

    class Half(ModelBase):
        name = "half"

        async def complete(self, request: CompletionRequest) -> Completion:
            if "0a:" in request.messages[1].content:
                await asyncio.sleep(0.01)
                raise JudgeRejectedError("no")
            try:
                await asyncio.sleep(30)
            finally:
                ended.append("cancelled")
            raise AssertionError

    judge = LLMJudge(Half(), window_characters=40)
    texts = [f"The ferry number {number} leaves at nine." for number in range(3)]
    call = sentencize(RagCall(question="When?", documents=texts, response="At nine."), Punkt())
    with pytest.raises(JudgeRejectedError):
        await judge.label(call)

    assert ended == ["cancelled"] * (len(windows(call.documents, call.response, 40)) - 1)
    assert ended


async def test_requests_of_a_bad_reply_are_counted() -> None:
    """Two were made, although neither gave an answer."""
    bad = JudgeOutputError("more than 8 MB, twice", "", usage=Usage(requests=2))
    metrics = [Trace(), GEval("tone", steps=["Look."], estimator="single")]
    evaluation = await RagEvaluator(ScriptedModel(lambda _: bad), metrics).evaluate(CALL.call)

    assert {score.unscored for score in evaluation.scores.values()} == {"judge_output_invalid"}
    assert evaluation.error is None
    assert evaluation.usage.requests == 4


ODD = {
    "all_relevant_sentence_keys": ["0A.", "0a", "general", "zz"],
    "sentence_support_information": [
        {"response_sentence_key": "a.", "supporting_sentence_keys": ["[0b]", "0b"]},
        {"response_sentence_key": "b", "supporting_sentence_keys": ["9z"], "fully_supported": None},
    ],
    "all_utilized_sentence_keys": ["0a, 0b"],
}


async def test_labels_leave_the_judge_reconciled() -> None:
    """The evaluator need not do it again; of a subclass that labels in its own way, it does."""

    class Own(LLMJudge):
        async def label(self, call: SentencizedCall) -> Labelling:
            labelling: Any = await super().label(call)
            own = {"all_relevant_sentence_keys": ("0B.", "zz")}
            labels = labelling.labels.model_copy(update=own)
            return Labelling(labels=labels, judge=labelling.judge)

    judge = LLMJudge(ScriptedModel(lambda _: json.dumps(ODD)))
    labels: Any = (await judge.label(CALL)).labels
    assert judge.keeps_keys
    assert reconcile(labels, CALL) == labels
    assert labels.all_relevant_sentence_keys == ("0a",)
    assert labels.all_utilized_sentence_keys == ("0a", "0b")
    assert labels.unknown_keys == ("9z", "zz")

    own = RagEvaluator(Own(ScriptedModel(lambda _: json.dumps(ODD))))
    found: Any = (await own.evaluate(CALL.call)).labels
    assert found.all_relevant_sentence_keys == ("0b",)
