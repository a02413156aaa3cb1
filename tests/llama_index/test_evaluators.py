"""Evaluator objects on real LlamaIndex responses, `BatchEvalRunner` and retry engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.evaluation import BatchEvalRunner, EvaluationResult
from llama_index.core.llms import ChatMessage, ChatResponse, MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetryQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.tools import ToolOutput
from pydantic import BaseModel

from rag_eval_integrations import GEval, _loop
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index import (
    GEvalEvaluator,
    PromptyEvaluator,
    TraceEvaluator,
    as_evaluators,
    results_table,
)
from rag_eval_integrations.llama_index.evaluators import RagEvaluationResult, ScoreEvaluator
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.testing import ScriptedModel, labels_reply

from .apps import context
from .conftest import ANSWER, QUESTION, TOKENS, Model, engine, scored

CONTEXT = "The kettle boils in four minutes."

# LlamaIndex's own BatchEvalRunner calls what LlamaIndex deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")


def judge(*, supported: bool = True, latency: float = 0.0) -> ScriptedModel:
    """Finds the first document sentence relevant and used, and all of the answer (un)supported."""
    reply = labels_reply(["0a"], ["a"], supported=supported)
    return ScriptedModel(lambda request: reply, latency=latency)


def evaluated(response: Any) -> EvaluationResult:
    return TraceEvaluator(judge()).evaluate_response(QUESTION, response)


async def evaluated_later(response: Any) -> EvaluationResult:
    return await TraceEvaluator(judge()).aevaluate_response(QUESTION, response)


def invalid(result: EvaluationResult) -> str:
    """The reason of a result that has neither score nor verdict."""
    assert (result.invalid_result, result.score, result.passing) == (True, None, None)
    return result.invalid_reason or ""


def outcome(result: EvaluationResult) -> tuple[Any, int, Any]:
    return result.response, len(result.contexts or ()), result.score


SCORED = (ANSWER, 3, 1.0)
"""The outcome of a supported answer from three nodes."""


GRADE = '{"reason": "middling", "score": 3}'


def exact(**options: Any) -> GEval:
    params = ["response", "reference"]
    return GEval("exact", steps=["Compare."], params=params, estimator="single", **options)


class TestResult:
    def test_holds_score_verdict_and_reason(self) -> None:
        """A supported answer passes adherence; the result repeats what was evaluated."""
        result = TraceEvaluator(judge()).evaluate(QUESTION, ANSWER, [CONTEXT])

        assert (result.score, result.passing, result.invalid_result) == (1.0, True, False)
        assert (result.query, result.response, result.contexts) == (QUESTION, ANSWER, [CONTEXT])
        assert (bool(result.feedback), result.invalid_reason) == (True, None)
        other = TraceEvaluator(judge(), metric="completeness")
        assert other.evaluate(QUESTION, ANSWER, [CONTEXT]).passing is None
        assert isinstance(result, RagEvaluationResult)
        assert result.evaluation is not None
        assert result.evaluation.labels is not None
        assert "evaluation" not in result.model_dump()  # which others read

    def test_of_no_labels_is_invalid_with_the_code(self) -> None:
        """No context, no response, no question, no judge: no score, no verdict, the reason."""

        def down(request: object) -> str:
            raise JudgeRejectedError("nobody is home")

        unjudged = TraceEvaluator(ScriptedModel(down)).evaluate(QUESTION, ANSWER, [CONTEXT])
        assert "nobody is home" in invalid(unjudged)
        evaluator = TraceEvaluator(judge())
        for query, response, contexts, code in [
            (QUESTION, ANSWER, None, "no_context"),
            (QUESTION, ANSWER, [], "no_context"),
            (QUESTION, None, [CONTEXT], "empty_response"),
            (QUESTION, "", [CONTEXT], "empty_response"),
            (None, ANSWER, [CONTEXT], "no_question"),
        ]:
            result = evaluator.evaluate(query, response, contexts)
            assert invalid(result).startswith(f"{code}: ")

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ((ANSWER, CONTEXT), "contexts should be a list of strings, not str"),
            ((ANSWER, [CONTEXT, 7]), "documents"),
            ((Response(ANSWER), [CONTEXT]), "response"),
        ],
    )
    async def test_of_wrong_arguments_is_invalid(self, given: Any, words: str) -> None:
        """A user's mistake in one item does not end a batch."""
        evaluator = TraceEvaluator(judge())

        assert words in invalid(evaluator.evaluate(QUESTION, *given))
        assert words in invalid(await evaluator.aevaluate(QUESTION, *given))

    async def test_on_the_librarys_own_loop_says_to_await(self) -> None:
        """Where a sync form would wait for itself, the result says what to do."""

        async def inside() -> list[EvaluationResult]:
            evaluator = TraceEvaluator(judge())
            response = evaluated(Response(ANSWER, scored()))
            return [evaluator.evaluate(QUESTION, ANSWER, [CONTEXT]), response]

        for result in await asyncio.to_thread(_loop.run, inside()):
            assert "await" in invalid(result)

    async def test_waits_first_when_told_to(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`sleep_time_in_seconds`, as of LlamaIndex's evaluators."""
        waited: list[float] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)

        # In their module alone: other tasks of this process sleep, too.
        ours = SimpleNamespace(**{**vars(asyncio), "sleep": sleep})
        monkeypatch.setattr("rag_eval_integrations.llama_index.evaluators.asyncio", ours)
        evaluator = TraceEvaluator("embedded")
        response = Response(ANSWER, scored())

        await evaluator.aevaluate(QUESTION, ANSWER, [CONTEXT], sleep_time_in_seconds=2)
        await evaluator.aevaluate_response(QUESTION, response, sleep_time_in_seconds=3)

        assert waited == [2, 3]


class TestResponse:
    @pytest.mark.parametrize(
        ("mode", "text"),
        [
            (MetadataMode.LLM, "page: 3\n\nThe kettle boils in four minutes."),
            (MetadataMode.NONE, "The kettle boils in four minutes."),
        ],
    )
    def test_is_shown_to_the_judge_as_the_model_saw_it(self, mode: Any, text: str) -> None:
        """With the metadata that models are shown, as a header, unless told otherwise; also of nodes."""
        asked = judge()
        evaluator = TraceEvaluator(asked, metadata_mode=mode)
        (first, *_) = scored()

        result = evaluator.evaluate_response(QUESTION, Response(ANSWER, [first]))
        from_nodes = evaluator.evaluate(QUESTION, ANSWER, [first, first.node])  # type: ignore[list-item]  # nodes

        assert result.contexts == [text]
        assert from_nodes.contexts == [text, text]
        shown = asked.requests[0].messages[1].content
        assert f"\n0a: {CONTEXT}" in shown
        assert ("\n[0] page: 3\n0a: " in shown) is (mode is MetadataMode.LLM)  # without a key

    def test_may_be_structured_a_chat_engines_or_an_agents(self) -> None:
        """As its JSON; with sources in tools' outputs; with sources in an agent's calls."""

        class Fact(BaseModel):
            minutes: int

        raw: Any = {"raw_input": {}, "raw_output": Response(ANSWER, scored())}
        output = ToolOutput(content=ANSWER, tool_name="t", **raw)
        asked: Any = {"tool_name": "t", "tool_kwargs": {}, "tool_id": "1", "return_direct": False}
        call = ToolCallResult(tool_output=output, **asked)
        message = ChatMessage(role="assistant", content=ANSWER)
        by_agent: Any = AgentOutput(response=message, tool_calls=[], current_agent_name="agent")
        by_agent.tool_calls.append(call)  # as agents do

        structured = evaluated(PydanticResponse(Fact(minutes=4), scored()))
        by_engine = evaluated(AgentChatResponse(response=ANSWER, sources=[output]))

        assert outcome(structured) == ('{"minutes":4}', 3, 1.0)
        assert outcome(by_engine) == outcome(evaluated(by_agent)) == SCORED


def consumed(how: Callable[[StreamingResponse], object]) -> StreamingResponse:
    response = engine(streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    how(response)
    return response


async def drain(response: Any, into: list[str]) -> None:
    """Read a stream of either kind, keeping what comes before an error."""
    if hasattr(response.response_gen, "__anext__"):
        async for token in response.response_gen:
            into.append(token)  # noqa: PERF401 -- keeps what comes before an error
    else:
        into.extend(response.response_gen)


class TestStream:
    async def test_is_the_same_tokens_after_an_async_evaluation(self) -> None:
        """Sync and async streams; token by token, not in one piece."""
        sync: Any = engine(streaming=True).query(QUESTION)
        response: Any = await engine(streaming=True).aquery(QUESTION)

        assert outcome(await evaluated_later(sync)) == SCORED
        assert outcome(await evaluated_later(response)) == SCORED

        assert list(sync.response_gen) == TOKENS
        assert [token async for token in response.async_response_gen()] == TOKENS
        assert outcome(await evaluated_later(response)) == SCORED

    @pytest.mark.parametrize("inside", [False, True])
    def test_may_be_async(self, inside: bool) -> None:
        """A sync evaluation reads an async stream as `str()` would, also where a loop runs."""

        async def ask() -> Any:
            response: Any = await engine(streaming=True).aquery(QUESTION)
            return response, inside and evaluated(response)

        response, result = asyncio.run(ask())

        assert outcome(result or evaluated(response)) == SCORED
        assert str(response) == ANSWER

    @pytest.mark.parametrize("read", [str, StreamingResponse.get_response])
    def test_that_was_read_has_its_text(self, read: Callable[[Any], object]) -> None:
        """What the response keeps is enough."""
        assert outcome(evaluated(consumed(read))) == SCORED

    def test_whose_text_was_not_kept_is_invalid(self) -> None:
        """Iterating over `response_gen` leaves no text: the reason says what to evaluate."""
        reason = invalid(evaluated(consumed(lambda response: list(response.response_gen))))

        assert "the app has read the stream" in reason
        assert "response=text" in reason

    async def test_that_is_being_read_is_left_alone(self) -> None:
        """Half an answer is not evaluated, and the other half stays the app's, however it reads."""
        begun = consumed(lambda response: next(response.response_gen))
        assert "has begun to read" in invalid(evaluated(begun))
        assert list(begun.response_gen) == TOKENS[1:]
        for raw in (False, True):
            response: Any = await engine(streaming=True).aquery(QUESTION)
            tokens = response.response_gen if raw else response.async_response_gen()
            await anext(tokens)

            assert "has begun to read" in invalid(await evaluated_later(response))
            assert [token async for token in tokens] == TOKENS[1:]

    @pytest.mark.parametrize("asynchronous", [False, True])
    async def test_that_fails_is_invalid_and_fails_the_app_as_well(
        self, asynchronous: bool
    ) -> None:
        """The app gets the tokens before the error, and the error."""
        failing = engine(streaming=True, llm=Model(fail_after=2))
        response = await failing.aquery(QUESTION) if asynchronous else failing.query(QUESTION)

        assert "connection lost" in invalid(await evaluated_later(response))
        got: list[str] = []
        with pytest.raises(RuntimeError, match="connection lost"):
            await drain(response, got)
        assert got == TOKENS[:2]

    def test_that_is_no_generator(self) -> None:
        """Any iterator will do; a response that was stored without its stream has no text."""
        stored = StreamingResponse(None, scored())  # type: ignore[arg-type]  # the claim
        response = StreamingResponse(iter(TOKENS), scored())  # type: ignore[arg-type]  # no generator

        assert (outcome(evaluated(response)), str(response)) == (SCORED, ANSWER)
        assert "has read the stream" in invalid(evaluated(stored))

    async def test_whose_reading_is_cancelled_says_so(self) -> None:
        """The app is told that its stream was cut, not given a shorter answer."""

        async def tokens() -> AsyncGenerator[str, None]:
            yield "one "
            await asyncio.sleep(3600)
            yield "two"

        response = AsyncStreamingResponse(tokens(), scored())
        evaluating = asyncio.create_task(evaluated_later(response))
        await asyncio.sleep(0.01)
        evaluating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await evaluating

        got: list[str] = []
        with pytest.raises(RuntimeError, match="interrupted"):
            await drain(response, got)
        assert got == ["one "]


class TestChatStream:
    async def test_is_evaluated_and_stays_the_apps(self) -> None:
        """Both kinds, filled by a thread or by a task; before and after the app reads."""
        by_thread = context().stream_chat(QUESTION)
        results = [evaluated(by_thread), await evaluated_later(by_thread)]
        by_task = await context().astream_chat(QUESTION)
        results.append(await evaluated_later(by_task))
        assert "".join(by_thread.response_gen) == ANSWER
        assert "".join([token async for token in by_task.async_response_gen()]) == ANSWER
        results.append(evaluated(by_thread))

        assert [outcome(result) for result in results] == [SCORED] * 4

    async def test_that_this_thread_would_have_to_write_says_to_await(self) -> None:
        """A sync evaluation cannot wait for a task of its own loop."""
        response = await context().astream_chat(QUESTION)

        result = evaluated(response)

        if response.is_writing_to_memory:  # else its reader writes it: LlamaIndex 0.14.8
            assert "await" in invalid(result)
        assert "".join([token async for token in response.async_response_gen()]) == ANSWER

    async def test_that_fails_is_invalid(self) -> None:
        """With the model's own error."""
        response = await context(Model(fail_after=2)).astream_chat(QUESTION)

        assert "connection lost" in invalid(await evaluated_later(response))
        with pytest.raises(RuntimeError, match="connection lost"):
            [token async for token in response.async_response_gen()]

    def test_that_never_ends_is_invalid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Waiting is bounded."""
        monkeypatch.setattr("rag_eval_integrations.llama_index._answers._POLLS", 5)
        response = StreamingAgentChatResponse(chat_stream=iter(()), source_nodes=scored())  # type: ignore[arg-type]  # nobody reads it

        assert "did not end its stream within 0.05 s" in invalid(evaluated(response))

    async def test_that_is_written_as_it_is_read_is_put_back(self) -> None:
        """Where the engine leaves its stream to the reader (LlamaIndex 0.14.8)."""
        pieces = [ChatResponse(message=ChatMessage(content=""), delta=token) for token in TOKENS]
        left: Any = {"source_nodes": scored(), "is_writing_to_memory": False}
        by_reader = StreamingAgentChatResponse(chat_stream=(piece for piece in pieces), **left)
        response = StreamingAgentChatResponse(achat_stream=_later(pieces), **left)

        results = [evaluated(by_reader), await evaluated_later(by_reader)]
        results.append(await evaluated_later(response))
        assert list(by_reader.response_gen) == TOKENS
        assert [token async for token in response.async_response_gen()] == TOKENS
        results += [evaluated(by_reader), await evaluated_later(response)]

        assert [outcome(result) for result in results] == [SCORED] * 5


async def _later(items: list[Any]) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item


class TestBatch:
    async def test_makes_one_request_an_item(self) -> None:
        """Five evaluators, three items, `aevaluate_queries`: three requests."""
        asked = judge(latency=0.01)
        five: Any = {name: TraceEvaluator(asked, metric=name) for name in TRACE_SCORES[:5]}
        queries = ["How fast?", "Why?", "Who?"]

        results = await BatchEvalRunner(five, workers=8).aevaluate_queries(engine(), queries)

        assert (len(asked.requests), results.keys()) == (3, five.keys())
        for items in results.values():
            assert [item.query for item in items] == queries
            assert all(item.score is not None for item in items)

    async def test_passes_references(self) -> None:
        """`reference=[…]` reaches the metrics that compare with one, and splits no request."""
        asked, grader = judge(), ScriptedModel(lambda request: GRADE)
        evaluators = as_evaluators(RagEvaluator(asked, [Trace(), exact(judge=grader)]))
        runner = BatchEvalRunner(evaluators, workers=4)

        results = await runner.aevaluate_response_strs(
            ["How fast?", "Why?"], [ANSWER, ANSWER], [[CONTEXT], [CONTEXT]],
            reference=["At once.", "Who knows."],  # type: ignore[arg-type]
        )  # fmt: skip

        assert [item.score for item in results["geval:exact"]] == [0.5, 0.5]
        assert ["At once." in prompt for prompt in sorted(grader.prompts)] == [True, False]
        assert len(asked.requests) == 2

    async def test_goes_on_where_an_item_fails(self) -> None:
        """LlamaIndex would wait 4-10 s, three times, and then end the whole batch."""
        responses: Any = [object(), Response(ANSWER, scored())]
        runner = BatchEvalRunner(as_evaluators(RagEvaluator(judge())))
        results = await runner.aevaluate_responses(["How fast?", "Why?"], responses)

        for items in results.values():
            assert [item.invalid_result for item in items] == [True, False]

    def test_table_keeps_unscored_apart_from_zero(self) -> None:
        """Means are over what is scored; what is not is counted with its reason."""
        evaluator = TraceEvaluator(judge(supported=False))
        given = [(ANSWER, [CONTEXT]), ("", [CONTEXT]), (ANSWER, [])]

        (row,) = results_table({"adherence": [evaluator.evaluate("How?", *each) for each in given]})

        assert (row.n, row.scored, row.mean, row.passed) == (3, 1, 0.0, 0)
        assert row.unscored == {"empty_response": 1, "no_context": 1}

    def test_table_of_other_evaluators_and_of_nothing(self) -> None:
        """It takes any evaluator's results."""
        theirs = [EvaluationResult(score=4.0), EvaluationResult()]
        rows = results_table({"theirs": theirs, "none": []})

        numbers = [(row.n, row.scored, row.mean, row.passed) for row in rows]
        assert numbers == [(2, 1, 4.0, None), (0, 0, None, None)]
        assert rows[0].unscored == {"no score": 1}


class TestRetry:
    @pytest.fixture(autouse=True)
    def _settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Retry engines take the model for their own steps from the settings."""
        monkeypatch.setattr(Settings, "_llm", MockLLM())
        monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=8))

    @pytest.mark.parametrize("streaming", [False, True])
    def test_engine_asks_again_with_our_reason(self, streaming: bool) -> None:
        """An unsupported answer is asked for again; the reason is in the new question."""
        passing, failing = judge(), judge(supported=False)

        for model in (passing, failing):
            inner = engine(streaming=streaming)
            retrying = RetryQueryEngine(inner, TraceEvaluator(model), max_retries=2)
            assert str(retrying.query(QUESTION)) == ANSWER
        assert (len(passing.requests), len(failing.requests)) == (1, 2)
        assert "Here is some feedback" in failing.prompts[1]

    def test_engine_shows_no_prompts_of_ours(self) -> None:
        """Prompts are listed and updated through a retry engine; ours are fixed."""
        retrying = RetryQueryEngine(engine(), TraceEvaluator(judge()))

        assert not [name for name in retrying.get_prompts() if name.startswith("evaluator")]
        retrying.update_prompts({})
        with pytest.raises(ConfigurationError, match="prompts_dict"):
            retrying.update_prompts({"evaluator:labels": PromptTemplate("Say yes.")})


class TestViews:
    def test_on_an_evaluator_use_its_settings(self) -> None:
        """Formulas and all."""
        evaluator = RagEvaluator(judge(), [Trace("ragbench")])
        views = as_evaluators(evaluator, thresholds={"completeness": 0.3})

        assert list(views) == list(TRACE_SCORES)
        result: Any = views["completeness"].evaluate(QUESTION, ANSWER, [CONTEXT])
        assert result.passing is True
        assert result.evaluation.scores["completeness"].by.formulas == "ragbench"
        assert list(result.evaluation.scores) == list(TRACE_SCORES)

    async def test_of_a_metric_that_asks(self) -> None:
        """With its own threshold; what it lacks is said."""
        evaluator = GEvalEvaluator(exact(), ScriptedModel(lambda request: GRADE))

        scored = await evaluator.aevaluate(QUESTION, ANSWER, [CONTEXT], reference="No.")
        unscored = await evaluator.aevaluate(QUESTION, ANSWER, [CONTEXT])

        assert (scored.score, scored.passing, scored.feedback) == (0.5, True, "middling")
        assert invalid(unscored).startswith("missing_param: ")

    def test_of_a_metric_in_words(self, tmp_path: Path) -> None:
        """A prompty file; its variables are the call's parts."""
        path = tmp_path / "brief.metric.prompty"
        path.write_text(
            "---\nname: Brief\ninputs: {output: {type: string}}\n---\nuser:\n{{output}}"
        )
        asked = ScriptedModel(lambda request: '{"explanation": "Short.", "score": 85}')

        result = PromptyEvaluator(path, asked, threshold=0.8).evaluate(QUESTION, ANSWER)

        assert (result.score, result.passing, result.invalid_reason) == (0.85, True, None)
        assert ANSWER in asked.prompts[0]

    def test_refuse_what_cannot_work(self) -> None:
        """At construction, naming the argument."""
        with pytest.raises(ConfigurationError, match="`metric`"):
            ScoreEvaluator(RagEvaluator(), "accuracy")
        with pytest.raises(ConfigurationError, match="`metric`"):
            TraceEvaluator(RagEvaluator(judge(), [exact()]))
