"""Many calls: order, concurrency, bounds, failures, early leaving; with and without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import EmbeddedJudge, Evaluations, RagCall, RagEvaluator, evaluate_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models import Completion, CompletionRequest, ThrottledModel
from rag_eval_integrations.records import Labelling, SentencizedCall
from rag_eval_integrations.testing import ScriptedModel, labels_reply

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


def numbered(count: int) -> Iterator[RagCall]:
    for number in range(count):
        yield RagCall(question=f"q{number}", documents=["A b."], response="A b.", id=str(number))


class Counted:
    """Calls one after the other; counts how many were taken."""

    def __init__(self, count: int) -> None:
        self.calls = numbered(count)
        self.taken = 0

    def __iter__(self) -> Iterator[RagCall]:
        for call in self.calls:
            self.taken += 1
            yield call


class Waiting(ScriptedJudge):
    """Waits for the first call longer than for others."""

    def __init__(self, seconds: float) -> None:
        super().__init__(LABELS)
        self.seconds = seconds

    async def label(self, call: SentencizedCall) -> Labelling:
        await asyncio.sleep(self.seconds if call.call.id == "0" else 0.001)
        return await super().label(call)


async def test_all_are_collected_in_order() -> None:
    """As `Evaluations`, also when the first call takes longest; nothing is evaluated before."""
    judge = Waiting(0.05)
    stream = evaluate_calls(numbered(5), RagEvaluator(judge), max_concurrency=10**12)
    assert judge.asked == []

    result = await stream.collect()

    assert isinstance(result, Evaluations)
    assert [each.id for each in result] == ["0", "1", "2", "3", "4"]
    assert result.mean("adherence").n == 5
    assert await evaluate_calls([], RagEvaluator(judge)).collect() == Evaluations([])


def test_all_are_collected_in_synchronous_code() -> None:
    """By `collect_sync`, `for`, or `Evaluations`; leaving a loop early stops the work."""
    judge = ScriptedJudge(LABELS)
    stream = evaluate_calls(list(numbered(3)), RagEvaluator(judge))
    assert [each.id for each in stream.collect_sync()] == ["0", "1", "2"]
    assert Evaluations(stream) == stream.collect_sync() == list(stream)

    for _ in evaluate_calls(numbered(10_000), RagEvaluator(judge), max_concurrency=2):
        break
    assert len(judge.asked) < 12 + 64 * 2 + 3


def test_a_stream_that_is_printed_says_what_to_do() -> None:
    """It has evaluated nothing yet."""
    stream = evaluate_calls(numbered(2), RagEvaluator(ScriptedJudge(LABELS)))

    assert repr(stream) == (
        "<EvaluationStream: loop over it, or call collect_sync() or await collect()>"
    )


async def test_or_as_they_finish() -> None:
    """`ordered=False` lets a slow call come last; `numbered` says which call it was."""
    stream = evaluate_calls(numbered(6), RagEvaluator(Waiting(0.05)), ordered=False)

    results = [(index, e.id) async for index, e in stream.numbered()]

    assert results[-1] == (0, "0")
    assert all(str(index) == name for index, name in results)


async def test_calls_are_taken_as_they_are_needed() -> None:
    """A source may be endless: no more than a bounded number is read ahead.

    Finished calls wait in bounded number for a first one that is slow, too.
    """
    source = Counted(10**9)
    stream = aiter(evaluate_calls(source, RagEvaluator(Waiting(0.3)), max_concurrency=2))
    assert (await anext(stream)).id == "0"
    assert source.taken <= 64 * 2 + 1
    for _ in range(299):
        await anext(stream)

    assert source.taken < 300 + 64 * 2 + 3


async def test_a_failing_source_is_raised_after_what_was_under_way() -> None:
    """The iterable is the user's: its exception is theirs, and nothing evaluated is lost."""

    def broken() -> Iterator[RagCall]:
        yield from numbered(3)
        raise ValueError("file is gone")

    seen: list[str] = []

    async def collect() -> None:
        async for evaluation in evaluate_calls(broken(), RagEvaluator(Waiting(0.001))):
            seen.append(evaluation.id)  # noqa: PERF401  # a comprehension would lose them

    with pytest.raises(ValueError, match="file is gone"):
        await collect()

    assert seen == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("calls", "calls.jsonl"), ("calls", Path("calls.jsonl")), ("calls", None), ("calls", {}),
        ("calls", next(numbered(1))), ("evaluator", "embedded"), ("evaluator", EmbeddedJudge()),
        ("evaluator", RagEvaluator), ("max_concurrency", 0),
    ],
)  # fmt: skip
def test_mistakes_are_raised_where_the_stream_is_made(field: str, value: Any) -> None:
    """A path, one call and a row are not many calls, and a judge is not an evaluator."""
    arguments: dict[str, Any] = {"calls": [], "evaluator": RagEvaluator(ScriptedJudge(LABELS))}
    with pytest.raises(ConfigurationError, match=f"`{field}` = "):
        evaluate_calls(**{**arguments, field: value})


@pytest.mark.parametrize(
    ("options", "requests_at_once", "asked", "begun"),
    [({}, None, 32, 32), ({"max_concurrency": 4}, None, 4, 4),
     ({"max_concurrency": 4}, 4, 4, 5), ({"max_concurrency": 8}, 4, 4, 9),
     ({"max_concurrency": 2}, 4, 2, 2)],
)  # fmt: skip
async def test_no_more_than_max_concurrency_at_once(
    options: Any, requests_at_once: int | None, asked: int, begun: int
) -> None:
    """And as many as that, 32 by default.

    Where the model bounds requests itself, prompts are ready before a request may go; no more of
    them are made than either number allows. None is begun ahead where it bounds none.
    """
    model, source = _Gated(retries=requests_at_once is None), Counted(50)
    bounded = ThrottledModel(model, max_concurrency=requests_at_once or 1)
    evaluator = RagEvaluator(bounded if requests_at_once else model)
    asking = asyncio.create_task(evaluate_calls(source, evaluator, **options).collect())
    for _ in range(500):
        await asyncio.sleep(0)
    assert (evaluator.max_concurrency, model.now, source.taken) == (requests_at_once, asked, begun)
    model.gate.set()

    assert [row.id for row in await asking] == [str(number) for number in range(50)]
    assert model.most == asked
    assert RagEvaluator(ScriptedJudge(LABELS)).max_concurrency is None


class _Gated(ScriptedModel):
    """Answers when the gate opens; knows how many requests wait for that."""

    def __init__(self, *, retries: bool = False) -> None:
        super().__init__(lambda _: labels_reply(["0a"], ["a"]))
        self.gate, self.retries = asyncio.Event(), retries
        self.now = self.most = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.gate.wait()
        await asyncio.sleep(0)
        self.now -= 1
        return await super().complete(request)
