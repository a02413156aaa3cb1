"""Evaluation steps: written once for a metric and judge, shared, shown, pinned, honest when absent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from scored_tokens import answers, json_reply

from rag_eval_integrations import CachedModel, GEval, RagEvaluator
from rag_eval_integrations.errors import JudgeOutputError, JudgeUnavailableError
from rag_eval_integrations.metrics.geval._prompt import STEPS_VERSION, parse_steps
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.testing import ScriptedModel

WRITTEN = ["Read the Question.", "Hold the Response against it."]


def call(number: int) -> RagCall:
    return RagCall(question=f"Question {number}?", documents=[], response="Answer.")


def is_for_steps(request: CompletionRequest) -> bool:
    return request.prompt_version == STEPS_VERSION


def writing(request: CompletionRequest) -> Completion | str:
    if is_for_steps(request):
        return json.dumps({"steps": WRITTEN})
    return json_reply({"3": 0.5, "4": 0.5}, "3")


def helpful(**changes: Any) -> GEval:
    return GEval("helpful", "The response helps with the question.", **changes)


async def test_many_calls_at_once_take_one_request_for_steps() -> None:
    """Not one a call: all of them are judged by the same steps, which stand on every score."""
    judge = ScriptedModel(writing, latency=0.01)
    evaluator = RagEvaluator(judge, [helpful()])

    evaluations = await asyncio.gather(*(evaluator.evaluate(call(n)) for n in range(20)))

    assert sum(map(is_for_steps, judge.requests)) == 1
    assert len(judge.requests) == 21
    scores = [evaluation.scores["geval:helpful"] for evaluation in evaluations]
    assert all((score.evidence or {})["steps"] == WRITTEN for score in scores)
    assert len({score.by.prompt_version for score in scores}) == 1
    assert sum(evaluation.usage.requests for evaluation in evaluations) == 21


@pytest.mark.parametrize("params", [("question", "response"), ("response",)])
async def test_the_prompt_names_the_parameters(params: tuple[str, ...]) -> None:
    """As the JSON that the parser takes; one parameter has no relation to ask for."""
    judge = ScriptedModel(writing)

    await helpful(params=params).score(call(1), judge)

    system, criteria = (message.content for message in judge.requests[0].messages)
    assert '{"steps": [' in system
    assert ("Question and Response" in system) is (len(params) > 1)
    assert ("in relation to one another" in system) is (len(params) > 1)
    assert "The response helps with the question." in criteria
    assert (judge.requests[0].temperature, judge.requests[0].json_schema is None) == (0.0, False)


async def test_a_cache_shares_them_between_processes(tmp_path: Path) -> None:
    """A new metric object, a new judge object, the same file: no request for steps."""
    for number, asked in enumerate(([True, False], [False])):
        judge = ScriptedModel(writing)
        with CachedModel(judge, tmp_path / "c.db") as cached:
            await helpful().score(call(number), cached)
        assert [is_for_steps(request) for request in judge.requests] == asked


async def test_samples_are_not_one_cached_answer(tmp_path: Path) -> None:
    """A server without `n`: twenty requests that the cache and single flight keep apart."""
    numbers = iter(range(100))
    judge = ScriptedModel(lambda request: answers(str(1 + next(numbers) % 5)))
    geval = GEval("x", steps=["s"], estimator="monte_carlo")
    with CachedModel(judge, tmp_path / "c.db") as cached:
        first = await geval.score(call(1), cached)
        again = await geval.score(call(1), cached)

    assert first.distribution == {str(k): pytest.approx(0.2) for k in range(1, 6)}
    assert len(judge.requests) == 20
    assert again.distribution == first.distribution


async def test_each_judge_writes_its_own() -> None:
    """Steps are the judge's: two judges, two requests; scores by other steps are told apart."""
    geval = helpful()
    one = ScriptedModel(writing, name="one")
    other = ScriptedModel(['{"steps": ["Other."]}', json_reply({"3": 1.0}, "3")], name="other")

    first, second = [await geval.score(call(1), judge) for judge in (one, other)]

    assert (second.evidence or {})["steps"] == ["Other."]
    assert first.by.prompt_version != second.by.prompt_version


async def test_a_judge_that_writes_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unscored, saying how to pin them; not asked again for every call, but after a minute."""
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    judge = ScriptedModel(lambda r: '{"steps": []}')
    geval = helpful()
    evaluator = RagEvaluator(judge, [geval])

    first = await evaluator.evaluate(call(1))
    second = await evaluator.evaluate(call(2))

    for evaluation in (first, second):
        assert evaluation.scores["geval:helpful"].unscored == "judge_output_invalid"
    reason = first.scores["geval:helpful"].reason or ""
    assert "there are 0 steps" in reason
    assert "`steps=`" in reason
    assert (first.usage.requests, second.usage.requests) == (2, 0)
    clock += 61
    await evaluator.evaluate(call(3))
    assert len(judge.requests) == 4


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
async def test_a_judge_that_refuses_to_write_steps(reason: Any) -> None:
    """Unscored by that reason, without a retry."""
    judge = ScriptedModel(lambda r: answers("", finish_reason=reason))

    score = await helpful().score(call(1), judge)

    assert score.unscored == reason
    assert len(judge.requests) == 1


async def test_a_judge_that_does_not_answer_is_an_error_and_is_asked_again() -> None:
    """An outage is not a missing step."""
    down = iter([JudgeUnavailableError("down")])
    judge = ScriptedModel(lambda request: next(down, None) or writing(request))
    geval = helpful()
    with pytest.raises(JudgeUnavailableError):
        await geval.measure(call(1), judge)

    assert (await geval.measure(call(1), judge)).scores[0].status == "scored"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('{"steps": ["a"]}', ("a",)),
        ('```json\n{"steps": ["a ", "b\\n  c"]}\n```', ("a", "b c")),
        (json.dumps({"steps": ["x"] * 10}), ("x",) * 10),
        *((text, None) for text in (
            '{"steps": []}', '{"steps": "a"}', '{"steps": ["a", ""]}', '{"steps": [1]}',
            '{"a": 1}', "x", json.dumps({"steps": ["x"] * 11}),
        )),
    ],
)  # fmt: skip
def test_steps_are_read_or_refused(text: str, steps: tuple[str, ...] | None) -> None:
    """1 to 10, each one line; what is no such list is refused."""
    with contextlib.nullcontext() if steps else pytest.raises(JudgeOutputError):
        assert parse_steps(text) == steps
