"""Many calls: order, concurrency, bounds, failures, early leaving; with and without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Evaluations
from rag_eval_integrations.dataset import evaluate_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.records import Labelling, RagCall, SentencizedCall
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
    """Waits as long as the call's number says; counts how many wait at once."""

    def __init__(self, delays: dict[str, float] | None = None) -> None:
        super().__init__(LABELS)
        self.delays = delays or {}
        self.now = self.most = 0

    async def label(self, call: SentencizedCall) -> Labelling:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.delays.get(call.call.id, 0.001))
        self.now -= 1
        return await super().label(call)


async def test_all_are_collected_in_order() -> None:
    """As `Evaluations`, also when the first call takes longest; nothing is evaluated before."""
    judge = Waiting({"0": 0.05})
    stream = evaluate_calls(numbered(5), RagEvaluator(judge), max_concurrency=10**12)
    assert judge.most == 0

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
    judge = Waiting({"0": 0.05})
    stream = evaluate_calls(numbered(6), RagEvaluator(judge), ordered=False)

    results = [(index, e.id) async for index, e in stream.numbered()]

    assert results[-1] == (0, "0")
    assert all(str(index) == name for index, name in results)


@pytest.mark.parametrize(("options", "most"), [({}, 32), ({"max_concurrency": 4}, 4)])
async def test_no_more_than_max_concurrency_at_once(options: Any, most: int) -> None:
    """And as many as that, 32 by default; none is begun ahead where a model bounds no requests."""
    model = _Gated(retries=True)
    for evaluator in (RagEvaluator(model), RagEvaluator(ScriptedJudge(LABELS))):
        assert evaluator.max_concurrency is None
    stream = evaluate_calls(numbered(50), RagEvaluator(model), **options)

    asking = asyncio.create_task(stream.collect())
    for _ in range(500):
        await asyncio.sleep(0)
    assert model.now == most
    model.gate.set()

    assert [row.id for row in await asking] == [str(number) for number in range(50)]
    assert model.most == most


async def test_calls_are_taken_as_they_are_needed() -> None:
    """A source may be endless: no more than a bounded number is read ahead."""
    source = Counted(10**9)
    stream = aiter(evaluate_calls(source, RagEvaluator(ScriptedJudge(LABELS)), max_concurrency=2))
    for _ in range(300):
        await anext(stream)

    assert source.taken < 300 + 64 * 2 + 3


async def test_a_slow_head_does_not_hold_more_than_the_bound() -> None:
    """Finished calls wait for the first one in bounded number."""
    source = Counted(1000)
    stream = evaluate_calls(source, RagEvaluator(Waiting({"0": 0.3})), max_concurrency=2)

    assert (await anext(aiter(stream))).id == "0"
    assert source.taken <= 64 * 2 + 1


async def test_a_failing_source_is_raised_after_what_was_under_way() -> None:
    """The iterable is the user's: its exception is theirs, and nothing evaluated is lost."""

    def broken() -> Iterator[RagCall]:
        yield from numbered(3)
        raise ValueError("file is gone")

    seen: list[str] = []

    async def collect() -> None:
        async for evaluation in evaluate_calls(broken(), RagEvaluator(Waiting())):
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
    ("calls_at_once", "requests_at_once", "asked", "begun"),
    [(4, 4, 4, 5), (8, 4, 4, 9), (2, 4, 2, 2)],
)
async def test_prompts_are_ready_before_a_request_may_go(
    calls_at_once: int, requests_at_once: int, asked: int, begun: int
) -> None:
    """Where the model bounds requests itself; no more of them are made than either number allows."""
    model, source = _Gated(), Counted(12)
    evaluator = RagEvaluator(ThrottledModel(model, max_concurrency=requests_at_once))

    async def ask() -> list[str]:
        stream = evaluate_calls(source, evaluator, max_concurrency=calls_at_once)
        return [evaluation.id async for evaluation in stream]

    asking = asyncio.create_task(ask())
    for _ in range(500):
        await asyncio.sleep(0)
    assert (model.now, source.taken) == (asked, begun)
    model.gate.set()

    assert await asking == [str(number) for number in range(12)]
    assert model.most == asked


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


ESCAPES = (SystemExit(1), asyncio.CancelledError(), ConnectionError("down"))


class Escaping(ScriptedJudge):
    """Raises at its third call, also what is no `Exception`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(LABELS)
        self.error = error

    async def label(self, call: SentencizedCall) -> Labelling:
        if call.call.id == "2":
            raise self.error
        return await super().label(call)


@pytest.mark.parametrize("error", ESCAPES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_what_a_judge_raises_is_one_row(error: BaseException, concurrency: int) -> None:
    """All eight calls have a row, in their order, with a loop and without."""
    stream = evaluate_calls(numbered(8), RagEvaluator(Escaping(error)), max_concurrency=concurrency)
    without = evaluate_calls(numbered(8), RagEvaluator(Escaping(error)))

    for rows in ([row async for row in stream], await asyncio.to_thread(list, without)):
        assert [row.id for row in rows] == [str(number) for number in range(8)]
        assert [row.error.type for row in rows if row.error] == [type(error).__name__]


def test_an_item_that_is_no_call_is_one_row() -> None:
    """A loader's mistake in one place of many."""
    calls: list[object] = [*numbered(2), None, *numbered(1)]

    rows = list(evaluate_calls(calls, RagEvaluator(ScriptedJudge(LABELS))))  # type: ignore[arg-type]  # on purpose

    assert [row.error is None for row in rows] == [True, True, False, True]
